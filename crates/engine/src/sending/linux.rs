//! A sender that acts as a Linux kernel, for `HostModel::Linux` as `sender_model`.

use super::Sending;
use crate::subflow::Subflow;
use crate::subflow::sender::Occasion;
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
            p.timer = s.sender.kernel_timer(now, occasion, p.timer);
            p.uncleared_bytes = s.sender.nxt() - s.sender.una();
        }
    }

    /// The end of what waits for `s` is less than a segment, and has to wait until the last such is acknowledged.
    ///
    /// Linux 6.18: `tcp_nagle_test`.
    pub(super) fn holds_runt(&self, s: &Subflow) -> bool {
        self.assignment.nagle() && s.has_runt_out() && self.assignment.ends_in_runt(s.id)
    }
}
