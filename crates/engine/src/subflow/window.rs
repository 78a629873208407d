//! The peer's window of one subflow (RFC 9293 §3.8.6, §3.10.7.4). It may shrink; the connection's does not
//! (RFC 8684 §3.3.5).

use core::cmp::Ordering;

/// The peer's window. Positions are offsets in the subflow's sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendWindow {
    /// First offset that is not admitted: `SND.UNA + SND.WND`.
    edge: u64,
    /// Where the segment that last moved it began: `SND.WL1`. `SND.WL2` is not kept: `SND.UNA` is no less.
    wl1: u64,
}

impl SendWindow {
    /// After a SYN that offers `size` bytes.
    pub fn new(size: u64) -> Self {
        Self { edge: 1 + size, wl1: 0 }
    }

    /// A segment that begins at `seq` and acknowledges `ack`, at least `SND.UNA`, offers `size` bytes in units of `unit`. How
    /// far the window reaches then, compared with before.
    #[inline(always)]
    pub fn update(&mut self, seq: u64, ack: u64, size: u64, unit: u64) -> Ordering {
        // RFC 9293 §3.10.7.4: not an old segment
        if seq < self.wl1 {
            return Ordering::Equal;
        }
        self.wl1 = seq;
        let edge = ack + size;
        // RFC 7323 §2.4: the size is rounded down, so that the edge may waver by less than a unit.
        let rounded = size > 0 && edge < self.edge && self.edge - edge < unit;
        let before = self.edge;
        if !rounded {
            self.edge = edge;
        }
        self.edge.cmp(&before)
    }

    /// Bytes that may be sent from `nxt` on.
    pub fn left(&self, nxt: u64) -> u64 {
        self.edge.saturating_sub(nxt)
    }

    /// Data that ends at `end` is admitted.
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
        let mut update = |seq, ack, size| (window.update(seq, ack, size, 1), window.left(501));
        assert_eq!(update(1, 501, 1000), (Ordering::Greater, 1000));
        // Shrunk, closed, and open again.
        assert_eq!(update(1, 501, 200), (Ordering::Less, 200));
        assert_eq!(update(1, 501, 0), (Ordering::Less, 0));
        assert_eq!(update(1, 501, 700), (Ordering::Greater, 700));
        // An older segment does not show it.
        assert_eq!(update(0, 900, 9000), (Ordering::Equal, 700));
        // A newer segment may acknowledge no more.
        assert_eq!(update(2, 501, 800), (Ordering::Greater, 800));
        assert!(window.admits(1301) && !window.admits(1302));
    }

    #[test]
    fn an_edge_that_wavers_by_less_than_a_unit_stays() {
        let mut window = SendWindow::new(0);
        let mut update = |ack, size| (window.update(1, ack, size, 256), window.left(101));
        assert_eq!(update(1, 1024), (Ordering::Greater, 924));
        assert_eq!(update(101, 768), (Ordering::Equal, 924));
        assert_eq!(update(101, 512), (Ordering::Less, 512));
    }
}
