//! The knowledge that the connections of an endpoint share of the paths between the same two addresses (RFC 9040 §6, ensemble sharing).

use crate::capacity::Capacity;
use anabranch_units::PathId;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// Our address and the peer's: whatever travels between the two shares a path, as far as an endpoint can tell.
pub type Route = (IpAddr, IpAddr);

/// Routes that are remembered although no connection has anything on them; beyond these all such are forgotten.
const IDLE_ROUTES: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    capacity: Capacity,
    /// Bytes that all connections have in flight or queued.
    out: u64,
}

/// All that an endpoint knows of its routes. It is lent to a connection for each call in which that learns or decides, if its scheduler reads
/// capacities; a connection that is driven without an endpoint has none.
#[derive(Clone, Debug, Default)]
pub struct Ensemble {
    routes: BTreeMap<Route, Shared>,
}

impl Ensemble {
    fn route(&mut self, route: Route) -> &mut Shared {
        if self.routes.len() > IDLE_ROUTES && !self.routes.contains_key(&route) {
            self.routes.retain(|_, shared| shared.out > 0);
        }
        self.routes.entry(route).or_default()
    }

    /// A connection is gone, with what it had on its paths.
    pub fn without(&mut self, member: &Member) {
        for part in &member.parts {
            self.route(part.route).out -= part.counted;
        }
    }
}

/// A connection's part on a path.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// `None` once the path is gone.
    id: Option<PathId>,
    route: Route,
    /// Bytes in flight or queued, and of these what the ensemble counts already.
    out: u64,
    counted: u64,
}

/// A connection in its endpoint's ensemble.
#[derive(Clone, Debug, Default)]
pub struct Member {
    parts: Vec<Part>,
    lent: Option<Box<Ensemble>>,
}

impl Member {
    /// Borrows the endpoint's ensemble for a call, if this connection has a part in it.
    #[inline(always)]
    pub fn borrow(&mut self, ensemble: &mut Option<Box<Ensemble>>) {
        if !self.parts.is_empty() {
            self.lent = ensemble.take();
        }
    }

    /// Gives it back, if it is here.
    #[inline(always)]
    pub fn give_back(&mut self, ensemble: &mut Option<Box<Ensemble>>) {
        if self.lent.is_some() {
            *ensemble = self.lent.take();
        }
    }

    /// The connection has a part on `route`, as path `id`.
    pub fn join(&mut self, id: PathId, route: Route) {
        self.leave(id);
        self.parts.push(Part { id: Some(id), route, out: 0, counted: 0 });
    }

    /// The connection's path `id` is gone.
    pub fn leave(&mut self, id: PathId) {
        for part in self.parts.iter_mut().filter(|part| part.id == Some(id)) {
            (part.id, part.out) = (None, 0);
        }
    }

    /// The connection measures no more.
    pub fn leave_all(&mut self) {
        self.parts.iter_mut().for_each(|part| (part.id, part.out) = (None, 0));
    }

    /// The capacity of a path as all connections measure it, if the ensemble is here.
    pub fn capacity_mut(&mut self, id: PathId) -> Option<&mut Capacity> {
        let route = self.parts.iter().find(|part| part.id == Some(id))?.route;
        Some(&mut self.lent.as_mut()?.route(route).capacity)
    }

    /// The same, and the bytes that the other connections have on it.
    pub fn known(&mut self, id: PathId) -> Option<(Capacity, u64)> {
        let part = *self.parts.iter().find(|part| part.id == Some(id))?;
        let shared = *self.lent.as_mut()?.route(part.route);
        Some((shared.capacity, shared.out - part.counted))
    }

    /// This connection has so many bytes in flight or queued on a path.
    pub fn count(&mut self, id: PathId, out: u64) {
        self.parts.iter_mut().filter(|part| part.id == Some(id)).for_each(|part| part.out = out);
        self.settle();
    }

