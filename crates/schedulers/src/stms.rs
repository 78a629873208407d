//! STMS: the slow path sends ahead by a gap, which its acknowledgments adjust.

use crate::pick::{fastest_live, rate};
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::{Entry, Handle, Parameters, number};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Instant, PathId};

page!(
    "\
# Idea

Slide together: the fast path sends the lowest data, a slower path data that lies a gap further on, so that both arrive
in order. The gap is adjusted when the slower path's data arrives too early or too late, without estimates of the paths.

# Rule

The fast path F sends U[0], U[1], …, the data bound to no path; slower path j sends U[G_j], U[G_j + 1], …

```text
G_j at first = Σ over faster paths i of round(w_i/R_i·(D_j − D_i)),  D = R/2

a packet s of path j is acknowledged, by a segment whose DATA_ACK is A (all in packets):
  A ≤ s:      it came E = s − A too early:       G = G − ⌈E/gain⌉, at least 0
  A > s + 1:  L = A − s − 1 waited for it:       G = G + ⌈L/gain⌉
```

at most once per round trip of path j. If G_j or fewer packets wait, path j sends nothing: the faster ones finish.

# When it helps

Paths of different delay and small buffers: the receiver holds little out-of-order data of either path.

# When it hurts

After a loss on the fast path the slow path seems early. The end of a transfer goes over the fast path alone. The
gap oscillates where the delays change within a few round trips.

# Departures

The paper specifies the two gaps and their adjustment by acknowledgments. Without a source, and chosen here: the step of
a quarter; the two round trips after a loss on path j in which its gap does not change, because a retransmission is late,
whatever the gap; with more than two paths, a gap for each path slower than F. F is the path with the lowest RTT that may
be waited for. A path without an RTT sample has no gap at first.

# References

Shi, Cui, Wang, Hu, Dai, Wang, Zheng, STMS: Improving MPTCP Throughput Under Heterogeneous Networks, USENIX ATC
2018.
"
);

const GAIN: Handle<f64> =
    number("gain", 4.0, 1.0..=1024.0).about("divisor of an error when it changes the gap: 4 = a quarter");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "stms",
    aliases: &[],
    about: "slower paths send ahead by a gap that their acknowledgments adjust",
    page: PAGE,
    parameters: &[GAIN.parameter],
    build: |p: &Parameters<'_>| Box::new(Stms::new(GAIN.of(p))),
};

/// How far ahead a path sends.
#[derive(Clone, Copy, Debug)]
struct Gap {
    packets: u64,
    /// The time of the next change.
    settled: Instant,
}

/// STMS.
#[derive(Clone, Debug)]
pub struct Stms {
    gain: f64,
    gaps: [Option<Gap>; PathId::LIMIT],
}

/// The initial gap, from the paths' rates and delays.
fn first_gap(view: &View, path: &PathView) -> u64 {
    let Some(rtt) = path.srtt else { return 0 };
    let faster = view.candidates().filter(|p| p.srtt.is_some_and(|other| other < rtt));
    let ahead = |p: &PathView| {
        let lead = (rtt.saturating_sub(p.srtt?) / 2).as_secs_f64();
        Some(libm::round(rate(p)? * lead) as u64)
    };
    faster.filter_map(ahead).sum()
}

impl Stms {
    /// A scheduler without gaps.
    pub fn new(gain: f64) -> Self {
        Self { gain, gaps: [None; PathId::LIMIT] }
    }

    /// Packets that `path` leaves to faster ones.
    fn gap(&mut self, view: &View, path: &PathView) -> u64 {
        let gap = &mut self.gaps[path.id.index()];
        if gap.is_none() && path.srtt.is_some() {
            *gap = Some(Gap { packets: first_gap(view, path), settled: Instant::ZERO });
        }
        gap.map_or(0, |gap| gap.packets)
    }

    /// A packet of a path with a gap was acknowledged.
    fn adapt(&mut self, path: &PathView, acked: &Acked) {
        let (Some(data_ack), Some(gap)) = (acked.data_ack, &mut self.gaps[path.id.index()]) else { return };
        if acked.packets == 0 || acked.now < gap.settled {
            return;
        }
        let step = |bytes: u64| libm::ceil(bytes as f64 / f64::from(path.mss.max(1)) / self.gain) as u64;
        let early = acked.data_end.saturating_sub(path.mss.into()).saturating_sub(data_ack);
        let late = data_ack.saturating_sub(acked.data_end);
        gap.packets = gap.packets.saturating_sub(step(early)).saturating_add(step(late));
        gap.settled = acked.now + path.srtt.unwrap_or_default();
    }
}

impl Scheduler for Stms {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).map(|p| p.id) else { return };
        round.fill(fast);
        let mut done = fast.bit();
        // In the order of delay, so that a path's gap counts from the data that the faster ones have left.
        while let Some(p) = next(round, done).copied() {
            done |= p.id.bit();
            let skip = self.gap(round, &p) * u64::from(p.mss);
            while round.send_ahead(p.id, skip) {}
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        match event {
            SchedulerEvent::Ack { path, acked } => {
                if let Some(p) = view.path(*path) {
                    self.adapt(p, acked);
                }
            }
            // A retransmission is late, whatever the gap.
            SchedulerEvent::Loss { path } | SchedulerEvent::Timeout { path } => {
                if let (Some(gap), Some(rtt)) = (&mut self.gaps[path.index()], view.path(*path).and_then(|p| p.srtt)) {
                    gap.settled = view.now() + rtt * 2;
                }
            }
            SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } => self.gaps[path.index()] = None,
            _ => {}
        }
    }
}

