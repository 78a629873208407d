//! When to acknowledge (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use crate::deadlines::NEVER;
use anabranch_units::{Duration, Instant, Range};

/// Decides when an acknowledgment is due.
#[derive(Debug)]
pub(crate) struct AckPolicy {
    delay: Duration,
    quick: u32,
    unacknowledged: u32,
    /// Bytes of the largest segment so far: what the peer sends when it has enough.
    full: u32,
    small: SmallSegments,
    now: bool,
    deadline: Instant,
    /// A duplicate to report in the next acknowledgment (RFC 2883).
    duplicate: Option<Range>,
}

/// When a segment is acknowledged that is smaller than the peer can send: until then Nagle's algorithm may hold back the next small
/// one (RFC 9293 §3.7.4), and with that, under Multipath TCP, what all other subflows wait for.
#[derive(Debug)]
enum SmallSegments {
    /// At once.
    AtOnce,
    /// As soon as the application reads anything. In return some whole segments are acknowledged at once.
    ///
    /// Linux 6.18: `tcp_event_data_recv`, `tcp_grow_window`, `mptcp_cleanup_rbuf`.
    WhenRead {
        /// Whole segments that are still to be acknowledged at once, because each makes the window grow.
        growth: u32,
        /// A small segment came since the last acknowledgment.
        waits: bool,
    },
}

/// Segments that a kernel acknowledges at once, whatever their size (`TCP_MAX_QUICKACKS`).
const LINUX_QUICK: u32 = 16;

impl AckPolicy {
    /// The first `quick` segments are acknowledged at once, later ones after `delay` at the latest.
    pub fn new(delay: Duration, quick: u32) -> Self {
        Self {
            delay,
            quick,
            unacknowledged: 0,
            full: 0,
            small: SmallSegments::AtOnce,
            now: false,
            deadline: NEVER,
            duplicate: None,
        }
    }

    /// Beyond the first sixteen only whole segments are acknowledged at once, and small ones when they are read.
    pub fn small_when_read(self) -> Self {
        let growth = self.quick.saturating_sub(LINUX_QUICK);
        Self { quick: self.quick.min(LINUX_QUICK), small: SmallSegments::WhenRead { growth, waits: false }, ..self }
    }

    /// Payload or FIN came; `at_once` if RFC 5681 §4.2 wants an immediate acknowledgment.
    #[inline(always)]
    pub fn on_arrival(&mut self, now: Instant, at_once: bool) {
        self.unacknowledged += 1;
        // RFC 5681 §4.2: at least every second segment
        if at_once || self.quick > 0 || self.unacknowledged >= 2 || self.delay.is_zero() {
            self.now = true;
        } else {
            self.deadline = self.deadline.min(now + self.delay);
        }
        self.quick = self.quick.saturating_sub(1);
    }

    /// Notes a segment of `len` bytes, one MSS at most. True if it is to be acknowledged at once because it is small.
    #[inline(always)]
    pub fn is_small(&mut self, len: u32) -> bool {
        let small = len < self.full;
        self.full = self.full.max(len);
        if matches!(self.small, SmallSegments::AtOnce) { small } else { self.note_size(small) }
    }

    #[cold]
    #[inline(never)]
    fn note_size(&mut self, small: bool) -> bool {
        let SmallSegments::WhenRead { growth, waits } = &mut self.small else { return small };
        *waits |= small;
        if !small && *growth > 0 {
            *growth -= 1;
            self.quick |= 1;
        }
        false
    }

    /// The application read something, on whatever subflow it came.
    pub fn on_read(&mut self) {
        self.now |= matches!(self.small, SmallSegments::WhenRead { waits: true, .. });
    }

    /// An acknowledgment must go out, whatever came.
    pub fn demand(&mut self) {
        self.now = true;
    }

    /// Reports a duplicate in the next acknowledgment.
    pub fn report(&mut self, duplicate: Range) {
        self.duplicate = Some(duplicate);
        self.now = true;
    }

    /// The delayed acknowledgment's time.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The delay is over.
    pub fn on_timer(&mut self, now: Instant) {
        if self.deadline <= now {
            self.deadline = NEVER;
            self.now = true;
        }
    }

    /// An acknowledgment is due now.
    pub fn is_due(&self) -> bool {
        self.now
    }

    /// Something has come that is not acknowledged.
    pub fn owes(&self) -> bool {
        self.unacknowledged > 0
    }

    /// A segment with an acknowledgment leaves; returns the duplicate that it should report.
    pub fn on_sent(&mut self) -> Option<Range> {
        self.unacknowledged = 0;
        self.now = false;
        self.deadline = NEVER;
        if let SmallSegments::WhenRead { waits, .. } = &mut self.small {
            *waits = false;
        }
        self.duplicate.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a capture: of frames of seven whole segments and a small one that were not read, a Linux receiver acknowledged all segments
    /// at once for the first eight frames, and the small one of later frames only with the next.
    #[test]
    fn small_segments_are_acknowledged_at_once_or_when_they_are_read() {
        let mut acks = AckPolicy::new(Duration::from_millis(40), 1040).small_when_read();
        let arrive = |acks: &mut AckPolicy, len| {
            let at_once = acks.is_small(len);
            acks.on_arrival(Instant::ZERO, at_once);
            let due = acks.is_due();
            if due {
                acks.on_sent();
            }
            due
        };
        let mut waits = 0;
        for _ in 0..20 {
            assert!((0..7).all(|_| arrive(&mut acks, 1400)));
            waits += u32::from(!arrive(&mut acks, 200));
        }
        assert_eq!(waits, 12);
        assert!(!acks.is_due());
        acks.on_read();
        assert!(acks.is_due());
    }

    #[test]
    fn every_second_segment_or_after_the_delay() {
        let mut acks = AckPolicy::new(Duration::from_millis(40), 16);
        for i in 0..16 {
            acks.on_arrival(Instant::from_millis(i), false);
            assert!(acks.is_due());
            acks.on_sent();
        }
        acks.on_arrival(Instant::from_millis(100), false);
        assert!(!acks.is_due());
        assert_eq!(acks.deadline(), Instant::from_millis(140));
        acks.on_arrival(Instant::from_millis(101), false);
        assert!(acks.is_due());
        acks.on_sent();
        acks.on_arrival(Instant::from_millis(200), false);
        acks.on_timer(Instant::from_millis(239));
        assert!(!acks.is_due());
        acks.on_timer(Instant::from_millis(240));
        assert!(acks.is_due());
    }
}
