//! OLIA, the opportunistic linked increases of Khalili et al.

use crate::coupled::{measured, mss, rtt, window_bytes};
use crate::flows::{Flow, Flows, view_of};
use crate::reno::halved;
use crate::window::begins_episode;
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, Window};
use anabranch_plugin::registry::{Entry, Handle, Parameters, whole};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId};
use core::cmp::Ordering;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "olia",
    aliases: &[],
    about: "Opportunistic linked increases: LIA's aims, Pareto-optimal, moves windows to the best paths",
    page: PAGE,
    parameters: &[LEAST.parameter],
    build: |p: &Parameters<'_>| Box::new(Olia::new(LEAST.of(p) as u32)),
};

const LEAST: Handle<u64> = whole("min_ssthresh", 1, 1..=64)
    .unit("packets")
    .about("least slow-start threshold beside other subflows: 1 in the draft, 2 (Reno's) in the kernel modules");

const PAGE: &str = "\
## Idea
Two terms: one couples the increases for congestion balancing, and one moves window from the paths with the
largest windows to better paths whose windows are still small. Decreases stay Reno's.

## Rule
l_r = bytes acknowledged on r since the last loss or between the last two losses, whichever is more; T = smoothed RTT.
M = paths with the largest window; B = paths with the largest l / T^2 (where TCP would have the highest rate);
C = B without M; n = established subflows.
alpha_r = 1 / (n |C|) for r in C; -1 / (n |M|) for r in M if C is not empty; 0 otherwise.
Congestion avoidance on r, per acknowledged packet: w_r += (w_r / T_r^2) / (sum of w_s / T_s)^2 + alpha_r / w_r.
The increase may be negative; no window falls below 1. Slow start, loss, ECN mark and timeout on each subflow as Reno,
but ssthresh may fall to `min_ssthresh` when there are several subflows. One subflow alone is Reno.

## When it helps
Where LIA is too aggressive against single-path TCP or leaves traffic on congested paths.

## When it hurts
On paths that change quickly: a path whose window is at 1 and whose l is small is probed slowly. With equal windows M
holds all paths, and alpha is zero.

## Departures
Real arithmetic instead of the kernel module's integers. The draft's least ssthresh is 1; both published versions of the
module use Reno's, which is `min_ssthresh` = 2. The newer version slow-starts also at the threshold, as Linux did until 4.2:
`tcp.slow_start_at_threshold`. The older one stops one packet earlier.
B and M are found by exact comparison: windows in bytes, l and T^2 as integers with T in microseconds. After a spurious
loss l continues as if there had been no loss. Windows are weighted by their segment sizes.

## References
R. Khalili, N. Gast, M. Popovic, J.-Y. Le Boudec, \"MPTCP is not Pareto-optimal: performance issues and a possible
solution\", CoNEXT 2012; draft-khalili-mptcp-congestion-control-05.
";

/// One instance serves all subflows of a connection.
#[derive(Clone, Debug)]
pub struct Olia {
    flows: Flows<Transmitted>,
    /// Least slow-start threshold beside other subflows, in packets.
    min_ssthresh: u32,
}

/// Bytes that a subflow has delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Transmitted {
    /// Between the last two losses: l1.
    between_losses: u64,
    /// Since the last loss: l2.
    since_loss: u64,
    /// l1 before the last loss, restored if that loss was spurious.
    before: Option<u64>,
}

impl Transmitted {
    fn most(&self) -> u64 {
        self.between_losses.max(self.since_loss)
    }

    fn on_loss(&mut self, loss: Loss) {
        // An ECN mark is never spurious.
        self.before = (loss != Loss::Marked).then_some(self.between_losses);
        self.between_losses = core::mem::take(&mut self.since_loss);
    }

    fn on_undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.since_loss = self.since_loss.saturating_add(self.between_losses);
            self.between_losses = before;
        }
    }
}

/// The values that decide whether a path is in M or B.
#[derive(Clone, Copy)]
struct Standing {
    /// Bytes.
    window: u64,
    /// l in bytes.
    transmitted: u64,
    /// T² in µs², from 32 bits of RTT, so that products with l fit 128 bits.
    rtt_squared: u64,
}

impl Standing {
    fn of(flow: &Flow<Transmitted>, path: &PathView) -> Self {
        let micros = path.srtt.map_or(1, Duration::as_micros).clamp(1, u64::from(u32::MAX));
        Self {
            window: u64::from(flow.window.cwnd()) * u64::from(path.mss),
            transmitted: flow.state.most(),
            rtt_squared: micros * micros,
        }
    }

    /// Compares l/T² by cross products: ties matter, so rounding must not decide them.
    fn by_rate(&self, other: &Self) -> Ordering {
        let product = |l: u64, t: u64| u128::from(l) * u128::from(t);
        product(self.transmitted, other.rtt_squared).cmp(&product(other.transmitted, self.rtt_squared))
    }
}

/// All paths as seen from one of them.
struct Survey {
    /// alpha_r: shifts window towards the best paths.
    alpha: f64,
    /// The sum of w / T.
    rate: f64,
}

