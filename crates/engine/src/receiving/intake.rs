//! Payload, from a subflow's bytes to the connection's stream (RFC 8684 §3.3), and after a fall back (§3.7).

use super::Receiving;
use crate::cx::Scope;
use crate::peer_stream::{Checked, PeerStream};
use crate::reasons::MPTCP_ERROR;
use crate::subflow::mapping::{Doubt, Entry, Placed};
use crate::subflow::{Lent, Subflow};
use anabranch_trace::{Event, Violation};
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

/// Placed; or what could not be placed waits for the fall back to plain TCP.
type Intake = Result<(), Doubt>;

/// Bytes of a subflow, and where they begin in its sequence.
type Piece = (u64, Bytes);

impl Receiving {
    /// Takes the payload of a segment that came on `s`.
    #[inline(always)]
    pub fn on_payload(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        s: &mut Lent<'_>,
        segment: &Segment,
        place: Place,
    ) -> Intake {
        let mss = cx.settings().mss;
        if self.is_sized() && segment.payload.len() as u32 >= mss {
            s.note_trip(segment, cx.now);
        }
        if let Some(start) = place.data.filter(|_| !self.is_plain())
            && s.take_next(cx.now, segment, place.seq, mss)
        {
            self.on_arrival(cx, s, start, segment.payload.clone());
            return Ok(());
        }
        let ready = s.take_payload(cx.now, segment, place.seq, mss);
        self.place_ready(cx, peer, s, ready, segment.options.dss().is_none())
    }

    /// Places what is next in the sequence of `s`: `ready`, and what was held behind it. `bare`: see [`Self::place`].
    fn place_ready(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        s: &mut Lent<'_>,
        mut ready: Option<Piece>,
        bare: bool,
    ) -> Intake {
        while let Some(piece) = ready {
            self.place(cx, peer, s, piece, bare)?;
            ready = s.receiver.pop();
        }
        let s: &mut Subflow = s;
        s.placement.forget_below(s.receiver.next());
        note_held(cx, s);
        Ok(())
    }

    /// Notes the mapping of a segment.
    pub fn note_mapping(
        &mut self,
        cx: &mut Scope<'_>,
        peer: PeerStream,
        s: &mut Lent<'_>,
        mapping: &Mapping,
        data_fin: bool,
    ) -> Intake {
        if mapping.len == 0 {
            return Err(Doubt::Infinite(*mapping));
        }
        let Some(start) = peer.offset(mapping, self.next()) else { return Ok(()) };
        let len = u64::from(mapping.len) - u64::from(data_fin);
        match peer.check(mapping, start, data_fin) {
            Checked::NotAgreed => {
                s.refuse(cx, Violation::Checksum, MPTCP_ERROR);
                return Ok(());
            }
            Checked::Wrong => {
                cx.violation(s.id, Violation::Checksum);
                return Ok(());
            }
            Checked::DataFin => self.note_data_fin(cx, s, start + len),
            Checked::Payload => {}
        }
        if len == 0 {
            return Ok(());
        }
        match s.note_mapping(mapping, start, len) {
            Ok(true) => return self.place_unmapped(cx, peer, s),
            Ok(false) => {}
            // The data that it maps is not taken either.
            Err(Violation::TooMuch) => cx.violation(s.id, Violation::TooMuch),
            Err(violation) => s.refuse(cx, violation, MPTCP_ERROR),
        }
        Ok(())
    }

    /// Places data that waited for its mapping.
    fn place_unmapped(&mut self, cx: &mut Scope<'_>, peer: PeerStream, s: &mut Lent<'_>) -> Intake {
        if s.placement.first_unmapped().is_none() {
            return Ok(());
        }
        let mut held = s.placement.take_unmapped().into_iter();
        while let Some(piece) = held.next() {
            let intake = self.place(cx, peer, s, piece, false);
            if intake.is_err() {
                held.for_each(|piece| s.placement.put_back(piece));
                return intake;
            }
        }
        Ok(())
    }

    /// Bytes next in a subflow's sequence go to the connection by their mapping. `bare`: their segment had no DSS.
    fn place(&mut self, cx: &mut Scope<'_>, peer: PeerStream, s: &mut Lent<'_>, piece: Piece, bare: bool) -> Intake {
        let whole = piece.1.len();
        let mut rest = Some(piece).filter(|(_, bytes)| !bytes.is_empty());
        while let Some((seq, bytes)) = rest {
            if self.is_plain() {
                self.deliver_in_sequence(cx, s, (seq, bytes));
                return Ok(());
            }
            let (placed, next) = s.placement.place(seq, bytes, whole);
            rest = next;
            let intake = match placed {
                Placed::Data { start, bytes } => {
                    self.on_arrival(cx, s, start, bytes);
                    Ok(())
                }
                Placed::Collected => Ok(()),
                Placed::Whole { entry, bytes } => self.verify(cx, peer, s, entry, bytes),
                Placed::Unmapped { seq, bytes } => self.hold(cx, s, (seq, bytes), bare),
            };
            if intake.is_err() {
                rest.into_iter().for_each(|piece| s.placement.put_back(piece));
                return intake;
            }
        }
        Ok(())
    }

