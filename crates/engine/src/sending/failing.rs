//! Timers of a subflow's sender, and paths that fall silent or time out: others carry on for them, and they are probed.

use super::Sending;
use super::rounds::lone_path;
use crate::congestion::Loss;
use crate::cx::Scope;
use crate::schedule::{Cause, DataRepair, Scheduler, SchedulerEvent, SenderPolicy};
use crate::settings::Settings;
use crate::subflow::sender::Fired;
use crate::subflow::{Lent, State, Subflow, Subflows};
use anabranch_trace::{Event, PathState};
use anabranch_units::{Duration, Instant, Side};

/// A path that timed out is tried at least this often while others carry the data: this bounds how long a path that
/// came back stays unused.
const FAILING_RTO_MAX: Duration = Duration::from_secs(2);

/// After so many timeouts in a row the size of the segments may be the reason (RFC 1122 §4.2.3.5, R1).
const BLACK_HOLE_TIMEOUTS: u32 = 3;

/// When a silent path is given up for new data, and its data is retransmitted elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilentPaths {
    /// After about two round trips of silence, if another path delivers meanwhile; at a timeout in any case.
    RescuedEarly,
    /// At a timeout.
    RescuedOnTimeout,
    /// When the scheduler calls it stale. It is not probed: only its own retransmissions, whose timeout doubles, show that it is back.
    ///
    /// Linux 6.18: `mptcp_subflow_get_send`, `mptcp_subflow_active`.
    KeptUntilStale,
}

impl SilentPaths {
    /// As `settings` say, unless the scheduler wants it otherwise.
    pub fn of(settings: &Settings, scheduler: &dyn Scheduler) -> Self {
        match (scheduler.waits_for_timeouts(), SenderPolicy::from(settings.sender_model).repair) {
            (false, _) if settings.early_rescue => Self::RescuedEarly,
            (true, DataRepair::DataTimer) => Self::KeptUntilStale,
            _ => Self::RescuedOnTimeout,
        }
    }
}

impl Sending {
    /// A timer of the sender of `s` is due. False if the subflow has been silent for too long, and is to be given up.
    pub fn on_sender_timer(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) -> bool {
        let id = s.id;
        match s.on_sender_timer(cx.now, &mut self.assignment) {
            Fired::Nothing => {}
            Fired::ReorderTimer { newly_lost, change } => {
                self.on_change(cx, s, change, newly_lost);
                self.record_window(cx, id, None);
                self.rounds.ask(Cause::Ack(id));
            }
            Fired::Probe => {
                s.probe_tail();
                // RFC 8985 §7.3: new data if there is some. Where paths can be chosen, that is what the scheduler has bound.
                if lone_path(&self.assignment) == Some(id) && self.assignment.path(id).is_some_and(|p| p.queued == 0) {
                    self.assignment.bind_probe(id);
                }
                cx.record(Some(id), Event::TailLossProbe);
                self.rounds.ask(Cause::Ack(id));
            }
            Fired::Silence => self.on_silence(cx, s),
            Fired::Timeout { n, newly_lost, again } => {
                cx.record(Some(id), Event::Timeout { n });
                if newly_lost > 0 {
                    cx.record(Some(id), Event::Lost { packets: newly_lost });
                }
                return self.on_timeout(cx, s, n, again);
            }
        }
        true
    }

    /// A path has acknowledged nothing for longer than usual. While another one delivers, that is no pause of the peer's:
    /// its data goes out again there before the retransmission timer fires, and new data keeps off it.
    fn on_silence(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        let Some(patience) = s.sender().patience().filter(|_| !s.failing && !self.is_plain()) else { return };
        if cx.now.since(s.last_heard) < patience {
            // It speaks, only the first packet is not acknowledged: loss recovery's business.
            return s.await_news();
        }
        let (id, heard) = (s.id, s.last_heard);
        // Segments that left the peer before this path fell silent prove nothing: the peer, or all its paths, may have paused.
        let one_way = |o: &Subflow| o.sender().rtt().srtt().unwrap_or_default() / 2;
        let delivers = |o: &Subflow| o.sender().is_empty() || o.last_heard > heard + one_way(o);
        if s.others().any(|o| o.may_carry() && !o.failing && delivers(o)) {
            self.fail(cx, s);
            self.relieve(cx.now, s);
            self.rounds.ask_because_of(Cause::PathChange(id));
        } else {
            s.look_again(cx.now + patience / 2);
        }
    }

