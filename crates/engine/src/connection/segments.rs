//! Segments that arrive, step by step (RFC 9293 §3.10.7.3, §3.10.7.4), the options of MPTCP (RFC 8684 §3), and the fall back
//! to plain TCP (§3.7).
//!
//! After a fall back the subflow's sequence is the data sequence, in both directions. That is safe only if the two are
//! already in step: one subflow has carried all unacknowledged data in order, up to the last byte sent, and the received
//! data has no hole. Otherwise the subflow is reset, and another one may continue.

use super::{Connection, speak};
use crate::cx::Cx;
use crate::receiving::Place;
use crate::session::{Agreement, Effect, Ended, Learned, MappedTo, Shown, offers_multipath, reason_in};
use crate::subflow::acceptance::{Accepted, Opening, fits};
use crate::subflow::mapping::Doubt;
use crate::subflow::{Handle, State};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::PathId;
use anabranch_wire::{Mapping, MptcpOption, Segment};

impl Connection {
    /// Takes a segment that arrived on `path`.
    pub fn handle_segment(&mut self, cx: &mut Cx<'_>, path: PathId, segment: &Segment) {
        let Some(i) = self.subflows.on(path) else { return };
        self.sending.set_now(cx.now);
        if self.subflows[i].state.is_synchronized() || self.on_opening(cx, i, segment) {
            self.on_synchronized(cx, i, segment);
        }
        // Nearly always: nothing is about to end.
        let ending = self.lifetime.closed | self.sending.stream.is_finished() | self.receiving.has_fin();
        if ending || self.subflows.on(path).is_none_or(|i| self.subflows[i].state != State::Established) {
            self.settle(cx);
        }
    }

    // ---- SYN-SENT and SYN-RECEIVED (RFC 9293 §3.10.7.3, §3.10.7.4) ----

    /// True if the segment is to be taken further, in a synchronized state.
    #[inline(never)]
    fn on_opening(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment) -> bool {
        let s = &mut self.subflows[i];
        let facts = self.receiving.facts(self.session.mode(), s, self.sending.view().max_window());
        let (sent, scope) = (s.state == State::SynSent, &mut cx.scope(&self.frame));
        let opening = match s.state {
            State::SynSent => s.in_syn_sent(scope, segment, self.paths.race.is_open()),
            State::SynReceived => s.in_syn_received(scope, segment, facts, offers_multipath(segment)),
            _ => Opening::Nothing,
        };
        match opening {
            Opening::Answered | Opening::Crossed if sent => self.on_syn(cx, i, segment, opening),
            Opening::Answered | Opening::Crossed => return self.on_ack_of_syn(cx, i, segment, opening),
            Opening::Refused => {
                self.paths.known.refused(s.id, reason_in(segment));
                self.lose(cx, i, CloseReason::Refused);
            }
            Opening::Nothing => {}
        }
        false
    }

    /// The SYN/ACK that answers our SYN, or a SYN that crosses it.
    fn on_syn(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, opening: Opening) {
        let i = if self.paths.race.is_open() { self.win(cx, i) } else { i };
        let s = &mut self.subflows[i];
        if !s.join {
            self.sending.learn_window(segment.window);
        }
        let agreement = self.session.on_syn(&mut cx.scope(&self.frame), s, segment, opening == Opening::Crossed);
        speak(self.session.mode(), &mut self.sending, &mut self.receiving);
        match agreement {
            Agreement::Nothing => return,
            Agreement::Made => {}
            Agreement::NoJoinsHere => self.paths.known.keep_off(s.tuple.remote),
        }
        self.establish(cx, i, segment);
        self.on_text_of_syn(cx, i, segment);
    }

    /// The acknowledgment of our SYN/ACK. True if the segment is to be taken further.
    fn on_ack_of_syn(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, opening: Opening) -> bool {
        match self.session.learn_from_ack(segment, self.subflows[i].peer_isn) {
            Learned::Mode => {}
            Learned::PlainTcp => self.give_up_multipath(cx),
            Learned::Nothing => return false,
        }
        speak(self.session.mode(), &mut self.sending, &mut self.receiving);
        self.subflows[i].synchronize();
        self.establish(cx, i, segment);
        if opening == Opening::Crossed {
            self.subflows[i].acks.demand();
            self.on_text_of_syn(cx, i, segment);
        }
        opening == Opening::Answered
    }

