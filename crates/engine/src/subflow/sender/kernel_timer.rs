//! The one timer that a Linux kernel runs for a subflow: a probe's, RACK's or that of the retransmission timeout.

use super::probe::Probe;
use super::{Sender, WORST_DELAYED_ACK};
use crate::deadlines::NEVER;
use anabranch_trace::RecoveryPhase;
use anabranch_units::{Duration, Instant};

/// Least supplement to a probe's two round trips (`TCP_TIMEOUT_MIN_US`).
const SUPPLEMENT: Duration = Duration::from_millis(2);

/// Causes for setting the timer again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Data was acknowledged.
    Acked,
    /// New data was sent.
    Sent,
    /// The first packet was retransmitted.
    Repeated,
    /// An acknowledgment that left the first packet as it is.
    Other,
}

impl Sender {
    /// When that timer expires; `before`: as it was. While nothing is lost it is a probe's, after two round trips, but no later
    /// than the retransmission timeout: after an acknowledgment that is a whole timeout away, after a transmission only what
    /// is left of the first packet's. In recovery an acknowledgment of data, and a retransmission of the first packet, start a
    /// whole timeout; RACK's timer takes its place.
    ///
    /// Linux 6.18: `tcp_schedule_loss_probe`, `tcp_rto_delta_us`, `tcp_rearm_rto`, `tcp_xmit_retransmit_queue`,
    /// `tcp_rack_mark_lost`.
    pub fn kernel_timer(&self, now: Instant, occasion: Occasion, before: Instant) -> Instant {
        let Some(first) = self.board.first() else { return NEVER };
        let rto = self.rtt.rto();
        let probes = self.sack && self.probes && self.phase == RecoveryPhase::Open && self.probe == Probe::Idle;
        if !probes {
            let timeout = match occasion {
                Occasion::Acked | Occasion::Repeated => now + self.timers.backed_off(rto),
                Occasion::Sent | Occasion::Other if before < NEVER => before,
                Occasion::Sent | Occasion::Other => self.timers.retransmission(),
            };
            return self.timers.reorder().min(timeout);
        }
        let supplement = if self.board.outstanding() > 1 { SUPPLEMENT } else { self.rto_min.min(WORST_DELAYED_ACK) };
        let probe = now + self.rtt.srtt().map_or(rto, |srtt| srtt * 2 + supplement);
        match occasion {
            Occasion::Acked => probe.min(now + rto),
            Occasion::Sent => probe.min(first.sent_at + rto),
            Occasion::Repeated | Occasion::Other => before,
        }
    }
}
