//! Active-backup: one path carries everything, the others are backups.

use crate::pick::live;
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag, seconds};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::{Duration, Instant, PathId};

page!(
    "\
# Idea

One path carries everything; if it fails, the next in order takes over, and hands back once the better one
works again. What bonding drivers call active-backup.

# Rule

The order is that of the scenario, paths with `backup = true` after the others. The active path is the first
that works; while its window is full, nothing is sent. A path works if it is usable (established, not
silent, no timeout since its last acknowledgment) and can send or is about to be able to.

```text
the active path fails          → the first path in order that works, at once
a better path works again      → back to it after `updelay` of working, if `reselect`
```

# When it helps

One connection over two uplinks of which only one should be paid for, powered or trusted; interactive traffic that
must not be reordered; as the reference for the value of aggregation.

# When it hurts

Nothing is aggregated. The failure of the active path is detected only by its retransmission timeout, because no other
path delivers meanwhile; its data is retransmitted then.

# Departures

No paper: the rule is that of the Linux bonding driver (`mode=active-backup`, `updelay`,
`primary_reselect`), on the state of subflows instead of links. Retransmissions of a subflow stay on it, as TCP requires.
Stranded data goes to the active path alone.

# References

Linux, Documentation/networking/bonding.rst. RFC 8684 §3.3.8 (backup paths).
"
);

const UPDELAY: Handle<Duration> =
    seconds("updelay", 0.0, 0.0..=86_400.0).about("how long a better path must have worked again before it takes over");
const RESELECT: Handle<bool> =
    flag("reselect", true).about("return to a better path; if not, the active one stays until it fails");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "active-backup",
    aliases: &["backup"],
    about: "one path carries everything, the next in order takes over if it fails",
    page: PAGE,
    parameters: &[UPDELAY.parameter, RESELECT.parameter],
    build: |p| Box::new(ActiveBackup::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How long a better path must have worked before it takes over.
    pub updelay: Duration,
    /// Whether to return to a better path at all.
    pub reselect: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { updelay: UPDELAY.of(p), reselect: RESELECT.of(p) }
    }
}

/// Active-backup.
#[derive(Clone, Debug)]
pub struct ActiveBackup {
    config: Config,
    active: Option<PathId>,
    /// The best working path while another one is active, and since when.
    better: Option<(PathId, Instant)>,
}

impl ActiveBackup {
    /// A scheduler before its first choice.
    pub fn new(config: Config) -> Self {
        Self { config, active: None, better: None }
    }

    /// The path that is active now.
    fn choose(&mut self, view: &View) -> Option<PathId> {
        let works = |p: &&PathView| p.usable && live(view, p);
        let order = |p: &&PathView| (p.backup, p.id);
        let best = view.paths().iter().filter(works).min_by_key(order)?.id;
        let holds = self.active.filter(|id| view.path(*id).as_ref().is_some_and(works));
        let Some(holds) = holds.filter(|active| *active != best) else {
            (self.active, self.better) = (Some(best), None);
            return self.active;
        };
        let since = self.better.filter(|(id, _)| *id == best).map_or(view.now(), |(_, since)| since);
        self.better = Some((best, since));
        if self.config.reselect && view.now().since(since) >= self.config.updelay {
            (self.active, self.better) = (Some(best), None);
        } else {
            self.active = Some(holds);
        }
        self.active
    }
}

