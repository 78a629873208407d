//! BLEST: waits rather than letting a slow path block the connection's window.

use crate::pick::{blocked, by_rtt_unless, fastest_live, no_choice};
use anabranch_plugin::registry::{Entry, Handle, Parameters, number};
use anabranch_plugin::schedule::{PathView, Round, Scheduler};
use anabranch_units::{Duration, Instant};

page!(
    "\
# Idea

Before a slower path S is used, estimate whether that would leave too little of the connection's window for
the fast path F during one round trip of S. If so, send nothing and wait for F.

# Rule

minRTT proposes S while F, the path with the lowest RTT, has no room. With r = R_S/R_F and M the peer's whole
window:

```text
X = MSS_F·(w_F + (r − 1)/2)·r          F's capacity in one RTT of S
wait if  X·λ > M − MSS_S·(f_S + 1)     otherwise send on S
```

λ starts at `lambda`. Once per R_F it grows by `delta` if the window blocked F in that time, otherwise it falls by
`delta`; it stays within `lambda_min` and `lambda_max`.

# When it helps

Windows of the order of the fast path's traffic during one slow round trip: 3G beside WLAN, small receive
buffers.

# When it hurts

Capacity of the slow path is given up. A transfer limited by its application uses the slow path only when the
fast window is full.

# Departures

The paper gives λ no bounds; [0, 4] is the choice here. Head-of-line blocking counts as observed when F has
room and the peer's window blocks a new segment, or the send buffer is full of data in flight. Time
without a call does not change λ: each call takes at most one step. A path without an RTT sample gets its window without
an estimate. A fast path that cannot be waited for (a timeout, nothing in flight) is passed over. With more than two
paths S is minRTT's choice, and only its own flight is charged.

# References

Ferlin, Alay, Mehani, Boreli, BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous Networks,
IFIP Networking 2016, section V. The authors' module retransmits, too: that is `blest+or`.
"
);

const LAMBDA: Handle<f64> = number("lambda", 1.0, 0.0..=100.0).about("initial λ");
const DELTA: Handle<f64> = number("delta", 0.001, 0.0..=1.0).about("step of λ per fast RTT");
const LAMBDA_MIN: Handle<f64> = number("lambda_min", 0.0, 0.0..=100.0).about("least λ");
const LAMBDA_MAX: Handle<f64> = number("lambda_max", 4.0, 0.0..=100.0).about("greatest λ");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "blest",
    aliases: &[],
    about: "wait rather than let a slow path block the window (the paper's form)",
    page: PAGE,
    parameters: &[LAMBDA.parameter, DELTA.parameter, LAMBDA_MIN.parameter, LAMBDA_MAX.parameter],
    build: |p| Box::new(Blest::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Initial λ.
    pub lambda: f64,
    /// Step of λ per RTT of the fast path.
    pub delta: f64,
    /// Least λ.
    pub lambda_min: f64,
    /// Greatest λ.
    pub lambda_max: f64,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { lambda: LAMBDA.of(p), delta: DELTA.of(p), lambda_min: LAMBDA_MIN.of(p), lambda_max: LAMBDA_MAX.of(p) }
    }
}

/// BLEST as in the paper.
#[derive(Clone, Debug)]
pub struct Blest {
    config: Config,
    lambda: f64,
    /// Window or send buffer blocked the fast path since the last step.
    blocked: bool,
    /// When λ last changed, or was first used.
    last_step: Option<Instant>,
}

/// Bytes that a fast path sends during one RTT of a slow one: blest eq 1, with r = R_S/R_F.
fn fast_bytes(mss: u32, cwnd: u32, fast: Duration, slow: Duration) -> f64 {
    let r = slow.as_nanos() as f64 / fast.as_nanos().max(1) as f64;
    f64::from(mss) * (f64::from(cwnd) + (r - 1.0) / 2.0) * r
}

impl Blest {
    /// A scheduler with the initial λ.
    pub fn new(config: Config) -> Self {
        Self { config, lambda: config.lambda, blocked: false, last_step: None }
    }

    /// One step of λ per RTT of the fast path.
    fn step(&mut self, now: Instant, fast: Duration) {
        if now.since(*self.last_step.get_or_insert(now)) < fast {
            return;
        }
        let step = if self.blocked { self.config.delta } else { -self.config.delta };
        self.lambda = (self.lambda + step).min(self.config.lambda_max).max(self.config.lambda_min);
        self.blocked = false;
        self.last_step = Some(now);
    }

    /// True if a segment on `slow` would block `fast`.
    fn would_block(&self, window: u64, fast: &PathView, slow: &PathView) -> bool {
        let (Some(fast_rtt), Some(slow_rtt)) = (fast.srtt, slow.srtt) else { return false };
        let flight = u64::from(slow.in_flight) + u64::from(slow.queued);
        let left = window as f64 - f64::from(slow.mss) * (flight + 1) as f64;
        fast_bytes(fast.mss, fast.cwnd, fast_rtt, slow_rtt) * self.lambda > left
    }
}