    /// Has the ensemble count what changed, if it is here.
    pub fn settle(&mut self) {
        let Some(ensemble) = self.lent.as_mut() else { return };
        for part in self.parts.iter_mut().filter(|part| part.out != part.counted) {
            let shared = ensemble.route(part.route);
            shared.out = shared.out + part.out - part.counted;
            part.counted = part.out;
        }
        self.parts.retain(|part| part.id.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Duration, Instant};

    const A: PathId = PathId(0);

    fn route(n: u8) -> Route {
        (IpAddr::from([10, 0, 0, n]), IpAddr::from([10, 0, 1, n]))
    }

    /// Two connections on one route, under different ids, and a third on another.
    fn three() -> (Option<Box<Ensemble>>, [Member; 3]) {
        let mut members = <[Member; 3]>::default();
        members[0].join(A, route(0));
        members[1].join(PathId(1), route(0));
        members[2].join(A, route(1));
        (Some(Box::default()), members)
    }

    /// Does `act` while the ensemble is lent.
    fn with<T>(ensemble: &mut Option<Box<Ensemble>>, member: &mut Member, act: impl FnOnce(&mut Member) -> T) -> T {
        member.borrow(ensemble);
        let done = act(member);
        member.give_back(ensemble);
        done
    }

    #[test]
    fn acknowledgments_of_one_tell_the_capacity_to_all_on_the_route() {
        let (mut ensemble, [mut one, mut two, mut other]) = three();
        let waited = Some(Duration::from_secs(1));
        // A packet per ms at the bottleneck, now of one and now of the other.
        for ms in 0..8 {
            let (member, id) = if ms % 2 == 0 { (&mut one, A) } else { (&mut two, PathId(1)) };
            with(&mut ensemble, member, |m| {
                m.capacity_mut(id).unwrap().on_ack(Instant::from_millis(ms), (1, 1000), waited);
            });
        }
        let mut rate = |member: &mut Member, id| with(&mut ensemble, member, |m| m.known(id)).unwrap().0.rate();
        assert!(rate(&mut two, PathId(1)).is_some_and(|rate| (rate - 1e6).abs() < 1.0));
        assert_eq!(rate(&mut two, PathId(1)), rate(&mut one, A));
        assert_eq!(rate(&mut other, A), None);
        assert!(one.known(A).is_none(), "only while it is lent");
    }

    #[test]
    fn what_the_others_have_out_is_known_until_their_path_or_they_are_gone() {
        let (mut ensemble, [mut one, mut two, mut other]) = three();
        with(&mut ensemble, &mut one, |m| m.count(A, 5000));
        with(&mut ensemble, &mut two, |m| m.count(PathId(1), 700));
        with(&mut ensemble, &mut other, |m| m.count(A, 30));
        let elsewhere = |e: &mut Option<Box<Ensemble>>, m: &mut Member, id| with(e, m, |m| m.known(id)).unwrap().1;
        assert_eq!(elsewhere(&mut ensemble, &mut one, A), 700);
        assert_eq!(elsewhere(&mut ensemble, &mut two, PathId(1)), 5000);
        assert_eq!(elsewhere(&mut ensemble, &mut other, A), 0);
        with(&mut ensemble, &mut one, |m| m.count(A, 4000));
        assert_eq!(elsewhere(&mut ensemble, &mut two, PathId(1)), 4000);
        // The path goes while nothing is lent, and returns on another route.
        one.leave(A);
        one.join(A, route(1));
        with(&mut ensemble, &mut one, |m| m.count(A, 1));
        assert_eq!(elsewhere(&mut ensemble, &mut two, PathId(1)), 0);
        assert_eq!(elsewhere(&mut ensemble, &mut other, A), 1);
        with(&mut ensemble, &mut two, |m| {
            m.count(PathId(1), 9);
            m.leave_all();
            m.settle();
        });
        assert_eq!(ensemble.as_mut().unwrap().route(route(0)).out, 0);
        ensemble.as_mut().unwrap().without(&one);
        assert_eq!(elsewhere(&mut ensemble, &mut other, A), 0);
    }

    #[test]
    fn nothing_is_lent_to_a_connection_without_a_part_and_what_is_lent_returns() {
        let (mut ensemble, mut member) = (Some(Box::default()), Member::default());
        with(&mut ensemble, &mut member, |m| m.join(A, route(0)));
        assert!(ensemble.is_some() && member.lent.is_none());
        with(&mut ensemble, &mut member, |m| {
            assert!(m.lent.is_some());
            m.leave(A);
            m.count(A, 0);
            assert!(m.parts.is_empty());
        });
        assert!(ensemble.is_some() && member.lent.is_none());
    }

    #[test]
    fn idle_routes_are_forgotten_before_they_are_too_many() {
        let mut ensemble = Ensemble::default();
        let route = |n: u32| (IpAddr::from([10, 0, 0, 1]), IpAddr::from(n.to_be_bytes()));
        (0..5000).for_each(|n| ensemble.route(route(n)).out = u64::from(n == 7));
        assert!(ensemble.routes.len() <= IDLE_ROUTES + 1);
        assert_eq!(ensemble.route(route(7)).out, 1);
    }
}
