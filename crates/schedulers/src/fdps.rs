//! FDPS: forward prediction by measured differences of forward delays.

use crate::pick::{capacity_flag, refill_rate};
use crate::skip::{Forecast, SkipAhead, fluid};
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag};
use anabranch_plugin::schedule::{PathView, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, Instant, PathId};

page!(
    "\
# Idea

As in the other forward prediction schedulers, a path skips the data that faster ones deliver before its packet arrives.
But half the round-trip time is a poor estimate of the forward delay, so the difference of two paths' forward delays is
measured: timestamps of sending and receiving show it although the hosts' clocks differ.

# Rule

```text
o_j = t_r − t_s of a packet of path j, by the receiver's and the sender's clock (smoothed, gain 1/8)
Δ_{j,i} = o_j − o_i                                the offset of the clocks cancels
fdps:       N = Σ ⌊Δ_{j,i}·w_i/R_i⌋  over the paths i with Δ_{j,i} > 0
fdps-star:  N = ⌊Δ_{j,i*}·w_i*/R_i*⌋              i* = the path with the least forward delay
j sends the unassigned segments N + 1, N + 2, …
```

# When it helps

Asymmetric paths, queues on the return path (compressed acknowledgments): the return path has no effect.

# When it hurts

Clocks that are coarse relative to the differences: timestamps tick in milliseconds. Of a burst only the first packet is
aligned, the others wait in the path's own queue (see `fps`). Like all forward prediction, it over-estimates a fast path
that has little to send.

# Departures

The paper's two algorithms are missing from the available copy; the formulas are reconstructed from its text. It puts
send and receive times into new options; RFC 7323's timestamps suffice: t_r is the acknowledgment's TSval, t_s the
sending time of the newest acknowledged packet that was sent once, so delayed acknowledgments matter only where no second
packet follows. Samples expire after ten round trips. While a path lacks one, or the peer adds a different offset to its
clock on each path (Linux does, unless its net.ipv4.tcp_timestamps is 2), all use RTT/2 as `kim2012` does; the value
`fdps.measured` in traces shows which. The paper renews its choice of i* each RTT; here every decision compares the
present estimates. `measured_rate` replaces w/R by the bytes acknowledged in the last round trip; `capacity` by min(B, w/min R), as
`playahead` has it, once B is known. Only faster paths that can be waited for count. When fewer than N + 1 segments are unassigned, or the peer's window does not admit the next, the
path waits.

# References

Le and Bui, Forward Delay-based Packet Scheduling Algorithm for Multipath TCP, section III.
"
);

const MEASURED_RATE: Handle<bool> = flag("measured_rate", false)
    .about("throughput of a faster path: its deliveries in the last round trip instead of cwnd/RTT");

const CAPACITY: Handle<bool> = capacity_flag(
    "throughput of a faster path: its capacity by its acknowledgments, or what its window admits if that is less",
);

/// `fdps`.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "fdps",
    aliases: &[],
    about: "skip the data that faster paths deliver meanwhile, by measured forward delays",
    page: PAGE,
    parameters: &[MEASURED_RATE.parameter, CAPACITY.parameter],
    build: |p| Box::new(SkipAhead::new(Fdps::new(Config::from(p)))),
};

/// `fdps-star`.
pub const ENTRY_STAR: Entry<dyn Scheduler> = Entry {
    name: "fdps-star",
    about: "FDPS that leaves data to the fastest path only",
    build: |p| Box::new(SkipAhead::beside_fastest(Fdps::new(Config::from(p)))),
    ..ENTRY
};

/// The parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Whether the throughput is measured.
    pub measured_rate: bool,
    /// Whether the throughput is that of the bottleneck.
    pub capacity: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { measured_rate: MEASURED_RATE.of(p), capacity: CAPACITY.of(p) }
    }
}

/// A path's deliveries per round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    since: Option<Instant>,
    bytes: u64,
    /// Bytes per nanosecond in the last whole round trip.
    rate: Option<f64>,
}

impl Throughput {
    fn on_ack(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        self.bytes += bytes;
        let time = now.since(since);
        if time >= rtt && !time.is_zero() {
            *self = Self { since: Some(now), bytes: 0, rate: Some(self.bytes as f64 / time.as_nanos() as f64) };
        }
    }
}

/// The forecast of FDPS.
#[derive(Clone, Debug)]
pub struct Fdps {
    config: Config,
    now: Instant,
    /// Whether all candidates have a recent measurement of their forward delay.
    measured: bool,
    throughput: [Throughput; PathId::LIMIT],
}

impl Fdps {
    /// A forecast.
    pub fn new(config: Config) -> Self {
        let throughput = [Throughput::default(); PathId::LIMIT];
        Self { config, now: Instant::ZERO, measured: false, throughput }
    }
}

impl Forecast for Fdps {
    fn begin(&mut self, view: &View) {
        self.now = view.now();
        self.measured = view.candidates().all(|p| p.fresh_forward_delay(self.now).is_some());
    }

    fn delay(&self, path: &PathView) -> Duration {
        let measured = path.fresh_forward_delay(self.now).filter(|_| self.measured);
        measured.unwrap_or(path.rtt_or_max() / 2)
    }

