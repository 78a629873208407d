//! Choices that several schedulers share.

use anabranch_plugin::registry::{Handle, flag};
use anabranch_plugin::schedule::{PathView, Round, View};
use anabranch_units::RecoveryPhase;
use anabranch_units::{Duration, PathId, Range};
use core::cmp::Ordering;

/// Whether data may be bound ahead of time: also to a full window, but not during the repair of a timeout.
pub fn takes_ahead(path: &PathView) -> bool {
    path.usable && path.recovery != RecoveryPhase::Loss
}

/// The peer's windows have room for the next segment of `path`, which may end at a gap: what follows was bound before. Another
/// path's may be shorter, or its subflow's window wider.
pub fn admits(view: &View, path: &PathView) -> bool {
    let fits = |next: Range| next.end <= view.window_edge() && next.len() <= path.window;
    view.next_new(0, path.mss).is_none_or(fits)
}

/// Packets that wait for `path`.
pub fn queued(path: &PathView) -> u64 {
    path.queued_bytes.div_ceil(u64::from(path.mss.max(1)))
}

/// Packets for which its window has room.
pub fn free(path: &PathView) -> u64 {
    path.cwnd.saturating_sub(path.in_flight).into()
}

/// Whether data may be bound ahead of time, and fewer than `most` packets wait for it beyond the room in its window.
pub fn takes_up_to(path: &PathView, most: u64) -> bool {
    takes_ahead(path) && queued(path) < free(path) + most
}

/// For schedulers that queue beyond the congestion windows. Queues stay in order: queued data is taken back when lower
/// data has to be bound. A path whose next segment the peer's windows do not [admit](admits) is no choice: nothing else would call
/// the scheduler while other paths could send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    /// Everything below this offset has been bound once: waiting data below it was given back.
    bound: u64,
}

impl Ahead {
    /// Takes all queues back if one of them waits for a path that no longer `takes` data, or if data below them was
    /// given back; true then.
    pub fn recall(&mut self, round: &mut Round<'_>, takes: impl Fn(&PathView) -> bool) -> bool {
        let given_back = round.backlog().first().is_some_and(|r| r.start < self.bound);
        let failed = round.paths().iter().any(|p| p.queued > 0 && !takes(p));
        if given_back || failed {
            self.recall_all(round);
        }
        given_back || failed
    }

    /// Takes all queues back.
    pub fn recall_all(&mut self, round: &mut Round<'_>) {
        for i in 0..round.paths().len() {
            round.recall(round.paths()[i].id);
        }
        self.bound = 0;
        self.note_bound(round);
    }

    /// Data that was sent is new again: it follows what is queued.
    pub fn restart(&mut self, view: &View) {
        self.bound = 0;
        self.note_bound(view);
    }

    /// Data was bound by another rule.
    pub fn note_bound(&mut self, view: &View) {
        self.bound = self.bound.max(view.backlog().first().map_or(view.written(), |r| r.start));
    }

    /// Queues the next new segment on `on`, if the peer's window admits it.
    pub fn enqueue(&mut self, round: &mut Round<'_>, on: PathId) -> Option<Range> {
        let mss = round.path(on).map_or(0, |p| p.mss);
        let next = round.next_new(0, mss).filter(|next| next.end <= round.window_edge())?;
        round.enqueue_next(on).then(|| self.bound = next.end)?;
        Some(next)
    }

    /// Queues the next new data before `end` on `on`, as much as its last segment takes or a new one.
    pub fn append(&mut self, round: &mut Round<'_>, on: PathId, end: u64) -> Option<Range> {
        let next = round.append(on, end)?;
        self.bound = next.end;
        Some(next)
    }
}

/// Fills the candidate with the lowest RTT, then the next: minRTT, and the fallback of schedulers that cannot decide.
pub fn by_rtt(round: &mut Round<'_>) {
    while let Some(id) = round.fastest_eligible().map(|p| p.id) {
        if !round.fill(id) {
            return;
        }
    }
}

/// Each next segment to the eligible candidate that `order` puts first; ties go to the lower RTT, then to the lower id.
pub fn by_score(round: &mut Round<'_>, order: impl Fn(&PathView, &PathView) -> Ordering) {
    let ties = |p: &PathView| (p.rtt_or_max(), p.id);
    let first = |view: &View| {
        let eligible = view.candidates().filter(|p| p.eligible());
        eligible.min_by(|a, b| order(a, b).then_with(|| ties(a).cmp(&ties(b)))).map(|p| p.id)
    };
    while let Some(id) = first(round) {
        if !round.send_next(id) {
            return;
        }
    }
}

/// As [`by_rtt`], but calls `waits(view, slow)` before a path other than `fast`, the fastest live one, is used: if
/// true, no more is sent.
pub fn by_rtt_unless(round: &mut Round<'_>, fast: &PathView, mut waits: impl FnMut(&View, &PathView) -> bool) {
    // Sending changes a path's own room only: `fast` stays the fastest live path, and is used until it is full.
    if fast.eligible() && !round.fill(fast.id) {
        return;
    }
    while let Some(slow) = round.fastest_eligible() {
        let id = slow.id;
        if waits(round, slow) || !round.send_next(id) {
            return;
        }
    }
}

