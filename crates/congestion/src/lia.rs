//! LIA, the linked increases of RFC 6356.

use crate::coupled::{measured, mss, rtt, window_bytes};
use crate::flows::{Flow, Flows};
use crate::linked::{Linked, Rule};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "lia",
    aliases: &["rtt-compensator"],
    about: "Linked increases (RFC 6356): all subflows together take what the best of them would take alone",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Linked::new(Lia)),
};

const PAGE: &str = "\
## Idea
Link the subflows' increases so that the connection takes as much as one TCP would on its best path, takes no more than
one TCP at any shared bottleneck, and moves traffic away from congested paths. Decreases stay Reno's.

## Rule
W = sum of w_s; alpha = W max(w_s / T_s^2) / (sum of w_s / T_s)^2, T = smoothed RTT, over subflows with an RTT sample.
Congestion avoidance on r, per acknowledged packet: w_r += min(alpha / W, 1 / w_r).
Slow start, loss, ECN mark and timeout on each subflow as Reno. A subflow in fast recovery counts with its ssthresh.
One subflow alone is Reno.

## When it helps
Where subflows may share a bottleneck with single-path TCP, and one of the paths is clearly better.

## When it hurts
The smoothed RTT lags while a buffer fills, which makes alpha too small for the fast path. An idle subflow with a large
window enlarges W and slows the others. LIA shifts less traffic off a congested path than it could and is not
Pareto-optimal (see olia).

## Departures
alpha is a real number; Linux's out-of-tree module and the RFC's suggestion use scaled integers. Windows are weighted by
their segment sizes, the RFC's form in bytes. alpha is computed again when any window has changed by a packet (also by a
loss, a penalty, an undo or a restart), when a subflow joins or leaves, and at least once per round trip.

## References
RFC 6356; D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, \"Design, implementation and evaluation of congestion
control for multipath TCP\", NSDI 2011.
";

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct Lia;

/// alpha over the total window, per byte: the increase in packets per byte of segment size and per acknowledged packet
/// (RFC 6356 §3, §4).
pub(crate) fn gain<T>(flows: &Flows<T>, paths: &[PathView]) -> f64 {
    let (mut best, mut rate) = (0.0_f64, 0.0);
    for (flow, path) in measured(flows, paths) {
        let inverse = 1.0 / rtt(path);
        let x = window_bytes(flow, path) * inverse;
        best = best.max(x * inverse);
        rate += x;
    }
    best / (rate * rate)
}

/// The increase per acknowledged packet, in packets, for the connection's [`gain`] (RFC 6356 §3).
pub(crate) fn increase<T>(gain: f64, flow: &Flow<T>, path: &PathView) -> f64 {
    (gain * mss(path)).min(1.0 / f64::from(flow.window.cwnd()))
}

impl Rule for Lia {
    type Sums = f64;
    type State = ();

    fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> f64 {
        gain(flows, paths)
    }

    fn increase(&self, sums: &f64, flow: &Flow<()>, path: &PathView) -> f64 {
        increase(*sums, flow, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::tests::{close, increases, linked};
    use anabranch_plugin::CongestionControl;
    use proptest::collection::vec;
    use proptest::{prop_assert, proptest};

    /// alpha, for (window, RTT in ms, MSS) of each path.
    fn alpha(paths: &[(u32, u64, u32)]) -> f64 {
        let (flows, views) = crate::coupled::tests::connection(paths, |_| ());
        let total: f64 = paths.iter().map(|(w, _, mss)| f64::from(w * mss)).sum();
        gain(&flows, &views) * total
    }

    fn check(paths: &[(u32, u64, u32)], expected_alpha: f64, expected: &[f64]) {
        close(&[alpha(paths)], &[expected_alpha]);
        close(&increases(Lia, paths), expected);
    }

    #[test]
    fn increase_vectors() {
        check(&[(10, 100, 1400), (20, 200, 1400)], 0.75, &[0.025, 0.025]);
        check(&[(10, 100, 1400), (10, 100, 1400)], 0.5, &[0.025, 0.025]);
        // The cap of 1/w binds on the second path.
        check(&[(2, 10, 1400), (50, 1000, 1400)], 16.64, &[0.32, 0.02]);
        check(&[(10, 100, 1400)], 1.0, &[0.1]);
    }

    #[test]
    fn byte_vector() {
        // alpha 0.75, 42 000 bytes in total, 14 000 on this subflow: an acknowledged segment of 1400 adds 35 bytes.
        let found = increases(Lia, &[(10, 100, 1400), (20, 200, 1400)]);
        assert!((found[0] * 1400.0 - 35.0).abs() < 1e-9);
    }

    #[test]
    fn segment_sizes_weigh_the_windows() {
        // The same bytes in segments of half the size: the same alpha, half the increase in packets per packet.
        check(&[(10, 100, 1400), (40, 200, 700)], 0.75, &[0.025, 0.0125]);
    }

    #[test]
    fn paths_without_a_sample_stay_out_of_the_sum() {
        let (mut lia, mut views) = linked(Lia, &[(10, 100, 1400), (1000, 100, 1400)]);
        views[1].srtt = None;
        lia.on_ack(views[0].id, &crate::linked::tests::ack(10), &views);
        assert_eq!(lia.window(views[0].id).cwnd, 11, "as if the other were not there");
    }

    proptest! {
        #[test]
        fn no_increase_exceeds_renos(paths in vec((1..100_000_u32, 0..2_000_u64, 1..9_000_u32), 1..8)) {
            for (increase, (cwnd, ..)) in increases(Lia, &paths).iter().zip(&paths) {
                prop_assert!(*increase > 0.0 && *increase <= 1.0 / f64::from(*cwnd));
            }
        }
    }
}
