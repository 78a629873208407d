//! LIA, the linked increases of RFC 6356.

use crate::coupled::{measured, mss, rtt, window_bytes};
use crate::flows::{Flows, view_of};
use crate::reno::halved;
use crate::window::WindowState;
use anabranch_engine::CongestionControl;
use anabranch_engine::congestion::{Acked, Loss, Window};
use anabranch_engine::plugin::Entry;
use anabranch_engine::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "lia",
    aliases: &["rtt-compensator"],
    about: "Linked increases (RFC 6356): all subflows together take what the best of them would take alone",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Lia::default()),
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
The smoothed RTT lags while a buffer fills, which makes alpha too small for the fast path. A subflow that idles with a
large window enlarges W and slows the others. LIA shifts less traffic off a congested path than it could and is not
Pareto-optimal (see olia).

## Departures
alpha is a real number; Linux's out-of-tree module and the RFC's suggestion use scaled integers. Windows are weighted by
their segment sizes, the RFC's form in bytes. alpha is computed anew when any window has changed by a packet (for a
loss, a penalty, an undo and a restart do that too), when a subflow joins or leaves, and at least once per round trip.

## References
RFC 6356; D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, \"Design, implementation and evaluation of congestion
control for multipath TCP\", NSDI 2011.
";

/// One instance serves all subflows of a connection.
#[derive(Clone, Debug, Default)]
pub struct Lia {
    flows: Flows<()>,
    gain: Option<f64>,
}

/// alpha over the total window, per byte: the increase in packets for each byte of segment size and acknowledged packet
/// (RFC 6356 §3, §4). No bound if no subflow has an RTT sample.
fn gain(flows: &Flows<()>, paths: &[PathView]) -> f64 {
    let (mut best, mut rate) = (0.0_f64, 0.0);
    for (flow, path) in measured(flows, paths) {
        let inverse = 1.0 / rtt(path);
        let x = window_bytes(flow, path) * inverse;
        best = best.max(x * inverse);
        rate += x;
    }
    if rate > 0.0 { best / (rate * rate) } else { f64::INFINITY }
}

impl Lia {
    /// What one acknowledged packet adds to the window of `id`, in packets.
    fn increase(&mut self, id: PathId, paths: &[PathView]) -> f64 {
        let Some(flow) = self.flows.get(id) else { return 0.0 };
        let reno = 1.0 / f64::from(flow.window.cwnd());
        let Some(path) = view_of(paths, id) else { return reno };
        let gain = *self.gain.get_or_insert_with(|| gain(&self.flows, paths));
        (gain * mss(path)).min(reno)
    }

    /// Does `change` to the window of `id`; what depends on the windows is then out of date.
    fn change<R: Default>(&mut self, id: PathId, change: impl FnOnce(&mut WindowState) -> R) -> R {
        let Some(flow) = self.flows.get_mut(id) else { return R::default() };
        let before = flow.window.cwnd();
        let result = change(&mut flow.window);
        if flow.window.cwnd() != before {
            self.gain = None;
        }
        result
    }
}

