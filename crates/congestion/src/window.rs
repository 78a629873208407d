//! The window of one subflow, and the reactions that every loss-based algorithm shares.

use anabranch_plugin::congestion::{Acked, Loss, Window};
use anabranch_units::{Duration, Rate};

/// Largest window in packets: more than any network holds, and small enough for exact arithmetic in `f64`.
pub const MAX_WINDOW: u32 = 1 << 24;

/// Least slow-start threshold in packets (RFC 5681 §3.1 eq 4).
pub const MIN_SSTHRESH: u32 = 2;

/// The most that rounding may take from a sum of increments: ten times 1/10 is one packet.
const ROUNDING: f64 = 1e-9;

/// A congestion window in whole packets, with the fraction that its increases have accumulated.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowState {
    cwnd: u32,
    carry: f64,
    ssthresh: u32,
    initial: u32,
    before: Option<(u32, u32)>,
}

/// True if `loss` starts an episode, for which an algorithm computes a new slow-start threshold.
pub const fn begins_episode(loss: Loss) -> bool {
    matches!(loss, Loss::Fast | Loss::Marked | Loss::Timeout { again: false })
}

/// The whole part of a threshold in packets.
pub fn whole(packets: f64) -> u32 {
    (packets + ROUNDING) as u32
}

impl WindowState {
    /// A window of `initial` packets (at least 1) and no threshold yet.
    pub fn new(initial: u32) -> Self {
        let initial = initial.clamp(1, MAX_WINDOW);
        Self { cwnd: initial, carry: 0.0, ssthresh: u32::MAX, initial, before: None }
    }

    /// Whole packets that may be in flight, at least 1.
    pub const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// The initial window, in packets.
    pub const fn initial(&self) -> u32 {
        self.initial
    }

    /// The window with its fraction of a packet.
    pub fn exact(&self) -> f64 {
        f64::from(self.cwnd) + self.carry
    }

    /// Slow-start threshold in packets; `u32::MAX` = none yet.
    pub const fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Below the threshold (RFC 5681 §3.1).
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The window for the engine, paced at `pacing` if the algorithm has a rate.
    pub const fn grant(&self, pacing: Option<Rate>) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing }
    }

    /// Grows by the part of `ack` that slow start permits, and returns the part left for congestion avoidance: none
    /// where the window must not grow.
    pub fn slow_start(&mut self, ack: &Acked) -> u32 {
        let before = self.cwnd;
        let left = self.slow_start_by_packets(ack);
        // Here an acknowledgment counts in one of the two only.
        if ack.one_in_avoidance { left.min(u32::from(self.cwnd == before)) } else { left }
    }

    /// The same, with packets counted in congestion avoidance, whatever the settings say.
    pub fn slow_start_by_packets(&mut self, ack: &Acked) -> u32 {
        if !(ack.cwnd_limited && ack.may_grow) {
            return 0;
        }
        let end = self.ssthresh.saturating_add(ack.slow_start_at_threshold.into());
        let room = end.min(MAX_WINDOW).saturating_sub(self.cwnd);
        let taken = ack.counted.min(room);
        self.cwnd += taken;
        ack.counted - taken
    }

    /// Slow start ends at `ssthresh` packets at the latest.
    pub fn set_threshold(&mut self, ssthresh: u32) {
        self.ssthresh = self.ssthresh.min(ssthresh.max(MIN_SSTHRESH));
    }

    /// Ends slow start at the present window.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Sets the window to `cwnd` packets, from a model of the path.
    pub fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.clamp(1, MAX_WINDOW);
        self.carry = 0.0;
    }

    /// Reduces the window to `cwnd` packets because of delay, and never raises it; slow start ends at this window.
    pub fn shrink(&mut self, cwnd: u32) {
        self.cwnd = cwnd.clamp(1, self.cwnd);
        self.ssthresh = self.ssthresh.min(self.cwnd);
        self.carry = 0.0;
    }

    /// Adds a real number of packets, which may be negative; the window stays within 1 and [`MAX_WINDOW`].
    pub fn add(&mut self, packets: f64) {
        let sum = self.carry + packets;
        if !sum.is_finite() {
            return;
        }
        // The cast truncates towards zero and saturates.
        let whole = (sum + if sum < 0.0 { -ROUNDING } else { ROUNDING }) as i64;
        self.carry = sum - whole as f64;
        if whole != 0 {
            self.cwnd = i64::from(self.cwnd).saturating_add(whole).clamp(1, i64::from(MAX_WINDOW)) as u32;
        }
        if self.cwnd == 1 {
            // The least window carries no debt.
            self.carry = self.carry.max(0.0);
        }
    }

    /// The reaction common to all loss-based algorithms, with the threshold that this one computed. A penalty and a
    /// repeated timeout ignore that threshold.
    pub fn on_loss(&mut self, loss: Loss, ssthresh: u32) {
        match loss {
            Loss::Fast => {
                self.before = Some((self.cwnd, self.ssthresh));
                self.reduce(ssthresh);
            }
            Loss::Marked => {
                // An ECN mark is never spurious, and the undo of an older loss must not cancel its reduction.
                self.before = None;
                self.reduce(ssthresh);
            }
            Loss::Timeout { again } => {
                if !again {
                    self.before = Some((self.cwnd, self.ssthresh));
                    self.ssthresh = ssthresh;
                }
                self.cwnd = 1; // RFC 5681 §3.1: the loss window
            }
            Loss::Penalty => self.penalise(),
        }
        self.carry = 0.0;
    }

    fn reduce(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
        // A window of 1 is below the least threshold; a loss must not raise it.
        self.cwnd = self.cwnd.min(ssthresh).max(1);
    }

    /// Halves the window, and the threshold unless in slow start (the penalty of the kernel's minRTT).
    fn penalise(&mut self) {
        if !self.in_slow_start() {
            self.ssthresh = (self.ssthresh / 2).max(MIN_SSTHRESH);
        }
        self.cwnd = (self.cwnd / 2).max(1);
    }

    /// The last loss was spurious: restores the threshold, and the window if it was greater (RFC 4015 §3.2, Linux
    /// `tcp_undo_cwnd_reduction`).
    pub fn undo(&mut self) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = ssthresh;
            self.carry = 0.0;
        }
    }

    /// Restart after idling: one halving per timeout after the first, not below the restart window (RFC 2861 §3.1,
    /// Linux `tcp_cwnd_restart`).
    pub fn restart(&mut self, idle: Duration, rto: Duration) {
        let timeouts = idle.as_nanos().div_ceil(rto.as_nanos().max(1));
        if timeouts < 2 {
            return;
        }
        self.ssthresh = self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2));
        let restart_window = self.initial.min(self.cwnd);
        let halvings = u32::try_from(timeouts - 1).unwrap_or(u32::MAX);
        self.cwnd = self.cwnd.checked_shr(halvings).unwrap_or(0).max(restart_window);
        self.carry = 0.0;
    }

    /// At most `used` packets were in flight for a while: half of the rest is given up, down to the initial window (RFC
    /// 2861 §3.2, Linux `tcp_cwnd_application_limited`).
    pub fn give_back(&mut self, used: u32) {
        let used = used.max(self.initial);
        if used < self.cwnd {
            self.ssthresh = self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2));
            self.cwnd = self.cwnd.midpoint(used);
            self.carry = 0.0;
        }
    }
}

