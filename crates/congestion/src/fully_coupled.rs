//! COUPLED, of Wischik et al. and Kelly and Voice: all subflows as one window.

use crate::coupled::mss;
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use crate::semicoupled::total;
use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "coupled",
    aliases: &["fully-coupled"],
    about: "Fully coupled: increase and decrease by the total window; all traffic moves to the least congested paths",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Linked::new(FullyCoupled)),
};

const PAGE: &str = "\
## Idea
Treat the sum of all windows as one TCP's window, wherever the packets go. Theory then moves all traffic to the least
congested paths.

## Rule
W = sum of w_s over subflows with an RTT sample.
Congestion avoidance on r, per acknowledged packet: w_r += 1 / W.
Loss or ECN mark on r, once per episode: w_r = max(w_r - W/2, 1), ssthresh = w_r.
Retransmission timeout: the same ssthresh, w_r = 1. Slow start on each subflow as Reno. One subflow alone is Reno.
Only paths with the least loss probability p carry traffic in the long run, and W = sqrt(2/p).

## When it helps
As the ideal of congestion balancing: with static losses it takes no more than the best path.

## When it hurts
With equal paths it settles on one of them and switches to another at random. A window of 1 grows by 1 / W per packet,
and so is slow to use its path once it is good again. It ignores round-trip times.

## Departures
None known. The simulator htsim caps the increase at Reno's, which follows here from W >= w_r. `epsilon` at epsilon = 0
is another algorithm, in which only the increase is coupled. Windows are weighted by their segment sizes.

## References
D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, \"Design, implementation and evaluation of congestion control for
multipath TCP\", NSDI 2011; F. Kelly, T. Voice, \"Stability of end-to-end algorithms for joint routing and rate control\",
2005.
";

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct FullyCoupled;

impl Rule for FullyCoupled {
    type Sums = f64;
    type State = ();
    const LEAST_SSTHRESH: u32 = 1;

    fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> f64 {
        total(flows, paths)
    }

    fn increase(&self, sums: &f64, _flow: &Flow<()>, path: &PathView) -> f64 {
        mss(path) / sums
    }

    fn ssthresh(&self, sums: &f64, flow: &Flow<()>, path: &PathView) -> f64 {
        f64::from(flow.window.cwnd()) - sums / mss(path) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::tests::{after_loss, close, increases};

    #[test]
    fn vectors() {
        let paths = [(10, 100, 1400), (20, 200, 1400)];
        close(&increases(FullyCoupled, &paths), &[1.0 / 30.0; 2]);
        assert_eq!(after_loss(&FullyCoupled, &paths), [1, 5]);
    }

    #[test]
    fn alone_a_loss_halves_and_the_threshold_is_renos() {
        assert_eq!(after_loss(&FullyCoupled, &[(21, 100, 1400)]), [10]);
        assert_eq!(after_loss(&FullyCoupled, &[(3, 100, 1400)]), [2]);
    }

    #[test]
    fn windows_count_by_their_bytes() {
        let paths = [(10, 100, 1400), (20, 100, 700)];
        close(&increases(FullyCoupled, &paths), &[1.0 / 20.0, 1.0 / 40.0]);
        assert_eq!(after_loss(&FullyCoupled, &[(30, 100, 1400), (20, 100, 700)]), [10, 1]);
    }
}
