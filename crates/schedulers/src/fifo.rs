//! FIFO: the path that has room takes the next segment.

use crate::pick::{Ahead, admits, free, queued, takes_ahead, takes_up_to};
use anabranch_engine::plugin::{Entry, Handle, Parameters, whole};
use anabranch_engine::schedule::{Cause, PathView, Round, Scheduler, View};

page!(
    "\
# Idea

The baseline of the FDPS evaluation: the path that has room takes the lowest unassigned data; paths are not compared.

# Rule

When an acknowledgment frees room on path j: while j is eligible and data waits, send the lowest unassigned
segment on j. Other paths that have room are served after it, in the order of their ids.

With `queue` = Q > 0 each path has its own queue, of Q packets beyond the room in its window. The lowest
unassigned segment goes to the path whose queue has the most room (ties to the lower id), and leaves when that path's
window allows.

# When it helps

Throughput with large buffers: every window is always full, and the share of a path follows its ACK clock,
cwnd/RTT.

# When it hurts

Reordering grows with the difference of delays, and with a finite receive buffer the connection stalls. With queues,
reordering grows with the difference of the times that the paths take for Q packets.

# Departures

The source describes it in prose only. Serving the other paths after the acknowledged one keeps a path in use that has
room but nothing in flight. The source does not say whether data is bound to a path before its window has room; with
`queue` it is.

# References

Le and Bui, Forward Delay-based Packet Scheduling Algorithm for Multipath TCP (baseline \"FIFO\").
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "fifo",
    aliases: &["naive"],
    about: "the path that has room takes the next segment",
    page: PAGE,
    parameters: &[QUEUE.parameter],
    build: |p: &Parameters<'_>| Box::new(Fifo::new(QUEUE.of(p))),
};

/// How far ahead data is bound.
pub(crate) const QUEUE: Handle<u64> = whole("queue", 0, 0..=100_000)
    .unit("packets")
    .about("most packets that may wait for a path, beyond the room in its window; 0 = nothing is bound ahead");

/// FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo {
    /// Most packets that may wait for a path beyond its free window.
    queue: u64,
    ahead: Ahead,
}

impl Fifo {
    /// A scheduler with nothing bound.
    pub fn new(queue: u64) -> Self {
        Self { queue, ahead: Ahead::default() }
    }

    fn bind_ahead(&mut self, round: &mut Round<'_>) {
        self.ahead.recall(round, takes_ahead);
        let waiting = |p: &PathView| queued(p).saturating_sub(free(p));
        let roomiest = |view: &View| {
            let open = view.candidates().filter(|p| takes_up_to(p, self.queue) && admits(view, p));
            open.min_by_key(|p| (waiting(p), p.id)).map(|p| p.id)
        };
        while let Some(on) = roomiest(round) {
            if self.ahead.enqueue(round, on).is_none() {
                return;
            }
        }
    }
}

impl Scheduler for Fifo {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if self.queue > 0 {
            return self.bind_ahead(round);
        }
        if let Cause::Ack(own) = round.cause()
            && round.candidates().any(|p| p.id == own)
        {
            round.fill(own);
        }
        let next = |view: &View| view.candidates().find(|p| p.eligible()).map(|p| p.id);
        while let Some(id) = next(round) {
            if !round.fill(id) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_trace::RecoveryPhase;
    use anabranch_units::PathId;

    /// Two paths with room for 2 and 1 packets, five packets waiting.
    fn bench() -> Bench {
        let mut bench = Bench::new(&[path(0, 10, 4, 2), path(1, 30, 4, 3)]);
        bench.write(5);
        bench
    }

    #[test]
    fn the_acknowledged_path_is_served_first() {
        let mut a_first = bench();
        a_first.round_for(&mut Fifo::default(), Cause::Ack(PathId(0)));
        assert_eq!((a_first.bound(0), a_first.bound(1)), (vec![0, 1], vec![2]));
        assert_eq!(a_first.view.backlog().bytes(), 2 * 1400);

        let mut b_first = bench();
        b_first.round_for(&mut Fifo::default(), Cause::Ack(PathId(1)));
        assert_eq!((b_first.bound(0), b_first.bound(1)), (vec![1, 2], vec![0]));
    }

    #[test]
    fn a_backup_rests() {
        let mut bench = bench();
        bench.view.path_mut(PathId(0)).unwrap().backup = true;
        bench.round_for(&mut Fifo::default(), Cause::Ack(PathId(0)));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0]));
    }

    #[test]
    fn queues_take_turns_beyond_full_windows_up_to_their_limit() {
        let mut bench = Bench::new(&[path(0, 10, 2, 2), path(1, 30, 3, 1)]);
        bench.write(20);
        bench.round_for(&mut Fifo::new(3), Cause::Ack(PathId(0)));
        // Path 1 has room for two, and ties go to the lower id.
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 4, 6], vec![1, 2, 3, 5, 7]));
    }

    #[test]
    fn a_queue_is_taken_back_while_a_timeout_is_repaired() {
        let mut bench = Bench::new(&[path(0, 10, 2, 2), path(1, 30, 2, 2)]);
        let mut fifo = Fifo::new(2);
        bench.write(20);
        bench.round(&mut fifo);
        bench.view.path_mut(PathId(0)).unwrap().recovery = RecoveryPhase::Loss;
        bench.round_for(&mut fifo, Cause::Timeout(PathId(0)));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0, 1]));
    }
}
