//! Playahead: the backlog is played forward, segment by segment, each on the path that has it there first.

use crate::line::Line;
use crate::pick::by_rtt;
use crate::tail::{Latest, Pauses};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{Repeat, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::PathId;

page!(
    "\
# Idea

Each next segment belongs to whichever path would have it there first, with or without room in its window. What falls to a
path with room is sent now; what falls to a full path is left for it. Skipping, waiting, serialisation and equal finishing
times follow from this rule; it has no threshold and no parameter.

# Rule

```text
B = capacity by the acknowledgments; w·L/min R until one is known      L: segment, w: window, R: round-trip time
d = least forward delay; min R / 2 unless all paths have measured it
u = in flight and queued, with what the host's other connections have on the path
q = max(u/B − min R, min(free − now, u/B), 0)      what is still ahead in the bottleneck
with room:  the next segment arrives at q + d + L/B
full:       the n-th arrives at q + d + n·L/r,  r = min(B, w·L/min R)
T = the earliest arrival on a path with room
skip the segments that full paths have there by T; send the one after them; free = now + q + L/B of its path
```

B is the bytes over the time of those gaps between two acknowledgments in which the bottleneck was never idle: a gap counts if the
newest packet's RTT exceeds the least by no less than the gap, because then the packet had come to the queue before the
earlier one left it. Older gaps weigh less, by 1/32 per packet. Connections of one host between the same two addresses measure it together.

Once everything is bound, a path with room copies what arrives last, if no other path copied it:

```text
due = arrival of the last byte of a segment in flight on another path; infinite while that has no capacity
gain = due − max(arrival of all others, arrival of the copy)
cost = L/B + L/r of the copying path; 0 if its bottleneck and its window are free again when more data is expected
copy if gain > cost, the latest segment first
```

More data is expected after the mean of earlier pauses, at once before the first, never after the end of the stream.

If nothing lies behind what is skipped, or the peer's window does not admit it, no more is sent: it arrives sooner without the
other paths. Full paths count only if they can be waited for.

# When it helps

A path that stalls behind the end of a message. Paths of unlike rate, delay or queue; frames and transfers that have to end on all paths at once; deep queues; rates that
wander; small windows; connections side by side.

# When it hurts

A path whose base delay grows: its least RTT stays, and every packet seems to have queued. Other hosts that share
a bottleneck: each measures its own share only after the others have taken theirs. A path that was never filled counts as
no faster than its window.

# Departures

None: it was developed here.

# References

docs/lab/forward.md. Earliest delivery path first: Chebrolu, Rao, Bandwidth aggregation for real-time applications in
heterogeneous wireless networks, IEEE Transactions on Mobile Computing 5(4), 2006. Skipping: `fps`, `fdps`.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "playahead",
    aliases: &[],
    about: "play the backlog forward by measured capacities: each segment where it arrives first",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Playahead::default()),
};

/// The scheduler.
#[derive(Clone, Debug, Default)]
pub struct Playahead {
    /// Lines by path id.
    lines: Vec<Line>,
    /// All candidates had a forward delay when they were looked at last.
    measured: bool,
    pauses: Pauses,
}

/// Candidates of a round: those with room, and the full ones that can be waited for, as [`PathId::bit`]s.
#[derive(Clone, Copy, Default)]
struct Ways {
    open: u32,
    full: u32,
}

impl Ways {
    /// A path of which it is known whether it has room.
    #[inline(always)]
    fn note(&mut self, view: &View, id: PathId, has_room: bool) {
        if has_room {
            self.open |= id.bit();
        } else if view.may_wait_for(id) {
            self.full |= id.bit();
        }
    }

    /// The path that has the next segment first of those with room, and the bytes of the backlog that are left to full ones.
    #[inline(always)]
    fn next(self, lines: &[Line]) -> Option<(PathId, u64)> {
        let mut open = PathId::of_bits(self.open);
        let mut on = open.next()?;
        let mut arrival = lines[on.index()].next.first;
        for other in open {
            let first = lines[other.index()].next.first;
            if first < arrival {
                (on, arrival) = (other, first);
            }
        }
        let mut left = 0u64;
        if self.full != 0 && arrival < f64::INFINITY {
            for full in PathId::of_bits(self.full) {
                left = left.saturating_add(lines[full.index()].sooner_than(arrival));
            }
        }
        Some((on, left))
    }
}

