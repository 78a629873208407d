//! The peer's window of one subflow (RFC 9293 §3.8.6, §3.10.7.4). It may shrink; the connection's does not
//! (RFC 8684 §3.3.5).

/// What the peer admits. Positions are offsets in the subflow's sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendWindow {
    /// First offset that is not admitted: `SND.UNA + SND.WND`.
    edge: u64,
    /// Where the segment that last moved it began, and what it acknowledged: `SND.WL1`, `SND.WL2`.
    last: (u64, u64),
}

impl SendWindow {
    /// After a SYN that offers `size` bytes.
    pub fn new(size: u64) -> Self {
        Self { edge: 1 + size, last: (0, 1) }
    }

    /// A segment that begins at `seq` and acknowledges `ack` offers `size` bytes in units of `unit`. True if more is admitted
    /// than before.
    pub fn update(&mut self, seq: u64, ack: u64, size: u64, unit: u64) -> bool {
        // RFC 9293 §3.10.7.4: not an old segment
        if (seq, ack) < self.last {
            return false;
        }
        self.last = (seq, ack);
        let edge = ack + size;
        // RFC 7323 §2.4: the size is rounded down, so that the edge may waver by less than a unit.
        let rounded = size > 0 && edge < self.edge && self.edge - edge < unit;
        let before = self.edge;
        if !rounded {
            self.edge = edge;
        }
        self.edge > before
    }

    /// Bytes that may be sent from `nxt` on.
    pub fn left(&self, nxt: u64) -> u64 {
        self.edge.saturating_sub(nxt)
    }

    /// What ends at `end` is admitted.
    pub fn admits(&self, end: u64) -> bool {
        end <= self.edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_segment_says_how_wide_it_is() {
        let mut window = SendWindow::new(1000);
        assert_eq!(window.left(1), 1000);
        assert!(window.update(1, 501, 1000, 1) && window.left(501) == 1000);
        // Shrunk, closed, and open again.
        assert!(!window.update(1, 501, 200, 1) && window.left(501) == 200);
        assert!(!window.update(1, 501, 0, 1) && window.left(501) == 0);
        assert!(window.update(1, 501, 700, 1) && window.left(501) == 700);
        // An older acknowledgment, and an older segment, say nothing.
        assert!(!window.update(1, 500, 9000, 1) && !window.update(0, 900, 9000, 1));
        assert_eq!(window.left(501), 700);
        // A newer segment may acknowledge no more.
        assert!(window.update(2, 501, 800, 1) && window.admits(1301) && !window.admits(1302));
    }

    #[test]
    fn an_edge_that_wavers_by_less_than_a_unit_stays() {
        let mut window = SendWindow::new(0);
        assert!(window.update(1, 1, 1024, 256));
        assert!(!window.update(1, 101, 768, 256));
        assert_eq!(window.left(101), 924);
        assert!(!window.update(1, 101, 512, 256));
        assert_eq!(window.left(101), 512);
    }
}