impl CongestionControl for Lia {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        self.flows.join(id, initial_window, ());
        self.gain = None;
    }

    fn on_leave(&mut self, id: PathId) {
        self.flows.leave(id);
        self.gain = None;
    }

    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        if ack.round_ended {
            self.gain = None;
        }
        let acked = self.change(id, |w| w.slow_start(ack));
        if acked > 0 {
            let increase = self.increase(id, paths);
            self.change(id, |w| w.add(f64::from(acked) * increase));
        }
    }

    fn on_loss(&mut self, id: PathId, _now: Instant, loss: Loss, _paths: &[PathView]) {
        self.change(id, |w| w.on_loss(loss, halved(w)));
    }

    fn on_undo(&mut self, id: PathId, _now: Instant) {
        self.change(id, WindowState::undo);
    }

    fn on_idle(&mut self, id: PathId, _now: Instant, idle: Duration, rto: Duration) {
        self.change(id, |w| w.restart(idle, rto));
    }

    fn window(&self, id: PathId) -> Window {
        self.flows.window(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::connection;
    use proptest::collection::vec;
    use proptest::{prop_assert, proptest};

    /// alpha and the increase of each path, for (window, RTT in ms, MSS) of each.
    fn vector(paths: &[(u32, u64, u32)]) -> (f64, Vec<f64>) {
        let (flows, views) = connection(paths, |_| ());
        let total: f64 = paths.iter().map(|(w, _, mss)| f64::from(w * mss)).sum();
        let alpha = gain(&flows, &views) * total;
        let mut lia = Lia { flows, gain: None };
        (alpha, views.iter().map(|v| lia.increase(v.id, &views)).collect())
    }

    fn close(found: &(f64, Vec<f64>), alpha: f64, increases: &[f64]) {
        let pairs = found.1.iter().zip(increases).chain([(&found.0, &alpha)]);
        assert_eq!(found.1.len(), increases.len());
        for (found, expected) in pairs {
            assert!((found - expected).abs() <= 1e-9 * expected, "{found} is not {expected}");
        }
    }

    #[test]
    fn increase_vectors() {
        close(&vector(&[(10, 100, 1400), (20, 200, 1400)]), 0.75, &[0.025, 0.025]);
        close(&vector(&[(10, 100, 1400), (10, 100, 1400)]), 0.5, &[0.025, 0.025]);
        // The cap of 1/w binds on the second path.
        close(&vector(&[(2, 10, 1400), (50, 1000, 1400)]), 16.64, &[0.32, 0.02]);
        close(&vector(&[(10, 100, 1400)]), 1.0, &[0.1]);
    }

    #[test]
    fn byte_vector() {
        // alpha 0.75, 42 000 bytes in all, 14 000 here: an acknowledged segment of 1400 adds 35 bytes.
        let (_, increases) = vector(&[(10, 100, 1400), (20, 200, 1400)]);
        assert!((increases[0] * 1400.0 - 35.0).abs() < 1e-9);
    }

    #[test]
    fn segment_sizes_weigh_the_windows() {
        // The same bytes in segments half as large: the same alpha, half the increase in packets for a packet of half
        // the size.
        close(&vector(&[(10, 100, 1400), (40, 200, 700)]), 0.75, &[0.025, 0.0125]);
    }

    #[test]
    fn paths_without_a_sample_stay_out_of_the_sum() {
        let (flows, mut views) = connection(&[(10, 100, 1400), (1000, 100, 1400)], |_| ());
        views[1].srtt = None;
        let mut lia = Lia { flows, gain: None };
        assert!((lia.increase(PathId(0), &views) - 0.1).abs() < 1e-12);
        views[0].srtt = None;
        lia.gain = None;
        assert_eq!(lia.increase(PathId(0), &views), 0.1);
        assert_eq!(lia.increase(PathId(0), &[]), 0.1);
    }

    #[test]
    fn alpha_is_kept_until_a_window_changes_or_a_round_ends() {
        let (flows, mut views) = connection(&[(10, 100, 1400), (20, 200, 1400)], |_| ());
        let mut lia = Lia { flows, gain: None };
        let mut ack = Acked::default();
        (ack.packets, ack.cwnd_limited, ack.may_grow) = (1, true, true);
        lia.on_ack(PathId(0), &ack, &views);
        let first = lia.gain;
        views[1].srtt = Some(Duration::from_millis(400));
        lia.on_ack(PathId(0), &ack, &views);
        assert_eq!(lia.gain, first);
        ack.round_ended = true;
        lia.on_ack(PathId(0), &ack, &views);
        assert_ne!(lia.gain, first);
        for loss in [Loss::Fast, Loss::Penalty] {
            lia.on_ack(PathId(0), &ack, &views);
            assert!(lia.gain.is_some());
            lia.on_loss(PathId(1), Instant::ZERO, loss, &views);
            assert_eq!(lia.gain, None);
        }
    }

    proptest! {
        #[test]
        fn no_increase_exceeds_renos(paths in vec((1..100_000_u32, 0..2_000_u64, 1..9_000_u32), 1..8)) {
            let (flows, views) = connection(&paths, |_| ());
            let mut lia = Lia { flows, gain: None };
            for (view, (cwnd, ..)) in views.iter().zip(&paths) {
                let increase = lia.increase(view.id, &views);
                prop_assert!(increase > 0.0 && increase <= 1.0 / f64::from(*cwnd));
            }
        }
    }
}