/// Something is under way, and the application has no more to send: nothing of it waits for room in the buffer.
fn may_repair(view: &View) -> bool {
    !view.send_buffer_full() && !view.outstanding().is_empty()
}

impl Playahead {
    /// Looks at all candidates; `None` if they are no choice.
    #[inline(always)]
    fn look(&mut self, round: &Round<'_>, now: f64) -> Option<Ways> {
        let active = round.has_active();
        loop {
            let (mut ways, mut candidates, mut measured) = (Ways::default(), 0, true);
            for path in round.paths() {
                if !path.usable || active && path.backup {
                    continue;
                }
                candidates += 1;
                measured &= path.least_forward().is_some();
                let (line, has_room) = (&mut self.lines[path.id.index()], path.eligible());
                line.learn(path, self.measured);
                line.look(now, path, has_room);
                ways.note(round, path.id, has_room);
            }
            if candidates < 2 {
                return None;
            }
            // Nearly always it is as it was.
            if core::mem::replace(&mut self.measured, measured) == measured {
                return Some(ways);
            }
        }
    }

    /// The next segment was sent on a path: that changes its own room, and nothing of the others.
    #[inline(always)]
    fn sent(&mut self, round: &Round<'_>, now: f64, ways: &mut Ways, on: PathId) {
        let (line, Some(path)) = (&mut self.lines[on.index()], round.path(on)) else { return };
        let has_room = path.room() > 0 && !path.is_shut();
        line.sent();
        line.look(now, path, has_room);
        ways.open &= !on.bit();
        ways.note(round, on, has_room);
    }

    /// All that was written is bound: paths with room copy what arrives last, while that ends the transfer sooner by more than it may cost.
    fn repair(&mut self, round: &mut Round<'_>, now: f64, mut ways: Ways) {
        let expected = self.pauses.begin(now);
        let then = if round.write_ended() { f64::INFINITY } else { expected };
        let mut copied = [u64::MAX; PathId::LIMIT];
        while let Some((on, _)) = ways.next(&self.lines) {
            let (line, Some(path)) = (&self.lines[on.index()], round.path(on)) else { return };
            let (copy, cost) = (line.next.first, line.cost(path, then));
            let Some(latest) = Latest::find(round, &self.lines, on, &copied) else { return };
            if latest.gain(copy) <= cost || !round.repeat(on, latest.segment, Repeat::Copy) {
                return;
            }
            copied[latest.of.index()] = latest.segment.start;
            self.sent(round, now, &mut ways, on);
        }
    }
}

