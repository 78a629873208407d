//! ECF: waits for the fast path if that completes the remaining data earlier than a slow one.

use crate::pick::{by_rtt_unless, fastest_live, no_choice};
use anabranch_plugin::registry::{Entry, Handle, Parameter, Parameters, milliseconds, number};
use anabranch_plugin::schedule::{PathView, Round, Scheduler};
use anabranch_units::{Duration, PathId};

page!(
    "\
# Idea

Earliest completion first: before a slower path S is used, compare two completion times: of the remaining data if all of
it waits for the fast path F, and of a segment sent on S now. If the first is earlier, wait.

# Rule

minRTT proposes S while F, the path with the lowest RTT, has no room. With k the data bound to no path, in
packets, δ = the larger RTT variation of the two, and `waiting` 0 at first:

```text
if  (1 + k/w_F)·R_F < (1 + waiting·β)·(R_S + δ):
        if (k/w_S)·R_S ≥ 2·R_F + δ:   waiting = 1, wait
        else                          send on S, waiting stays
else                                  send on S, waiting = 0
```

# When it helps

Transfers that pause and end, over paths of different delay: the last packets do not travel on the slow path
while the fast one is idle.

# When it hurts

k counts written data only: an application that writes at its own pace always has a k of about zero. While much data
remains, ECF is minRTT, with its reordering. A single remaining packet fails the second test, and takes the slow path.

# Departures

As printed. The deviation is RFC 6298's RTTVAR. `waiting` belongs to the connection. A path without an RTT sample gets
its window without a test. A fast path that cannot be waited for (a timeout, nothing in flight) is passed over. With more
than two paths S is minRTT's choice. The kernel's module differs: `ecf-linux`.

# References

Lim, Nahum, Towsley, Gibbens, ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, CoNEXT 2017.
"
);

pub(crate) const BETA: Handle<f64> =
    number("beta", 0.25, 0.0..=100.0).about("hysteresis: how much longer waiting lasts once begun");
pub(crate) const SIGMA_FACTOR: Handle<f64> =
    number("sigma_factor", 1.0, 0.0..=16.0).about("multiple of RTTVAR that counts as deviation of an RTT");
pub(crate) const SIGMA_MIN: Handle<Duration> =
    milliseconds("sigma_min", 0.0, 0.0..=10_000.0).about("least deviation of an RTT");

/// The parameters of ECF and SRPT-ECF.
pub(crate) const PARAMETERS: &[Parameter] = &[BETA.parameter, SIGMA_FACTOR.parameter, SIGMA_MIN.parameter];

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "ecf",
    aliases: &["ecf-paper"],
    about: "wait for the fast path if that completes the remaining data earlier",
    page: PAGE,
    parameters: PARAMETERS,
    build: |p| Box::new(Ecf::new(p.into())),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Hysteresis.
    pub beta: f64,
    /// Factor of RTTVAR.
    pub sigma_factor: f64,
    /// Least deviation of an RTT.
    pub sigma_min: Duration,
    /// Whether the remaining data counts as at least one window.
    pub whole_windows: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        let (sigma_factor, sigma_min) = (SIGMA_FACTOR.of(p), SIGMA_MIN.of(p));
        Self { beta: BETA.of(p), sigma_factor, sigma_min, whole_windows: false }
    }
}

/// The result of the two tests for a segment on the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send nothing.
    Wait,
    /// Use it, although the fast path would complete earlier: too little is left for waiting to pay off.
    Use,
    /// Use it: the fast path would not complete earlier.
    UseAndForget,
}

/// Windows that `left` bytes fill.
fn windows(left: u64, path: &PathView, at_least_one: bool) -> f64 {
    let windows = left as f64 / (f64::from(path.cwnd.max(1)) * f64::from(path.mss.max(1)));
    if at_least_one { windows.max(1.0) } else { windows }
}

impl Config {
    /// Tests `slow` while `left` bytes are unbound.
    pub(crate) fn judge(&self, waiting: bool, left: u64, fast: &PathView, slow: &PathView) -> Verdict {
        let (Some(fast_rtt), Some(slow_rtt)) = (fast.srtt, slow.srtt) else { return Verdict::UseAndForget };
        let nanos = |time: Duration| time.as_nanos() as f64;
        let (fast_rtt, slow_rtt) = (nanos(fast_rtt), nanos(slow_rtt));
        let delta = (self.sigma_factor * nanos(fast.rttvar.max(slow.rttvar))).max(nanos(self.sigma_min));
        let margin = if waiting { 1.0 + self.beta } else { 1.0 };
        let [on_fast, on_slow] = [fast, slow].map(|path| windows(left, path, self.whole_windows));
        if (1.0 + on_fast) * fast_rtt >= margin * (slow_rtt + delta) {
            Verdict::UseAndForget
        } else if on_slow * slow_rtt >= 2.0 * fast_rtt + delta {
            Verdict::Wait
        } else {
            Verdict::Use
        }
    }
}

