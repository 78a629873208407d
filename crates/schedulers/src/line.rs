//! A path's bottleneck, as `playahead` sees it: when it has there what is sent next.

use crate::pick::without_queue;
use anabranch_engine::schedule::PathView;
use anabranch_units::Duration;

/// A path's bottleneck, as of the round under way. Rates in bytes per second, times in seconds by the engine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// When it has let through what the scheduler sent.
    pub free: f64,
    /// None until the path has an RTT.
    pub pace: Option<Pace>,
    pub next: Arrivals,
    mss: u32,
    /// How often it was reckoned with.
    #[cfg(test)]
    pub looks: u32,
}

/// How a path takes segments.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The capacity.
    pub rate: f64,
    /// A window per round trip.
    window: f64,
    /// The round trip without a queue, and the way there.
    pub base: f64,
    pub delay: f64,
}

/// When the next segments of a path arrive, from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Infinite until the path has an RTT.
    pub first: f64,
    /// From one to the next.
    pub step: f64,
    /// When the bottleneck is free after the first.
    free: f64,
}

impl Line {
    /// Takes over what is known of `path`; `measured`: all paths have a forward delay.
    pub fn learn(&mut self, path: &PathView, measured: bool) {
        self.mss = path.mss;
        self.pace = without_queue(path).map(|(base, window)| {
            let forward = path.least_forward().filter(|_| measured).map(Duration::as_secs_f64);
            Pace { rate: path.capacity_rate().unwrap_or(window), window, base, delay: forward.unwrap_or(base / 2.0) }
        });
    }

    /// Reckons when the next segments arrive that are sent from `now` on.
    pub fn look(&mut self, now: f64, path: &PathView, has_room: bool) {
        #[cfg(test)]
        (self.looks += 1);
        let Some(Pace { rate, window, base, delay }) = self.pace else {
            self.next = Arrivals { first: f64::INFINITY, step: 0.0, free: now };
            return;
        };
        let out = (path.in_flight_bytes + path.queued_bytes + path.elsewhere()) as f64 / rate;
        let queue = (out - base).max((self.free - now).min(out)).max(0.0);
        // A full path can add no more than its window lets it.
        let step = f64::from(path.mss) / if has_room { rate } else { rate.min(window) };
        self.next = Arrivals { first: queue + delay + step, step, free: now + queue + step };
    }

    /// The next segment was sent.
    pub const fn sent(&mut self) {
        self.free = self.next.free;
    }

    /// Bytes that it has there before `arrival`; none if that is not known.
    pub fn sooner_than(&self, arrival: f64) -> u64 {
        let Arrivals { first, step, .. } = self.next;
        let segments = if first < arrival && arrival.is_finite() { ((arrival - first) / step) as u64 + 1 } else { 0 };
        segments.saturating_mul(self.mss.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    fn looked(path: &PathView, now: f64) -> Line {
        let mut line = Line::default();
        line.learn(path, false);
        line.look(now, path, path.eligible());
        line
    }

    #[test]
    fn until_a_capacity_is_known_it_is_a_window_per_round_trip() {
        let Arrivals { first, step, .. } = looked(&path(0, 20, 10, 0), 0.1).next;
        assert!((first - 0.012).abs() < 1e-9 && (step - 0.002).abs() < 1e-9);
        let unknown = PathView { srtt: None, min_rtt: None, ..path(1, 20, 10, 0) };
        assert!(looked(&unknown, 0.1).next.first.is_infinite());
    }

    #[test]
    fn what_is_sent_keeps_it_busy() {
        let path = path(0, 20, 10, 0);
        let mut line = looked(&path, 0.1);
        line.sent();
        let sent = PathView { queued: 1, queued_bytes: 1400, ..path };
        line.look(0.1, &sent, true);
        assert!((line.next.first - 0.014).abs() < 1e-9, "a segment later");
        line.look(0.102, &sent, true);
        assert!((line.next.first - 0.012).abs() < 1e-9, "it has left");
    }

    #[test]
    fn it_has_a_segment_there_per_step() {
        let line = looked(&path(0, 20, 10, 0), 0.1);
        assert_eq!([0.011, 0.0121, 0.0141, 0.0201].map(|at| line.sooner_than(at) / 1400), [0, 1, 2, 5]);
    }
}
