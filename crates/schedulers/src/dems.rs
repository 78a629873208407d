//! DEMS: the fast path sends a message from its front, slower paths from its end, so that both finish at the same time.

use crate::pick::{by_rtt, fastest_live, no_choice, rate};
use anabranch_plugin::registry::{Entry, Handle, Parameters, number};
use anabranch_plugin::schedule::{PathView, Repeat, Round, Scheduler, View};
use anabranch_units::{PathId, Range};

page!(
    "\
# Idea

Decouple the paths within a chunk whose length is known: the fast one sends from its front, the slow one from its
end, until they meet; split it so that both finish at the same time at the receiver; duplicate a few packets at the
meeting point, where the split was wrong.

# Rule

With C the chunk in packets, b = w/R a path's rate, D = R/2, f the fast path and s a slower one:

```text
x = (C/b_s + D_s − D_f)/(1/b_f + 1/b_s), within [0, C]        share of the fast path
s sends the last unbound packet of the chunk, if
    s has carried less than C − x of it, and
    left/b_f + D_f ≥ 1/b_s + D_s                              left: unbound packets
```

When everything is bound, and no other data waits, a path with room duplicates unacknowledged packets of other paths next
to the meeting point: the fast path upwards from there, slower ones downwards, at most max(1, `redundancy`·C) packets per
chunk.

A chunk is a message of the application. Without one, minRTT.

# When it helps

Downloads whose completion time matters: files and web objects over paths of different delay.

# When it hurts

The receiver must hold the whole part of the slow paths: with a small receive buffer the window admits only a part of the
chunk, and the split is made for that part. A wrong rate leaves a gap that only duplicates close.

# Departures

The paper compares one-way delays measured by its receiver; here half a round trip replaces them. A chunk is the part of
a message that is written and that the peer's window admits: the rest is a later chunk. With more than two paths, a
slower path is compared with the rates of all faster ones together. The fast path is the one with the lowest RTT that may
be waited for; paths without an RTT sample take part from their first sample on.

# References

Guo, Nikravesh, Mao, Qian, Sen, Accelerating Multipath Transport Through Balanced Subflow Completion, MobiCom 2017.
"
);

const REDUNDANCY: Handle<f64> = number("redundancy", 0.05, 0.0..=1.0)
    .about("part of a chunk that may be duplicated at the meeting point; 0 = nothing");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "dems",
    aliases: &[],
    about: "the fast path sends a message from its front, slower ones from its end",
    page: PAGE,
    parameters: &[REDUNDANCY.parameter],
    build: |p: &Parameters<'_>| Box::new(Dems::new(REDUNDANCY.of(p))),
};

/// A part of a message that is being distributed.
#[derive(Clone, Debug)]
struct Chunk {
    range: Range,
    /// Whether it ends where the message does.
    last: bool,
    /// Data above this offset was taken from the end.
    back: u64,
    /// Bytes that each path took from the end.
    taken: [u64; PathId::LIMIT],
    /// Bytes that may still be duplicated.
    budget: u64,
    /// The range around the meeting point in which every segment was checked for a second transmission.
    looked_at: Option<Range>,
}

impl Chunk {
    fn new(range: Range, last: bool, redundancy: f64, mss: u64) -> Self {
        let share = (range.len() as f64 * redundancy) as u64;
        let budget = if redundancy > 0.0 { share.max(mss) } else { 0 };
        Self { range, last, back: range.end, taken: [0; PathId::LIMIT], budget, looked_at: None }
    }

    /// Unbound bytes of the chunk: nothing beyond it is bound before these.
    fn left(&self, view: &View) -> u64 {
        view.backlog().bytes().saturating_sub(view.written().saturating_sub(self.range.end))
    }