    /// A mapping is complete: its bytes are delivered if its checksum is right (RFC 8684 §3.3).
    fn verify(&mut self, cx: &mut Scope<'_>, peer: PeerStream, s: &mut Lent<'_>, entry: Entry, bytes: Bytes) -> Intake {
        let (expected, len) = entry.checksum.unwrap_or((0, 0));
        if !peer.is_right(expected, entry.data, entry.sub.start as u32, len, &bytes) {
            cx.violation(s.id, Violation::Checksum);
            s.placement.keep(entry, bytes);
            return Err(Doubt::Corrupt(entry.data));
        }
        self.on_arrival(cx, s, entry.data, bytes);
        if u64::from(len) > entry.sub.len() {
            self.note_data_fin(cx, s, entry.data + entry.sub.len());
        }
        Ok(())
    }

    /// Data without a mapping: it may follow within a receive window (RFC 8684 §3.3.1), but not for the very first data, whose
    /// segment has no DSS if the subflow does not speak MPTCP (§3.7).
    fn hold(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, (seq, bytes): Piece, bare: bool) -> Intake {
        let silent = bare && seq == 1;
        let window = cx.settings().recv_buffer;
        let placement = &mut s.placement;
        if !silent && placement.hold(cx.now, seq, bytes.clone(), window, bare) {
            return Ok(());
        }
        placement.put_back((seq, bytes));
        cx.violation(s.id, Violation::Unmapped);
        Err(Doubt::Unmapped { at_start: silent && self.next() == 0 })
    }

    // ---- plain TCP: the subflow's sequence is the data sequence (RFC 8684 §3.7) ----

    /// The peer's stream may continue in the sequence of `s`: it has no hole, the subflow's bytes have their place, and no reset
    /// is due.
    pub fn may_go_on_in(&self, peer: PeerStream, s: &Subflow, doubt: Doubt) -> bool {
        let Some(place) = self.place_on(s).filter(|_| s.reset.is_none()) else { return false };
        // Data that waits for its mapping may be a repetition of a peer that maps it.
        let nothing_waits = s.placement.first_unmapped().is_none();
        match doubt {
            Doubt::Corrupt(start) => start == self.next(),
            Doubt::Unmapped { at_start } => at_start,
            Doubt::Failed(_) => nothing_waits,
            Doubt::Unanswered(first) => self.next() <= first && nothing_waits,
            // It may reach back to what was acknowledged last; it must not contradict what came. Linux gives it no place of its
            // own: it begins here.
            Doubt::Infinite(mapping) => {
                mapping.subflow_seq == 0 || peer.is_in_line(&mapping, s.receiver.next(), self.next(), place)
            }
        }
    }

    /// The peer's stream cannot continue in the sequence of `s`, which is reset.
    pub fn refuse(&self, cx: &mut Scope<'_>, peer: PeerStream, s: &mut Subflow, doubt: Doubt) {
        match doubt {
            // The first reason stands.
            _ if s.reset.is_some() => {}
            Doubt::Corrupt(start) => s.fail(peer.number(start).0),
            Doubt::Unmapped { .. } | Doubt::Unanswered(_) => s.end_unmapped(),
            Doubt::Failed(_) => s.fail(peer.number(self.next()).0),
            Doubt::Infinite(_) => s.refuse(cx, Violation::MappingConflict, MPTCP_ERROR),
        }
    }

    /// From here on the peer's stream continues in the sequence of `s`: with what is [held](Self::place_on) first.
    pub fn go_on_in(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        self.offset = self.place_on(s).unwrap_or(self.offset);
        if let Some((entry, bytes)) = s.placement.take_collected() {
            self.on_arrival(cx, s, entry.data, bytes);
        }
        for piece in s.placement.take_unmapped() {
            self.deliver_in_sequence(cx, s, piece);
        }
        self.deliver_held(cx, s);
    }

    /// After the fall back, a peer that does not know of it yet repeats data that came already, with new sequence numbers.
    /// In order it is skipped: the stream continues after it, with what waited behind it. Out of order it is dropped, and the
    /// peer retransmits it.
    pub fn pass_over(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, seq: u64, payload: &Bytes) {
        s.acks.demand();
        if s.receiver.next() == seq {
            s.receiver.accept(seq, payload);
            self.offset.sub += payload.len() as u64;
        }
        self.deliver_held(cx, s);
    }

    /// Delivers what has come into the sequence of `s`.
    fn deliver_held(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        while let Some(piece) = s.receiver.pop() {
            self.deliver_in_sequence(cx, s, piece);
        }
        note_held(cx, s);
    }

    fn deliver_in_sequence(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, (seq, bytes): Piece) {
        if let Some(start) = self.start_of(seq) {
            self.on_arrival(cx, s, start, bytes);
        }
    }
}

/// Records how much waits for an earlier segment of the subflow, if that is another number than before.
#[inline(always)]
fn note_held(cx: &mut Scope<'_>, s: &mut Subflow) {
    if let Some(bytes) = s.receiver.held_change() {
        cx.record(Some(s.id), Event::SubflowOfo(bytes));
    }
}