impl Scheduler for Playahead {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let now = round.now().as_secs_f64();
        if !round.backlog().is_empty() {
            self.pauses.end(now);
        } else if !may_repair(round) {
            return;
        }
        let ids = round.paths().last().map_or(0, |last| last.id.index() + 1);
        if self.lines.len() < ids {
            self.lines.resize(ids, Line::default());
        }
        let Some(mut ways) = self.look(round, now) else { return by_rtt(round) };
        while !round.backlog().is_empty() {
            let Some((on, skip)) = ways.next(&self.lines) else { return };
            if !round.send_ahead(on, skip) {
                return;
            }
            self.sent(round, now, &mut ways, on);
        }
        if may_repair(round) {
            self.repair(round, now, ways);
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, _view: &View) {
        if let SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } = *event {
            self.lines.get_mut(path.index()).into_iter().for_each(|line| *line = Line::default());
        }
    }

    fn measures_capacity(&self) -> bool {
        true
    }

    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        for (id, line) in (0u8..).zip(&self.lines) {
            let Some((rate, arrives)) = line.shown() else { continue };
            put("capacity_mbit", Some(PathId(id)), rate * 8.0 / 1e6);
            // A measured forward delay is relative to a distance that all paths share; half the round trip replaces it.
            put("arrives_ms", Some(PathId(id)), arrives * 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_plugin::schedule::{ForwardDelay, PathView};
    use anabranch_units::{Duration, Instant};

    /// A bench at 100 ms, in which each path is known to let a packet through per `gaps` ms.
    fn taught(paths: &[PathView], gaps: &[u64]) -> (Bench, Playahead) {
        let mut bench = Bench::new(paths);
        bench.view.measure_capacity(true);
        paths.iter().zip(gaps).for_each(|(p, gap)| bench.know_capacity(p.id.0, (*gap, 100)));
        (bench, Playahead::default())
    }

    #[test]
    fn each_segment_goes_where_it_arrives_first() {
        // A packet per 2 and 4 ms; forward delays of 10 and 30 ms: the twelfth arrives at 34 ms on either.
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 100, 0), path(1, 60, 100, 0)], &[2, 4]);
        bench.write(19);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(1), [12, 15, 18]);
        assert_eq!(bench.bound(0).len(), 16);
    }

    #[test]
    fn what_a_full_path_has_there_first_is_left_for_it() {
        // The full path: 10 packets out in 20 ms are no queue; from 12 ms on a packet per 2 ms. The other's first: 34 ms.
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 10, 10), path(1, 60, 10, 0)], &[2, 4]);
        bench.write(100);
        bench.round(&mut scheduler);
        // 12, 14, … 32 and not 34: the tie is the full path's only if it is sooner. Then 38 ms: two more are left.
        assert_eq!(bench.bound(1)[..3], [11, 14, 17]);
    }

    /// The bound of docs/lab/forward.md, with what `RangeSet::take` promises.
    #[test]
    fn its_work_does_not_depend_on_what_it_skips() {
        for skipped in [10, 200] {
            let far = path(1, 20 + 4 * skipped, 6, 0);
            let (mut bench, mut scheduler) = taught(&[path(0, 20, 10, 10), far], &[2, 4]);
            bench.write(3 * skipped);
            bench.round(&mut scheduler);
            assert_eq!(bench.bound(1).len(), 6);
            assert!(bench.bound(1)[0] >= skipped);
            assert_eq!([0, 1].map(|id| scheduler.lines[id].looks), [1, 7], "at each path once, and once per segment");
        }
    }

    #[test]
    fn nothing_is_sent_if_all_of_it_arrives_sooner_without() {
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 10, 10), path(1, 60, 10, 0)], &[2, 4]);
        bench.write(11);
        bench.round(&mut scheduler);
        assert!(bench.bound(1).is_empty());
        bench.write(1);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(1), [11]);
    }

    #[test]
    fn a_full_path_that_cannot_be_waited_for_does_not_count() {
        let full = PathView { in_flight: 0, in_flight_bytes: 0, cwnd: 0, ..path(0, 20, 0, 0) };
        let (mut bench, mut scheduler) = taught(&[full, path(1, 60, 10, 0)], &[2, 4]);
        bench.write(3);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(1), [0, 1, 2]);
    }

    #[test]
    fn a_standing_queue_counts() {
        // 30 packets of 2 ms are out, 20 ms of them on the way: the first ends 40 ms of queue later than an idle one.
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 100, 30), path(1, 60, 100, 0)], &[2, 4]);
        bench.write(1);
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0]));
    }

    #[test]
    fn what_was_just_sent_is_still_ahead_in_the_bottleneck() {
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 100, 0), path(1, 60, 100, 0)], &[2, 4]);
        for _ in 0..14 {
            bench.write(1);
            bench.round(&mut scheduler);
            bench.send(0);
        }
        assert_eq!(bench.bound(1), [12], "as in one burst");
        // 30 ms later all of it has left.
        bench.at(130);
        bench.write(1);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [14]);
    }

    /// The far path's packets are on the way: 4 ms each, the last after 30 + 12 ms. The near one has a copy there after 10 + 2 ms.
    fn far_in_flight(gaps: &[u64]) -> (Bench, Playahead) {
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 0, 0), path(1, 60, 3, 0)], gaps);
        bench.write(3);
        bench.round(&mut scheduler);
        assert_eq!(bench.send(1), [0, 1, 2]);
        bench.view.path_mut(PathId(0)).unwrap().cwnd = 100;
        (bench, scheduler)
    }

    #[test]
    fn once_all_is_bound_what_arrives_last_is_copied_first() {
        let (mut bench, mut scheduler) = far_in_flight(&[1, 4]);
        bench.round(&mut scheduler);
        // Each copy ends the transfer 4 ms sooner, and takes 1 ms of the bottleneck and as much of the window at most.
        assert_eq!(bench.bound(0), [2, 1, 0]);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0).len(), 3, "one copy of each");
    }

    #[test]
    fn a_copy_that_may_cost_more_than_it_gains_is_not_made() {
        // The first copies gain 4 ms each and cost twice 3 ms.
        let (mut bench, mut scheduler) = far_in_flight(&[3, 4]);
        bench.round(&mut scheduler);
        assert!(bench.bound(0).is_empty());
        // With nothing behind it, it costs nothing.
        bench.view.set_ended();
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [2, 1, 0]);
    }

    #[test]
    fn while_more_waits_for_room_in_the_buffer_nothing_is_copied() {
        let (mut bench, mut scheduler) = far_in_flight(&[1, 4]);
        bench.view.set_buffer_full(true);
        bench.round(&mut scheduler);
        assert!(bench.bound(0).is_empty());
    }

    #[test]
    fn equal_paths_take_turns() {
        let (mut bench, mut scheduler) = taught(&[path(0, 20, 10, 0), path(1, 20, 10, 0)], &[2, 2]);
        bench.write(8);
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 2, 4, 6], vec![1, 3, 5, 7]));
    }

    #[test]
    fn a_path_without_an_rtt_comes_last() {
        let unknown = PathView { srtt: None, min_rtt: None, ..path(1, 20, 10, 0) };
        let mut bench = Bench::new(&[unknown, path(2, 20, 3, 0)]);
        bench.write(5);
        bench.round(&mut Playahead::default());
        assert_eq!((bench.bound(2), bench.bound(1)), (vec![0, 1, 2], vec![3, 4]));
    }

    #[test]
    fn forward_delays_count_once_all_paths_have_one() {
        let forward =
            |ms: u64| Some(ForwardDelay { relative: Duration::from_millis(1000 + ms), sampled: Instant::ZERO });
        // 80 ms there and 10 back, against 45 and 45; halves would be equal.
        let far = PathView { forward_delay: forward(80), ..path(0, 90, 100, 0) };
        let near = PathView { forward_delay: forward(45), ..path(1, 90, 100, 0) };
        for (other, on) in [(near, 1), (PathView { forward_delay: None, ..near }, 0)] {
            let (mut bench, mut scheduler) = taught(&[far, other], &[2, 2]);
            bench.write(1);
            bench.round(&mut scheduler);
            assert_eq!(bench.bound(on), [0]);
        }
    }

    #[test]
    fn a_path_that_comes_or_goes_is_new() {
        for event in [SchedulerEvent::PathUp { path: PathId(0) }, SchedulerEvent::PathDown { path: PathId(0) }] {
            let (mut bench, mut scheduler) = taught(&[path(0, 20, 100, 0), path(1, 20, 100, 0)], &[2, 2]);
            bench.write(8);
            bench.round(&mut scheduler);
            scheduler.on_event(&event, &bench.view);
            assert_eq!(scheduler.lines[0].free, 0.0);
            assert!(scheduler.lines[1].free > 0.1);
        }
    }

    #[test]
    fn its_state_is_the_rate_and_the_next_arrival_of_each_path() {
        let forward = |ms: u64| {
            let relative = Duration::from_millis(10_000 + ms);
            Some(ForwardDelay { relative, sampled: Instant::ZERO })
        };
        // With measured delays as without: what they are relative to is no part of an arrival.
        for [to_near, to_far] in [[None, None], [forward(10), forward(30)]] {
            let near = PathView { forward_delay: to_near, ..path(0, 20, 100, 0) };
            let far = PathView { forward_delay: to_far, ..path(1, 60, 100, 0) };
            let (mut bench, mut scheduler) = taught(&[near, far], &[2, 4]);
            bench.write(1);
            bench.round(&mut scheduler);
            let mut seen = Vec::new();
            scheduler.state(&mut |name, on, value| seen.push((name, on, (value * 1e3).round() / 1e3)));
            let [near, far] = [0, 1].map(|id| Some(PathId(id)));
            let rates = [("capacity_mbit", near, 5.6), ("capacity_mbit", far, 2.8)];
            let arrivals = [("arrives_ms", near, 14.0), ("arrives_ms", far, 34.0)];
            assert_eq!(seen, [rates[0], arrivals[0], rates[1], arrivals[1]]);
        }
    }
}
