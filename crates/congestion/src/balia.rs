//! Balia, balanced linked adaptation (Peng et al.).

use crate::coupled::{measured, mss, rtt, window_bytes};
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "balia",
    aliases: &[],
    about: "Balanced linked adaptation: between LIA's responsiveness and OLIA's friendliness",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Linked::new(Balia)),
};

const PAGE: &str = "\
## Idea
Friendliness to single-path TCP and responsiveness to change exclude each other; Balia is a point between LIA and OLIA
whose existence, uniqueness and stability are proved.

## Rule
x_r = w_r / T_r, T = smoothed RTT; alpha_r = max(x_s) / x_r, at least 1; sums over subflows with an RTT sample.
Congestion avoidance on r, per acknowledged packet:
w_r += x_r / (T_r (sum of x_s)^2) (1 + alpha_r)/2 (4 + alpha_r)/5.
Loss or ECN mark on r, once per episode: w_r = max(w_r - w_r/2 min(alpha_r, 3/2), 1), ssthresh = w_r.
Retransmission timeout: the same ssthresh, w_r = 1. Slow start on each subflow as Reno. One subflow alone is Reno.

## When it helps
Where paths change and OLIA's windows of 1 are slow to grow, or LIA is too aggressive beside single-path TCP.

## When it hurts
A slow path loses up to three quarters of its window with every loss. The smoothed RTT lags while a buffer fills.

## Departures
Real arithmetic. The out-of-tree Linux module divides rates as integers, so that 1 <= alpha < 2 counts as 1 when a window
shrinks, and scales them by the caller's segment size. Windows are weighted by their own segment sizes here. The floor of 1
holds where there are several subflows; for one subflow it is Reno's 2.

## References
Q. Peng, A. Walid, J. Hwang, S. H. Low, \"Multipath TCP: analysis, design, and implementation\", IEEE/ACM Transactions on
Networking 24(1), 2016; draft-walid-mptcp-congestion-control-04.
";

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct Balia;

/// Rates in bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    most: f64,
    total: f64,
}

fn rate<T>(flow: &Flow<T>, path: &PathView) -> f64 {
    window_bytes(flow, path) / rtt(path)
}

impl Rule for Balia {
    type Sums = Rates;
    type State = ();
    const LEAST_SSTHRESH: u32 = 1;
    const LASTING: bool = false;

    fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> Rates {
        let (mut most, mut total) = (0.0_f64, 0.0);
        for (flow, path) in measured(flows, paths) {
            let x = rate(flow, path);
            most = most.max(x);
            total += x;
        }
        Rates { most, total }
    }

    fn increase(&self, sums: &Rates, flow: &Flow<()>, path: &PathView) -> f64 {
        let x = rate(flow, path);
        let alpha = sums.most / x;
        let coupled = x * mss(path) / (rtt(path) * sums.total * sums.total);
        coupled * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
    }

    fn ssthresh(&self, sums: &Rates, flow: &Flow<()>, path: &PathView) -> f64 {
        let w = f64::from(flow.window.cwnd());
        w - w / 2.0 * (sums.most / rate(flow, path)).min(1.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::tests::{after_loss, close, increases};

    #[test]
    fn vectors() {
        let unequal_round_trips = [(10, 100, 1400), (20, 200, 1400)];
        close(&increases(Balia, &unequal_round_trips), &[0.025, 0.0125]);
        assert_eq!(after_loss(&Balia, &unequal_round_trips), [5, 10]);
        // alpha = 3 on the first: 10 - 7.5, and 30 - 15.
        let unequal_windows = [(10, 100, 1400), (30, 100, 1400)];
        close(&increases(Balia, &unequal_windows), &[0.0175, 0.01875]);
        assert_eq!(after_loss(&Balia, &unequal_windows), [2, 15]);
        // alpha = 1.5: 10 - 7.5. The kernel's integer alpha would leave 5.
        let near = [(10, 100, 1400), (15, 100, 1400)];
        close(&increases(Balia, &near)[..1], &[0.022]);
        assert_eq!(after_loss(&Balia, &near)[0], 2);
    }

    #[test]
    fn windows_count_by_their_bytes() {
        close(&increases(Balia, &[(10, 100, 1400), (40, 200, 700)]), &[0.025, 0.00625]);
    }

    #[test]
    fn a_bad_path_empties_to_one_packet_only_beside_another() {
        assert_eq!(after_loss(&Balia, &[(2, 100, 1400), (100, 100, 1400)]), [1, 50]);
        assert_eq!(after_loss(&Balia, &[(3, 100, 1400)]), [2]);
    }
}
