//! Paths come, go, and may be given data or not.

use super::Sending;
use super::buffer::greatest_capacity;
use super::failing::SilentPaths;
use crate::account::Account;
use crate::cx::Scope;
use crate::schedule::{Cause, Device, Numbering, PathPolicy, PathView, SchedulerEvent};
use crate::settings::Settings;
use crate::subflow::{Lent, Subflow, Subflows};
use anabranch_trace::{Event, PathState, WindowChange};
use anabranch_units::{Duration, PathId, SeqNumber};
use anabranch_wire::Segment;

/// Largest payload of a segment of `s`, whose path carries `mss` bytes.
fn payload_limit(settings: &Settings, numbering: Numbering, s: &Subflow, mss: Option<u32>) -> u32 {
    s.terms.payload_limit(settings, numbering == Numbering::Data).min(mss.unwrap_or(u32::MAX)).max(1)
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

impl Sending {
    /// Both SYNs of `s` are exchanged, and `segment` acknowledges ours: its sender and its window begin.
    pub fn add_path(
        &mut self,
        cx: &Scope<'_>,
        s: &mut Subflow,
        segment: &Segment,
        Account { policy, mss, used }: Account,
    ) {
        self.stream.writable |= !s.join;
        let initial_window = s.begin_sending(segment, &cx.settings().tcp, cx.now);
        let mss = payload_limit(cx.settings(), self.assignment.numbering(), s, mss);
        let backup = s.is_backup();
        let path = PathView { usable: false, backup, policy, used_bytes: used, ..PathView::new(s.id, mss) };
        self.assignment.set_path(s.shown(path));
        self.standing = 0;
        self.assignment.join(s.id, (s.tuple.local.ip().to_canonical(), s.tuple.remote.ip().to_canonical()));
        if self.windows.is_rate_based() {
            s.measure_rate();
        }
        let threshold = cx.settings().tcp.initial_ssthresh.map(|threshold| threshold.packets(mss));
        self.windows.join(&mut self.assignment, s, initial_window, threshold);
        if cx.settings().tcp.autotune {
            self.expand(cx.settings());
        }
    }

    /// The subflow of a path is gone: what it carried alone goes out again elsewhere. Payload bytes that the path has carried;
    /// `None` if it never was established.
    pub fn remove_path(&mut self, id: PathId) -> Option<u64> {
        let used = self.assignment.path(id)?.used_bytes;
        self.assignment.remove_path(id);
        self.windows.leave(id);
        Some(used)
    }

    /// The subflow of a path is removed: the scheduler gets an event.
    pub fn path_down(&mut self, subflows: &mut Subflows, id: PathId) {
        self.persist.forget(id);
        self.judge_paths(subflows);
        self.rounds.tell(&SchedulerEvent::PathDown { path: id }, &self.assignment);
        self.rounds.ask(Cause::PathChange(id));
    }

    /// `s` may carry data from now on.
    pub fn path_up(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        let id = s.id;
        s.came_up();
        self.retire_half_closed(s.all_mut());
        self.came_up(cx, s.all_mut(), id);
        self.rounds.ask(Cause::PathChange(id));
    }

    /// A path may carry data from now on: it takes over what failing ones have not delivered, and the scheduler gets an event.
    pub(super) fn came_up(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, id: PathId) {
        cx.record(Some(id), Event::Path(PathState::Established));
        self.judge_paths(subflows);
        self.relieve_failing(cx.now, subflows);
        self.assignment.renew_capacity(id);
        self.rounds.tell(&SchedulerEvent::PathUp { path: id }, &self.assignment);
    }

    /// Sets the operator's policy for a path. Valid for the next round.
    pub fn set_policy(&mut self, id: PathId, policy: PathPolicy) {
        if let Some(p) = self.assignment.path_mut(id) {
            p.policy = policy;
        }
    }

    /// Segments leave a path with at most `mss` payload bytes from here on, retransmissions too. The congestion window remains as many
    /// packets.
    pub fn set_mss(&mut self, settings: &Settings, subflows: &mut Subflows, id: PathId, mss: Option<u32>) {
        if let Some(s) = subflows.iter_mut().find(|s| s.id == id) {
            let most = payload_limit(settings, self.assignment.numbering(), s, mss);
            s.cut_to(most, &mut self.assignment);
        }
    }

    /// A router has dropped a packet of a path, of this sequence number, and carries none above `mtu` bytes. Most payload bytes of the path's
    /// segments from now on; `None` if that changes nothing.
    pub fn on_too_big(
        &mut self,
        cx: &mut Scope<'_>,
        subflows: &mut Subflows,
        id: PathId,
        (seq, mtu): (SeqNumber, u32),
    ) -> Option<u32> {
        let s = subflows.iter_mut().find(|s| s.id == id)?;
        let most = s.payload_after(seq, mtu, cx.settings(), !self.is_plain())?;
        let newly_lost = s.on_too_big(cx.now, most, &mut self.assignment);
        if newly_lost > 0 {
            cx.record(Some(id), Event::Lost { packets: newly_lost });
            cx.record(Some(id), Event::Recovery(s.sender().phase()));
        }
        self.rounds.ask(Cause::PathChange(id));
        Some(most)
    }

    /// Sets the contents of the device by which the path leaves.
    pub fn set_device(&mut self, id: PathId, device: Device) {
        if let Some(p) = self.assignment.path_mut(id) {
            p.device = Some(device);
        }
    }

    /// Debug builds: the scheduler's view of each subflow has its present values.
    pub(super) fn compare(&self, subflows: &Subflows) {
        let (healthy, able) = counts(subflows);
        for s in subflows.iter() {
            let Some(seen) = self.assignment.path(s.id) else { continue };
            let mut is = s.shown(*seen);
            (is.usable, is.sole, is.backup) = usability(s, healthy, able);
            debug_assert_eq!(*seen, is, "a change of a subflow was missed");
            debug_assert!(self.windows.agrees_with(s), "a change of a window was missed");
        }
    }

    /// The send buffer holds twice the windows of all subflows, and never less than before (Linux `tcp_sndbuf_expand`,
    /// `mptcp_update_sndbuf`).
    pub(super) fn expand(&mut self, settings: &Settings) {
        let least = settings.tcp.initial_window;
        let windows = self.assignment.paths().iter().map(|p| 2 * u64::from(p.cwnd.max(least)) * u64::from(p.mss));
        let wanted = windows.fold(0, u64::saturating_add).min(greatest_capacity(settings));
        if self.stream.widen(wanted) {
            self.wake_writer();
        }
    }

    /// Which paths may be given data, where that may have changed. A path that timed out may not, unless there is no other; where only one is
    /// left, a plain window check decides instead of the scheduler. Called before a round, and before a scheduler gets an event of a path.
    pub(super) fn judge_paths(&mut self, subflows: &mut Subflows) {
        let standing = subflows.standing();
        if standing != self.standing {
            self.standing = standing;
            self.judge_anew(subflows);
        }
    }

    #[inline(never)]
    fn judge_anew(&mut self, subflows: &mut Subflows) {
        let (healthy, able) = counts(subflows);
        let watched = self.silent == SilentPaths::RescuedEarly && healthy > 1;
        subflows.those_mut(|s| s.sender().is_watched() != watched).for_each(|s| s.watch(watched));
        for s in subflows.iter() {
            let Some(p) = self.assignment.path_mut(s.id) else { continue };
            (p.usable, p.sole, p.backup) = usability(s, healthy, able);
        }
    }

    /// Whether a path is a backup may have changed.
    pub fn on_backup(&mut self, id: PathId) {
        self.rounds.ask(Cause::PathChange(id));
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
