//! The fall back to plain TCP: by MP_FAIL, by an infinite mapping, or because options do not come (RFC 8684 §3.7).
//!
//! From then on the subflow's sequence is the data sequence, in both directions. That is safe only where each is one
//! already: one subflow has carried all that is not acknowledged, in order, up to the last byte sent, and what came has no
//! hole. Otherwise the subflow is reset, and another one may go on.

use super::data::subflow_offset;
use super::open::MPTCP_ERROR;
use super::{Connection, Mode, Offset};
use crate::cx::Cx;
use crate::schedule::Cause;
use crate::subflow::Reset;
use crate::subflow::sender::Sent;
use anabranch_trace::{CloseReason, Event, SendKind, Violation};
use anabranch_units::{DataSeq, Duration, Instant};
use anabranch_wire::{Mapping, MptcpOption, Segment};

/// What is left to be settled after a checksum failed on the only subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    None,
    /// We could not verify data, and the peer has not reacted yet.
    Said(Saying),
    /// The peer has answered, and has not sent data with an infinite mapping yet.
    Answered,
    /// The peer could not, and says so with this number until it hears our answer.
    Heard(u64),
}

/// MP_FAIL goes out with every acknowledgment until the peer reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Saying {
    /// Where the data begins that failed, as the wire has it.
    pub data_seq: u64,
    /// When it is said again by itself, and how long after the last time.
    again: Instant,
    wait: Duration,
    /// When the peer is given up.
    until: Instant,
}

impl Failure {
    /// When something is due.
    pub fn deadline(&self) -> Instant {
        match self {
            Self::Said(saying) => saying.again.min(saying.until),
            _ => Instant::MAX,
        }
    }
}

/// The infinite mapping (RFC 8684 §3.7). The first new data after a fall back carries it, and so do retransmissions of older
/// data: the peer may not know of the fall back yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Infinite {
    /// Where the first new data begins in the subflow's sequence.
    pub upto: u64,
    /// Where the last data begins that is known to have come intact.
    pub intact: u64,
    /// Checksums were agreed on: its own is 0 (§3.3.1).
    pub checksum: bool,
}

/// Where data belongs that a peer maps although the connection is plain TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the subflow's sequence, as all data is then.
    Sequence,
    /// Before what came in order: it is there already.
    Repeat,
    /// Somewhere else: the streams would part.
    Elsewhere,
}

impl Connection {
    /// True if the one subflow that there is and ever was in use carries both streams in order.
    pub(super) fn may_fall_back(&self, i: usize) -> bool {
        // A join whose SYN/ACK we have answered may be in use on the other side.
        let alone = !self.joined && !self.subflows.iter().any(|s| s.join && s.state.is_synchronized());
        alone && self.received_place(i).is_some() && self.is_sent_in_order(i)
    }

    /// Where the peer's stream stands: what comes next in the subflow's sequence, and its place in the data sequence. `None`
    /// if there is a hole.
    fn received_place(&self, i: usize) -> Option<Offset> {
        let s = &self.subflows[i];
        let next = self.reassembly.next();
        if self.reassembly.ofo_bytes() > 0 {
            return None;
        }
        if let Some(entry) = self.checking.begun_on(s.id) {
            return Some(Offset { sub: entry.sub.start, data: entry.data }).filter(|place| place.data <= next);
        }
        let come = s.receiver.next() - u64::from(s.receiver.is_finished());
        Some(Offset { sub: s.unmapped.first().unwrap_or(come), data: next })
    }

    /// Everything that was sent and is not acknowledged, up to the last byte, is on this subflow, in one piece and in order.
    fn is_sent_in_order(&self, i: usize) -> bool {
        let s = &self.subflows[i];
        let carried = self.view.outstanding().iter().all(|(_, copies)| copies.on(s.id));
        let new = |start| start >= self.sent_end;
        let queued = self.view.queue(s.id).filter(|q| q.kind == SendKind::First).all(|q| new(q.range.start));
        let backlog = self.view.backlog().first().is_none_or(|range| new(range.start));
        let mut data = s.sender.unacknowledged().filter(|sent| !sent.payload.is_empty());
        let in_order = match data.next() {
            None => true,
            Some(first) => {
                let mut end = (first.seq.end, first.data.end);
                let follows = |sent: &Sent| {
                    let goes_on = (sent.seq.start, sent.data.start) == end;
                    end = (sent.seq.end, sent.data.end);
                    goes_on
                };
                data.all(follows) && end.1 == self.sent_end
            }
        };
        carried && queued && backlog && in_order
    }

