//! Segments that arrive, step by step (RFC 9293 §3.10.7.3, §3.10.7.4), the options of MPTCP (RFC 8684 §3), and the fall back
//! to plain TCP (§3.7).
//!
//! After a fall back the subflow's sequence is the data sequence, in both directions. That is safe only if the two are
//! already in step: one subflow has carried all unacknowledged data in order, up to the last byte sent, and the received
//! data has no hole. Otherwise the subflow is reset, and another one may continue.

use super::Connection;
use crate::cx::Cx;
use crate::mode::{Mode, Offset};
use crate::reasons::{MPTCP_ERROR, UNSPECIFIED};
use crate::receiving::{Intake, Place};
use crate::session::{Effect, Learned, MappedTo, Shown, SynAck, offers_multipath, reason_in};
use crate::subflow::acceptance::{Accepted, Facts, Opening};
use crate::subflow::{Move, Reset, State};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::PathId;
use anabranch_wire::{Dss, Flags, Mapping, MptcpOption, Segment};

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
        let opening = self.subflows[i].in_syn_sent(&mut cx.scope(&self.frame), segment, racing);
        if !matches!(opening, Opening::Answered | Opening::Crossed) {
            return self.not_opened(cx, i, segment, opening);
        }
        let i = if racing { self.win(cx, i) } else { i };
        let s = &mut self.subflows[i];
        s.learn(segment, cx.now);
        if !s.join {
            self.sending.learn_window(segment.window);
        }
        if opening == Opening::Answered {
            return self.on_syn_ack(cx, i, segment);
        }
        // Simultaneous open: answer with SYN/ACK; MPTCP is not agreed that way.
        s.go(Move::ReceiveSyn);
        s.handshake.due = true;
        self.session.become_plain();
    }

    /// A segment that opens nothing; the handshake may be refused with RST.
    fn not_opened(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, opening: Opening) {
        if opening != Opening::Refused {
            return;
        }
        if !reason_in(segment).is_some_and(|reason| reason.transient) {
            // RFC 8684 §3.9.3
            self.paths.known.refused(self.subflows[i].id);
        }
        self.handshake_failed(cx, i, CloseReason::Refused);
    }

    fn on_syn_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        match self.session.on_syn_ack(&mut cx.scope(&self.frame), s, segment) {
            SynAck::Refused => return,
            SynAck::Agreed => {}
            SynAck::NoJoinsHere => self.paths.known.keep_off(s.tuple.remote),
        }
        self.establish(cx, i, segment);
        self.on_text_of_syn(cx, i, segment);
    }

    /// Payload and FIN of a SYN/ACK (RFC 9293 §3.10.7.3). With Multipath TCP nothing tells where they belong: they come again.
    fn on_text_of_syn(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        if !self.session.is_plain() || segment.seq_len() == 1 {
            return;
        }
        let s = &mut self.subflows[i];
        let room = self.receiving.window_end(Mode::Plain, s, 1) - 1;
        let cut = s.cut_off(&mut cx.scope(&self.frame), segment, room);
        self.on_text(cx, i, cut.as_ref().unwrap_or(segment), 1, Some(Place { seq: 1, data: None }));
    }

    // ---- SYN-RECEIVED (RFC 9293 §3.10.7.4) ----

    /// True if the segment is to be taken further, in a synchronized state.
    fn on_syn_received(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> bool {
        let (facts, end) = (self.facts(), self.window_end(i));
        let s = &mut self.subflows[i];
        let repeated = s.repeats_syn(segment);
        if repeated == Some(false) {
            s.on_syn_again(cx.now, offers_multipath(segment));
            return false;
        }
        let crossed = repeated.is_some();
        let scope = &mut cx.scope(&self.frame);
        if !crossed && s.in_window(scope, segment, end, facts).is_none() {
            return false;
        }
        let opening = s.in_syn_received(scope, segment, crossed, facts.mode);
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

    #[inline(always)]
    fn facts(&self) -> Facts {
        let (widest, max_window) = (self.receiving.widest(), self.sending.view().max_window());
        Facts { mode: self.session.mode(), widest, max_window }
    }

    /// The end of the window in the sequence of a subflow.
    #[inline(always)]
    fn window_end(&self, i: usize) -> u64 {
        let s = &self.subflows[i];
        self.receiving.window_end(self.session.mode(), s, s.receiver.next())
    }

    #[inline(always)]
    fn on_synchronized(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let (facts, end) = (self.facts(), self.window_end(i));
        match self.subflows[i].accept(&mut cx.scope(&self.frame), segment, end, facts) {
            Accepted::Nothing => {}
            Accepted::Reset => self.on_reset(cx, i, segment),
            Accepted::Contents { seq, ack } => self.take(cx, i, segment, (seq, ack), end - seq),
        }
    }

    /// Takes the contents of a segment whose numbers, `seq` and `ack`, are acceptable; of its text `room` bytes at most.
    #[inline(always)]
    fn take(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, (seq, ack): (u64, u64), room: u64) {
        let mut bare = segment.seq_len() == 0;
        let cut = self.subflows[i].cut_off(&mut cx.scope(&self.frame), segment, room);
        let segment = cut.as_ref().unwrap_or(segment);
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
            bare = bare && !window_update && segment.options.mptcp().is_empty();
            self.on_ack(cx, i, segment, ack, bare);
        }
        self.on_text(cx, i, segment, seq, place);
    }

    /// An acceptable reset (second step).
    fn on_reset(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        // RFC 5961 §3.2: only a reset exactly at the next expected number resets, or one that proves by our key whose it is.
        if segment.seq != s.peer_isn.at(s.receiver.next()) && !self.session.is_fast_close(segment) {
            return s.challenge(&mut cx.scope(&self.frame), self.session.mode(), Violation::BlindReset);
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

    /// Payload and FIN (seventh and eighth step); the payload has its `place`, or is not to be taken.
    #[inline(always)]
    fn on_text(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, place: Option<Place>) {
        if !self.subflows[i].state.may_receive() {
            // Nothing follows the peer's FIN, and no other FIN.
            return;
        }
        if let Some(place) = place.filter(|_| !segment.payload.is_empty()) {
            let (peer, scope) = (self.session.peer_stream(), &mut cx.scope(&self.frame));
            let intake = self.receiving.on_payload(scope, peer, &mut self.subflows, i, segment, place);
            if intake != Intake::Placed {
                self.on_misplaced(cx, i, intake);
            }
        }
        if self.subflows[i].take_fin(cx.now, segment, seq) {
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
        if self.both_ended() {
            self.lifetime.close(cx.now, &mut self.subflows);
        }
    }

    /// In plain TCP a FIN ends the stream.
    fn end_with_fin(&mut self, cx: &mut Cx<'_>, i: usize) {
        if !self.receiving.end_with_fin(&mut cx.scope(&self.frame), &self.subflows[i]) {
            // A segment is being taken: its subflow is forgotten when that is over.
            self.break_off(cx, CloseReason::Aborted);
        }
    }

    // ---- options (RFC 8684 §3) ----

    /// The options of an acceptable segment, which begins at `seq`. Where its payload belongs, if it is to be taken.
    #[inline(always)]
    fn on_options(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) -> Option<Place> {
        if self.session.is_plain() {
            return self.on_options_in_plain_tcp(cx, i, segment, seq);
        }
        self.confirm(cx, i, segment);
        let mut data = None;
        if let Some(dss) = segment.options.dss() {
            data = self.on_dss(cx, i, segment, seq, dss);
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
        let taken = !fell_back || self.mapped_to(i, segment, seq) == MappedTo::Sequence;
        taken.then_some(Place { seq, data })
    }

    fn on_options_in_plain_tcp(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) -> Option<Place> {
        let mapped_to = self.mapped_to(i, segment, seq);
        let scope = &mut cx.scope(&self.frame);
        match mapped_to {
            MappedTo::Sequence => {
                if self.session.on_reaction(segment) && self.subflows[i].may_answer(cx.now) {
                    self.answer_failure(i);
                }
                return Some(Place { seq, data: None });
            }
            MappedTo::Repeat => self.receiving.pass_over(scope, &mut self.subflows, i, seq, &segment.payload),
            MappedTo::Elsewhere => {
                scope.violation(self.subflows[i].id, Violation::MappingConflict);
                self.break_off(cx, CloseReason::Aborted);
            }
        }
        None
    }

    fn mapped_to(&self, i: usize, segment: &Segment, seq: u64) -> MappedTo {
        self.session.mapped_to(&self.subflows[i], segment, seq, self.receiving.next(), self.receiving.offset())
    }

    /// The peer shows that it got our keys, or that its end is plain TCP (RFC 8684 §3.1, §3.7).
    #[inline(always)]
    fn confirm(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        if s.join && !s.handshake.confirmed {
            self.subflows[i].confirm_join();
            self.path_up(cx, i);
        }
        if self.session.has_seen_dss() {
            return;
        }
        let alone = self.subflows.len() == 1;
        match self.session.shown(&mut self.subflows[i], alone, segment) {
            Shown::Nothing => {}
            Shown::OurKeys => self.paths.open(),
            Shown::PlainTcp => self.fall_back(cx, i),
        }
    }

    fn on_option(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, option: &MptcpOption) {
        let s = &mut self.subflows[i];
        match self.session.on_option(&mut cx.scope(&self.frame), s, option) {
            Effect::Nothing => {}
            Effect::Maps(mapping) => self.note_mapping(cx, i, &mapping, false),
            Effect::Announced(address) => self.paths.known.announced(s.tuple, address),
            Effect::Echoed(address) => self.paths.own.echoed(address),
            Effect::TakenBack(ids) => self.paths.taken_back(&mut self.subflows, ids),
            Effect::Backup => self.sending.on_backup(&self.frame.settings, &mut self.subflows, i),
            Effect::Failed(data_seq) => self.on_fail(cx, i, data_seq),
            Effect::FastClose => self.on_fast_close(cx, segment.flags.has(Flags::RST).then_some(i)),
        }
    }

    /// RFC 8684 §3.5: the other subflows are reset; the one whose reset it came with, if any, is closed.
    fn on_fast_close(&mut self, cx: &mut Cx<'_>, closed: Option<usize>) {
        self.subflows.abort(Reset::Because(UNSPECIFIED), closed);
        if let Some(i) = closed {
            self.drop_subflow(cx, i, PathState::Dead);
        }
        self.end(cx, CloseReason::ResetByPeer);
    }

    #[inline(always)]
    fn on_dss(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, dss: &Dss) -> Option<u64> {
        if let Some(ack) = dss.ack {
            self.sending.note_answer();
            if let Some(upto) = self.session.acked_offset(ack, self.sending.view().data_acked()) {
                let windows = self.receiving.is_separate(self.session.mode()).then_some(self.subflows.len());
                let scope = &mut cx.scope(&self.frame);
                self.sending.on_data_ack(scope, &mut self.subflows[i], segment, upto, windows);
            }
        }
        // RFC 8684 §3.7: a mapping of length 0 is infinite and begins with its segment's data. Without data it maps nothing.
        let mapping = dss.mapping.as_ref().filter(|m| m.len > 0 || !segment.payload.is_empty())?;
        self.session.note_width(mapping);
        if !dss.data_fin && self.session.maps_itself(&self.subflows[i], segment, seq, mapping) {
            return self.session.peer_stream().offset(mapping, self.receiving.next());
        }
        self.note_mapping(cx, i, mapping, dss.data_fin);
        None
    }

    /// Notes the mapping of a segment.
    fn note_mapping(&mut self, cx: &mut Cx<'_>, i: usize, mapping: &Mapping, data_fin: bool) {
        if mapping.len == 0 {
            return self.on_infinite_mapping(cx, i, mapping);
        }
        let (peer, scope) = (self.session.peer_stream(), &mut cx.scope(&self.frame));
        let intake = self.receiving.note_mapping(scope, peer, &mut self.subflows, i, mapping, data_fin);
        self.on_misplaced(cx, i, intake);
    }

    /// Data came whose mapping does not come, or is not right.
    fn on_misplaced(&mut self, cx: &mut Cx<'_>, i: usize, intake: Intake) {
        match intake {
            Intake::Placed => {}
            Intake::Corrupt(start) => self.on_corrupt(cx, i, start),
            Intake::Unmapped { at_start } if at_start && self.may_fall_back(i) => {
                cx.scope(&self.frame).violation(self.subflows[i].id, Violation::Unmapped);
                self.fall_back(cx, i);
            }
            Intake::Unmapped { .. } => self.subflows[i].never_mapped(&mut cx.scope(&self.frame)),
        }
    }

    // ---- the fall back to plain TCP (RFC 8684 §3.7) ----

    /// True if the one subflow that there is and ever was in use carries both streams in order.
    fn may_fall_back(&self, i: usize) -> bool {
        let s = &self.subflows[i];
        self.session.is_alone(&self.subflows) && self.receiving.place_on(s).is_some() && self.sending.is_in_order_on(s)
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
        if self.session.is_plain() {
            return;
        }
        self.session.fall_back(self.subflows[i].sender.nxt(), self.sending.intact());
        self.give_up_multipath(cx);
        self.paths.end();
        self.subflows.become_plain(i);
        let scope = &mut cx.scope(&self.frame);
        self.sending.go_on_in(scope, &mut self.subflows, i);
        self.receiving.go_on_in(scope, &mut self.subflows, i);
        self.end_with_fin(cx, i);
    }

    /// The checksum of the data from `start` on is wrong. RFC 8684 §3.7: other subflows continue, or a new one will, and this
    /// one is reset with MP_FAIL; or MP_FAIL informs the peer, and the bytes that came are kept.
    fn on_corrupt(&mut self, cx: &mut Cx<'_>, i: usize, start: u64) {
        let number = self.session.peer_stream().number(start).0;
        if start != self.receiving.next() || !self.may_fall_back(i) {
            return self.subflows[i].fail(number);
        }
        self.subflows[i].acks.demand();
        self.fall_back(cx, i);
        if !self.lifetime.closed {
            // As long as Linux waits for an answer (TCP_RTO_MAX).
            let until = cx.now + self.frame.settings.tcp.rto_max;
            self.session.say_failure(number, cx.now, self.subflows[i].sender.rtt().rto(), until);
        }
    }

    /// The peer could not verify our data. It is answered in kind, and with an infinite mapping on the next new data; or by
    /// a reset, where that is not safe.
    fn on_fail(&mut self, cx: &mut Cx<'_>, i: usize, data_seq: u64) {
        if !self.may_fall_back(i) {
            let next = self.session.peer_stream().number(self.receiving.next()).0;
            return self.subflows[i].fail(next);
        }
        self.fall_back(cx, i);
        if !self.lifetime.closed {
            self.session.hear_failure(data_seq);
            self.answer_failure(i);
        }
    }

    fn answer_failure(&mut self, i: usize) {
        let data_seq = self.session.peer_stream().number(self.receiving.next()).0;
        self.subflows[i].signal_failure(data_seq);
    }

    /// From here on the subflow's sequence is the data sequence. It may reach back to what was acknowledged last; it must
    /// not contradict what came.
    fn on_infinite_mapping(&mut self, cx: &mut Cx<'_>, i: usize, mapping: &Mapping) {
        let s = &self.subflows[i];
        let place = self.receiving.place_on(s).filter(|_| self.may_fall_back(i));
        // Linux gives it no place of its own: it begins here.
        let agrees = |place: Offset| {
            mapping.subflow_seq == 0 || self.session.is_in_line(s, mapping, self.receiving.next(), place)
        };
        if place.is_some_and(agrees) {
            self.fall_back(cx, i);
        } else {
            self.subflows[i].refuse(&mut cx.scope(&self.frame), Violation::MappingConflict, MPTCP_ERROR);
        }
    }
}
