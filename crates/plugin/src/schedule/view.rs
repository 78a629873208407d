//! The scheduler's view of a connection.

use super::queue::{PathQueue, Place};
use super::{Numbering, Outstanding, SenderPolicy};
use crate::path::PathView;
use anabranch_units::{Instant, PathId, Range, RangeSet};
use anabranch_units::{RecoveryPhase, SendKind};
use std::collections::VecDeque;

/// A range bound to a subflow and not yet sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// At most one segment.
    pub range: Range,
    /// Why.
    pub kind: SendKind,
    /// When new data was bound to a path ahead of its window; [`Instant::MAX`] if it was bound to leave at once.
    pub ahead: Instant,
}

impl Queued {
    /// To leave at once.
    pub(super) const fn new(range: Range, kind: SendKind) -> Self {
        Self { range, kind, ahead: Instant::MAX }
    }

    /// A copy stands before first transmissions; a rescue only before those of later data: it is as urgent as they.
    pub(super) fn yields_to(&self, copy: Queued) -> bool {
        self.kind == SendKind::First && (copy.kind != SendKind::Rescue || self.range.start > copy.range.start)
    }
}

/// Bytes that the application announced as belonging together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub range: Range,
    /// When it is late for the application; a hint.
    pub deadline: Option<Instant>,
}

/// A connection as its scheduler sees it: paths in the order of their ids, data by what became of it.
///
/// Nothing is copied or rebuilt for a round: a view borrows the connection's [`Assignment`](super::Assignment), and has no
/// method that changes anything.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(super) now: Instant,
    pub(super) paths: Vec<PathView>,
    pub(super) queues: Vec<PathQueue>,
    /// The paths that have data in their queue, as bits.
    pub(super) waiting: u32,
    pub(super) backlog: RangeSet,
    pub(super) outstanding: Outstanding,
    pub(super) rescue: RangeSet,
    /// Announced and not wholly acknowledged, ascending and disjoint.
    pub(super) messages: VecDeque<Message>,
    pub(super) written: u64,
    pub(super) ended: bool,
    pub(super) acked: u64,
    /// Where the newest window began.
    pub(super) window_from: u64,
    pub(super) window_edge: u64,
    pub(super) send_window: u64,
    pub(super) max_window: u64,
    pub(super) buffer_full: bool,
    pub(super) send_buffer: u64,
    pub(super) known_paths: usize,
    pub(super) nagle: bool,
    pub(super) sender: SenderPolicy,
    pub(super) numbering: Numbering,
}

