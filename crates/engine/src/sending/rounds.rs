//! Rounds: the scheduler's commands are carried out, and what it leaves waiting is watched over.

use super::windows::Windows;
use crate::cx::Scope;
use crate::deadlines::NEVER;
use crate::schedule::{Assignment, Cause, Round, Scheduler, SchedulerEvent, View};
use crate::subflow::Subflow;
use anabranch_trace::{Event, SchedulerName, SendKind};
use anabranch_units::{Instant, PathId};

/// The scheduler, and when and why it is called.
#[derive(Debug)]
pub(crate) struct Rounds {
    scheduler: Box<dyn Scheduler>,
    /// Why a round is to be held.
    due: Option<Cause>,
    /// When the scheduler wants to be called again, as it said in its last round.
    wakeup: Instant,
    /// The application waited for room when the last round was held, and has had no time to write since.
    waited: bool,
    /// The scheduler waited although nothing would have called it again.
    stalled: bool,
    /// Data waits only for the peer's window.
    window_blocked: bool,
    /// The scheduler has a value worth a trace, and what was last recorded of it.
    has_value: bool,
    last_value: Option<i64>,
}

/// The commands of a round that bind no data: paths, as [bits](PathId::bit).
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub penalised: u32,
    pub stale: u32,
}

impl Rounds {
    pub(super) fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            due: None,
            wakeup: NEVER,
            waited: false,
            stalled: false,
            window_blocked: false,
            has_value: scheduler.values().is_some(),
            last_value: None,
            scheduler,
        }
    }

    /// The scheduler of the next round.
    pub(super) fn scheduler(&self) -> &dyn Scheduler {
        &*self.scheduler
    }

    /// Puts another scheduler in place of the present one.
    pub(super) fn change(&mut self, cx: &mut Scope<'_>, name: SchedulerName, scheduler: Box<dyn Scheduler>) {
        self.has_value = scheduler.values().is_some();
        self.scheduler = self.scheduler.give_way_to(scheduler);
        cx.record(None, Event::Scheduler(name));
    }

    /// The scheduler gets an event.
    #[inline(always)]
    pub(super) fn tell(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        self.scheduler.on_event(event, view);
    }

    // ---- the time of a round ----

    /// A round is to be held, for this reason unless there is another one already.
    #[inline(always)]
    pub fn ask(&mut self, cause: Cause) {
        self.due.get_or_insert(cause);
    }

    /// A round is to be held, for this reason and no other.
    #[inline(always)]
    pub(super) fn ask_because_of(&mut self, cause: Cause) {
        self.due = Some(cause);
    }

    /// Why a round is to be held.
    #[inline(always)]
    pub fn due(&self) -> Option<Cause> {
        self.due
    }

    /// Withdraws the requests for rounds since `due` was [`Self::due`].
    pub fn restore(&mut self, due: Option<Cause>) {
        self.due = due;
    }

    /// No round is to be held.
    pub(super) fn withdraw(&mut self) {
        self.due = None;
    }

    /// Makes a round due if the scheduler's wake-up time has come.
    pub(super) fn on_wakeup(&mut self, now: Instant) {
        if self.wakeup <= now {
            self.ask(Cause::Wakeup);
        }
    }

    /// When the scheduler is called again: it was asked to wait with data, not without.
    #[inline(always)]
    pub(super) fn wakeup(&self, view: &View) -> Instant {
        if self.wakeup < NEVER && view.backlog().is_empty() { NEVER } else { self.wakeup }
    }

    /// The application has had no time to write since the last round, in which it waited for room.
    #[inline(always)]
    pub(super) fn found_waiting(&self) -> bool {
        self.waited
    }

    // ---- the round ----

    /// The round that is due begins, for this reason; `None` if none is due.
    #[inline(always)]
    pub(super) fn begin(&mut self) -> Option<Cause> {
        let cause = self.due.take()?;
        // This round answers the wake-up that the scheduler requested in its last one, whether or not a path is left.
        self.wakeup = NEVER;
        Some(cause)
    }

    /// Carries out the commands of a round; `waits`: the application waits for room.
    pub(super) fn hold(&mut self, view: &mut Assignment, windows: &mut Windows, cause: Cause, waits: bool) -> Asked {
        self.waited = waits;
        let alone = lone_path(view).filter(|_| !self.scheduler.serves_lone_path());
        let now = view.now();
        let mut round = Round::new(view, windows.congestion_mut(), cause);
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
                self.wakeup = self.scheduler.next_wakeup().filter(|at| *at > now).unwrap_or(NEVER);
            }
        }
        Asked { penalised: round.penalised(), stale: round.stale() }
    }

    // ---- after a round ----

    /// Records the scheduler's value, if it has one and that has changed.
    #[inline(always)]
    pub(super) fn record_value(&mut self, cx: &mut Scope<'_>) {
        if self.has_value {
            self.record_change(cx);
        }
    }

    fn record_change(&mut self, cx: &mut Scope<'_>) {
        let Some((name, value)) = self.scheduler.values() else { return };
        let micro = libm::round(value * 1e6) as i64;
        if self.last_value.replace(micro) != Some(micro) {
            cx.record(None, Event::SchedulerValue { name, micro });
        }
    }

    /// Data begins or ceases to wait only for the peer's window.
    #[inline(always)]
    pub(super) fn notice_window(&mut self, cx: &mut Scope<'_>, view: &View, full: bool) {
        let blocked = full && view.candidates().any(|p| p.eligible());
        if blocked != self.window_blocked {
            self.window_blocked = blocked;
            cx.record(None, Event::WindowBlocked(blocked));
        }
    }

    /// A scheduler that waits although nothing will call it again: noted, and put right by sending on the fastest path.
    pub(super) fn notice_stall(
        &mut self,
        cx: &mut Scope<'_>,
        view: &mut Assignment,
        windows: &mut Windows,
        subflows: &[Subflow],
    ) {
        // Unacknowledged data, lost data included, will be retransmitted, and its acknowledgment calls the scheduler.
        let idle = subflows.iter().all(|s| s.sender().is_empty());
        let waits = |view: &View| !view.backlog().is_empty() && !view.window_blocked();
        if !idle || !waits(view) || has_admissible(view) || self.wakeup < NEVER {
            self.stalled = false;
            return;
        }
        let Some(fastest) = view.fastest_eligible().or(view.fastest()).map(|p| p.id) else { return };
        if view.path(fastest).is_some_and(|p| p.room() == 0) {
            // Its queue is full of data that the peer's window does not admit.
            view.take_back(fastest);
        }
        let mut round = Round::new(view, windows.congestion_mut(), Cause::Wakeup);
        if round.send_next(fastest) && !self.stalled {
            self.stalled = true;
            cx.record(None, Event::Stall);
        }
    }
}

/// The path that carries everything because it is the only candidate.
pub(super) fn lone_path(view: &View) -> Option<PathId> {
    let mut candidates = view.candidates();
    let first = candidates.next()?;
    candidates.next().is_none().then_some(first.id)
}

/// Some path has data in its queue that the peer's window admits.
pub(super) fn has_admissible(view: &View) -> bool {
    view.paths().iter().any(|p| p.queued > 0 && view.has_admissible(p.id))
}
