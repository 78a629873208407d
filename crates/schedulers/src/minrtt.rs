//! minRTT: the lowest round-trip time first.

use crate::pick::by_rtt;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{Round, Scheduler};

page!(
    "\
# Idea

The default of the out-of-tree Linux MPTCP and of most QUIC stacks: fill the window of the path with the
lowest round-trip time, then the next.

# Rule

pick = the eligible path j with the lowest smoothed RTT; ties go to the lower id. Nothing is sent if none is
eligible.

# When it helps

Paths of similar delay, or buffers large enough for the reordering that different delays cause.

# When it hurts

With a small window one slow packet holds back the whole connection (head-of-line blocking). The smoothed RTT
keeps a path \"slow\" long after its queue has drained. Equal RTTs give a fixed priority, not balance.

# Departures

None. This is the plain form: the papers' \"LowRTT\" or \"minRTT\" also retransmit and penalise, which is
`minrtt+pr`.

# References

Linux out-of-tree MPTCP, mptcp_sched.c. Ferlin et al., BLEST, IFIP Networking 2016 (as the baseline).
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "minrtt",
    aliases: &["lowrtt"],
    about: "the path with the lowest round-trip time first",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(MinRtt),
};

/// minRTT; has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn schedule(&mut self, round: &mut Round<'_>) {
        by_rtt(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_units::PathId;
    use anabranch_units::RecoveryPhase;

    #[test]
    fn fills_the_faster_window_first() {
        let mut bench = Bench::new(&[path(0, 10, 10, 0), path(1, 20, 10, 0)]);
        bench.write(11);
        bench.round(&mut MinRtt);
        assert_eq!((bench.bound(0), bench.bound(1)), ((0..10).collect(), vec![10]));
    }

    #[test]
    fn passes_over_a_path_after_its_timeout_but_not_in_fast_recovery() {
        for (phase, cwnd, in_flight, expect) in
            [(RecoveryPhase::Loss, 10, 0, vec![]), (RecoveryPhase::Recovery, 5, 4, vec![0])]
        {
            let mut bench = Bench::new(&[path(0, 10, cwnd, in_flight), path(1, 20, 10, 0)]);
            bench.view.path_mut(PathId(0)).unwrap().recovery = phase;
            bench.write(1);
            bench.round(&mut MinRtt);
            assert_eq!(bench.bound(0), expect, "{phase:?}");
            assert_eq!(bench.bound(0).len() + bench.bound(1).len(), 1);
        }
    }

    #[test]
    fn sends_nothing_without_room() {
        let mut bench = Bench::new(&[path(0, 10, 10, 10), path(1, 20, 10, 10)]);
        bench.write(3);
        bench.round(&mut MinRtt);
        assert_eq!(bench.view.backlog().bytes(), 3 * 1400);
    }

    #[test]
    fn unknown_round_trip_times_come_last_and_in_order() {
        let mut bench = Bench::new(&[path(0, 10, 2, 0), path(1, 20, 2, 0), path(2, 30, 2, 0)]);
        bench.view.path_mut(PathId(0)).unwrap().srtt = None;
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        bench.write(5);
        bench.round(&mut MinRtt);
        assert_eq!([bench.bound(0), bench.bound(1), bench.bound(2)], [vec![2, 3], vec![4], vec![0, 1]]);
    }
}
