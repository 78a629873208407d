//! Algorithms in which a subflow's increase depends on all subflows, and the adapter that runs them on a connection.

use crate::coupled::measured;
use crate::flows::{Flow, Flows, view_of};
use crate::window::{MIN_SSTHRESH, begins_episode, whole};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, Window};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId};
use core::fmt::Debug;

/// A coupled algorithm: a subflow's increase and decrease, given the windows of all. Slow start, the reaction to a
/// timeout and the restart after idling are Reno's on each subflow.
pub trait Rule: Debug + Send {
    /// The sums over all windows and round trips.
    type Sums: Copy + Debug + Send;
    /// A subflow's state besides its window.
    type State: Clone + Debug + Default + Send;
    /// Least slow-start threshold in packets after a loss with several subflows; with one it is Reno's.
    const LEAST_SSTHRESH: u32 = MIN_SSTHRESH;

    /// The sums stay valid within a round, while only round-trip times change.
    const LASTING: bool = true;

    /// Sums over the established subflows with an RTT sample: see [`measured`].
    fn sums(&self, flows: &Flows<Self::State>, paths: &[PathView]) -> Self::Sums;

    /// The increase of `flow`'s window per acknowledged packet in congestion avoidance, in packets.
    fn increase(&self, sums: &Self::Sums, flow: &Flow<Self::State>, path: &PathView) -> f64;

    /// Slow-start threshold and window after a loss, in packets.
    fn ssthresh(&self, _sums: &Self::Sums, flow: &Flow<Self::State>, _path: &PathView) -> f64 {
        f64::from(flow.window.cwnd()) / 2.0
    }

    /// Updates the subflow's state from an acknowledgment.
    fn observe(_state: &mut Self::State, _ack: &Acked) {}

    /// Resets the state when the subflow restarts after idling.
    fn forget(_state: &mut Self::State) {}
}

/// One rule for all subflows of a connection. Lasting sums are cached until a window changes by a packet (also by a
/// loss, a penalty, an undo or a restart), a subflow joins or leaves, or a round trip ends.
#[derive(Clone, Debug)]
pub struct Linked<R: Rule> {
    rule: R,
    flows: Flows<R::State>,
    sums: Option<R::Sums>,
}

impl<R: Rule> Linked<R> {
    /// A connection without subflows yet.
    pub fn new(rule: R) -> Self {
        Self { rule, flows: Flows::default(), sums: None }
    }

    /// The increase of `id`'s window per acknowledged packet, in packets. An unmeasured subflow grows as in Reno.
    fn increase(&mut self, id: PathId, paths: &[PathView]) -> f64 {
        let Some(flow) = self.flows.get(id) else { return 0.0 };
        let Some(path) = view_of(paths, id).filter(|p| p.srtt.is_some()) else {
            return 1.0 / f64::from(flow.window.cwnd());
        };
        let sums = self.sums.get_or_insert_with(|| self.rule.sums(&self.flows, paths));
        self.rule.increase(sums, flow, path)
    }

    /// The threshold of `id` after a loss, in packets.
    fn ssthresh(&self, id: PathId, paths: &[PathView]) -> u32 {
        let Some(flow) = self.flows.get(id) else { return MIN_SSTHRESH };
        let several = measured(&self.flows, paths).nth(1).is_some();
        let least = if several { R::LEAST_SSTHRESH } else { MIN_SSTHRESH };
        let sums = self.rule.sums(&self.flows, paths);
        let known = view_of(paths, id).filter(|p| p.srtt.is_some());
        let exact = known.map_or(f64::from(flow.window.cwnd()) / 2.0, |path| self.rule.ssthresh(&sums, flow, path));
        whole(exact).max(least)
    }

    /// Applies `change` to subflow `id`; the cached sums are dropped if its window changed.
    fn change<T: Default>(&mut self, id: PathId, change: impl FnOnce(&mut Flow<R::State>) -> T) -> T {
        let Some(flow) = self.flows.get_mut(id) else { return T::default() };
        let before = flow.window.cwnd();
        let result = change(flow);
        if flow.window.cwnd() != before {
            self.sums = None;
        }
        result
    }
}

