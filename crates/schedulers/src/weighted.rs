//! Weighted round robin: a share of the traffic per path.

use crate::pick::live;
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag};
use anabranch_plugin::schedule::{PathView, Round, Scheduler};
use anabranch_units::PathId;

page!(
    "\
# Idea

Give each path a share of the traffic: by the operator's weights, or otherwise by the rate of its window.

# Rule

Each path has a tag τ, its bytes so far divided by its weight; the least tag is next (ties go to the lower id). V is the
virtual time, the tag at which the last segment was sent:

```text
pick j with the least max(τ_j, V)         V = max(τ_j, V)         τ_j = V + MSS_j/weight_j
```

So a path that rested, was full or has just joined begins on equal terms instead of catching up. The weights
are the scenario's `weight` of each path; a path without one has weight 1. If no path has one, a path's weight is
cwnd·MSS/SRTT.

Given weights are exact: with `strict`, the scheduler waits for the path in turn while its window is full, so that the
shares hold at the pace of the path that is slowest relative to its share. Weights from windows are estimates, and a full
path is passed over.

# When it helps

Shares that a contract or a policy fixes; a metered path that is to carry every tenth segment; experiments
with a known split.

# When it hurts

Given shares that do not match the rates leave the other paths underused. Packets of one burst spread over paths of
different delay and arrive out of order. Without given weights and with data always waiting, every window is
always full, and acknowledgments decide, as with `fifo`.

# Departures

No paper: start-time fair queueing, with paths in place of flows. A path that cannot be waited for (a
timeout, nothing in flight) loses its turn. A path without an RTT sample has the weight of the lightest path with one.
Only new data is distributed; retransmissions stay on their path.

# References

Goyal, Vin, Cheng, Start-time Fair Queuing, SIGCOMM 1996. Linux out-of-tree MPTCP, mptcp_rr.c, for weights
of one.
"
);

const STRICT: Handle<bool> =
    flag("strict", true).about("with given weights, wait for the path in turn; if not, pass over it");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "weighted",
    aliases: &["wrr"],
    about: "a share per path: the scenario's weights, or the rates of the windows",
    page: PAGE,
    parameters: &[STRICT.parameter],
    build: |p| Box::new(Weighted::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whether to wait for the path in turn, with given weights.
    pub strict: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { strict: STRICT.of(p) }
    }
}

/// Weighted round robin.
#[derive(Clone, Debug)]
pub struct Weighted {
    config: Config,
    /// τ by path id: bytes divided by weight.
    tags: [f64; PathId::LIMIT],
    /// V.
    time: f64,
}

/// The weights of one round, by path id.
struct Weights {
    given: bool,
    /// Weight of a path without one.
    otherwise: f64,
}

impl Weights {
    fn of(paths: &[PathView]) -> Self {
        let given = paths.iter().any(|p| p.policy.weight.is_some());
        let rates = paths.iter().map(PathView::window_rate).filter(|rate| *rate > 0.0);
        let lightest = rates.fold(f64::INFINITY, f64::min);
        let otherwise = if given || lightest == f64::INFINITY { 1.0 } else { lightest };
        Self { given, otherwise }
    }

    fn weight(&self, path: &PathView) -> f64 {
        let own = if self.given { path.policy.weight } else { Some(path.window_rate()) };
        own.filter(|weight| *weight > 0.0).unwrap_or(self.otherwise)
    }
}

impl Weighted {
    /// A scheduler before its first turn.
    pub fn new(config: Config) -> Self {
        Self { config, tags: [0.0; PathId::LIMIT], time: 0.0 }
    }

    fn tag(&self, path: &PathView) -> f64 {
        self.tags[path.id.index()].max(self.time)
    }

