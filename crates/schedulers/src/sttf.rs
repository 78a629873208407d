//! STTF: every segment to the path that would deliver it first, with a growing window.

use crate::pick::{Ahead, admits, free, takes_ahead};
use anabranch_plugin::registry::{Entry, Handle, Parameters, whole};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, PathId};

page!(
    "\
# Idea

Shortest transfer time first: as OTIAS, queue each segment on the path where it is predicted to arrive first, but
let the prediction follow the window as it grows, in slow start too; and make the plan again when it no longer fits.

# Rule

With Q = q + 1 packets to be sent on a path, a packets of free window, R the newest RTT sample:

```text
Q ≤ a:  T = R/2
else:   Q = Q − a, then round by round  w = 2·w if w ≤ ssthresh, else w + 1;  Q = Q − w,  until Q ≤ 0
        T = rounds·R + R/2
```

The path with the least T takes the segment; ties go to the lower id. Nothing is queued beyond the peer's window.
At the end of a path's round trip the queued data is distributed again, if the rule would give some path more packets, or
fewer, than it has, by more than `replan`.

# When it helps

Short transfers: the prediction shows that a fast path in slow start will have room for them soon.

# When it hurts

The newest sample moves the whole plan. A window that does not grow as predicted, because of losses or a full
buffer, leaves a long queue behind it until the plan is made again.

# Departures

The rounds of congestion avoidance are summed in closed form. The module's own formula differs where a threshold is
no power of two times the window: there the round in which slow start ends sends only part of a window. Waiting packets
are distributed again only after a tenth of their number was acknowledged since the last time: so each packet sent costs
at most ten that are queued again. A path without an RTT sample takes the packets for which its window has room, after
all others. When a path fails or gives data back, all queues are taken back, because queues must stay in order. The
module also retransmits when the peer's window is full; this form does not.

# References

Hurtig, Grinnemo, Brunstrom, Ferlin, Alay, Kuhn, Low-Latency Scheduling in MPTCP, IEEE/ACM Transactions on
Networking 27(1), 2019. The authors' kernel module, mptcp_sttf.c.
"
);

const REPLAN: Handle<u64> = whole("replan", 1, 0..=1_000_000)
    .unit("packets")
    .about("waiting packets are distributed again if a path has this many more or fewer than by the rule");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "sttf",
    aliases: &[],
    about: "queue every segment where it would arrive first, with growing windows",
    page: PAGE,
    parameters: &[REPLAN.parameter],
    build: |p: &Parameters<'_>| Box::new(Sttf::new(REPLAN.of(p))),
};

/// Waiting data is distributed again after this fraction of it (one in this many) was acknowledged.
const AMORTISED: u64 = 10;

/// Whole rounds until `packets` are sent by a window that has just sent `window` and grows before each round.
fn rounds(mut packets: u64, window: u64, ssthresh: u64) -> u64 {
    let (mut window, mut rounds) = (window.max(1), 0);
    while window <= ssthresh && packets > 0 {
        window = window.saturating_mul(2);
        packets = packets.saturating_sub(window);
        rounds += 1;
    }
    // The least n with n·w + n·(n + 1)/2 ≥ packets.
    let b = 2.0 * window as f64 + 1.0;
    let n = ((b * b + 8.0 * packets as f64).sqrt() - b) / 2.0;
    rounds + libm::ceil(n - 1e-9) as u64
}

/// Packets that leave in this many whole rounds: the inverse of [`rounds`].
fn sent_in(rounds: u64, window: u64, ssthresh: u64) -> u64 {
    let (mut window, mut rounds, mut sent) = (window.max(1), rounds, 0u64);
    while window <= ssthresh && rounds > 0 {
        window = window.saturating_mul(2);
        sent = sent.saturating_add(window);
        rounds -= 1;
    }
    sent.saturating_add(rounds.saturating_mul(window))
        .saturating_add(rounds.saturating_mul(rounds.saturating_add(1)) / 2)
}

fn rtt(path: &PathView) -> Option<Duration> {
    path.latest_rtt.or(path.srtt)
}

/// When the last of `packets` waiting packets would arrive. Without an RTT sample only the free window counts.
fn transfer_time(path: &PathView, packets: u64) -> Option<Duration> {
    let Some(rtt) = rtt(path) else { return (packets <= free(path)).then_some(Duration::MAX) };
    let more = packets.saturating_sub(free(path));
    let rounds = if more == 0 { 0 } else { rounds(more, path.cwnd.into(), path.ssthresh.into()) };
    Some(rtt * rounds + rtt / 2)
}

