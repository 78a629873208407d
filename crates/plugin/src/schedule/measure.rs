//! The capacities of the paths, for schedulers that read them.

use super::Assignment;
use crate::capacity::Capacity;
use crate::congestion::Acked;
use crate::ensemble::{Member, Route};
use crate::path::PathView;
use anabranch_units::PathId;

impl Assignment {
    /// Whether the capacity of every path is to be measured. Nothing that is known is forgotten while it is.
    pub fn measure_capacity(&mut self, measures: bool) {
        self.measures = measures;
        if !measures {
            self.member.leave_all();
        }
        for path in &mut self.view.paths {
            path.capacity = measures.then(|| path.capacity.unwrap_or_default());
        }
    }
    /// The connection's part in its endpoint's ensemble.
    pub const fn member_mut(&mut self) -> &mut Member {
        &mut self.member
    }
    /// A path joins those of other connections between the same two addresses. A scheduler that takes over later measures the paths that are
    /// there for its connection alone.
    pub fn join(&mut self, id: PathId, route: Route) {
        if self.measures {
            self.member.join(id, route);
        }
    }
    /// A round begins: the scheduler sees the paths as all connections together know them.
    #[inline]
    pub fn gather(&mut self) {
        for path in self.view.paths.iter_mut().filter(|_| self.measures) {
            if let (Some(capacity), Some((all, elsewhere))) = (path.capacity.as_mut(), self.member.known(path.id)) {
                capacity.share(all, elsewhere);
            }
        }
    }
    /// A round is over: the others see the bytes that this connection has on its paths.
    #[inline]
    pub fn contribute(&mut self) {
        for path in self.view.paths.iter().filter(|_| self.measures) {
            self.member.count(path.id, path.in_flight_bytes + path.queued_bytes);
        }
        self.member.settle();
    }
    /// Path `id` delivers again after a silence: its shared capacity need not hold.
    pub fn renew_shared(&mut self, id: PathId) {
        self.member.capacity_mut(id).into_iter().for_each(|capacity| *capacity = Capacity::default());
    }
    /// Path `id` is new, or delivers again after a silence: nothing that was known of its capacity need hold.
    pub fn renew_capacity(&mut self, id: PathId) {
        let measured = self.path_mut(id).and_then(|path| path.capacity.as_mut());
        measured.into_iter().for_each(|capacity| *capacity = Capacity::default());
    }
    /// Path `id`, already up to date, was acknowledged: its capacity is known better, if it is measured.
    #[inline(always)]
    pub fn on_acked(&mut self, id: PathId, acked: &Acked) {
        if self.measures {
            self.measure(id, acked);
        }
    }
    #[inline(never)]
    fn measure(&mut self, id: PathId, acked: &Acked) {
        let Some(i) = self.index(id) else { return };
        let path = &mut self.view.paths[i];
        let PathView { capacity: Some(capacity), min_rtt, forward_delay, .. } = path else { return };
        if let Some(forward) = forward_delay {
            capacity.on_forward(forward.relative);
        }
        // The last packet in flight may have waited for the receiver's timer for delayed acknowledgments.
        let rtt = acked.rtt.filter(|_| acked.prior_in_flight > acked.packets);
        let waited = rtt.map(|rtt| rtt.saturating_sub(min_rtt.unwrap_or(rtt)));
        let shared = self.member.capacity_mut(id);
        shared.unwrap_or(capacity).on_ack(acked.now, (acked.packets, acked.bytes), waited);
        self.member.count(id, path.in_flight_bytes + path.queued_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Duration, Instant};

    /// Two packets of 1,400 bytes, 2 ms apart, that waited for 60 ms.
    fn acknowledge(view: &mut Assignment, id: PathId, at: u64) {
        for now in [at - 2, at].map(Instant::from_millis) {
            let rtt = Some(Duration::from_millis(80));
            view.on_acked(id, &Acked { now, packets: 1, bytes: 1400, rtt, prior_in_flight: 9, ..Acked::default() });
        }
    }

    fn rates(view: &Assignment) -> Vec<Option<f64>> {
        view.paths().iter().map(PathView::capacity_rate).collect()
    }

    fn two_paths(measures: bool) -> Assignment {
        let mut view = Assignment::new(false);
        view.measure_capacity(measures);
        let min_rtt = Some(Duration::from_millis(20));
        [0, 1].into_iter().for_each(|id| view.set_path(PathView { min_rtt, ..PathView::new(PathId(id), 1400) }));
        view
    }

    #[test]
    fn only_the_path_that_was_acknowledged_learns() {
        let mut view = two_paths(true);
        acknowledge(&mut view, PathId(1), 100);
        assert_eq!(rates(&view), [None, Some(700e3)]);
        assert_eq!(view.paths()[0].capacity, Some(Capacity::default()));
    }

    #[test]
    fn nothing_is_measured_for_a_scheduler_that_does_not_read_it() {
        let mut view = two_paths(false);
        acknowledge(&mut view, PathId(1), 100);
        assert!(view.paths().iter().all(|path| path.capacity.is_none()));
        // The next one reads it, and the one after that, too: nothing is forgotten between them.
        view.measure_capacity(true);
        acknowledge(&mut view, PathId(1), 200);
        view.measure_capacity(true);
        assert_eq!(rates(&view), [None, Some(700e3)]);
        view.measure_capacity(false);
        assert!(view.paths().iter().all(|path| path.capacity.is_none()));
    }

    #[test]
    fn a_path_that_returns_is_measured_anew() {
        let mut view = two_paths(true);
        [0, 1].into_iter().for_each(|id| acknowledge(&mut view, PathId(id), 100));
        view.renew_capacity(PathId(0));
        assert_eq!(rates(&view), [None, Some(700e3)]);
    }
}
