//! MTCS: the path with the earliest delivery first, at a bandwidth that wireless losses do not reduce.

use crate::binding::{Binding, NS2, QUEUE};
use crate::pick::{by_rtt, capacity_flag, no_choice};
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::{Entry, Handle, Parameters, number};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, Instant, PathId};

page!(
    "\
# Idea

Multipath transmission control scheme, for real-time streams: share the load by the bandwidth of the paths, do not treat
losses on the radio as congestion, and send each packet on the path where it arrives first.

# Rule

With B_j the bandwidth of path j, d_j its propagation delay, A_j the time at which it is free, L the segment:

```text
e_j = max(now, A_j) + L/B_j + d_j;  the eligible path with the least e_j; ties to the lower d, then id
A_j = max(now, A_j) + L/B_j         of the path that takes it
```

With `queue` = Q > 0 each path has its own queue, of Q packets beyond the room in its window, and a path is eligible
while its queue has room. With `ns2_binding` a path is eligible in each round for as many packets as its window exceeds
those in flight, whether or not packets wait there already; `queue` then bounds the queue.

B_j is the data acknowledged in a round trip divided by its length (gain 1/4). A loss halves it, unless it counts as
wireless: the present delay d is below min + `threshold`·(max − min) of all delays. After a wireless loss samples do not
reduce B_j for a round trip.

# When it helps

Streams at less than the paths' capacity over lossy radio links: packets arrive in order, and a lossy path keeps its
share.

# When it hurts

The model of a path, a rate and a fixed delay, is wrong where other traffic fills its queue, and where its delays
back and forth differ. A path that carries little because the application writes little looks slow. Bulk data fills every
window in any case.

# Departures

The paper's receiver reports bandwidth; here acknowledgments yield it. d_j is half the least RTT, because A_j accounts
for the queue; the delay in the test of a loss is the relative forward delay where timestamps show it, otherwise half the
newest RTT. Before the first sample B_j is the window over the RTT. A path that is silent keeps its B_j. A path without
an RTT sample comes last. With `capacity` B_j is the capacity by the acknowledgments, as `playahead` has it, once that is known, and d_j the
least forward delay, once all paths have measured it. The source of `ns2_binding` is that of `fifo`.

# References

Tsai et al., multipath transmission control scheme for real-time streaming, IET Communications 4(8), 2010, as
described by the authors of FDPS. Earliest delivery path first: Chebrolu, Rao, Bandwidth aggregation for real-time
applications in heterogeneous wireless networks, IEEE Transactions on Mobile Computing 5(4), 2006.
"
);

const THRESHOLD: Handle<f64> = number("threshold", 0.25, 0.0..=1.0)
    .about("position between the least and the greatest delay from which on a loss counts as congestion; 0 = always");

const CAPACITY: Handle<bool> =
    capacity_flag("B: the capacity by the acknowledgments; d: the least forward delay, once all paths have it");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "mtcs",
    aliases: &[],
    about: "earliest delivery path first, with wireless losses distinguished from congestion",
    page: PAGE,
    parameters: &[THRESHOLD.parameter, QUEUE.parameter, NS2.parameter, CAPACITY.parameter],
    build: |p: &Parameters<'_>| {
        Box::new(Mtcs { binding: Binding::of(p), capacity: CAPACITY.of(p), ..Mtcs::new(THRESHOLD.of(p)) })
    },
};

/// The estimates of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Bytes per second; zero = no sample yet.
    bandwidth: f64,
    /// When it has sent its assigned data.
    free: Instant,
    /// Bytes acknowledged in this round trip, and when it began.
    bytes: u64,
    since: Option<Instant>,
    /// The least and the greatest delay, and whether they are relative.
    delays: Option<(Duration, Duration, bool)>,
    /// Samples do not reduce the bandwidth before this time.
    spared_until: Instant,
}

/// A delay that grows with the path's queue, and whether it is relative.
fn trip(path: &PathView) -> Option<(Duration, bool)> {
    let relative = path.forward_delay.map(|forward| (forward.relative, true));
    relative.or(path.latest_rtt.map(|rtt| (rtt / 2, false)))
}