/// The number of packets that would have arrived after `time`.
fn arrived_by(path: &PathView, time: Duration) -> u64 {
    let Some(rtt) = rtt(path).filter(|rtt| time >= *rtt / 2) else { return 0 };
    let rounds = time.saturating_sub(rtt / 2).as_nanos() / rtt.as_nanos().max(1);
    free(path).saturating_add(sent_in(rounds, path.cwnd.into(), path.ssthresh.into()))
}

/// STTF.
#[derive(Clone, Debug)]
pub struct Sttf {
    replan: u64,
    ahead: Ahead,
    /// A round trip ended since the last look at the queues.
    round_ended: bool,
    /// Packets acknowledged since waiting data was last distributed.
    acked: u64,
}

impl Sttf {
    /// A scheduler with nothing bound.
    pub fn new(replan: u64) -> Self {
        Self { replan, ahead: Ahead::default(), round_ended: false, acked: 0 }
    }

    /// The path with the least time, and the number of packets that it can take before that time grows.
    fn shortest(&self, view: &View) -> Option<(PathId, u64)> {
        let times = view.candidates().filter(|p| takes_ahead(p) && admits(view, p));
        let times = times.filter_map(|p| Some((transfer_time(p, u64::from(p.queued) + 1)?, p.id)));
        let (time, id) = times.min()?;
        let path = view.path(id)?;
        let room = if time == Duration::MAX { free(path) } else { arrived_by(path, time) };
        Some((id, room.saturating_sub(path.queued.into()).max(1)))
    }

    /// True if the rule would distribute the waiting data differently.
    fn is_out_of_date(&self, view: &View) -> bool {
        let waiting: u64 = view.candidates().map(|p| u64::from(p.queued)).sum();
        if waiting == 0 || self.acked < waiting / AMORTISED {
            return false;
        }
        let by = |time| view.candidates().filter(|p| takes_ahead(p)).map(move |p| arrived_by(p, time));
        let arrived = |time| by(time).fold(0, u64::saturating_add);
        // The first time by which all would have arrived, searched within a day.
        let (mut early, mut late) = (0, 86_400_000_000_000);
        while early < late {
            let middle = early + (late - early) / 2;
            if arrived(Duration::from_nanos(middle)) < waiting {
                early = middle + 1;
            } else {
                late = middle;
            }
        }
        let just_before = Duration::from_nanos(early.saturating_sub(1));
        let mut left = waiting.saturating_sub(arrived(just_before));
        view.candidates().filter(|p| takes_ahead(p)).any(|p| {
            let before = arrived_by(p, just_before);
            let last = arrived_by(p, Duration::from_nanos(early)).saturating_sub(before).min(left);
            left -= last;
            (before + last).abs_diff(p.queued.into()) > self.replan
        })
    }

    /// Queues the waiting data.
    fn enqueue(&mut self, round: &mut Round<'_>) {
        while let Some((on, room)) = self.shortest(round) {
            for _ in 0..room {
                if self.ahead.enqueue(round, on).is_none() {
                    return;
                }
            }
        }
    }
}

