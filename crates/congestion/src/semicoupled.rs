//! SEMICOUPLED, of Wischik et al.: coupled increase, each subflow's own decrease.

use crate::coupled::{measured, mss, window_bytes};
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::{Entry, Handle, number};
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "semicoupled",
    aliases: &[],
    about: "Coupled increase, Reno's decrease: a compromise between coupled and uncoupled Reno",
    page: PAGE,
    parameters: &[A.parameter],
    build: |parameters| Box::new(Linked::new(SemiCoupled { a: A.of(parameters) })),
};

const A: Handle<f64> = number("a", 1.0, 0.01..=16.0).about("aggressiveness; 1/n for one TCP's share on n equal paths");

const PAGE: &str = "\
## Idea
Increase every window by the same amount, which the total window decides, but decrease each window for its own losses
only. Most traffic moves to the least congested paths, and some stays on all of them, so that changes are noticed.

## Rule
W = sum of w_s over subflows with an RTT sample.
Congestion avoidance on r, per acknowledged packet: w_r += a / W.
Slow start, loss, ECN mark and timeout on each subflow as Reno. With a = 1 one subflow alone is Reno.
At loss probabilities p_s the windows settle at w_r = sqrt(2 a) (1 / p_r) / sqrt(sum of 1 / p_s); on n equal paths the total
is sqrt(n a) times one TCP's.

## When it helps
Where paths differ in loss and change: it shifts less than coupled, and never uses one path alone.

## When it hurts
It ignores round-trip times: on a long path it takes less than one TCP would. With a = 1 it takes sqrt(n) shares of a
bottleneck that n subflows share (lia computes a from windows and round-trip times).

## Departures
None known. Windows are weighted by their segment sizes.

## References
D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, \"Design, implementation and evaluation of congestion control for
multipath TCP\", NSDI 2011.
";

/// The rule, with its aggressiveness.
#[derive(Clone, Copy, Debug)]
pub struct SemiCoupled {
    a: f64,
}

/// All windows in bytes.
pub(crate) fn total<T>(flows: &Flows<T>, paths: &[PathView]) -> f64 {
    measured(flows, paths).map(|(flow, path)| window_bytes(flow, path)).sum()
}

impl Rule for SemiCoupled {
    type Sums = f64;
    type State = ();

    fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> f64 {
        total(flows, paths)
    }

    fn increase(&self, sums: &f64, _flow: &Flow<()>, path: &PathView) -> f64 {
        self.a * mss(path) / sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::tests::{after_loss, close, increases};

    const PAPER: SemiCoupled = SemiCoupled { a: 1.0 };

    #[test]
    fn vectors() {
        close(&increases(PAPER, &[(10, 100, 1400), (20, 200, 1400)]), &[1.0 / 30.0; 2]);
        close(&increases(SemiCoupled { a: 0.5 }, &[(10, 100, 1400), (20, 200, 1400)]), &[1.0 / 60.0; 2]);
        assert_eq!(after_loss(&PAPER, &[(10, 100, 1400), (21, 200, 1400)]), [5, 10]);
    }

    /// The equilibrium windows that the page states.
    fn settled(a: f64, p: [f64; 2]) -> [f64; 2] {
        let root = p.iter().map(|p| 1.0 / p).sum::<f64>().sqrt();
        p.map(|p| (2.0 * a).sqrt() / p / root)
    }

    #[test]
    fn windows_settle_where_increase_and_decrease_are_in_balance() {
        close(&settled(1.0, [0.01, 0.01]), &[10.0, 10.0]);
        let [clean, lossy] = settled(1.0, [0.01, 0.02]);
        assert!((clean - 11.547).abs() < 1e-3 && (lossy - 5.774).abs() < 1e-3, "{clean} {lossy}");
        for (a, windows) in [(1.0, [10, 10]), (1.0, [20, 10]), (0.5, [7, 30])] {
            let rule = SemiCoupled { a };
            let gains = increases(rule, &windows.map(|w| (w, 100, 1400)));
            // One acknowledgment in 1/p is a loss, which costs w/2.
            let p = [0, 1].map(|i| 2.0 * gains[i] / f64::from(windows[i]));
            close(&settled(a, p), &windows.map(f64::from));
        }
    }
}
