//! The commands of a scheduling round.

use super::view::Queued;
use super::{Assignment, Cause, PathView, PeerWindow, View};
use crate::congestion::{CongestionControl, Loss};
use anabranch_units::{PathId, Range};
use anabranch_units::{RecoveryPhase, SendKind};
use core::ops::Deref;

/// Why data is retransmitted on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Opportunistic retransmission: to free a blocked window.
    Opportunistic,
    /// A redundant copy.
    Copy,
    /// Stranded by a timeout or a lost subflow.
    Rescue,
}

/// One round: reads like a [`View`] and takes commands. Reads reflect the round's own commands.
///
/// Each command that returns `false` was refused and changed nothing: the path is not eligible, the data is gone, or the peer's window does
/// not admit it. So a scheduler sends while commands succeed, and ends with its own choice or the first refusal:
///
/// - new data: [`send_next`](Self::send_next), [`fill`](Self::fill), [`send_ahead`](Self::send_ahead), [`send`](Self::send) need room in the
///   path's window; [`enqueue_next`](Self::enqueue_next) and [`append`](Self::append) bind ahead of it, and [`recall`](Self::recall) takes
///   back what has not left.
/// - data under way: [`repeat`](Self::repeat), [`release`](Self::release), [`rescue_by`](Self::rescue_by).
/// - a path: [`penalise`](Self::penalise).
///
/// [`Command`](super::Command) has them as values.
pub struct Round<'a> {
    assignment: &'a mut Assignment,
    congestion: &'a mut dyn CongestionControl,
    cause: Cause,
    penalised: u32,
    stale: u32,
}

impl Deref for Round<'_> {
    type Target = View;
    fn deref(&self) -> &View {
        self.assignment
    }
}

impl<'a> Round<'a> {
    /// A round over `assignment`; penalties go to `congestion`.
    pub fn new(assignment: &'a mut Assignment, congestion: &'a mut dyn CongestionControl, cause: Cause) -> Self {
        Self { assignment, congestion, cause, penalised: 0, stale: 0 }
    }

    /// Why this round is held.
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Paths penalised in this round, as a set of [`PathId::bit`]s.
    pub const fn penalised(&self) -> u32 {
        self.penalised
    }

    /// Paths declared stale in this round, as a set of [`PathId::bit`]s.
    pub const fn stale(&self) -> u32 {
        self.stale
    }

    /// Path `id` has a capacity of `rate` bytes per second for a scheduler that reads it, until the acknowledgments show another one:
    /// until the next gap between two that counts ([`Capacity`](super::Capacity)), which may be never. Nothing happens where
    /// capacities are not measured. For wrappers that know better than the acknowledgments do.
    pub fn assume_capacity(&mut self, id: PathId, rate: f64) {
        let measured = self.assignment.path_mut(id).and_then(|path| path.capacity.as_mut());
        measured.into_iter().for_each(|capacity| capacity.assume(rate));
    }

    /// Binds the next new segment to `on`, to be sent now. Refused if the path is not [`PathView::eligible`],
    /// if there is no new data, or if the peer's window does not admit it.
    pub fn send_next(&mut self, on: PathId) -> bool {
        self.eligible(on).is_some_and(|i| self.bind_next(i))
    }

    /// [`Self::send_next`] on `on` while it takes segments. True if it stopped for lack of room, false if data or the peer's window
    /// ran out.
    pub fn fill(&mut self, on: PathId) -> bool {
        let Some(i) = self.assignment.index(on) else { return true };
        while self.assignment.paths()[i].eligible() {
            if !self.bind_next(i) {
                return false;
            }
        }
        true
    }

    /// Binds the next new segment to the path at place `i`.
    #[inline(always)]
    fn bind_next(&mut self, i: usize) -> bool {
        let next = self.assignment.next_of(0, self.assignment.segment(i));
        next.is_some_and(|next| self.assignment.bind(i, next))
    }

    /// As [`Self::send_next`], but skips `skip` bytes of unassigned data first.
    pub fn send_ahead(&mut self, on: PathId, skip: u64) -> bool {
        if skip == 0 || self.assignment.is_in_sequence() {
            return self.send_next(on);
        }
        self.eligible(on).is_some_and(|i| self.assignment.bind_ahead(i, skip))
    }

