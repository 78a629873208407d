//! Round robin: one path after the other.

use crate::pick::live;
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag, whole};
use anabranch_plugin::schedule::{PathView, Round, Scheduler};
use anabranch_units::PathId;

page!(
    "\
# Idea

Rotate over the paths without priority.

# Rule

Scan last+1 … last+N in cyclic order of path ids, where last is the path used last; the first eligible path
takes up to `quantum` segments, then the scan continues behind it.

With `cwnd_limited = 0` the next path in the rotation must take its turn: while its window is full, nothing is
sent. The split is then equal, at the pace of the slowest path.

# When it helps

As a reference without knowledge of the paths; equal paths.

# When it hurts

A short transfer's last packets land on the slow path. A saturated sender with `cwnd_limited = 1` is clocked by ACKs and
behaves like fifo.

# Departures

The kernel keeps a quota per path and among untouched paths takes the last of its list; here the rotation is simple. With
`cwnd_limited = 0`, a path that cannot be waited for (a timeout, nothing in flight) loses its turn.

# References

Linux out-of-tree MPTCP, mptcp_rr.c (`num_segments` is `quantum` here).
"
);

const QUANTUM: Handle<u64> = whole("quantum", 1, 1..=65535)
    .unit("packets")
    .about("consecutive segments on one path (the kernel's num_segments)");
const CWND_LIMITED: Handle<bool> =
    flag("cwnd_limited", true).about("pass over a path whose window is full; if not, wait for it");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "roundrobin",
    aliases: &["rr"],
    about: "one path after the other",
    page: PAGE,
    parameters: &[QUANTUM.parameter, CWND_LIMITED.parameter],
    build: |p| Box::new(RoundRobin::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Consecutive segments on one path; at least 1.
    pub quantum: u64,
    /// Whether to pass over a path whose window is full, instead of waiting for it.
    pub cwnd_limited: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { quantum: QUANTUM.of(p), cwnd_limited: CWND_LIMITED.of(p) }
    }
}

/// Round robin.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    config: Config,
    /// The path used last; initially the one before path 0.
    last: PathId,
    /// Segments that it may still take in this turn.
    left: u64,
}

impl RoundRobin {
    /// A scheduler before its first turn.
    pub fn new(config: Config) -> Self {
        Self { config, last: PathId(PathId::LIMIT as u8 - 1), left: 0 }
    }

    /// The path in turn, if it can take a segment.
    fn next(&self, round: &Round<'_>) -> Option<PathId> {
        let (last, left) = (self.last.index(), self.left);
        let turn = |p: &&PathView| match p.id.index() {
            same if same == last && left > 0 => 0,
            id => 1 + (id + PathId::LIMIT - last - 1) % PathId::LIMIT,
        };
        let takes_turn = |p: &&PathView| p.eligible() || !self.config.cwnd_limited && live(round, p);
        let next = round.candidates().filter(takes_turn).min_by_key(turn)?;
        next.eligible().then_some(next.id)
    }
}

impl Scheduler for RoundRobin {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while let Some(id) = self.next(round) {
            if !round.send_next(id) {
                return;
            }
            let left = if id == self.last && self.left > 0 { self.left } else { self.config.quantum };
            self.last = id;
            self.left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    const PLAIN: Config = Config { quantum: 1, cwnd_limited: true };

    /// The path chosen for one packet when only the paths of `open` have room.
    fn choose(rr: &mut RoundRobin, paths: u8, open: &[u8]) -> Option<u8> {
        let views: Vec<_> = (0..paths).map(|i| path(i, 10, 1, u32::from(!open.contains(&i)))).collect();
        let mut bench = Bench::new(&views);
        bench.write(1);
        bench.round(rr);
        (0..paths).find(|i| !bench.bound(*i).is_empty())
    }

    #[test]
    fn two_open_paths_alternate() {
        let mut rr = RoundRobin::new(PLAIN);
        let chosen: Vec<_> = (0..4).map(|_| choose(&mut rr, 2, &[0, 1]).unwrap()).collect();
        assert_eq!(chosen, [0, 1, 0, 1]);
    }

    #[test]
    fn full_paths_are_passed_over() {
        let mut rr = RoundRobin::new(PLAIN);
        let open: [&[u8]; 6] = [&[0, 1, 2], &[0, 2], &[0, 2], &[1], &[], &[0, 1, 2]];
        let chosen: Vec<_> = open.iter().map(|o| choose(&mut rr, 3, o)).collect();
        assert_eq!(chosen, [Some(0), Some(2), Some(0), Some(1), None, Some(2)]);
    }

    #[test]
    fn a_quantum_stays_on_one_path() {
        let mut rr = RoundRobin::new(Config { quantum: 3, ..PLAIN });
        let mut bench = Bench::new(&[path(0, 10, 10, 0), path(1, 10, 10, 0)]);
        bench.write(8);
        bench.round(&mut rr);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 2, 6, 7], vec![3, 4, 5]));
    }

    #[test]
    fn a_full_path_holds_up_the_rest_unless_waiting_is_unsafe() {
        let waiting = Config { cwnd_limited: false, ..PLAIN };
        let mut rr = RoundRobin::new(waiting);
        assert_eq!(choose(&mut rr, 2, &[0, 1]), Some(0));
        assert_eq!(choose(&mut rr, 2, &[0]), None);
        assert_eq!(choose(&mut rr, 2, &[0, 1]), Some(1));

        let mut rr = RoundRobin::new(waiting);
        let mut bench = Bench::new(&[path(0, 10, 0, 0), path(1, 10, 4, 0)]);
        bench.write(2);
        bench.round(&mut rr);
        assert_eq!(bench.bound(1), [0, 1]);
    }

    #[test]
    fn an_equal_split_at_the_pace_of_the_slowest() {
        let mut rr = RoundRobin::new(Config { cwnd_limited: false, ..PLAIN });
        let mut bench = Bench::new(&[path(0, 10, 10, 0), path(1, 10, 2, 0)]);
        bench.write(20);
        bench.round(&mut rr);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 2, 4], vec![1, 3]));
    }
}
