//! CP: uses a slower path only if the receiver has room for the reordering that it causes, and the path is not too
//! slow.

use crate::pick::{by_rtt, live, no_choice};
use anabranch_plugin::registry::{Entry, Handle, Parameters, milliseconds, whole};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::Duration;

page!(
    "\
# Idea

Constraint-based proactive scheduling: before a slower path is used, estimate how much data the faster paths
deliver while its packet is on the way. All of that arrives out of order, so it must fit the receive buffer. A
bound on the delay trades throughput for latency.

# Rule

For path j, with D = R/2, x = w/R (in bytes: times the MSS), f the packets in flight and queued, M the peer's
whole window:

```text
O_j = Σ x_i·(D_j − D_i)  over the paths i with D_i < D_j
j may be used if  O_j + (f_j + 1)·MSS_j ≤ B  and  D_j − D_min ≤ delay_max        B = `buffer`, or M
```

The path with the lowest RTT that has room and may be used takes the next segment; if there is none, nothing
is sent.

# When it helps

Small receive buffers over different paths; applications that prefer losing the capacity of a slow path to its delay
(`delay_max`).

# When it hurts

x over-estimates a lossy fast path, and counts it in full although its application may have little to send.
As with BLEST, an unused path keeps its last RTT measurement.

# Departures

The full paper was not available. It compares the expected reordering with the buffer and has a delay constraint; the
formula above is this project's reading. The bounds apply to slower paths only: the fastest causes no reordering, and the
peer's window bounds it in any case. Only paths that can be waited for count as faster. A path without an RTT sample gets
its window without an estimate.

# References

Oh and Lee, Constraint-based proactive scheduling for MPTCP in wireless networks, Computer Networks 91 (2015).
"
);

const BUFFER: Handle<u64> = whole("buffer", 0, 0..=1_000_000_000_000)
    .unit("bytes")
    .about("most out-of-order bytes at the receiver; 0 = the peer's window");
const DELAY_MAX: Handle<Duration> =
    milliseconds("delay_max", 0.0, 0.0..=1e6).about("most forward delay beyond the fastest path's; 0 = no limit");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "cp",
    aliases: &[],
    about: "a slower path only if the reordering it causes fits the buffer",
    page: PAGE,
    parameters: &[BUFFER.parameter, DELAY_MAX.parameter],
    build: |p| Box::new(Cp::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Limit of out-of-order bytes at the receiver; `None` = the peer's window.
    pub buffer: Option<u64>,
    /// Limit of the forward delay beyond the fastest path's; `None` = no limit.
    pub delay_max: Option<Duration>,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        let (buffer, delay_max) = (BUFFER.of(p), DELAY_MAX.of(p));
        Self {
            buffer: Some(buffer).filter(|bytes| *bytes > 0),
            delay_max: Some(delay_max).filter(|delay| *delay > Duration::ZERO),
        }
    }
}

/// CP; has no state.
#[derive(Clone, Debug)]
pub struct Cp {
    config: Config,
}

/// Forward delay.
fn delay(path: &PathView) -> Option<Duration> {
    path.srtt.map(|rtt| rtt / 2)
}

impl Cp {
    /// A scheduler with these bounds.
    pub const fn new(config: Config) -> Self {
        Self { config }
    }

    /// True if a segment on `slow` respects both bounds.
    fn allows(&self, view: &View, slow: &PathView) -> bool {
        let Some(own) = delay(slow) else { return true };
        let mut reordered = 0.0;
        let mut lead_max = Duration::ZERO;
        for fast in view.candidates().filter(|p| live(view, p)) {
            let (Some(rtt), Some(other)) = (fast.srtt, delay(fast)) else { continue };
            let lead = own.saturating_sub(other);
            let bytes = f64::from(fast.cwnd) * f64::from(fast.mss);
            reordered += bytes * lead.as_nanos() as f64 / rtt.as_nanos().max(1) as f64;
            lead_max = lead_max.max(lead);
        }
        if lead_max.is_zero() {
            return true;
        }
        let buffer = self.config.buffer.unwrap_or(view.send_window());
        let own_bytes = (u64::from(slow.in_flight) + u64::from(slow.queued) + 1) * u64::from(slow.mss);
        let soon_enough = self.config.delay_max.is_none_or(|bound| lead_max <= bound);
        soon_enough && reordered + own_bytes as f64 <= buffer as f64
    }