    /// Binds `range` of unassigned data to `on`, to be sent now. Refused too if the range is empty, longer than a
    /// segment, or not wholly unassigned.
    pub fn send(&mut self, on: PathId, range: Range) -> bool {
        let Some(i) = self.eligible(on) else { return false };
        let mss = self.assignment.paths()[i].mss;
        let whole = !range.is_empty() && range.len() <= u64::from(mss) && self.assignment.backlog.covers(range);
        whole && self.assignment.bind(i, range)
    }

    /// Binds the next new segment to `on`, to be sent when its window and the peer's allow. Refused if the path is not
    /// usable, if there is no new data, or if the queue would be out of order.
    pub fn enqueue_next(&mut self, on: PathId) -> bool {
        let Some(i) = self.assignment.index(on) else { return false };
        let p = self.assignment.paths()[i];
        if !p.usable {
            return false;
        }
        let Some(next) = self.assignment.next_new(0, p.mss) else { return false };
        if self.assignment.queues[i].firsts().next_back().is_some_and(|last| last.end > next.start) {
            return false;
        }
        self.assignment.bind_early(i, next);
        true
    }

    /// As [`Self::enqueue_next`], but binds no data from `end` on, and as little as there is before it. Data that continues
    /// the last of the queue finds room in its last segment, unless part of what was bound together with that has left:
    /// its mapping is on the wire then. Returns what was bound.
    ///
    /// Linux 6.18: `mptcp_sendmsg_frag`, `mptcp_skb_can_collapse_to`.
    pub fn append(&mut self, on: PathId, end: u64) -> Option<Range> {
        let i = self.assignment.index(on)?;
        let p = self.assignment.paths()[i];
        let next = self.assignment.backlog().first().filter(|next| next.start < end && p.usable)?;
        let queue = &self.assignment.queues[i];
        let (first, last) = (queue.firsts().next(), queue.firsts().next_back());
        if last.is_some_and(|last| last.end > next.start) && next.start >= self.assignment.again_below {
            return None;
        }
        let whole = first.is_some_and(|first| first.start <= queue.open);
        let open = last.filter(|last| whole && last.end == next.start);
        let room = open.map_or(0, |last| u64::from(p.mss).saturating_sub(last.len()));
        let most = if room > 0 { room } else { p.mss.into() };
        let bound = Range::new(next.start, next.end.min(end).min(next.start + most));
        if open.is_none() {
            self.assignment.view.queues[i].open = bound.start;
        }
        if room > 0 {
            self.assignment.extend_last(i, bound);
        } else {
            self.assignment.bind_early(i, bound);
        }
        Some(bound)
    }

    /// Sends outstanding data once more, on another path, ahead of its queue; or copies a segment that another path is
    /// about to send first. Refused if the path is not [`PathView::eligible`] (for a rescue, later data in its queue
    /// does not count against it), carries or queues some of it already, or if the range is empty, longer than a segment,
    /// or neither wholly outstanding nor within one such segment.
    pub fn repeat(&mut self, on: PathId, range: Range, why: Repeat) -> bool {
        let able = |p: &&PathView| if why == Repeat::Rescue { self.may_rescue(p, range) } else { p.eligible() };
        let Some(p) = self.assignment.path(on).filter(able) else { return false };
        if range.is_empty() || range.len() > u64::from(p.mss) || range.end > self.assignment.window_edge() {
            return false;
        }
        let sent = self.outstanding_elsewhere(on, range);
        if self.waits_on(on, range, sent) {
            return false;
        }
        if !sent {
            if !self.first_elsewhere(on, range) {
                return false;
            }
            self.assignment.copied_early = true;
        }
        let kind = match why {
            Repeat::Opportunistic => SendKind::Opportunistic,
            Repeat::Copy => SendKind::Copy,
            Repeat::Rescue => SendKind::Rescue,
        };
        if why == Repeat::Rescue {
            self.assignment.view.rescue.remove(range);
        }
        let i = self.assignment.index(on).expect("eligible paths exist");
        self.assignment.push(i, Queued::new(range, kind));
        true
    }

