//! FIFO: whoever has room takes the next segment.

use crate::pick::fill;
use anabranch_engine::plugin::Entry;
use anabranch_engine::schedule::{Cause, Round, Scheduler, View};

page!(
    "\
# Idea

The baseline of the FDPS evaluation: whoever has room takes the lowest unassigned data; paths are not
compared.

# Rule

When an acknowledgment frees room on path j: while j is eligible and data waits, send the lowest unassigned
segment on j. Other paths that have room are served after it, in the order of their ids.

# When it helps

Throughput with large buffers: every window is always full, and the share of a path follows its ACK clock,
cwnd/RTT.

# When it hurts

Reordering grows with the difference of delays, and with a finite receive buffer the connection stalls.

# Departures

The source describes it in prose only. Serving the other paths after the one that was acknowledged keeps a
path alive that has room but nothing in flight.

# References

Le and Bui, Forward Delay-based Packet Scheduling Algorithm for Multipath TCP (baseline \"FIFO\").
"
);

/// The registry's entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "fifo",
    aliases: &["naive"],
    about: "whoever has room takes the next segment",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Fifo),
};

/// FIFO; has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Scheduler for Fifo {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if let Cause::Ack(own) = round.cause()
            && round.candidates().any(|p| p.id == own)
        {
            fill(round, own);
        }
        let next = |view: &View| view.candidates().find(|p| p.eligible()).map(|p| p.id);
        while let Some(id) = next(round) {
            if !fill(round, id) {
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

    /// Two paths with room for 2 and 1 packets, five packets waiting.
    fn bench() -> Bench {
        let mut bench = Bench::new(&[path(0, 10, 4, 2), path(1, 30, 4, 3)]);
        bench.write(5);
        bench
    }

    #[test]
    fn the_acknowledged_path_is_served_first() {
        let mut a_first = bench();
        a_first.round_for(&mut Fifo, Cause::Ack(PathId(0)));
        assert_eq!((a_first.bound(0), a_first.bound(1)), (vec![0, 1], vec![2]));
        assert_eq!(a_first.view.backlog().bytes(), 2 * 1400);

        let mut b_first = bench();
        b_first.round_for(&mut Fifo, Cause::Ack(PathId(1)));
        assert_eq!((b_first.bound(0), b_first.bound(1)), (vec![1, 2], vec![0]));
    }

    #[test]
    fn a_backup_rests() {
        let mut bench = bench();
        bench.view.path_mut(PathId(0)).unwrap().backup = true;
        bench.round_for(&mut Fifo, Cause::Ack(PathId(0)));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0]));
    }
}
