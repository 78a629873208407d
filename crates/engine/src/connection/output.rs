//! What leaves: handshakes, retransmissions, new data, FINs, acknowledgments, resets.

use super::fallback::{Failure, Infinite, Saying};
use super::{Connection, Mode};
use crate::congestion::PACED_HEADERS;
use crate::cx::Cx;
use crate::settings::{DssWidth, LimitedDecay};
use crate::subflow::sender::Sent;
use crate::subflow::{Move, Reset, State};
use anabranch_trace::{Event, PathState, RecoveryPhase, SendKind};
use anabranch_units::{PathId, Range};
use anabranch_wire::{DataAck, Dss, Flags, Mapping, MptcpOption, Options, Packet, SackBlock, Segment};
use bytes::Bytes;

impl Connection {
    /// The next segment to send, with its path. Ask until there is none.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<(PathId, Segment)> {
        let mut packet = Packet::default();
        let id = self.transmit_into(cx, &mut packet)?;
        Some((id, packet.segment))
    }

    /// As [`Self::poll_transmit`], with the addresses, into a packet that is overwritten.
    #[inline]
    pub fn transmit_into(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<PathId> {
        if self.due.is_some() {
            self.schedule(cx);
        }
        let Some(first) = self.stirring(0) else {
            debug_assert!(self.subflows.iter().all(|s| self.is_touched(s) || !s.must_send()), "overlooked");
            return None;
        };
        self.transmit_from(cx, first, packet)
    }

    /// The next segment of subflow `first`, which may have one, or of those after it. Apart, so that a connection with
    /// nothing to send is left soon.
    #[inline(never)]
    fn transmit_from(&mut self, cx: &mut Cx<'_>, first: usize, packet: &mut Packet) -> Option<PathId> {
        let mut next = Some(first);
        while let Some(i) = next {
            self.touch(i);
            if self.transmit(cx, i, &mut packet.segment) {
                let s = &self.subflows[i];
                let id = s.id;
                packet.src = s.ends.src;
                packet.dst = s.ends.dst;
                if s.state == State::Closed {
                    self.drop_subflow(cx, i, PathState::Dead);
                    self.settle(cx);
                }
                return Some(id);
            }
            next = self.stirring(i + 1);
        }
        None
    }

    /// The first subflow from `from` on that may have something to send: something happened to it, or it was given data.
    /// Nearly always none has, found out with little work.
    #[inline(always)]
    fn stirring(&self, from: usize) -> Option<usize> {
        for (i, s) in self.subflows.iter().enumerate() {
            if i < from || !self.is_touched(s) {
                continue;
            }
            let queued = self.view.path(s.id).is_some_and(|p| p.queued > 0);
            if queued || self.data_fin.due & s.id.bit() != 0 || s.has_control() || s.sender.may_repeat() {
                return Some(i);
            }
        }
        None
    }

    /// Writes the next segment of a subflow to `out`; false if there is none.
    fn transmit(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        let s = &self.subflows[i];
        if s.reset.is_some() || s.refusal.is_some() {
            self.refuse(cx, i, out);
            return true;
        }
        match s.state {
            State::SynSent => self.handshake_segment(cx, i, out),
            State::SynReceived => {
                self.handshake_segment(cx, i, out) || (self.mode == Mode::Plain && self.control_segment(cx, i, out))
            }
            State::Closed | State::Listen => false,
            _ if s.handshake.third_ack || s.is_unproven() => self.third_ack(cx, i, out),
            _ => (self.may_carry_on(i) && self.data_segment(cx, i, out)) || self.control_segment(cx, i, out),
        }
    }

    /// Writes the reset that is due: of the subflow itself, or of an acknowledgment that it does not hold for its own.
    #[cold]
    fn refuse(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let s = &mut self.subflows[i];
        if let Some(reset) = s.reset.take() {
            self.reset_segment(cx, i, reset, out);
        } else if let Some(seq) = s.refusal.take() {
            // RFC 9293 §3.10.7.3: <SEQ=SEG.ACK><CTL=RST>
            s.begin(out, 0, Flags::RST, 0, cx.now);
            out.seq = seq;
            self.record_control(cx, i, Flags::RST, false);
        }
    }

    fn handshake_segment(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        if !self.subflows[i].handshake.due {
            return false;
        }
        let window = self.advertise_on(i, 0);
        let s = &self.subflows[i];
        let answering = s.state == State::SynReceived;
        let mut segment = Segment {
            src_port: s.tuple.local.port(),
            dst_port: s.tuple.remote.port(),
            seq: s.isn,
            flags: if answering { Flags::SYN | Flags::ACK } else { Flags::SYN },
            window,
            ..Segment::default()
        };
        if answering {
            segment.ack = s.peer_isn.at(1);
        }
        let stamps = s.stamps.option(cx.now);
        s.terms.write(&mut segment.options, &self.settings, stamps);
        // After some attempts without an answer, the option itself may be what is dropped on the way.
        let give_up = s.handshake.active && !s.join && s.handshake.repeats > 2;
        if let Some(option) = self.handshake_option(s).filter(|_| !give_up) {
            segment.options.push_mptcp(option);
        }
        let again = s.handshake.sent.is_some();
        self.subflows[i].handshake.on_sent(cx.now);
        self.record_control(cx, i, segment.flags, again);
        *out = segment;
        true
    }

    /// A third ACK if it is due, or anything is that could be said before it is known to have come: a join that says something
    /// without it is reset (RFC 8684 §3.2).
    fn third_ack(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        let s = &mut self.subflows[i];
        if !(core::mem::take(&mut s.handshake.third_ack) || s.acks.is_due()) {
            return false;
        }
        let window = self.offer_on(i);
        let option = self.third_ack_option(&self.subflows[i]);
        let s = &mut self.subflows[i];
        s.acknowledges();
        s.begin(out, s.sender.nxt(), Flags::ACK, window, cx.now);
        out.options.push_mptcp(option);
        self.record_control(cx, i, out.flags, false);
        true
    }

    /// There may be something in [`Self::data_segment`]; a receiver has nothing there.
    fn may_carry_on(&self, i: usize) -> bool {
        let s = &self.subflows[i];
        let queued = self.view.path(s.id).is_some_and(|p| p.queued > 0);
        queued || s.probe || s.fin.wanted || s.sender.may_repeat() || s.sender.wants_new()
    }

    /// A retransmission, new data, a probe or a FIN, if the windows and pacing allow one.
    fn data_segment(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        let s = &self.subflows[i];
        let paced = s.pacer.next() > cx.now;
        let window = self.view.path(s.id).map_or(0, |p| p.cwnd);
        let room = s.sender.in_flight() < window && !paced;
        if room && let Some(lost) = s.sender.next_lost().filter(|lost| s.may_repeat(lost)) {
            let lost = lost.clone();
            self.retransmit(cx, i, &lost, out);
            return true;
        }
        let fresh = (room || s.probe) && s.handshake.confirmed && (s.state.may_send() || !s.fin.wanted);
        if fresh
            && s.fin.offset.is_none()
            && let Some(queued) = self.view.take_admissible(s.id)
        {
            self.send_new(cx, i, queued.range, queued.kind, out);
            return true;
        }
        if room && self.subflows[i].sender.wants_new() {
            self.subflows[i].sender.no_new();
            return self.data_segment(cx, i, out);
        }
        let s = &self.subflows[i];
        if room && let Some(again) = s.sender.next_speculative().filter(|again| s.may_repeat(again)) {
            let again = again.clone();
            self.retransmit(cx, i, &again, out);
            return true;
        }
        let s = &mut self.subflows[i];
        if core::mem::take(&mut s.probe)
            && let Some(last) = s.sender.last().filter(|last| s.may_repeat(last)).cloned()
        {
            // RFC 8985 §7.3: no new data to probe with
            self.retransmit(cx, i, &last, out);
            return true;
        }
        let s = &self.subflows[i];
        let idle = self.view.path(s.id).is_none_or(|p| p.queued == 0);
        let ending = s.fin.wanted && s.fin.offset.is_none() && idle;
        if ending {
            self.send_fin(cx, i, out);
        }
        ending
    }

    fn send_new(&mut self, cx: &mut Cx<'_>, i: usize, range: Range, kind: SendKind, out: &mut Segment) {
        let payload = self.buffer.slice(range);
        if self.heeds_as_linux() {
            self.linux_allows(i, range.start);
        }
        let s = &mut self.subflows[i];
        s.probe = false;
        let start = s.sender.nxt();
        // MP_CAPABLE with the first data has no place for it; it follows by itself then.
        let data_fin = self.mode != Mode::Plain
            && self.finished
            && range.end == self.buffer.end()
            && !(start == 1 && self.shows_keys(i));
        let sent = Sent::new(Range::new(start, start + range.len()), payload, range, data_fin);
        self.build(cx, i, &sent, out);
        let s = &mut self.subflows[i];
        s.sender.on_sent(cx.now, sent);
        s.last_sent = Some(cx.now);
        s.idle_done = false;
        let id = s.id;
        if data_fin {
            self.data_fin_sent(cx, i);
        }
        self.view.on_sent(id, range);
        self.sent_end = self.sent_end.max(range.end);
        if self.mode == Mode::Plain && range.end == self.buffer.end() {
            self.settle_stream();
        }
        self.after_sending(cx, i, range.len());
        if self.settings.tcp.limited_decay != LimitedDecay::None {
            self.give_back_unused(cx, i);
        }
        self.record(cx, Some(id), Event::DataSent { seq: start, data: range, kind });
        if let Some(since) = self.view.take_bound(range.start).filter(|since| *since < cx.now) {
            self.record(cx, Some(id), Event::BoundAhead { since });
        }
    }

    fn retransmit(&mut self, cx: &mut Cx<'_>, i: usize, sent: &Sent, out: &mut Segment) {
        self.build(cx, i, sent, out);
        let s = &mut self.subflows[i];
        s.sender.on_retransmitted(cx.now, sent.seq.start);
        s.last_sent = Some(cx.now);
        let id = s.id;
        self.after_sending(cx, i, sent.seq.len());
        if sent.payload.is_empty() {
            self.record_control(cx, i, out.flags, true);
        } else {
            let kind = SendKind::Retransmission;
            self.record(cx, Some(id), Event::DataSent { seq: sent.seq.start, data: sent.data, kind });
        }
    }

    fn send_fin(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) {
        let s = &mut self.subflows[i];
        s.go(Move::SendFin);
        let at = s.sender.nxt();
        s.fin.offset = Some(at);
        let end = self.view.written();
        let sent = Sent::fin(at, Range::new(end, end));
        self.build(cx, i, &sent, out);
        self.subflows[i].sender.on_sent(cx.now, sent);
        self.after_sending(cx, i, 0);
        self.record_control(cx, i, out.flags, false);
    }

    fn after_sending(&mut self, cx: &mut Cx<'_>, i: usize, bytes: u64) {
        let s = &mut self.subflows[i];
        let Some(p) = self.view.path_mut(s.id) else { return };
        p.in_flight = s.sender.in_flight();
        p.in_flight_bytes = s.sender.in_flight_bytes();
        p.window = s.window.left(s.sender.nxt());
        p.used_bytes += bytes;
        s.usage.on_sent(s.sender.una(), s.sender.nxt(), p.in_flight, p.cwnd);
        if let Some(rate) = p.pacing {
            s.pacer.on_sent(cx.now, rate, bytes + PACED_HEADERS);
        }
    }

    /// RFC 2861 §3.2: a window that was not full for a retransmission timeout loses part of what was not used; not while data
    /// waits for room in the send buffer (Linux).
    fn give_back_unused(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let Some((in_flight, cwnd)) = self.view.path(s.id).map(|p| (p.in_flight, p.cwnd)) else { return };
        let rto = s.sender.rtt().rto();
        let Some(used) = s.underuse.on_sent(cx.now, in_flight, cwnd, rto) else { return };
        if s.sender.phase() != RecoveryPhase::Open || self.wants_to_write {
            return;
        }
        self.congestion.on_underuse(s.id, used);
        self.refresh_window(i);
        self.record_window(cx, i, None);
    }

    /// Makes `out` a segment that carries `sent`, as it stands in the subflow's sequence.
    fn build(&mut self, cx: &mut Cx<'_>, i: usize, sent: &Sent, out: &mut Segment) {
        let window = self.offer_on(i);
        let s = &mut self.subflows[i];
        s.acknowledges();
        let mut flags = Flags::ACK;
        if sent.fin {
            flags = flags | Flags::FIN;
        } else if self.view.path(s.id).is_none_or(|p| p.queued == 0) {
            flags = flags | Flags::PSH;
        }
        s.begin_with(out, sent.seq.start, flags, window, cx.now, sent.payload.clone());
        self.add_mapping(i, sent, &mut out.options);
    }

    /// Adds the mapping of a segment: DSS, or MP_CAPABLE on the first data of a client that is not confirmed.
    fn add_mapping(&self, i: usize, sent: &Sent, options: &mut Options) {
        if self.mode == Mode::Plain {
            let infinite = self.infinite.filter(|infinite| sent.seq.start <= infinite.upto && !sent.payload.is_empty());
            if let Some(infinite) = infinite {
                options.set_dss(self.infinite_option(infinite, sent));
            }
            return;
        }
        if sent.payload.is_empty() {
            options.set_dss(self.ack_option());
            return;
        }
        let len = sent.payload.len() as u16 + u16::from(sent.data_fin);
        let number = self.keys.local_number(sent.data.start);
        let subflow_seq = sent.seq.start as u32;
        let checksum = self.checksum.then(|| anabranch_wire::dss_checksum(number.0, subflow_seq, len, &sent.payload));
        if sent.seq.start == 1 && self.shows_keys(i) && !sent.data_fin {
            options.push_mptcp(MptcpOption::Capable(self.both_keys(Some((len, checksum)))));
            return;
        }
        let mapping = Mapping { data_seq: number.0, wide: self.wide_numbers(), subflow_seq, len, checksum };
        options.set_dss(Dss { mapping: Some(mapping), data_fin: sent.data_fin, ..self.ack_option() });
    }

    /// RFC 8684 §3.7: an infinite mapping, which reaches back to the last data that is known to have come intact.
    fn infinite_option(&self, infinite: Infinite, sent: &Sent) -> Dss {
        let back = sent.data.start.saturating_sub(infinite.intact).min(sent.seq.start - 1);
        let checksum = infinite.checksum.then_some(0);
        let data_seq = self.keys.local_number(sent.data.start - back).0;
        let subflow_seq = (sent.seq.start - back) as u32;
        let mapping = Mapping { data_seq, wide: self.wide_numbers(), subflow_seq, len: 0, checksum };
        Dss { ack: None, mapping: Some(mapping), data_fin: false }
    }

    /// A client's first subflow whose peer has not shown that it got our keys (RFC 8684 §3.1).
    pub(super) fn shows_keys(&self, i: usize) -> bool {
        let s = &self.subflows[i];
        self.mode == Mode::Multipath { confirmed: false } && s.handshake.active && !s.join
    }

    fn ack_option(&self) -> Dss {
        let next = self.reassembly.next() + u64::from(self.peer_finished());
        let number = self.keys.remote_number(next).0;
        let wide = self.wide_numbers() || self.peer_wide;
        let ack = if wide { DataAck::Long(number) } else { DataAck::Short(number as u32) };
        Dss { ack: Some(ack), mapping: None, data_fin: false }
    }

    fn wide_numbers(&self) -> bool {
        self.settings.dss == DssWidth::Eight
    }

    /// A DATA_FIN by itself (RFC 8684 §3.3.3).
    fn bare_data_fin(&self) -> Mapping {
        let number = self.keys.local_number(self.buffer.end()).0;
        let checksum = self.checksum.then(|| anabranch_wire::dss_checksum(number, 0, 1, &Bytes::new()));
        Mapping { data_seq: number, wide: self.wide_numbers(), subflow_seq: 0, len: 1, checksum }
    }

    /// A segment without payload: an acknowledgment, a signal, a DATA_FIN by itself, a probe.
    fn control_segment(&mut self, cx: &mut Cx<'_>, i: usize, out: &mut Segment) -> bool {
        let s = &self.subflows[i];
        let bare_fin = self.data_fin.due & s.id.bit() != 0 && s.may_carry();
        if !(s.acks.is_due() || s.poke || bare_fin || !s.signals.is_empty()) {
            return false;
        }
        let window = self.offer_on(i);
        let shows_keys = self.shows_keys(i);
        let s = &mut self.subflows[i];
        // A probe lies just below the window, so that it must be answered (RFC 9293 §3.8.6.1, §3.8.4).
        let seq = if core::mem::take(&mut s.poke) { s.sender.una() - 1 } else { s.sender.nxt() };
        let duplicate = s.acknowledges();
        s.begin(out, seq, Flags::ACK, window, cx.now);
        // An ADD_ADDR leaves no room for a DSS beside it; acknowledgments follow soon enough.
        if let Some(signal) = s.signals.pop_front() {
            if signal.encoded_len() > out.options.room() {
                // An IPv6 address with a port leaves none for timestamps either (Linux omits them too).
                out.options.clear();
            }
            out.options.push_mptcp(signal);
        }
        match self.mode {
            Mode::Plain => {
                if let Failure::Said(Saying { data_seq, .. }) = self.failure {
                    out.options.push_mptcp(MptcpOption::Fail { data_seq });
                }
                if matches!(self.failure, Failure::Said(_) | Failure::Answered) {
                    out.options.set_dss(self.ack_option());
                }
            }
            _ if shows_keys && !bare_fin => {
                out.options.push_mptcp(MptcpOption::Capable(self.both_keys(None)));
            }
            _ => {
                let mut dss = self.ack_option();
                if bare_fin {
                    dss.mapping = Some(self.bare_data_fin());
                    dss.data_fin = true;
                }
                if out.options.set_dss(dss) && bare_fin {
                    self.data_fin_sent(cx, i);
                }
            }
        }
        self.add_sack(i, out, duplicate);
        self.record_control(cx, i, out.flags, false);
        true
    }

    fn add_sack(&self, i: usize, segment: &mut Segment, duplicate: Option<Range>) {
        let s = &self.subflows[i];
        if !s.terms.sack || (duplicate.is_none() && s.receiver.held_bytes() == 0) {
            return;
        }
        let mut blocks = [SackBlock::default(); 4];
        let mut count = 0;
        // RFC 2883 §4: the duplicate first
        for range in duplicate.into_iter().chain(s.receiver.sack_blocks()).take(4) {
            blocks[count] = SackBlock { start: s.peer_isn.at(range.start), end: s.peer_isn.at(range.end) };
            count += 1;
        }
        segment.options.set_sack(&blocks[..count]);
    }

    fn reset_segment(&mut self, cx: &mut Cx<'_>, i: usize, reset: Reset, out: &mut Segment) {
        let s = &mut self.subflows[i];
        s.begin(out, s.sender.nxt(), Flags::RST | Flags::ACK, 0, cx.now);
        s.go(Move::Abort);
        if self.settings.mptcp && self.mode != Mode::Plain {
            let reason = match reset {
                Reset::Because(reason) => reason,
                Reset::FastClose => {
                    let receiver_key = self.keys.remote;
                    out.options.push_mptcp(MptcpOption::FastClose { receiver_key });
                    super::open::UNSPECIFIED
                }
                Reset::Fail(data_seq) => {
                    out.options.push_mptcp(MptcpOption::Fail { data_seq });
                    super::open::MPTCP_ERROR
                }
            };
            out.options.push_mptcp(MptcpOption::TcpRst(reason));
        }
        self.record_control(cx, i, out.flags, false);
    }

    fn record_control(&self, cx: &mut Cx<'_>, i: usize, flags: Flags, again: bool) {
        self.record(cx, Some(self.subflows[i].id), Event::ControlSent { flags: flags.0, again });
    }
}