/// The fastest eligible path that is not among `done`.
fn next(view: &View, done: u32) -> Option<&PathView> {
    let left = view.candidates().filter(|p| p.eligible() && done & p.id.bit() == 0);
    left.min_by_key(|p| (p.rtt_or_max(), p.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_units::Duration;

    /// The fast path sends a packet per ms; D = 10 and 50 ms.
    fn bench(packets: u64) -> Bench {
        let mut bench = Bench::new(&[path(0, 20, 20, 0), path(1, 100, 4, 0)]);
        bench.write(packets);
        bench
    }

    #[test]
    fn the_slow_path_sends_what_the_fast_one_will_have_reached() {
        let mut bench = bench(100);
        let mut stms = Stms::new(4.0);
        bench.round(&mut stms);
        assert_eq!(stms.gaps[1].unwrap().packets, 40);
        assert_eq!((bench.bound(0), bench.bound(1)), ((0..20).collect(), vec![60, 61, 62, 63]));
    }

    #[test]
    fn a_path_that_comes_or_goes_has_no_gap_yet() {
        for event in [SchedulerEvent::PathUp { path: PathId(1) }, SchedulerEvent::PathDown { path: PathId(1) }] {
            let mut bench = bench(100);
            let mut stms = Stms::new(4.0);
            bench.round(&mut stms);
            stms.on_event(&event, &bench.view);
            assert!(stms.gaps[1].is_none());
        }
    }

    #[test]
    fn the_last_packets_are_the_fast_paths() {
        for (packets, expect) in [(60, vec![]), (61, vec![60])] {
            let mut bench = bench(packets);
            bench.round(&mut Stms::new(4.0));
            assert_eq!(bench.bound(1), expect);
        }
    }

    #[test]
    fn a_gap_for_each_slower_path() {
        // 1 packet per ms on each of the first two: 20·1 for the second, 40 + 20 for the third.
        let mut bench = Bench::new(&[path(0, 20, 20, 20), path(1, 60, 60, 60), path(2, 100, 4, 0)]);
        bench.write(200);
        let mut stms = Stms::new(4.0);
        bench.round(&mut stms);
        assert_eq!((stms.gaps[2].unwrap().packets, bench.bound(2)[0]), (60, 60));
    }

    /// The gap after packet 100 of the slow path is acknowledged with a DATA_ACK of `upto` packets.
    fn after(stms: &mut Stms, ms: u64, upto: u64) -> u64 {
        let (now, data_end, data_ack) = (Instant::from_millis(ms), 101 * MSS, Some(upto * MSS));
        let acked = Acked { now, packets: 1, data_end, data_ack, ..Acked::default() };
        stms.adapt(&path(1, 100, 4, 0), &acked);
        stms.gaps[1].unwrap().packets
    }

    #[test]
    fn the_gap_follows_what_came_early_and_what_came_late() {
        let stms = |packets| {
            let mut stms = Stms::new(4.0);
            stms.gaps[1] = Some(Gap { packets, settled: Instant::ZERO });
            stms
        };
        assert_eq!(after(&mut stms(40), 0, 92), 38, "early by 8");
        assert_eq!(after(&mut stms(40), 0, 106), 42, "5 waited");
        assert_eq!(after(&mut stms(40), 0, 101), 40, "in order");
        assert_eq!(after(&mut stms(40), 0, 99), 39);
        assert_eq!(after(&mut stms(3), 0, 60), 0);
        let mut once = stms(40);
        assert_eq!([after(&mut once, 0, 92), after(&mut once, 99, 92), after(&mut once, 100, 92)], [38, 38, 36]);
    }

    #[test]
    fn what_is_sent_again_does_not_move_the_gap() {
        let mut bench = bench(100);
        let mut stms = Stms::new(4.0);
        bench.round(&mut stms);
        bench.at(50);
        stms.on_event(&SchedulerEvent::Loss { path: PathId(1) }, &bench.view);
        assert_eq!([after(&mut stms, 249, 800), after(&mut stms, 250, 105)], [40, 41]);
    }

    #[test]
    fn a_fast_path_that_cannot_be_waited_for_has_no_claim() {
        let mut bench = bench(10);
        let fast = bench.view.path_mut(PathId(0)).unwrap();
        fast.recovery = anabranch_units::RecoveryPhase::Loss;
        bench.round(&mut Stms::new(4.0));
        assert_eq!(bench.bound(1), [0, 1, 2, 3]);
    }

    #[test]
    fn a_path_without_a_sample_gets_its_gap_with_the_first() {
        let mut bench = bench(100);
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        let mut stms = Stms::new(4.0);
        bench.round(&mut stms);
        assert_eq!((bench.send(1), stms.gaps[1].is_some()), (vec![20, 21, 22, 23], false));
        bench.view.path_mut(PathId(1)).unwrap().srtt = Some(Duration::from_millis(100));
        bench.acked(1, 4);
        bench.round(&mut stms);
        assert_eq!(stms.gaps[1].unwrap().packets, 40);
    }
}
