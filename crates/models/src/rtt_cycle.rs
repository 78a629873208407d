//! Window and round-trip time over one cycle of congestion avoidance: equation 10.

use crate::storage::{Cycle, Storage};

/// One cycle, from the begin of buffer filling to the loss that ends it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttCycle {
    /// The bottleneck.
    pub storage: Storage,
    /// Packets that one acknowledgment covers.
    pub delayed_ack: f64,
    /// The end of the cycle.
    pub cycle: Cycle,
}

/// A point of the cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since the buffer began to fill.
    pub time: f64,
    /// Window in packets.
    pub window: f64,
    /// Round-trip time in seconds.
    pub rtt: f64,
}

impl RttCycle {
    /// The point `time` seconds after the buffer began to fill.
    pub fn at(&self, time: f64) -> Moment {
        let window = self.storage.window(time, self.delayed_ack);
        Moment { time, window, rtt: self.storage.rtt_at(window) }
    }

    /// `steps` + 1 equidistant points, from the first to the last of the cycle.
    pub fn moments(&self, steps: u32) -> impl Iterator<Item = Moment> + '_ {
        let end = self.storage.cycle_time(self.delayed_ack, self.cycle);
        (0..=steps).map(move |step| self.at(end * f64::from(step) / f64::from(steps.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(buffer: f64, cycle: Cycle) -> RttCycle {
        RttCycle { storage: Storage { buffer, floor_bdp: true, ..Storage::default() }, delayed_ack: 2.0, cycle }
    }

    #[test]
    fn a_cycle_runs_from_half_the_storage_to_all_of_it() {
        let moments: Vec<Moment> = cycle(1.0, Cycle::Text).moments(10).collect();
        assert_eq!(moments.len(), 11);
        let (first, last) = (moments[0], moments[10]);
        assert_eq!((first.time, first.window), (0.0, 12.5));
        assert!((last.window - 24.0).abs() < 1e-9);
        // With B = μτ the greatest round trip is twice the least.
        assert!((last.rtt / 0.015 - 1.96).abs() < 1e-9, "{}", last.rtt);
        assert!(moments.windows(2).all(|pair| pair[0].rtt < pair[1].rtt && pair[0].window < pair[1].window));
    }

    #[test]
    fn the_window_grows_by_one_per_round_of_b_windows() {
        // dw/dt = μ/(b·w): one more packet per b·w/μ seconds, which are b round trips while the bottleneck is busy.
        let cycle = cycle(8.0, Cycle::Printed);
        let round = 2.0 * cycle.at(0.0).window / cycle.storage.packet_rate();
        let growth = cycle.at(round).window - cycle.at(0.0).window;
        assert!((growth - 1.0).abs() < 0.01, "{growth}");
    }
}