    /// The last unbound segment of the chunk.
    fn last_segment(&self, view: &View, mss: u32) -> Option<Range> {
        let piece = view.backlog().iter().rev().find(|piece| piece.start < self.back)?;
        let end = piece.end.min(self.back);
        let start = piece.start.max(end.saturating_sub(mss.into())).max(self.range.start);
        (start < end).then(|| Range::new(start, end))
    }

    /// Whether `path` may take a packet from the end.
    fn is_for(&self, view: &View, path: &PathView, faster: Pace, own: Pace) -> bool {
        let packets = |bytes: u64| bytes as f64 / f64::from(path.mss.max(1));
        let all = packets(self.range.len());
        let share = all - split(all, faster, own);
        packets(self.taken[path.id.index()]) < share && arrives_in_time(packets(self.left(view)), faster, own)
    }

    /// The next segment above the meeting point that `path` has not carried.
    fn upwards(&mut self, view: &View, path: &PathView) -> Option<Range> {
        let looked_at = self.looked_at.get_or_insert(Range::new(self.back, self.back));
        let mut runs = view.outstanding().from(looked_at.end);
        let (run, _) = runs.find(|(_, copies)| !copies.on(path.id)).filter(|(run, _)| run.start < self.range.end)?;
        let start = run.start.max(looked_at.end);
        looked_at.end = run.end.min(start + u64::from(path.mss));
        Some(Range::new(start, looked_at.end))
    }

    /// The next segment below the meeting point that `path` has not carried.
    fn downwards(&mut self, view: &View, path: &PathView) -> Option<Range> {
        let looked_at = self.looked_at.get_or_insert(Range::new(self.back, self.back));
        loop {
            let (run, copies) = view.outstanding().at(looked_at.start.checked_sub(1)?)?;
            let run = run.intersect(Range::new(self.range.start, looked_at.start));
            if run.is_empty() {
                return None;
            }
            let end = looked_at.start;
            if copies.on(path.id) {
                looked_at.start = run.start;
            } else {
                looked_at.start = run.start.max(end.saturating_sub(path.mss.into()));
                return Some(Range::new(looked_at.start, end));
            }
        }
    }
}

/// A path, or several together: packets per second, and half a round trip in seconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rate: f64,
    delay: f64,
}

impl Pace {
    fn of(path: &PathView) -> Option<Self> {
        Some(Self { rate: rate(path)?, delay: (path.srtt? / 2).as_secs_f64() })
    }
}

/// Packets, of a chunk of `packets`, that `fast` should carry so that both finish at once.
fn split(packets: f64, fast: Pace, slow: Pace) -> f64 {
    let x = (packets / slow.rate + slow.delay - fast.delay) / (1.0 / fast.rate + 1.0 / slow.rate);
    x.max(0.0).min(packets)
}

/// Whether a packet on `slow` arrives before `fast` could finish the `left` ones.
fn arrives_in_time(left: f64, fast: Pace, slow: Pace) -> bool {
    left / fast.rate + fast.delay >= 1.0 / slow.rate + slow.delay
}

/// The candidate that follows `path` in the order of RTT and id.
fn slower<'a>(view: &'a View, path: &PathView) -> Option<&'a PathView> {
    let key = |p: &PathView| (p.rtt_or_max(), p.id);
    view.candidates().filter(|p| key(p) > key(path)).min_by_key(|p| key(p))
}

/// DEMS.
#[derive(Clone, Debug)]
pub struct Dems {
    redundancy: f64,
    chunk: Option<Chunk>,
}

impl Dems {
    /// A scheduler without a chunk.
    pub fn new(redundancy: f64) -> Self {
        Self { redundancy, chunk: None }
    }

    /// Continues with the chunk, or takes the next. False if the lowest data belongs to no message.
    fn find_chunk(&mut self, view: &View, mss: u32) -> bool {
        let Some(lowest) = view.backlog().first() else { return true };
        let goes_on = |c: &Chunk| c.range.start <= lowest.start && lowest.start < c.range.end;
        if !self.chunk.as_ref().is_some_and(goes_on) {
            self.chunk = view.message_at(lowest.start).map(|message| {
                let end = message.end.min(view.written()).min(view.window_edge());
                Chunk::new(Range::new(lowest.start, end), end == message.end, self.redundancy, mss.into())
            });
        }
        self.chunk.is_some()
    }

