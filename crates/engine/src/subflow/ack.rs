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
    now: bool,
    deadline: Instant,
    /// A duplicate to report in the next acknowledgment (RFC 2883).
    duplicate: Option<Range>,
}

impl AckPolicy {
    /// The first `quick` segments are acknowledged at once, later ones after `delay` at the latest.
    pub fn new(delay: Duration, quick: u32) -> Self {
        Self { delay, quick, unacknowledged: 0, full: 0, now: false, deadline: NEVER, duplicate: None }
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

    /// Notes a segment of `len` bytes, one MSS at most. True if it is smaller than the peer can send: until it is
    /// acknowledged Nagle's algorithm may hold back the next small one (RFC 9293 §3.7.4), and with that, under Multipath
    /// TCP, what all other subflows wait for. Linux acknowledges it as soon as it is read.
    pub fn is_small(&mut self, len: u32) -> bool {
        let small = len < self.full;
        self.full = self.full.max(len);
        small
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

    /// A segment with an acknowledgment leaves; returns the duplicate that it should report.
    pub fn on_sent(&mut self) -> Option<Range> {
        self.unacknowledged = 0;
        self.now = false;
        self.deadline = NEVER;
        self.duplicate.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