impl Scheduler for Sttf {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.ahead.recall(round, takes_ahead);
        if core::mem::take(&mut self.round_ended) && self.is_out_of_date(round) {
            self.ahead.recall_all(round);
            self.acked = 0;
        }
        self.enqueue(round);
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, _view: &View) {
        if let SchedulerEvent::Ack { acked, .. } = event {
            self.round_ended |= acked.round_ended;
            self.acked += u64::from(acked.packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::Cause;
    use anabranch_units::RecoveryPhase;

    /// T in ms for Q packets with R = 20, w = 10, `room` packets of free window.
    fn time(packets: u64, room: u32, ssthresh: u32) -> u64 {
        let path = PathView { ssthresh, ..path(0, 20, 10, 10 - room) };
        transfer_time(&path, packets).unwrap().as_millis()
    }

    #[test]
    fn predicted_times() {
        assert_eq!(time(25, 0, 0), 70, "11 + 12 + 2 in three rounds");
        assert_eq!(time(1, 1, 0), 10);
        assert_eq!([time(11, 0, 0), time(12, 0, 0), time(23, 0, 0), time(24, 0, 0)], [30, 50, 50, 70]);
        // Slow start: 20, 40, 80; then 81.
        assert_eq!([time(20, 0, 40), time(60, 0, 40), time(140, 0, 40), time(141, 0, 40)], [30, 50, 70, 90]);
        assert_eq!(time(221, 0, 40), 90);
        assert_eq!(time(222, 0, 40), 110);
        assert_eq!(time(5 + 20, 5, u32::MAX), 30);
    }

    #[test]
    fn sums_agree_with_counting() {
        for (window, ssthresh) in [(1, 0), (10, 0), (10, 35), (3, 1000), (7, 7)] {
            let (mut w, mut sent) = (window, 0);
            for n in 1..60 {
                w = if w <= ssthresh { w * 2 } else { w + 1 };
                assert_eq!(rounds(sent + 1, window, ssthresh), n, "{window} {ssthresh}");
                sent += w;
                assert_eq!((rounds(sent, window, ssthresh), sent_in(n, window, ssthresh)), (n, sent));
                if sent > 1 << 40 {
                    break;
                }
            }
        }
        assert!(rounds(u64::MAX, 1, u64::MAX) < 100 && sent_in(u64::MAX, 1, 0) == u64::MAX);
    }

    #[test]
    fn a_window_that_will_grow_is_waited_for() {
        // In slow start 20 more leave the fast path after 20 ms and arrive at 30; the slow one takes 50.
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 10, 0)]);
        bench.write(31);
        bench.round(&mut Sttf::new(1));
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (31, 0));
        // In congestion avoidance: 10 at 10 ms, 11 at 30, 12 at 50 on the first; then the slow one's 10, at 50 too.
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 10, 0)]);
        for id in [0, 1] {
            bench.view.path_mut(PathId(id)).unwrap().ssthresh = 5;
        }
        bench.write(44);
        bench.round(&mut Sttf::new(1));
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (34, 10));
        assert_eq!(bench.bound(1)[0], 33);
    }

    /// After a first plan, the fast path's newest RTT sample is 60 ms instead of 20.
    fn replanned(replan: u64) -> (usize, usize) {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 10, 0)]);
        for id in [0, 1] {
            bench.view.path_mut(PathId(id)).unwrap().ssthresh = 5;
        }
        bench.write(40);
        let mut sttf = Sttf::new(replan);
        bench.round(&mut sttf);
        let before = (bench.bound(0).len(), bench.bound(1).len());
        assert_eq!(before, (33, 7));
        bench.round(&mut sttf);
        bench.tell_ack(&mut sttf, 0, 1, 0);
        bench.round(&mut sttf);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), before, "the plan is as the rule would have it");
        bench.view.path_mut(PathId(0)).unwrap().latest_rtt = Some(Duration::from_millis(60));
        bench.round(&mut sttf);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), before, "not before a round trip ended");
        bench.tell_ack(&mut sttf, 0, 2, 4);
        bench.round(&mut sttf);
        let in_order = |id| bench.bound(id).windows(2).all(|w| w[0] < w[1]);
        assert!(in_order(0) && in_order(1));
        (bench.bound(0).len(), bench.bound(1).len())
    }

    #[test]
    fn what_waits_is_shared_out_anew() {
        // 10 at 30 ms on the first, 10 at 50 on the second, 11 at 90, 9 more at 150 on either: the first.
        assert_eq!(replanned(1), (30, 10));
        assert_eq!(replanned(10), (33, 7));
        // Three packets would change places: the difference must exceed that.
        assert_eq!((replanned(2), replanned(3)), ((30, 10), (33, 7)));
    }

    #[test]
    fn queues_end_at_the_peers_window_and_a_failed_path_gives_its_queue_back() {
        let mut bench = Bench::with_window(&[path(0, 20, 2, 0), path(1, 60, 2, 0)], 9 * MSS);
        bench.write(30);
        let mut sttf = Sttf::new(1);
        bench.round(&mut sttf);
        assert_eq!(bench.bound(0).len() + bench.bound(1).len(), 9);
        bench.view.path_mut(PathId(0)).unwrap().recovery = RecoveryPhase::Loss;
        bench.round_for(&mut sttf, Cause::Timeout(PathId(0)));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], (0..9).collect()));
    }
}
