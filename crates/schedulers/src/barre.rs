//! Barré: shares in proportion to window over round-trip time, in blocks.

use crate::pick::{by_rtt, no_choice, rate};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::PathId;

page!(
    "\
# Idea

An early scheduler of Linux MPTCP: each path gets a share equal to its share of the estimated bandwidth, and the lowest
data goes to the fastest path, in blocks.

# Rule

```text
n   = min(packets bound to no path, Σ a_j)          a_j = room in the window of path j
n_j = n·(w_j/R_j)/Σ(w/R), by the largest remainder, at most a_j; the rest goes to the lowest R with room
```

In the order of R each path takes its n_j packets from the front of the waiting data. Ties of remainders go to the lower
id. Every call makes such a plan, independent of earlier ones.

# When it helps

An application that writes much at a time over paths with similar delays: few blocks, few borders between them.

# When it hurts

When acknowledgments free one packet at a time, each plan has one packet and goes where the room is: the rule then has no
effect. The arrival of a block is not predicted.

# Departures

The thesis's shares are proportional; the largest remainder and the cap at the window are the choices here. A
path without an RTT sample comes last and gets only the rest, unless no path has one.

# References

Barré, Implementation and assessment of modern host-based multipath solutions, PhD thesis, Université catholique
de Louvain, 2011.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "barre",
    aliases: &[],
    about: "blocks in proportion to window over round-trip time, the lowest data to the fastest path",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Barre::default()),
};

/// A path's block in a plan.
#[derive(Clone, Copy, Debug)]
struct Block {
    path: PathId,
    rate: f64,
    /// Packets for which the window has room.
    room: u64,
    packets: u64,
    /// The remainder after rounding down.
    rest: f64,
}

/// Barré's scheduler; keeps the memory of its plans.
#[derive(Clone, Debug, Default)]
pub struct Barre {
    blocks: Vec<Block>,
}

/// Distributes `n` packets over `blocks`, which are in the order of their RTT.
fn share(blocks: &mut [Block], n: u64) {
    let sum: f64 = blocks.iter().map(|b| b.rate).sum();
    let mut left = n;
    for b in blocks.iter_mut().filter(|_| sum > 0.0) {
        let exact = n as f64 * b.rate / sum;
        b.packets = exact as u64;
        b.rest = exact - b.packets as f64;
        left = left.saturating_sub(b.packets);
    }
    while left > 0
        && let Some(b) = blocks.iter_mut().filter(|b| b.rest > 0.0).max_by(|a, b| {
            let rest = a.rest.total_cmp(&b.rest);
            rest.then(b.path.cmp(&a.path))
        })
    {
        b.packets += 1;
        b.rest = 0.0;
        left -= 1;
    }
    for b in blocks.iter_mut() {
        left += b.packets.saturating_sub(b.room);
        b.packets = b.packets.min(b.room);
    }
    for b in blocks.iter_mut() {
        let more = left.min(b.room - b.packets);
        b.packets += more;
        left -= more;
    }
}

impl Barre {
    /// Makes the plan for the waiting data.
    fn plan(&mut self, view: &View) {
        self.blocks.clear();
        let eligible = || view.candidates().filter(|p| p.eligible());
        self.blocks.extend(eligible().map(|p: &PathView| Block {
            path: p.id,
            rate: rate(p).unwrap_or(0.0),
            room: p.room().into(),
            packets: 0,
            rest: 0.0,
        }));
        let key = |b: &Block| view.path(b.path).map(|p| (p.rtt_or_max(), p.id));
        self.blocks.sort_unstable_by_key(key);
        let mss = eligible().map(|p| p.mss).min().unwrap_or(1).max(1);
        let waiting = view.backlog().bytes().div_ceil(mss.into());
        let room = self.blocks.iter().map(|b| b.room).sum();
        share(&mut self.blocks, waiting.min(room));
    }
}

impl Scheduler for Barre {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if no_choice(round) {
            return by_rtt(round);
        }
        if round.backlog().is_empty() {
            return;
        }
        self.plan(round);
        for block in &self.blocks {
            for _ in 0..block.packets {
                if !round.send_next(block.path) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    fn shares(rates: &[f64], rooms: &[u64], n: u64) -> Vec<u64> {
        let block = |(i, (rate, room)): (usize, (&f64, &u64))| Block {
            path: PathId(i as u8),
            rate: *rate,
            room: *room,
            packets: 0,
            rest: 0.0,
        };
        let mut blocks: Vec<_> = rates.iter().zip(rooms).enumerate().map(block).collect();
        share(&mut blocks, n);
        blocks.iter().map(|b| b.packets).collect()
    }

    #[test]
    fn the_lowest_data_goes_to_the_fastest_path_in_one_block() {
        let mut bench = Bench::new(&[path(0, 20, 20, 0), path(1, 100, 10, 0)]);
        bench.write(20);
        bench.round(&mut Barre::default());
        assert_eq!((bench.bound(0), bench.bound(1)), ((0..18).collect(), vec![18, 19]));
    }

    #[test]
    fn the_fastest_need_not_be_the_first() {
        let mut bench = Bench::new(&[path(0, 100, 10, 0), path(1, 20, 20, 0)]);
        bench.write(20);
        bench.round(&mut Barre::default());
        assert_eq!((bench.bound(1), bench.bound(0)), ((0..18).collect(), vec![18, 19]));
    }

    #[test]
    fn largest_remainders_and_room() {
        assert_eq!(shares(&[0.5, 0.25, 0.25], &[10; 3], 10), [5, 3, 2]);
        assert_eq!(shares(&[1.0, 0.1], &[20; 2], 7), [6, 1]);
        assert_eq!(shares(&[0.9, 0.1], &[3, 20], 10), [3, 7]);
        assert_eq!(shares(&[0.5, 0.3, 0.2], &[2, 20, 20], 10), [2, 6, 2]);
        assert_eq!(shares(&[0.0, 0.0], &[3, 5], 6), [3, 3]);
        assert_eq!(shares(&[1.0, 0.0], &[20; 2], 6), [6, 0]);
    }

    #[test]
    fn a_packet_freed_goes_where_the_room_is() {
        let mut bench = Bench::new(&[path(0, 20, 20, 20), path(1, 100, 10, 9)]);
        bench.write(5);
        bench.round(&mut Barre::default());
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0]));
    }
}
