//! Transmission: handshakes, retransmissions, new data, FINs, acknowledgments, resets (RFC 9293 §3.8).

use super::Connection;
use crate::cx::Cx;
use crate::session::Said;
use crate::settings::HostModel;
use crate::subflow::segments::{Waiting, Wanted};
use crate::subflow::sender::Sent;
use crate::subflow::{Move, State};
use anabranch_trace::{Event, PathState, SendKind};
use anabranch_units::{PathId, Range};
use anabranch_wire::{Flags, Packet, Segment};

impl Connection {
    /// The next segment to send, with its path. Ask until there is none.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<(PathId, Segment)> {
        let mut packet = Packet::default();
        let id = self.transmit_into(cx, &mut packet)?;
        Some((id, packet.segment))
    }

    /// As [`Self::poll_transmit`], with the addresses, into a packet that is overwritten.
    #[inline(always)]
    pub fn transmit_into(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<PathId> {
        if self.sending.due().is_some() {
            self.hold_round(cx);
        }
        // Nearly always nothing is to be sent, found out with little work.
        let (i, wanted) = self.wanted_from(0)?;
        self.transmit_from(cx, i, wanted, packet)
    }

    /// Holds the round that is due.
    #[inline(never)]
    fn hold_round(&mut self, cx: &mut Cx<'_>) {
        let mode = self.session.mode();
        if self.sending.hold_round(&mut cx.scope(&self.frame), mode, &mut self.subflows) {
            self.settle_stream();
        }
    }

    /// The first subflow, `i` or one after it, that is to send something, and what.
    #[inline(always)]
    fn wanted_from(&mut self, i: usize) -> Option<(usize, Wanted)> {
        let waiting = Waiting { data: self.sending.view().waiting(), data_fin: self.sending.data_fin.due() };
        self.subflows.wanted_from(i, self.session.mode(), waiting)
    }

    /// The next segment of subflow `i`, which is to send what is `wanted`, or of those after it.
    #[inline(never)]
    fn transmit_from(&mut self, cx: &mut Cx<'_>, i: usize, wanted: Wanted, packet: &mut Packet) -> Option<PathId> {
        let (mut i, mut wanted) = (i, wanted);
        while !self.transmit(cx, i, wanted, &mut packet.segment) {
            (i, wanted) = self.wanted_from(i + 1)?;
        }
        let s = &self.subflows[i];
        let id = s.id;
        packet.src = s.ends.src;
        packet.dst = s.ends.dst;
        if s.state == State::Closed {
            self.forget_reset(cx, i);
        }
        Some(id)
    }

    /// The reset of a subflow has left: that was its last segment.
    #[cold]
    fn forget_reset(&mut self, cx: &mut Cx<'_>, i: usize) {
        self.drop_subflow(cx, i, PathState::Dead);
        self.settle(cx);
    }

    /// Writes the next segment of a subflow to `out`; false if there is none, or what is `wanted` is held back.
    #[inline(always)]
    fn transmit(&mut self, cx: &mut Cx<'_>, i: usize, wanted: Wanted, out: &mut Segment) -> bool {
        match wanted {
            Wanted::Stream { data: true, .. } if self.send_data(cx, i, out) => return true,
            Wanted::Nothing | Wanted::Stream { control: false, .. } => return false,
            Wanted::Stream { control: true, .. } => self.send_control(cx, i, out),
            Wanted::Reset => self.send_reset(cx, i, out),
            Wanted::Handshake => self.send_handshake(cx, i, out),
            Wanted::ThirdAck => self.send_third_ack(cx, i, out),
        }
        true
    }

    #[cold]
    fn send_reset(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let s = &mut self.subflows[i];
        match s.take_reset(out, cx.now) {
            Some(reset) => self.session.add_reason(reset, &mut out.options),
            None => s.write_refusal(out, cx.now),
        }
        self.record_control(cx, i, out.flags, false);
    }

    fn send_handshake(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let window = self.receiving.advertise_on(self.session.mode(), &mut self.subflows, i, 0);
        let s = &mut self.subflows[i];
        let with_option = s.write_handshake(out, &self.frame.settings, window, cx.now);
        if let Some(option) = self.session.handshake_option(s).filter(|_| with_option) {
            out.options.push_mptcp(option);
        }
        let again = s.handshake.sent.is_some();
        s.handshake.on_sent(cx.now);
        self.record_control(cx, i, out.flags, again);
    }

    /// A third ACK if it is due, or anything is that could be said before it is known to have come.
    fn send_third_ack(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let window = self.receiving.offer_on(self.session.mode(), &mut self.subflows, i);
        let s = &mut self.subflows[i];
        s.handshake.third_ack = false;
        s.acknowledges(window);
        s.begin(out, s.sender.nxt(), Flags::ACK, window, cx.now);
        out.options.push_mptcp(self.session.third_ack_option(s));
        self.record_control(cx, i, out.flags, false);
    }

    /// A retransmission, new data, a probe or a FIN, if the windows and pacing allow one.
    fn send_data(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        let s = &self.subflows[i];
        let room = self.sending.has_room(s, cx.now);
        if room && let Some(lost) = s.next_lost() {
            return self.retransmit(cx, i, &lost, out);
        }
        if s.may_send_new(room) && self.send_new(cx, i, out) {
            return true;
        }
        let s = &mut self.subflows[i];
        if let Some(again) = s.next_repeat(room) {
            return self.retransmit(cx, i, &again, out);
        }
        let ending = s.fin.wanted && s.fin.offset.is_none() && !self.sending.has_queued(s.id);
        if ending {
            self.send_fin(cx, i, out);
        }
        ending
    }

    /// The next new data that is bound to a subflow, if the peer's windows admit it.
    #[inline(always)]
    fn send_new(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        let s = &mut self.subflows[i];
        let keys = self.session.shows_keys(s);
        let linux = self.frame.settings.sender_model == HostModel::Linux;
        let Some((fresh, payload)) = self.sending.take_next(s, self.session.mode(), linux, keys) else { return false };
        s.probe = false;
        let seq = s.sender.nxt();
        let len = fresh.range.len();
        let sent = Sent::new(Range::new(seq, seq + len), payload, fresh.range, fresh.data_fin);
        self.build(cx, i, &sent, out);
        let s = &mut self.subflows[i];
        s.on_sent(cx.now, sent);
        self.sending.on_sent(&mut cx.scope(&self.frame), s, seq, fresh);
        if self.session.is_plain() && fresh.range.end == self.sending.end() {
            self.settle_stream();
        }
        true
    }

    fn retransmit(&mut self, cx: &mut Cx<'_>, i: usize, sent: &Sent, out: &mut Segment) -> bool {
        self.build(cx, i, sent, out);
        let s = &mut self.subflows[i];
        s.sender.on_retransmitted(cx.now, sent.seq.start);
        s.last_sent = Some(cx.now);
        let id = s.id;
        self.sending.after_sending(cx.now, s, sent.seq.len());
        if sent.payload.is_empty() {
            self.record_control(cx, i, out.flags, true);
        } else {
            let event = Event::DataSent { seq: sent.seq.start, data: sent.data, kind: SendKind::Retransmission };
            cx.scope(&self.frame).record(Some(id), event);
        }
        true
    }

    fn send_fin(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let s = &mut self.subflows[i];
        s.go(Move::SendFin);
        let at = s.sender.nxt();
        s.fin.offset = Some(at);
        let sent = Sent::fin(at, self.sending.written());
        self.build(cx, i, &sent, out);
        let s = &mut self.subflows[i];
        s.sender.on_sent(cx.now, sent);
        self.sending.after_sending(cx.now, s, 0);
        self.record_control(cx, i, out.flags, false);
    }

    /// Makes `out` a segment that carries `sent`, as it stands in the subflow's sequence.
    #[inline(always)]
    fn build(&mut self, cx: &mut Cx<'_>, i: usize, sent: &Sent, out: &mut Segment) {
        let window = self.receiving.offer_on(self.session.mode(), &mut self.subflows, i);
        let s = &mut self.subflows[i];
        s.write_data(out, sent, window, self.sending.has_queued(s.id), cx.now);
        self.session.add_mapping(s, sent, self.receiving.acked(), &mut out.options);
    }

    /// A segment without payload: an acknowledgment, a signal, a DATA_FIN, a probe.
    #[inline(never)]
    fn send_control(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let window = self.receiving.offer_on(self.session.mode(), &mut self.subflows, i);
        let s = &mut self.subflows[i];
        let duplicate = s.write_control(out, window, cx.now);
        let data_fin = (self.sending.data_fin.is_due_on(s.id) && s.may_carry()).then(|| self.sending.end());
        let said = Said { acked: self.receiving.acked(), data_fin };
        if self.session.add_control(s, said, &mut out.options) {
            self.sending.data_fin_sent(&cx.scope(&self.frame), s);
        }
        s.add_sack(out, duplicate);
        self.record_control(cx, i, out.flags, false);
    }

    fn record_control(&self, cx: &mut Cx<'_>, i: usize, flags: Flags, again: bool) {
        cx.scope(&self.frame).record(Some(self.subflows[i].id), Event::ControlSent { flags: flags.0, again });
    }
}
