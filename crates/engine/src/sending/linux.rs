//! A sender that acts as a Linux kernel, for `HostModel::Linux` as `sender_model`.

use super::Sending;
use crate::cx::Scope;
use crate::subflow::sender::Occasion;
use crate::subflow::{Subflow, Subflows};
use anabranch_units::Instant;

impl Sending {
    /// Something was sent or acknowledged: the subflow's own timer and its send queue follow, if the sender acts as a kernel.
    #[inline(always)]
    pub(super) fn follow(&mut self, now: Instant, s: &Subflow, occasion: Occasion) {
        if self.assignment.as_linux() {
            self.keep_as_linux(now, s, occasion);
        }
    }

    #[inline(never)]
    fn keep_as_linux(&mut self, now: Instant, s: &Subflow, occasion: Occasion) {
        if let Some(p) = self.assignment.path_mut(s.id) {
            p.timer = s.sender().kernel_timer(now, occasion, p.timer);
            p.uncleared_bytes = s.sender().nxt() - s.sender().una();
        }
    }

    /// A path that times out is given data nevertheless, until the scheduler calls it stale. It is not probed: only its own
    /// retransmissions, whose timeout doubles, show that it is back.
    ///
    /// Linux 6.18: `mptcp_subflow_get_send`, `mptcp_subflow_active`.
    pub(super) fn keeps_silent_paths(&self) -> bool {
        self.assignment.as_linux() && self.scheduler.waits_for_timeouts()
    }

    /// The scheduler called these paths, as [bits](anabranch_units::PathId::bit), stale.
    #[inline(never)]
    pub(super) fn fail_stale(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, stale: u32) {
        // The view has the scheduler's word for it already.
        self.standing = 0;
        for i in 0..subflows.len() {
            if stale & subflows[i].id.bit() != 0 {
                self.fail(cx, subflows, i);
            }
        }
    }

    /// The end of what waits for `s` is less than a segment, and has to wait until the last such is acknowledged.
    ///
    /// Linux 6.18: `tcp_nagle_test`.
    pub(super) fn holds_runt(&self, s: &Subflow) -> bool {
        self.assignment.nagle() && s.has_runt_out() && self.assignment.ends_in_runt(s.id)
    }
}
