//! Payload, from a subflow's bytes to the connection's stream (RFC 8684 §3.3), and after a fall back (§3.7).

use super::Receiving;
use crate::cx::Scope;
use crate::mode::Mode;
use crate::peer_stream::{Checked, PeerStream};
use crate::reasons::MPTCP_ERROR;
use crate::subflow::Subflows;
use crate::subflow::mapping::{Entry, Placed};
use anabranch_trace::Violation;
use anabranch_wire::{Mapping, Segment};
use bytes::Bytes;

/// Where the payload of a segment belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// In the subflow's sequence.
    pub seq: u64,
    /// In the data sequence, if the segment's own mapping alone says so; that mapping is not noted.
    pub data: Option<u64>,
}

/// The result of taking a mapping or payload. What could not be placed waits for the fall back to plain TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    /// All that came has its place.
    Placed,
    /// The checksum of the mapping of the data at this offset is wrong.
    Corrupt(u64),
    /// The mapping of data does not come. `at_start`: the very first data, whose segment has no DSS.
    Unmapped { at_start: bool },
}

/// Bytes of a subflow, and where they begin in its sequence.
type Piece = (u64, Bytes);

impl Receiving {
    /// Takes the payload of a segment that came on subflow `i`.
    #[inline(always)]
    pub fn on_payload(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        subflows: &mut Subflows,
        i: usize,
        segment: &Segment,
        place: Place,
    ) -> Intake {
        let mss = cx.settings.mss;
        let s = &mut subflows[i];
        if self.is_sized() && segment.payload.len() as u32 >= mss {
            s.note_trip(segment, cx.now);
        }
        let (ready, simple) = s.take_payload(cx.now, segment, place.seq, mss);
        if let Some(start) = place.data.filter(|_| simple && !peer.mode.is_plain())
            && let Some((_, bytes)) = ready
        {
            self.on_arrival(cx, peer.mode, subflows, i, start, bytes);
            return Intake::Placed;
        }
        self.place_ready(cx, peer, subflows, i, ready, segment.options.dss().is_none())
    }

    /// Places what is next in the sequence of subflow `i`: `ready`, and what was held behind it. `bare`: see [`Self::place`].
    fn place_ready(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        subflows: &mut Subflows,
        i: usize,
        mut ready: Option<Piece>,
        bare: bool,
    ) -> Intake {
        while let Some(piece) = ready {
            let intake = self.place(cx, peer, subflows, i, piece, bare);
            if intake != Intake::Placed {
                return intake;
            }
            ready = subflows[i].receiver.pop();
        }
        let s = &mut subflows[i];
        s.placement.forget_below(s.receiver.next());
        Intake::Placed
    }

    /// Notes the mapping of a segment, whose length is not 0.
    pub fn note_mapping(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        subflows: &mut Subflows,
        i: usize,
        mapping: &Mapping,
        data_fin: bool,
    ) -> Intake {
        let Some(start) = peer.offset(mapping, self.next()) else { return Intake::Placed };
        let len = u64::from(mapping.len) - u64::from(data_fin);
        let s = &mut subflows[i];
        match peer.check(mapping, start, data_fin) {
            Checked::NotAgreed => {
                s.refuse(cx, Violation::Checksum, MPTCP_ERROR);
                return Intake::Placed;
            }
            Checked::Wrong => {
                cx.violation(s.id, Violation::Checksum);
                return Intake::Placed;
            }
            Checked::DataFin => self.note_data_fin(cx, peer.mode, s, start + len),
            Checked::Payload => {}
        }
        if len == 0 {
            return Intake::Placed;
        }
        match s.note_mapping(mapping, start, len) {
            Ok(true) => return self.place_unmapped(cx, peer, subflows, i),
            Ok(false) => {}
            Err(violation) => s.refuse(cx, violation, MPTCP_ERROR),
        }
        Intake::Placed
    }

    /// Places data that waited for its mapping.
    fn place_unmapped(&mut self, cx: &mut Scope<'_>, peer: PeerStream, subflows: &mut Subflows, i: usize) -> Intake {
        if subflows[i].placement.first_unmapped().is_none() {
            return Intake::Placed;
        }
        let mut held = subflows[i].placement.take_unmapped().into_iter();
        while let Some(piece) = held.next() {
            let intake = self.place(cx, peer, subflows, i, piece, false);
            if intake != Intake::Placed {
                held.for_each(|piece| subflows[i].placement.put_back(piece));
                return intake;
            }
        }
        Intake::Placed
    }

