//! Ending: DATA_FIN, FIN, resets, fast close (RFC 8684 §3.3.3, §3.5, §3.6).

use super::fallback::Failure;
use super::{Connection, Mode, ORPHAN_TIMEOUT, WHOLE};
use crate::cx::Cx;
use crate::schedule::{Cause, SchedulerEvent};
use crate::subflow::{Move, Reset, State, Subflow};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{MptcpOption, Reason, Segment};

/// How long a subflow may stay silent once the peer closes others: retransmission timeouts, and at least.
const CLOSE_PATIENCE: (u64, Duration) = (3, Duration::from_secs(1));
/// RFC 8684 §3.6: too much outstanding data.
const OUTSTANDING: Reason = Reason { code: 4, transient: false };

/// Why a peer says that it resets: RFC 8684 §3.6.
fn reason_in(segment: &Segment) -> Option<Reason> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::TcpRst(reason) => Some(*reason),
        _ => None,
    })
}

impl Connection {
    /// The peer's DATA_FIN stands at `offset`.
    pub(super) fn note_data_fin(&mut self, cx: &mut Cx<'_>, i: usize, offset: u64) {
        let possible = offset >= self.reassembly.next() && offset <= self.receive_edge();
        match self.peer_fin {
            Some(known) if known != offset => return self.violation(cx, i, Violation::DataFinMoved),
            Some(_) => {}
            None if !possible => return self.violation(cx, i, Violation::DataFinMoved),
            None => {
                self.peer_fin = Some(offset);
                self.pending.readable = true;
            }
        }
        // RFC 8684 §3.3.3: acknowledged at connection level like data
        self.subflows[i].acks.demand();
    }

