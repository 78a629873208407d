//! Everything that happens because time passed.

use super::open::INTERFERENCE;
use super::{ALL, Connection, Mode, ORPHAN_TIMEOUT, WHOLE};
use crate::congestion::Loss;
use crate::cx::Cx;
use crate::schedule::{Cause, SchedulerEvent};
use crate::subflow::sender::Fired;
use crate::subflow::{Move, Reset, State, Subflow};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::{Duration, Instant, Side};

/// A path that timed out is tried at least this often while others carry the data: this bounds how long a path that
/// came back stays unused.
pub(super) const FAILING_RTO_MAX: Duration = Duration::from_secs(2);
/// Least and greatest time between two probes of a failing path. In between it is a sixteenth of the silence, so that a
/// return is noticed soon in relation to how long it took, and a path that is gone for good costs next to nothing.
const PATH_PROBE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// Keep-alive probes without an answer before the subflow is given up, and the time between them (Linux's values).
const KEEP_ALIVE_PROBES: u32 = 9;
const KEEP_ALIVE_GAP: Duration = Duration::from_secs(75);
/// Repetitions of a joining SYN: a new attempt comes sooner than a SYN that backed off far.
const JOIN_RETRIES: u32 = 2;
/// Longest time between two zero-window probes.
const PERSIST_MAX: Duration = Duration::from_secs(60);