    /// From here on the connection is plain TCP, and the application hears of it.
    pub(super) fn give_up_multipath(&mut self, cx: &mut Cx<'_>) {
        self.mode = Mode::Plain;
        self.view.set_in_sequence();
        self.pending.fell_back = true;
        self.record(cx, None, Event::Fallback);
    }

    /// From here on the connection is plain TCP over this subflow, which [may](Self::may_fall_back) be.
    pub(super) fn fall_back(&mut self, cx: &mut Cx<'_>, i: usize) {
        let place = self.received_place(i).unwrap_or(self.recv_offset);
        self.fall_back_at(cx, i, place);
    }

    /// As [`Self::fall_back`]; the peer's stream goes on at `place`.
    pub(super) fn fall_back_at(&mut self, cx: &mut Cx<'_>, i: usize, place: Offset) {
        if self.mode == Mode::Plain {
            return;
        }
        self.recv_offset = place;
        self.give_up_multipath(cx);
        self.paths.stop();
        let id = self.subflows[i].id;
        // Joins that did not come into use do not any more.
        for s in self.subflows.iter_mut().filter(|s| s.id != id) {
            s.close_by_reset(Reset::Because(super::open::UNSPECIFIED));
        }
        let s = &mut self.subflows[i];
        s.handshake.confirmed = true;
        s.handshake.third_ack = false;
        s.handshake.complete();
        s.signals.clear();
        // What was sent with mappings keeps its place; new data follows in the subflow's own sequence. What the subflow has
        // acknowledged has arrived, also where no DATA_ACK says so yet.
        self.send_offset = Offset { sub: s.sender.nxt(), data: self.sent_end.max(self.view.data_acked()) };
        let infinite = Infinite { upto: s.sender.nxt(), intact: self.acked_before, checksum: self.checksum };
        self.infinite = Some(infinite).filter(|infinite| infinite.upto > 1);
        self.checksum = false;
        self.data_fin.due = 0;
        self.view.take_back(id);
        self.refresh_usability();
        self.acked_by_subflow(cx, i);
        self.due.get_or_insert(Cause::PathChange(id));
        if let Some((entry, bytes)) = self.checking.take(id) {
            self.arrived(cx, i, entry.data, bytes);
        }
        self.pass_on_held(cx, i);
        self.end_with_fin(cx, i);
    }

    /// In plain TCP a FIN ends the stream, at the place where it stands in the subflow's sequence. If that is not where the
    /// stream ends, something is missing that will never come.
    pub(super) fn end_with_fin(&mut self, cx: &mut Cx<'_>, i: usize) {
        let receiver = &self.subflows[i].receiver;
        if !receiver.is_finished() {
            return;
        }
        let at = (self.recv_offset.data + receiver.next() - 1).checked_sub(self.recv_offset.sub);
        let known = *self.peer_fin.get_or_insert(at.unwrap_or(u64::MAX));
        if at != Some(known) || known != self.reassembly.next() {
            self.violation(cx, i, Violation::DataFinMoved);
            // A segment is being taken: its subflow is forgotten when that is over.
            return self.break_off(cx, CloseReason::Aborted);
        }
        self.pending.readable = true;
    }

    /// The checksum of data failed on this subflow, which [may fall back](Self::may_fall_back). The peer is told, and what
    /// came stands.
    pub(super) fn fail_over_to_plain(&mut self, cx: &mut Cx<'_>, i: usize, data_seq: u64) {
        self.subflows[i].acks.demand();
        self.fall_back(cx, i);
        if self.closed {
            return;
        }
        let wait = self.subflows[i].sender.rtt().rto();
        // As long as Linux waits for an answer (TCP_RTO_MAX).
        let until = cx.now + self.settings.tcp.rto_max;
        self.failure = Failure::Said(Saying { data_seq, again: cx.now + wait, wait, until });
    }

    /// MP_FAIL was not answered in time.
    pub(super) fn on_failure_timer(&mut self, cx: &mut Cx<'_>) {
        let Failure::Said(saying) = &mut self.failure else { return };
        if saying.until <= cx.now {
            return self.abort_with(cx, CloseReason::TimedOut);
        }
        saying.wait = saying.wait * 2;
        saying.again = cx.now + saying.wait;
        self.subflows.iter_mut().for_each(|s| s.acks.demand());
    }

    /// The peer could not verify our data. It is answered in kind, and with an infinite mapping on the next new data; or by
    /// a reset, where that is not safe.
    pub(super) fn on_fail(&mut self, cx: &mut Cx<'_>, i: usize, data_seq: u64) {
        if !self.may_fall_back(i) {
            let next = self.keys.remote_number(self.reassembly.next()).0;
            self.subflows[i].reset = Some(Reset::Fail(next));
            return;
        }
        self.fall_back(cx, i);
        if self.closed {
            return;
        }
        self.failure = Failure::Heard(data_seq);
        self.answer_failure(i);
    }

