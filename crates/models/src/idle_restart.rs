//! The window after idling: the restart rule of RFC 2861, by the engine's own function.

use anabranch_congestion::WindowState;
use anabranch_units::Duration;

/// A subflow that has sent nothing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleRestart {
    /// Window before, packets.
    pub window: u32,
    /// Slow-start threshold before, packets.
    pub ssthresh: u32,
    /// Initial window, packets.
    pub initial_window: u32,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Time since the last packet was sent.
    pub idle: Duration,
}

impl IdleRestart {
    /// Window and slow-start threshold after the restart, packets. This is the engine's own function.
    pub fn after(&self) -> (u32, u32) {
        let mut window = WindowState::new(self.initial_window);
        // A window that was at the threshold at the end of slow start, and has grown to this size.
        window.set(self.ssthresh);
        window.end_slow_start();
        window.set(self.window);
        window.restart(self.idle, self.rto);
        (window.cwnd(), window.ssthresh())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_halves_per_timeout_down_to_the_initial_one() {
        // window, RTO ms, idle ms, ssthresh → window, ssthresh; initial window 10.
        for ((window, rto, idle, ssthresh), expected) in [
            ((80, 200, 1000, 40), (10, 60)),
            ((80, 200, 500, 40), (20, 60)),
            ((80, 200, 400, 40), (40, 60)),
            ((80, 200, 200, 40), (80, 40)),
            ((6, 200, 5000, 30), (6, 30)),
            ((25, 200, 450, 100), (10, 100)),
        ] {
            let (rto, idle) = (Duration::from_millis(rto), Duration::from_millis(idle));
            let model = IdleRestart { window, ssthresh, initial_window: 10, rto, idle };
            assert_eq!(model.after(), expected, "{model:?}");
        }
    }
}
