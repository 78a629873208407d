//! Segments that arrive, step by step (RFC 9293 §3.10.7.3, §3.10.7.4), the options of MPTCP (RFC 8684 §3), and the fall back
//! to plain TCP (§3.7).
//!
//! After a fall back the subflow's sequence is the data sequence, in both directions. That is safe only if the two are
//! already in step: one subflow has carried all unacknowledged data in order, up to the last byte sent, and the received
//! data has no hole. Otherwise the subflow is reset, and another one may continue.

use super::Connection;
use crate::cx::Cx;
use crate::mode::{Mode, Offset};
use crate::reasons::{INTERFERENCE, MPTCP_ERROR, UNSPECIFIED};
use crate::schedule::Cause;
use crate::session::{Checked, Learned, MappedTo, Shown, offers_multipath, reason_in};
use crate::subflow::acceptance::{Facts, Opening, cut_off};
use crate::subflow::mapping::{Entry, Placed};
use crate::subflow::{Move, Reset, State, Subflow};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::PathId;
use anabranch_wire::{AddAddr, DataAck, Dss, Flags, Mapping, MpJoin, MptcpOption, Reason, Segment};
use bytes::Bytes;
use core::net::SocketAddr;
use core::ops::ControlFlow;

/// Signals that wait on a subflow, at most: a flood of ADD_ADDRs is echoed no faster than acknowledgments leave.
const MAX_SIGNALS: usize = 16;

impl Connection {
    /// Takes a segment that arrived on `path`.
    pub fn handle_segment(&mut self, cx: &mut Cx<'_>, path: PathId, segment: &Segment) {
        let Some(i) = self.index(path) else { return };
        self.sending.set_now(cx.now);
        let synchronized = match self.subflows[i].state {
            State::SynSent => {
                self.on_syn_sent(cx, i, segment);
                false
            }
            State::SynReceived => self.on_syn_received(cx, i, segment),
            state => state.is_synchronized(),
        };
        if synchronized {
            self.on_synchronized(cx, i, segment);
        }
        // Nearly always: nothing is about to end.
        let ending = self.lifetime.closed || self.sending.is_finished() || self.receiving.has_fin();
        if ending || self.subflows.get(i).is_none_or(|s| s.state != State::Established) {
            self.settle(cx);
        }
    }

    // ---- SYN-SENT (RFC 9293 §3.10.7.3) ----

    fn on_syn_sent(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let racing = self.paths.race.is_open();
        let opening = self.subflows[i].in_syn_sent(segment, racing);
        if !matches!(opening, Opening::Answered | Opening::Crossed) {
            return self.not_opened(cx, i, segment, opening);
        }
        let i = if racing { self.win(cx, i) } else { i };
        let s = &mut self.subflows[i];
        s.learn(segment, cx.now);
        if opening == Opening::Answered {
            return self.on_syn_ack(cx, i, segment);
        }
        // Simultaneous open: answer with SYN/ACK; MPTCP is not agreed that way.
        s.go(Move::ReceiveSyn);
        s.handshake.due = true;
        self.session.become_plain();
        self.sending.learn_window(segment.window);
    }

    /// A segment that opens nothing.
    fn not_opened(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, opening: Opening) {
        match opening {
            Opening::Broken(violation) => self.violation(cx, i, violation),
            Opening::Challenged(violation) => self.challenge(cx, i, violation),
            Opening::Refused => self.refused(cx, i, segment),
            Opening::Nothing | Opening::Answered | Opening::Crossed => {}
        }
    }

