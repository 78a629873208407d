//! Deadlines of the send side as a whole.

use super::{Peer, Sending};
use crate::cx::Scope;
use crate::deadlines::{Deadlines, NEVER};
use crate::subflow::{Handle, Subflows};
use anabranch_units::Instant;

/// The deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The round at the scheduler's wake-up time.
    Wakeup,
    /// A zero-window probe.
    Persist,
    /// The DATA_FIN again.
    DataFin,
}

/// The answer that has not come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Overdue {
    Nothing,
    /// That of this subflow, to window probes.
    Subflow(Handle),
    /// The first DATA_ACK on this subflow, whose peer answers otherwise.
    DataAck(Handle),
    /// The peer's, to the DATA_FIN.
    Connection,
}

impl Sending {
    /// When something is due.
    #[inline(always)]
    pub fn deadline(&self) -> Instant {
        self.deadlines().next()
    }

    #[inline(always)]
    fn deadlines(&self) -> Deadlines<Due, 3> {
        let (wakeup, data_fin) = if self.stream.is_stopped() {
            (NEVER, NEVER)
        } else {
            (self.rounds.wakeup(&self.assignment), self.stream.data_fin.deadline())
        };
        Deadlines([(Due::Wakeup, wakeup), (Due::Persist, self.persist.deadline()), (Due::DataFin, data_fin)])
    }

    /// Does what is due.
    pub fn on_timers(&mut self, cx: &mut Scope<'_>, peer: Peer, subflows: &mut Subflows) -> Overdue {
        // The scheduler's wake-up time counts, whichever deadline was due.
        self.rounds.on_wakeup(cx.now);
        let (mut last, mut overdue) = (None, Overdue::Nothing);
        while let Some(due) = self.deadlines().due_after(last, cx.now) {
            match due {
                Due::Wakeup => {}
                Due::Persist => overdue = self.probe_window(cx, peer, subflows),
                Due::DataFin if self.repeat_data_fin(cx, peer, subflows) => {}
                Due::DataFin => return Overdue::Connection,
            }
            last = Some(due);
        }
        overdue
    }

    /// The DATA_FIN was not acknowledged in time. False if it was repeated too often.
    fn repeat_data_fin(&mut self, cx: &Scope<'_>, peer: Peer, subflows: &mut Subflows) -> bool {
        let alone = self.all_delivered();
        let Some(repeats) = self.stream.data_fin.on_timer(cx.now, alone) else { return true };
        if peer.mode.is_plain() {
            self.stream.data_fin.hold();
        }
        // RFC 8684 §3.1: a peer that has not got our keys takes no DSS, which leaves no room for them.
        for s in subflows.iter_mut() {
            s.repeat_keys(peer.mode);
        }
        repeats <= cx.settings().tcp.retries
    }
}
