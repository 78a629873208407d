//! mVeno: Veno on each subflow, weighted by the subflow's share of the rate.

use crate::coupled::{measured, rtt, window_bytes};
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use crate::veno::{BETA, Backlog};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "mveno",
    aliases: &[],
    about: "Veno weighted by each subflow's share of the rate: one TCP's share, and loss differentiation",
    page: PAGE,
    parameters: &[BETA.parameter],
    build: |parameters| Box::new(Linked::new(WeightedVeno { beta: BETA.of(parameters) })),
};

const PAGE: &str = "\
## Idea
Keep Veno's distinction between random loss and congestion on each subflow, and weight the increases, so that all
subflows together take one TCP's rate.

## Rule
x_s = w_s / T_s, T = smoothed RTT, over subflows with an RTT sample; delta_r = (x_r / sum of x_s)^2; N_r as in veno.
Congestion avoidance on r, per acknowledged packet: w_r += g delta_r / w_r, g = 1 if N_r < beta, else 1/2.
Loss or ECN mark on r, once per episode: ssthresh = floor(4 w_r / 5) if N_r < beta, else floor(w_r / 2), at least 2.
Retransmission timeout: the same ssthresh, w_r = 1. Slow start on each subflow as Reno. One subflow alone is Veno.

## When it helps
Over several wireless paths with random loss, where Reno's halving wastes capacity.

## When it hurts
A subflow with a small share grows with the square of it: a path that has become good is used late.

## Departures
The weights are ours: the papers that use mVeno describe it (Veno per subflow, coupled to be fair to one TCP) without its
formula. With equal round trips and losses the rates of all subflows add up to one Veno's.

## References
Named in comparisons of multipath congestion controls for wireless paths; C. P. Fu, S. C. Liew, \"TCP Veno\", IEEE JSAC
21(2), 2003.
";

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct WeightedVeno {
    beta: f64,
}

fn rate<T>(flow: &Flow<T>, path: &PathView) -> f64 {
    window_bytes(flow, path) / rtt(path)
}

impl Rule for WeightedVeno {
    /// The rate of all subflows in bytes per second.
    type Sums = f64;
    type State = Backlog;
    const LASTING: bool = false;

    fn sums(&self, flows: &Flows<Backlog>, paths: &[PathView]) -> f64 {
        measured(flows, paths).map(|(flow, path)| rate(flow, path)).sum()
    }

    fn increase(&self, sums: &f64, flow: &Flow<Backlog>, path: &PathView) -> f64 {
        let share = rate(flow, path) / sums;
        flow.state.gain(&flow.window, self.beta) * share * share / f64::from(flow.window.cwnd())
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
pub(crate) mod tests {
    use super::*;
    use crate::flows::view_of;
    use crate::linked::tests::close;
    use crate::veno::tests::backlog;
    use anabranch_units::PathId;

    /// The increases of two subflows with windows of 10 and 20 and round trips of 100 and 200 ms under `rule`, and
    /// their windows after a loss; on the first, rounds of 100 ms and then of 110 or 200 ms were measured.
    pub(crate) fn outcome<R: Rule<State = Backlog>>(rule: R, queued: bool) -> ([f64; 2], [f64; 2]) {
        let state = |i| backlog(100, if i == 0 && queued { 200 } else { 100 });
        let (flows, views) = crate::coupled::tests::connection(&[(10, 100, 1400), (20, 200, 1400)], state);
        let sums = rule.sums(&flows, &views);
        let both = [0, 1].map(|id| {
            let id = PathId(id);
            let (flow, path) = (flows.get(id).expect("joined"), view_of(&views, id).expect("shown"));
            (rule.increase(&sums, flow, path), rule.ssthresh(&sums, flow, path))
        });
        (both.map(|b| b.0), both.map(|b| b.1))
    }

    #[test]
    fn vectors() {
        let (increases, left) = outcome(WeightedVeno { beta: 3.0 }, false);
        close(&increases, &[0.025, 0.0125]);
        close(&left, &[8.0, 16.0]);
        // N = 5 on the first: half the increase, half the window.
        let (increases, left) = outcome(WeightedVeno { beta: 3.0 }, true);
        close(&increases, &[0.0125, 0.0125]);
        close(&left, &[5.0, 16.0]);
    }
}