    /// A path with nothing in flight may repeat what of `range` it carried: its subflow has acknowledged that, and the peer
    /// dropped it (RFC 8684 §3.3.6). True if there was such data; never with [`PeerWindow::OfSegment`], since such a sender does not
    /// overrun windows.
    pub fn release(&mut self, on: PathId, range: Range) -> bool {
        // Packets that a timeout called lost are not in flight, and not acknowledged.
        let whole = |p: &PathView| p.recovery == RecoveryPhase::Open && p.in_flight_bytes == 0 && p.queued == 0;
        let idle = self.assignment.path(on).is_some_and(whole);
        idle && self.assignment.sender().window == PeerWindow::OfSubflow
            && self.assignment.view.outstanding.released(on, range)
    }

    /// Takes back what was bound to `on` and never left; new data returns to the backlog.
    pub fn recall(&mut self, on: PathId) {
        self.assignment.take_back(on);
    }

    /// Declares `on` stale: it is given no data until it delivers again. What waits for it remains in its queue. For a scheduler
    /// that [keeps silent paths](super::Scheduler::waits_for_timeouts).
    pub fn set_stale(&mut self, on: PathId) {
        let Some(i) = self.assignment.index(on) else { return };
        self.assignment.path_at_mut(i).usable = false;
        self.stale |= on.bit();
    }

    /// Makes all data new again that was given to paths and is not acknowledged at connection level, whatever path carries it.
    /// Stranded data is part of it.
    ///
    /// Linux 6.18: `__mptcp_retransmit_pending_data`.
    pub fn send_all_again(&mut self) {
        self.assignment.renew();
    }

    /// Penalises `on`; congestion control decides how much. The round sees the new window at once.
    pub fn penalise(&mut self, on: PathId) {
        let Some(i) = self.assignment.index(on) else { return };
        let now = self.assignment.now();
        self.congestion.on_loss(on, now, Loss::Penalty, self.assignment.paths());
        let window = self.congestion.window(on);
        let p = self.assignment.path_at_mut(i);
        p.cwnd = window.cwnd;
        p.ssthresh = window.ssthresh;
        self.penalised |= on.bit();
    }

    /// Sends stranded data on the candidate with the lowest RTT that has not carried it; see [`Self::rescue_by`].
    pub fn rescue_by_rtt(&mut self) {
        let backups = !self.has_active();
        self.rescue_by(|p| (p.usable && (backups || !p.backup)).then_some((p.rtt_or_max(), p.id)));
    }

    /// Sends stranded data on the path of the least rank that has not carried it; those without a rank take none. A path
    /// that might still take it but has no room is waited for, if waiting is safe. What all of them carry already is left
    /// to their own retransmissions; what no path carries any more stays stranded until one takes it.
    pub fn rescue_by<K: Ord>(&mut self, rank: impl Fn(&PathView) -> Option<K>) {
        while let Some(stranded) = self.assignment.rescue.first() {
            if self.send_new_below(stranded, &rank) {
                continue;
            }
            let Some((run, copies)) = self.assignment.outstanding.at(stranded.start) else {
                self.assignment.view.rescue.remove(stranded);
                continue;
            };
            let fresh = |p: &&PathView| !copies.on(p.id) && rank(p).is_some();
            if !self.paths().iter().any(|p| fresh(&p)) {
                if copies.paths == 0 {
                    // No subflow retransmits it: it waits for a path with a rank.
                    return;
                }
                // One that dies strands it again.
                self.assignment.view.rescue.remove(run.intersect(stranded));
                continue;
            }
            let able = self.paths().iter().filter(|p| fresh(p) && self.may_rescue(p, stranded));
            let Some(p) = able.min_by_key(|p| rank(p)).copied() else { return };
            let whole = run.intersect(stranded);
            let most = p.left().min(p.mss.into());
            let range = Range::new(whole.start, whole.end.min(whole.start + most));
            if !self.repeat(p.id, range, Repeat::Rescue) {
                return;
            }
        }
    }

