//! The assignment of data to subflows: the state that a [`View`] shows, and everything that changes it.

use super::queue::PathQueue;
use super::view::{Message, Queued};
use super::{Binding, Numbering, SenderPolicy, View};
use crate::capacity::Capacity;
use crate::ensemble::Member;
use crate::path::PathView;
use anabranch_units::SendKind;
use anabranch_units::{Instant, PathId, Range, RangeSet};
use core::ops::Deref;

/// The send side's assignment of data to subflows. The connection keeps it up to date, rounds change it by their
/// commands, and tests set up situations with it; schedulers read it as a [`View`].
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    pub(super) view: View,
    /// Some first transmission was copied while it still waited in a queue: another path may have delivered it.
    pub(super) copied_early: bool,
    /// End of the data that [`Round::send_all_again`](super::Round::send_all_again) made new again.
    pub(super) again_below: u64,
    /// The scheduler reads the paths' capacities.
    pub(super) measures: bool,
    /// The connection's part in what its endpoint knows of them.
    pub(super) member: Member,
}

impl Deref for Assignment {
    type Target = View;
    fn deref(&self) -> &View {
        &self.view
    }
}

impl Assignment {
    /// The assignment of an empty connection; `nagle` holds back small rests.
    pub fn new(nagle: bool) -> Self {
        Self { view: View { nagle, send_buffer: u64::MAX, ..View::default() }, ..Self::default() }
    }
    /// Sets the time.
    pub fn set_now(&mut self, now: Instant) {
        self.view.now = now;
    }
    /// Adds a path or replaces what is known of it; queue counts are kept by the view itself.
    pub fn set_path(&mut self, path: PathView) {
        let segment = self.largest_worth().min(path.mss.into()) as u32;
        let capacity = path.capacity.or(self.measures.then(Capacity::default));
        let path = PathView { segment, worth: segment, capacity, ..path };
        match self.index(path.id) {
            Some(i) => {
                let (queued, queued_bytes) = (self.view.paths[i].queued, self.view.paths[i].queued_bytes);
                self.view.paths[i] = PathView { queued, queued_bytes, ..path };
            }
            None => {
                let i = self.view.paths.partition_point(|p| p.id < path.id);
                self.view.paths.insert(i, PathView { queued: 0, queued_bytes: 0, ..path });
                self.view.queues.insert(i, PathQueue::default());
            }
        }
    }
    /// Segments of a path have at most `mss` bytes, above 0; what is bound to it already is cut.
    pub fn set_mss(&mut self, id: PathId, mss: u32) {
        let segment = self.largest_worth().min(mss.into()) as u32;
        let Some(i) = self.index(id) else { return };
        let p = &mut self.view.paths[i];
        (p.mss, p.segment, p.worth) = (mss, segment, segment);
        if self.view.queues[i].cut_to(mss.into()) {
            self.recount(i);
        }
    }
    /// Our data is numbered like this from here on.
    pub fn set_numbering(&mut self, numbering: Numbering) {
        self.view.numbering = numbering;
    }
    /// A path's values, to be changed in place. Leave the queue counts alone.
    #[inline]
    pub fn path_mut(&mut self, id: PathId) -> Option<&mut PathView> {
        self.index(id).map(|i| &mut self.view.paths[i])
    }
    /// The application wrote up to `offset`.
    pub fn set_written(&mut self, offset: u64) {
        if offset > self.view.written {
            self.view.backlog.insert(Range::new(self.view.written, offset));
            self.view.written = offset;
        }
    }
    /// The next `len` bytes that are written are one message, which is late for the application after `deadline`. Refused if that is
    /// none, or if the message before is not wholly written: so there are no more messages than bytes in the send buffer.
    pub fn begin_message(&mut self, len: u64, deadline: Option<Instant>) -> bool {
        let fits = len > 0 && self.view.messages.back().is_none_or(|last| last.range.end <= self.view.written);
        if fits {
            let range = Range::new(self.view.written, self.view.written.saturating_add(len));
            self.view.messages.push_back(Message { range, deadline });
        }
        fits
    }
    /// The application will write no more: a message that is not wholly written ends here.
    pub fn set_ended(&mut self) {
        self.view.ended = true;
        if let Some(last) = self.view.messages.back_mut() {
            last.range.end = last.range.end.min(self.view.written);
        }
    }
    /// The application waits for room in the send buffer.
    pub fn set_buffer_full(&mut self, full: bool) {
        self.view.buffer_full = full;
    }
    /// The sender is to act like this.
    pub fn set_sender(&mut self, sender: SenderPolicy) {
        self.view.sender = sender;
    }
    /// The send buffer holds `bytes`, and so many `paths` are known beforehand.
    pub fn set_send_buffer(&mut self, bytes: u64, paths: usize) {
        self.view.send_buffer = bytes;
        self.view.known_paths = paths;
        // A vector that grows on demand makes room for four at least.
        self.view.paths.reserve_exact(paths);
        self.view.queues.reserve_exact(paths);
    }
    /// The peer's window: its size and its right edge. An edge never moves back, and an acknowledgment that another one
    /// overtook does not show the size.
    #[inline(always)]
    pub fn set_window(&mut self, size: u64, edge: u64) {
        let from = edge.saturating_sub(size);
        if from >= self.view.window_from {
            (self.view.window_from, self.view.send_window) = (from, size);
        }
        self.view.window_edge = self.view.window_edge.max(edge);
        if size > self.view.max_window {
            self.widen_window(size);
        }
    }
    /// The peer never had a window as wide as `size`.
    #[cold]
    #[inline(never)]
    fn widen_window(&mut self, size: u64) {
        self.view.max_window = size;
        let worth = self.largest_worth();
        self.view.paths.iter_mut().for_each(|p| p.segment = worth.min(p.mss.into()) as u32);
    }
    /// A round begins: what the windows must have room for follows from what waits.
    #[inline]
    pub fn weigh(&mut self) {
        let waits = self.view.backlog.bytes().max(1);
        for p in &mut self.view.paths {
            p.worth = waits.min(p.segment.into()) as u32;
        }
    }
    /// `path` sent `range`.
    #[inline(always)]
    pub fn on_sent(&mut self, path: PathId, range: Range) {
        if range.start < self.view.acked {
            return self.on_sent_late(path, range);
        }
        self.view.outstanding.sent(path, range);
        if self.copied_early && self.view.sender.binding == Binding::Revocable {
            // A copy left although the path that was to send first gave the data back.
            self.view.backlog.remove(range);
        }
    }

