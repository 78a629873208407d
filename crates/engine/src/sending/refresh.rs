//! Keeps up to date what the scheduler and congestion control see of the subflows.

use super::Sending;
use super::buffer::greatest_capacity;
use crate::congestion::Window;
use crate::cx::Scope;
use crate::mode::Mode;
use crate::path::{Account, PathPolicy};
use crate::schedule::{Cause, Device, PathView, SchedulerEvent};
use crate::settings::Settings;
use crate::subflow::{Subflow, Subflows};
use anabranch_trace::{Event, PathState, WindowChange};
use anabranch_units::{Duration, PathId};
use anabranch_wire::Segment;

/// Largest payload of a segment of `s`, whose path carries `mss` bytes.
fn payload_limit(settings: &Settings, mode: Mode, s: &Subflow, mss: Option<u32>) -> u32 {
    s.terms.payload_limit(settings, !mode.is_plain()).min(mss.unwrap_or(u32::MAX)).max(1)
}

/// How many subflows deliver and may carry data, and how many may carry data.
fn counts(subflows: &[Subflow]) -> (usize, usize) {
    let able = subflows.iter().filter(|s| s.may_carry());
    (able.clone().filter(|s| !s.failing).count(), able.count())
}

/// Whether a path is usable, the only one, and a backup.
fn usability(s: &Subflow, healthy: usize, able: usize) -> (bool, bool, bool) {
    let usable = s.may_carry() && (!s.failing || healthy == 0);
    (usable, usable && if healthy > 0 { healthy == 1 } else { able == 1 }, s.is_backup())
}