    /// Bytes next in a subflow's sequence go to the connection by their mapping. `bare`: their segment had no DSS.
    fn place(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        subflows: &mut Subflows,
        i: usize,
        piece: Piece,
        bare: bool,
    ) -> Intake {
        let mut rest = Some(piece).filter(|(_, bytes)| !bytes.is_empty());
        while let Some((seq, bytes)) = rest {
            if peer.mode.is_plain() {
                self.deliver_in_sequence(cx, subflows, i, (seq, bytes));
                return Intake::Placed;
            }
            let (placed, next) = subflows[i].placement.place(seq, bytes);
            rest = next;
            let intake = match placed {
                Placed::Data { start, bytes } => {
                    self.on_arrival(cx, peer.mode, subflows, i, start, bytes);
                    Intake::Placed
                }
                Placed::Collected => Intake::Placed,
                Placed::Whole { entry, bytes } => self.verify(cx, peer, subflows, i, entry, bytes),
                Placed::Unmapped { seq, bytes } => self.hold(cx, subflows, i, (seq, bytes), bare),
            };
            if intake != Intake::Placed {
                rest.into_iter().for_each(|piece| subflows[i].placement.put_back(piece));
                return intake;
            }
        }
        Intake::Placed
    }

    /// A mapping is complete: its bytes are delivered if its checksum is right (RFC 8684 §3.3).
    fn verify(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        subflows: &mut Subflows,
        i: usize,
        entry: Entry,
        bytes: Bytes,
    ) -> Intake {
        let (expected, len) = entry.checksum.unwrap_or((0, 0));
        if !peer.is_right(expected, entry.data, entry.sub.start as u32, len, &bytes) {
            cx.violation(subflows[i].id, Violation::Checksum);
            subflows[i].placement.keep(entry, bytes);
            return Intake::Corrupt(entry.data);
        }
        self.on_arrival(cx, peer.mode, subflows, i, entry.data, bytes);
        if u64::from(len) > entry.sub.len() {
            self.note_data_fin(cx, peer.mode, &mut subflows[i], entry.data + entry.sub.len());
        }
        Intake::Placed
    }

    /// Data without a mapping: it may follow within a receive window (RFC 8684 §3.3.1), but not for the very first data, whose
    /// segment has no DSS if the subflow does not speak MPTCP (§3.7).
    fn hold(&mut self, cx: &Scope<'_>, subflows: &mut Subflows, i: usize, (seq, bytes): Piece, bare: bool) -> Intake {
        let silent = bare && seq == 1;
        let window = cx.settings.recv_buffer;
        let placement = &mut subflows[i].placement;
        if !silent && placement.hold(cx.now, seq, bytes.clone(), window, bare) {
            return Intake::Placed;
        }
        placement.put_back((seq, bytes));
        Intake::Unmapped { at_start: silent && self.next() == 0 }
    }

    // ---- plain TCP: the subflow's sequence is the data sequence (RFC 8684 §3.7) ----

    /// From here on the peer's stream continues in the sequence of subflow `i`: with what is [held](Self::place_on) first.
    pub fn go_on_in(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, i: usize) {
        self.offset = self.place_on(&subflows[i]).unwrap_or(self.offset);
        if let Some((entry, bytes)) = subflows[i].placement.take_collected() {
            self.on_arrival(cx, Mode::Plain, subflows, i, entry.data, bytes);
        }
        for piece in subflows[i].placement.take_unmapped() {
            self.deliver_in_sequence(cx, subflows, i, piece);
        }
        self.deliver_held(cx, subflows, i);
    }

    /// After the fall back, a peer that does not know of it yet repeats data that came already, with new sequence numbers.
    /// In order it is skipped: the stream continues after it, with what waited behind it. Out of order it is dropped, and the
    /// peer retransmits it.
    pub fn pass_over(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, i: usize, seq: u64, payload: &Bytes) {
        let s = &mut subflows[i];
        s.acks.demand();
        if s.receiver.next() == seq {
            s.receiver.accept(seq, payload);
            self.offset.sub += payload.len() as u64;
        }
        self.deliver_held(cx, subflows, i);
    }

    /// Delivers what has come into the sequence of subflow `i`.
    fn deliver_held(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, i: usize) {
        while let Some(piece) = subflows[i].receiver.pop() {
            self.deliver_in_sequence(cx, subflows, i, piece);
        }
    }

    fn deliver_in_sequence(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, i: usize, (seq, bytes): Piece) {
        if let Some(start) = self.start_of(seq) {
            self.on_arrival(cx, Mode::Plain, subflows, i, start, bytes);
        }
    }
}