    /// Sends the next segment of the chunk, from either end. False if none may be sent now.
    fn send(&mut self, round: &mut Round<'_>, fast: &PathView) -> bool {
        let Some(chunk) = &mut self.chunk else { return false };
        if round.send_next(fast.id) {
            return true;
        }
        let Some(mut faster) = Pace::of(fast) else { return false };
        let mut path = *fast;
        while let Some(p) = slower(round, &path).copied() {
            path = p;
            let Some(own) = Pace::of(&p) else { return false };
            if p.eligible()
                && chunk.is_for(round, &p, faster, own)
                && let Some(segment) = chunk.last_segment(round, p.mss)
                && round.send(p.id, segment)
            {
                chunk.back = segment.start;
                chunk.taken[p.id.index()] += segment.len();
                return true;
            }
            faster.rate += own.rate;
        }
        false
    }

    /// Duplicates, next to the meeting point, segments that other paths carry.
    fn repeat(&mut self, round: &mut Round<'_>, fast: PathId) {
        let unfinished = |c: &&mut Chunk| c.last && c.budget > 0 && round.data_acked() < c.range.end;
        let Some(chunk) = self.chunk.as_mut().filter(unfinished) else { return };
        while let Some(p) = round.fastest_eligible().copied() {
            let segment = if p.id == fast { chunk.upwards(round, &p) } else { chunk.downwards(round, &p) };
            let Some(segment) = segment.filter(|s| s.len() <= chunk.budget) else { return };
            if !round.repeat(p.id, segment, Repeat::Copy) {
                return;
            }
            chunk.budget -= segment.len();
        }
    }
}

