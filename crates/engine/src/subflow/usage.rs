//! Whether the congestion window is what limits a subflow (Linux's `tcp_is_cwnd_limited`), and pacing.

use super::Subflow;
use crate::congestion::Window;
use crate::schedule::PathView;
use anabranch_units::{Duration, Instant, Rate};

/// The window that congestion control decides on, in packets, without its pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub cwnd: u32,
    pub ssthresh: u32,
}

impl From<Window> for Allowed {
    fn from(Window { cwnd, ssthresh, .. }: Window) -> Self {
        Self { cwnd, ssthresh }
    }
}

/// How much of the window was used in the last round.
#[derive(Debug, Default)]
pub(crate) struct WindowUsage {
    /// Packets of the window that may be free while it counts as used.
    slack: u32,
    max_in_flight: u32,
    until: u64,
    limited: bool,
}

impl WindowUsage {
    /// Nothing was sent yet. `slack`: packets that may be free while the window counts as used.
    pub fn new(slack: u32) -> Self {
        Self { slack, ..Self::default() }
    }

    /// After a transmission: `una` and `nxt` of the subflow, packets in flight, the window.
    pub fn on_sent(&mut self, una: u64, nxt: u64, in_flight: u32, cwnd: u32) {
        let limited = in_flight.saturating_add(self.slack) >= cwnd;
        if una >= self.until || in_flight > self.max_in_flight || limited {
            self.max_in_flight = in_flight;
            self.until = nxt;
            self.limited = limited;
        }
    }

    /// An increase is allowed. In slow start, which ends at a window of `end` packets, half the window must have been used
    /// (RFC 9293 §3.8.2, RFC 7661 §4.4).
    pub fn is_limited(&self, cwnd: u32, end: u32) -> bool {
        self.limited || (cwnd < end && cwnd < self.max_in_flight.saturating_mul(2))
    }
}

/// How long the window was never full, and how much of it was used meanwhile (RFC 2861 §3.2, Linux's `tcp_cwnd_validate`).
#[derive(Debug, Default)]
pub(crate) struct Underuse {
    since: Instant,
    used: u32,
}

impl Underuse {
    /// The time starts again.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// New data left. Once `rto` has passed in which the window was never full: what was in flight at most.
    pub fn on_sent(&mut self, now: Instant, in_flight: u32, cwnd: u32, rto: Duration) -> Option<u32> {
        if in_flight >= cwnd {
            *self = Self { since: now, used: 0 };
            return None;
        }
        self.used = self.used.max(in_flight);
        if now.since(self.since) < rto {
            return None;
        }
        self.since = now;
        Some(core::mem::take(&mut self.used))
    }
}

/// Spreads transmissions over time.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    next: Instant,
}

/// Packets that may leave back to back after idling.
const BURST: u64 = 10;

impl Pacer {
    /// When the next packet may leave.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// A packet of `bytes` left.
    pub fn on_sent(&mut self, now: Instant, rate: Rate, bytes: u64) {
        let gap = rate.time_for(bytes);
        let earliest = now - gap * BURST;
        // A timeout's segment leaves before its turn, and the turn of the next is no later than a gap from now.
        self.next = self.next.clamp(earliest, now) + gap;
    }
}

impl Subflow {
    /// The congestion window was what limited it in the last round. `at_threshold`: slow start includes a window that equals its threshold.
    #[inline(always)]
    pub fn is_limited(&self, at_threshold: bool) -> bool {
        self.usage.is_limited(self.allowed.cwnd, self.allowed.ssthresh.saturating_add(at_threshold.into()))
    }

    /// The time of an unused window starts again at `now`.
    pub fn restart_underuse(&mut self, now: Instant) {
        self.underuse.restart(now);
    }

    /// New data left, with which its path is as in `p`: see [`Underuse::on_sent`].
    pub fn used_at_most(&mut self, now: Instant, p: &PathView) -> Option<u32> {
        self.underuse.on_sent(now, p.in_flight, p.cwnd, self.sender.rtt().rto())
    }

    /// When its pacer lets the next segment leave.
    #[inline(always)]
    pub fn next_turn(&self) -> Instant {
        self.pacer.next()
    }

    /// The delivery rate is measured from now on; nothing may have been sent.
    pub fn measure_rate(&mut self) {
        self.sender.measure_rate();
    }

    /// Nothing waits for room in its window: see [`Sender::note_starved`](super::sender::Sender::note_starved).
    pub fn note_starved(&mut self) {
        self.sender.note_starved(self.sender.effective_window(self.allowed.cwnd));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_timeout_long_was_not_used_is_told_once() {
        let (at, rto) = (Instant::from_millis, Duration::from_millis(200));
        let mut underuse = Underuse::default();
        assert_eq!(underuse.on_sent(at(10), 20, 20, rto), None);
        assert_eq!(underuse.on_sent(at(100), 7, 20, rto), None);
        assert_eq!(underuse.on_sent(at(209), 5, 20, rto), None);
        assert_eq!(underuse.on_sent(at(210), 3, 20, rto), Some(7));
        assert_eq!(underuse.on_sent(at(300), 3, 20, rto), None);
        // Full once: the time starts again.
        assert_eq!(underuse.on_sent(at(310), 20, 20, rto), None);
        assert_eq!(underuse.on_sent(at(500), 4, 20, rto), None);
        underuse.restart(at(505));
        assert_eq!(underuse.on_sent(at(600), 4, 20, rto), None);
        assert_eq!(underuse.on_sent(at(705), 2, 20, rto), Some(4));
    }

    #[test]
    fn slow_start_needs_half_the_window_used() {
        let mut usage = WindowUsage::default();
        usage.on_sent(0, 5_000, 5, 10);
        assert!(!usage.is_limited(10, u32::MAX));
        usage.on_sent(0, 6_000, 6, 10);
        assert!(usage.is_limited(10, u32::MAX));
        assert!(!usage.is_limited(10, 5));
        usage.on_sent(0, 10_000, 10, 10);
        assert!(usage.is_limited(10, 5));
    }

    #[test]
    fn a_window_with_no_more_free_than_its_slack_counts_as_used() {
        for (slack, in_flight, limited) in [(0, 9, false), (3, 6, false), (3, 7, true), (3, 0, false)] {
            let mut usage = WindowUsage::new(slack);
            usage.on_sent(0, 1_000, in_flight, 10);
            assert_eq!(usage.is_limited(10, 5), limited, "{in_flight} of 10 in flight, slack {slack}");
        }
    }

    #[test]
    fn packets_leave_at_the_rate_after_a_burst() {
        let mut pacer = Pacer::default();
        let rate = Rate::from_bps(12_000_000); // 1500 bytes per millisecond
        let now = Instant::from_millis(1000);
        for _ in 0..BURST {
            assert!(pacer.next() <= now);
            pacer.on_sent(now, rate, 1500);
        }
        assert_eq!(pacer.next(), now);
        pacer.on_sent(now, rate, 1500);
        assert_eq!(pacer.next(), now + Duration::from_millis(1));
    }
}
