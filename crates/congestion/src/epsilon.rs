//! The family of algorithms between fully coupled and uncoupled increases, by one parameter.

use crate::coupled::{measured, mss, rtt, window_bytes};
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::{Entry, Handle, number};
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "epsilon",
    aliases: &[],
    about: "The epsilon family: 0 couples the increases fully, 1 is LIA, 2 uncoupled Reno",
    page: PAGE,
    parameters: &[EPSILON.parameter],
    build: |parameters| Box::new(Linked::new(Epsilon { epsilon: EPSILON.of(parameters) })),
};

const EPSILON: Handle<f64> =
    number("epsilon", 1.0, 0.0..=2.0).about("from full coupling of the increases (0) over LIA (1) to none (2)");

const PAGE: &str = "\
## Idea
One parameter from resource pooling to independence, for ablations: how much does a window's increase depend on its own
size, and how much on the total?

## Rule
W = sum of w_s, T = smoothed RTT, over subflows with an RTT sample; e = epsilon.
A = W (max(w_s^(e/2) / T_s) / sum of w_s/T_s)^(1 / (1 - e/2)) for 0 < e < 2, and 1 at both ends.
Congestion avoidance on r, per acknowledged packet: w_r += min(A (A w_r)^(1-e) / W^(2-e), 1 / w_r).
Slow start, loss, ECN mark and timeout on each subflow as Reno. One subflow alone is Reno.

## When it helps
To show the effect of coupling on a result: sweep epsilon with everything else equal.

## When it hurts
Near 0 all traffic moves to the least congested path, and it flaps between equal ones. Near 2 it is as aggressive as
uncoupled Reno at a shared bottleneck.

## Departures
Windows are weighted by their segment sizes. At e = 0 the decrease is still Reno's: not the algorithm `coupled`, although
the total settles at the same size.

## References
D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, NSDI 2011, section 2; C. Raiciu, D. Wischik, M. Handley, \"Practical
congestion control for multipath transport protocols\", 2009; the simulator htsim (COUPLED_EPSILON).
";

/// The rule, with its parameter.
#[derive(Clone, Copy, Debug)]
pub struct Epsilon {
    epsilon: f64,
}

/// Sums over all subflows.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// W: the sum of all windows, in bytes.
    total: f64,
    /// The aggressiveness A.
    a: f64,
}

impl Rule for Epsilon {
    type Sums = Pool;
    type State = ();

    fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> Pool {
        let half = self.epsilon / 2.0;
        let (mut total, mut best, mut rate) = (0.0, 0.0_f64, 0.0);
        for (flow, path) in measured(flows, paths) {
            let w = window_bytes(flow, path);
            total += w;
            best = best.max(libm::pow(w, half) / rtt(path));
            rate += w / rtt(path);
        }
        let between = self.epsilon > 0.0 && self.epsilon < 2.0;
        let a = if between { total * libm::pow(best / rate, 1.0 / (1.0 - half)) } else { 1.0 };
        Pool { total, a }
    }

    fn increase(&self, sums: &Pool, flow: &Flow<()>, path: &PathView) -> f64 {
        let Pool { total, a } = *sums;
        let own = libm::pow(a * window_bytes(flow, path), 1.0 - self.epsilon);
        let coupled = mss(path) * a * own / libm::pow(total, 2.0 - self.epsilon);
        // Near 2 the powers leave the range of `f64`; `min` of NaN is Reno's increase.
        coupled.min(1.0 / f64::from(flow.window.cwnd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lia::Lia;
    use crate::linked::tests::{after_loss, close, increases};
    use proptest::collection::vec;
    use proptest::{prop_assert, proptest};

    const PATHS: [(u32, u64, u32); 2] = [(10, 100, 1400), (20, 200, 1400)];

    #[test]
    fn vectors() {
        for (epsilon, first) in [(0.0, 1.0 / 90.0), (1.0, 0.025), (2.0, 0.1)] {
            close(&increases(Epsilon { epsilon }, &PATHS)[..1], &[first]);
        }
        assert_eq!(after_loss(&Epsilon { epsilon: 0.0 }, &PATHS), [5, 10]);
    }

    #[test]
    fn equal_subflows_grow_together_as_one_tcp_whatever_epsilon() {
        // n subflows of window w: each adds 1/(n² w), so that together they equal one TCP at the same loss rate.
        for epsilon in [0.0, 0.5, 1.0, 1.5] {
            close(&increases(Epsilon { epsilon }, &[(12, 100, 1400); 3]), &[1.0 / 108.0; 3]);
        }
    }

    #[test]
    fn one_is_lia_whatever_the_segment_sizes() {
        let paths = [(10, 100, 1400), (40, 30, 700), (3, 250, 9000)];
        close(&increases(Epsilon { epsilon: 1.0 }, &paths), &increases(Lia, &paths));
    }

    proptest! {
        #[test]
        fn no_increase_exceeds_renos(
            epsilon in 0.0..=2.0, paths in vec((1..100_000_u32, 0..2_000_u64, 1..9_000_u32), 1..8),
        ) {
            for (increase, (cwnd, ..)) in increases(Epsilon { epsilon }, &paths).iter().zip(&paths) {
                prop_assert!(*increase >= 0.0 && *increase <= 1.0 / f64::from(*cwnd));
            }
        }
    }
}
