//! EWTCP, equally weighted TCP (Honda et al.).

use crate::coupled::measured;
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::{Entry, Handle, number};
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "ewtcp",
    aliases: &[],
    about: "Equally weighted Reno: each of n subflows takes 1/n of one TCP's rate",
    page: PAGE,
    parameters: &[EXPONENT.parameter],
    build: |parameters| Box::new(Linked::new(EqualWeights { exponent: EXPONENT.of(parameters) })),
};

const EXPONENT: Handle<f64> = number("exponent", 2.0, 0.0..=4.0)
    .about("k in the weight a = n^-k: 2 for one TCP's share in all, 0.5 as NSDI 2011 prints it, 0 for uncoupled Reno");

const PAGE: &str = "\
## Idea
Run a weakened Reno on each of n subflows, so that all of them together take one TCP's share of a common bottleneck.

## Rule
a = n^-k, n = subflows with an RTT sample, k = exponent.
Congestion avoidance on r, per acknowledged packet: w_r += a / w_r.
Slow start, loss, ECN mark and timeout on each subflow as Reno. One subflow alone is Reno.
At loss probability p the window settles at sqrt(2 a / p): with k = 2 at 1/n of one TCP's.

## When it helps
As the simplest fair control: no round-trip times, no state.

## When it hurts
It moves no traffic away from congested or slow paths: on separate paths it takes 1/n of each path's rate.

## Departures
NSDI 2011 prints a = 1/sqrt(n), with which two subflows would take 1.68 shares; 1/n^2 follows from the aim, and is the
weight in the authors' simulator. A subflow that joins or leaves changes a at once.

## References
M. Honda, Y. Nishida, L. Eggert, P. Sarolahti, H. Tokuda, \"Multipath congestion control for shared bottleneck\", PFLDNeT
2009; D. Wischik et al., NSDI 2011.
";

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct EqualWeights {
    exponent: f64,
}

impl Rule for EqualWeights {
    /// The weight a.
    type Sums = f64;
    type State = ();

    fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> f64 {
        libm::pow(measured(flows, paths).count().max(1) as f64, -self.exponent)
    }

    fn increase(&self, sums: &f64, flow: &Flow<()>, _path: &PathView) -> f64 {
        sums / f64::from(flow.window.cwnd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::tests::{after_loss, close, increases};

    const SQUARE: EqualWeights = EqualWeights { exponent: 2.0 };
    const PRINTED: EqualWeights = EqualWeights { exponent: 0.5 };

    #[test]
    fn vectors() {
        close(&increases(SQUARE, &[(10, 100, 1400), (10, 300, 1400)]), &[0.025; 2]);
        close(&increases(SQUARE, &[(10, 100, 1400); 4]), &[0.00625; 4]);
        close(&increases(PRINTED, &[(10, 100, 1400); 4]), &[0.05; 4]);
        close(&increases(EqualWeights { exponent: 0.0 }, &[(10, 100, 1400); 3]), &[0.1; 3]);
        assert_eq!(after_loss(&SQUARE, &[(10, 100, 1400), (21, 300, 1400)]), [5, 10]);
    }

    #[test]
    fn two_subflows_settle_at_one_share_or_more() {
        // a / w = p w / 2: the sum of both windows at p = 1 %.
        let both = |rule| 2.0 * (2.0 * increases(rule, &[(1, 100, 1400); 2])[0] / 0.01_f64).sqrt();
        close(&[both(SQUARE)], &[200.0_f64.sqrt()]);
        assert!((both(PRINTED) - 23.784).abs() < 1e-3);
    }
}
