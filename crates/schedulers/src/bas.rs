//! BAS: the path that would drain its load first, at the bandwidth measured from acknowledgments.

use crate::pick::{by_rtt, by_score, no_choice};
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag, milliseconds};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, Instant, PathId};

page!(
    "\
# Idea

Bandwidth-aware scheduling of W-SCTP: estimate the bandwidth of each path from the rate of its acknowledgments,
as TCP Westwood does, and send on the path that would drain its outstanding data first.

# Rule

With u_j the bytes outstanding on path j (in flight and queued), L the next segment, B_j the estimate:

```text
S_j = (u_j + L)/B_j  (+ R_j/2 with `delay`);  the eligible path with the least S_j; ties to the lower R, then id

b_k = bytes acknowledged in the interval Δ, divided by Δ
B_k = ((2τ − Δ)·B_{k−1} + Δ·(b_k + b_{k−1}))/(2τ + Δ)
```

The interval is the smoothed RTT, but τ/2 at most. Half a τ without an acknowledgment counts as a sample of zero.

# When it helps

Paths whose bandwidths differ and whose windows are wide open, as after slow start into deep queues: their windows do not
show the bandwidth then, their acknowledgments do.

# When it hurts

The estimate depends on the data sent: a path that carries little because the application writes little looks slow.
Only with `delay` is the propagation delay counted, and then only half a round trip.

# Departures

Westwood samples at every acknowledgment; an interval of a round trip, as in Westwood+, keeps bursts of acknowledgments
from counting as bandwidth (b_k is unbounded as Δ approaches zero). A path without an estimate comes after those with
one, in the order of RTT: with none at all this is minRTT.

# References

Casetti, Gaiotto, Westwood SCTP: load balancing over multipaths using bandwidth-aware source scheduling, VTC Fall
2004. The filter: Mascolo et al., TCP Westwood, MobiCom 2001.
"
);

const TAU: Handle<Duration> =
    milliseconds("tau", 500.0, 1.0..=100_000.0).about("time constant of the bandwidth filter");
const DELAY: Handle<bool> = flag("delay", false).about("add half a round trip to the score");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "bas",
    aliases: &["w-sctp"],
    about: "the path that would drain its load first, at the bandwidth measured from acknowledgments",
    page: PAGE,
    parameters: &[TAU.parameter, DELAY.parameter],
    build: |p| Box::new(Bas::new(p.into())),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Time constant of the filter.
    pub tau: Duration,
    /// Whether half a round trip is part of the score.
    pub delay: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { tau: TAU.of(p), delay: DELAY.of(p) }
    }
}

/// Westwood's estimate of one path's bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct Bandwidth {
    /// Bytes per second.
    estimate: f64,
    /// The last sample.
    sample: f64,
    /// Bytes acknowledged since `since`.
    bytes: u64,
    since: Option<Instant>,
    heard: Instant,
}

/// After this many samples of zero an estimate is reset.
const FORGOTTEN: u32 = 64;

impl Bandwidth {
    /// One step of the filter: `sample` for a time of `delta` seconds, which is below 2τ.
    fn step(&mut self, sample: f64, delta: f64, tau: f64) {
        let sum = delta * (sample + self.sample);
        self.estimate = ((2.0 * tau - delta) * self.estimate + sum) / (2.0 * tau + delta);
        self.sample = sample;
    }

    /// A sample of zero for each half τ without an acknowledgment.
    fn age(&mut self, now: Instant, tau: Duration) {
        let half = tau / 2;
        for _ in 0..FORGOTTEN {
            if now.since(self.heard) <= half {
                return;
            }
            if self.estimate <= 0.0 {
                break;
            }
            self.step(0.0, half.as_secs_f64(), tau.as_secs_f64());
            self.heard += half;
            (self.bytes, self.since) = (0, Some(self.heard));
        }
        *self = Self::default();
    }

    /// `bytes` were acknowledged; a sample covers at least `interval`.
    fn on_ack(&mut self, now: Instant, bytes: u64, interval: Duration, tau: Duration) {
        self.age(now, tau);
        self.heard = now;
        let Some(since) = self.since else {
            // The time before the first acknowledgment is not a sample.
            self.since = Some(now);
            return;
        };
        self.bytes += bytes;
        let delta = now.since(since);
        if delta < interval.min(tau / 2) || delta.is_zero() {
            return;
        }
        let seconds = delta.as_secs_f64();
        self.step(self.bytes as f64 / seconds, seconds, tau.as_secs_f64());
        (self.bytes, self.since) = (0, Some(now));
    }
}

/// BAS.
#[derive(Clone, Debug)]
pub struct Bas {
    config: Config,
    bandwidths: [Bandwidth; PathId::LIMIT],
}

impl Bas {
    /// A scheduler without estimates.
    pub fn new(config: Config) -> Self {
        Self { config, bandwidths: [Bandwidth::default(); PathId::LIMIT] }
    }