    /// All of the peer's stream has come, its end included.
    pub(super) fn peer_finished(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.reassembly.next() >= fin)
    }

    /// Our DATA_FIN left on subflow `i`.
    pub(super) fn data_fin_sent(&mut self, cx: &mut Cx<'_>, i: usize) {
        let wait = self.subflows[i].sender.rtt().rto() * (1 << self.data_fin.repeats.min(6));
        // Bounded as the retransmission timer is (RFC 6298 §2.5): after a slow handshake the RTO itself may be a minute.
        self.data_fin.sent = Some(cx.now + wait.min(self.settings.tcp.rto_max));
        self.touched |= WHOLE;
        self.data_fin.due &= !self.subflows[i].id.bit();
    }

    /// A subflow's FIN came; `at` = its offset.
    pub(super) fn on_fin(&mut self, cx: &mut Cx<'_>, i: usize, at: u64) {
        let s = &mut self.subflows[i];
        if s.receiver.note_fin(at) {
            s.acks.on_arrival(cx.now, true);
        } else {
            s.acks.demand();
        }
    }

    /// Everything up to the peer's FIN has come.
    pub(super) fn fin_taken(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        s.acks.demand();
        if s.go(Move::ReceiveFin) && s.state == State::TimeWait {
            s.linger = cx.now + self.settings.tcp.time_wait;
        }
        if self.mode == Mode::Plain {
            self.end_with_fin(cx, i);
        } else {
            self.retire_half_closed();
            if self.both_ended() && self.closing.is_none() {
                self.closing = Some(cx.now);
                let waits = |s: &&mut Subflow| !matches!(s.state, State::TimeWait | State::FinWait2);
                self.subflows.iter_mut().filter(waits).for_each(|s| s.linger = cx.now);
            }
        }
    }

    /// RFC 8684 §3.3.3: a FIN ends one direction of its subflow. In the other, data may go on until our DATA_FIN is
    /// acknowledged. Where another subflow is open both ways it is answered in kind: the peer has done with this one, and
    /// Linux resets it if data comes after its FIN.
    pub(super) fn retire_half_closed(&mut self) {
        let open = |s: &Subflow| s.may_carry() && s.state == State::Established && !s.failing;
        if self.mode == Mode::Plain || !self.subflows.iter().any(open) {
            return;
        }
        for i in 0..self.subflows.len() {
            let s = &mut self.subflows[i];
            if s.state == State::CloseWait && !s.fin.wanted {
                s.fin.wanted = true;
                let id = s.id;
                self.view.take_back(id);
                self.due.get_or_insert(Cause::PathChange(id));
            }
        }
        self.refresh_usability();
    }

    /// Both DATA_FINs were acknowledged: nothing but the subflows is left.
    pub(super) fn both_ended(&self) -> bool {
        self.data_fin.acked && self.peer_finished()
    }

    /// The peer has closed a subflow in order since `since`, so it knows that both streams have ended. One on which it has
    /// been silent for too long is reset.
    pub(super) fn close_silent(&mut self, cx: &mut Cx<'_>, i: usize, since: Instant) {
        let s = &mut self.subflows[i];
        let patience = (s.sender.rtt().rto() * CLOSE_PATIENCE.0).max(CLOSE_PATIENCE.1);
        let until = s.last_heard.max(since) + patience;
        s.linger = until;
        if until <= cx.now {
            s.linger = Instant::MAX;
            // RFC 8684 §3.3.3: it may be closed with a RST for too much outstanding data
            s.close_by_reset(Reset::Because(OUTSTANDING));
        }
    }

    /// Our FIN was acknowledged.
    pub(super) fn fin_acked(&mut self, cx: &mut Cx<'_>, i: usize) {
        // With MPTCP there is nothing to wait for but the peer's FIN once its stream has ended.
        let last = self.subflows[i].state == State::FinWait2 && self.mode != Mode::Plain && self.peer_finished();
        if last || self.subflows[i].state == State::TimeWait {
            self.subflows[i].linger = cx.now + self.settings.tcp.time_wait;
        }
    }

    /// What follows from what has changed: DATA_FIN, FINs, subflows to reap, the end. Called after every input.
    pub(super) fn settle(&mut self, cx: &mut Cx<'_>) {
        self.touch_all();
        self.settle_stream();
        self.reap(cx);
        self.settle_end(cx);
        if self.closed {
            self.reap(cx);
        }
    }

    /// Forgets the subflows that have closed.
    fn reap(&mut self, cx: &mut Cx<'_>) {
        let mut i = 0;
        while i < self.subflows.len() {
            if self.subflows[i].state == State::Closed && self.subflows[i].reset.is_none() {
                self.drop_subflow(cx, i, PathState::Closed);
            } else {
                i += 1;
            }
        }
    }

    /// After the last data comes the end: FIN, or DATA_FIN and then the FINs.
    pub(super) fn settle_stream(&mut self) {
        if self.closed || !self.finished && self.peer_fin.is_none() {
            return;
        }
        self.touch_all();
        let all_acked = self.finished && self.all_delivered();
        let opening = self.subflows.iter().all(|s| !s.state.is_synchronized());
        if opening {
            return;
        }
        match self.mode {
            Mode::Plain => {
                // RFC 9293 §3.10.4: FIN after the last data. What is queued may still be taken back. A peer that does not
                // know yet that this is plain TCP would take the FIN for the end of a subflow only.
                let told = !matches!(self.failure, Failure::Said(_));
                let all_sent = self.finished && told && self.view.backlog().is_empty() && !self.view.anything_queued();
                for s in self.subflows.iter_mut().filter(|_| all_sent) {
                    s.fin.wanted = true;
                }
            }
            _ => {
                if all_acked && !self.data_fin.acked && self.data_fin.sent.is_none() && !self.view.anything_queued() {
                    self.data_fin.due = u32::MAX;
                }
                // RFC 8684 §3.3.3: with both DATA_FINs acknowledged the subflows are closed
                if self.both_ended() {
                    for s in &mut self.subflows {
                        s.fin.wanted = true;
                        s.give_up_joining();
                    }
                    self.paths.stop();
                    if self.subflows.iter().any(|s| s.fin.offset.is_none()) {
                        self.refresh_usability();
                    }
                }
            }
        }
    }

    /// The peer has acknowledged everything that was written so far.
    pub(super) fn all_delivered(&self) -> bool {
        self.view.data_acked() >= self.buffer.end()
    }

    fn settle_end(&mut self, cx: &mut Cx<'_>) {
        if self.closed {
            return;
        }
        let sent_all = match self.mode {
            Mode::Plain => self.finished && self.all_delivered(),
            _ => self.data_fin.acked,
        };
        // Whoever drives this asks for events before segments: the end is told before the last reset leaves.
        let over = |s: &Subflow| matches!(s.state, State::TimeWait | State::Closed) || s.reset.is_some();
        if sent_all && self.peer_finished() && self.subflows.iter().all(over) {
            return self.end(cx, CloseReason::Finished);
        }
        // RFC 9293 §3.8.3, R2: subflow after subflow, and none delivers what waits.
        if self.vain > self.settings.tcp.retries && !(self.all_delivered() && (self.data_fin.acked || !self.finished)) {
            return self.break_off(cx, CloseReason::TimedOut);
        }
        // Attempts to join do not count: they might go on forever.
        let open = |s: &Subflow| s.state.is_synchronized() && !s.is_unproven();
        let hears = |s: &Subflow| open(s) && (s.state.may_receive() || self.peer_finished());
        if self.subflows.iter().any(hears) {
            self.orphaned = None;
            return;
        }
        match self.mode {
            Mode::Multipath { .. } => {
                // What can still be sent is: its own timers bound that.
                let sends = self.subflows.iter().any(|s| s.may_carry() && open(s)) && !self.all_delivered();
                let since = *self.orphaned.get_or_insert(cx.now);
                if sends {
                    self.orphaned = Some(cx.now);
                } else if cx.now.since(since) >= ORPHAN_TIMEOUT {
                    // RFC 8684 §3.3.3: closed with FINs and without a DATA_FIN, it is over after a timeout.
                    self.end(cx, CloseReason::TimedOut);
                }
            }
            Mode::Opening | Mode::Plain if self.subflows.is_empty() => self.first_failed(cx, CloseReason::TimedOut),
            Mode::Opening | Mode::Plain => {}
        }
    }

    /// A subflow is gone: what it carried alone goes out again elsewhere.
    pub(super) fn drop_subflow(&mut self, cx: &mut Cx<'_>, i: usize, how: PathState) {
        let s = self.subflows.remove(i);
        self.epoch += 1;
        if let Some(path) = self.view.path(s.id) {
            self.paths.set_used(s.id, path.used_bytes);
            self.view.remove_path(s.id);
            self.congestion.on_leave(s.id);
        }
        self.checking.forget(s.id);
        self.asked = self.asked.filter(|(id, _)| *id != s.id);
        self.record(cx, Some(s.id), Event::Path(how));
        let over = self.closed || s.fin.wanted;
        let opened = s.told != PathState::Opening;
        if opened && self.vain == 0 {
            self.paths.delivered(s.id);
        }
        self.vain += u32::from(opened && how == PathState::Dead);
        self.paths.lost(s.id, cx.now, over, !opened);
        self.scheduler.on_event(&SchedulerEvent::PathDown { path: s.id }, &self.view);
        self.refresh_usability();
        self.due.get_or_insert(Cause::PathChange(s.id));
    }

    /// A handshake was refused with RST.
    pub(super) fn refused(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        let (id, only) = (s.id, !s.join);
        if !reason_in(segment).is_some_and(|reason| reason.transient) {
            // RFC 8684 §3.9.3
            self.paths.refused(id);
        }
        self.drop_subflow(cx, i, PathState::Dead);
        if only {
            self.first_failed(cx, CloseReason::Refused);
        }
    }

    /// RFC 8684 §3.6: a path that was reset for a reason that is not transient is not tried again.
    pub(super) fn heed_reason(&mut self, i: usize, segment: &Segment) {
        if self.mode != Mode::Plain && reason_in(segment).is_some_and(|reason| !reason.transient) {
            self.paths.withdraw(self.subflows[i].id);
        }
    }

    pub(super) fn abort_with(&mut self, cx: &mut Cx<'_>, why: CloseReason) {
        self.break_off(cx, why);
        self.settle(cx);
    }

    /// The connection ends, and the peer is told on every subflow. Subflows keep their places until all is [settled](Self::settle).
    pub(super) fn break_off(&mut self, cx: &mut Cx<'_>, why: CloseReason) {
        let multipath = self.speaks_mptcp();
        let reset = if multipath { Reset::FastClose } else { Reset::Because(super::open::UNSPECIFIED) };
        self.subflows.iter_mut().for_each(|s| s.abort(reset));
        self.end(cx, why);
    }

    /// The connection ends, for the reason given first.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, why: CloseReason) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.touch_all();
        self.paths.stop();
        self.race.stop();
        self.persist.0 = Instant::MAX;
        self.data_fin.due = 0;
        self.pending.closed = Some(why);
        self.pending.readable = true;
        self.record(cx, None, Event::Closed(why));
        if why != CloseReason::Finished {
            self.subflows.iter_mut().for_each(|s| s.abort(Reset::Because(super::open::UNSPECIFIED)));
        }
    }
}