impl Connection {
    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = self.subflows.iter().fold(self.own_deadline(), |at, s| at.min(self.deadline(s)));
        (at < Instant::MAX).then_some(at)
    }

    /// As [`Self::poll_timeout`], without what nothing happened to since the last call: its deadlines have come no nearer.
    /// [`Instant::MAX`] for never.
    pub(crate) fn poll_nearer(&mut self) -> Instant {
        let touched = core::mem::take(&mut self.touched);
        let mut at = if touched & WHOLE == 0 { Instant::MAX } else { self.own_deadline() };
        for s in &self.subflows {
            if touched & u64::from(s.id.bit()) != 0 {
                at = at.min(self.deadline(s));
            }
        }
        at
    }

    /// Something happened to a subflow, or may have.
    #[inline(always)]
    pub(super) fn is_touched(&self, s: &Subflow) -> bool {
        self.touched & u64::from(s.id.bit()) != 0
    }

    /// Something happened, no matter to what.
    pub(super) fn touch_all(&mut self) {
        self.touched = ALL;
    }

    /// Something happened to subflow `i`.
    #[inline(always)]
    pub(super) fn touch(&mut self, i: usize) {
        self.touched |= u64::from(self.subflows[i].id.bit());
    }

    /// When something of a subflow is due.
    fn deadline(&self, s: &Subflow) -> Instant {
        let waits = s.handshake.deadline.min(s.acks.deadline()).min(s.linger);
        let at = waits.min(s.unmapped.deadline).min(s.path_probe).min(s.sender.poll_timeout().unwrap_or(Instant::MAX));
        // Where the window is what holds it back, pacing has nothing to say.
        let paced = s.pacer.next() > self.view.now() && self.view.path(s.id).is_some_and(|p| p.pacing.is_some());
        if paced && (self.view.has_admissible(s.id) || s.sender.next_lost().is_some()) {
            return at.min(s.pacer.next());
        }
        at
    }

    /// When something of the connection as a whole is due.
    #[inline]
    fn own_deadline(&self) -> Instant {
        let mut at = self.persist.0;
        if self.closed {
            return at;
        }
        at = at.min(if self.speaks_mptcp() { self.next_path_work() } else { self.race.next() });
        if let Some(resend) = self.data_fin.sent.filter(|_| !self.data_fin.acked) {
            at = at.min(resend);
        }
        at = at.min(self.failure.deadline());
        if let Some(since) = self.orphaned {
            at = at.min(since + ORPHAN_TIMEOUT);
        }
        if self.wakeup < at && !self.view.backlog().is_empty() {
            at = self.wakeup;
        }
        at
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.view.set_now(cx.now);
        self.touch_all();
        for i in (0..self.subflows.len()).rev() {
            self.on_subflow_timers(cx, i);
        }
        self.run_race(cx);
        if self.wakeup <= cx.now {
            self.due.get_or_insert(Cause::Wakeup);
        }
        if self.persist.0 <= cx.now {
            self.probe_window(cx);
        }
        if !self.data_fin.acked && self.data_fin.sent.is_some_and(|at| at <= cx.now) {
            self.data_fin.sent = Some(Instant::MAX);
            // A DATA_FIN beside payload is repeated with it; alone it must be repeated by itself.
            if self.all_delivered() {
                self.data_fin.repeats += 1;
                self.data_fin.due = if self.mode == Mode::Plain { 0 } else { u32::MAX };
                // RFC 8684 §3.1: a peer that has not got our keys takes no DSS, which leaves no room for them.
                for i in 0..self.subflows.len() {
                    self.subflows[i].handshake.third_ack |= self.shows_keys(i);
                }
                if self.data_fin.repeats > self.settings.tcp.retries {
                    return self.abort_with(cx, CloseReason::TimedOut);
                }
            } else {
                self.data_fin.sent = Some(cx.now + Duration::from_secs(1));
            }
        }
        if self.failure.deadline() <= cx.now {
            self.on_failure_timer(cx);
        }
        self.manage_paths(cx);
        self.settle(cx);
    }

    fn on_subflow_timers(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        s.acks.on_timer(cx.now);
        if s.path_probe <= cx.now {
            self.probe_path(cx, i);
        }
        let s = &self.subflows[i];
        if s.unmapped.deadline <= cx.now {
            return self.never_mapped(cx, i);
        }
        if s.handshake.deadline <= cx.now {
            self.on_handshake_timer(cx, i);
        } else if s.linger <= cx.now {
            self.on_linger(cx, i);
        } else if s.sender.poll_timeout().is_some_and(|at| at <= cx.now) {
            self.on_sender_timer(cx, i);
        }
    }

    fn on_handshake_timer(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let all = self.settings.tcp.syn_retries;
        let retries = if s.join && s.state == State::SynSent { all.min(JOIN_RETRIES) } else { all };
        if !s.handshake.on_timeout(retries) {
            let only = !s.join;
            self.drop_subflow(cx, i, PathState::Dead);
            if only {
                self.first_failed(cx, CloseReason::TimedOut);
            }
            return;
        }
        if s.state == State::Established {
            // The third ACK of a join was not answered.
            s.handshake.third_ack = true;
            s.handshake.on_sent(cx.now);
        }
    }

    fn on_linger(&mut self, cx: &mut Cx<'_>, i: usize) {
        let over = self.mode != Mode::Plain && self.peer_finished();
        let s = &mut self.subflows[i];
        if s.state == State::TimeWait {
            s.linger = Instant::MAX;
            s.go(Move::Expire);
            return;
        }
        if s.state == State::FinWait2 && over {
            s.go(Move::Abort);
            return;
        }
        if let Some(since) = self.closing {
            return self.close_silent(cx, i, since);
        }
        // RFC 9293 §3.8.4: keep-alive
        let Some(after) = self.settings.tcp.keep_alive else { return s.linger = Instant::MAX };
        if cx.now.since(s.last_heard) < after {
            s.linger = s.last_heard + after;
        } else if !s.sender.is_empty() {
            // What was sent is an inquiry itself, and its timer counts the answers that do not come.
            s.linger = cx.now + after;
        } else if s.probes >= KEEP_ALIVE_PROBES {
            self.give_up(cx, i);
        } else {
            s.probes += 1;
            s.poke = true;
            s.linger = cx.now + KEEP_ALIVE_GAP;
        }
    }

    fn on_sender_timer(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let id = s.id;
        match s.sender.on_timer(cx.now) {
            Fired::Nothing => {}
            Fired::ReorderTimer { newly_lost, change } => {
                self.refresh(i);
                self.follow(cx, i, change, newly_lost);
                self.refresh(i);
                self.record_window(cx, i, None);
                self.due.get_or_insert(Cause::Ack(id));
            }
            Fired::Probe => {
                s.probe = true;
                // RFC 8985 §7.3: new data if there is some. Where paths can be chosen, that is what the scheduler has bound.
                if self.lone_path() == Some(id) && self.view.path(id).is_some_and(|p| p.queued == 0) {
                    self.view.bind_probe(id);
                }
                self.record(cx, Some(id), Event::TailLossProbe);
                self.due.get_or_insert(Cause::Ack(id));
            }
            Fired::Silence => self.on_silence(cx, i),
            Fired::Timeout { n, newly_lost, again } => self.on_timeout(cx, i, n, newly_lost, again),
        }
    }

    /// A path has acknowledged nothing for longer than usual. While another one delivers, that is no pause of the peer's:
    /// its data goes out again there before the retransmission timer fires, and new data keeps off it.
    fn on_silence(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let Some(patience) = s.sender.patience().filter(|_| !s.failing && self.mode != Mode::Plain) else { return };
        if cx.now.since(s.last_heard) < patience {
            // It speaks, only the first packet is not acknowledged: loss recovery's business.
            return s.sender.await_news(s.last_heard);
        }
        let (id, heard) = (s.id, s.last_heard);
        // What left the peer before this path fell silent proves nothing: the peer, or all its paths, may have paused.
        let way = |o: &Subflow| o.sender.rtt().srtt().unwrap_or_default() / 2;
        let delivers = |o: &Subflow| o.sender.is_empty() || o.last_heard > heard + way(o);
        if self.subflows.iter().any(|o| o.id != id && o.may_carry() && !o.failing && delivers(o)) {
            self.fail(cx, i);
            self.relieve(cx, i);
            self.due = Some(Cause::PathChange(id));
        } else {
            self.subflows[i].sender.look_again(cx.now + patience / 2);
        }
    }

    /// A path is not to be given new data until it delivers again.
    fn fail(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let id = s.id;
        if !s.failing {
            s.failing = true;
            s.told = PathState::Failing;
            self.record(cx, Some(id), Event::Path(PathState::Failing));
        }
        self.refresh_usability();
        self.refresh(i);
    }

    /// One small segment shows whether a failing path is back. The back-off of the data itself is RFC 6298's.
    fn probe_path(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        s.poke = true;
        s.probed = true;
        let (least, most) = PATH_PROBE;
        s.path_probe = cx.now + (cx.now.since(s.last_heard) / 16).clamp(least, most);
        let id = s.id;
        self.record(cx, Some(id), Event::PathProbe);
    }

    /// The retransmission timer fired for the `n`th time in a row (RFC 6298 §5.4-5.7).
    fn on_timeout(&mut self, cx: &mut Cx<'_>, i: usize, n: u32, newly_lost: u32, again: bool) {
        let id = self.subflows[i].id;
        self.record(cx, Some(id), Event::Timeout { n });
        if newly_lost > 0 {
            self.record(cx, Some(id), Event::Lost { packets: newly_lost });
        }
        let others = self.subflows.iter().any(|s| s.id != id && s.may_carry() && !s.failing);
        // RFC 9293 §3.8.6: what lies beyond a window that shrank is no reason to give up a peer that answers.
        let s = &self.subflows[i];
        let waits = s.sender.first().is_some_and(|first| !s.window.admits(first.seq.end));
        let answers = waits && s.last_sent.is_some_and(|sent| s.last_heard >= sent);
        // A server cannot join again, and its client may not know that the path was lost: it goes on trying.
        if n > self.settings.tcp.retries && !answers && !(others && self.side == Side::Server) {
            return self.give_up(cx, i);
        }
        self.refresh(i);
        self.congestion.on_loss(id, cx.now, Loss::Timeout { again }, self.view.paths());
        self.record(cx, Some(id), Event::Recovery(self.subflows[i].sender.phase()));
        self.fail(cx, i);
        self.subflows[i].sender.limit_rto(self.settings.tcp.rto_max);
        if others {
            self.relieve(cx, i);
        }
        self.record_window(cx, i, None);
        self.scheduler.on_event(&SchedulerEvent::Timeout { path: id }, &self.view);
        self.due = Some(Cause::Timeout(id));
    }

    /// What paths that timed out have not delivered may go out again over one that works, now that there is one.
    pub(super) fn relieve_failing(&mut self, cx: &mut Cx<'_>) {
        for i in 0..self.subflows.len() {
            if self.subflows[i].failing {
                self.relieve(cx, i);
            }
        }
    }

    /// Others carry on for a failing path; it is tried again often enough to notice its return.
    fn relieve(&mut self, cx: &mut Cx<'_>, i: usize) {
        self.touch(i);
        let s = &mut self.subflows[i];
        s.path_probe = s.path_probe.min(cx.now + PATH_PROBE.0);
        s.sender.limit_rto(FAILING_RTO_MAX);
        self.view.unbind(s.id);
        self.view.strand(s.id);
    }

    /// A subflow that has been silent for too long (RFC 9293 §3.8.3, R2).
    fn give_up(&mut self, cx: &mut Cx<'_>, i: usize) {
        let plain = self.mode == Mode::Plain;
        self.drop_subflow(cx, i, PathState::Dead);
        if plain {
            self.end(cx, CloseReason::TimedOut);
        }
    }

    /// RFC 9293 §3.8.6.1: nothing is in flight that could bring news of the peer's window or its acknowledgment.
    fn probe_window(&mut self, cx: &mut Cx<'_>) {
        self.persist.1 += 1;
        self.persist.0 = cx.now + self.persist_interval();
        // One after the other, the fastest first: it may be the one that is silent.
        let mut paths: Vec<_> = self.view.candidates().map(|p| (p.rtt_or_max(), p.id)).collect();
        paths.sort();
        if paths.is_empty() {
            return;
        }
        let next = paths.get((self.persist.1 - 1) as usize % paths.len());
        let Some(i) = next.and_then(|(_, id)| self.index(*id)) else { return };
        let heard = core::mem::take(&mut self.data_ack_heard);
        let asked = self.asked.replace((self.subflows[i].id, cx.now));
        let answered = asked.and_then(|(id, at)| self.index(id).filter(|i| self.subflows[*i].last_heard > at));
        if let Some(last) = answered.filter(|_| !heard && (self.dss_seen || self.joined) && self.speaks_mptcp()) {
            // Its acknowledgments have lost their DATA_ACKs, and with them the connection's window (RFC 8684 §3.3.5). A peer that
            // went on without mappings, as Linux does, would take what is sent again for new data.
            self.violation(cx, last, Violation::Unmapped);
            self.subflows[last].reset = Some(Reset::Because(INTERFERENCE));
            return;
        }
        if self.persist.1 > 1 && (heard || self.joined) && !self.view.outstanding().is_empty() {
            // RFC 8684 §3.3.6: a receiver may drop at connection level what its subflow acknowledged. Its answer, or a
            // second subflow, shows that it still speaks MPTCP: otherwise it would take this for new data.
            self.view.send_all_again();
            self.due.get_or_insert(Cause::Window);
        }
        if self.view.bind_what_fits(self.subflows[i].id) {
            // It leaves before the scheduler is called again, which might bind it as before.
            self.due = None;
            return self.touch(i);
        }
        // RFC 9293 §3.8.6.1: as long as the peer answers, for ever; else like any retransmission.
        let s = &mut self.subflows[i];
        s.probes += 1;
        if s.probes > self.settings.tcp.retries {
            return self.give_up(cx, i);
        }
        s.poke = true;
    }

    pub(super) fn persist_interval(&self) -> Duration {
        let rto = self.view.fastest().map_or(self.settings.tcp.rto_initial, |p| p.rto);
        (rto * (1 << self.persist.1.min(16))).min(PERSIST_MAX)
    }
}
