//! A plan that assigns the next segments to paths, for schedulers that decide for many at once.

use crate::pick::live;
use anabranch_plugin::schedule::{Round, View};
use anabranch_units::PathId;

/// Consecutive segments that one path owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub path: PathId,
    pub segments: u64,
}

/// The owners of the next new segments, in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    runs: Vec<Run>,
    /// Paths that own a part, as a set of [`PathId::bit`]s.
    owners: u32,
}

impl Plan {
    /// Gives the following `segments` to `path`.
    pub fn push(&mut self, path: PathId, segments: u64) {
        if segments == 0 {
            return;
        }
        self.owners |= path.bit();
        match self.runs.last_mut() {
            Some(last) if last.path == path => last.segments += segments,
            _ => self.runs.push(Run { path, segments }),
        }
    }

    /// Drops the plan.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.owners = 0;
    }

    /// Calls `put` with each path that owns a part, and its segments that are not handed out.
    pub fn left(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        for path in PathId::of_bits(self.owners) {
            let own = self.runs.iter().filter(|run| run.path == path).map(|run| run.segments);
            put("planned", Some(path), own.sum::<u64>() as f64);
        }
    }

    /// The planned segments that are not handed out, first to go first.
    #[cfg(test)]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The owner of the next new segment; `None` if the plan is handed out.
    pub fn next(&self) -> Option<PathId> {
        self.runs.first().map(|run| run.path)
    }

    /// The next new segment went to its owner.
    pub fn advance(&mut self) {
        if let Some(first) = self.runs.first_mut() {
            first.segments -= 1;
            if first.segments == 0 {
                self.runs.remove(0);
            }
        }
    }

    /// Sends by the plan: a path sends its own segments only, and later data overtakes data that waits for another
    /// path. Calls `make` for a new plan whenever the old one is handed out. Segments of paths that cannot be waited
    /// for go to the next in the plan.
    pub fn follow(&mut self, round: &mut Round<'_>, mut make: impl FnMut(&View, &mut Self)) {
        self.drop_failed(round);
        while !round.backlog().is_empty() && round.fastest_eligible().is_some() {
            if self.runs.is_empty() {
                make(round, self);
            }
            if self.runs.is_empty() {
                return;
            }
            for i in 0..round.paths().len() {
                let p = round.paths()[i];
                if self.owners & p.id.bit() != 0 && p.eligible() {
                    self.send_own(round, p.id);
                }
            }
            if !self.runs.is_empty() {
                return;
            }
        }
    }

    /// Drops the segments of paths that cannot be waited for.
    fn drop_failed(&mut self, view: &View) {
        let alive = view.candidates().filter(|p| live(view, p)).fold(0, |set, p| set | p.id.bit());
        if self.owners & !alive != 0 {
            self.runs.retain(|run| alive & run.path.bit() != 0);
            self.owners &= alive;
        }
    }

    /// Sends the segments of `on`, as far as its window permits.
    fn send_own(&mut self, round: &mut Round<'_>, on: PathId) {
        let mss = round.path(on).map_or(0, |p| u64::from(p.mss));
        let (mut at, mut others) = (0, 0);
        while at < self.runs.len() {
            let run = &mut self.runs[at];
            if run.path != on {
                others += run.segments;
                at += 1;
            } else if run.segments == 0 {
                self.runs.remove(at);
            } else if round.send_ahead(on, others * mss) {
                run.segments -= 1;
            } else {
                return;
            }
        }
        self.owners &= !on.bit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_plugin::schedule::{Cause, PathView};
    use anabranch_units::RecoveryPhase;

    #[test]
    fn a_plan_of_which_no_owner_is_left_is_made_anew() {
        let failed = PathView { recovery: RecoveryPhase::Loss, ..path(0, 20, 4, 4) };
        let mut bench = Bench::new(&[failed, path(1, 60, 2, 0)]);
        bench.write(10);
        let mut plan = Plan::default();
        plan.push(PathId(0), 4);
        let mut round = Round::new(&mut bench.view, &mut bench.windows, Cause::Written);
        plan.follow(&mut round, |_, plan| plan.push(PathId(1), 5));
        assert_eq!(bench.bound(1), [0, 1]);
        assert_eq!(plan.runs(), [Run { path: PathId(1), segments: 3 }]);
    }
}
