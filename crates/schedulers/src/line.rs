//! A path's bottleneck, as `playahead` sees it: when it has there what is sent next.

use anabranch_plugin::schedule::PathView;
use anabranch_units::Duration;

/// A path's bottleneck, as of the round under way. Rates in bytes per second, times in seconds by the engine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// When it has let through what the scheduler sent.
    pub free: f64,
    /// The round trip without a queue; zero until the path has an RTT. The same in seconds.
    rtt: Duration,
    base: f64,
    /// The way there.
    delay: f64,
    /// The capacity, and a segment's time at it.
    rate: f64,
    step: f64,
    /// The rate is a capacity that the acknowledgments showed.
    known: bool,
    pub next: Arrivals,
    mss: u32,
    /// How often it was reckoned with.
    #[cfg(test)]
    pub looks: u32,
}

/// When the next segments of a path arrive, from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Infinite until the path has an RTT.
    pub first: f64,
    /// From one to the next.
    pub step: f64,
    /// When the bottleneck is free after the first, by the engine's clock.
    pub free: f64,
}

/// The greater and the lesser of two, the second of which is a number: one instruction each, where `f64::max` looks for NaN in both.
pub const fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}
const fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

impl Line {
    /// Takes over what is known of `path`; `measured`: all paths have a forward delay.
    #[inline(always)]
    pub fn learn(&mut self, path: &PathView, measured: bool) {
        self.mss = path.mss;
        // Of no length at all, a round trip would be a rate without bound.
        let rtt = path.min_rtt.map_or(Duration::ZERO, |rtt| rtt.max(Duration::from_nanos(1)));
        if rtt != self.rtt {
            (self.rtt, self.base) = (rtt, rtt.as_secs_f64());
        }
        self.known = path.capacity_rate().is_some();
        if rtt.is_zero() {
            (self.delay, self.rate) = (f64::INFINITY, f64::INFINITY);
        } else {
            let forward = if measured { path.least_forward() } else { None };
            self.delay = forward.map_or(self.base / 2.0, Duration::as_secs_f64);
            self.rate = path.capacity_rate().unwrap_or_else(|| self.window(path));
        }
        self.step = f64::from(path.mss) / self.rate;
    }

    /// A window per round trip.
    fn window(&self, path: &PathView) -> f64 {
        f64::from(path.cwnd.max(1)) * f64::from(path.mss) / self.base
    }

    /// The time that a segment takes of a full path: of its bottleneck, or of its window, which admits no more.
    #[inline(always)]
    fn place(&self, path: &PathView) -> f64 {
        f64::from(path.mss) / lesser(self.rate, self.window(path))
    }

    /// The delay that the next segment may cause to data that comes at `then`: its time in the bottleneck, and its place in the window of
    /// `path`. Nothing if both are free again by then.
    pub fn cost(&self, path: &PathView, then: f64) -> f64 {
        if self.next.free + self.base <= then { 0.0 } else { self.step + self.place(path) }
    }

    /// When the data arrives behind which its path has `behind` bytes in flight or queued; infinite while the capacity is not known.
    pub fn due(&self, behind: u64) -> f64 {
        if self.known { self.next.first - self.next.step - behind as f64 / self.rate } else { f64::INFINITY }
    }

    /// Bytes of a segment.
    pub fn segment(&self) -> u64 {
        self.mss.into()
    }

    /// Reckons when the next segments arrive that are sent from `now` on.
    #[inline(always)]
    pub fn look(&mut self, now: f64, path: &PathView, has_room: bool) {
        #[cfg(test)]
        (self.looks += 1);
        let out = (path.in_flight_bytes + path.queued_bytes + path.elsewhere()) as f64 / self.rate;
        let queue = greater(greater(out - self.base, lesser(out, self.free - now)), 0.0);
        let step = if has_room { self.step } else { self.place(path) };
        self.next = Arrivals { first: queue + self.delay + step, step, free: now + queue + step };
    }

    /// The next segment was sent.
    pub const fn sent(&mut self) {
        self.free = self.next.free;
    }

    /// Bytes that it has there before `arrival`, which is finite.
    #[inline(always)]
    pub fn sooner_than(&self, arrival: f64) -> u64 {
        let Arrivals { first, step, .. } = self.next;
        // Fewer instructions than a conversion that has all of 64 bits.
        let segments = if first < arrival { ((arrival - first) / step) as i64 as u64 + 1 } else { 0 };
        segments.saturating_mul(self.mss.into())
    }

    /// The capacity and the arrival of the next segment by half the round trip, whatever the delay was measured to be; none until the path
    /// has an RTT.
    pub fn shown(&self) -> Option<(f64, f64)> {
        (!self.rtt.is_zero()).then(|| (self.rate, self.next.first - self.delay + self.base / 2.0))
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