    /// Payload and FIN of a SYN/ACK (RFC 9293 §3.10.7.3). With Multipath TCP nothing tells where they belong: they come again.
    fn on_text_of_syn(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment) {
        if !self.session.is_plain() || segment.seq_len() == 1 || self.lifetime.closed {
            return;
        }
        let s = &mut self.subflows[i];
        let room = self.receiving.window_end(s, 1) - 1;
        let cut = s.cut_off(&mut cx.scope(&self.frame), segment, room);
        self.on_text(cx, i, cut.as_ref().unwrap_or(segment), 1, Some(Place { seq: 1, data: None }));
    }

    // ---- synchronized states (RFC 9293 §3.10.7.4) ----

    #[inline(always)]
    fn on_synchronized(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment) {
        let (mode, s, max_window) = (self.session.mode(), &mut self.subflows[i], self.sending.view().max_window());
        let end = self.receiving.window_end(s, s.receiver.next());
        match s.accept(&cx.scope(&self.frame), segment, end, max_window) {
            Accepted::Contents { seq, ack } if fits(segment, end - seq) => self.take(cx, i, segment, (seq, ack), false),
            Accepted::Contents { seq, ack } => self.take_cut_off(cx, i, segment, (seq, ack), end - seq),
            Accepted::Nothing => {}
            Accepted::Reset => self.on_reset(cx, i, segment),
            Accepted::Refused(why) => {
                let facts = self.receiving.facts(mode, s, max_window);
                s.on_refused(&mut cx.scope(&self.frame), segment, why, facts);
            }
        }
    }

    /// Takes the part of a segment within the window, `room` bytes: apart, so that every other segment is taken as it is.
    #[cold]
    #[inline(never)]
    fn take_cut_off(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, numbers: (u64, u64), room: u64) {
        if let Some(cut) = self.subflows[i].cut_off(&mut cx.scope(&self.frame), segment, room) {
            self.take(cx, i, &cut, numbers, true);
        }
    }

    /// Takes the contents of a segment whose numbers, `seq` and `ack`, are acceptable. `cut`: it is a part of the one that came.
    #[inline(always)]
    fn take(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, (seq, ack): (u64, u64), cut: bool) {
        let place = self.on_options(cx, i, segment, seq);
        let s = &mut self.subflows[i];
        if self.lifetime.closed || s.reset.is_some() {
            return;
        }
        self.sending.on_heard(&cx.scope(&self.frame), s);
        self.sending.on_window(s, segment, seq, ack);
        let window_update = s.is_window_news(segment);
        // Every segment of a peer that only sends is an acknowledgment that says nothing.
        if !(segment.options.sack().is_empty() && s.sender().is_at_rest(ack)) {
            // RFC 8684 §4: an acknowledgment that carries a signal is no duplicate.
            let bare = !cut && segment.seq_len() == 0 && !window_update && segment.options.mptcp().is_empty();
            self.on_ack(cx, i, segment, ack, bare);
        }
        self.on_text(cx, i, segment, seq, place);
    }

    /// An acceptable reset (second step).
    fn on_reset(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment) {
        let s = &mut self.subflows[i];
        match self.session.on_reset(&mut cx.scope(&self.frame), s, segment, self.lifetime.closed) {
            Ended::Nothing => return,
            Ended::Connection => {
                self.drop_subflow(cx, i, PathState::Dead);
                return self.end(cx, CloseReason::ResetByPeer);
            }
            Ended::Subflow { retry: true } => {}
            Ended::Subflow { retry: false } => self.paths.known.withdraw(s.id),
        }
        self.lose(cx, i, CloseReason::ResetByPeer);
    }

    /// An acknowledgment (fifth step). `bare`: the segment says nothing else, so it may be a duplicate acknowledgment (RFC 5681 §2).
    #[inline(never)]
    fn on_ack(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, ack: u64, bare: bool) {
        if self.session.is_unanswered(&mut self.subflows[i], segment, ack) {
            self.on_doubt(cx, i, Doubt::Unanswered(self.session.first_len));
        }
        let s = &mut self.subflows[i];
        let outcome = self.sending.take_ack(cx.now, s, &mut self.peer_clock, segment, (ack, bare));
        let Some(outcome) = outcome else { return };
        s.note_fin_acked(cx.now + self.frame.settings.tcp.time_wait, || self.receiving.is_over());
        self.sending.on_ack(&mut cx.scope(&self.frame), self.subflows.lend(i), &outcome);
    }

