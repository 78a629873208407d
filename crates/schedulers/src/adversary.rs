//! An adversary for tests of engine and simulator: commands from a seed, legal or not, and waits at random.
//!
//! Not in the registry. It always asks to be called again, and sometimes sends as a scheduler should, so that a
//! connection with a correct scheduler interface finishes under it.

use crate::pick::by_rtt;
use anabranch_plugin::schedule::{Repeat, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, Instant, PathId, Range, Rng};

/// Longest wait until it asks to be called again.
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// Most commands in one round.
const COMMANDS: u64 = 16;

/// Gives random commands.
#[derive(Clone, Debug)]
pub struct Adversary {
    rng: Rng,
    wakeup: Instant,
}

impl Adversary {
    /// The adversary of a run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::stream(seed, "adversary"), wakeup: Instant::ZERO }
    }

    /// A path: mostly an existing one.
    fn path(&mut self, view: &View) -> PathId {
        match view.paths().get(self.rng.below(view.paths().len() as u64 + 1) as usize) {
            Some(p) => p.id,
            None => PathId(self.rng.below(PathId::LIMIT as u64) as u8),
        }
    }

    /// A range near relevant data, of any length from zero to more than a segment.
    fn range(&mut self, view: &View) -> Range {
        let near = match self.rng.below(4) {
            0 => view.data_acked(),
            1 => view.backlog().first().map_or(view.written(), |r| r.start),
            2 => view.window_edge(),
            _ => view.data_acked() + self.rng.below(view.written().saturating_sub(view.data_acked()) + 1),
        };
        let start = near.saturating_add(self.rng.below(3000)).saturating_sub(1500);
        Range::new(start, start.saturating_add(self.rng.below(2000)))
    }

    fn command(&mut self, round: &mut Round<'_>) {
        let on = self.path(round);
        match self.rng.below(10) {
            0..=2 => round.send_next(on),
            3 => {
                let skip = self.rng.below(round.backlog().bytes().saturating_mul(2) + 1);
                round.send_ahead(on, skip)
            }
            4 => {
                let range = self.range(round);
                round.send(on, range)
            }
            5 => round.enqueue_next(on),
            6 => {
                let range = self.range(round);
                round.repeat(on, range, Repeat::Copy)
            }
            7 => {
                let first =
                    round.outstanding().first().map(|(run, _)| Range::new(run.start, run.end.min(run.start + 1400)));
                first.is_some_and(|head| round.repeat(on, head, Repeat::Opportunistic))
            }
            8 if self.rng.chance(0.1) => {
                round.recall(on);
                true
            }
            _ if self.rng.chance(0.02) => {
                round.penalise(on);
                true
            }
            _ => false,
        };
    }
}

impl Scheduler for Adversary {
    fn schedule(&mut self, round: &mut Round<'_>) {
        for _ in 0..self.rng.below(COMMANDS) {
            self.command(round);
        }
        if self.rng.chance(0.1) {
            by_rtt(round);
        }
        self.wakeup = round.now() + Duration::from_nanos(1 + self.rng.below(LONGEST_WAIT.as_nanos()));
    }

    fn on_event(&mut self, _event: &SchedulerEvent<'_>, view: &View) {
        self.wakeup = self.wakeup.max(view.now().next());
    }

    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.wakeup)
    }
}