impl Line {
    /// The transmission time of a segment at `capacity`, or at the bandwidth by the samples; zero without either.
    fn serialisation(&self, path: &PathView, capacity: Option<f64>) -> Duration {
        let window = f64::from(path.cwnd) * f64::from(path.mss);
        let first = path.srtt.map_or(0.0, |rtt| window / rtt.max(Duration::from_nanos(1)).as_secs_f64());
        let estimate = if self.bandwidth > 0.0 { self.bandwidth } else { first };
        let bandwidth = capacity.unwrap_or(estimate);
        if bandwidth > 0.0 { Duration::from_secs_f64(f64::from(path.mss) / bandwidth) } else { Duration::ZERO }
    }

    fn on_ack(&mut self, acked: &Acked, path: &PathView) {
        if let Some((trip, relative)) = trip(path) {
            let known = self.delays.filter(|known| known.2 == relative);
            let (least, greatest, _) = known.unwrap_or((trip, trip, relative));
            self.delays = Some((least.min(trip), greatest.max(trip), relative));
        }
        let Some(since) = self.since else {
            self.since = Some(acked.now);
            return;
        };
        self.bytes += acked.bytes;
        let length = acked.now.since(since);
        if length < path.srtt.unwrap_or_default() || length.is_zero() {
            return;
        }
        let sample = self.bytes as f64 / length.as_secs_f64();
        (self.bytes, self.since) = (0, Some(acked.now));
        if self.bandwidth <= 0.0 {
            self.bandwidth = sample;
        } else if sample >= self.bandwidth || acked.now >= self.spared_until {
            self.bandwidth += (sample - self.bandwidth) / 4.0;
        }
    }

    /// True if a loss does not indicate congestion, because the queue is short.
    fn is_wireless(&self, path: &PathView, threshold: f64) -> bool {
        let Some((trip, relative)) = trip(path) else { return false };
        let Some((least, greatest, _)) = self.delays.filter(|known| known.2 == relative) else { return false };
        let [trip, least, greatest] = [trip, least, greatest].map(|time| time.as_nanos() as f64);
        trip < least + threshold * (greatest - least)
    }

    fn on_loss(&mut self, now: Instant, path: &PathView, threshold: f64) {
        if self.is_wireless(path, threshold) {
            self.spared_until = now + path.srtt.unwrap_or_default();
        } else {
            self.bandwidth /= 2.0;
        }
    }
}

/// MTCS.
#[derive(Clone, Debug)]
pub struct Mtcs {
    threshold: f64,
    binding: Binding,
    /// The scheduler reads the capacities of the paths.
    capacity: bool,
    lines: [Line; PathId::LIMIT],
}

impl Mtcs {
    /// A scheduler without estimates, and with nothing bound ahead.
    pub fn new(threshold: f64) -> Self {
        Self { threshold, binding: Binding::default(), capacity: false, lines: [Line::default(); PathId::LIMIT] }
    }

    /// The path on which a segment arrives first, and when that path is free again.
    fn earliest(&self, view: &View) -> Option<(PathId, Instant)> {
        let measured = self.capacity && view.candidates().all(|p| p.least_forward().is_some());
        let estimate = |p: &PathView| {
            let line = &self.lines[p.id.index()];
            let delay = p.least_forward().filter(|_| measured).or(p.min_rtt.or(p.srtt).map(|rtt| rtt / 2));
            // Paths may have one for a scheduler beside this one.
            let capacity = p.capacity_rate().filter(|_| self.capacity);
            let free = line.free.max(view.now()) + line.serialisation(p, capacity);
            let arrives = delay.map_or(Instant::MAX, |delay| free + delay);
            (arrives, delay.unwrap_or(Duration::MAX), p.id, free)
        };
        let (.., id, free) = view.candidates().filter(|p| self.binding.is_open(view, p)).map(estimate).min()?;
        Some((id, free))
    }
}