impl Scheduler for ActiveBackup {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if let Some(id) = self.choose(round) {
            round.fill(id);
        }
    }

    fn rescue(&mut self, round: &mut Round<'_>) {
        let active = self.choose(round);
        round.rescue_by(|p| (Some(p.id) == active).then_some(()));
    }

    // A backup that is left alone must keep its wait for a better path.
    fn serves_lone_path(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_units::RecoveryPhase;

    const PLAIN: Config = Config { updelay: Duration::ZERO, reselect: true };

    fn bench() -> Bench {
        Bench::new(&[path(0, 50, 4, 0), path(1, 10, 4, 0), path(2, 10, 4, 0)])
    }

    /// The paths of the next packet; removes it from them.
    fn next(bench: &mut Bench, scheduler: &mut ActiveBackup) -> Vec<u8> {
        bench.write(1);
        bench.round(scheduler);
        (0..3).filter(|id| !bench.send(*id).is_empty()).collect()
    }

    fn usable(bench: &mut Bench, id: u8, usable: bool) {
        bench.view.path_mut(PathId(id)).unwrap().usable = usable;
    }

    #[test]
    fn the_first_path_carries_all_and_is_waited_for() {
        let mut bench = bench();
        bench.write(6);
        bench.round(&mut ActiveBackup::new(PLAIN));
        assert_eq!([bench.bound(0), bench.bound(1), bench.bound(2)], [vec![0, 1, 2, 3], vec![], vec![]]);
    }

    #[test]
    fn the_next_takes_over_and_hands_back() {
        let (mut bench, mut scheduler) = (bench(), ActiveBackup::new(PLAIN));
        assert_eq!(next(&mut bench, &mut scheduler), [0]);
        usable(&mut bench, 0, false);
        assert_eq!(next(&mut bench, &mut scheduler), [1]);
        usable(&mut bench, 1, false);
        assert_eq!(next(&mut bench, &mut scheduler), [2]);
        usable(&mut bench, 0, true);
        assert_eq!(next(&mut bench, &mut scheduler), [0]);
    }

    #[test]
    fn a_better_path_must_have_worked_for_a_while() {
        let second = Duration::from_secs(1);
        let (mut bench, mut scheduler) = (bench(), ActiveBackup::new(Config { updelay: second, ..PLAIN }));
        usable(&mut bench, 0, false);
        assert_eq!(next(&mut bench, &mut scheduler), [1]);
        // The path flaps: the time begins again.
        for (ms, works, expect) in
            [(100, true, 1), (900, false, 1), (1000, true, 1), (1999, true, 1), (2000, true, 0), (2001, false, 1)]
        {
            bench.at(ms);
            usable(&mut bench, 0, works);
            bench.view.path_mut(PathId(expect)).unwrap().in_flight = 0;
            assert_eq!(next(&mut bench, &mut scheduler), [expect], "at {ms} ms");
        }
    }

    #[test]
    fn without_reselect_the_active_path_stays() {
        let (mut bench, mut scheduler) = (bench(), ActiveBackup::new(Config { reselect: false, ..PLAIN }));
        usable(&mut bench, 0, false);
        assert_eq!(next(&mut bench, &mut scheduler), [1]);
        usable(&mut bench, 0, true);
        assert_eq!(next(&mut bench, &mut scheduler), [1]);
        usable(&mut bench, 1, false);
        assert_eq!(next(&mut bench, &mut scheduler), [0]);
    }

    #[test]
    fn backups_come_last_and_recovery_from_a_timeout_is_no_work() {
        let (mut bench, mut scheduler) = (bench(), ActiveBackup::new(PLAIN));
        bench.view.path_mut(PathId(0)).unwrap().backup = true;
        assert_eq!(next(&mut bench, &mut scheduler), [1]);
        bench.view.path_mut(PathId(1)).unwrap().recovery = RecoveryPhase::Loss;
        assert_eq!(next(&mut bench, &mut scheduler), [2]);
        bench.view.path_mut(PathId(2)).unwrap().recovery = RecoveryPhase::Loss;
        assert_eq!(next(&mut bench, &mut scheduler), [0]);
    }

    #[test]
    fn stranded_data_goes_to_the_active_path() {
        let (mut bench, mut scheduler) = (bench(), ActiveBackup::new(PLAIN));
        assert_eq!(next(&mut bench, &mut scheduler), [0]);
        bench.view.path_mut(PathId(1)).unwrap().srtt = Some(Duration::from_millis(90));
        usable(&mut bench, 0, false);
        bench.view.strand(PathId(0));
        bench.rescue(&mut scheduler);
        assert_eq!([bench.bound(1), bench.bound(2)], [vec![0], vec![]]);
    }
}