    /// New data below `stranded` (a scheduler that skips data had left it to a path that is gone) holds up the receiver more
    /// than that: a segment of it goes first, on the path of the least rank that has room. False: nothing went.
    fn send_new_below<K: Ord>(&mut self, stranded: Range, rank: impl Fn(&PathView) -> Option<K>) -> bool {
        if self.assignment.backlog.first().is_none_or(|new| new.start >= stranded.start) {
            return false;
        }
        let able = self.paths().iter().filter(|p| p.eligible() && rank(p).is_some());
        let Some((on, mss)) = able.min_by_key(|p| rank(p)).map(|p| (p.id, p.mss)) else { return false };
        self.next_new(0, mss).is_some_and(|next| self.send(on, next))
    }

    /// The index of a path that is [`PathView::eligible`].
    #[inline]
    fn eligible(&self, on: PathId) -> Option<usize> {
        self.assignment.index(on).filter(|i| self.assignment.paths()[*i].eligible())
    }

    /// As [`PathView::eligible`] but for later data in the queue: a scheduler that binds data long before it leaves must
    /// not keep stranded data from being rescued.
    fn may_rescue(&self, p: &PathView, range: Range) -> bool {
        let Some(i) = self.assignment.index(p.id) else { return false };
        let ahead = self.assignment.queues[i].ahead_of(Queued::new(range, SendKind::Rescue));
        PathView { queued: ahead.min(p.cwnd as usize) as u32, ..*p }.eligible()
    }

    /// Some of `range` waits in the queue of `on`. `sent`: all of it was sent on another path.
    fn waits_on(&self, on: PathId, range: Range, sent: bool) -> bool {
        let Some(i) = self.assignment.index(on) else { return false };
        let queue = &self.assignment.queues[i];
        // Sent data waits as a first transmission only where a copy overtook that, or where it was made new again.
        let may_be_first = !sent || self.assignment.copied_early || range.start < self.assignment.again_below;
        let waits = queue.holds_copy(range) || (may_be_first && queue.holds_first(range));
        debug_assert_eq!(waits, self.assignment.queue(on).any(|q| !q.range.intersect(range).is_empty()));
        waits
    }

    /// All of `range` was sent and none of it on `on`.
    fn outstanding_elsewhere(&self, on: PathId, range: Range) -> bool {
        let mut from = range.start;
        for (run, copies) in self.assignment.outstanding.from(range.start) {
            if run.start > from || copies.on(on) || from >= range.end {
                break;
            }
            from = run.end;
        }
        from >= range.end
    }