impl Scheduler for Mtcs {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if self.binding.is_ahead() {
            self.binding.begin(round);
        } else if no_choice(round) {
            return by_rtt(round);
        }
        while let Some((on, free)) = self.earliest(round) {
            if !self.binding.bind(round, on) {
                return;
            }
            self.lines[on.index()].free = free;
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        match event {
            SchedulerEvent::Ack { path, acked } => {
                if let Some(p) = view.path(*path) {
                    self.lines[path.index()].on_ack(acked, p);
                }
            }
            SchedulerEvent::Loss { path } => {
                if let Some(p) = view.path(*path) {
                    self.lines[path.index()].on_loss(view.now(), p, self.threshold);
                }
            }
            SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } => {
                self.lines[path.index()] = Line::default();
            }
            _ => {}
        }
    }

    fn measures_capacity(&self) -> bool {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_plugin::schedule::ForwardDelay;

    /// B = 700 and 350 bytes/ms, d = 10 and 30 ms, packets of 1400 bytes: 2 and 4 ms each.
    fn known() -> Mtcs {
        let mut mtcs = Mtcs::new(0.25);
        mtcs.lines[0].bandwidth = 700e3;
        mtcs.lines[1].bandwidth = 350e3;
        mtcs
    }

    #[test]
    fn earliest_delivery_first() {
        let mut bench = Bench::new(&[path(0, 20, 100, 0), path(1, 60, 100, 0)]);
        let mut mtcs = known();
        let mut order = Vec::new();
        for _ in 0..19 {
            bench.write(1);
            bench.round(&mut mtcs);
            let on = u8::from(!bench.send(1).is_empty());
            bench.send(0);
            order.push(on);
        }
        // The twelfth would arrive at 34 ms on either; the thirteenth at 36 on the first and 34 on the second.
        assert_eq!(order[..12], [0; 12]);
        assert_eq!(order[12..], [1, 0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn a_path_becomes_free_with_time() {
        let mut bench = Bench::new(&[path(0, 20, 100, 0), path(1, 60, 100, 0)]);
        let mut mtcs = known();
        bench.write(12);
        bench.round(&mut mtcs);
        assert_eq!(mtcs.lines[0].free, Instant::from_millis(24));
        bench.at(100);
        bench.write(1);
        bench.round(&mut mtcs);
        assert_eq!((bench.bound(0).len(), mtcs.lines[0].free), (13, Instant::from_millis(102)));
    }

    #[test]
    fn full_paths_are_passed_over() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 2, 0)]);
        bench.write(5);
        bench.round(&mut known());
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2, 3]));
    }

    #[test]
    fn queues_take_what_arrives_first_there_up_to_their_limit() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 2, 0)]);
        bench.write(30);
        bench.round(&mut Mtcs { binding: Binding::queues(12), ..known() });
        // As in `earliest_delivery_first`, until 14 are bound to the first.
        assert_eq!(bench.bound(0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14]);
        assert_eq!(bench.bound(1)[..2], [12, 15]);
        assert_eq!(bench.bound(1).len(), 14);
    }

    #[test]
    fn with_the_binding_of_ns2_each_round_fills_the_windows_again_whatever_waits() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 2, 1)]);
        let mut mtcs = Mtcs { binding: Binding::ns2(), ..known() };
        bench.write(30);
        bench.round(&mut mtcs);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2]));
        bench.round(&mut mtcs);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 3, 4], vec![2, 5]));
    }

    #[test]
    fn the_bandwidth_is_what_a_round_trip_acknowledges() {
        let bench = &mut Bench::new(&[path(0, 20, 100, 0)]);
        let mut mtcs = Mtcs::new(0.25);
        // 10 packets per 10 ms: 1.4 MB/s. Then half of that for one round trip: an eighth less.
        for ms in [0, 10, 20] {
            bench.tell_ack(&mut mtcs, 0, ms, 10);
        }
        assert!((mtcs.lines[0].bandwidth - 1.4e6).abs() < 1.0);
        bench.tell_ack(&mut mtcs, 0, 40, 10);
        assert!((mtcs.lines[0].bandwidth - 1.4e6 * 7.0 / 8.0).abs() < 1.0);
    }

    #[test]
    fn a_wireless_loss_does_not_lower_the_bandwidth() {
        let lose = |rtt| {
            let mut bench = Bench::new(&[path(0, 20, 100, 0)]);
            let mut mtcs = known();
            let between = |ms| Duration::from_millis(ms);
            mtcs.lines[0].delays = Some((between(10), between(50), false));
            bench.view.path_mut(PathId(0)).unwrap().latest_rtt = Some(between(rtt));
            mtcs.on_event(&SchedulerEvent::Loss { path: PathId(0) }, &bench.view);
            let after_loss = mtcs.lines[0].bandwidth;
            // A round trip with few deliveries follows.
            for ms in [0, 20] {
                bench.tell_ack(&mut mtcs, 0, ms, 1);
            }
            (after_loss, mtcs.lines[0].bandwidth < after_loss)
        };
        // Forward delays of 19 and 20 ms; the limit is 10 + 40/4.
        assert_eq!(lose(38).0, 700e3);
        assert_eq!(lose(40).0, 350e3);
        assert!(lose(40).1);
    }

    #[test]
    fn relative_delays_are_not_held_against_others() {
        let mut bench = Bench::new(&[path(0, 20, 100, 0)]);
        let mut mtcs = known();
        bench.tell_ack(&mut mtcs, 0, 0, 1);
        let sampled = Instant::ZERO;
        let forward = |ms| Some(ForwardDelay { relative: Duration::from_millis(ms), sampled });
        for ms in [1000, 1040] {
            bench.view.path_mut(PathId(0)).unwrap().forward_delay = forward(ms);
            bench.tell_ack(&mut mtcs, 0, 1, 1);
        }
        let judged =
            |ms| mtcs.lines[0].is_wireless(&PathView { forward_delay: forward(ms), ..path(0, 20, 100, 0) }, 0.25);
        assert_eq!((judged(1009), judged(1010)), (true, false));
        assert!(!mtcs.lines[0].is_wireless(&path(0, 20, 100, 0), 0.25), "of these nothing is known");
    }

    #[test]
    fn samples_after_a_wireless_loss_are_spared_for_a_round_trip() {
        let mut bench = Bench::new(&[path(0, 20, 100, 0)]);
        let mut mtcs = known();
        mtcs.lines[0].spared_until = Instant::from_millis(30);
        for (ms, falls) in [(0, false), (20, false), (40, true)] {
            bench.tell_ack(&mut mtcs, 0, ms, 1);
            assert_eq!(mtcs.lines[0].bandwidth < 700e3, falls, "{ms}");
        }
    }

    #[test]
    fn capacities_and_forward_delays_may_be_those_that_were_measured() {
        let forward =
            |ms: u64| Some(ForwardDelay { relative: Duration::from_millis(1000 + ms), sampled: Instant::ZERO });
        // By half the round trips the first would be better; there it takes 25 ms longer.
        let paths = [
            PathView { forward_delay: forward(40), ..path(0, 50, 100, 0) },
            PathView { forward_delay: forward(15), ..path(1, 60, 100, 0) },
        ];
        let mut mtcs = Mtcs { capacity: true, ..known() };
        let mut bench = Bench::new(&paths);
        bench.view.measure_capacity(mtcs.measures_capacity());
        bench.know_capacity(0, (4, 100));
        bench.know_capacity(1, (5, 100));
        bench.write(6);
        bench.round(&mut mtcs);
        // 44 ms on the first; 20, 25, … 45 on the second.
        assert_eq!((bench.bound(1), bench.bound(0)), (vec![0, 1, 2, 3, 4], vec![5]));
    }

    #[test]
    fn without_the_parameter_capacities_that_another_scheduler_reads_change_nothing() {
        let on_first = |measured: bool| {
            let mut bench = Bench::new(&[path(0, 20, 100, 0), path(1, 60, 100, 0)]);
            bench.view.measure_capacity(measured);
            bench.know_capacity(0, (10, 100));
            bench.at(100);
            bench.write(19);
            bench.round(&mut known());
            bench.bound(0)
        };
        assert_eq!(on_first(true), on_first(false));
    }

    #[test]
    fn until_a_sample_a_window_a_round_trip_is_the_bandwidth() {
        let line = Line::default();
        assert_eq!(line.serialisation(&path(0, 20, 10, 0), None), Duration::from_millis(2));
        assert_eq!(line.serialisation(&PathView { srtt: None, ..path(0, 20, 10, 0) }, None), Duration::ZERO);
    }

    #[test]
    fn a_path_that_comes_or_goes_is_new() {
        for event in [SchedulerEvent::PathUp { path: PathId(0) }, SchedulerEvent::PathDown { path: PathId(0) }] {
            let mut mtcs = known();
            mtcs.on_event(&event, &Bench::new(&[path(0, 20, 10, 0)]).view);
            assert_eq!(mtcs.lines.map(|line| line.bandwidth)[..2], [0.0, 350e3]);
        }
    }
}
