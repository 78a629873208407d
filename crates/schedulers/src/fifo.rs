//! FIFO: the path that has room takes the next segment.

use crate::binding::{Binding, NS2, QUEUE};
use anabranch_plugin::registry::{Entry, Parameters};
use anabranch_plugin::schedule::{Cause, Round, Scheduler, View};

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

With `ns2_binding` each round binds, to one path after another, as many packets as its window exceeds those in flight,
whether or not packets wait there already. So queues grow, without a limit unless `queue` sets one.

# When it helps

Throughput with large buffers: every window is always full, and the share of a path follows its ACK clock,
cwnd/RTT.

# When it hurts

Reordering grows with the difference of delays, and with a finite receive buffer the connection stalls. With queues,
reordering grows with the difference of the times that the paths take for Q packets.

# Departures

The source describes it in prose only. Serving the other paths after the acknowledged one keeps a path in use that has
room but nothing in flight. The source does not say whether data is bound to a path before its window has room; with
`queue` it is. The only public Multipath TCP agent for ns-2 binds as `ns2_binding` does; what it subtracts from the window
is highest sent − highest acknowledged − duplicate acknowledgments, here the packets in flight. Two of its rules are left
out: that one subflow at a time is in slow start, and that none sends after four timeouts in a row.

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
    parameters: &[QUEUE.parameter, NS2.parameter],
    build: |p: &Parameters<'_>| Box::new(Fifo { binding: Binding::of(p) }),
};

/// FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo {
    binding: Binding,
}

impl Fifo {
    fn bind_ahead(&mut self, round: &mut Round<'_>) {
        self.binding.begin(round);
        let roomiest = |binding: &Binding, view: &View| {
            let open = view.candidates().filter(|p| binding.is_open(view, p));
            open.min_by_key(|p| (binding.waiting(p), p.id)).map(|p| p.id)
        };
        while let Some(on) = roomiest(&self.binding, round) {
            if !self.binding.bind(round, on) {
                return;
            }
        }
    }
}

impl Scheduler for Fifo {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if self.binding.is_ahead() {
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
    use anabranch_units::PathId;
    use anabranch_units::RecoveryPhase;

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
        bench.round_for(&mut Fifo { binding: Binding::queues(3) }, Cause::Ack(PathId(0)));
        // Path 1 has room for two, and ties go to the lower id.
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 4, 6], vec![1, 2, 3, 5, 7]));
    }

    #[test]
    fn a_queue_is_taken_back_while_a_timeout_is_repaired() {
        let mut bench = Bench::new(&[path(0, 10, 2, 2), path(1, 30, 2, 2)]);
        let mut fifo = Fifo { binding: Binding::queues(2) };
        bench.write(20);
        bench.round(&mut fifo);
        bench.view.path_mut(PathId(0)).unwrap().recovery = RecoveryPhase::Loss;
        bench.round_for(&mut fifo, Cause::Timeout(PathId(0)));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0, 1]));
    }

    #[test]
    fn with_the_binding_of_ns2_each_round_fills_the_windows_again_whatever_waits() {
        let mut bench = Bench::new(&[path(0, 10, 4, 2), path(1, 30, 4, 3)]);
        let mut fifo = Fifo { binding: Binding::ns2() };
        bench.write(20);
        bench.round_for(&mut fifo, Cause::Ack(PathId(1)));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2]));
        bench.round(&mut fifo);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 3, 4], vec![2, 5]));
        // A full window takes none.
        bench.view.path_mut(PathId(0)).unwrap().in_flight = 4;
        bench.round(&mut fifo);
        assert_eq!((bench.bound(0).len(), bench.bound(1)), (4, vec![2, 5, 6]));
    }

    #[test]
    fn a_queue_bounds_what_the_binding_of_ns2_lets_wait() {
        let mut bench = Bench::new(&[path(0, 10, 4, 2)]);
        let mut fifo = crate::build("fifo", &[("ns2_binding".to_owned(), 1.0), ("queue".to_owned(), 3.0)]).unwrap();
        bench.write(20);
        (0..9).for_each(|_| bench.round(&mut *fifo));
        assert_eq!(bench.bound(0).len(), 2 + 3);
    }
}