impl Survey {
    fn of(id: PathId, flows: &Flows<Transmitted>, paths: &[PathView]) -> Self {
        let (mut all, mut rate, mut best) = (0_u32, 0.0, None);
        let (mut widest, mut in_m, mut in_b) = (0, 0_u32, 0_u32);
        for (flow, path) in measured(flows, paths) {
            let (standing, bit) = (Standing::of(flow, path), flow.id.bit());
            rate += window_bytes(flow, path) / rtt(path);
            all += 1;
            match standing.window.cmp(&widest) {
                Ordering::Greater => (widest, in_m) = (standing.window, bit),
                Ordering::Equal => in_m |= bit,
                Ordering::Less => {}
            }
            match best.map_or(Ordering::Greater, |best| standing.by_rate(&best)) {
                Ordering::Greater => (best, in_b) = (Some(standing), bit),
                Ordering::Equal => in_b |= bit,
                Ordering::Less => {}
            }
        }
        let in_c = in_b & !in_m;
        let alpha = match (in_c & id.bit() != 0, in_m & id.bit() != 0) {
            _ if in_c == 0 => 0.0,
            (true, _) => 1.0 / f64::from(all * in_c.count_ones()),
            (_, true) => -1.0 / f64::from(all * in_m.count_ones()),
            _ => 0.0,
        };
        Self { alpha, rate }
    }
}

impl Olia {
    /// No subflow yet. `min_ssthresh`: the least slow-start threshold beside other subflows, in packets.
    pub fn new(min_ssthresh: u32) -> Self {
        Self { flows: Flows::default(), min_ssthresh }
    }

    /// The increase of `id`'s window per acknowledged packet, in packets; may be negative.
    fn increase(&self, id: PathId, paths: &[PathView]) -> f64 {
        let Some(flow) = self.flows.get(id) else { return 0.0 };
        let reno = 1.0 / f64::from(flow.window.cwnd());
        let Some(path) = view_of(paths, id).filter(|p| p.srtt.is_some()) else { return reno };
        let Survey { alpha, rate } = Survey::of(id, &self.flows, paths);
        let t = rtt(path);
        window_bytes(flow, path) * mss(path) / (t * t * rate * rate) + alpha * reno
    }
}

