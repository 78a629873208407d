//! The common part of forward prediction schedulers: a slower path skips the data that faster ones will deliver before
//! its packet arrives, and sends the data after it.

use crate::pick::live;
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, PathId, Range};
use core::fmt::Debug;

/// Predicts the deliveries of a path. Called only for paths with an RTT sample.
pub trait Forecast: Debug + Send {
    /// A round begins.
    fn begin(&mut self, _view: &View) {}

    /// Forward delay; only differences between paths matter. The default: half of the smoothed RTT.
    fn delay(&self, path: &PathView) -> Duration {
        path.rtt_or_max() / 2
    }

    /// Packets of new data that `path` delivers before a packet that leaves now on a path whose delay is longer by
    /// `lead`.
    fn packets(&mut self, path: &PathView, lead: Duration) -> f64;

    /// Packets to add to the prediction for `path`.
    fn correction(&self, _path: PathId) -> i64 {
        0
    }

    /// `range` was bound to `path`.
    fn on_bound(&mut self, _path: PathId, _range: Range) {}

    /// An event.
    fn on_event(&mut self, _event: &SchedulerEvent<'_>, _view: &View) {}

    /// As [`Scheduler::measures_capacity`].
    fn measures_capacity(&self) -> bool {
        false
    }

    /// As [`Scheduler::values`].
    fn values(&self) -> Option<(&'static str, f64)> {
        None
    }
}

/// The faster paths to which a path leaves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveTo {
    /// All of them.
    Faster,
    /// The fastest alone.
    Fastest,
}

/// A scheduler by forecast. Paths with room are served in the order of their forward delays; each skips the unassigned
/// data predicted for the faster ones. If no data lies behind that, or the peer's window does not admit it, the path
/// waits. The fastest live path never waits, so a live path is always served or in flight.
#[derive(Clone, Debug)]
pub struct SkipAhead<F> {
    forecast: F,
    leave_to: LeaveTo,
}

impl<F: Forecast> SkipAhead<F> {
    /// A path leaves to all faster ones the data predicted for them.
    pub const fn new(forecast: F) -> Self {
        Self { forecast, leave_to: LeaveTo::Faster }
    }

    /// A path leaves data to the fastest one only.
    pub const fn beside_fastest(forecast: F) -> Self {
        Self { forecast, leave_to: LeaveTo::Fastest }
    }

    /// Forward delay; an unknown one counts as longest.
    fn delay(&self, path: &PathView) -> Duration {
        path.srtt.map_or(Duration::MAX, |_| self.forecast.delay(path))
    }

    /// The next path to serve: one with room, of the least delay, not in `served`.
    fn next<'a>(&self, view: &'a View, served: u32) -> Option<&'a PathView> {
        let waiting = view.candidates().filter(|p| p.eligible() && served & p.id.bit() == 0);
        waiting.min_by_key(|p| (self.delay(p), p.id))
    }

    /// Bytes of unassigned data that `path` leaves to others.
    fn skip(&mut self, view: &View, path: &PathView) -> u64 {
        if path.srtt.is_none() {
            return 0;
        }
        let own = self.forecast.delay(path);
        let mut left = 0.0;
        let mut fastest: Option<(Duration, f64)> = None;
        for other in view.candidates().filter(|p| p.id != path.id && p.srtt.is_some() && live(view, p)) {
            let delay = self.forecast.delay(other);
            if delay >= own || self.leave_to == LeaveTo::Fastest && fastest.is_some_and(|(least, _)| least <= delay) {
                continue;
            }
            let bytes = self.forecast.packets(other, own.saturating_sub(delay)) * f64::from(other.mss);
            left += bytes;
            fastest = Some((delay, bytes));
        }
        let Some((_, alone)) = fastest else { return 0 };
        let mss = path.mss.max(1);
        let bytes = if self.leave_to == LeaveTo::Fastest { alone } else { left };
        let packets = (bytes / f64::from(mss)) as i64;
        let corrected = packets.saturating_add(self.forecast.correction(path.id)).max(0);
        (corrected as u64).saturating_mul(mss.into())
    }
}

impl<F: Forecast> Scheduler for SkipAhead<F> {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if round.backlog().is_empty() {
            return;
        }
        self.forecast.begin(round);
        let mut served = 0;
        while let Some(path) = self.next(round, served) {
            let (id, mss) = (path.id, path.mss);
            served |= id.bit();
            let skip = self.skip(round, path);
            while let Some(next) = round.next_new(skip, mss)
                && round.send(id, next)
            {
                self.forecast.on_bound(id, next);
            }
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        self.forecast.on_event(event, view);
    }