#[cfg(test)]
impl WindowState {
    /// A window from a test vector; initial window 10.
    pub(crate) fn at(cwnd: u32, ssthresh: u32) -> Self {
        Self { cwnd, ssthresh, ..Self::new(10) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(w: &WindowState) -> (u32, u32) {
        (w.cwnd, w.ssthresh)
    }

    fn ack(packets: u32) -> Acked {
        let mut ack = Acked::default();
        (ack.counted, ack.cwnd_limited, ack.may_grow) = (packets, true, true);
        ack
    }

    #[test]
    fn idle_restart_vectors() {
        // (window, RTO ms, idle ms, ssthresh) → (window, ssthresh); initial window 10
        for ((w, rto, idle, ssthresh), expected) in [
            ((80, 200, 1000, 40), (10, 60)),
            ((80, 200, 500, 40), (20, 60)),
            ((80, 200, 400, 40), (40, 60)),
            ((80, 200, 200, 40), (80, 40)),
            ((6, 200, 5000, 30), (6, 30)),
            ((25, 200, 450, 100), (10, 100)),
        ] {
            let mut window = WindowState::at(w, ssthresh);
            window.restart(Duration::from_millis(idle), Duration::from_millis(rto));
            assert_eq!(sizes(&window), expected, "{w} packets idle for {idle} ms");
        }
    }

    #[test]
    fn half_of_what_is_not_used_is_given_back() {
        // (window, threshold, used) → (window, threshold); initial window 10
        for ((w, ssthresh, used), expected) in [
            ((80, 40, 20), (50, 60)),
            ((80, 90, 20), (50, 90)),
            ((80, 40, 0), (45, 60)),
            ((10, 40, 3), (10, 40)),
            ((81, 40, 80), (80, 60)),
        ] {
            let mut window = WindowState::at(w, ssthresh);
            window.give_back(used);
            assert_eq!(sizes(&window), expected, "{used} of {w}");
        }
    }

    #[test]
    fn acknowledgments_count_in_avoidance_and_packets_in_slow_start() {
        let mut window = WindowState::at(10, 13);
        let mut two = ack(2);
        two.one_in_avoidance = true;
        assert_eq!((window.slow_start(&two), window.cwnd()), (0, 12));
        // Slow start does not return the rest of an acknowledgment.
        assert_eq!((window.slow_start(&two), window.cwnd()), (0, 13));
        assert_eq!((window.slow_start(&two), window.cwnd()), (1, 13));
    }

    #[test]
    fn restart_survives_any_times() {
        for (idle, rto) in [(Duration::MAX, Duration::ZERO), (Duration::ZERO, Duration::ZERO)] {
            let mut window = WindowState::at(80, 40);
            window.restart(idle, rto);
            assert!([80, 10].contains(&window.cwnd));
        }
        let mut none_yet = WindowState::at(80, u32::MAX);
        none_yet.restart(Duration::MAX, Duration::from_millis(1));
        assert_eq!(sizes(&none_yet), (10, u32::MAX));
    }

    #[test]
    fn penalty_vectors() {
        for (before, after) in
            [((20, 10), (10, 5)), ((20, 64), (10, 64)), ((8, 64), (4, 64)), ((1, 2), (1, 2)), ((3, 3), (1, 2))]
        {
            let mut window = WindowState::at(before.0, before.1);
            window.on_loss(Loss::Penalty, 0);
            assert_eq!(sizes(&window), after);
        }
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_passes_the_rest_on() {
        let mut window = WindowState::at(8, 11);
        assert_eq!(window.slow_start(&ack(2)), 0);
        assert_eq!(window.slow_start(&ack(5)), 4);
        assert_eq!(sizes(&window), (11, 11));
        assert_eq!(window.slow_start(&ack(7)), 7);
    }

    #[test]
    fn slow_start_at_the_threshold_passes_it_by_one_packet() {
        let mut at = ack(3);
        at.slow_start_at_threshold = true;
        for ((cwnd, ssthresh), (left, grown)) in [((10, 11), (1, 12)), ((11, 11), (2, 12)), ((12, 11), (3, 12))] {
            let mut window = WindowState::at(cwnd, ssthresh);
            assert_eq!((window.slow_start(&at), window.cwnd()), (left, grown), "{cwnd} of {ssthresh}");
        }
        let mut unlimited = WindowState::at(10, u32::MAX);
        assert_eq!((unlimited.slow_start(&at), unlimited.cwnd()), (0, 13));
    }

    #[test]
    fn nothing_grows_unless_limited_by_the_window_and_outside_recovery() {
        for (cwnd_limited, may_grow) in [(true, false), (false, true), (false, false)] {
            let mut window = WindowState::at(8, 100);
            let mut ack = ack(4);
            (ack.cwnd_limited, ack.may_grow) = (cwnd_limited, may_grow);
            assert_eq!(window.slow_start(&ack), 0);
            assert_eq!(window.cwnd, 8);
        }
    }

    #[test]
    fn fractions_add_up_to_packets_both_ways() {
        let mut window = WindowState::at(10, 5);
        (0..9).for_each(|_| window.add(0.1));
        assert_eq!(window.cwnd, 10);
        window.add(0.1);
        assert_eq!(window.cwnd, 11);
        (0..10).for_each(|_| window.add(-0.1));
        assert_eq!(window.cwnd, 10);
        window.add(2.5);
        assert_eq!((window.cwnd, window.exact()), (12, 12.5));
        window.add(-1e300);
        assert_eq!((window.cwnd, window.exact()), (1, 1.0));
        window.add(f64::NAN);
        window.add(f64::INFINITY);
        assert_eq!(window.cwnd, 1);
        window.add(1e300);
        assert_eq!(window.cwnd, MAX_WINDOW);
    }

    #[test]
    fn an_undo_restores_once_and_only_the_last_loss() {
        let mut window = WindowState::at(40, u32::MAX);
        window.on_loss(Loss::Timeout { again: false }, 20);
        window.on_loss(Loss::Timeout { again: true }, 2);
        assert_eq!(sizes(&window), (1, 20));
        window.undo();
        assert_eq!(sizes(&window), (40, u32::MAX));
        window.on_loss(Loss::Fast, 20);
        window.undo();
        window.on_loss(Loss::Marked, 20);
        window.undo();
        assert_eq!(sizes(&window), (20, 20));
    }

    #[test]
    fn a_loss_never_raises_the_window() {
        let mut window = WindowState::at(1, 7);
        window.on_loss(Loss::Fast, MIN_SSTHRESH);
        assert_eq!(sizes(&window), (1, 2));
    }
}