impl View {
    // ---- for schedulers ----

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// All paths that have a subflow, in the order of their ids, usable or not.
    pub fn paths(&self) -> &[PathView] {
        &self.paths
    }
    /// One path.
    #[inline]
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
    /// Data stranded by a timeout or a lost subflow, to be retransmitted elsewhere.
    pub const fn rescue(&self) -> &RangeSet {
        &self.rescue
    }
    /// Data bound to a path and not yet sent, first to go first.
    pub fn queue(&self, id: PathId) -> impl Iterator<Item = Queued> + '_ {
        self.index(id).into_iter().flat_map(|i| self.queues[i].iter())
    }
    /// The peer's window in bytes, as last advertised (whole, not what is left of it).
    pub const fn send_window(&self) -> u64 {
        self.send_window
    }
    /// First offset that the peer's window does not admit.
    pub const fn window_edge(&self) -> u64 {
        self.window_edge
    }
    /// Bytes that the peer's window admits beyond all data that was bound.
    pub fn window_left(&self) -> u64 {
        self.window_edge.saturating_sub(self.written - self.backlog.bytes())
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
        self.messages.iter().map(|message| message.range)
    }
    /// The message that holds `offset`.
    pub fn message_at(&self, offset: u64) -> Option<Range> {
        let message = self.messages.get(self.message_from(offset))?;
        Some(message.range).filter(|range| range.start <= offset)
    }
    /// The messages that end above `offset` and have a deadline, ascending, each with the time at which it is late for the
    /// application. A hint of this host's application: nothing of it is on the wire.
    pub fn deadlines_from(&self, offset: u64) -> impl Iterator<Item = (Range, Instant)> + '_ {
        let messages = self.messages.range(self.message_from(offset)..);
        messages.filter_map(|message| Some((message.range, message.deadline?)))
    }
    /// Place of the first message that ends above `offset`.
    fn message_from(&self, offset: u64) -> usize {
        match self.messages.front() {
            Some(first) if offset < first.range.end => 0,
            _ => self.messages.partition_point(|message| message.range.end <= offset),
        }
    }
    /// Bytes that the application may have written and the peer not yet acknowledged.
    pub const fn send_buffer(&self) -> u64 {
        self.send_buffer
    }
    /// Paths known beforehand, whether or not they have a subflow yet.
    pub const fn known_paths(&self) -> usize {
        self.known_paths
    }

    /// The sender's choices where Linux and the RFCs differ.
    #[inline(always)]
    pub const fn sender(&self) -> SenderPolicy {
        self.sender
    }

    /// How our data is numbered.
    #[inline(always)]
    pub const fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// Data leaves in the order in which it was written.
    #[inline(always)]
    pub(super) fn is_in_sequence(&self) -> bool {
        self.numbering == Numbering::Subflow
    }

    /// Nagle's rule holds back small rests (RFC 9293 §3.7.4).
    pub const fn nagle(&self) -> bool {
        self.nagle
    }

    /// `range` is less than a segment of path `id`.
    pub fn is_runt(&self, id: PathId, range: Range) -> bool {
        self.path(id).is_some_and(|p| range.len() < u64::from(p.mss))
    }

    /// Nothing waits for path `id` but new data of less than a segment.
    pub fn ends_in_runt(&self, id: PathId) -> bool {
        let mut queue = self.queue(id);
        let first = queue.next().filter(|q| q.kind == SendKind::First);
        first.is_some_and(|q| self.is_runt(id, q.range)) && queue.next().is_none()
    }

    /// The widest window that the peer ever offered (`MAX.SND.WND`).
    pub const fn max_window(&self) -> u64 {
        self.max_window
    }

    /// The next new segment of at most `mss` bytes, `skip` unassigned bytes further on. `None` if there is none, or
    /// if it is a small rest that Nagle's rule holds back (RFC 9293 §3.7.4). The window is not looked at.
    #[inline]
    pub fn next_new(&self, skip: u64, mss: u32) -> Option<Range> {
        let skip = if self.is_in_sequence() { 0 } else { skip };
        self.next_of(skip, u64::from(mss).min(self.largest_worth()))
    }

    /// Bytes of a full segment on the path at place `i`.
    #[inline(always)]
    pub(super) fn segment(&self, i: usize) -> u64 {
        let path = &self.paths[i];
        debug_assert_eq!(u64::from(path.segment), u64::from(path.mss).min(self.largest_worth()));
        path.segment.into()
    }

    /// [`Self::next_new`] of at most `segment` bytes.
    #[inline(always)]
    pub(super) fn next_of(&self, skip: u64, segment: u64) -> Option<Range> {
        self.unless_held(self.backlog.after_skipping(skip, segment)?, segment)
    }

    /// `next`, unless Nagle's rule holds it back.
    #[inline]
    fn unless_held(&self, next: Range, mss: u64) -> Option<Range> {
        let runt = next.len() < mss && next.end == self.written;
        (!(runt && self.holds_runts())).then_some(next)
    }

    /// Nagle's rule holds back the end of what is written, where that is less than a segment.
    #[inline]
    pub(super) fn holds_runts(&self) -> bool {
        // A writer that waits for room cannot complete the segment: it is pushed, as Linux does.
        let nagle = self.nagle && !self.buffer_full;
        nagle && !self.ended && (!self.outstanding.is_empty() || self.anything_queued())
    }

    /// The least segment for a peer with a small window: half of the largest that it ever offered (RFC 9293 §3.8.6.2.1),
    /// or all of that if it is smaller than the default MSS, as Linux has it.
    pub(super) fn largest_worth(&self) -> u64 {
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
        // A scheduler may choose the path of the largest segment and no other.
        let mss = self.paths.iter().map(|p| p.mss).max().unwrap_or(1);
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
    #[inline]
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

    // ---- for the engine ----

    /// True if the path's queue holds a range that the peer's window admits.
    pub fn has_admissible(&self, id: PathId) -> bool {
        self.index(id).is_some_and(|i| self.admissible(i).is_some())
    }
    /// The place of the first range in a path's queue that may leave now.
    #[inline(always)]
    pub(super) fn admissible(&self, i: usize) -> Option<Place> {
        self.queues[i].find(self.is_in_sequence(), self.window_edge, self.paths[i].window)
    }
    #[inline]
    pub(super) fn index(&self, id: PathId) -> Option<usize> {
        id.place_in(&self.paths, |p| p.id)
    }
    /// The paths that have data in their queue, as [bits](PathId::bit).
    #[inline(always)]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }
    /// Some path has data in its queue.
    pub const fn anything_queued(&self) -> bool {
        self.waiting != 0
    }
}
