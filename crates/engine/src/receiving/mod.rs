//! The receive side of the connection: the subflows' bytes in the order of the data sequence, and the window that the peer is
//! offered (RFC 8684 §3.3).

mod intake;
mod linux_window;
mod policy;
mod reassembly;
mod room;
mod window;

pub(crate) use intake::Place;

use crate::cx::Scope;
use crate::mode::{Mode, Offset};
use crate::settings::{ReceiveWindow, Settings};
use crate::subflow::acceptance::Facts;
use crate::subflow::segments::Acknowledgment;
use crate::subflow::{Lent, Subflow, Subflows};
use anabranch_trace::{Event, Violation};
use anabranch_units::{Duration, Instant, Range};
use bytes::Bytes;
use policy::{DataAcks, Excess, ReceiverPolicy};
use reassembly::Reassembly;
use room::Room;
use window::WindowScope;

/// The connection's receive buffer and window.
#[derive(Debug)]
pub(crate) struct Receiving {
    reassembly: Reassembly,
    room: Room,
    policy: ReceiverPolicy,
    scope: WindowScope,
    /// The owner of the receive buffers, once MPTCP is agreed on.
    buffers: ReceiveWindow,
    /// Right edge of the window that was advertised last.
    announced: u64,
    /// The widest window that was ever advertised.
    widest: u64,
    /// An event is to report to the application that there is something to read.
    pub readable: bool,
    /// Where the peer's stream ends, once that is known.
    fin: Option<u64>,
    /// The peer's stream in the only subflow's sequence: plain TCP.
    offset: Offset,
}

impl Receiving {
    pub fn new(settings: &Settings) -> Self {
        Self {
            reassembly: Reassembly::default(),
            room: Room::new(settings),
            policy: ReceiverPolicy::of(settings),
            scope: WindowScope::of(Mode::at_first(settings), settings.tcp.receive_window),
            buffers: settings.tcp.receive_window,
            announced: 0,
            widest: 0,
            readable: false,
            fin: None,
            offset: Offset { sub: 1, data: 0 },
        }
    }

    /// Next data offset expected.
    pub fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// The next offset to acknowledge: the end of the stream counts as a byte (RFC 8684 §3.3.3).
    fn acked(&self) -> u64 {
        self.next() + u64::from(self.is_finished())
    }

    /// The end of the peer's stream is known.
    pub fn has_fin(&self) -> bool {
        self.fin.is_some()
    }

