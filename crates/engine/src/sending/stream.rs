//! The application's stream at our end: what it wrote, how far that was sent and acknowledged, and where it ends.

use super::DataFin;
use super::buffer::{self, SendBuffer};
use crate::mode::Offset;
use crate::settings::Settings;
use crate::subflow::Subflow;
use anabranch_units::Range;
use bytes::Bytes;

/// Our stream.
#[derive(Debug)]
pub(crate) struct Stream {
    buffer: SendBuffer,
    /// Bytes that it may hold now.
    capacity: u64,
    /// End of the data that was sent at least once.
    sent_end: u64,
    /// The end of the data that the peer had acknowledged before its newest acknowledgment.
    acked_before: u64,
    /// The application finished writing.
    finished: bool,
    /// The connection has ended.
    stopped: bool,
    /// The application waits for room.
    waits: bool,
    /// An event is to report to the application that there is room again.
    pub writable: bool,
    pub data_fin: DataFin,
    /// The stream's place in the only subflow's sequence: plain TCP.
    offset: Offset,
}

impl Stream {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            buffer: SendBuffer::default(),
            capacity: buffer::first_capacity(settings),
            sent_end: 0,
            acked_before: 0,
            finished: false,
            stopped: false,
            waits: false,
            writable: false,
            data_fin: DataFin::default(),
            offset: Offset { sub: 1, data: 0 },
        }
    }

    // ---- the application's side ----

    /// Nothing more is written.
    pub(super) fn is_over(&self) -> bool {
        self.finished || self.stopped
    }

    /// Bytes that may be written now.
    pub fn room(&self) -> u64 {
        if self.is_over() { 0 } else { self.capacity.saturating_sub(self.buffer.len()) }
    }

    /// Bytes written and not acknowledged by the peer.
    pub fn unacknowledged(&self) -> u64 {
        self.buffer.len()
    }

    /// The application finished writing.
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The connection has ended.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The application waits for room.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.waits
    }

    /// Takes as much of `bytes` as there is room for. A full buffer leaves the application waiting, whether or not it offered more.
    pub(super) fn write(&mut self, mut bytes: Bytes) -> Range {
        let (start, room) = (self.buffer.end(), self.room());
        bytes.truncate(room.min(bytes.len() as u64) as usize);
        self.waits = room == bytes.len() as u64;
        self.buffer.push(bytes);
        Range::new(start, self.buffer.end())
    }

    /// No more will be written.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// The connection has ended.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.data_fin.hold();
        self.buffer.give_back();
    }

    /// Has an event report that there is room, if the application waits for it: true. False: it still waits, or did not.
    pub(super) fn wake_writer(&mut self) -> bool {
        // As Linux: a third of the buffer must be free, so that an application is not woken for every segment.
        let wakes = self.waits && self.room() >= self.capacity / 3;
        if wakes {
            (self.waits, self.writable) = (false, true);
        }
        wakes
    }

    /// The buffer may hold `capacity` bytes, if it was less. True if it was.
    pub(super) fn widen(&mut self, capacity: u64) -> bool {
        let widens = capacity > self.capacity;
        self.capacity = self.capacity.max(capacity);
        widens
    }

    // ---- where it stands ----

    /// End of what was written.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.buffer.end()
    }

    /// Where it ends, if the DATA_FIN is to leave on `s` without payload.
    pub fn end_due_on(&self, s: &Subflow) -> Option<u64> {
        (self.data_fin.is_due_on(s.id) && s.may_carry()).then(|| self.end())
    }

    /// End of what was sent.
    #[inline(always)]
    pub(super) fn sent_end(&self) -> u64 {
        self.sent_end
    }

    /// The highest offset that the peer may acknowledge: the DATA_FIN counts as a byte (RFC 8684 §3.3.3).
    pub(super) fn sent_upto(&self) -> u64 {
        self.sent_end + u64::from(self.data_fin.has_left() && self.sent_end == self.end())
    }

    /// Where the last data begins that is known to have come intact.
    pub fn intact(&self) -> u64 {
        self.acked_before
    }

    /// The bytes of `range`.
    #[inline(always)]
    pub(super) fn slice(&mut self, range: Range) -> Bytes {
        self.buffer.slice(range)
    }

    /// Data below `end` was sent.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, end: u64) {
        self.sent_end = self.sent_end.max(end);
    }

    /// The peer has everything below `upto`, as before below `acked`; what waits to be sent nevertheless begins at `queued`.
    pub(super) fn on_acked(&mut self, acked: u64, upto: u64, queued: u64) {
        self.acked_before = acked;
        self.buffer.release(upto, queued);
    }

    // ---- in plain TCP ----

    /// New data follows in the sequence of `s`; the peer has everything below `acked`.
    pub(super) fn go_on_in(&mut self, s: &Subflow, acked: u64) {
        self.offset = Offset { sub: s.sender().nxt(), data: self.sent_end.max(acked) };
        self.data_fin.hold();
    }

    /// The offset in the stream of `seq` in the subflow's sequence.
    #[inline(always)]
    pub(super) fn offset_of(&self, seq: u64) -> u64 {
        (self.offset.data + seq).saturating_sub(self.offset.sub)
    }

    /// The end of the data that was acknowledged on `s`.
    pub(super) fn acked_on(&self, s: &Subflow) -> u64 {
        let first = s.sender().first().map(|first| first.data().start);
        first.unwrap_or_else(|| self.offset_of(s.sender().nxt())).min(self.end())
    }
}