impl Scheduler for Dems {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).copied() else { return };
        if no_choice(round) || fast.srtt.is_none() || !self.find_chunk(round, fast.mss) {
            self.chunk = None;
            return by_rtt(round);
        }
        while !round.backlog().is_empty() {
            if !self.find_chunk(round, fast.mss) || !self.send(round, &fast) {
                return;
            }
        }
        self.repeat(round, fast.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::Assignment;
    use anabranch_units::SendKind;

    const FAST: Pace = Pace { rate: 1000.0, delay: 0.010 };
    const SLOW: Pace = Pace { rate: 250.0, delay: 0.050 };

    #[test]
    fn both_paths_finish_at_once() {
        let x = split(100.0, FAST, SLOW);
        assert!((x - 88.0).abs() < 1e-9);
        let finish = [x / FAST.rate + FAST.delay, (100.0 - x) / SLOW.rate + SLOW.delay];
        assert!(finish.iter().all(|at| (at - 0.098).abs() < 1e-9), "{finish:?}");
        // The fast path keeps the packets that it finishes before one could cross the slow path.
        assert_eq!(split(8.0, FAST, SLOW), 8.0);
        assert!(!arrives_in_time(8.0, FAST, SLOW) && arrives_in_time(44.1, FAST, SLOW));
        assert!(!arrives_in_time(43.9, FAST, SLOW));
    }

    /// Paths with the rates and delays above, and a message of `packets` packets, of which the first is sent.
    fn bench(packets: u64) -> Bench {
        let mut bench = Bench::new(&[path(0, 20, 20, 0), path(1, 100, 25, 0)]);
        assert!(bench.view.begin_message(packets * MSS, None));
        bench.write(packets);
        bench
    }

    #[test]
    fn the_slow_path_takes_its_share_from_the_end() {
        let mut bench = bench(100);
        let mut dems = Dems::new(0.05);
        bench.round(&mut dems);
        assert_eq!(bench.bound(0), (0..20).collect::<Vec<_>>());
        assert_eq!(bench.bound(1), (88..100).rev().collect::<Vec<_>>());
        // The rest is the fast path's, although the slow one has room.
        bench.send(0);
        bench.acked(0, 20);
        bench.round(&mut dems);
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (20, 12));
    }

    #[test]
    fn a_short_message_is_the_fast_paths_alone() {
        let mut bench = bench(8);
        bench.round(&mut Dems::new(0.0));
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (8, 0));
    }

    #[test]
    fn the_paths_meet() {
        let mut bench = bench(100);
        let mut dems = Dems::new(0.0);
        let mut all = Vec::new();
        for _ in 0..10 {
            bench.round(&mut dems);
            for id in [0, 1] {
                let sent = bench.send(id);
                bench.acked(id, sent.len() as u32);
                all.extend(sent);
            }
        }
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn after_meeting_the_nearest_are_sent_twice_within_the_budget() {
        let mut bench = bench(100);
        let mut dems = Dems::new(0.05);
        for _ in 0..5 {
            bench.round(&mut dems);
            let sent = bench.send(0);
            bench.acked(0, sent.len() as u32);
        }
        bench.send(1);
        bench.round(&mut dems);
        // 88 to 99 are the slow path's: the fast one duplicates five of a hundred upwards from the meeting point.
        let copies: Vec<_> = bench.view.queue(PathId(0)).map(|q| (q.range.start / MSS, q.kind)).collect();
        assert_eq!(copies, (88..93).map(|n| (n, SendKind::Copy)).collect::<Vec<_>>());
        bench.round(&mut dems);
        assert_eq!(bench.bound(0).len(), 5);
    }

    #[test]
    fn a_slow_path_with_room_repeats_downwards() {
        let mut bench = bench(100);
        let mut dems = Dems::new(0.05);
        for in_flight in [0, 0, 0, 0, 12] {
            bench.view.path_mut(PathId(0)).unwrap().in_flight = in_flight;
            bench.round(&mut dems);
            bench.send(0);
            bench.send(1);
        }
        bench.view.path_mut(PathId(0)).unwrap().in_flight = 20;
        bench.round(&mut dems);
        assert_eq!(bench.bound(1), [87, 86, 85, 84, 83]);
    }

    #[test]
    fn what_is_out_of_the_windows_reach_is_a_chunk_of_its_own() {
        let mut bench = bench(200);
        bench.view = {
            let mut view = Assignment::new(false);
            bench.view.paths().iter().for_each(|p| view.set_path(*p));
            view.set_window(100 * MSS, 100 * MSS);
            assert!(view.begin_message(200 * MSS, None));
            view.set_written(200 * MSS);
            view
        };
        let mut dems = Dems::new(0.05);
        bench.round(&mut dems);
        assert_eq!(bench.bound(1), (88..100).rev().collect::<Vec<_>>());
        let chunk = dems.chunk.unwrap();
        assert_eq!((chunk.range, chunk.last), (Range::new(0, 100 * MSS), false));
    }

    #[test]
    fn without_messages_it_is_min_rtt() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 100, 2, 0)]);
        bench.write(5);
        bench.round(&mut Dems::new(0.05));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2, 3]));
    }

    #[test]
    fn a_third_path_is_held_against_the_faster_two() {
        let mut bench = Bench::new(&[path(0, 20, 20, 0), path(1, 20, 20, 0), path(2, 100, 25, 0)]);
        assert!(bench.view.begin_message(200 * MSS, None));
        bench.write(200);
        bench.round(&mut Dems::new(0.0));
        // The two equal paths take one end each; 2 packets/ms against 0.25: x = 840/(0.5 + 4) = 186.7.
        let count = |id| bench.bound(id).len();
        assert_eq!((count(0), count(1), count(2)), (20, 20, 14));
        assert_eq!((bench.bound(1)[0], bench.bound(2)[0]), (199, 179));
    }
}
