//! What schedulers see of a connection.

use super::Outstanding;
use crate::path::PathView;
use anabranch_trace::{RecoveryPhase, SendKind};
use anabranch_units::{Instant, PathId, Range, RangeSet};
use std::collections::{BTreeMap, VecDeque};

/// A range bound to a subflow and not yet sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// At most one segment.
    pub range: Range,
    /// Why.
    pub kind: SendKind,
}

impl Queued {
    /// A copy stands before first transmissions; a rescue only before those of later data: it is as urgent as they.
    pub(super) fn yields_to(&self, copy: Queued) -> bool {
        self.kind == SendKind::First && (copy.kind != SendKind::Rescue || self.range.start > copy.range.start)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub items: VecDeque<Queued>,
}

/// A connection as its scheduler sees it: paths in the order of their ids, data by what became of it.
///
/// Nothing is copied or rebuilt for a round: this is where the connection itself keeps these things. The methods that
/// change it are for the connection, and for tests that set up a situation.
#[derive(Clone, Debug, Default)]
pub struct View {
    now: Instant,
    paths: Vec<PathView>,
    pub(super) queues: Vec<Queue>,
    pub(super) backlog: RangeSet,
    pub(super) outstanding: Outstanding,
    pub(super) rescue: RangeSet,
    /// Announced and not wholly acknowledged, ascending and disjoint.
    messages: VecDeque<Range>,
    written: u64,
    ended: bool,
    acked: u64,
    window_edge: u64,
    send_window: u64,
    max_window: u64,
    buffer_full: bool,
    send_buffer: u64,
    known_paths: usize,
    /// See [`View::set_releases`].
    pub(super) releases: bool,
    nagle: bool,
    /// In plain TCP data can only be sent in the order in which it was written: nothing else says where it belongs.
    in_sequence: bool,
    /// Some first transmission was copied while it still waited in a queue: another path may have delivered it.
    pub(super) copied_early: bool,
    /// When new data was queued ahead of its window, by its first offset. Empty unless a scheduler does so.
    bound_ahead: BTreeMap<u64, Instant>,
}

impl View {
    // ---- what schedulers read ----

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// All paths that have a subflow, in the order of their ids, usable or not.
    pub fn paths(&self) -> &[PathView] {
        &self.paths
    }
    /// One path.
    pub fn path(&self, id: PathId) -> Option<&PathView> {
        self.index(id).map(|i| &self.paths[i])
    }
    /// Data written and bound to no subflow.
    pub const fn backlog(&self) -> &RangeSet {
        &self.backlog
    }
    /// Data sent and not acknowledged at connection level.
    pub const fn outstanding(&self) -> &Outstanding {
        &self.outstanding
    }
    /// Data stranded by a timeout or a lost subflow, to be sent again elsewhere.
    pub const fn rescue(&self) -> &RangeSet {
        &self.rescue
    }
    /// What is bound to a path and not yet sent, first to go first.
    pub fn queue(&self, id: PathId) -> impl Iterator<Item = Queued> + '_ {
        self.index(id).into_iter().flat_map(|i| self.queues[i].items.iter().copied())
    }
    /// The peer's window in bytes, as last advertised (whole, not what is left of it).
    pub const fn send_window(&self) -> u64 {
        self.send_window
    }
    /// First offset that the peer's window does not admit.
    pub const fn window_edge(&self) -> u64 {
        self.window_edge
    }
    /// First offset that the peer has not acknowledged at connection level.
    pub const fn data_acked(&self) -> u64 {
        self.acked
    }
    /// First offset not yet written by the application.
    pub const fn written(&self) -> u64 {
        self.written
    }
    /// The application will write no more.
    pub const fn write_ended(&self) -> bool {
        self.ended
    }
    /// The application wants to write and the send buffer is full.
    pub const fn send_buffer_full(&self) -> bool {
        self.buffer_full
    }