impl Scheduler for Blest {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).copied() else { return };
        if no_choice(round) {
            round.fill(fast.id);
            return;
        }
        if let Some(rtt) = fast.srtt {
            self.step(round.now(), rtt);
        }
        by_rtt_unless(round, &fast, |view, slow| self.would_block(view.send_window(), &fast, slow));
        let has_room = round.path(fast.id).is_some_and(PathView::eligible);
        self.blocked |= has_room && blocked(round);
    }

    fn values(&self) -> Option<(&'static str, f64)> {
        Some(("blest.lambda", self.lambda))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_units::PathId;
    use anabranch_units::RecoveryPhase;

    const PAPER: Config = Config { lambda: 1.0, delta: 0.001, lambda_min: 0.0, lambda_max: 4.0 };

    #[test]
    fn equation_1() {
        let ms = Duration::from_millis;
        assert_eq!(fast_bytes(1400, 10, ms(20), ms(100)), 84_000.0);
        assert!((fast_bytes(1400, 10, ms(30), ms(100)) - 52_111.1).abs() < 0.05);
    }

    /// Whether a segment takes the slow path: R = (20, 100), the fast window of 10 full.
    fn uses_slow(lambda: f64, window: u64, slow_in_flight: u32) -> bool {
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 20, slow_in_flight)]);
        bench.view.set_window(window, 0);
        bench.write(1);
        bench.round(&mut Blest::new(Config { lambda, delta: 0.0, ..PAPER }));
        !bench.bound(1).is_empty()
    }

    #[test]
    fn decisions() {
        for (lambda, in_flight, expect) in
            [(1.0, 2, true), (1.2, 2, false), (1.0, 8, true), (1.0, 10, true), (1.0, 11, false)]
        {
            assert_eq!(uses_slow(lambda, 100_000, in_flight), expect, "{lambda} {in_flight}");
        }
    }

    #[test]
    fn lambda_follows_the_blocking() {
        // One call per R_F: the fast path has room, and the window does or does not block. A call evaluates the
        // interval before it.
        let mut blest = Blest::new(PAPER);
        let mut seen = Vec::new();
        for (i, hol) in [true, true, false, true, false, false, false, false].into_iter().enumerate() {
            let window = if hol { 0 } else { MSS };
            let mut bench = Bench::with_window(&[path(0, 20, 10, 5), path(1, 100, 10, 5)], window);
            bench.write(1);
            bench.at(20 * i as u64);
            bench.round(&mut blest);
            seen.push((blest.values().unwrap().1 * 1000.0).round());
        }
        assert_eq!(seen, [1000.0, 1001.0, 1002.0, 1001.0, 1002.0, 1001.0, 1000.0, 999.0]);
    }

    #[test]
    fn a_full_send_buffer_is_blocking_too() {
        // A send buffer that is not larger than the peer's window fills first: the window blocks nothing.
        let mut blest = Blest::new(PAPER);
        for (step, full) in [(0, true), (1, true), (2, false), (3, false)] {
            let mut bench = Bench::new(&[path(0, 20, 10, 5), path(1, 100, 10, 5)]);
            bench.view.set_buffer_full(full);
            bench.at(20 * step);
            bench.round(&mut blest);
        }
        assert!((blest.lambda - 1.001).abs() < 1e-9, "{}", blest.lambda);
    }

    #[test]
    fn lambda_stays_within_its_bounds() {
        let mut blest = Blest::new(Config { delta: 0.5, lambda_min: 0.25, lambda_max: 1.25, ..PAPER });
        blest.step(Instant::ZERO, Duration::from_millis(20));
        blest.blocked = true;
        blest.step(Instant::from_millis(20), Duration::from_millis(20));
        assert_eq!(blest.lambda, 1.25);
        for ms in [40, 60, 80] {
            blest.step(Instant::from_millis(ms), Duration::from_millis(20));
        }
        assert_eq!(blest.lambda, 0.25);
    }

    #[test]
    fn does_not_wait_for_a_path_that_may_never_call_back() {
        let fast = PathView { recovery: RecoveryPhase::Loss, ..path(0, 20, 10, 10) };
        let mut bench = Bench::new(&[fast, path(1, 100, 20, 11)]);
        bench.view.set_window(100_000, 0);
        bench.write(1);
        bench.round(&mut Blest::new(PAPER));
        assert_eq!(bench.bound(1), [0]);
    }

    #[test]
    fn waits_for_what_was_bound_a_moment_ago() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 20, 0)]);
        bench.view.set_window(50_000, 0);
        bench.write(15);
        bench.round(&mut Blest::new(PAPER));
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (10, 0));
    }

    #[test]
    fn a_path_without_a_sample_gets_its_window() {
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 3, 0)]);
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        bench.view.set_window(10_000, 0);
        bench.write(5);
        bench.round(&mut Blest::new(PAPER));
        assert_eq!(bench.bound(1), [0, 1, 2]);
    }
}
