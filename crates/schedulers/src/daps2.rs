//! DAPS for two paths: a number of segments on the fast path, then a window on the slow one.

use crate::pick::{by_rtt, live, no_choice};
use crate::plan::Plan;
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::{Duration, PathId};

page!(
    "\
# Idea

The simplification of `daps` for two paths that avoids the least common multiple: while a packet travels the
slow path, the fast one makes η round trips.

# Rule

With R_f ≤ R_s and a = w − f the free window of each:

```text
η = ⌊R_s / R_f⌋,  m_f = min(η, a_f),  m_s = a_s
if more data waits than a_f takes:  the next m_f segments go on the fast path, the following m_s on the slow one
otherwise:                          all on the fast path
```

A new plan is made when this one is handed out. With `rounds`, m_f = η·w_f, and the slow path sends its part at
once, past the fast path's segments that its window does not admit yet.

# When it helps

Windows of about η packets on the fast path; with `rounds`, stable windows of any size.

# When it hurts

As printed, η counts round trips and is used as packets: with a fast window of 10 and η = 2, the fast path
takes 2 segments and the slow one its whole window.

# Departures

Prose and algorithm of the source differ by one segment; the algorithm is followed. With more than two paths
the slowest takes its free window, and each other path ⌊R_s/R⌋ segments before it, fastest first. Paths that cannot
be waited for have no part. While a path has no RTT sample, minRTT decides. `rounds` is this project's correction.

# References

Algorithm 1 in a comparison of MPTCP scheduling algorithms for 5G; Sarwar et al., Mitigating receiver's buffer
blocking by delay aware packet scheduling in multipath data transfer, WAINA 2013. `daps` is the original.
"
);

const ROUNDS: Handle<bool> =
    flag("rounds", false).about("count η in round trips: η windows on the fast path instead of η packets");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "daps2",
    aliases: &[],
    about: "DAPS for two paths: as many fast segments as RTTs fit in the slow one's",
    page: PAGE,
    parameters: &[ROUNDS.parameter],
    build: |p| Box::new(Daps2::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// η windows instead of η packets.
    pub rounds: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { rounds: ROUNDS.of(p) }
    }
}

/// Two-path DAPS.
#[derive(Clone, Debug)]
pub struct Daps2 {
    config: Config,
    plan: Plan,
}

/// The path with the next longer RTT after `last`, among those that may be waited for.
fn next_slower<'a>(view: &'a View, last: Option<&PathView>) -> Option<&'a PathView> {
    let key = |p: &PathView| (p.rtt_or_max(), p.id);
    view.candidates().filter(|p| live(view, p) && last.is_none_or(|last| key(p) > key(last))).min_by_key(|p| key(p))
}

impl Daps2 {
    /// Without a plan.
    pub fn new(config: Config) -> Self {
        Self { config, plan: Plan::default() }
    }

    /// Segments of `fast` before those of the slowest path, whose RTT is `slow`.
    fn share(&self, fast: &PathView, slow: Duration) -> u64 {
        let ratio = slow.as_nanos() / fast.rtt_or_max().as_nanos().max(1);
        match self.config.rounds {
            true => ratio.saturating_mul(fast.cwnd.into()),
            false => ratio.min(fast.room().into()),
        }
    }

    fn make_plan(&self, view: &View, plan: &mut Plan) {
        let Some(fastest) = next_slower(view, None) else { return };
        let waiting = view.backlog().bytes().div_ceil(fastest.mss.max(1).into());
        if waiting <= fastest.room().into() {
            return plan.push(fastest.id, waiting);
        }
        let key = |p: &&PathView| (p.rtt_or_max(), p.id);
        let Some(slowest) = view.candidates().filter(|p| live(view, p)).max_by_key(key) else { return };
        let mut path = fastest;
        while path.id != slowest.id {
            plan.push(path.id, self.share(path, slowest.rtt_or_max()).min(waiting));
            let Some(next) = next_slower(view, Some(path)) else { return };
            path = next;
        }
        plan.push(slowest.id, slowest.room().into());
    }
}

impl Scheduler for Daps2 {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if no_choice(round) || round.candidates().any(|p| p.srtt.is_none()) {
            self.plan.clear();
            return by_rtt(round);
        }
        let mut plan = core::mem::take(&mut self.plan);
        plan.follow(round, |view, plan| self.make_plan(view, plan));
        self.plan = plan;
    }

    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        self.plan.left(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    const PRINTED: Config = Config { rounds: false };

    /// (path, segments) of each run, with 100 segments waiting.
    fn plan(config: Config, paths: &[PathView]) -> Vec<(u8, u64)> {
        let mut bench = Bench::new(paths);
        bench.write(100);
        let mut plan = Plan::default();
        Daps2::new(config).make_plan(&bench.view, &mut plan);
        plan.runs().iter().map(|run| (run.path.0, run.segments)).collect()
    }

    #[test]
    fn eta_packets_then_the_slow_window() {
        for (fast, slow, expect) in [
            (path(0, 10, 10, 0), path(1, 20, 10, 0), [(0, 2), (1, 10)]),
            (path(0, 10, 10, 4), path(1, 100, 10, 3), [(0, 6), (1, 7)]),
            (path(0, 10, 20, 0), path(1, 100, 5, 0), [(0, 10), (1, 5)]),
        ] {
            assert_eq!(plan(PRINTED, &[fast, slow]), expect);
        }
        assert_eq!(plan(PRINTED, &[path(0, 20, 10, 0), path(1, 10, 10, 0)]), [(1, 2), (0, 10)]);
    }

    #[test]
    fn eta_windows() {
        let rounds = Config { rounds: true };
        assert_eq!(plan(rounds, &[path(0, 10, 10, 10), path(1, 20, 10, 0)]), [(0, 20), (1, 10)]);
        assert_eq!(plan(rounds, &[path(0, 10, 20, 0), path(1, 100, 5, 0)]), [(0, 100), (1, 5)]);
    }

    #[test]
    fn each_of_three_paths_counts_the_slowest_ones_round_trip() {
        let paths = [path(0, 60, 4, 0), path(1, 10, 10, 0), path(2, 20, 10, 0)];
        assert_eq!(plan(PRINTED, &paths), [(1, 6), (2, 3), (0, 4)]);
    }

    #[test]
    fn what_fits_the_fast_window_stays_there() {
        let mut bench = Bench::new(&[path(0, 10, 10, 0), path(1, 20, 10, 0)]);
        bench.write(10);
        bench.round(&mut Daps2::new(PRINTED));
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (10, 0));
    }

    #[test]
    fn plans_follow_each_other_while_there_is_room() {
        let mut bench = Bench::new(&[path(0, 10, 4, 0), path(1, 30, 4, 0)]);
        bench.write(20);
        bench.round(&mut Daps2::new(PRINTED));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 2, 7], vec![3, 4, 5, 6]));
    }

    #[test]
    fn with_rounds_the_slow_path_sends_past_what_the_fast_one_owns() {
        let mut bench = Bench::new(&[path(0, 10, 4, 0), path(1, 30, 2, 0)]);
        bench.write(20);
        let mut daps2 = Daps2::new(Config { rounds: true });
        bench.round(&mut daps2);
        assert_eq!((bench.send(0), bench.send(1)), (vec![0, 1, 2, 3], vec![12, 13]));
        bench.acked(1, 2);
        bench.acked(0, 4);
        bench.round(&mut daps2);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![4, 5, 6, 7], vec![]));
    }
}