    /// Payload and FIN (seventh and eighth step); the payload has its `place`, or is not to be taken.
    #[inline(always)]
    fn on_text(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, seq: u64, place: Option<Place>) {
        if !self.subflows[i].state.may_receive() {
            // Nothing follows the peer's FIN, and no other FIN.
            return;
        }
        if let Some(place) = place.filter(|_| !segment.payload.is_empty()) {
            let (peer, scope) = (self.session.peer_stream(), &mut cx.scope(&self.frame));
            if let Err(doubt) = self.receiving.on_payload(scope, peer, &mut self.subflows.lend(i), segment, place) {
                self.on_doubt(cx, i, doubt);
            }
        }
        if self.subflows[i].take_fin(cx.now, segment, seq) {
            self.on_fin(cx, i);
        }
    }

    /// Everything up to the peer's FIN has come.
    fn on_fin(&mut self, cx: &mut Cx<'_>, i: Handle) {
        self.subflows[i].on_fin(cx.now + self.frame.settings.tcp.time_wait);
        if self.session.is_plain() {
            return self.end_with_fin(cx, i);
        }
        self.sending.retire_half_closed(&mut self.subflows);
    }

    /// In plain TCP a FIN ends the stream.
    fn end_with_fin(&mut self, cx: &mut Cx<'_>, i: Handle) {
        // A segment is being taken: its subflow is forgotten when that is over.
        if !self.receiving.end_with_fin(&mut cx.scope(&self.frame), &self.subflows[i]) {
            self.break_off(cx, CloseReason::Aborted);
        }
    }

    // ---- options (RFC 8684 §3) ----

    /// The options of an acceptable segment, which begins at `seq`. Where its payload belongs, if it is to be taken.
    #[inline(always)]
    fn on_options(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, seq: u64) -> Option<Place> {
        if self.session.is_plain() {
            return self.on_options_in_plain_tcp(cx, i, segment, seq);
        }
        if !self.session.has_shown() || self.subflows[i].is_to_be_confirmed() {
            self.confirm(cx, i, segment);
        }
        let data = self.on_dss(cx, i, segment, seq);
        for option in segment.options.mptcp() {
            if self.lifetime.closed || self.subflows[i].reset.is_some() {
                break;
            }
            // It may stand in place of a DSS: keys (RFC 8684 §3.1), or an ADD_ADDR, which leaves no room for one.
            self.sending.persist.note_answer();
            self.on_option(cx, i, option);
        }
        if self.session.is_plain() && !self.lifetime.closed {
            let (s, next, place) = (&self.subflows[i], self.receiving.next(), self.receiving.offset());
            let mapped_to = self.session.mapped_to(s, segment, seq, next, place);
            return (mapped_to == MappedTo::Sequence).then_some(Place { seq, data });
        }
        Some(Place { seq, data })
    }

    fn on_options_in_plain_tcp(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, seq: u64) -> Option<Place> {
        let (next, place, s) = (self.receiving.next(), self.receiving.offset(), &mut self.subflows[i]);
        let scope = &mut cx.scope(&self.frame);
        match self.session.on_plain_segment(scope.now, s, segment, seq, next, place) {
            MappedTo::Sequence => return Some(Place { seq, data: None }),
            MappedTo::Repeat => self.receiving.pass_over(scope, &mut self.subflows.lend(i), seq, &segment.payload),
            MappedTo::Elsewhere => {
                scope.violation(s.id, Violation::MappingConflict);
                self.break_off(cx, CloseReason::Aborted);
            }
        }
        None
    }

    /// The peer shows that it got our keys, or that its end is plain TCP (RFC 8684 §3.1, §3.7).
    #[inline(never)]
    fn confirm(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment) {
        if self.subflows[i].confirm_join() {
            self.path_up(cx, i);
        }
        let alone = self.subflows.len() == 1;
        match self.session.shown(&mut self.subflows[i], alone, segment) {
            Shown::Nothing => {}
            Shown::OurKeys => self.paths.open(),
            Shown::PlainTcp => self.fall_back(cx, i),
        }
    }