    /// The path in turn, if it can take a segment.
    fn next<'r>(&self, round: &'r Round<'_>, waits: bool) -> Option<&'r PathView> {
        let takes_turn = |p: &&PathView| p.eligible() || waits && live(round, p);
        let turns = round.candidates().filter(takes_turn);
        turns.min_by(|a, b| self.tag(a).total_cmp(&self.tag(b))).filter(|next| next.eligible())
    }
}

impl Scheduler for Weighted {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let weights = Weights::of(round.paths());
        let waits = weights.given && self.config.strict;
        while let Some(next) = self.next(round, waits) {
            let (id, start) = (next.id, self.tag(next));
            let share = f64::from(next.mss) / weights.weight(next);
            if !round.send_next(id) {
                return;
            }
            self.time = start;
            self.tags[id.index()] = start + share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_plugin::schedule::PathPolicy;
    use anabranch_units::RecoveryPhase;

    fn weigh(view: PathView, weight: f64) -> PathView {
        PathView { policy: PathPolicy { weight: Some(weight), ..PathPolicy::default() }, ..view }
    }

    fn weighted(strict: bool) -> Weighted {
        Weighted::new(Config { strict })
    }

    #[test]
    fn given_weights_are_kept_to() {
        let mut bench = Bench::new(&[weigh(path(0, 10, 100, 0), 3.0), weigh(path(1, 90, 100, 0), 1.0)]);
        bench.write(8);
        bench.round(&mut weighted(true));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 2, 3, 4, 6, 7], vec![1, 5]));
    }

    #[test]
    fn a_full_path_is_waited_for_or_passed_over() {
        for (strict, expect) in [(true, (3, 1)), (false, (3, 9))] {
            let mut bench = Bench::new(&[weigh(path(0, 10, 3, 0), 3.0), weigh(path(1, 90, 100, 0), 1.0)]);
            bench.write(12);
            bench.round(&mut weighted(strict));
            assert_eq!((bench.bound(0).len(), bench.bound(1).len()), expect, "strict: {strict}");
        }
    }

    #[test]
    fn a_path_that_may_never_call_back_loses_its_turn() {
        let lost = PathView { recovery: RecoveryPhase::Loss, ..weigh(path(0, 10, 3, 0), 9.0) };
        let mut bench = Bench::new(&[lost, weigh(path(1, 90, 100, 0), 1.0)]);
        bench.write(5);
        bench.round(&mut weighted(true));
        assert_eq!(bench.bound(1).len(), 5);
    }

    #[test]
    fn without_weights_the_windows_decide_and_nobody_is_waited_for() {
        // 20 packets per 10 ms are ten times 10 packets per 50 ms.
        let mut bench = Bench::new(&[path(0, 10, 20, 0), path(1, 50, 10, 0)]);
        bench.write(11);
        let mut scheduler = weighted(true);
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (10, 1));
        bench.write(30);
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (20, 10));
    }

    #[test]
    fn who_was_full_does_not_catch_up() {
        let mut bench = Bench::new(&[path(0, 10, 10, 10), path(1, 10, 1000, 0)]);
        let equal = |view: &mut PathView| view.policy.weight = Some(1.0);
        equal(bench.view.path_mut(PathId(0)).unwrap());
        equal(bench.view.path_mut(PathId(1)).unwrap());
        let mut scheduler = weighted(false);
        bench.write(100);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(1).len(), 100);
        let first = bench.view.path_mut(PathId(0)).unwrap();
        (first.cwnd, first.in_flight) = (1000, 0);
        bench.write(10);
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (6, 104));
    }

    #[test]
    fn a_path_without_a_sample_weighs_as_the_lightest() {
        let mut bench = Bench::new(&[path(0, 10, 20, 0), path(1, 20, 20, 0), path(2, 1, 20, 0)]);
        bench.view.path_mut(PathId(2)).unwrap().srtt = None;
        bench.write(8);
        bench.round(&mut weighted(true));
        assert_eq!([0, 1, 2].map(|id| bench.bound(id).len()), [4, 2, 2]);
    }
}