    fn measures_capacity(&self) -> bool {
        self.forecast.measures_capacity()
    }

    fn values(&self) -> Option<(&'static str, f64)> {
        self.forecast.values()
    }
}

/// Packets in `time` at one window per round trip, without growth: `⌊time·w/R⌋`.
pub fn fluid(path: &PathView, time: Duration) -> f64 {
    let rtt = path.rtt_or_max().as_nanos().max(1);
    (f64::from(path.cwnd) * time.as_nanos() as f64 / rtt as f64) as u64 as f64
}

/// Round trips of a path that begin at once, and after each R, and whose data arrives within `lead` from now.
pub fn rounds(path: &PathView, lead: Duration) -> u64 {
    lead.as_nanos() / path.rtt_or_max().as_nanos().max(1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_units::RecoveryPhase;

    /// A packet per millisecond.
    #[derive(Debug)]
    struct Steady;

    impl Forecast for Steady {
        fn packets(&mut self, _path: &PathView, lead: Duration) -> f64 {
            lead.as_millis() as f64
        }
    }

    fn two_paths() -> Bench {
        Bench::new(&[path(0, 60, 2, 0), path(1, 20, 4, 0)])
    }

    #[test]
    fn the_slower_path_skips_what_the_faster_will_deliver() {
        let mut bench = two_paths();
        bench.write(100);
        bench.round(&mut SkipAhead::new(Steady));
        assert_eq!((bench.bound(1), bench.bound(0)), (vec![0, 1, 2, 3], vec![24, 25]));
    }

    #[test]
    fn what_others_hold_already_is_not_counted() {
        let mut bench = two_paths();
        bench.write(100);
        let mut scheduler = SkipAhead::new(Steady);
        bench.round(&mut scheduler);
        bench.send(0);
        bench.acked(0, 2);
        bench.round(&mut scheduler);
        // 4 to 23 are left to the fast path, 24 and 25 are bound.
        assert_eq!(bench.bound(0), [26, 27]);
    }

    #[test]
    fn the_end_of_the_data_is_left_to_the_faster_path() {
        let mut bench = two_paths();
        bench.write(24);
        bench.round(&mut SkipAhead::new(Steady));
        assert_eq!((bench.bound(1).len(), bench.bound(0).len()), (4, 0));
        bench.write(1);
        bench.round(&mut SkipAhead::new(Steady));
        assert_eq!(bench.bound(0), [24]);
    }

    #[test]
    fn nothing_is_sent_beyond_the_peers_window() {
        let mut bench = Bench::with_window(&[path(0, 60, 2, 0), path(1, 20, 4, 0)], 25 * MSS);
        bench.write(100);
        bench.round(&mut SkipAhead::new(Steady));
        assert_eq!(bench.bound(0), [24]);
    }

    #[test]
    fn all_faster_paths_are_summed_or_the_fastest_counts_alone() {
        let paths = [path(0, 20, 1, 0), path(1, 40, 1, 0), path(2, 60, 1, 0)];
        for (mut scheduler, expect) in
            [(SkipAhead::new(Steady), [0, 11, 32]), (SkipAhead::beside_fastest(Steady), [0, 11, 22])]
        {
            let mut bench = Bench::new(&paths);
            bench.write(100);
            bench.round(&mut scheduler);
            assert_eq!([0, 1, 2].map(|id| bench.bound(id)[0]), expect);
        }
    }

    #[test]
    fn segments_of_other_sizes_are_counted_in_bytes() {
        let fast = PathView { mss: 700, ..path(0, 20, 4, 4) };
        let mut bench = Bench::new(&[fast, path(1, 61, 2, 0)]);
        bench.write(100);
        bench.round(&mut SkipAhead::new(Steady));
        // 20 packets of 700 bytes.
        assert_eq!(bench.bound(1), [10, 11]);
    }

    #[test]
    fn a_path_that_may_never_call_back_is_left_nothing() {
        let mut bench = Bench::new(&[path(0, 60, 2, 0), path(1, 20, 4, 4)]);
        bench.view.path_mut(PathId(1)).unwrap().recovery = RecoveryPhase::Loss;
        bench.write(10);
        bench.round(&mut SkipAhead::new(Steady));
        assert_eq!(bench.bound(0), [0, 1]);
    }

    #[test]
    fn a_path_without_a_sample_takes_its_window_last() {
        let mut bench = two_paths();
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        bench.write(10);
        bench.round(&mut SkipAhead::new(Steady));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2, 3, 4, 5]));
    }
}
