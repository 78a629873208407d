//! Rounds: the scheduler's commands are carried out, and what it leaves waiting is watched over.

use super::Sending;
use super::failing::SilentPaths;
use crate::cx::Scope;
use crate::deadlines::NEVER;
use crate::schedule::{Cause, PathView, Round, Scheduler, SchedulerEvent, View};
use crate::subflow::{Subflow, Subflows};
use anabranch_trace::{Event, SchedulerName, SendKind};
use anabranch_units::{Instant, PathId, RangeSet};

/// State that outlives a round.
#[derive(Debug)]
pub(super) struct Rounds {
    /// When the scheduler wants to be called again, as it said in its last round.
    wakeup: Instant,
    /// The scheduler waited although nothing would have called it again.
    stalled: bool,
    /// Data waits only for the peer's window.
    window_blocked: bool,
    /// The scheduler has a value worth a trace, and what was last recorded of it.
    has_value: bool,
    last_value: Option<i64>,
}

impl Rounds {
    pub fn new(scheduler: &dyn Scheduler) -> Self {
        Self {
            wakeup: NEVER,
            stalled: false,
            window_blocked: false,
            has_value: scheduler.values().is_some(),
            last_value: None,
        }
    }

    /// When the scheduler is called again: it was asked to wait with data, not without.
    #[inline(always)]
    pub fn wakeup_for(&self, backlog: &RangeSet) -> Instant {
        if self.wakeup < NEVER && backlog.is_empty() { NEVER } else { self.wakeup }
    }
}

impl Sending {
    /// Makes a round due if the scheduler's wake-up time has come.
    pub(super) fn on_wakeup(&mut self, now: Instant) {
        if self.rounds.wakeup <= now {
            self.ask_for_round(Cause::Wakeup);
        }
    }

    /// Puts another scheduler in place of the present one. What that one bound and did not send is bound again.
    pub fn set_scheduler(
        &mut self,
        cx: &mut Scope<'_>,
        subflows: &mut Subflows,
        name: SchedulerName,
        scheduler: Box<dyn Scheduler>,
    ) {
        if self.stream.is_stopped() {
            return;
        }
        self.assignment.take_all_back();
        self.rounds.has_value = scheduler.values().is_some();
        self.scheduler = self.scheduler.give_way_to(scheduler);
        self.assignment.measure_capacity(self.scheduler.measures_capacity());
        cx.record(None, Event::Scheduler(name));
        self.silent = SilentPaths::of(cx.settings(), &*self.scheduler);
        self.standing = 0;
        self.judge_paths(subflows);
        for path in self.assignment.paths().iter().filter(|path| path.usable) {
            self.scheduler.on_event(&SchedulerEvent::PathUp { path: path.id }, &self.assignment);
        }
        self.ask_for_round(Cause::Written);
    }

    /// Holds the round that is due. False if there is no path to send on.
    #[inline(never)]
    pub fn hold_round(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows) -> bool {
        let Some(cause) = self.due.take() else { return false };
        // This round answers the wake-up that the scheduler requested in its last one, whether or not a path is left.
        self.rounds.wakeup = NEVER;
        if self.stream.is_stopped() || self.assignment.paths().is_empty() {
            self.persist.disarm();
            return false;
        }
        self.judge_paths(subflows);
        if cfg!(debug_assertions) {
            self.compare(subflows);
        }
        self.assignment.set_now(cx.now);
        self.waited = self.stream.is_full();
        if cx.settings().tcp.idle_restart && !self.assignment.backlog().is_empty() {
            self.restart_idle(cx, subflows);
        }
        self.assignment.weigh();
        self.assignment.gather();
        let (penalised, stale) = self.command(cx, cause);
        if penalised != 0 {
            self.record_penalties(cx, subflows, penalised);
        }
        if stale != 0 {
            self.fail_stale(cx, subflows, stale);
        }
        if self.rounds.has_value {
            self.record_value(cx);
        }
        self.notice_window(cx, subflows);
        self.notice_stall(cx, subflows);
        self.assignment.contribute();
        true
    }