    fn packets(&mut self, path: &PathView, lead: Duration) -> f64 {
        let delivered = self.throughput[path.id.index()].rate.filter(|_| self.config.measured_rate);
        let bottleneck = if self.config.capacity { refill_rate(path) } else { None };
        match bottleneck.map(|rate| rate / 1e9).or(delivered) {
            Some(rate) => (lead.as_nanos() as f64 * rate / f64::from(path.mss.max(1))) as u64 as f64,
            None => fluid(path, lead),
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        match *event {
            SchedulerEvent::Ack { path, acked } if self.config.measured_rate => {
                if let Some(rtt) = view.path(path).and_then(|p| p.srtt) {
                    self.throughput[path.index()].on_ack(view.now(), acked.bytes, rtt);
                }
            }
            SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } => {
                self.throughput[path.index()] = Throughput::default();
            }
            _ => {}
        }
    }

    fn measures_capacity(&self) -> bool {
        self.config.capacity
    }

    fn values(&self) -> Option<(&'static str, f64)> {
        Some(("fdps.measured", f64::from(u8::from(self.measured))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::congestion::Acked;
    use anabranch_plugin::schedule::ForwardDelay;

    /// A path with R, w, f and a forward delay, measured at time zero.
    fn measured(id: u8, rtt: u64, cwnd: u32, in_flight: u32, delay: u64) -> PathView {
        let forward = ForwardDelay { relative: Duration::from_millis(1000 + delay), sampled: Instant::ZERO };
        PathView { forward_delay: Some(forward), ..path(id, rtt, cwnd, in_flight) }
    }

    fn first_on(paths: &[PathView], id: u8, mut scheduler: SkipAhead<Fdps>) -> u64 {
        let mut bench = Bench::new(paths);
        bench.write(200);
        bench.round(&mut scheduler);
        bench.bound(id)[0]
    }

    fn fdps() -> SkipAhead<Fdps> {
        SkipAhead::new(Fdps::new(Config::default()))
    }

    #[test]
    fn the_difference_of_forward_delays_counts() {
        let paths = [measured(0, 40, 20, 20, 10), measured(1, 80, 10, 0, 30)];
        assert_eq!(first_on(&paths, 1, fdps()), 10);
        // The path with the longer RTT has the shorter forward delay: it takes the lowest data.
        let paths = [measured(0, 40, 20, 0, 30), measured(1, 80, 10, 0, 10)];
        assert_eq!((first_on(&paths, 1, fdps()), first_on(&paths, 0, fdps())), (0, 10 + 20 * 10 / 80));
    }

    #[test]
    fn three_paths_are_summed_and_the_star_counts_one() {
        let paths = [measured(0, 20, 10, 10, 10), measured(1, 50, 10, 10, 25), measured(2, 90, 10, 0, 45)];
        assert_eq!(first_on(&paths, 2, fdps()), 17 + 4);
        assert_eq!(first_on(&paths, 2, SkipAhead::beside_fastest(Fdps::new(Config::default()))), 17);
    }

    #[test]
    fn until_all_are_measured_half_the_round_trip_counts() {
        let mut bench = Bench::new(&[measured(0, 20, 10, 10, 50), path(1, 100, 10, 0)]);
        bench.write(100);
        let mut scheduler = fdps();
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(1)[0], scheduler.values()), (20, Some(("fdps.measured", 0.0))));
        // Measured, but 201 ms ago, which is more than ten round trips of path 0.
        for (at, expect) in [(200, 1.0), (201, 0.0)] {
            let mut bench = Bench::new(&[measured(0, 20, 10, 10, 10), measured(1, 100, 10, 0, 50)]);
            bench.write(100);
            bench.at(at);
            bench.round(&mut scheduler);
            assert_eq!(scheduler.values(), Some(("fdps.measured", expect)));
        }
    }

    #[test]
    fn throughput_may_be_measured() {
        let mut bench = Bench::new(&[measured(0, 40, 20, 20, 10), measured(1, 80, 10, 0, 30)]);
        bench.write(100);
        let mut scheduler = SkipAhead::new(Fdps::new(Config { measured_rate: true, ..Config::default() }));
        // A packet per 4 ms for two round trips: 5 in the difference of 20 ms.
        for n in 0..=20 {
            bench.at(4 * n);
            let mut acked = Acked::default();
            (acked.packets, acked.bytes) = (1, MSS);
            scheduler.on_event(&SchedulerEvent::Ack { path: PathId(0), acked: &acked }, &bench.view);
        }
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(1)[0], 5);
    }
    #[test]
    fn throughput_may_be_that_of_the_bottleneck() {
        // A packet per 4 ms, and a window of 20 or 4 per 40 ms: 5 or 2 in the difference of 21 ms. Until that is known, 10.
        for (known, cwnd, skipped) in [(true, 20, 5), (true, 4, 2), (false, 20, 10)] {
            let mut bench = Bench::new(&[measured(0, 40, cwnd, cwnd, 10), measured(1, 80, 10, 0, 31)]);
            bench.write(100);
            let mut scheduler = SkipAhead::new(Fdps::new(Config { capacity: true, ..Config::default() }));
            bench.view.measure_capacity(scheduler.measures_capacity());
            if known {
                bench.know_capacity(0, (4, 40));
            }
            bench.round(&mut scheduler);
            assert_eq!(bench.bound(1)[0], skipped);
        }
    }
}