    /// The same of data that the peer has in part, where what is bound leaves whatever the peer has.
    #[cold]
    #[inline(never)]
    fn on_sent_late(&mut self, path: PathId, range: Range) {
        if self.view.acked < range.end {
            self.on_sent(path, Range::new(self.view.acked, range.end));
        }
    }

    /// The peer has everything below `offset`.
    pub fn on_data_acked(&mut self, offset: u64) {
        if offset <= self.view.acked {
            return;
        }
        self.view.acked = offset;
        self.view.outstanding.acked(offset);
        self.view.rescue.remove_below(offset);
        self.view.backlog.remove_below(offset);
        while self.view.messages.front().is_some_and(|message| message.range.end <= offset) {
            self.view.messages.pop_front();
        }
        let revocable = self.view.sender.binding == Binding::Revocable;
        for i in 0..if revocable { self.view.queues.len() } else { 0 } {
            // Queued copies may have become pointless. First transmissions follow in order: the first of them is below `offset`
            // only if what a lost path carried was queued again, unless a copy overtook them.
            let gone = self.view.queues[i].remove_below(offset, self.copied_early);
            if gone > 0 {
                let bytes = self.view.paths[i].queued_bytes - gone;
                self.show_queue(i, bytes);
            }
        }
    }
    /// A timeout or a lost subflow: what `path` carries and no other healthy path does must go out again elsewhere.
    pub fn strand(&mut self, path: PathId) {
        let healthy: u32 = self.view.paths.iter().filter(|p| p.usable && p.id != path).map(|p| p.id.bit()).sum();
        for (range, copies) in self.view.outstanding.iter() {
            if copies.on(path) && copies.paths & healthy == 0 {
                self.view.rescue.insert(range);
            }
        }
    }
    /// `path` delivers after all what it carries: that need not go out again elsewhere.
    pub fn unstrand(&mut self, path: PathId) {
        for (range, _) in self.view.outstanding.iter().filter(|(_, copies)| copies.on(path)) {
            self.view.rescue.remove(range);
        }
    }
    /// Data sent and not acknowledged at connection level is new again; its queued copies are dropped.
    pub fn send_all_again(&mut self) {
        self.take_all_back();
        for (range, _) in core::mem::take(&mut self.view.outstanding).iter() {
            self.view.backlog.insert(range);
        }
        self.view.rescue = RangeSet::new();
    }
    /// Data given to paths and not acknowledged at connection level is new again; what is queued remains there as well.
    pub(super) fn renew(&mut self) {
        let bound = self.view.backlog.first().map_or(self.view.written, |next| next.start);
        self.view.backlog.insert(Range::new(self.view.acked, bound.max(self.view.acked)));
        self.view.rescue = RangeSet::new();
        self.again_below = self.again_below.max(bound);
    }
    /// `range` left before, and some of it may be acknowledged by now.
    pub fn has_left(&self, range: Range) -> bool {
        range.start < self.again_below
            && (range.start < self.view.acked || self.view.outstanding.at(range.start).is_some())
    }
    /// The lowest data that waits in a queue and leaves whatever the peer acknowledges.
    #[inline(always)]
    pub fn lowest_kept(&self) -> Option<u64> {
        match self.view.sender.binding {
            Binding::Revocable => None,
            Binding::Final => self.view.queues.iter().flat_map(PathQueue::iter).map(|q| q.range.start).min(),
        }
    }
    /// A subflow is gone: its data is stranded, its queue goes back to the backlog, the path is forgotten.
    pub fn remove_path(&mut self, id: PathId) {
        let Some(i) = self.index(id) else { return };
        self.strand(id);
        self.unbind(id);
        self.member.leave(id);
        self.view.paths.remove(i);
        self.view.queues.remove(i);
        self.view.outstanding.forget(id);
    }
    /// Takes back what is bound to `id` and never left.
    pub fn take_back(&mut self, id: PathId) {
        if let Some(i) = self.index(id) {
            self.give_back(i, false);
        }
    }
    /// Takes back what is bound to any path and never left.
    pub fn take_all_back(&mut self) {
        for i in 0..self.view.queues.len() {
            self.give_back(i, false);
        }
    }
    /// A path is of no use for now: what is bound to it and never left goes back, and with it the new data that other
    /// paths have queued. Otherwise later data, which the peer's window does not admit yet, could fill the queues of all
    /// of them while the lowest is bound to none.
    pub fn unbind(&mut self, id: PathId) {
        let bound = self.queue(id).any(|q| q.kind == SendKind::First);
        self.take_back(id);
        for other in 0..if bound { self.view.paths.len() } else { 0 } {
            self.give_back(other, true);
        }
    }
    /// Nothing more is bound: gives back the memory of what is gone.
    pub fn give_memory_back(&mut self) {
        self.view.paths.shrink_to_fit();
        self.view.queues.shrink_to_fit();
        self.view.queues.iter_mut().for_each(PathQueue::shrink_to_fit);
        self.view.messages.shrink_to_fit();
        self.view.outstanding.give_back();
    }
    /// Queued data goes back to where it came from; `copies_stay`: only new data does.
    fn give_back(&mut self, i: usize, copies_stay: bool) {
        let acked = self.view.acked;
        for mut q in self.view.queues[i].drain() {
            q.range = Range::new(q.range.start.max(acked), q.range.end.max(acked));
            match q.kind {
                SendKind::First => {
                    self.view.backlog.insert(q.range);
                    if self.copied_early {
                        let sent = self.view.outstanding.from(q.range.start).take_while(|(r, _)| r.start < q.range.end);
                        sent.for_each(|(r, _)| {
                            self.view.backlog.remove(r.intersect(q.range));
                        });
                    }
                }
                _ if copies_stay => self.view.queues[i].push_back_copy(q),
                SendKind::Rescue => {
                    self.view.rescue.insert(q.range);
                }
                SendKind::Opportunistic | SendKind::Copy | SendKind::Retransmission => {}
            }
        }
        self.recount(i);
    }
    /// The first range in the path's queue that the peer's window admits, taken out of the queue.
    #[inline(always)]
    pub fn take_admissible(&mut self, id: PathId) -> Option<Queued> {
        let i = self.index(id)?;
        loop {
            let at = self.admissible(i)?;
            let taken = self.view.queues[i].take(at)?;
            let path = &mut self.view.paths[i];
            path.queued -= 1;
            path.queued_bytes -= taken.range.len();
            if path.queued == 0 {
                self.view.waiting &= !path.id.bit();
            }
            if self.view.sender.binding == Binding::Final {
                return Some(taken);
            }
            // A peer may acknowledge a gap that was never sent.
            let range = Range::new(taken.range.start.max(self.view.acked), taken.range.end);
            if !range.is_empty() {
                return Some(Queued { range, ..taken });
            }
        }
    }
    /// Binds the next new segment to a path whose window may be full, for a tail loss probe, if there is one that the
    /// peer's window admits. Nagle's rule does not count.
    pub fn bind_probe(&mut self, id: PathId) {
        let Some(i) = self.index(id) else { return };
        if let Some(next) = self.view.backlog.after_skipping(0, self.segment(i)) {
            self.bind(i, next);
        }
    }
    /// Binds the next new bytes to `id`, as many as the peer's windows admit, however few: RFC 9293 §3.8.6.2.1 (4). They may
    /// have been queued for any path, also for one whose window has been shut since. False if the windows admit none.
    pub fn bind_what_fits(&mut self, id: PathId) -> bool {
        let Some(i) = self.index(id) else { return false };
        for path in 0..self.view.paths.len() {
            self.give_back(path, true);
        }
        let Some(next) = self.view.backlog.first() else { return false };
        let p = &self.view.paths[i];
        let len = p.left().min(self.view.window_edge.saturating_sub(next.start)).min(p.mss.into());
        let part = Range::new(next.start, next.end.min(next.start + len));
        !part.is_empty() && self.bind(i, part)
    }
    /// `range`, which was taken out of the queue of `id` and is about to leave there, grows to `len` bytes by the new data after it, unless
    /// less than four segments would follow, or the peer's windows do not admit them. What is queued there may go back: a round must follow.
    pub fn enlarge(&mut self, id: PathId, range: &mut Range, len: u64) {
        let Some(i) = self.index(id) else { return };
        let p = &self.view.paths[i];
        let (more, needed) = (Range::new(range.end, range.start + len), len + 4 * u64::from(p.mss));
        let upto = range.start + needed;
        if upto > self.view.window_edge.min(self.view.written) || p.window < needed {
            return;
        }
        if self.view.sender.binding == Binding::Revocable {
            self.give_back(i, true);
        }
        if self.view.backlog.covers(Range::new(range.end, upto)) {
            self.view.backlog.remove(more);
            range.end = more.end;
        }
    }
    pub(super) fn path_at_mut(&mut self, i: usize) -> &mut PathView {
        &mut self.view.paths[i]
    }
    fn recount(&mut self, i: usize) {
        let bytes = self.view.queues[i].iter().map(|q| q.range.len()).sum();
        self.show_queue(i, bytes);
    }
    /// The queue of the path at place `i` holds `bytes`.
    fn show_queue(&mut self, i: usize, bytes: u64) {
        let (path, queue) = (&mut self.view.paths[i], &self.view.queues[i]);
        path.queued = queue.len() as u32;
        path.queued_bytes = bytes;
        if queue.is_empty() { self.view.waiting &= !path.id.bit() } else { self.view.waiting |= path.id.bit() }
    }
    /// As [`View::next_new`] and [`Self::bind`] in one, with one search; of a connection that is not in sequence.
    #[inline]
    pub(super) fn bind_ahead(&mut self, i: usize, skip: u64) -> bool {
        let view = &mut self.view;
        let (mss, left) = (view.segment(i), view.paths[i].left());
        let (edge, written, holds_runts) = (view.window_edge, view.written, view.holds_runts());
        let next = view.backlog.take(skip, mss, |next| {
            let held = next.len() < mss && holds_runts && next.end == written;
            !held && next.end <= edge && next.len() <= left
        });
        if let Some(range) = next {
            self.push(i, Queued::new(range, SendKind::First));
        }
        next.is_some()
    }
    /// Binds new data to a path, to be sent now. False if the peer's windows do not admit it.
    #[inline(always)]
    pub(super) fn bind(&mut self, i: usize, range: Range) -> bool {
        let admitted = range.end <= self.view.window_edge && range.len() <= self.view.paths[i].left();
        if admitted {
            self.view.backlog.remove(range);
            self.push(i, Queued::new(range, SendKind::First));
        }
        admitted
    }
    /// Binds new data to a path, to be sent when its window has room.
    pub(super) fn bind_early(&mut self, i: usize, range: Range) {
        self.view.backlog.remove(range);
        let ahead = self.view.now;
        self.push(i, Queued { ahead, ..Queued::new(range, SendKind::First) });
    }
    /// Binds new data that follows the last new data of a path's queue, as part of that.
    pub(super) fn extend_last(&mut self, i: usize, range: Range) {
        self.view.backlog.remove(range);
        if let Some(last) = self.view.queues[i].last_first() {
            last.range.end = range.end;
            self.view.paths[i].queued_bytes += range.len();
        }
    }
    #[inline]
    pub(super) fn push(&mut self, i: usize, queued: Queued) {
        let path = &mut self.view.paths[i];
        path.queued += 1;
        path.queued_bytes += queued.range.len();
        self.view.waiting |= path.id.bit();
        match queued.kind {
            SendKind::First => self.view.queues[i].push_first(queued),
            _ => self.view.queues[i].push_copy(queued),
        }
    }
}
