//! Desynchronised multi-channel TCP (Cui et al.): only the widest window backs off, and at most once per interval.

use crate::coupled::measured;
use crate::flows::{Flows, view_of};
use crate::reno::halved;
use crate::window::{MIN_SSTHRESH, begins_episode};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, Window};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "desync",
    aliases: &["mctcpdesync"],
    about: "Desynchronised multi-channel TCP: one back-off per round trip, by the subflow with the widest window",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Desync::default()),
};

const PAGE: &str = "\
## Idea
Several channels of one connection through one bottleneck with a tiny buffer lose packets together and back off together,
and the link idles. Let one channel at a time back off, the one with the widest window, and let the narrowest catch up.

## Rule
W = sum of w_s over subflows with an RTT sample.
Congestion avoidance on r, per acknowledged packet: w_r += 1 / w_r if w_r is the smallest window, else 1 / (W - min w_s).
Loss or ECN mark on r, once per episode: if w_r is the largest window and no subflow has backed off for a smoothed RTT of r,
ssthresh = max(floor(w_r/2), 2), w_r = ssthresh; else the window stays. Ties: the first subflow counts.
Retransmission timeout: the same ssthresh, w_r = 1. Until the first back-off only the first subflow is in slow start; those
that join before it begin with 2 packets in congestion avoidance. One subflow alone is Reno.

## When it helps
Several subflows over one fast path whose buffer is a few packets.

## When it hurts
On different paths: a lossy path with a small window never backs off. It takes more than one TCP's share.

## Departures
The Linux module sets a later subflow's window to 2 at its first acknowledgment; here it joins with 2. A lone subflow
halves after every loss, as in Reno.

## References
C. Cui, L. Xue, C.-H. Chiu, P. Kondikoppa, S.-J. Park, \"DMCTCP: desynchronized multi-channel TCP for high speed access
networks with tiny buffers\", ICCCN 2014; the out-of-tree Linux module mctcp_desync.
";

/// Window of a subflow that joins before the first back-off.
const LATE_WINDOW: u32 = 2;

/// One instance serves all subflows of a connection.
#[derive(Clone, Debug, Default)]
pub struct Desync {
    flows: Flows<()>,
    /// The times of a subflow's last two back-offs.
    backed_off: Option<Instant>,
    before: Option<Instant>,
}

impl Desync {
    /// The increase of `id`'s window per acknowledged packet, in packets.
    fn increase(&self, id: PathId, paths: &[PathView]) -> f64 {
        let Some(own) = self.flows.get(id).map(|f| f.window.cwnd()) else { return 0.0 };
        let (mut total, mut least) = (0_u64, None);
        for (flow, _) in measured(&self.flows, paths) {
            let w = flow.window.cwnd();
            total += u64::from(w);
            if least.is_none_or(|(least, _)| w < least) {
                least = Some((w, flow.id));
            }
        }
        match least {
            Some((least, narrowest)) if narrowest != id && total > u64::from(least) => {
                1.0 / (total - u64::from(least)) as f64
            }
            _ => 1.0 / f64::from(own),
        }
    }

    /// True if `id` must back off now.
    fn must_back_off(&self, id: PathId, now: Instant, paths: &[PathView]) -> bool {
        let mut widest: Option<(u32, PathId)> = None;
        let mut count = 0;
        for (flow, _) in measured(&self.flows, paths) {
            let w = flow.window.cwnd();
            count += 1;
            if widest.is_none_or(|(most, _)| w > most) {
                widest = Some((w, flow.id));
            }
        }
        let srtt = view_of(paths, id).and_then(|p| p.srtt);
        match (widest, srtt) {
            (Some((_, widest)), Some(srtt)) if count > 1 => {
                widest == id && self.backed_off.is_none_or(|at| now.since(at) >= srtt)
            }
            _ => true,
        }
    }
}