/// ECF.
#[derive(Clone, Debug)]
pub struct Ecf {
    config: Config,
    waiting: bool,
}

impl Ecf {
    /// A scheduler that does not wait.
    pub fn new(config: Config) -> Self {
        Self { config, waiting: false }
    }

    /// Tests `slow` and stores the result.
    fn waits(&mut self, left: u64, fast: &PathView, slow: &PathView) -> bool {
        let verdict = self.config.judge(self.waiting, left, fast, slow);
        self.waiting = verdict == Verdict::Wait || self.waiting && verdict == Verdict::Use;
        verdict == Verdict::Wait
    }
}

impl Scheduler for Ecf {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).copied() else { return };
        if no_choice(round) {
            round.fill(fast.id);
            return;
        }
        by_rtt_unless(round, &fast, |view, slow| self.waits(view.backlog().bytes(), &fast, slow));
    }

    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        put("waiting", None, f64::from(u8::from(self.waiting)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_units::RecoveryPhase;

    const PAPER: Config = Config { beta: 0.25, sigma_factor: 1.0, sigma_min: Duration::ZERO, whole_windows: false };

    /// w = 10/10, R = 20/100 ms, δ = 5 ms: the decision, and `waiting` after it.
    fn decide(config: Config, k: u64, waiting: bool) -> (bool, bool) {
        let [fast, slow] = [path(0, 20, 10, 10), path(1, 100, 10, 0)];
        let slow = PathView { rttvar: Duration::from_millis(5), ..slow };
        let mut ecf = Ecf { config, waiting };
        (ecf.waits(k * MSS, &fast, &slow), ecf.waiting)
    }

    #[test]
    fn decisions() {
        assert_eq!(decide(PAPER, 30, false), (true, true), "80 < 105 and 300 ≥ 45");
        assert_eq!(decide(PAPER, 50, false), (false, false), "120 ≥ 105");
        assert_eq!(decide(PAPER, 50, true), (true, true), "120 < 131.25");
        assert_eq!(decide(PAPER, 60, true), (false, false), "140 ≥ 131.25");
    }

    #[test]
    fn the_slow_path_is_kept_from_what_it_would_deliver_later_than_two_round_trips_of_the_fast() {
        // The second inequality, where the first demands waiting: k/10 · 100 against 2 · 20 + 5.
        assert_eq!(decide(PAPER, 4, false), (false, false), "40 < 45");
        assert_eq!(decide(PAPER, 5, false), (true, true), "50 ≥ 45");
    }

    #[test]
    fn the_last_packet_takes_the_slow_path() {
        assert_eq!(decide(PAPER, 1, false), (false, false), "22 < 105, but 10 < 45");
        assert_eq!(decide(PAPER, 1, true), (false, true), "waiting stays as it is");
        let whole = Config { whole_windows: true, ..PAPER };
        assert_eq!(decide(whole, 1, false), (true, true), "as a whole window: 40 < 105, 100 ≥ 45");
    }

    #[test]
    fn a_larger_deviation_lengthens_the_wait() {
        // δ = 10 ms: 120 ≥ 110 still, 105 < 110.
        let doubled = Config { sigma_factor: 2.0, ..PAPER };
        assert_eq!((decide(doubled, 50, false).0, decide(doubled, 42, false).0), (false, true));
        assert!(!decide(PAPER, 43, false).0);
        let least = Config { sigma_min: Duration::from_millis(10), ..PAPER };
        assert_eq!((decide(least, 50, false).0, decide(least, 42, false).0), (false, true));
    }

    #[test]
    fn uses_what_is_left_of_the_backlog() {
        // R = 20/100, δ = 0: waits as soon as (1 + k/10)·20 < 100, so from k = 39 on.
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 10, 0)]);
        bench.write(42);
        bench.round(&mut Ecf::new(PAPER));
        assert_eq!(bench.bound(1), [0, 1, 2]);
        assert_eq!(bench.view.backlog().bytes(), 39 * MSS);
    }

    #[test]
    fn does_not_wait_for_a_path_that_may_never_call_back() {
        let fast = PathView { recovery: RecoveryPhase::Loss, ..path(0, 20, 10, 10) };
        let mut bench = Bench::new(&[fast, path(1, 100, 10, 0)]);
        bench.write(3);
        bench.round(&mut Ecf::new(PAPER));
        assert_eq!(bench.bound(1), [0, 1, 2]);
    }

    #[test]
    fn a_path_without_a_sample_gets_its_window() {
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 2, 0)]);
        bench.view.path_mut(anabranch_units::PathId(1)).unwrap().srtt = None;
        bench.write(3);
        bench.round(&mut Ecf::new(PAPER));
        assert_eq!(bench.bound(1), [0, 1]);
    }
}