impl CongestionControl for Olia {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        self.flows.join(id, initial_window, Transmitted::default());
    }

    fn on_leave(&mut self, id: PathId) {
        self.flows.leave(id);
    }

    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        flow.state.since_loss = flow.state.since_loss.saturating_add(ack.bytes);
        let acked = flow.window.slow_start(ack);
        if acked > 0 {
            let increase = self.increase(id, paths);
            if let Some(flow) = self.flows.get_mut(id) {
                flow.window.add(f64::from(acked) * increase);
            }
        }
    }

    fn on_loss(&mut self, id: PathId, _now: Instant, loss: Loss, paths: &[PathView]) {
        let several = measured(&self.flows, paths).nth(1).is_some();
        let Some(flow) = self.flows.get_mut(id) else { return };
        if begins_episode(loss) {
            flow.state.on_loss(loss);
        }
        // draft-khalili: the threshold may be one segment when there are several subflows, so that a bad path can empty.
        let half = flow.window.cwnd() / 2;
        flow.window.on_loss(loss, if several { half.max(self.min_ssthresh) } else { halved(&flow.window) });
    }

    fn on_undo(&mut self, id: PathId, _now: Instant) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.state.on_undo();
            flow.window.undo();
        }
    }

    fn on_idle(&mut self, id: PathId, _now: Instant, idle: Duration, rto: Duration) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.window.restart(idle, rto);
        }
    }

    fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        self.flows.set_threshold(id, ssthresh);
    }

    fn on_underuse(&mut self, id: PathId, used: u32) {
        self.flows.give_back(id, used);
    }

    fn window(&self, id: PathId) -> Window {
        self.flows.window(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::connection;

    const P0: PathId = PathId(0);
    const P1: PathId = PathId(1);

    /// (window, RTT in ms, l) of each path.
    fn olia(paths: &[(u32, u64, u64)]) -> (Olia, Vec<PathView>) {
        let sizes: Vec<_> = paths.iter().map(|(w, ms, _)| (*w, *ms, 1400)).collect();
        let state = |i: usize| Transmitted { since_loss: paths[i].2, ..Transmitted::default() };
        let (flows, views) = connection(&sizes, state);
        (Olia { flows, ..Olia::new(1) }, views)
    }

    fn alphas(paths: &[(u32, u64, u64)]) -> Vec<f64> {
        let (olia, views) = olia(paths);
        views.iter().map(|v| Survey::of(v.id, &olia.flows, &views).alpha).collect()
    }

    fn increases(paths: &[(u32, u64, u64)]) -> Vec<f64> {
        let (olia, views) = olia(paths);
        views.iter().map(|v| olia.increase(v.id, &views)).collect()
    }

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-12, "{found:?} is not {expected:?}");
        }
    }

    fn ack(packets: u32) -> Acked {
        let mut ack = Acked::default();
        (ack.counted, ack.bytes) = (packets, u64::from(packets) * 1400);
        (ack.cwnd_limited, ack.may_grow) = (true, true);
        ack
    }

    #[test]
    fn vectors() {
        let unequal = [(10, 100, 1_000_000), (20, 200, 1_000_000)];
        close(&alphas(&unequal), &[0.5, -0.5]);
        close(&increases(&unequal), &[0.075, -0.0125]);
        let equal = [(10, 100, 1_000_000), (10, 100, 1_000_000)];
        close(&alphas(&equal), &[0.0, 0.0]);
        close(&increases(&equal), &[0.025, 0.025]);
        close(&increases(&[(10, 100, 7)]), &[0.1]);
    }

    #[test]
    fn sets_of_more_paths() {
        // Best by rate: 0 and 1, which tie (4000/20² = 9000/30²); the widest: 2 and 3.
        close(
            &alphas(&[(5, 20, 4_000), (5, 30, 9_000), (9, 100, 1_000), (9, 100, 1_000)]),
            &[0.125, 0.125, -0.125, -0.125],
        );
        // The best path is the widest: nothing to shift.
        close(&alphas(&[(9, 20, 4_000), (5, 30, 5_000), (5, 100, 1_000)]), &[0.0; 3]);
        // One of the two best paths is also the widest: only the other one is in the set of collected paths.
        close(&alphas(&[(9, 20, 4_000), (5, 20, 4_000), (5, 100, 1_000)]), &[-1.0 / 3.0, 1.0 / 3.0, 0.0]);
    }

    #[test]
    fn a_tie_is_exact() {
        // Products beyond 64 bits that differ by the share of one byte.
        let big = 1 << 50;
        close(&alphas(&[(5, 1000, big), (9, 1000, big)]), &[0.5, -0.5]);
        close(&alphas(&[(5, 1000, big - 1), (9, 1000, big)]), &[0.0, 0.0]);
    }

    #[test]
    fn negative_increases_shrink_the_widest_window_to_one_at_least() {
        let (mut olia, mut views) = olia(&[(2, 10, u64::MAX), (3, 1000, 0)]);
        for _ in 0..100 {
            olia.on_ack(P1, &ack(1), &views);
        }
        assert!(olia.window(P1).cwnd < 3);
        views[0].srtt = Some(Duration::ZERO);
        for _ in 0..1000 {
            olia.on_ack(P1, &ack(1), &views);
            assert!(olia.window(P1).cwnd >= 1);
        }
    }

    #[test]
    fn bytes_shift_once_per_episode_and_an_undo_shifts_them_back() {
        let (mut olia, views) = olia(&[(10, 100, 0), (10, 100, 0)]);
        let shown = |olia: &Olia| olia.flows.get(P0).map(|f| (f.state.between_losses, f.state.since_loss));
        let mut recovering = ack(3);
        recovering.may_grow = false;
        olia.on_ack(P0, &recovering, &views);
        assert_eq!(shown(&olia), Some((0, 4200)));
        olia.on_loss(P0, Instant::ZERO, Loss::Timeout { again: false }, &views);
        olia.on_loss(P0, Instant::ZERO, Loss::Timeout { again: true }, &views);
        olia.on_loss(P0, Instant::ZERO, Loss::Penalty, &views);
        assert_eq!(shown(&olia), Some((4200, 0)));
        olia.on_ack(P0, &ack(1), &views);
        olia.on_loss(P0, Instant::ZERO, Loss::Fast, &views);
        olia.on_ack(P0, &ack(2), &views);
        assert_eq!(shown(&olia), Some((1400, 2800)));
        olia.on_undo(P0, Instant::ZERO);
        assert_eq!(shown(&olia), Some((4200, 4200)));
        olia.on_undo(P0, Instant::ZERO);
        assert_eq!(shown(&olia), Some((4200, 4200)));
    }

    #[test]
    fn the_threshold_may_fall_to_one_only_beside_another_subflow() {
        let (mut two, views) = olia(&[(3, 100, 0), (10, 100, 0)]);
        two.on_loss(P0, Instant::ZERO, Loss::Fast, &views);
        assert_eq!(two.window(P0).ssthresh, 1);
        let (mut one, views) = olia(&[(3, 100, 0)]);
        one.on_loss(P0, Instant::ZERO, Loss::Fast, &views);
        assert_eq!(one.window(P0).ssthresh, 2);
    }

    #[test]
    fn the_kernel_modules_threshold_is_two_packets_at_least() {
        for (min_ssthresh, window, threshold) in [(1, 3, 1), (2, 3, 2), (2, 1, 2), (2, 9, 4), (5, 9, 5)] {
            let (mut olia, views) = olia(&[(window, 100, 0), (10, 100, 0)]);
            olia.min_ssthresh = min_ssthresh;
            olia.on_loss(P0, Instant::ZERO, Loss::Fast, &views);
            assert_eq!(olia.window(P0).ssthresh, threshold, "{window} packets, at least {min_ssthresh}");
        }
    }
}