impl CongestionControl for Desync {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        let late = self.backed_off.is_none() && self.flows.iter().any(|f| f.id != id);
        self.flows.join(id, if late { initial_window.min(LATE_WINDOW) } else { initial_window }, ());
        if let Some(flow) = self.flows.get_mut(id).filter(|_| late) {
            flow.window.end_slow_start();
        }
    }

    fn on_leave(&mut self, id: PathId) {
        self.flows.leave(id);
    }

    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        let acked = self.flows.get_mut(id).map_or(0, |f| f.window.slow_start(ack));
        if acked > 0 {
            let increase = self.increase(id, paths);
            if let Some(flow) = self.flows.get_mut(id) {
                flow.window.add(f64::from(acked) * increase);
            }
        }
    }

    fn on_loss(&mut self, id: PathId, now: Instant, loss: Loss, paths: &[PathView]) {
        let counts = begins_episode(loss);
        let backs_off = counts && self.must_back_off(id, now, paths);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let ssthresh = if backs_off { halved(&flow.window) } else { flow.window.cwnd().max(MIN_SSTHRESH) };
        flow.window.on_loss(loss, ssthresh);
        if counts {
            self.before = self.backed_off;
        }
        if backs_off {
            self.backed_off = Some(now);
        }
    }

    fn on_undo(&mut self, id: PathId, _now: Instant) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.window.undo();
            self.backed_off = self.before;
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
    const P2: PathId = PathId(2);

    fn desync(windows: &[u32]) -> (Desync, Vec<PathView>) {
        let paths: Vec<_> = windows.iter().map(|w| (*w, 100, 1400)).collect();
        let (flows, views) = connection(&paths, |_| ());
        (Desync { flows, ..Desync::default() }, views)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn vectors() {
        let (mut control, views) = desync(&[4, 10, 20]);
        let increases = [P0, P1, P2].map(|id| control.increase(id, &views));
        assert_eq!(increases, [0.25, 1.0 / 30.0, 1.0 / 30.0]);
        control.on_loss(P1, at(1000), Loss::Fast, &views);
        assert_eq!(control.window(P1).cwnd, 10);
        control.on_loss(P2, at(1000), Loss::Fast, &views);
        assert_eq!(control.window(P2).cwnd, 10);
    }

    #[test]
    fn one_back_off_per_round_trip() {
        let (mut control, views) = desync(&[40, 30]);
        control.on_loss(P0, at(1000), Loss::Fast, &views);
        assert_eq!(control.window(P0).cwnd, 20);
        control.on_loss(P1, at(1099), Loss::Fast, &views);
        assert_eq!(control.window(P1).cwnd, 30, "the widest now, but too early");
        control.on_loss(P1, at(1100), Loss::Fast, &views);
        assert_eq!(control.window(P1).cwnd, 15);
    }

    #[test]
    fn a_spurious_back_off_does_not_count() {
        let (mut control, views) = desync(&[40, 30]);
        control.on_loss(P0, at(1000), Loss::Fast, &views);
        control.on_undo(P0, at(1010));
        control.on_loss(P0, at(1020), Loss::Fast, &views);
        assert_eq!(control.window(P0).cwnd, 20);
    }

    #[test]
    fn ties_go_to_the_first() {
        let (mut control, views) = desync(&[10, 10]);
        assert_eq!([P0, P1].map(|id| control.increase(id, &views)), [0.1, 0.1]);
        control.on_loss(P1, at(1), Loss::Fast, &views);
        control.on_loss(P0, at(1), Loss::Fast, &views);
        assert_eq!([P0, P1].map(|id| control.window(id).cwnd), [5, 10]);
    }

    #[test]
    fn alone_it_is_reno() {
        let (mut control, views) = desync(&[40]);
        assert_eq!(control.increase(P0, &views), 1.0 / 40.0);
        for left in [20, 10, 5] {
            control.on_loss(P0, at(1), Loss::Fast, &views);
            assert_eq!(control.window(P0).cwnd, left);
        }
    }

    #[test]
    fn until_the_first_back_off_only_the_first_is_in_slow_start() {
        let mut control = Desync::default();
        let views =
            [P0, P1, P2].map(|id| PathView { srtt: Some(Duration::from_millis(100)), ..PathView::new(id, 1400) });
        control.on_join(P0, 10);
        control.on_join(P1, 10);
        for id in [P0, P1] {
            (0..8).for_each(|_| control.on_ack(id, &crate::linked::tests::ack(1), &views));
        }
        assert_eq!([P0, P1].map(|id| control.window(id).cwnd), [18, 4]);
        control.on_loss(P0, at(1), Loss::Fast, &views);
        control.on_join(P2, 10);
        control.on_ack(P2, &crate::linked::tests::ack(8), &views);
        assert_eq!(control.window(P2).cwnd, 18);
    }
}