    /// Carries out the commands of a round. Returns the paths that are penalised, and those that are stale.
    fn command(&mut self, cx: &Scope<'_>, cause: Cause) -> (u32, u32) {
        let alone = self.lone_path().filter(|_| !self.scheduler.serves_lone_path());
        let mut round = Round::new(&mut self.assignment, self.windows.congestion_mut(), cause);
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
                round.fill(id);
            }
            None => {
                if !round.rescue().is_empty() {
                    self.scheduler.rescue(&mut round);
                }
                self.scheduler.schedule(&mut round);
                // A time that is over would call it again and again without end.
                self.rounds.wakeup = self.scheduler.next_wakeup().filter(|at| *at > cx.now).unwrap_or(NEVER);
            }
        }
        (round.penalised(), round.stale())
    }

    fn record_penalties(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, penalised: u32) {
        for s in subflows.those_mut(|s| penalised & s.id.bit() != 0) {
            cx.record(Some(s.id), Event::Penalised);
            self.windows.penalised(&mut self.assignment, s);
            self.record_window(cx, s.id, None);
        }
    }

    fn record_value(&mut self, cx: &mut Scope<'_>) {
        let Some((name, value)) = self.scheduler.values() else { return };
        let micro = libm::round(value * 1e6) as i64;
        if self.rounds.last_value.replace(micro) != Some(micro) {
            cx.record(None, Event::SchedulerValue { name, micro });
        }
    }

    /// The path that carries everything because it is the only candidate.
    pub(super) fn lone_path(&self) -> Option<PathId> {
        let mut candidates = self.assignment.candidates();
        let first = candidates.next()?;
        candidates.next().is_none().then_some(first.id)
    }

    /// RFC 2861: a subflow that has been idle longer than its RTO starts again from the restart window.
    fn restart_idle(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows) {
        for i in 0..subflows.len() {
            let s = &subflows[i];
            if s.idle_done || !s.sender().is_empty() {
                continue;
            }
            let Some(last) = s.last_sent else { continue };
            let idle = cx.now.since(last);
            let rto = s.sender().rtt().rto();
            if idle <= rto || !s.may_carry() {
                continue;
            }
            let s = &mut subflows[i];
            s.note_restart();
            if self.windows.on_idle(&mut self.assignment, s, idle, rto) {
                cx.record(Some(s.id), Event::IdleRestart);
                self.record_window(cx, s.id, None);
            }
        }
    }

    /// Data begins or ceases to wait only for the peer's window.
    fn notice_window(&mut self, cx: &mut Scope<'_>, subflows: &[Subflow]) {
        let full = self.assignment.window_blocked();
        let blocked = full && self.assignment.candidates().any(|p| p.eligible());
        if blocked != self.rounds.window_blocked {
            self.rounds.window_blocked = blocked;
            cx.record(None, Event::WindowBlocked(blocked));
        }
        // No awaited answer can open the window or bring a DATA_ACK: the window is closed, or the peer's subflows have
        // acknowledged all data and its connection has not.
        let silent = match self.assignment.outstanding().is_empty() {
            true => full || self.assignment.anything_queued() || self.is_shut(),
            false => !self.is_plain() && self.awaits_no_news(subflows),
        };
        let waits = silent && !self.has_admissible();
        self.persist.arm(cx, &self.assignment, waits);
    }

    /// No acknowledgment is awaited; or only on failing paths, while others are there and closed windows hold their data back.
    fn awaits_no_news(&self, subflows: &[Subflow]) -> bool {
        let live = |s: &Subflow| s.may_carry() && !s.failing;
        let held_back = || subflows.iter().any(live) && (self.is_shut() || self.assignment.anything_queued());
        subflows.iter().all(|s| s.sender().is_empty() || s.failing && held_back())
    }

    /// New data waits only because the peer's windows for the subflows have no room.
    fn is_shut(&self) -> bool {
        !self.assignment.backlog().is_empty() && self.assignment.candidates().all(PathView::is_shut)
    }

    fn has_admissible(&self) -> bool {
        self.assignment.paths().iter().any(|p| p.queued > 0 && self.assignment.has_admissible(p.id))
    }

    /// A scheduler that waits although nothing will call it again: noted, and put right by sending on the fastest path.
    fn notice_stall(&mut self, cx: &mut Scope<'_>, subflows: &[Subflow]) {
        // Unacknowledged data, lost data included, will be retransmitted, and its acknowledgment calls the scheduler.
        let idle = subflows.iter().all(|s| s.sender().is_empty());
        let waits = |view: &View| !view.backlog().is_empty() && !view.window_blocked();
        if !idle || !waits(&self.assignment) || self.has_admissible() || self.rounds.wakeup < NEVER {
            self.rounds.stalled = false;
            return;
        }
        let view = self.view();
        let Some(fastest) = view.fastest_eligible().or(view.fastest()).map(|p| p.id) else { return };
        if view.path(fastest).is_some_and(|p| p.room() == 0) {
            // Its queue is full of data that the peer's window does not admit.
            self.assignment.take_back(fastest);
        }
        let mut round = Round::new(&mut self.assignment, self.windows.congestion_mut(), Cause::Wakeup);
        if round.send_next(fastest) && !self.rounds.stalled {
            self.rounds.stalled = true;
            cx.record(None, Event::Stall);
        }
    }
}
