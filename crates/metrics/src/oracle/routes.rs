//! Paths over several links: how much they carry together.

use super::packing::most_worth;
use super::{Ends, Lane, Timeline, Use, arriving as share_arriving};
use crate::CapacityCurve;
use crate::capacity::after_changes;
use anabranch_network::{BehindChange, Change, PathSpec, Place, RadioChange, Topology, WaySpec};
use anabranch_units::{Direction, Duration};
use std::collections::BTreeMap;

/// Paths over several links, and those that share one with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    pub lanes: Vec<Lane>,
    pub links: Vec<Link>,
}

/// A link, and the lanes across it with the least time before a packet leaves it.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub capacity: CapacityCurve,
    across: Vec<(usize, Duration)>,
}

/// Whether a path crosses several links, or one that such a path crosses.
pub(super) fn is_routed(topology: &Topology, path: usize, direction: Direction) -> bool {
    let of = |path: &PathSpec| path.way(direction).bottleneck.route().to_vec();
    let crosses = |link: &usize| topology.paths.iter().map(of).any(|route| route.len() > 1 && route.contains(link));
    topology.paths.get(path).is_some_and(|path| path.way(direction).bottleneck.route().iter().any(crosses))
}

impl Routes {
    /// Over the paths `over`, the first subflow being on the path `first`.
    pub fn new(
        (topology, timeline): (&Topology, &Timeline),
        (over, first): (&[usize], usize),
        (mss, header): (u32, u32),
        direction: Direction,
    ) -> Self {
        let (mut lanes, mut links) = (Vec::new(), BTreeMap::new());
        let opening = Ends::new((topology, timeline), first, direction);
        for index in over {
            let Some(path) = Ends::new((topology, timeline), *index, direction) else { continue };
            let mut before = Duration::ZERO;
            for link in path.data.bottleneck.route() {
                let Some(spec) = topology.links.get(*link) else { continue };
                let capacity = || after_changes(spec.bottleneck(direction), timeline, (Place::Link(*link), direction));
                let known = links.entry(*link).or_insert_with(|| Link { capacity: capacity(), across: Vec::new() });
                known.across.push((lanes.len(), before));
                before += behind(topology, timeline, *link, direction);
            }
            lanes.push(path.lane(opening.as_ref().filter(|_| *index != first), timeline, mss, header));
        }
        Self { lanes, links: links.into_values().collect() }
    }

    /// Payload bytes that all lanes together can carry. What a link carries counts from the first lane's opening until the last one's
    /// closing, and each lane within its own times: more than whole packets can reach.
    pub fn payload(&self, of: impl Fn(&Lane) -> Use) -> f64 {
        if self.lanes.is_empty() {
            return 0.0;
        }
        let uses: Vec<Use> = self.lanes.iter().map(of).collect();
        let worth: Vec<f64> = self.lanes.iter().zip(&uses).map(|(lane, how)| lane.best_efficiency(*how)).collect();
        let mut most = vec![f64::INFINITY; self.lanes.len()];
        let mut links = Vec::with_capacity(self.links.len());
        for Link { capacity, across } in &self.links {
            let times = across.iter().map(|(lane, before)| (uses[*lane].opens + *before, uses[*lane].closes + *before));
            for ((lane, _), (opens, closes)) in across.iter().zip(times.clone()) {
                most[*lane] = most[*lane].min(capacity.bytes(opens, closes.max(opens)));
            }
            let opens = times.clone().map(|(opens, _)| opens).min().unwrap_or_default();
            let closes = times.map(|(_, closes)| closes).max().unwrap_or_default();
            let members = across.iter().map(|(lane, _)| *lane).collect();
            links.push((capacity.bytes(opens, closes.max(opens)), members));
        }
        let survivors: f64 = self.lanes.iter().zip(&uses).map(|(lane, how)| lane.survivors(*how)).sum();
        most_worth(&worth, &most, &links) + survivors
    }
}

/// The delays that a link has in a direction, at first and by changes; jitter and slots may take from them.
fn behind(topology: &Topology, timeline: &Timeline, link: usize, direction: Direction) -> Duration {
    let Some(way) = topology.links.get(link).and_then(|link| link.behind(direction)) else { return Duration::ZERO };
    let (mut delay, mut jitter, mut slots) = (way.least_delay(), way.jitter.earliest(), way.radio.slots.earliest());
    for change in changes(timeline, link, direction) {
        match change {
            BehindChange::Delay(to) => delay = delay.min(*to),
            BehindChange::Jitter(to) => jitter = jitter.max(to.earliest()),
            BehindChange::Radio(RadioChange::Slots(to)) => slots = slots.max(to.earliest()),
            BehindChange::Radio(_) | BehindChange::Loss(_) | BehindChange::Reorder(_) => {}
        }
    }
    delay.saturating_sub(jitter + slots)
}

fn changes(timeline: &Timeline, link: usize, direction: Direction) -> impl Iterator<Item = &BehindChange> {
    timeline.iter().filter_map(move |(_, change)| match change {
        Change::Behind(of, way, change) if (*of, *way) == (link, direction) => Some(change),
        _ => None,
    })
}

/// The least delay of all links of a direction of a path.
pub(super) fn least_delay(topology: &Topology, timeline: &Timeline, path: &PathSpec, direction: Direction) -> Duration {
    let route = path.way(direction).bottleneck.route().iter();
    route.fold(Duration::ZERO, |sum, link| sum + behind(topology, timeline, *link, direction))
}

/// The share of packets that the links of a direction of a path let through, at the best of times.
pub(super) fn arriving(topology: &Topology, timeline: &Timeline, way: &WaySpec, direction: Direction) -> f64 {
    let of = |link: usize| {
        let way = topology.links.get(link)?.behind(direction)?;
        let recorded = way.recorded_loss.as_ref();
        let first = recorded.map_or_else(
            || share_arriving(&way.loss, way.corrupt),
            |steps| steps.parts().map(|(_, loss)| (1.0 - loss) * (1.0 - way.corrupt)).fold(0.0, f64::max),
        );
        let later = changes(timeline, link, direction).filter_map(|change| match change {
            BehindChange::Loss(loss) => Some(share_arriving(loss, way.corrupt)),
            _ => None,
        });
        // A second copy may take the place of a lost one; strictly, what loses everything may not do so all the time.
        Some((later.fold(first, f64::max) * (1.0 + way.duplicate)).min(1.0))
    };
    way.bottleneck.route().iter().filter_map(|link| of(*link)).product()
}

/// Whether the time from the first bottleneck of a path to its end varies: queues between links, and what varies behind them.
pub(super) fn delays_vary(topology: &Topology, timeline: &Timeline, way: &WaySpec, direction: Direction) -> bool {
    let route = way.bottleneck.route();
    let varies = |way: &WaySpec| {
        !way.jitter.is_none() || way.radio.impairs() || way.recorded_delay.is_some() || way.reorder.probability > 0.0
    };
    let of = |link: &usize| {
        let way = topology.links.get(*link).and_then(|link| link.behind(direction));
        way.is_some_and(varies) || changes(timeline, *link, direction).next().is_some()
    };
    route.len() > 1 || route.iter().any(of)
}