    /// Seconds until one more segment would be drained.
    fn score(&self, path: &PathView) -> f64 {
        let bandwidth = self.bandwidths[path.id.index()].estimate;
        if bandwidth <= 0.0 {
            return f64::INFINITY;
        }
        let load = path.in_flight_bytes + path.queued_bytes + u64::from(path.mss);
        let delay = path.srtt.filter(|_| self.config.delay).map_or(0.0, |rtt| (rtt / 2).as_secs_f64());
        load as f64 / bandwidth + delay
    }
}

impl Scheduler for Bas {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if no_choice(round) {
            return by_rtt(round);
        }
        for p in round.paths() {
            self.bandwidths[p.id.index()].age(round.now(), self.config.tau);
        }
        by_score(round, |a, b| self.score(a).total_cmp(&self.score(b)));
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        match event {
            SchedulerEvent::Ack { path, acked } => {
                let interval = view.path(*path).and_then(|p| p.srtt).unwrap_or_default();
                self.bandwidths[path.index()].on_ack(acked.now, acked.bytes, interval, self.config.tau);
            }
            SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } => {
                self.bandwidths[path.index()] = Bandwidth::default();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};

    const TAU: Duration = Duration::from_millis(500);
    const PLAIN: Config = Config { tau: TAU, delay: false };

    /// Two paths with bandwidths of 1 and 0.25 MB/s and the given packets in flight: scores in µs, and the path of the
    /// next packet.
    fn scores(config: Config, in_flight: [u32; 2]) -> (Vec<u64>, usize) {
        let mut bas = Bas::new(config);
        bas.bandwidths[0].estimate = 1.0e6;
        bas.bandwidths[1].estimate = 0.25e6;
        let mut bench = Bench::new(&[path(0, 60, 50, in_flight[0]), path(1, 40, 50, in_flight[1])]);
        bas.bandwidths.iter_mut().for_each(|b| b.heard = bench.view.now());
        let scores = bench.view.paths().iter().map(|p| (bas.score(p) * 1e6).round() as u64).collect();
        bench.write(1);
        bench.round(&mut bas);
        (scores, bench.bound(1).len())
    }

    #[test]
    fn the_path_that_drains_first() {
        assert_eq!(scores(PLAIN, [10, 2]), (vec![15_400, 16_800], 0));
        assert_eq!(scores(PLAIN, [10, 1]), (vec![15_400, 11_200], 1));
        let delay = Config { delay: true, ..PLAIN };
        assert_eq!(scores(delay, [10, 2]), (vec![45_400, 36_800], 1));
    }

    #[test]
    fn the_filter() {
        let mut b = Bandwidth { estimate: 0.9e6, sample: 1.0e6, ..Bandwidth::default() };
        b.step(1.2e6, 0.1, 0.5);
        assert!((b.estimate - 936_363.6).abs() < 0.1);
    }

    #[test]
    fn the_estimate_approaches_a_steady_rate() {
        // A packet of 1400 bytes per ms.
        let mut b = Bandwidth::default();
        for ms in 0..6000 {
            b.on_ack(Instant::from_millis(ms), MSS, Duration::from_millis(40), TAU);
        }
        assert!((b.estimate / 1.4e6 - 1.0).abs() < 0.001, "{}", b.estimate);
    }

    #[test]
    fn a_burst_of_acknowledgments_is_no_bandwidth() {
        // 40 packets at once every 40 ms are the same rate as one per ms.
        let mut b = Bandwidth::default();
        for n in 0..200 {
            for us in 0..40 {
                let at = Instant::from_nanos((n * 40_000 + us) * 1000);
                b.on_ack(at, MSS, Duration::from_millis(40), TAU);
            }
        }
        assert!((b.estimate / 1.4e6 - 1.0).abs() < 0.05, "{}", b.estimate);
    }

    #[test]
    fn silence_counts_as_zero() {
        let mut b = Bandwidth { estimate: 1.0e6, sample: 0.0, ..Bandwidth::default() };
        b.age(Instant::from_millis(250), TAU);
        assert_eq!(b.estimate, 1.0e6);
        b.age(Instant::from_millis(251), TAU);
        assert!((b.estimate - 0.6e6).abs() < 1.0);
        b.age(Instant::from_millis(3_600_000), TAU);
        assert_eq!(b.estimate, 0.0);
    }

    #[test]
    fn with_nothing_known_the_lowest_round_trip_time_wins() {
        let mut bench = Bench::new(&[path(0, 60, 3, 0), path(1, 40, 2, 0)]);
        bench.write(4);
        let mut bas = Bas::new(PLAIN);
        bench.round(&mut bas);
        assert_eq!((bench.bound(1), bench.bound(0)), (vec![0, 1], vec![2, 3]));
        // A path with an estimate precedes one without.
        let mut bench = Bench::new(&[path(0, 60, 3, 0), path(1, 40, 2, 0)]);
        for ms in [0, 100] {
            bench.tell_ack(&mut bas, 0, ms, 10);
        }
        bench.write(4);
        bench.round(&mut bas);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 2], vec![3]));
    }
}