/// May send now, or is safe to wait for.
pub fn live(view: &View, path: &PathView) -> bool {
    path.eligible() || view.may_wait_for(path.id)
}

/// The live candidate with the lowest RTT; ties go to the lower id.
pub fn fastest_live(view: &View) -> Option<&PathView> {
    view.candidates().filter(|p| live(view, p)).min_by_key(|p| (p.rtt_or_max(), p.id))
}

/// Packets per second at the window's rate; `None` without an RTT sample.
pub fn rate(path: &PathView) -> Option<f64> {
    let rtt = path.srtt?.max(Duration::from_nanos(1));
    Some(f64::from(path.cwnd.max(1)) / rtt.as_secs_f64())
}

/// At most one path may carry new data, so there is no choice.
pub fn no_choice(view: &View) -> bool {
    view.candidates().nth(1).is_none()
}

/// The parameter of schedulers that may read the capacities of the paths, `about` what of theirs these replace.
pub const fn capacity_flag(about: &'static str) -> Handle<bool> {
    flag("capacity", false).about(about)
}

/// Bytes per second that a full path still takes, once its capacity is known: that, or its window per least RTT.
pub fn refill_rate(path: &PathView) -> Option<f64> {
    let (rate, (_, window)) = path.capacity_rate().zip(without_queue(path))?;
    Some(rate.min(window))
}

/// Least RTT in seconds, and a window per least RTT in bytes per second. `None` before the first RTT sample.
pub fn without_queue(path: &PathView) -> Option<(f64, f64)> {
    // Of no length at all, a round trip would be a rate without bound.
    let base = path.min_rtt?.max(Duration::from_nanos(1)).as_secs_f64();
    Some((base, f64::from(path.cwnd.max(1)) * f64::from(path.mss) / base))
}

/// A limit other than the paths' own windows stops new data: the peer's window blocks the next segment, or everything
/// written is bound and the application waits for room in the send buffer.
pub fn blocked(view: &View) -> bool {
    if view.backlog().is_empty() { view.send_buffer_full() } else { view.window_blocked() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::{Cause, Scheduler};

    /// Schedulers that bind data ahead of the congestion windows, with their parameters.
    const QUEUEING: [(&str, &[(&str, f64)]); 6] = [
        ("sttf", &[]),
        ("otias", &[]),
        ("daps", &[]),
        ("fifo", &[("queue", 9.0)]),
        ("mtcs", &[("queue", 9.0)]),
        ("fifo", &[("ns2_binding", 1.0)]),
    ];

    fn build(name: &str, parameters: &[(&str, f64)]) -> Box<dyn Scheduler> {
        let parameters: Vec<_> = parameters.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        crate::build(name, &parameters).unwrap()
    }

    /// Path 0 is the fastest, and the peer's window has less room than one of its segments.
    #[test]
    fn schedulers_that_queue_pass_over_a_path_whose_segment_does_not_fit() {
        for (name, parameters) in QUEUEING {
            let window = MSS - 100;
            let large = PathView { window, ..path(0, 10, 4, 0) };
            let small = PathView { window, mss: 800, segment: 800, worth: 800, ..path(1, 50, 4, 0) };
            let mut bench = Bench::new(&[large, small]);
            bench.write(3);
            bench.round(&mut *build(name, parameters));
            let queued = [0, 1].map(|id| bench.view.queue(PathId(id)).map(|q| q.range.len()).collect::<Vec<_>>());
            let fits = queued[0].iter().all(|len| *len <= window);
            assert!(fits && !queued[1].is_empty(), "{name}: {queued:?}");
        }
    }

    /// The second segment was sent, and of the first a part, as a probe of a small window. Its rest has room, a whole segment
    /// has none.
    #[test]
    fn every_scheduler_fills_a_gap_that_the_window_admits() {
        let plain = crate::all().iter().map(|entry| (entry.name, &[][..]));
        let mut idle = Vec::new();
        for (name, parameters) in plain.chain(QUEUEING) {
            let mut bench = Bench::with_window(&[path(0, 10, 4, 0), path(1, 50, 4, 0)], 2 * MSS + 10);
            bench.write(4);
            for range in [Range::new(0, 65), Range::new(MSS, 2 * MSS)] {
                assert!(Round::new(&mut bench.view, &mut bench.windows, Cause::Written).send(PathId(0), range));
                bench.send(0);
            }
            bench.round(&mut *build(name, parameters));
            if bench.view.backlog().first() != Some(Range::new(2 * MSS, 4 * MSS)) {
                idle.push((name, parameters));
            }
        }
        assert_eq!(idle, []);
    }

    #[test]
    fn the_rest_of_what_was_written_needs_no_room_for_a_segment() {
        let short = PathView { window: MSS / 2, ..path(0, 10, 4, 0) };
        let mut bench = Bench::new(&[short]);
        bench.write(1);
        assert!(!admits(&bench.view, &short));
        bench.view.on_data_acked(MSS / 2);
        assert!(admits(&bench.view, &short));
    }
}