/// Copies the measures of the sender of `s`.
#[inline(always)]
fn measure(p: &mut PathView, s: &Subflow) {
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

/// Copies the `window` that congestion control decides for `s`, as the sender of `s` may use it.
#[inline(always)]
fn decide(p: &mut PathView, s: &Subflow, window: Window) {
    p.cwnd = s.sender.effective_window(window.cwnd);
    p.ssthresh = window.ssthresh;
}

impl Sending {
    /// Both SYNs of `s` are exchanged, and `segment` acknowledges ours: its sender and its window begin.
    pub fn add_path(
        &mut self,
        cx: &Scope<'_>,
        mode: Mode,
        s: &mut Subflow,
        segment: &Segment,
        Account { policy, mss, used }: Account,
    ) {
        if mode.is_plain() {
            self.become_plain();
        }
        self.writable |= !s.join;
        let initial_window = s.begin_sending(segment, &cx.settings().tcp, cx.now);
        let mss = payload_limit(cx.settings(), mode, s, mss);
        let backup = s.is_backup();
        let path = PathView { usable: false, backup, policy, used_bytes: used, ..PathView::new(s.id, mss) };
        if self.congestion.is_rate_based() {
            s.sender.measure_rate();
        }
        self.congestion.on_join(s.id, initial_window);
        if let Some(threshold) = cx.settings().tcp.initial_ssthresh {
            self.congestion.set_threshold(s.id, threshold.packets(path.mss));
        }
        self.assignment.set_path(path);
        self.standing = 0;
        self.assignment.join(s.id, (s.tuple.local.ip().to_canonical(), s.tuple.remote.ip().to_canonical()));
        self.refresh(cx.settings(), s);
    }

    /// The subflow of a path is gone: what it carried alone goes out again elsewhere. Payload bytes that the path has carried;
    /// `None` if it never was established.
    pub fn remove_path(&mut self, id: PathId) -> Option<u64> {
        let used = self.assignment.path(id)?.used_bytes;
        self.assignment.remove_path(id);
        self.congestion.on_leave(id);
        Some(used)
    }

    /// The subflow of a path is removed: the scheduler gets an event.
    pub fn path_down(&mut self, settings: &Settings, subflows: &mut Subflows, id: PathId) {
        self.persist.forget(id);
        self.scheduler.on_event(&SchedulerEvent::PathDown { path: id }, &self.assignment);
        self.refresh_usability(settings, subflows);
        self.ask_for_round(Cause::PathChange(id));
    }

    /// Subflow `i` may carry data from now on.
    pub fn path_up(&mut self, cx: &mut Scope<'_>, mode: Mode, subflows: &mut Subflows, i: usize) {
        let s = &mut subflows[i];
        let id = s.id;
        s.reported = PathState::Established;
        cx.record(Some(id), Event::Path(PathState::Established));
        self.refresh_usability(cx.settings(), subflows);
        self.retire_half_closed(mode, subflows);
        self.relieve_failing(cx.now, subflows);
        self.note_path_up(id);
        self.ask_for_round(Cause::PathChange(id));
    }

    /// The scheduler gets an event: a path may carry data from now on.
    pub(super) fn note_path_up(&mut self, id: PathId) {
        self.assignment.renew_capacity(id);
        self.scheduler.on_event(&SchedulerEvent::PathUp { path: id }, &self.assignment);
    }

    /// Sets the operator's policy for a path. Valid for the next round.
    pub fn set_policy(&mut self, id: PathId, policy: PathPolicy) {
        if let Some(p) = self.assignment.path_mut(id) {
            p.policy = policy;
        }
    }

    /// Segments leave a path with at most `mss` payload bytes from here on, retransmissions too. The congestion window remains as many
    /// packets.
    pub fn set_mss(&mut self, settings: &Settings, mode: Mode, subflows: &mut Subflows, id: PathId, mss: Option<u32>) {
        if let Some(s) = subflows.iter_mut().find(|s| s.id == id) {
            let most = payload_limit(settings, mode, s, mss);
            self.assignment.set_mss(id, most);
            s.sender.cut_to(most);
            self.refresh_measures(s);
        }
    }

    /// A router has dropped a packet on subflow `i` that had more than `mss` payload bytes.
    pub fn on_too_big(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, mss: u32) {
        self.assignment.set_mss(s.id, mss);
        let newly_lost = s.sender.on_too_big(cx.now, mss);
        self.refresh(cx.settings(), s);
        if newly_lost > 0 {
            cx.record(Some(s.id), Event::Lost { packets: newly_lost });
            cx.record(Some(s.id), Event::Recovery(s.sender.phase()));
        }
        self.ask_for_round(Cause::PathChange(s.id));
    }

    /// Sets the contents of the device by which the path leaves.
    pub fn set_device(&mut self, id: PathId, device: Device) {
        if let Some(p) = self.assignment.path_mut(id) {
            p.device = Some(device);
        }
    }

    /// Brings what the scheduler and congestion control see of a subflow up to date.
    pub(super) fn refresh(&mut self, settings: &Settings, s: &Subflow) {
        self.refresh_measures(s);
        self.refresh_window(settings, s);
    }

    /// The part of [`Self::refresh`] that the sender measures.
    pub(super) fn refresh_measures(&mut self, s: &Subflow) {
        if let Some(p) = self.assignment.path_mut(s.id) {
            measure(p, s);
        }
    }

    /// The part of [`Self::refresh`] that congestion control decides. Without a rate of its own the path is paced by what is measured
    /// now, until the next acknowledgment (Linux `tcp_update_pacing_rate`).
    pub(super) fn refresh_window(&mut self, settings: &Settings, s: &Subflow) {
        let window = self.congestion.window(s.id);
        let Some(p) = self.assignment.path_mut(s.id) else { return };
        decide(p, s, window);
        p.pacing = window.pacing;
        if settings.tcp.pacing {
            p.pacing = p.pacing_rate();
        }
        if settings.tcp.autotune {
            self.expand(settings);
        }
    }

    /// Copies the window of `s`, which the sender's own segments change in fast recovery.
    pub(super) fn follow_window(&mut self, s: &Subflow) {
        let window = self.congestion.window(s.id);
        if let Some(p) = self.assignment.path_mut(s.id) {
            decide(p, s, window);
        }
    }

    /// Debug builds: the scheduler's view of each subflow has its present values. A missed change makes the scheduler decide by old ones.
    pub(super) fn compare(&self, settings: &Settings, subflows: &Subflows) {
        let (healthy, able) = counts(subflows);
        for s in subflows.iter() {
            let Some(seen) = self.assignment.path(s.id) else { continue };
            let mut is = *seen;
            (is.usable, is.sole, is.backup) = usability(s, healthy, able);
            measure(&mut is, s);
            let window = self.congestion.window(s.id);
            decide(&mut is, s, window);
            if !settings.tcp.pacing {
                is.pacing = window.pacing;
            }
            debug_assert_eq!(*seen, is, "a change of a subflow was missed");
        }
    }

    /// The send buffer holds twice the windows of all subflows, and never less than before (Linux `tcp_sndbuf_expand`,
    /// `mptcp_update_sndbuf`).
    fn expand(&mut self, settings: &Settings) {
        let least = settings.tcp.initial_window;
        let windows = self.assignment.paths().iter().map(|p| 2 * u64::from(p.cwnd.max(least)) * u64::from(p.mss));
        let wanted = windows.fold(0, u64::saturating_add).min(greatest_capacity(settings));
        if wanted > self.capacity {
            self.capacity = wanted;
            self.wake_writer();
        }
    }

    /// Which paths may be given data. A path that timed out is not, unless there is no other; where only one is left,
    /// a plain window check decides instead of the scheduler. Derived before a round, where it changed, and before a scheduler gets an
    /// event of a path.
    pub fn refresh_usability(&mut self, settings: &Settings, subflows: &mut Subflows) {
        self.standing = subflows.standing();
        let (healthy, able) = counts(subflows);
        let watched = settings.early_rescue && !self.scheduler.waits_for_timeouts() && healthy > 1;
        for i in 0..subflows.len() {
            if subflows[i].sender.is_watched() != watched {
                // No access that changes a subflow, where nothing is to be changed.
                subflows[i].sender.watch(watched);
            }
            let s = &subflows[i];
            let Some(p) = self.assignment.path_mut(s.id) else { continue };
            (p.usable, p.sole, p.backup) = usability(s, healthy, able);
        }
    }

    /// Whether a path is a backup may have changed.
    pub fn on_backup(&mut self, id: PathId) {
        self.ask_for_round(Cause::PathChange(id));
    }

    /// Records the window of a subflow.
    pub(super) fn record_window(&self, cx: &mut Scope<'_>, id: PathId, rtt: Option<Duration>) {
        let Some(p) = self.assignment.path(id) else { return };
        let change = WindowChange {
            cwnd: p.cwnd,
            ssthresh: p.ssthresh,
            in_flight: p.in_flight,
            srtt: p.srtt.unwrap_or(Duration::ZERO),
            rtt,
        };
        cx.record(Some(id), Event::Window(change));
    }
}