    /// Another path is about to send `range` for the first time.
    fn first_elsewhere(&self, on: PathId, range: Range) -> bool {
        let mut others = self.assignment.paths().iter().zip(&self.assignment.queues).filter(|(p, _)| p.id != on);
        others.any(|(_, queue)| queue.holds_whole(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::FixedWindows;
    use crate::schedule::SenderPolicy;
    use anabranch_units::Instant;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);
    const FIRST: Range = Range::new(0, 1000);

    /// Two paths with room, two segments of 1000 bytes written; the first is bound to `A`.
    fn bound() -> Assignment {
        let mut view = Assignment::new(false);
        view.set_path(PathView::new(A, 1000));
        view.set_path(PathView::new(B, 1000));
        view.set_window(1 << 20, 1 << 20);
        view.set_written(2000);
        assert!(with_round(&mut view, |round| round.send_next(A)));
        view
    }

    fn with_round<T>(view: &mut Assignment, commands: impl FnOnce(&mut Round<'_>) -> T) -> T {
        commands(&mut Round::new(view, &mut FixedWindows::default(), Cause::Written))
    }

    #[test]
    fn what_is_about_to_leave_is_worth_waiting_for() {
        let mut view = bound();
        assert!(view.may_wait_for(A) && !view.may_wait_for(B));
        view.take_back(A);
        assert!(!view.may_wait_for(A));
    }

    /// The time goes with the data, though its head is acknowledged; a copy has none, nor has data that was bound again.
    #[test]
    fn what_waits_for_its_window_keeps_when_it_was_bound() {
        let mut view = Assignment::new(false);
        view.set_path(PathView::new(A, 1000));
        view.set_path(PathView { cwnd: 10, ..PathView::new(B, 1000) });
        view.set_window(1 << 20, 1 << 20);
        view.set_written(2000);
        view.set_now(Instant::from_millis(5));
        assert!(with_round(&mut view, |round| round.enqueue_next(A) && round.enqueue_next(A)));
        view.set_now(Instant::from_millis(7));
        assert!(with_round(&mut view, |round| round.repeat(B, FIRST, Repeat::Copy)));
        assert_eq!(view.take_admissible(B).map(|q| (q.range, q.ahead)), Some((FIRST, Instant::MAX)));
        view.on_data_acked(500);
        let cut = view.take_admissible(A).map(|q| (q.range, q.ahead));
        assert_eq!(cut, Some((Range::new(500, 1000), Instant::from_millis(5))));
        view.take_back(A);
        assert!(with_round(&mut view, |round| round.send_next(B)));
        assert_eq!(view.take_admissible(B).map(|q| q.ahead), Some(Instant::MAX));
    }

    /// Stops for lack of room, of data, of the peer's window, and at a runt that Nagle's rule holds back.
    #[test]
    fn a_path_is_filled_as_by_single_commands() {
        for (cwnd, written, window, nagle, stops_for_room) in [
            (3, 9000, 9000, false, true),
            (9, 3500, 9000, false, false),
            (9, 3500, 9000, true, false),
            (9, 9000, 2500, false, false),
            (0, 9000, 9000, false, true),
        ] {
            let mut filled = Assignment::new(nagle);
            filled.set_path(PathView { cwnd, ..PathView::new(A, 1000) });
            filled.set_window(window, window);
            filled.set_written(written);
            let mut single = filled.clone();
            assert_eq!(with_round(&mut filled, |round| round.fill(A)), stops_for_room, "{cwnd} {written} {window}");
            with_round(&mut single, |round| while round.send_next(A) {});
            assert!(filled.queue(A).eq(single.queue(A)) && filled.backlog() == single.backlog());
            assert_eq!(filled.path(A), single.path(A));
        }
        assert!(with_round(&mut bound(), |round| round.fill(PathId(7))), "a path that is not there has no room");
    }

    #[test]
    fn a_segment_may_be_copied_before_it_leaves() {
        let mut view = bound();
        with_round(&mut view, |round| {
            assert!(!round.repeat(A, FIRST, Repeat::Copy), "queued there already");
            assert!(!round.repeat(B, Range::new(1000, 2000), Repeat::Copy), "bound nowhere");
            assert!(round.repeat(B, FIRST, Repeat::Copy));
            assert!(!round.repeat(B, FIRST, Repeat::Copy));
        });
    }

    #[test]
    fn a_rescue_goes_ahead_of_data_bound_beyond_the_window() {
        let mut view = bound();
        view.set_written(20_000);
        let first = view.take_admissible(A).unwrap();
        view.on_sent(A, first.range);
        with_round(&mut view, |round| while round.enqueue_next(B) {});
        assert_eq!(view.path(B).unwrap().room(), 0);
        view.path_mut(A).unwrap().usable = false;
        view.strand(A);
        with_round(&mut view, |round| {
            assert!(!round.repeat(B, FIRST, Repeat::Copy));
            round.rescue_by_rtt();
        });
        assert_eq!(view.queue(B).next().map(|q| (q.range, q.kind)), Some((FIRST, SendKind::Rescue)));
        let later = Queued::new(Range::new(1500, 2500), SendKind::Rescue);
        assert_eq!(view.queue(B).filter(|q| q.yields_to(later)).map(|q| q.range.start).min(), Some(2000));
        view.path_mut(B).unwrap().in_flight = 10;
        assert!(!with_round(&mut view, |round| round.repeat(B, FIRST, Repeat::Rescue)), "the window is full");
    }

    #[test]
    fn what_was_skipped_goes_before_what_is_rescued() {
        let mut view = bound();
        view.unbind(A);
        let second = Range::new(1000, 2000);
        assert!(with_round(&mut view, |round| round.send(A, second)));
        let sent = view.take_admissible(A).unwrap();
        view.on_sent(A, sent.range);
        view.path_mut(A).unwrap().usable = false;
        view.strand(A);
        with_round(&mut view, |round| round.rescue_by_rtt());
        let queue: Vec<_> = view.queue(B).map(|q| (q.range, q.kind)).collect();
        assert_eq!(queue, [(FIRST, SendKind::First), (second, SendKind::Rescue)]);
    }

    /// A scheduler may rank no path for a while, as active-backup does while none works.
    #[test]
    fn what_no_path_carries_stays_stranded_until_one_has_a_rank() {
        let mut view = bound();
        let sent = view.take_admissible(A).unwrap();
        view.on_sent(A, sent.range);
        view.remove_path(A);
        with_round(&mut view, |round| round.rescue_by(|_| None::<()>));
        assert_eq!(view.rescue().first(), Some(FIRST));
        with_round(&mut view, |round| round.rescue_by(|p| Some(p.id)));
        assert_eq!(view.queue(B).next().map(|q| (q.range, q.kind)), Some((FIRST, SendKind::Rescue)));
    }

    #[test]
    fn the_lowest_data_of_a_useless_path_is_not_kept_waiting_by_other_queues() {
        let mut view = bound();
        view.set_written(20_000);
        with_round(&mut view, |round| while round.enqueue_next(B) {});
        view.unbind(A);
        assert_eq!(view.backlog().first(), Some(Range::new(0, 20_000)));
        assert!(with_round(&mut view, |round| round.send_next(B)));
        view.unbind(A);
        assert_eq!(view.queue(B).count(), 1, "nothing was bound to it");
    }

    #[test]
    fn messages_are_ranges_of_the_stream_until_they_are_acknowledged() {
        let mut view = Assignment::new(false);
        view.set_written(500);
        assert!(!view.begin_message(0, None) && view.begin_message(1000, None));
        view.set_written(1200);
        assert!(!view.begin_message(10, None), "the one before is not wholly written");
        view.set_written(1600);
        assert!(view.begin_message(u64::MAX, None));
        let (first, last) = (Range::new(500, 1500), Range::new(1600, u64::MAX));
        assert_eq!(view.messages().collect::<Vec<_>>(), [first, last]);
        let at = |view: &View, offset| view.message_at(offset);
        assert_eq!(
            [499, 500, 1499, 1500, 1600].map(|x| at(&view, x)),
            [None, Some(first), Some(first), None, Some(last)]
        );
        view.on_sent(A, Range::new(0, 1600));
        view.on_data_acked(1499);
        assert_eq!(view.messages().len(), 2);
        view.set_written(2000);
        view.set_ended();
        view.on_data_acked(1500);
        assert_eq!((view.message_at(1700), view.messages().len()), (Some(Range::new(1600, 2000)), 1));
    }

    #[test]
    fn deadlines_are_those_of_messages_that_end_later() {
        let mut view = Assignment::new(false);
        for (n, deadline) in [Some(150), None, Some(190)].into_iter().enumerate() {
            assert!(view.begin_message(100, deadline.map(Instant::from_millis)));
            view.set_written(100 * (n as u64 + 1));
        }
        let from = |view: &View, offset| view.deadlines_from(offset).collect::<Vec<_>>();
        let [first, last] =
            [(0, 150), (200, 190)].map(|(start, at)| (Range::new(start, start + 100), Instant::from_millis(at)));
        assert_eq!((from(&view, 99), from(&view, 100)), (vec![first, last], vec![last]));
        view.on_sent(A, Range::new(0, 300));
        view.on_data_acked(250);
        assert_eq!((from(&view, 0), from(&view, 300)), (vec![last], vec![]));
    }

    #[test]
    fn a_copy_that_overtakes_is_the_only_one_needed() {
        for gives_back_first in [true, false] {
            let mut view = bound();
            assert!(with_round(&mut view, |round| round.repeat(B, FIRST, Repeat::Copy)));
            if gives_back_first {
                view.take_back(A);
            }
            let copy = view.take_admissible(B).unwrap();
            view.on_sent(B, copy.range);
            view.take_back(A);
            assert_eq!(view.backlog().first(), Some(Range::new(1000, 2000)));
            assert_eq!(view.outstanding().bytes(), 1000);
        }
    }

    #[test]
    fn an_acknowledged_copy_cancels_what_it_overtook() {
        let mut view = bound();
        assert!(with_round(&mut view, |round| round.repeat(B, FIRST, Repeat::Copy)));
        let copy = view.take_admissible(B).unwrap();
        view.on_sent(B, copy.range);
        view.on_data_acked(1000);
        assert_eq!(view.queue(A).count(), 0);
        assert_eq!(view.path(A).unwrap().queued, 0);
    }

    fn appended(view: &mut Assignment, end: u64) -> Vec<Range> {
        with_round(view, |round| while round.append(B, end).is_some() {});
        view.queue(B).map(|q| q.range).collect()
    }

    #[test]
    fn what_is_appended_completes_the_last_segment_until_part_of_it_has_left() {
        let mut view = bound();
        view.set_written(9000);
        assert_eq!(appended(&mut view, 2300), [Range::new(1000, 2000), Range::new(2000, 2300)]);
        assert_eq!(appended(&mut view, 2500)[1..], [Range::new(2000, 2500)]);
        assert_eq!(view.path(B).map(|p| (p.queued, p.queued_bytes)), Some((2, 1500)));
        assert!(view.take_admissible(B).is_some());
        assert_eq!(appended(&mut view, 2600), [Range::new(2000, 2500), Range::new(2500, 2600)]);
        // The bytes that follow those 100 join them.
        assert_eq!(appended(&mut view, 3600)[1..], [Range::new(2500, 3500), Range::new(3500, 3600)]);
    }

    /// As in a kernel, whose subflows send what was given to them, though the peer has it by then.
    #[test]
    fn what_is_sent_again_follows_what_is_queued_and_stays_there() {
        let mut view = bound();
        view.set_sender(SenderPolicy::LINUX);
        let sent = view.take_admissible(A).unwrap();
        view.on_sent(A, sent.range);
        let stale = with_round(&mut view, |round| {
            round.append(B, 2000);
            round.set_stale(A);
            round.send_all_again();
            while round.append(B, 2000).is_some() {}
            round.stale()
        });
        assert_eq!((stale, view.path(A).map(|p| p.usable)), (A.bit(), Some(false)));
        let second = Range::new(1000, 2000);
        let queue = |view: &Assignment| view.queue(B).map(|q| q.range).collect::<Vec<_>>();
        assert_eq!(queue(&view), [second, FIRST, second]);
        assert!(view.has_left(FIRST) && !view.has_left(second));
        view.on_data_acked(2000);
        assert_eq!((queue(&view), view.lowest_kept()), (vec![second, FIRST, second], Some(0)));
        let first = view.take_admissible(B).unwrap();
        view.on_sent(B, first.range);
        assert!(view.has_left(second) && view.outstanding().is_empty());
        view.take_all_back();
        assert!(view.backlog().is_empty(), "the peer has it");
    }

    #[test]
    fn what_is_appended_elsewhere_is_not_continued() {
        let mut view = bound();
        view.set_written(9000);
        assert_eq!(appended(&mut view, 1500), [Range::new(1000, 1500)]);
        assert!(with_round(&mut view, |round| round.append(A, 1700)).is_some());
        assert_eq!(appended(&mut view, 1900), [Range::new(1000, 1500), Range::new(1700, 1900)]);
        assert_eq!(with_round(&mut view, |round| round.append(A, 1900)), None, "bound up to there");
    }

    #[test]
    fn what_a_timeout_called_lost_is_not_released() {
        let mut view = bound();
        let sent = view.take_admissible(A).unwrap();
        view.on_sent(A, sent.range);
        view.set_sender(SenderPolicy::LINUX);
        let mut released = |recovery| {
            view.path_mut(A).unwrap().recovery = recovery;
            with_round(&mut view, |round| round.release(A, FIRST))
        };
        assert!(!released(RecoveryPhase::Loss), "not in flight, and not acknowledged");
        assert!(released(RecoveryPhase::Open));
    }
}