    /// A path is not to be given new data until it delivers again.
    pub(super) fn fail(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        if s.fell_silent() {
            cx.record(Some(s.id), Event::Path(PathState::Failing));
        }
        self.judge_paths(s.all_mut());
    }

    /// The scheduler called these paths, as [bits](anabranch_units::PathId::bit), stale.
    #[inline(never)]
    pub(super) fn fail_stale(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, stale: u32) {
        // The view has the scheduler's word for it already.
        self.standing = 0;
        for n in 0..subflows.len() {
            let s = subflows.nth(n);
            if stale & subflows[s].id.bit() != 0 {
                self.fail(cx, &mut subflows.lend(s));
            }
        }
    }

    /// The retransmission timer fired for the `n`th time in a row (RFC 6298 §5.4-5.7). False if that is too often.
    fn on_timeout(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>, n: u32, again: bool) -> bool {
        let id = s.id;
        let others = s.others().any(|o| o.may_carry() && !o.failing);
        // A server cannot join again, and its client may not know that the path was lost: the server keeps trying.
        if n > cx.settings().tcp.retries && !s.is_answered_beyond_window() && !(others && cx.side() == Side::Server) {
            return false;
        }
        self.windows.on_loss(&mut self.assignment, s, Loss::Timeout { again });
        cx.record(Some(id), Event::Recovery(s.sender().phase()));
        let nxt = s.sender().nxt();
        s.ecn.on_timeout(nxt, again);
        if self.silent != SilentPaths::KeptUntilStale {
            self.fail(cx, s);
            s.limit_rto(cx.settings().tcp.rto_max);
            if others {
                self.relieve(cx.now, s);
            }
        }
        if cx.settings().tcp.mtu_probing && n > BLACK_HOLE_TIMEOUTS {
            s.make_smaller(cx.now, &mut self.assignment);
        }
        self.record_window(cx, id, None);
        self.rounds.tell(&SchedulerEvent::Timeout { path: id }, &self.assignment);
        self.rounds.ask_because_of(Cause::Timeout(id));
        true
    }

    /// RFC 8684 §3.3.3: a FIN ends one direction of its subflow. In the other, data may flow until our DATA_FIN is
    /// acknowledged. If another subflow is open both ways, a FIN answers the peer's: the peer no longer uses this subflow,
    /// and Linux resets it if data comes after its FIN.
    pub fn retire_half_closed(&mut self, subflows: &mut Subflows) {
        let open = |s: &Subflow| s.may_carry() && s.state == State::Established && !s.failing;
        if self.is_plain() || !subflows.iter().any(open) {
            return;
        }
        for s in subflows.those_mut(|s| s.state == State::CloseWait && !s.fin.wanted) {
            s.finish();
            self.assignment.take_back(s.id);
            self.rounds.ask(Cause::PathChange(s.id));
        }
    }

    /// Data that failing paths have not delivered may go out again over a path that works, now that there is one.
    pub(super) fn relieve_failing(&mut self, now: Instant, subflows: &mut Subflows) {
        if self.silent == SilentPaths::KeptUntilStale {
            return;
        }
        for s in subflows.those_mut(|s| s.failing) {
            self.relieve(now, s);
        }
    }

    /// Others carry on for a failing path; it is tried again often enough to notice its return. Where the round trip is not known,
    /// the timeout backs off until it is longer (RFC 6298 §5.5): else the path would be given up within a long round trip.
    fn relieve(&mut self, now: Instant, s: &mut Subflow) {
        s.probe_soon(now);
        if s.sender().rtt().srtt().is_some() {
            s.limit_rto(FAILING_RTO_MAX);
        }
        self.assignment.unbind(s.id);
        self.assignment.strand(s.id);
    }
}