impl<R: Rule> CongestionControl for Linked<R> {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        self.flows.join(id, initial_window, R::State::default());
        self.sums = None;
    }

    fn on_leave(&mut self, id: PathId) {
        self.flows.leave(id);
        self.sums = None;
    }

    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        if ack.round_ended || !R::LASTING {
            self.sums = None;
        }
        let acked = self.change(id, |flow| {
            R::observe(&mut flow.state, ack);
            flow.window.slow_start(ack)
        });
        if acked > 0 {
            let increase = self.increase(id, paths);
            self.change(id, |flow| flow.window.add(f64::from(acked) * increase));
        }
    }

    fn on_loss(&mut self, id: PathId, _now: Instant, loss: Loss, paths: &[PathView]) {
        let ssthresh = if begins_episode(loss) { self.ssthresh(id, paths) } else { MIN_SSTHRESH };
        self.change(id, |flow| flow.window.on_loss(loss, ssthresh));
    }

    fn on_undo(&mut self, id: PathId, _now: Instant) {
        self.change(id, |flow| flow.window.undo());
    }

    fn on_idle(&mut self, id: PathId, _now: Instant, idle: Duration, rto: Duration) {
        self.change(id, |flow| {
            R::forget(&mut flow.state);
            flow.window.restart(idle, rto);
        });
    }

    fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        self.flows.set_threshold(id, ssthresh);
    }

    fn on_underuse(&mut self, id: PathId, used: u32) {
        self.flows.give_back(id, used);
        self.sums = None;
    }

    fn window(&self, id: PathId) -> Window {
        self.flows.window(id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::coupled::tests::connection;

    /// A connection in congestion avoidance under `rule`: (window, RTT in ms, MSS) of each path.
    pub(crate) fn linked<R: Rule>(rule: R, paths: &[(u32, u64, u32)]) -> (Linked<R>, Vec<PathView>) {
        let (flows, views) = connection(paths, |_| R::State::default());
        (Linked { rule, flows, sums: None }, views)
    }

    /// The increase of each path.
    pub(crate) fn increases<R: Rule>(rule: R, paths: &[(u32, u64, u32)]) -> Vec<f64> {
        let (mut linked, views) = linked(rule, paths);
        views.iter().map(|v| linked.increase(v.id, &views)).collect()
    }

    /// The window of each path if it alone loses a packet.
    pub(crate) fn after_loss<R: Rule + Clone>(rule: &R, paths: &[(u32, u64, u32)]) -> Vec<u32> {
        let (linked, views) = linked(rule.clone(), paths);
        let lose = |v: &PathView| {
            let mut control = Linked { rule: rule.clone(), ..linked.clone() };
            control.on_loss(v.id, Instant::ZERO, Loss::Fast, &views);
            control.window(v.id).cwnd
        };
        views.iter().map(lose).collect()
    }

    pub(crate) fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() <= 1e-9 * e.abs(), "{found:?} is not {expected:?}");
        }
    }

    /// An acknowledgment that lets the window grow.
    pub(crate) fn ack(packets: u32) -> Acked {
        let mut ack = Acked::default();
        (ack.counted, ack.cwnd_limited, ack.may_grow) = (packets, true, true);
        ack
    }

    /// Counts the computations of its sums; its increase is the sum of windows and round trips, so that stale sums
    /// show.
    #[derive(Clone, Debug)]
    struct Total;

    impl Rule for Total {
        type Sums = f64;
        type State = ();
        fn sums(&self, flows: &Flows<()>, paths: &[PathView]) -> f64 {
            measured(flows, paths).map(|(f, p)| f64::from(f.window.cwnd()) + crate::coupled::rtt(p)).sum()
        }
        fn increase(&self, sums: &f64, _flow: &Flow<()>, _path: &PathView) -> f64 {
            *sums / 1e6
        }
    }

    #[test]
    fn sums_are_kept_until_a_window_changes_or_a_round_ends() {
        let (mut total, mut views) = linked(Total, &[(10, 100, 1400), (20, 200, 1400)]);
        total.on_ack(PathId(0), &ack(1), &views);
        let first = total.sums;
        assert!(first.is_some());
        views[1].srtt = Some(Duration::from_millis(400));
        total.on_ack(PathId(0), &ack(1), &views);
        assert_eq!(total.sums, first);
        let mut ended = ack(1);
        ended.round_ended = true;
        total.on_ack(PathId(0), &ended, &views);
        assert_ne!(total.sums, first);
        for loss in [Loss::Fast, Loss::Penalty, Loss::Timeout { again: false }] {
            total.on_ack(PathId(0), &ack(1), &views);
            assert!(total.sums.is_some());
            total.on_loss(PathId(1), Instant::ZERO, loss, &views);
            assert_eq!(total.sums, None, "{loss:?}");
        }
        for change in [Linked::on_leave, |l: &mut Linked<Total>, id| l.on_join(id, 10)] {
            total.on_ack(PathId(0), &ack(1), &views);
            change(&mut total, PathId(1));
            assert_eq!(total.sums, None);
        }
    }

    #[test]
    fn what_may_not_grow_asks_for_no_sums() {
        let (mut total, views) = linked(Total, &[(10, 100, 1400), (20, 200, 1400)]);
        let mut in_recovery = ack(1);
        in_recovery.may_grow = false;
        total.on_ack(PathId(0), &in_recovery, &views);
        assert_eq!(total.sums, None);
    }

    #[test]
    fn what_is_unknown_grows_as_reno() {
        let (mut total, mut views) = linked(Total, &[(10, 100, 1400), (1000, 100, 1400)]);
        views[0].srtt = None;
        assert_eq!(total.increase(PathId(0), &views), 0.1);
        assert_eq!(total.increase(PathId(1), &[]), 0.001);
        assert_eq!(total.increase(PathId(7), &views), 0.0);
    }
}