    fn answer_failure(&mut self, i: usize) {
        let data_seq = self.keys.remote_number(self.reassembly.next()).0;
        let s = &mut self.subflows[i];
        if s.signals.is_empty() {
            s.signals.push_back(MptcpOption::Fail { data_seq });
        }
        s.acks.demand();
    }

    /// After a checksum failed, the peer reacts by its own MP_FAIL, an infinite mapping or plain data. Until one of the
    /// latter it maps what it sends, and waits for DATA_ACKs as before.
    pub(super) fn on_failing(&mut self, cx: &Cx<'_>, i: usize, segment: &Segment) {
        let options = &segment.options;
        let fails = options.mptcp().iter().find_map(|option| match option {
            MptcpOption::Fail { data_seq } => Some(*data_seq),
            _ => None,
        });
        let infinite = options.dss().is_none_or(|dss| dss.mapping.is_some_and(|m| m.len == 0));
        match self.failure {
            Failure::Said(_) | Failure::Answered if infinite && !segment.payload.is_empty() => {
                self.failure = Failure::None
            }
            Failure::Said(_) if fails.is_some() => self.failure = Failure::Answered,
            // Our answer was lost. MP_FAIL with another number is an answer itself: two ends that both received MP_FAIL, from
            // each other or from a forger, would answer each other for ever.
            Failure::Heard(said) if fails == Some(said) && self.subflows[i].may_answer(cx.now) => {
                self.answer_failure(i)
            }
            Failure::None | Failure::Said(_) | Failure::Answered | Failure::Heard(_) => {}
        }
    }

    /// From here on the subflow's sequence is the data sequence. It may reach back to what was acknowledged last; it must
    /// not contradict what came. False if the subflow must not go on.
    pub(super) fn infinite_mapping(&mut self, cx: &mut Cx<'_>, i: usize, mapping: &Mapping) -> bool {
        let next = self.subflows[i].receiver.next();
        let place = self.received_place(i).filter(|_| self.may_fall_back(i));
        // Linux gives it no place of its own: it begins here.
        let agrees = |place: &Offset| mapping.subflow_seq == 0 || self.is_in_line(mapping, next, *place);
        if !place.as_ref().is_some_and(agrees) {
            self.violation(cx, i, Violation::MappingConflict);
            self.subflows[i].reset = Some(Reset::Because(MPTCP_ERROR));
            return false;
        }
        self.fall_back(cx, i);
        !self.closed
    }

    /// A mapping puts data where the subflow's sequence does, given that `place` is in that line.
    fn is_in_line(&self, mapping: &Mapping, next: u64, place: Offset) -> bool {
        let sub = subflow_offset(mapping.subflow_seq, next);
        sub.zip(self.data_offset(mapping)).is_some_and(|(sub, data)| data + place.sub == place.data + sub)
    }

    /// After the fall back: where a segment's mapping puts its data, if the peer still sends mappings.
    pub(super) fn place_in_plain_tcp(&self, i: usize, segment: &Segment, seq: u64) -> Place {
        let knows_numbers = self.keys.remote != 0 || self.keys.remote_idsn != DataSeq::default();
        let mapping = segment.options.dss().and_then(|dss| dss.mapping);
        let Some(mapping) = mapping.filter(|m| knows_numbers && m.subflow_seq > 0) else {
            return Place::Sequence;
        };
        let next = self.subflows[i].receiver.next();
        let place = subflow_offset(mapping.subflow_seq, next).zip(self.data_offset(&mapping));
        let Some((sub, data)) = place.filter(|(sub, _)| *sub >= self.recv_offset.sub) else {
            return Place::Sequence;
        };
        if self.is_in_line(&mapping, next, self.recv_offset) {
            return Place::Sequence;
        }
        let end = data + seq.saturating_sub(sub) + segment.payload.len() as u64;
        if mapping.len > 0 && end <= self.reassembly.next() { Place::Repeat } else { Place::Elsewhere }
    }

    /// After the fall back: a peer that does not know of it yet sends data again that came already, with new sequence
    /// numbers. These are taken, and what follows them goes on where the stream stands. Out of order they are not taken,
    /// and come again.
    pub(super) fn pass_over(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) {
        let s = &mut self.subflows[i];
        s.acks.demand();
        if s.receiver.next() != seq {
            return;
        }
        s.receiver.accept(seq, &segment.payload);
        self.recv_offset.sub += segment.payload.len() as u64;
        while let Some((seq, bytes)) = self.subflows[i].receiver.pop() {
            if !self.pass_on(cx, i, seq, bytes, true) {
                return;
            }
        }
    }
}