    fn on_syn_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        if s.join {
            match self.session.check_syn_ack(segment, s.handshake.nonces.ours) {
                Ok(answer) => {
                    s.backup.theirs = answer.backup;
                    s.handshake.nonces.theirs = answer.nonce;
                    s.handshake.address_ids.theirs = answer.address_id;
                }
                Err(violation) => {
                    // RFC 8684 §3.2, §3.7: a join that is not understood is reset
                    s.reset = Some(Reset::Because(MPTCP_ERROR));
                    violation.into_iter().for_each(|violation| self.violation(cx, i, violation));
                    return;
                }
            }
        } else {
            self.sending.learn_window(segment.window);
            if self.session.learn_from_syn_ack(segment) {
                self.paths.known.keep_off(s.tuple.remote);
            }
        }
        s.go(Move::ReceiveSynAck);
        s.on_syn_ack(cx.now, &self.frame.settings.tcp, self.session.is_plain());
        self.establish(cx, i, segment);
        self.on_text_of_syn(cx, i, segment);
    }

    /// Payload and FIN of a SYN/ACK (RFC 9293 §3.10.7.3). With Multipath TCP nothing tells where they belong: they come again.
    fn on_text_of_syn(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        if !self.session.is_plain() || segment.seq_len() == 1 {
            return;
        }
        let room = self.receiving.window_end(Mode::Plain, &self.subflows[i], 1) - 1;
        let cut = (segment.payload.len() as u64 > room).then(|| self.cut_off(cx, i, segment, room));
        self.on_text(cx, i, cut.as_ref().unwrap_or(segment), 1, ControlFlow::Continue(None));
    }

    /// A handshake was refused with RST.
    fn refused(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        let (id, only) = (s.id, !s.join);
        if !reason_in(segment).is_some_and(|reason| reason.transient) {
            // RFC 8684 §3.9.3
            self.paths.known.refused(id);
        }
        self.drop_subflow(cx, i, PathState::Dead);
        if only {
            self.first_failed(cx, CloseReason::Refused);
        }
    }

    // ---- SYN-RECEIVED (RFC 9293 §3.10.7.4) ----

    /// True if the segment is to be taken further, in a synchronized state.
    fn on_syn_received(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> bool {
        let s = &mut self.subflows[i];
        let repeated = s.repeats_syn(segment);
        if repeated == Some(false) {
            s.on_syn_again(cx.now, offers_multipath(segment));
            return false;
        }
        let crossed = repeated.is_some();
        if !crossed && self.acceptable(cx, i, segment).is_none() {
            return false;
        }
        let s = &mut self.subflows[i];
        let opening = s.in_syn_received(segment, crossed);
        if opening != Opening::Answered {
            self.not_opened(cx, i, segment, opening);
            return false;
        }
        match self.session.learn_from_ack(segment, s.peer_isn) {
            Learned::Mode => {}
            Learned::PlainTcp => self.give_up_multipath(cx),
            Learned::Nothing => return false,
        }
        self.synchronize(cx, i, segment);
        if crossed {
            self.subflows[i].acks.demand();
            self.on_text_of_syn(cx, i, segment);
        }
        !crossed
    }

    /// The peer has acknowledged our SYN/ACK, by `segment`.
    pub(super) fn synchronize(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        self.subflows[i].synchronize();
        self.establish(cx, i, segment);
    }

    // ---- synchronized states (RFC 9293 §3.10.7.4) ----

    /// The first to fifth step.
    #[inline(always)]
    fn on_synchronized(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let Some((seq, window_end)) = self.acceptable(cx, i, segment) else { return };
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return self.on_reset(cx, i, segment, seq);
        }
        if flags.has(Flags::SYN) {
            // RFC 5961 §4
            return self.challenge(cx, i, Violation::BlindSyn);
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        let s = &mut self.subflows[i];
        let Some(ack) = s.acked(segment, self.sending.view().max_window()) else {
            return self.challenge(cx, i, Violation::BlindAck);
        };
        s.heard(&cx.scope(&self.frame), segment, seq);
        s.data_ack = None;
        if seq + segment.payload.len() as u64 > window_end {
            self.take_cut_off(cx, i, segment, (seq, ack), window_end - seq);
        } else {
            self.take(cx, i, segment, (seq, ack), segment.seq_len() == 0);
        }
    }

    /// Takes the part of a segment within the window, `len` bytes.
    #[cold]
    #[inline(never)]
    fn take_cut_off(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, numbers: (u64, u64), len: u64) {
        let cut = self.cut_off(cx, i, segment, len);
        self.take(cx, i, &cut, numbers, false);
    }

    /// Takes the contents of a segment whose numbers, `seq` and `ack`, are acceptable. `bare`: it has no text, SYN or FIN.
    #[inline(always)]
    fn take(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, (seq, ack): (u64, u64), bare: bool) {
        let place = self.on_options(cx, i, segment, seq);
        let s = &mut self.subflows[i];
        if self.lifetime.closed || s.reset.is_some() {
            return;
        }
        self.sending.on_window(self.session.mode(), s, segment, seq, ack);
        let window_update = core::mem::replace(&mut s.peer_window, segment.window) != segment.window;
        // Every segment of a peer that only sends is an acknowledgment that says nothing.
        if !(segment.options.sack().is_empty() && s.sender.is_at_rest(ack)) {
            // RFC 8684 §4: an acknowledgment that carries a signal is no duplicate.
            let bare = bare && !window_update && segment.options.mptcp().is_empty();
            self.on_ack(cx, i, segment, ack, bare);
        }
        self.on_text(cx, i, segment, seq, place);
    }

    /// Sequence number and timestamps (first step): the segment's offset and the window's end, if it is acceptable; otherwise
    /// it is answered as it must be.
    #[inline(always)]
    fn acceptable(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> Option<(u64, u64)> {
        let mode = self.session.mode();
        let s = &self.subflows[i];
        let end = self.receiving.window_end(mode, s, s.receiver.next());
        match s.acceptable(segment, end, cx.now) {
            Ok(seq) => Some((seq, end)),
            Err(refused) => {
                let max_window = self.sending.view().max_window();
                let facts = Facts { mode, widest: self.receiving.widest(), max_window };
                self.subflows[i].on_unacceptable(&mut cx.scope(&self.frame), segment, refused, facts);
                None
            }
        }
    }

    /// RFC 5961 §3.2 (second step): only a reset exactly at the next expected number resets, or one that proves by our key
    /// whose it is.
    fn on_reset(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) {
        if seq != self.subflows[i].receiver.next() && !self.session.is_fast_close(segment) {
            return self.challenge(cx, i, Violation::BlindReset);
        }
        let before = self.lifetime.closed;
        for option in segment.options.mptcp() {
            if !self.lifetime.closed && matches!(option, MptcpOption::FastClose { .. }) {
                self.on_option(cx, i, segment, option);
            }
        }
        if self.lifetime.closed && !before {
            return;
        }
        // RFC 8684 §3.6: a path that was reset for a reason that is not transient is not tried again.
        if !self.session.is_plain() && reason_in(segment).is_some_and(|reason| !reason.transient) {
            self.paths.known.withdraw(self.subflows[i].id);
        }
        let last = !self.session.is_multipath();
        self.drop_subflow(cx, i, PathState::Dead);
        if last {
            self.end(cx, CloseReason::ResetByPeer);
        }
    }

    /// The part of a segment within the window, `len` bytes.
    #[cold]
    fn cut_off(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, len: u64) -> Segment {
        self.violation(cx, i, Violation::BeyondWindow);
        // The peer may be asking whether the window is still closed (§3.8.6.1).
        self.subflows[i].acks.demand();
        cut_off(segment, len)
    }

    /// An acknowledgment (fifth step). `bare`: the segment says nothing else, so that it may be a duplicate acknowledgment
    /// (RFC 5681 §2).
    #[inline(never)]
    fn on_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, ack: u64, bare: bool) {
        let s = &mut self.subflows[i];
        self.sending.note_starved(s);
        let Some(outcome) = s.on_ack(cx.now, &mut self.peer_clock, segment, ack, bare) else { return };
        if s.fin.offset.is_some_and(|fin| s.sender.una() > fin) {
            // With MPTCP there is nothing to wait for but the peer's FIN once its stream has ended.
            let over = !self.session.is_plain() && self.receiving.is_finished();
            s.fin_acked(cx.now + self.frame.settings.tcp.time_wait, over);
        }
        self.sending.on_ack(&mut cx.scope(&self.frame), self.session.mode(), &mut self.subflows, i, &outcome);
    }

    /// Payload and FIN (seventh and eighth step); `place`: see [`Self::on_options`].
    #[inline(always)]
    fn on_text(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, place: ControlFlow<(), Option<u64>>) {
        if !self.subflows[i].state.may_receive() {
            // Nothing follows the peer's FIN, and no other FIN.
            return;
        }
        if let ControlFlow::Continue(place) = place
            && !segment.payload.is_empty()
        {
            self.on_payload(cx, i, segment, seq, place);
        }
        let s = &mut self.subflows[i];
        if segment.flags.has(Flags::FIN) {
            let known = s.receiver.note_fin(seq + segment.payload.len() as u64);
            if known { s.acks.on_arrival(cx.now, true) } else { s.acks.demand() }
        }
        if s.receiver.take_fin() {
            self.on_fin(cx, i);
        }
    }

    /// Everything up to the peer's FIN has come.
    fn on_fin(&mut self, cx: &mut Cx<'_>, i: usize) {
        self.subflows[i].on_fin(cx.now + self.frame.settings.tcp.time_wait);
        if self.session.is_plain() {
            return self.end_with_fin(cx, i);
        }
        self.sending.retire_half_closed(&self.frame.settings, self.session.mode(), &mut self.subflows);
        if self.both_ended() && self.lifetime.closing.is_none() {
            self.lifetime.closing = Some(cx.now);
            let waits = |s: &&mut Subflow| !matches!(s.state, State::TimeWait | State::FinWait2);
            self.subflows.iter_mut().filter(waits).for_each(|s| s.linger = cx.now);
        }
    }

    /// In plain TCP a FIN ends the stream.
    fn end_with_fin(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &self.subflows[i];
        if !s.receiver.is_finished() {
            return;
        }
        if self.receiving.end_with_fin(s) {
            self.pending.readable = true;
            return;
        }
        self.violation(cx, i, Violation::DataFinMoved);
        // A segment is being taken: its subflow is forgotten when that is over.
        self.break_off(cx, CloseReason::Aborted);
    }

    fn violation(&self, cx: &mut Cx<'_>, i: usize, violation: Violation) {
        cx.scope(&self.frame).violation(self.subflows[i].id, violation);
    }

    /// A segment that an off-path attacker may have sent is answered with an acknowledgment, at a limited rate (RFC 5961).
    fn challenge(&mut self, cx: &mut Cx<'_>, i: usize, violation: Violation) {
        self.violation(cx, i, violation);
        self.subflows[i].answer(cx.now, self.session.mode());
    }

    // ---- options (RFC 8684 §3) ----

    /// The options of an acceptable segment, which begins at `seq`. `Break`: its payload is not to be taken. `Continue`: the
    /// payload's place in the data sequence, if the segment's own mapping alone gives it; that mapping is not noted.
    #[inline(always)]
    fn on_options(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) -> ControlFlow<(), Option<u64>> {
        if self.session.is_plain() {
            return self.on_options_in_plain_tcp(cx, i, segment, seq);
        }
        self.confirm(cx, i, segment);
        let mut place = None;
        if let Some(dss) = segment.options.dss() {
            place = self.on_dss(cx, i, segment, seq, dss);
        }
        for option in segment.options.mptcp() {
            if self.lifetime.closed || self.subflows[i].reset.is_some() {
                break;
            }
            // It may stand in place of a DSS: keys (RFC 8684 §3.1), or an ADD_ADDR, which leaves no room for one.
            self.sending.note_answer();
            self.on_option(cx, i, segment, option);
        }
        let fell_back = self.session.is_plain() && !self.lifetime.closed;
        if fell_back && self.mapped_to(i, segment, seq) != MappedTo::Sequence {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(place)
    }

    fn on_options_in_plain_tcp(
        &mut self,
        cx: &mut Cx<'_>,
        i: usize,
        segment: &Segment,
        seq: u64,
    ) -> ControlFlow<(), Option<u64>> {
        match self.mapped_to(i, segment, seq) {
            MappedTo::Sequence => {
                if self.session.on_reaction(segment) && self.subflows[i].may_answer(cx.now) {
                    self.answer_failure(i);
                }
                return ControlFlow::Continue(None);
            }
            MappedTo::Repeat => self.pass_over(cx, i, segment, seq),
            MappedTo::Elsewhere => {
                self.violation(cx, i, Violation::MappingConflict);
                self.break_off(cx, CloseReason::Aborted);
            }
        }
        ControlFlow::Break(())
    }

    fn mapped_to(&self, i: usize, segment: &Segment, seq: u64) -> MappedTo {
        self.session.mapped_to(&self.subflows[i], segment, seq, self.receiving.next(), self.receiving.offset())
    }

    /// The peer shows that it got our keys, or that its end is plain TCP (RFC 8684 §3.1, §3.7).
    #[inline(always)]
    fn confirm(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        if s.join && !s.handshake.confirmed {
            // RFC 8684 §3.2: the fourth ACK
            let s = &mut self.subflows[i];
            s.handshake.confirmed = true;
            s.handshake.complete();
            self.path_up(cx, i);
        }
        if self.session.has_seen_dss() {
            return;
        }
        let alone = self.subflows.len() == 1;
        let s = &mut self.subflows[i];
        match self.session.shown(s, alone, segment) {
            Shown::Nothing => {}
            Shown::OurKeys => {
                // MP_CAPABLE does not tell that a path is a backup.
                if s.backup.ours && !s.join {
                    s.signal_backup();
                }
                self.paths.open();
            }
            Shown::PlainTcp => self.fall_back(cx, i),
        }
    }

    fn on_option(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, option: &MptcpOption) {
        match *option {
            MptcpOption::Capable(_) => {
                // RFC 8684 §3.1
                let Some((len, checksum)) = self.session.first_data(option).filter(|(len, _)| *len > 0) else { return };
                let data_seq = self.session.remote_number(0);
                self.note_mapping(cx, i, &Mapping { data_seq, wide: true, subflow_seq: 1, len, checksum }, false);
            }
            // RFC 8684 §3.2: the fourth ACK was lost
            MptcpOption::Join(MpJoin::Ack { .. }) => self.subflows[i].acks.demand(),
            MptcpOption::Join(_) => {}
            MptcpOption::AddAddr(announced) => self.on_add_addr(cx, i, announced),
            MptcpOption::RemoveAddr(ids) => {
                ids.into_iter().flatten().for_each(|id| self.paths.taken_back(&mut self.subflows, id))
            }
            MptcpOption::Prio { backup } => {
                self.subflows[i].backup.theirs = backup;
                self.sending.refresh_usability(&self.frame.settings, &mut self.subflows);
                self.sending.ask_for_round(Cause::PathChange(self.subflows[i].id));
            }
            MptcpOption::Fail { data_seq } => self.on_fail(cx, i, data_seq),
            MptcpOption::FastClose { receiver_key } => self.on_fast_close(cx, i, segment, receiver_key),
            MptcpOption::TcpRst(_) => {}
        }
    }

    /// RFC 8684 §3.5: the other subflows are reset.
    fn on_fast_close(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, receiver_key: u64) {
        if receiver_key != self.session.local_key() {
            return self.violation(cx, i, Violation::WrongKey);
        }
        let ours = segment.flags.has(Flags::RST).then_some(i);
        for (n, s) in self.subflows.iter_mut().enumerate() {
            if Some(n) != ours {
                s.abort(Reset::Because(UNSPECIFIED));
            }
        }
        if ours.is_some() {
            self.drop_subflow(cx, i, PathState::Dead);
        }
        self.end(cx, CloseReason::ResetByPeer);
    }

    #[inline(always)]
    fn on_dss(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, dss: &Dss) -> Option<u64> {
        if let Some(ack) = dss.ack {
            self.on_data_ack(cx, i, segment, ack);
        }
        // RFC 8684 §3.7: a mapping of length 0 is infinite and begins with its segment's data. Without data it maps nothing.
        let mapping = dss.mapping.as_ref().filter(|m| m.len > 0 || !segment.payload.is_empty())?;
        self.session.note_width(mapping);
        if !dss.data_fin && self.session.maps_itself(&self.subflows[i], segment, seq, mapping) {
            return self.session.data_offset(mapping, self.receiving.next());
        }
        self.note_mapping(cx, i, mapping, dss.data_fin);
        None
    }

    /// RFC 8684 §3.3.2
    #[inline(always)]
    fn on_data_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, ack: DataAck) {
        self.sending.note_answer();
        let Some(upto) = self.session.acked_offset(ack, self.sending.view().data_acked()) else { return };
        if upto > self.sending.sent_upto() {
            return self.violation(cx, i, Violation::DataAckBeyond);
        }
        let windows = self.receiving.is_separate(self.session.mode()).then_some(self.subflows.len());
        self.sending.on_data_ack(&mut cx.scope(&self.frame), &mut self.subflows[i], segment, upto, windows);
    }

    /// RFC 8684 §3.4.1: verify, echo, and join if we are to.
    fn on_add_addr(&mut self, cx: &mut Cx<'_>, i: usize, announced: AddAddr) {
        let AddAddr { address_id, address, port, hmac } = announced;
        if hmac.is_none() {
            return self.paths.own.echoed(address_id, address, port);
        }
        if !self.session.proves(announced) {
            return self.violation(cx, i, Violation::Hmac);
        }
        let s = &mut self.subflows[i];
        if s.signals.len() < MAX_SIGNALS {
            s.signals.push_back(MptcpOption::AddAddr(AddAddr { hmac: None, ..announced }));
            s.acks.demand();
        }
        let remote = SocketAddr::new(address, port.unwrap_or(s.tuple.remote.port()));
        self.paths.known.announced(s.tuple.local.ip(), remote, address_id);
    }

    // ---- payload: from a subflow's bytes to the connection's stream (RFC 8684 §3.3) ----

    /// Notes the mapping of a segment, if it has one.
    fn note_mapping(&mut self, cx: &mut Cx<'_>, i: usize, mapping: &Mapping, data_fin: bool) {
        if mapping.len == 0 {
            return self.on_infinite_mapping(cx, i, mapping);
        }
        let Some(start) = self.session.data_offset(mapping, self.receiving.next()) else { return };
        let len = u64::from(mapping.len) - u64::from(data_fin);
        match self.session.check_mapping(mapping, start, data_fin) {
            Checked::NotAgreed => return self.refuse(cx, i, Violation::Checksum, MPTCP_ERROR),
            Checked::Wrong => return self.violation(cx, i, Violation::Checksum),
            Checked::DataFin => self.note_data_fin(cx, i, start + len),
            Checked::Payload => {}
        }
        if len == 0 {
            return;
        }
        match self.subflows[i].note_mapping(mapping, start, len) {
            Ok(true) => self.place_unmapped(cx, i),
            Ok(false) => {}
            Err(violation) => self.refuse(cx, i, violation, MPTCP_ERROR),
        }
    }

    /// The peer broke a rule on a subflow, which is reset for that `reason`.
    fn refuse(&mut self, cx: &mut Cx<'_>, i: usize, violation: Violation, reason: Reason) {
        self.violation(cx, i, violation);
        self.subflows[i].reset = Some(Reset::Because(reason));
    }

    fn note_data_fin(&mut self, cx: &mut Cx<'_>, i: usize, offset: u64) {
        let mode = self.session.mode();
        let s = &mut self.subflows[i];
        self.pending.readable |= self.receiving.note_data_fin(&mut cx.scope(&self.frame), mode, s, offset);
    }

    /// Payload in the subflow's sequence; `place`: see [`Self::on_options`].
    #[inline(always)]
    fn on_payload(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, place: Option<u64>) {
        let s = &mut self.subflows[i];
        if self.receiving.is_sized() && segment.payload.len() as u32 >= self.frame.settings.mss {
            s.note_trip(segment, cx.now);
        }
        let (mut ready, simple) = s.take_payload(cx.now, segment, seq, self.frame.settings.mss);
        if let Some(start) = place.filter(|_| simple && !self.session.is_plain())
            && let Some((_, bytes)) = ready
        {
            return self.deliver(cx, i, start, bytes);
        }
        let bare = segment.options.dss().is_none();
        while let Some((seq, bytes)) = ready {
            if !self.place(cx, i, seq, bytes, bare) {
                return;
            }
            ready = self.subflows[i].receiver.pop();
        }
        let s = &mut self.subflows[i];
        s.placement.forget_below(s.receiver.next());
        if let Some(bytes) = s.receiver.held_change() {
            cx.scope(&self.frame).record(Some(s.id), Event::SubflowOfo(bytes));
        }
    }

    /// Places data that waited for its mapping.
    fn place_unmapped(&mut self, cx: &mut Cx<'_>, i: usize) {
        if self.subflows[i].placement.first_unmapped().is_some() {
            let held = self.subflows[i].placement.take_unmapped();
            held.into_iter().all(|(seq, bytes)| self.place(cx, i, seq, bytes, false));
        }
    }

    /// Bytes next in a subflow's sequence go to the connection by their mapping. `bare`: their segment had no DSS. False
    /// if the subflow must not continue.
    fn place(&mut self, cx: &mut Cx<'_>, i: usize, seq: u64, bytes: Bytes, bare: bool) -> bool {
        let mut rest = Some((seq, bytes)).filter(|(_, bytes)| !bytes.is_empty());
        while let Some((seq, bytes)) = rest {
            if self.session.is_plain() {
                self.deliver_in_sequence(cx, i, seq, bytes);
                return true;
            }
            let (placed, next) = self.subflows[i].placement.place(seq, bytes);
            let goes_on = match placed {
                Placed::Data { start, bytes } => {
                    self.deliver(cx, i, start, bytes);
                    true
                }
                Placed::Collected => true,
                Placed::Whole { entry, bytes } => self.verify(cx, i, entry, bytes),
                Placed::Unmapped { seq, bytes } => self.on_unmapped(cx, i, seq, bytes, bare),
            };
            if !goes_on {
                return false;
            }
            rest = next;
        }
        true
    }

    /// A mapping is complete: its bytes are delivered if its checksum is right (RFC 8684 §3.3). False if the subflow must
    /// not continue.
    fn verify(&mut self, cx: &mut Cx<'_>, i: usize, entry: Entry, bytes: Bytes) -> bool {
        let (expected, len) = entry.checksum.unwrap_or((0, 0));
        if self.session.is_right(expected, entry.data, entry.sub.start as u32, len, &bytes) {
            self.deliver(cx, i, entry.data, bytes);
            if u64::from(len) > entry.sub.len() {
                self.note_data_fin(cx, i, entry.data + entry.sub.len());
            }
            return true;
        }
        self.violation(cx, i, Violation::Checksum);
        let number = self.session.remote_number(entry.data);
        let in_step = entry.data == self.receiving.next();
        if !in_step || !self.may_fall_back(i) {
            // RFC 8684 §3.7: other subflows continue, or a new one will; this one is reset with MP_FAIL
            self.subflows[i].reset = Some(Reset::Fail(number));
            return false;
        }
        // MP_FAIL informs the peer, and the bytes that came are kept.
        let s = &mut self.subflows[i];
        s.placement.keep(entry, bytes);
        s.acks.demand();
        self.fall_back(cx, i);
        if self.lifetime.closed {
            return false;
        }
        // As long as Linux waits for an answer (TCP_RTO_MAX).
        let until = cx.now + self.frame.settings.tcp.rto_max;
        self.session.say_failure(number, cx.now, self.subflows[i].sender.rtt().rto(), until);
        true
    }

    /// Data without a mapping. A subflow whose very first data has no DSS does not speak MPTCP: fall back while that is
    /// allowed, else reset it (RFC 8684 §3.7). Later the mapping may follow, within a receive window (§3.3.1).
    fn on_unmapped(&mut self, cx: &mut Cx<'_>, i: usize, seq: u64, bytes: Bytes, bare: bool) -> bool {
        let silent = bare && seq == 1;
        let window = self.frame.settings.recv_buffer;
        if !silent && self.subflows[i].placement.hold(cx.now, seq, bytes.clone(), window, bare) {
            return true;
        }
        let at_start = silent && self.receiving.next() == 0;
        if !at_start || !self.may_fall_back(i) {
            self.never_mapped(cx, i);
            return false;
        }
        self.violation(cx, i, Violation::Unmapped);
        self.fall_back_at(cx, i, Offset { sub: seq, data: 0 });
        self.deliver_in_sequence(cx, i, seq, bytes);
        true
    }

    /// The mapping of data on a subflow does not come: the subflow is closed (RFC 8684 §3.3.1), even the only one (§3.7).
    /// Whether the peer's next data is new cannot be known, so that plain TCP might corrupt the stream.
    pub(super) fn never_mapped(&mut self, cx: &mut Cx<'_>, i: usize) {
        self.refuse(cx, i, Violation::Unmapped, INTERFERENCE);
        self.subflows[i].placement.take_unmapped();
    }

    /// Bytes with their place in the data sequence.
    #[inline(always)]
    fn deliver(&mut self, cx: &mut Cx<'_>, i: usize, start: u64, bytes: Bytes) {
        let (mode, scope) = (self.session.mode(), &mut cx.scope(&self.frame));
        self.pending.readable |= self.receiving.on_arrival(scope, mode, &mut self.subflows, i, start, bytes);
    }

    /// Plain TCP: bytes with their place in the subflow's sequence.
    fn deliver_in_sequence(&mut self, cx: &mut Cx<'_>, i: usize, seq: u64, bytes: Bytes) {
        if let Some(start) = self.receiving.start_of(seq) {
            self.deliver(cx, i, start, bytes);
        }
    }

    // ---- the fall back to plain TCP (RFC 8684 §3.7) ----

    /// True if the one subflow that there is and ever was in use carries both streams in order.
    fn may_fall_back(&self, i: usize) -> bool {
        let s = &self.subflows[i];
        // A join whose SYN/ACK we have answered may be in use on the other side.
        let alone = !self.session.joined && !self.subflows.iter().any(|s| s.join && s.state.is_synchronized());
        alone && self.receiving.place_on(s).is_some() && self.sending.is_in_order_on(s)
    }

    /// From here on the connection is plain TCP, and an event reports that to the application.
    fn give_up_multipath(&mut self, cx: &mut Cx<'_>) {
        self.session.become_plain();
        self.sending.become_plain();
        self.pending.fell_back = true;
        cx.scope(&self.frame).record(None, Event::Fallback);
    }

    /// From here on the connection is plain TCP over this subflow, which [may](Self::may_fall_back) be.
    fn fall_back(&mut self, cx: &mut Cx<'_>, i: usize) {
        let place = self.receiving.place_on(&self.subflows[i]).unwrap_or(self.receiving.offset());
        self.fall_back_at(cx, i, place);
    }

    /// As [`Self::fall_back`]; the peer's stream continues at `place`.
    fn fall_back_at(&mut self, cx: &mut Cx<'_>, i: usize, place: Offset) {
        if self.session.is_plain() {
            return;
        }
        self.receiving.go_on_at(place);
        self.session.fall_back(self.subflows[i].sender.nxt(), self.sending.intact());
        self.give_up_multipath(cx);
        self.paths.end();
        let id = self.subflows[i].id;
        // Joins that did not come into use do not any more.
        for s in self.subflows.iter_mut().filter(|s| s.id != id) {
            s.close_by_reset(Reset::Because(UNSPECIFIED));
        }
        self.subflows[i].become_plain();
        self.sending.go_on_in(&mut cx.scope(&self.frame), &mut self.subflows, i);
        if let Some((entry, bytes)) = self.subflows[i].placement.take_collected() {
            self.deliver(cx, i, entry.data, bytes);
        }
        for (seq, bytes) in self.subflows[i].placement.take_unmapped() {
            self.deliver_in_sequence(cx, i, seq, bytes);
        }
        self.end_with_fin(cx, i);
    }

    /// The peer could not verify our data. It is answered in kind, and with an infinite mapping on the next new data; or by
    /// a reset, where that is not safe.
    fn on_fail(&mut self, cx: &mut Cx<'_>, i: usize, data_seq: u64) {
        if !self.may_fall_back(i) {
            let next = self.session.remote_number(self.receiving.next());
            self.subflows[i].reset = Some(Reset::Fail(next));
            return;
        }
        self.fall_back(cx, i);
        if !self.lifetime.closed {
            self.session.hear_failure(data_seq);
            self.answer_failure(i);
        }
    }

    fn answer_failure(&mut self, i: usize) {
        let data_seq = self.session.remote_number(self.receiving.next());
        let s = &mut self.subflows[i];
        if s.signals.is_empty() {
            s.signals.push_back(MptcpOption::Fail { data_seq });
        }
        s.acks.demand();
    }

    /// From here on the subflow's sequence is the data sequence. It may reach back to what was acknowledged last; it must
    /// not contradict what came.
    fn on_infinite_mapping(&mut self, cx: &mut Cx<'_>, i: usize, mapping: &Mapping) {
        let s = &self.subflows[i];
        let next = self.receiving.next();
        let place = self.receiving.place_on(s).filter(|_| self.may_fall_back(i));
        // Linux gives it no place of its own: it begins here.
        let agrees = |place: Offset| mapping.subflow_seq == 0 || self.session.is_in_line(s, mapping, next, place);
        if place.is_some_and(agrees) {
            self.fall_back(cx, i);
        } else {
            self.refuse(cx, i, Violation::MappingConflict, MPTCP_ERROR);
        }
    }

    /// Takes no data of a segment that repeats, with new sequence numbers, what came already; but what waited behind it.
    fn pass_over(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) {
        self.receiving.pass_over(&mut self.subflows[i], seq, &segment.payload);
        while let Some((seq, bytes)) = self.subflows[i].receiver.pop() {
            self.deliver_in_sequence(cx, i, seq, bytes);
        }
    }
}
