//! LS-SCTP: a share per path, in proportion to window over round-trip time.

use crate::pick::{by_rtt, no_choice, rate};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Instant, PathId};

page!(
    "\
# Idea

Load-sharing SCTP: weighted round robin, in which a path's weight is the rate that its congestion window allows.

# Rule

```text
W_j = w_j/R_j
for each segment:  c_j = c_j + W_j/ΣW for every path;  it goes to the eligible path with the largest c_j
                   (ties to the lower id), whose c_j falls by 1
```

The weights are updated once per round trip of the slowest path.

# When it helps

Paths of similar delay whose windows change slowly: each gets its share evenly over time.

# When it hurts

The order of arrival is ignored: with different delays many segments wait for others at the receiver.

# Departures

The paper states the proportion only; credits are the choice here, because they yield the same shares over any number of
segments. A path that cannot be used keeps at most a window of credit or debt: it does not make up for the missed share
in one burst. A path without an RTT sample has no weight, unless no path has one. A lost segment is repaired by its own
path.

# References

Abd El Al, Saadawi, Lee, LS-SCTP: a bandwidth aggregation technique for stream control transmission protocol,
Computer Communications 27 (2004).
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "lssctp",
    aliases: &["ls-sctp"],
    about: "a share per path, in proportion to window over round-trip time",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(LsSctp::default()),
};

/// A path's weight and its credit.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    weight: f64,
    credit: f64,
}

/// LS-SCTP.
#[derive(Clone, Debug, Default)]
pub struct LsSctp {
    shares: [Share; PathId::LIMIT],
    /// The paths with a weight, as a set of [`PathId::bit`]s.
    known: u32,
    /// When the weights are to be updated.
    stale_at: Instant,
}

impl LsSctp {
    /// Updates the weights if they are old, or if the set of usable paths changed.
    fn weigh(&mut self, view: &View) {
        let set = view.candidates().fold(0, |set, p| set | p.id.bit());
        if self.known == set && view.now() < self.stale_at {
            return;
        }
        let sum: f64 = view.candidates().filter_map(rate).sum();
        for p in view.candidates() {
            let part = if sum > 0.0 { rate(p).unwrap_or(0.0) / sum } else { 1.0 / f64::from(set.count_ones()) };
            self.shares[p.id.index()].weight = part;
        }
        let slowest = view.candidates().filter_map(|p| p.srtt).max();
        self.known = set;
        self.stale_at = slowest.map_or(Instant::ZERO, |rtt| view.now() + rtt);
    }

    /// A path's credit once the next segment is distributed.
    fn owed(&self, path: &PathView) -> f64 {
        let Share { weight, credit } = self.shares[path.id.index()];
        let most = f64::from(path.cwnd);
        (credit + weight).min(most).max(-most)
    }

    /// The path with the greatest credit; ties go to the lower id.
    fn choose(&self, view: &View) -> Option<PathId> {
        let eligible = view.candidates().filter(|p| p.eligible()).map(|p| (p.id, self.owed(p)));
        let most = eligible.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        Some(most.0)
    }

    /// A segment was sent on `on`.
    fn charge(&mut self, view: &View, on: PathId) {
        for p in view.candidates() {
            let owed = self.owed(p);
            self.shares[p.id.index()].credit = if p.id == on { owed - 1.0 } else { owed };
        }
    }
}

impl Scheduler for LsSctp {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if no_choice(round) {
            return by_rtt(round);
        }
        self.weigh(round);
        while let Some(on) = self.choose(round) {
            if !round.send_next(on) {
                return;
            }
            self.charge(round, on);
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, _view: &View) {
        if let SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } = event {
            self.shares[path.index()] = Share::default();
            self.known = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    fn bound(bench: &Bench, paths: u8) -> Vec<usize> {
        (0..paths).map(|id| bench.bound(id).len()).collect()
    }

    #[test]
    fn shares_follow_window_over_round_trip_time() {
        for (packets, expect) in [(20, [18, 2]), (7, [6, 1])] {
            let mut bench = Bench::new(&[path(0, 20, 20, 0), path(1, 100, 10, 0)]);
            bench.write(packets);
            let mut scheduler = LsSctp::default();
            bench.round(&mut scheduler);
            assert_eq!(bound(&bench, 2), expect);
            let weights = scheduler.shares.map(|s| (s.weight * 1000.0) as u32);
            assert_eq!(weights[..2], [909, 90]);
        }
    }

    #[test]
    fn three_paths_and_several_rounds() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 20, 5, 0), path(2, 20, 5, 0)]);
        let mut scheduler = LsSctp::default();
        for _ in 0..5 {
            bench.write(2);
            bench.round(&mut scheduler);
        }
        assert_eq!(bound(&bench, 3), [5, 3, 2]);
    }

    #[test]
    fn weights_change_after_a_round_trip_of_the_slowest_path() {
        let mut bench = Bench::new(&[path(0, 20, 20, 0), path(1, 100, 10, 0)]);
        bench.write(1);
        let mut scheduler = LsSctp::default();
        bench.round(&mut scheduler);
        bench.view.path_mut(PathId(1)).unwrap().cwnd = 100;
        for (ms, expect) in [(99, 909), (100, 500)] {
            bench.at(ms);
            bench.round(&mut scheduler);
            assert_eq!((scheduler.shares[0].weight * 1000.0) as u32, expect);
        }
    }

    #[test]
    fn a_full_path_is_not_owed_more_than_its_window() {
        let mut bench = Bench::new(&[path(0, 20, 100, 0), path(1, 20, 4, 4)]);
        bench.view.path_mut(PathId(1)).unwrap().srtt = Some(anabranch_units::Duration::from_millis(1));
        bench.write(60);
        let mut scheduler = LsSctp::default();
        bench.round(&mut scheduler);
        assert_eq!((bound(&bench, 2), scheduler.shares[1].credit), (vec![60, 0], 4.0));
    }

    #[test]
    fn a_refused_segment_costs_no_credit() {
        let mut bench = Bench::with_window(&[path(0, 20, 20, 0), path(1, 100, 10, 0)], 0);
        bench.write(5);
        let mut scheduler = LsSctp::default();
        bench.round(&mut scheduler);
        assert!(scheduler.shares.iter().all(|s| s.credit == 0.0));
    }

    #[test]
    fn without_samples_the_paths_are_equal() {
        let mut bench = Bench::new(&[path(0, 20, 5, 0), path(1, 20, 5, 0)]);
        for id in [0, 1] {
            bench.view.path_mut(PathId(id)).unwrap().srtt = None;
        }
        bench.write(6);
        bench.round(&mut LsSctp::default());
        assert_eq!(bound(&bench, 2), [3, 3]);
    }
}