    /// The path for the next segment.
    fn choose<'a>(&self, view: &'a View) -> Option<&'a PathView> {
        let allowed = view.candidates().filter(|p| p.eligible() && self.allows(view, p));
        allowed.min_by_key(|p| (p.rtt_or_max(), p.id))
    }
}

impl Scheduler for Cp {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if no_choice(round) {
            return by_rtt(round);
        }
        while let Some(id) = self.choose(round).map(|p| p.id) {
            if !round.send_next(id) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_units::PathId;
    use anabranch_units::RecoveryPhase;

    fn cp(buffer: u64, delay_max: u64) -> Cp {
        Cp::new(Config { buffer: Some(buffer), delay_max: Some(Duration::from_millis(delay_max)) })
    }

    /// D = (10, 50), x = (0.5, 0.1) packets per millisecond; the fast path is full.
    fn paths() -> [PathView; 2] {
        [path(0, 20, 10, 10), path(1, 100, 10, 4)]
    }

    #[test]
    fn both_bounds_are_kept() {
        // O = 0.5·40 = 20 packets, and 4 + 1 of the path itself: 35000 bytes.
        for (buffer, delay_max, expect) in
            [(64_000, 100, true), (32_000, 100, false), (64_000, 30, false), (35_000, 40, true), (34_999, 40, false)]
        {
            let mut bench = Bench::new(&paths());
            bench.write(1);
            bench.round(&mut cp(buffer, delay_max));
            assert_eq!(bench.bound(1).len() == 1, expect, "{buffer} {delay_max}");
        }
    }

    #[test]
    fn the_peers_window_is_the_default_buffer() {
        for (window, expect) in [(35_000, 1), (34_999, 0)] {
            let mut bench = Bench::with_window(&paths(), window);
            bench.write(1);
            bench.round(&mut Cp::new(Config::default()));
            assert_eq!(bench.bound(1).len(), expect);
        }
    }

    #[test]
    fn the_fastest_path_is_not_bound() {
        let mut bench = Bench::new(&[path(0, 20, 10, 9), path(1, 100, 10, 4)]);
        bench.write(3);
        bench.round(&mut cp(1, 1));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0], vec![]));
    }

    #[test]
    fn a_slower_path_with_less_in_flight_may_be_allowed_instead() {
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 60, 40), path(2, 104, 10, 0)]);
        bench.write(1);
        // Path 1: 20 packets and 41; path 2: 21, and 1.2 of path 1, and 1.
        bench.round(&mut cp(40 * 1400, 1000));
        assert_eq!((bench.bound(1), bench.bound(2)), (vec![], vec![0]));
    }

    #[test]
    fn a_fast_path_that_may_never_call_back_does_not_count() {
        let mut bench = Bench::new(&paths());
        bench.view.path_mut(PathId(0)).unwrap().recovery = RecoveryPhase::Loss;
        bench.write(1);
        bench.round(&mut cp(1, 1));
        assert_eq!(bench.bound(1), [0]);
    }

    #[test]
    fn a_bound_of_zero_is_none() {
        let config = |given: &[(String, f64)]| Config::from(&Parameters::new(ENTRY.parameters, given));
        let none = config(&[]);
        assert_eq!((none.buffer, none.delay_max), (None, None));
        let both = config(&[("buffer".to_owned(), 5000.0), ("delay_max".to_owned(), 40.0)]);
        assert_eq!((both.buffer, both.delay_max), (Some(5000), Some(Duration::from_millis(40))));
    }
}
