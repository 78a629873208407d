//! The sender's policies, applied to data that leaves.

use super::Sending;
use crate::schedule::{Binding, DataRepair, PeerWindow, Queued, SmallSegments};
use crate::subflow::Subflow;
use crate::subflow::sender::Occasion;
use anabranch_trace::SendKind;
use anabranch_units::Instant;

impl Sending {
    /// Something was sent or acknowledged on `s`: the values follow that the scheduler's own timer depends on, if it has one.
    #[inline(always)]
    pub(super) fn follow(&mut self, now: Instant, s: &Subflow, occasion: Occasion) {
        if self.assignment.sender().repair == DataRepair::DataTimer {
            self.follow_timer(now, s, occasion);
        }
    }

    #[inline(never)]
    fn follow_timer(&mut self, now: Instant, s: &Subflow, occasion: Occasion) {
        if let Some(p) = self.assignment.path_mut(s.id) {
            p.timer = s.sender().kernel_timer(now, occasion, p.timer);
            p.uncleared_bytes = s.sender().nxt() - s.sender().una();
        }
    }

    /// The end of what waits for `s` is a small segment, and has to wait until the last such is acknowledged.
    pub(super) fn holds_small(&self, s: &Subflow) -> bool {
        let on_subflow = self.assignment.nagle() && self.assignment.sender().small == SmallSegments::AndSubflow;
        on_subflow && s.has_small_out() && self.assignment.ends_in_runt(s.id)
    }

    /// `queued` is about to leave on `s`, with the kind that it has by then.
    #[inline(never)]
    pub(super) fn hand_over(&self, s: &mut Subflow, queued: Queued) -> Queued {
        let (range, sender) = (queued.range, self.assignment.sender());
        if sender.window == PeerWindow::OfSubflow {
            s.share_window(self.assignment.window_edge().saturating_sub(range.start));
        }
        if sender.small == SmallSegments::AndSubflow && self.assignment.is_runt(s.id, range) {
            s.on_small(s.sender().nxt() + range.len());
        }
        // Data that was made new again may be in another queue still, and leave from there too.
        let again = sender.binding == Binding::Final && queued.kind == SendKind::First;
        let kind = if again && self.assignment.has_left(range) { SendKind::Rescue } else { queued.kind };
        Queued { kind, ..queued }
    }
}
