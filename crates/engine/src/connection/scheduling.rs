//! Rounds: what the scheduler sees is brought up to date, and its commands are carried out.

use super::{Connection, Mode, WHOLE};
use crate::cx::Cx;
use crate::schedule::{Cause, PathView, Round, View};
use crate::subflow::Subflow;
use anabranch_trace::{Event, SendKind};
use anabranch_units::{Instant, PathId};

impl Connection {
    /// Brings what the scheduler and congestion control see of a subflow up to date.
    pub(super) fn refresh(&mut self, i: usize) {
        self.refresh_measures(i);
        self.refresh_window(i);
    }

    /// The part of [`Self::refresh`] that the sender measures.
    pub(super) fn refresh_measures(&mut self, i: usize) {
        let s = &self.subflows[i];
        let Some(p) = self.view.path_mut(s.id) else { return };
        let rtt = s.sender.rtt();
        p.in_flight = s.sender.in_flight();
        p.in_flight_bytes = s.sender.in_flight_bytes();
        p.window = s.window.left(s.sender.nxt());
        p.srtt = rtt.srtt();
        p.rttvar = rtt.rttvar();
        p.latest_rtt = rtt.latest();
        p.min_rtt = rtt.min();
        p.min_srtt = rtt.min_srtt();
        p.max_srtt = rtt.max_srtt();
        p.rto = rtt.rto();
        p.forward_delay = s.forward;
        p.loss = s.sender.loss_estimate();
        p.recovery = s.sender.phase();
    }

    /// The part of [`Self::refresh`] that congestion control decides.
    pub(super) fn refresh_window(&mut self, i: usize) {
        let s = &self.subflows[i];
        let Some(p) = self.view.path_mut(s.id) else { return };
        let window = self.congestion.window(s.id);
        p.cwnd = s.sender.effective_window(window.cwnd);
        p.ssthresh = window.ssthresh;
        p.pacing = window.pacing;
        if self.settings.tcp.pacing {
            p.pacing = p.pacing_rate();
        }
        if self.settings.tcp.autotune {
            self.expand_send_buffer();
        }
    }

    /// Which paths may be given data. A path that timed out is not, unless there is no other; where only one is left,
    /// a plain window check decides instead of the scheduler.
    pub(super) fn refresh_usability(&mut self) {
        let healthy = self.subflows.iter().filter(|s| s.may_carry() && !s.failing).count();
        let able = self.subflows.iter().filter(|s| s.may_carry()).count();
        let early = self.settings.early_rescue && !self.scheduler.waits_for_timeouts();
        self.touch_all();
        for s in &mut self.subflows {
            s.sender.watch(early && healthy > 1);
            let Some(p) = self.view.path_mut(s.id) else { continue };
            p.usable = s.may_carry() && (!s.failing || healthy == 0);
            p.sole = p.usable && if healthy > 0 { healthy == 1 } else { able == 1 };
            p.backup = s.is_backup();
        }
    }

