//! Redundant: every path carries everything.

use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{Repeat, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{PathId, Range};

page!(
    "\
# Idea

The least latency at any cost: copies of everything on all active paths (ReMP).

# Rule

Each path keeps the offset behind its last segment. Paths take turns. The next segment of a
path is the lowest one at or above that offset that it has not carried and that the peer has not acknowledged:
sent already by another path, it is a copy; not yet sent at all, it is new data. Backup paths carry only new
data, and only if no other path is usable.

# When it helps

Short messages over lossy or changing paths: delivery as soon as the first copy arrives, and no head-of-line
blocking.

# When it hurts

Goodput is that of the best path. A slow path lags behind and skips what is acknowledged meanwhile. The peer's
window is consumed by the leader. Coupled congestion control sees inflated windows.

# Departures

The newer of the kernel's two forms. Penalisation has no purpose here, so it takes no suffix.

# References

Linux out-of-tree MPTCP, mptcp_redundant.c. Frommgen et al., ReMP TCP, ICC 2016.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "redundant",
    aliases: &["remp"],
    about: "every path carries everything",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Redundant::default()),
};

/// Redundant.
#[derive(Clone, Debug, Default)]
pub struct Redundant {
    /// Per path: everything below was carried by it, or is acknowledged.
    next: [u64; PathId::LIMIT],
    /// The path served last.
    last: Option<PathId>,
    /// New segments of this round, ascending; not yet among the outstanding ones. Kept for its memory.
    fresh: Vec<Range>,
}

impl Redundant {
    /// The next path in turn, of those not in `done`.
    fn turn(&self, view: &View, done: u32) -> Option<PathId> {
        let after = self.last.map_or(0, |last| last.index() + 1);
        let ready = view.candidates().filter(|p| p.eligible() && done & p.id.bit() == 0);
        ready.min_by_key(|p| (p.id.index() + PathId::LIMIT - after) % PathId::LIMIT).map(|p| p.id)
    }

    /// The lowest data that others carry or are about to carry, and `on` does not.
    fn missing(&self, view: &View, on: PathId) -> Option<Range> {
        let from = self.next[on.index()];
        let sent = view.outstanding().from(from).find(|(_, copies)| !copies.on(on)).map(|(run, _)| run);
        let missing = sent.or_else(|| {
            let at = self.fresh.partition_point(|r| r.end <= from);
            self.fresh.get(at).copied()
        })?;
        Some(Range::new(missing.start.max(from), missing.end))
    }

    /// Gives `on` its next segment; false if there is none for it.
    fn serve(&mut self, round: &mut Round<'_>, on: PathId) -> bool {
        let Some(path) = round.path(on).copied() else { return false };
        let new = round.next_new(0, path.mss);
        let missing = if path.backup { None } else { self.missing(round, on) };
        let copy = missing.filter(|old| new.is_none_or(|new| old.start < new.start));
        let (given, upto) = match (copy, new) {
            (Some(old), _) => {
                let segment = Range::new(old.start, old.end.min(old.start + u64::from(path.mss)));
                (round.repeat(on, segment, Repeat::Copy), segment.end)
            }
            (None, Some(new)) => {
                let sent = round.send_next(on);
                if sent {
                    self.fresh.push(new);
                }
                (sent, new.end)
            }
            (None, None) => return false,
        };
        if given {
            self.next[on.index()] = upto;
        }
        given
    }
}

impl Scheduler for Redundant {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.fresh.clear();
        let mut done = 0;
        while let Some(on) = self.turn(round, done) {
            if self.serve(round, on) {
                self.last = Some(on);
            } else {
                done |= on.bit();
            }
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, _view: &View) {
        if let SchedulerEvent::PathUp { path } = event {
            self.next[path.index()] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::PathView;
    use anabranch_units::SendKind;

    #[test]
    fn copies_everything_at_once_and_in_turn() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 60, 10, 0)]);
        bench.write(3);
        let mut redundant = Redundant::default();
        bench.round(&mut redundant);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 2], vec![0, 1, 2]));
        assert!(bench.view.queue(PathId(0)).all(|q| q.kind == SendKind::First));
        assert!(bench.view.queue(PathId(1)).all(|q| q.kind == SendKind::Copy));
    }

    #[test]
    fn a_laggard_skips_what_is_acknowledged() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 60, 1, 0)]);
        bench.write(3);
        let mut redundant = Redundant::default();
        bench.round(&mut redundant);
        assert_eq!((bench.send(0), bench.send(1)), (vec![0, 1, 2], vec![0]));
        bench.view.on_data_acked(3 * MSS);
        bench.acked(0, 3);
        bench.acked(1, 1);
        bench.round(&mut redundant);
        assert_eq!(bench.bound(1), []);
        bench.write(2);
        bench.round(&mut redundant);
        assert_eq!((bench.send(0), bench.send(1)), (vec![3, 4], vec![3]));
    }

    #[test]
    fn a_leader_goes_on_while_the_laggard_is_full() {
        let mut bench = Bench::new(&[path(0, 20, 4, 0), path(1, 60, 2, 0)]);
        bench.write(8);
        let mut redundant = Redundant::default();
        bench.round(&mut redundant);
        assert_eq!((bench.send(0), bench.send(1)), (vec![0, 1, 2, 3], vec![0, 1]));
        bench.acked(1, 2);
        bench.round(&mut redundant);
        assert_eq!(bench.send(1), [2, 3]);
    }

    #[test]
    fn backups_carry_new_data_only() {
        let backup = |id| PathView { backup: true, ..path(id, 20, 10, 0) };
        let mut bench = Bench::new(&[backup(0), backup(1)]);
        bench.write(4);
        bench.round(&mut Redundant::default());
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 2], vec![1, 3]));
    }

    #[test]
    fn data_given_back_by_a_lost_path_is_sent_once_more_by_none() {
        // Path 0 binds 0..3 and dies before sending; path 1 has copies queued.
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 60, 10, 0)]);
        bench.write(3);
        bench.round(&mut Redundant::default());
        bench.view.remove_path(PathId(0));
        assert_eq!(bench.send(1), [0, 1, 2]);
        assert!(bench.view.backlog().is_empty());
        assert_eq!(bench.view.outstanding().bytes(), 3 * MSS);
    }
}