    /// All of the peer's stream has come, its end included.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.reassembly.next() >= fin)
    }

    /// The peer's stream has ended (with MPTCP), so that only the FINs of subflows are waited for.
    pub fn is_over(&self) -> bool {
        !self.is_plain() && self.is_finished()
    }

    /// All of the peer's stream was read, its end included.
    pub fn is_read(&self) -> bool {
        self.fin.is_some_and(|fin| self.reassembly.read_bytes() >= fin)
    }

    /// Facts that decide about a segment that came on `s`; `max_window`: the widest that the peer ever offered.
    #[inline(always)]
    pub fn facts(&self, mode: Mode, s: &Subflow, max_window: u64) -> Facts {
        Facts { mode, end: self.window_end(s, s.receiver.next()), widest: self.widest, max_window }
    }

    /// The acknowledgment that leaves on `s`.
    #[inline(always)]
    pub fn acknowledge(&mut self, s: &mut Lent<'_>) -> Acknowledgment {
        let window = self.offer_on(s);
        let acked = self.acked();
        // Nearly always: what was announced is never more than the window's edge.
        let promised = acked + s.taken <= self.announced;
        let data = if promised { acked } else { self.acked_within(s, window) };
        Acknowledgment { window, data }
    }

    /// The next offset to acknowledge to a peer that may add another window to it than the one that the acknowledgment has: the sum is
    /// no more than the window's edge (RFC 8684 §3.3.1). A later acknowledgment has the rest.
    ///
    /// Linux 6.18: `ack_update_msk` adds a DATA_ACK and the window of its subflow.
    #[inline(never)]
    fn acked_within(&self, s: &Subflow, window: u16) -> u64 {
        // Behind the end of the stream there is nothing to send.
        let free = self.is_finished() || self.is_plain() || self.are_separate();
        let careful = !free && self.policy.data_acks == DataAcks::WithinWindow;
        let acked = self.acked();
        match careful && s.keeps_window(u64::from(window) << s.terms.recv_shift) {
            true => acked.min(self.edge().saturating_sub(s.taken)),
            false => acked,
        }
    }

    /// The next bytes for the application.
    #[inline(always)]
    pub fn read(&mut self, now: Instant, subflows: &mut Subflows) -> Option<(Range, Bytes)> {
        let Some(read) = self.reassembly.read() else {
            if self.is_read() {
                self.reassembly.give_back();
            }
            return None;
        };
        self.right_size(now, subflows);
        self.on_read(subflows);
        Some(read)
    }

    /// The application read at `now`. A measurement lasts for the longest round trip of all subflows: the data that they
    /// bring in it is the sum of their rates times that round trip (RFC 6182 §5.3).
    #[inline]
    fn right_size(&mut self, now: Instant, subflows: &[Subflow]) {
        if !self.room.is_sized() {
            return;
        }
        let trips = subflows.iter().filter_map(Subflow::round_trip);
        let longest: Option<Duration> = trips.max();
        if let Some(trip) = longest {
            self.room.on_read(now, self.reassembly.read_bytes(), trip);
        }
    }

    /// The window follows what the application reads.
    pub fn is_sized(&self) -> bool {
        self.room.is_sized()
    }

    /// The peer's DATA_FIN is at `offset`, as it came on subflow `s`.
    fn note_data_fin(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, offset: u64) {
        // RFC 8684 §3.3.3: the DATA_FIN is the end, so no data lies beyond it.
        let possible = offset >= self.reassembly.end() && offset <= self.refused_from();
        let moved = self.fin.is_some_and(|known| known != offset);
        if moved || self.fin.is_none() && !possible {
            return cx.violation(s.id, Violation::DataFinMoved);
        }
        // RFC 8684 §3.3.3: acknowledged at connection level like data
        s.acks.demand();
        self.readable |= self.fin.replace(offset).is_none();
    }

    /// Bytes with their place in the data sequence came on `s`.
    fn on_arrival(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, start: u64, bytes: Bytes) {
        let range = Range::new(start, start + bytes.len() as u64);
        // Nearly always it lies within what was announced, which is never more than the edge.
        if range.end <= self.announced && self.fin.is_none() {
            self.take_arrival(cx, s, range, bytes);
        } else {
            self.on_arrival_at_end(cx, s, range, bytes);
        }
    }

    /// The same for data that may lie beyond the window, or behind the end of the stream.
    #[cold]
    #[inline(never)]
    fn on_arrival_at_end(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, mut range: Range, mut bytes: Bytes) {
        let id = s.id;
        if self.drops(range) {
            return cx.violation(id, Violation::BeyondWindow);
        }
        let (edge, fin) = (self.edge(), self.fin.unwrap_or(u64::MAX));
        if range.end > edge.min(fin) {
            // RFC 8684 §3.3.4: beyond the window, or behind the end of the stream
            cx.violation(id, Violation::BeyondWindow);
            let end = self.refused_from().min(fin);
            if range.start >= end {
                return;
            }
            if range.end > end {
                bytes = Bytes::copy_from_slice(&bytes[..(end - range.start) as usize]);
                range.end = end;
            }
        }
        self.take_arrival(cx, s, range, bytes);
    }

    /// Takes bytes that belong to `range`, which is within the window.
    #[inline(always)]
    fn take_arrival(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, range: Range, bytes: Bytes) {
        let id = s.id;
        let ofo_before = self.reassembly.ofo_bytes();
        let next_before = self.reassembly.next();
        let new = self.reassembly.accept(range.start, bytes);
        let ofo = self.reassembly.ofo_bytes();
        cx.record(Some(id), Event::DataArrived { data: range, new, ofo });
        if new > 0 && self.are_separate() {
            self.note_unread(s, Range::new(range.start.max(next_before), range.end));
        }
        if new == 0 || (ofo == 0 && ofo_before > 0) {
            // A copy, or a hole that is filled: the peer's window waits for this DATA_ACK.
            s.acks.demand();
        }
        self.readable |= self.reassembly.next() > next_before;
    }

    /// Bytes of the data sequence are dropped as a whole: they are out of order and end beyond what was promised, though their
    /// subflow has acknowledged them.
    fn drops(&self, range: Range) -> bool {
        let beyond = || range.start > self.reassembly.next() && range.end > self.announced;
        self.policy.excess == Excess::Dropped && !self.is_plain() && beyond()
    }

    // ---- plain TCP: the subflow's sequence is the data sequence (RFC 8684 §3.7) ----

    /// The data offset of byte `seq` of the only subflow.
    fn start_of(&self, seq: u64) -> Option<u64> {
        (self.offset.data + seq).checked_sub(self.offset.sub)
    }

    /// Where the subflow's sequence became the data sequence.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Where the peer's stream stands on `s`, the only subflow: what comes next in its sequence, and the place of that in the
    /// data sequence. `None` if there is a hole, or data of no certain place.
    pub fn place_on(&self, s: &Subflow) -> Option<Offset> {
        let next = self.reassembly.next();
        if self.reassembly.ofo_bytes() > 0 || s.placement.is_passed() {
            return None;
        }
        if let Some(entry) = s.placement.collecting() {
            return Some(Offset { sub: entry.sub.start, data: entry.data }).filter(|place| place.data <= next);
        }
        let come = s.receiver.next() - u64::from(s.receiver.is_finished());
        Some(Offset { sub: s.placement.first_unmapped().unwrap_or(come), data: next })
    }

    /// In plain TCP a FIN ends the stream, at the place where it stands in the sequence of `s`, once it has come there. False
    /// if that is not where the stream ends: something is missing that will never come.
    pub fn end_with_fin(&mut self, cx: &mut Scope<'_>, s: &Subflow) -> bool {
        if !s.receiver.is_finished() {
            return true;
        }
        let at = self.start_of(s.receiver.next() - 1);
        let known = *self.fin.get_or_insert(at.unwrap_or(u64::MAX));
        let is_end = at == Some(known) && known == self.reassembly.next();
        if is_end {
            self.readable = true;
        } else {
            cx.violation(s.id, Violation::DataFinMoved);
        }
        is_end
    }
}