    /// The messages that the application announced and the peer has not wholly acknowledged, ascending. The last may be
    /// written only in part.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Range> + ExactSizeIterator + '_ {
        self.messages.iter().copied()
    }
    /// The message that holds `offset`.
    pub fn message_at(&self, offset: u64) -> Option<Range> {
        let at = match self.messages.front() {
            Some(first) if offset < first.end => 0,
            _ => self.messages.partition_point(|m| m.end <= offset),
        };
        self.messages.get(at).copied().filter(|m| m.start <= offset)
    }
    /// Bytes that the application may have written and the peer not yet acknowledged.
    pub const fn send_buffer(&self) -> u64 {
        self.send_buffer
    }
    /// Paths known beforehand, whether or not they have a subflow yet.
    pub const fn known_paths(&self) -> usize {
        self.known_paths
    }

    /// The widest window that the peer ever offered (`MAX.SND.WND`).
    pub(crate) const fn max_window(&self) -> u64 {
        self.max_window
    }

    /// The next new segment of at most `mss` bytes, `skip` unassigned bytes further on. `None` if there is none, or
    /// if it is a small rest that Nagle's rule holds back (RFC 9293 §3.7.4). The window is not looked at.
    pub fn next_new(&self, skip: u64, mss: u32) -> Option<Range> {
        let mss = u64::from(mss).min(self.largest_worth());
        let skip = if self.in_sequence { 0 } else { skip };
        let next = self.backlog.after_skipping(skip, mss)?;
        let runt = next.len() < mss && next.end == self.written && !self.ended;
        // A writer that waits for room cannot complete the segment: it is pushed, as Linux does.
        let nagle = self.nagle && !self.buffer_full;
        let held = runt && nagle && (!self.outstanding.is_empty() || self.anything_queued());
        (!held).then_some(next)
    }

    /// What a peer with a small window is sent at once: half of the largest that it ever offered (RFC 9293 §3.8.6.2.1),
    /// or all of that if it is smaller than the default MSS, as Linux has it.
    fn largest_worth(&self) -> u64 {
        match self.max_window {
            0 => u64::MAX,
            small @ ..=536 => small,
            large => large / 2,
        }
    }

    /// New data waits and the peer's window does not admit its next segment.
    #[inline]
    pub fn window_blocked(&self) -> bool {
        // Nearly always there is room for whatever a mapping can hold.
        let close = |first: Range| first.start + u64::from(u16::MAX) > self.window_edge;
        self.backlog.first().is_some_and(close) && self.window_refuses_next()
    }

    #[inline(never)]
    fn window_refuses_next(&self) -> bool {
        let mss = self.paths.iter().map(|p| p.mss).min().unwrap_or(1);
        self.next_new(0, mss).is_some_and(|next| next.end > self.window_edge)
    }

    /// True if it is safe to send nothing now and wait for `id`: it is usable, not in recovery from a timeout, and has
    /// data in flight or about to leave, so that an acknowledgment will call the scheduler again.
    pub fn may_wait_for(&self, id: PathId) -> bool {
        let healthy = |p: &PathView| p.usable && p.recovery != RecoveryPhase::Loss;
        self.path(id).is_some_and(|p| healthy(p) && (p.in_flight > 0 || self.has_admissible(id)))
    }

    /// True if some usable path is not a backup: then backups rest.
    pub fn has_active(&self) -> bool {
        self.paths.iter().any(|p| p.usable && !p.backup)
    }

    /// The paths that may carry new data now: usable; backups only if nothing else is.
    pub fn candidates(&self) -> impl Iterator<Item = &PathView> + '_ {
        let active = self.has_active();
        self.paths.iter().filter(move |p| p.usable && !(active && p.backup))
    }

    /// The candidate with the lowest smoothed RTT that has room; ties go to the lower id.
    pub fn fastest_eligible(&self) -> Option<&PathView> {
        let (mut best, mut best_backup, mut active) = (None, None, false);
        for p in self.paths.iter().filter(|p| p.usable) {
            active |= !p.backup;
            let best = if p.backup { &mut best_backup } else { &mut best };
            if p.eligible() && best.is_none_or(|best: &PathView| p.rtt_or_max() < best.rtt_or_max()) {
                *best = Some(p);
            }
        }
        if active { best } else { best_backup }
    }

    /// The candidate with the lowest smoothed RTT, with or without room; ties go to the lower id.
    pub fn fastest(&self) -> Option<&PathView> {
        self.candidates().min_by_key(|p| (p.rtt_or_max(), p.id))
    }

    // ---- what the connection keeps up to date ----

    /// New data from `start` on is queued ahead of its window.
    pub(super) fn note_bound(&mut self, start: u64) {
        self.bound_ahead.insert(start, self.now);
    }
    /// New data from `start` on is sent: when it was queued ahead of its window, if it was.
    #[inline]
    pub(crate) fn take_bound(&mut self, start: u64) -> Option<Instant> {
        if self.bound_ahead.is_empty() { None } else { self.take_bound_of(start) }
    }
    #[cold]
    fn take_bound_of(&mut self, start: u64) -> Option<Instant> {
        // What was cut off because the peer had it already is never asked for.
        while let Some(first) = self.bound_ahead.first_entry().filter(|first| *first.key() < self.acked.min(start)) {
            first.remove();
        }
        self.bound_ahead.remove(&start)
    }

    /// A view of an empty connection; `nagle` holds back small rests.
    pub fn new(nagle: bool) -> Self {
        Self { nagle, send_buffer: u64::MAX, ..Self::default() }
    }
    /// Sets the time.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }
    /// Adds a path or replaces what is known of it; queue counts are kept by the view itself.
    pub fn set_path(&mut self, path: PathView) {
        let segment = self.largest_worth().min(path.mss.into()) as u32;
        let path = PathView { segment, worth: segment, ..path };
        match self.index(path.id) {
            Some(i) => {
                let (queued, queued_bytes) = (self.paths[i].queued, self.paths[i].queued_bytes);
                self.paths[i] = PathView { queued, queued_bytes, ..path };
            }
            None => {
                let i = self.paths.partition_point(|p| p.id < path.id);
                self.paths.insert(i, PathView { queued: 0, queued_bytes: 0, ..path });
                self.queues.insert(i, Queue::default());
            }
        }
    }
    /// The connection is plain TCP: data leaves in the order in which it was written.
    pub(crate) fn set_in_sequence(&mut self) {
        self.in_sequence = true;
    }

    /// A path's values, to be changed in place. Leave the queue counts alone.
    pub fn path_mut(&mut self, id: PathId) -> Option<&mut PathView> {
        self.index(id).map(|i| &mut self.paths[i])
    }
    /// The application wrote up to `offset`.
    pub fn set_written(&mut self, offset: u64) {
        if offset > self.written {
            self.backlog.insert(Range::new(self.written, offset));
            self.written = offset;
        }
    }
    /// The next `len` bytes that are written are one message. Refused if that is none, or if the message before is not
    /// wholly written: so there are no more messages than bytes in the send buffer.
    pub fn begin_message(&mut self, len: u64) -> bool {
        let fits = len > 0 && self.messages.back().is_none_or(|last| last.end <= self.written);
        if fits {
            self.messages.push_back(Range::new(self.written, self.written.saturating_add(len)));
        }
        fits
    }
    /// The application will write no more: a message that is not wholly written ends here.
    pub fn set_ended(&mut self) {
        self.ended = true;
        if let Some(last) = self.messages.back_mut() {
            last.end = last.end.min(self.written);
        }
    }
    /// The application waits for room in the send buffer.
    pub fn set_buffer_full(&mut self, full: bool) {
        self.buffer_full = full;
    }
    /// Schedulers may give a path once more what it delivered and the peer dropped; see `Round::release`.
    pub fn set_releases(&mut self, releases: bool) {
        self.releases = releases;
    }
    /// The send buffer holds `bytes`, and so many `paths` are known beforehand.
    pub fn set_send_buffer(&mut self, bytes: u64, paths: usize) {
        self.send_buffer = bytes;
        self.known_paths = paths;
    }
    /// The peer's window: its size and its right edge. An edge never moves back.
    pub fn set_window(&mut self, size: u64, edge: u64) {
        self.send_window = size;
        self.window_edge = self.window_edge.max(edge);
        if size > self.max_window {
            self.max_window = size;
            let worth = self.largest_worth();
            self.paths.iter_mut().for_each(|p| p.segment = worth.min(p.mss.into()) as u32);
        }
    }
    /// A round begins: what the windows must have room for follows from what waits.
    #[inline]
    pub(crate) fn weigh(&mut self) {
        let waits = self.backlog.bytes().max(1);
        for p in &mut self.paths {
            p.worth = waits.min(p.segment.into()) as u32;
        }
    }
    /// `path` sent `range`.
    pub fn on_sent(&mut self, path: PathId, range: Range) {
        self.outstanding.sent(path, range);
        if self.copied_early {
            // A copy left although the path that was to send first gave the data back.
            self.backlog.remove(range);
        }
    }
    /// The peer has everything below `offset`.
    pub fn on_data_acked(&mut self, offset: u64) {
        if offset <= self.acked {
            return;
        }
        self.acked = offset;
        self.outstanding.acked(offset);
        self.rescue.remove_below(offset);
        self.backlog.remove_below(offset);
        while self.messages.front().is_some_and(|m| m.end <= offset) {
            self.messages.pop_front();
        }
        for i in 0..self.queues.len() {
            // Queued copies may have become pointless. They stand in front. First transmissions follow in order: the first
            // of them is below `offset` only if what a lost path carried was queued again, unless a copy overtook them.
            let items = &self.queues[i].items;
            let first = items.iter().position(|q| q.kind == SendKind::First).map_or(items.len(), |n| n + 1);
            let suspects = if self.copied_early { items.len() } else { first };
            if items.iter().take(suspects).any(|q| q.range.start < offset) {
                let kept = core::mem::take(&mut self.queues[i].items);
                self.queues[i].items = kept
                    .into_iter()
                    .map(|q| Queued { range: Range::new(q.range.start.max(offset), q.range.end), ..q })
                    .filter(|q| !q.range.is_empty())
                    .collect();
                self.recount(i);
            }
        }
    }
    /// A timeout or a lost subflow: what `path` carries and no other healthy path does must go out again elsewhere.
    pub fn strand(&mut self, path: PathId) {
        let healthy: u32 = self.paths.iter().filter(|p| p.usable && p.id != path).map(|p| p.id.bit()).sum();
        for (range, copies) in self.outstanding.iter() {
            if copies.on(path) && copies.paths & healthy == 0 {
                self.rescue.insert(range);
            }
        }
    }
    /// `path` delivers after all what it carries: that need not go out again elsewhere.
    pub fn unstrand(&mut self, path: PathId) {
        for (range, _) in self.outstanding.iter().filter(|(_, copies)| copies.on(path)) {
            self.rescue.remove(range);
        }
    }
    /// What was sent and not acknowledged at connection level is new again; copies of it that are queued are none any more.
    pub fn send_all_again(&mut self) {
        self.take_all_back();
        for (range, _) in core::mem::take(&mut self.outstanding).iter() {
            self.backlog.insert(range);
        }
        self.rescue = RangeSet::new();
    }
    /// A subflow is gone: its data is stranded, its queue goes back to the backlog, the path is forgotten.
    pub fn remove_path(&mut self, id: PathId) {
        let Some(i) = self.index(id) else { return };
        self.strand(id);
        self.unbind(id);
        self.paths.remove(i);
        self.queues.remove(i);
        self.outstanding.forget(id);
    }
    /// Takes back what is bound to `id` and never left.
    pub fn take_back(&mut self, id: PathId) {
        if let Some(i) = self.index(id) {
            self.give_back(i, false);
        }
    }
    /// Takes back what is bound to any path and never left.
    pub fn take_all_back(&mut self) {
        for i in 0..self.queues.len() {
            self.give_back(i, false);
        }
    }
    /// A path is of no use for now: what is bound to it and never left goes back, and with it the new data that other
    /// paths have queued. Otherwise later data, which the peer's window does not admit yet, could fill the queues of all
    /// of them while the lowest is bound to none.
    pub fn unbind(&mut self, id: PathId) {
        let bound = self.queue(id).any(|q| q.kind == SendKind::First);
        self.take_back(id);
        for other in 0..if bound { self.paths.len() } else { 0 } {
            self.give_back(other, true);
        }
    }
    /// Queued data goes back to where it came from; `copies_stay`: only new data does.
    fn give_back(&mut self, i: usize, copies_stay: bool) {
        for q in core::mem::take(&mut self.queues[i].items) {
            match q.kind {
                SendKind::First => {
                    self.backlog.insert(q.range);
                    self.bound_ahead.remove(&q.range.start);
                    if self.copied_early {
                        let sent = self.outstanding.from(q.range.start).take_while(|(r, _)| r.start < q.range.end);
                        sent.for_each(|(r, _)| {
                            self.backlog.remove(r.intersect(q.range));
                        });
                    }
                }
                _ if copies_stay => self.queues[i].items.push_back(q),
                SendKind::Rescue => {
                    self.rescue.insert(q.range);
                }
                SendKind::Opportunistic | SendKind::Copy | SendKind::Retransmission => {}
            }
        }
        self.recount(i);
    }
    /// The first range in the path's queue that the peer's window admits, taken out of the queue.
    pub fn take_admissible(&mut self, id: PathId) -> Option<Queued> {
        let i = self.index(id)?;
        loop {
            let at = self.admissible(i)?;
            let items = &mut self.queues[i].items;
            let taken = if at == 0 { items.pop_front() } else { items.remove(at) }?;
            self.paths[i].queued -= 1;
            self.paths[i].queued_bytes -= taken.range.len();
            // A peer may acknowledge a gap that was never sent.
            let range = Range::new(taken.range.start.max(self.acked), taken.range.end);
            if !range.is_empty() {
                return Some(Queued { range, ..taken });
            }
        }
    }
    /// Binds the next new segment to a path whose window may be full, for a tail loss probe, if there is one that the
    /// peer's window admits. Nagle's rule does not count.
    pub(crate) fn bind_probe(&mut self, id: PathId) {
        let Some(i) = self.index(id) else { return };
        let mss = u64::from(self.paths[i].mss).min(self.largest_worth());
        if let Some(next) = self.backlog.after_skipping(0, mss) {
            self.bind(i, next);
        }
    }
    /// True if the path's queue holds a range that the peer's window admits.
    pub fn has_admissible(&self, id: PathId) -> bool {
        self.index(id).is_some_and(|i| self.admissible(i).is_some())
    }
    /// The place of the first range in a path's queue that may leave now.
    #[inline(always)]
    fn admissible(&self, i: usize) -> Option<usize> {
        let (edge, left) = (self.window_edge, self.paths[i].window);
        let admitted = |q: &Queued| q.range.end <= edge && q.range.len() <= left;
        let items = &self.queues[i].items;
        // Nearly always it is the first.
        match admitted(items.front()?) {
            true => Some(0),
            false if self.in_sequence => None,
            false => items.iter().position(admitted),
        }
    }
    /// Binds the next new bytes to `id`, as many as the peer's windows admit, however few: RFC 9293 §3.8.6.2.1 (4). They may
    /// have been queued for any path, also for one whose window has been shut since. False if the windows admit none.
    pub(crate) fn bind_what_fits(&mut self, id: PathId) -> bool {
        let Some(i) = self.index(id) else { return false };
        for path in 0..self.paths.len() {
            self.give_back(path, true);
        }
        let Some(next) = self.backlog.first() else { return false };
        let p = &self.paths[i];
        let len = p.left().min(self.window_edge.saturating_sub(next.start)).min(p.mss.into());
        let part = Range::new(next.start, next.end.min(next.start + len));
        !part.is_empty() && self.bind(i, part)
    }

    pub(super) fn index(&self, id: PathId) -> Option<usize> {
        id.place_in(&self.paths, |p| p.id)
    }
    pub(super) fn path_at_mut(&mut self, i: usize) -> &mut PathView {
        &mut self.paths[i]
    }
    pub(crate) fn anything_queued(&self) -> bool {
        self.paths.iter().any(|p| p.queued > 0)
    }
    fn recount(&mut self, i: usize) {
        self.paths[i].queued = self.queues[i].items.len() as u32;
        self.paths[i].queued_bytes = self.queues[i].items.iter().map(|q| q.range.len()).sum();
    }
    /// Binds new data to a path, to be sent now. False if the peer's windows do not admit it.
    pub(super) fn bind(&mut self, i: usize, range: Range) -> bool {
        let admitted = range.end <= self.window_edge && range.len() <= self.paths[i].left();
        if admitted {
            self.backlog.remove(range);
            self.push(i, Queued { range, kind: SendKind::First }, false);
        }
        admitted
    }
    pub(super) fn push(&mut self, i: usize, queued: Queued, ahead: bool) {
        self.paths[i].queued += 1;
        self.paths[i].queued_bytes += queued.range.len();
        if ahead {
            // Copies go before first transmissions, in the order in which they were asked for.
            let at = self.queues[i].items.iter().position(|q| q.yields_to(queued));
            let at = at.unwrap_or(self.queues[i].items.len());
            self.queues[i].items.insert(at, queued);
        } else {
            self.queues[i].items.push_back(queued);
        }
    }
}
