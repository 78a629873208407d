//! A round is held: what precedes the scheduler's commands, and what follows from them.

use super::Sending;
use super::failing::SilentPaths;
use super::rounds::Asked;
use crate::cx::Scope;
use crate::schedule::{Cause, Scheduler, SchedulerEvent};
use crate::subflow::Subflows;
use anabranch_trace::{Event, SchedulerName};

impl Sending {
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
        self.rounds.change(cx, name, scheduler);
        self.assignment.measure_capacity(self.rounds.scheduler().measures_capacity());
        self.silent = SilentPaths::of(cx.settings(), self.rounds.scheduler());
        self.standing = 0;
        self.judge_paths(subflows);
        for path in self.assignment.paths().iter().filter(|path| path.usable) {
            self.rounds.tell(&SchedulerEvent::PathUp { path: path.id }, &self.assignment);
        }
        self.rounds.ask(Cause::Written);
    }

    /// Holds the round that is due. False if none is, or there is no path to send on.
    #[inline(always)]
    pub fn hold_round(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows) -> bool {
        // Nearly always none is due: found out without a change.
        self.rounds.due().is_some() && self.hold(cx, subflows)
    }

    #[inline(never)]
    fn hold(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows) -> bool {
        let Some(cause) = self.rounds.begin() else { return false };
        if self.stream.is_stopped() || self.assignment.paths().is_empty() {
            self.persist.disarm();
            return false;
        }
        self.judge_paths(subflows);
        if cfg!(debug_assertions) {
            self.compare(subflows);
        }
        self.assignment.set_now(cx.now);
        if cx.settings().tcp.idle_restart && !self.assignment.backlog().is_empty() {
            self.restart_idle(cx, subflows);
        }
        self.assignment.weigh();
        self.assignment.gather();
        let waits = self.stream.is_full();
        let Asked { penalised, stale } = self.rounds.hold(&mut self.assignment, &mut self.windows, cause, waits);
        if penalised != 0 {
            self.record_penalties(cx, subflows, penalised);
        }
        if stale != 0 {
            self.fail_stale(cx, subflows, stale);
        }
        self.rounds.record_value(cx);
        let full = self.assignment.window_blocked();
        self.rounds.notice_window(cx, &self.assignment, full);
        self.watch_window(cx, subflows, full);
        self.rounds.notice_stall(cx, &mut self.assignment, &mut self.windows, subflows);
        self.assignment.contribute();
        true
    }

    fn record_penalties(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, penalised: u32) {
        for s in subflows.those_mut(|s| penalised & s.id.bit() != 0) {
            cx.record(Some(s.id), Event::Penalised);
            self.windows.penalised(&mut self.assignment, s);
            self.record_window(cx, s.id, None);
        }
    }

    /// RFC 2861: a subflow that has been idle longer than its RTO starts again from the restart window.
    fn restart_idle(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows) {
        let now = cx.now;
        for s in subflows.those_mut(|s| s.idle_for(now).is_some()) {
            let Some(idle) = s.idle_for(now) else { continue };
            s.note_restart();
            let rto = s.sender().rtt().rto();
            if self.windows.on_idle(&mut self.assignment, s, idle, rto) {
                cx.record(Some(s.id), Event::IdleRestart);
                self.record_window(cx, s.id, None);
            }
        }
    }
}