    fn on_option(&mut self, cx: &mut Cx<'_>, i: Handle, option: &MptcpOption) {
        let s = &mut self.subflows[i];
        match self.session.on_option(&mut cx.scope(&self.frame), s, option) {
            Effect::Nothing => {}
            Effect::Maps(mapping) => self.note_mapping(cx, i, &mapping, false),
            Effect::Addresses => self.paths.on_option(self.subflows.lend(i), option),
            Effect::Backup => self.sending.on_backup(self.subflows[i].id),
            Effect::Failed(data_seq) => self.on_doubt(cx, i, Doubt::Failed(data_seq)),
            Effect::FastClose => self.end(cx, CloseReason::ResetByPeer),
        }
    }

    #[inline(always)]
    fn on_dss(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment, seq: u64) -> Option<u64> {
        let windows = self.receiving.windows(&self.subflows);
        let (dss, s) = (segment.options.dss()?, &mut self.subflows[i]);
        if let Some(ack) = dss.ack {
            self.sending.persist.note_answer();
            if let Some(upto) = self.session.acked_offset(ack, self.sending.view().data_acked()) {
                self.sending.on_data_ack(&mut cx.scope(&self.frame), s, segment, upto, windows);
            }
        }
        // RFC 8684 §3.7: a mapping of length 0 is infinite and begins with its segment's data. Without data it maps nothing.
        let mapping = dss.mapping.as_ref().filter(|m| m.len > 0 || !segment.payload.is_empty())?;
        self.session.note_width(mapping);
        if !dss.data_fin && self.session.maps_itself(s, segment, seq, mapping) {
            return self.session.peer_stream().offset(mapping, self.receiving.next());
        }
        self.note_mapping(cx, i, mapping, dss.data_fin);
        None
    }

    /// Notes the mapping of a segment.
    fn note_mapping(&mut self, cx: &mut Cx<'_>, i: Handle, mapping: &Mapping, data_fin: bool) {
        let (peer, scope) = (self.session.peer_stream(), &mut cx.scope(&self.frame));
        let noted = self.receiving.note_mapping(scope, peer, &mut self.subflows.lend(i), mapping, data_fin);
        noted.unwrap_or_else(|doubt| self.on_doubt(cx, i, doubt));
    }

    // ---- the fall back to plain TCP (RFC 8684 §3.7) ----

    /// Falls back if the one subflow that is and ever was in use carries both streams in order. If not, others continue, or a new one will.
    #[cold]
    pub(super) fn on_doubt(&mut self, cx: &mut Cx<'_>, i: Handle, doubt: Doubt) {
        let (peer, s) = (self.session.peer_stream(), &self.subflows[i]);
        let in_order = self.receiving.may_go_on_in(peer, s, doubt) && self.sending.is_in_order_on(s);
        if !in_order || !self.session.is_alone(&self.subflows) {
            return self.receiving.refuse(&mut cx.scope(&self.frame), peer, &mut self.subflows[i], doubt);
        }
        self.fall_back(cx, i);
        if !self.lifetime.closed {
            self.session.on_fallen_back(&cx.scope(&self.frame), &mut self.subflows[i], doubt, self.receiving.next());
        }
    }

    /// From here on the connection is plain TCP, and an event reports that to the application.
    fn give_up_multipath(&mut self, cx: &mut Cx<'_>) {
        self.session.become_plain();
        speak(self.session.mode(), &mut self.sending, &mut self.receiving);
        self.pending.fell_back = true;
        cx.scope(&self.frame).record(None, Event::Fallback);
    }

    /// From here on the connection is plain TCP over this subflow.
    fn fall_back(&mut self, cx: &mut Cx<'_>, i: Handle) {
        if self.session.is_plain() {
            return;
        }
        if self.frame.settings.mptcp_required {
            return self.break_off(cx, CloseReason::Aborted);
        }
        self.session.fall_back(self.subflows[i].sender().nxt(), self.sending.stream.intact());
        self.give_up_multipath(cx);
        self.paths.end();
        self.subflows.become_plain(i);
        let scope = &mut cx.scope(&self.frame);
        self.sending.go_on_in(scope, &mut self.subflows.lend(i));
        self.receiving.go_on_in(scope, &mut self.subflows.lend(i));
        self.end_with_fin(cx, i);
    }
}