    /// Holds the round that is due, if one is.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>) {
        let Some(cause) = self.due.take() else { return };
        self.touched |= WHOLE;
        // What the scheduler asked for in its last round is answered by this one, whether or not a path is left.
        self.wakeup = Instant::MAX;
        if self.view.paths().is_empty() {
            self.persist.0 = Instant::MAX;
            return;
        }
        self.view.set_now(cx.now);
        self.restart_idle(cx);
        self.view.weigh();
        self.hold_round(cx, cause);
        if self.has_value
            && let Some((name, value)) = self.scheduler.values()
        {
            let micro = libm::round(value * 1e6) as i64;
            if self.last_value != Some(micro) {
                self.last_value = Some(micro);
                self.record(cx, None, Event::SchedulerValue { name, micro });
            }
        }
        self.notice_window(cx);
        self.notice_stall(cx);
        self.settle_stream();
        for p in self.view.paths().iter().filter(|p| p.queued > 0) {
            self.touched |= u64::from(p.id.bit());
        }
    }

    fn hold_round(&mut self, cx: &mut Cx<'_>, cause: Cause) {
        let alone = self.lone_path().filter(|_| !self.scheduler.serves_lone_path());
        let mut round = Round::new(&mut self.view, &mut *self.congestion, cause);
        match alone {
            // One path: the algorithms are bypassed.
            Some(id) => {
                // A scheduler that planned for more paths may have left later data in the queue.
                let queued = round.queue(id).find(|q| q.kind == SendKind::First);
                if queued.zip(round.backlog().first()).is_some_and(|(q, lowest)| lowest.start < q.range.start) {
                    round.recall(id);
                }
                if !round.rescue().is_empty() {
                    round.rescue_by_rtt();
                }
                while round.send_next(id) {}
            }
            None => {
                if !round.rescue().is_empty() {
                    self.scheduler.rescue(&mut round);
                }
                self.scheduler.schedule(&mut round);
                // A time that is over would call it again and again without end.
                self.wakeup = self.scheduler.next_wakeup().filter(|at| *at > cx.now).unwrap_or(Instant::MAX);
            }
        }
        let penalised = round.penalised();
        if penalised != 0 {
            for i in 0..self.subflows.len() {
                let id = self.subflows[i].id;
                if penalised & id.bit() != 0 {
                    self.record(cx, Some(id), Event::Penalised);
                    self.refresh(i);
                    self.record_window(cx, i, None);
                }
            }
        }
    }

    /// The path that carries everything because it is the only candidate.
    pub(super) fn lone_path(&self) -> Option<PathId> {
        let mut candidates = self.view.candidates();
        let first = candidates.next()?;
        candidates.next().is_none().then_some(first.id)
    }

    /// RFC 2861: a subflow that has been idle longer than its RTO starts again from the restart window.
    fn restart_idle(&mut self, cx: &mut Cx<'_>) {
        if !self.settings.tcp.idle_restart || self.view.backlog().is_empty() {
            return;
        }
        for i in 0..self.subflows.len() {
            let s = &mut self.subflows[i];
            if s.idle_done || !s.sender.is_empty() {
                continue;
            }
            let Some(last) = s.last_sent else { continue };
            let idle = cx.now.since(last);
            let rto = s.sender.rtt().rto();
            if idle <= rto || !s.may_carry() {
                continue;
            }
            s.idle_done = true;
            let id = s.id;
            let before = self.congestion.window(id).cwnd;
            self.congestion.on_idle(id, cx.now, idle, rto);
            self.refresh(i);
            if self.congestion.window(id).cwnd < before {
                self.record(cx, Some(id), Event::IdleRestart);
                self.record_window(cx, i, None);
            }
        }
    }

    /// Data begins or ceases to wait only for the peer's window.
    fn notice_window(&mut self, cx: &mut Cx<'_>) {
        let full = self.view.window_blocked();
        let blocked = full && self.view.candidates().any(|p| p.eligible());
        if blocked != self.window_blocked {
            self.window_blocked = blocked;
            self.record(cx, None, Event::WindowBlocked(blocked));
        }
        // Nothing is under way that could bring news: the window is closed, or the peer's subflows have acknowledged
        // all and its connection has not.
        let silent = match self.view.outstanding().is_empty() {
            true => full || self.view.anything_queued() || self.is_shut(),
            false => self.speaks_mptcp() && self.awaits_no_news(),
        };
        if silent && !self.has_admissible() && self.mode != Mode::Opening {
            if self.persist.0 == Instant::MAX {
                self.persist.0 = cx.now + self.persist_interval();
            }
        } else {
            self.persist.0 = Instant::MAX;
        }
    }

    /// No acknowledgment is awaited; or only on failing paths, while others are there and closed windows hold their data back.
    fn awaits_no_news(&self) -> bool {
        let live = |s: &Subflow| s.may_carry() && !s.failing;
        let held_back = || self.subflows.iter().any(live) && self.is_shut();
        self.subflows.iter().all(|s| s.sender.is_empty() || s.failing && held_back())
    }

    /// New data waits only because the peer's windows for the subflows have no room.
    fn is_shut(&self) -> bool {
        !self.view.backlog().is_empty() && self.view.candidates().all(PathView::is_shut)
    }

    fn has_admissible(&self) -> bool {
        self.view.paths().iter().any(|p| p.queued > 0 && self.view.has_admissible(p.id))
    }

    /// A scheduler that waits although nothing will call it again: noted, and put right by sending on the fastest path.
    fn notice_stall(&mut self, cx: &mut Cx<'_>) {
        // What is not acknowledged will be repeated, and that brings news: also what was just found lost.
        let idle = self.subflows.iter().all(|s| s.sender.is_empty());
        let waits = |view: &View| !view.backlog().is_empty() && !view.window_blocked();
        if !idle || !waits(&self.view) || self.has_admissible() || self.wakeup < Instant::MAX {
            self.stalled = false;
            return;
        }
        let Some(fastest) = self.view.fastest_eligible().or(self.view.fastest()).map(|p| p.id) else { return };
        if self.view.path(fastest).is_some_and(|p| p.room() == 0) {
            // Its queue is full of data that the peer's window does not admit.
            self.view.take_back(fastest);
        }
        let mut round = Round::new(&mut self.view, &mut *self.congestion, Cause::Wakeup);
        if round.send_next(fastest) && !self.stalled {
            self.stalled = true;
            self.record(cx, None, Event::Stall);
        }
    }
}
