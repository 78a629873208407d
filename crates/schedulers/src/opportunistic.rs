//! Opportunistic retransmission (`+or`), with penalisation (`+pr`): a part that acts after a pull scheduler.

use crate::pick::blocked;
use anabranch_plugin::registry::{Entry, Handle, number};
use anabranch_plugin::schedule::{Copies, PathView, Repeat, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::RecoveryPhase;
use anabranch_units::{Duration, Instant, PathId, Range};

page!(
    "\
# Idea

A reactive cure for window blocking. When the peer's window (or the send buffer) is full although a path has
room, the oldest unacknowledged data is retransmitted on that path (`+or`), and the window of the slower path that holds
it back is reduced (`+pr`). `minrtt+pr` is the papers' LowRTT or minRTT.

# Rule

Let j be the eligible path with the lowest RTT and H the oldest segment that the peer has not acknowledged at
connection level. It acts if the peer's window blocks the next new segment, or if all written data is bound
and the send buffer is full.

Penalise (`+pr` only), at most once per RTT of j: every other path s that carries H, is slower than j and is
in the Open state: w_s = max(⌊w_s/2⌋, 1); ssthresh_s = max(⌊ssthresh_s/2⌋, 2), unless s was in slow start.

Retransmit H on j, unless j carried it already: for the paths s that carry H, in order: if w_s ≤ 4, send;
otherwise, if rtt_guard·R_j ≥ R_s, do not; otherwise continue with the next, and send at the end.

# When it helps

Small windows and paths of different delay, where minRTT alone stalls.

# When it hurts

The slow path is kept below its capacity as long as the window is full. With a ratio of RTTs up to rtt_guard
nothing is retransmitted unless the slow window is at most 4.

# Departures

The guard of 4 RTTs is in the kernel only; rtt_guard = 0 turns it off. The penalty is the kernel's:
NSDI'12 sets ssthresh to the reduced window instead. j is always minRTT's choice, whatever the scheduler's own choice,
and H is tried once per call.

# References

Raiciu et al., How Hard Can It Be?, NSDI 2012. Linux out-of-tree MPTCP, mptcp_sched.c.
"
);

const RTT_GUARD: Handle<f64> = number("rtt_guard", 4.0, 0.0..=1000.0)
    .about("retransmit only if the slow path's RTT exceeds this many RTTs of the fast one; 0 = always");

/// `+pr`.
pub const ENTRY_PR: Entry<dyn Scheduler> = Entry {
    name: "+pr",
    aliases: &[],
    about: "after a pull scheduler: opportunistic retransmission and penalisation",
    page: PAGE,
    parameters: &[RTT_GUARD.parameter],
    build: |p| Box::new(Opportunistic::new(Config { rtt_guard: RTT_GUARD.of(p), penalise: true })),
};

/// `+or`.
pub const ENTRY_OR: Entry<dyn Scheduler> = Entry {
    name: "+or",
    about: "after a pull scheduler: opportunistic retransmission alone",
    build: |p| Box::new(Opportunistic::new(Config { rtt_guard: RTT_GUARD.of(p), penalise: false })),
    ..ENTRY_PR
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Retransmit only if the slow path's RTT exceeds this many RTTs of the fast one.
    pub rtt_guard: f64,
    /// Whether to penalise, too.
    pub penalise: bool,
}

/// Retransmits and penalises. Binds no new data.
#[derive(Clone, Debug)]
pub struct Opportunistic {
    config: Config,
    /// When each path last had others penalised; initially, when it came up.
    last_penalty: [Instant; PathId::LIMIT],
}

impl Opportunistic {
    /// A part before any penalty.
    pub fn new(config: Config) -> Self {
        Self { config, last_penalty: [Instant::ZERO; PathId::LIMIT] }
    }

    fn penalise(&mut self, round: &mut Round<'_>, fast: &PathView, copies: Copies) {
        let last = &mut self.last_penalty[fast.id.index()];
        let Some(rtt) = fast.srtt else { return };
        if round.now().since(*last) < rtt {
            return;
        }
        for i in 0..round.paths().len() {
            let slow = round.paths()[i];
            let slower = slow.srtt.is_some_and(|slow_rtt| rtt < slow_rtt);
            // The test for the Open state keeps a lossy slow path from collapsing to one packet.
            if slow.id != fast.id && copies.on(slow.id) && slower && slow.recovery == RecoveryPhase::Open {
                round.penalise(slow.id);
                *last = round.now();
            }
        }
    }

    /// True if retransmitting the segment on `fast` pays off.
    fn worthwhile(&self, view: &View, fast: &PathView, copies: Copies) -> bool {
        let mut go = false;
        for slow in view.paths().iter().filter(|p| p.id != fast.id && copies.on(p.id)) {
            if slow.cwnd <= 4 {
                return true;
            }
            let seconds = |p: &PathView| p.srtt.unwrap_or(Duration::MAX).as_secs_f64();
            if self.config.rtt_guard * seconds(fast) >= seconds(slow) {
                return false;
            }
            go = true;
        }
        go
    }
}

impl Scheduler for Opportunistic {
    fn schedule(&mut self, round: &mut Round<'_>) {
        // Both triggers penalise: the kernel exempts a send buffer that still has room, in which case there is no
        // trigger.
        if !blocked(round) {
            return;
        }
        let Some(fast) = round.fastest_eligible().copied() else { return };
        let Some((run, copies)) = round.outstanding().first() else { return };
        if self.config.penalise {
            self.penalise(round, &fast, copies);
        }
        // After the penalty: halving 8 to 4 permits the retransmission in the same call.
        if !copies.on(fast.id) && self.worthwhile(round, &fast, copies) {
            let head = Range::new(run.start, run.end.min(run.start + u64::from(fast.mss)));
            round.repeat(fast.id, head, Repeat::Opportunistic);
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        if let SchedulerEvent::PathUp { path } = event {
            self.last_penalty[path.index()] = view.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};

    const PR: Config = Config { rtt_guard: 4.0, penalise: true };

    /// Fast path 0 with room; slow path 1 carries the head; the window is full. The time is one second.
    fn bench(fast_rtt: u64, slow_rtt: u64, slow_cwnd: u32, slow_ssthresh: u32) -> Bench {
        let slow = PathView { ssthresh: slow_ssthresh, ..path(1, slow_rtt, slow_cwnd, slow_cwnd) };
        let mut bench = Bench::with_window(&[path(0, fast_rtt, 10, 0), slow], 2 * MSS);
        bench.write(3);
        let mut first = crate::minrtt::MinRtt;
        bench.view.path_mut(PathId(0)).unwrap().usable = false;
        bench.view.path_mut(PathId(1)).unwrap().in_flight = slow_cwnd - 2;
        bench.round(&mut first);
        assert_eq!(bench.send(1), [0, 1]);
        bench.view.path_mut(PathId(0)).unwrap().usable = true;
        bench.at(1000);
        bench
    }

    /// Window and threshold of the slow path after one call, and the data retransmitted on the fast one.
    fn outcome(bench: &mut Bench, part: &mut Opportunistic) -> (u32, u32, Vec<u64>) {
        bench.round(part);
        let slow = bench.view.path(PathId(1)).unwrap();
        (slow.cwnd, slow.ssthresh, bench.bound(0))
    }

    #[test]
    fn vectors() {
        for (fast, slow, cwnd, ssthresh, expect) in
            [(20, 100, 20, 10, (10, 5, vec![0])), (20, 60, 20, 64, (10, 64, vec![])), (20, 60, 8, 64, (4, 64, vec![0]))]
        {
            let mut bench = bench(fast, slow, cwnd, ssthresh);
            assert_eq!(outcome(&mut bench, &mut Opportunistic::new(PR)), expect, "{fast} {slow} {cwnd} {ssthresh}");
        }
    }

    #[test]
    fn penalises_once_per_round_trip_of_the_fast_path() {
        let mut part = Opportunistic::new(PR);
        let mut bench = bench(20, 100, 20, 10);
        bench.at(0);
        part.on_event(&SchedulerEvent::PathUp { path: PathId(0) }, &bench.view);
        bench.at(5);
        assert_eq!(outcome(&mut bench, &mut part), (20, 10, vec![0]));
        bench.at(20);
        assert_eq!(outcome(&mut bench, &mut part), (10, 5, vec![0]));
        bench.at(39);
        assert_eq!(outcome(&mut bench, &mut part), (10, 5, vec![0]));
    }

    #[test]
    fn a_path_in_recovery_is_spared() {
        let mut bench = bench(30, 100, 20, 10);
        bench.view.path_mut(PathId(1)).unwrap().recovery = RecoveryPhase::Recovery;
        assert_eq!(outcome(&mut bench, &mut Opportunistic::new(PR)), (20, 10, vec![]));
    }

    #[test]
    fn retransmission_alone_leaves_windows_as_they_are() {
        let mut part = Opportunistic::new(Config { penalise: false, ..PR });
        assert_eq!(outcome(&mut bench(20, 100, 20, 10), &mut part), (20, 10, vec![0]));
    }

    #[test]
    fn the_guard_can_be_lifted() {
        let mut part = Opportunistic::new(Config { rtt_guard: 0.0, ..PR });
        assert_eq!(outcome(&mut bench(20, 60, 20, 64), &mut part), (10, 64, vec![0]));
    }

    #[test]
    fn acts_only_when_blocked_and_never_twice_on_one_path() {
        let mut part = Opportunistic::new(PR);
        let mut open = bench(20, 100, 20, 10);
        open.view.set_window(1 << 20, 1 << 20);
        assert_eq!(outcome(&mut open, &mut part), (20, 10, vec![]));

        let mut bench = bench(20, 100, 20, 10);
        bench.round(&mut part);
        assert_eq!(bench.send(0), [0]);
        bench.at(1001);
        assert_eq!(outcome(&mut bench, &mut part), (10, 5, vec![]));
    }

    #[test]
    fn a_full_send_buffer_is_a_trigger() {
        let mut bench = bench(20, 100, 20, 10);
        bench.view.set_window(1 << 20, 1 << 20);
        bench.round(&mut crate::minrtt::MinRtt);
        assert_eq!(bench.send(0), [2]);
        assert_eq!(outcome(&mut bench, &mut Opportunistic::new(PR)), (20, 10, vec![]));
        bench.view.set_buffer_full(true);
        assert_eq!(outcome(&mut bench, &mut Opportunistic::new(PR)), (10, 5, vec![0]));
    }
}
