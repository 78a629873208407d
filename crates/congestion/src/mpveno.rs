//! MPVeno: LIA's linked increases with Veno's loss differentiation.

use crate::flows::{Flow, Flows};
use crate::lia;
use crate::linked::{Linked, Rule};
use crate::veno::{BETA, Backlog};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "mpveno",
    aliases: &[],
    about: "LIA's linked increases with Veno's distinction between random loss and congestion",
    page: PAGE,
    parameters: &[BETA.parameter],
    build: |parameters| Box::new(Linked::new(MpVeno { beta: BETA.of(parameters) })),
};

const PAGE: &str = "\
## Idea
LIA limits the joint growth of the windows; Veno decides the decrease after a loss: a fifth where no queue explains it.

## Rule
alpha and W as in lia, N_r as in veno.
Congestion avoidance on r, per acknowledged packet: w_r += g min(alpha / W, 1 / w_r), g = 1 if N_r < beta, else 1/2.
Loss or ECN mark on r, once per episode: ssthresh = floor(4 w_r / 5) if N_r < beta, else floor(w_r / 2), at least 2.
Retransmission timeout: the same ssthresh, w_r = 1. Slow start on each subflow as Reno. One subflow alone is Veno.

## When it helps
Where LIA helps, and losses are random.

## When it hurts
With shallow queues it takes more than LIA, because every loss looks random. LIA's drawbacks apply too.

## Departures
The coupling is ours: the papers that use MPVeno describe it (Veno in Multipath TCP, fair to one TCP) without its formula;
LIA's is the standard's. alpha is kept and computed again as in lia.

## References
Named in comparisons of multipath congestion controls for wireless paths; RFC 6356; C. P. Fu, S. C. Liew, \"TCP Veno\", IEEE
JSAC 21(2), 2003.
";

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct MpVeno {
    beta: f64,
}

impl Rule for MpVeno {
    /// LIA's gain.
    type Sums = f64;
    type State = Backlog;

    fn sums(&self, flows: &Flows<Backlog>, paths: &[PathView]) -> f64 {
        lia::gain(flows, paths)
    }

    fn increase(&self, sums: &f64, flow: &Flow<Backlog>, path: &PathView) -> f64 {
        flow.state.gain(&flow.window, self.beta) * lia::increase(*sums, flow, path)
    }

    fn ssthresh(&self, _sums: &f64, flow: &Flow<Backlog>, _path: &PathView) -> f64 {
        flow.state.remains(&flow.window, self.beta)
    }

    fn observe(state: &mut Backlog, ack: &Acked) {
        state.on_ack(ack);
    }

    fn forget(state: &mut Backlog) {
        *state = Backlog::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::tests::close;
    use crate::mveno::tests::outcome;

    #[test]
    fn vectors() {
        let (increases, left) = outcome(MpVeno { beta: 3.0 }, false);
        close(&increases, &[0.025, 0.025]);
        close(&left, &[8.0, 16.0]);
        let (increases, left) = outcome(MpVeno { beta: 3.0 }, true);
        close(&increases, &[0.0125, 0.025]);
        close(&left, &[5.0, 16.0]);
    }
}
