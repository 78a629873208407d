//! The figures of each link of a scenario.

use crate::job::RunOutcome;
use anabranch_metrics::Oracle;
use anabranch_network::{Change, Topology};
use anabranch_sim::World;
use anabranch_units::{Direction, Instant};

/// Adds the values of `links`, by index, of the world's network, each as `link.NAME.DIRECTION.VALUE`: packets dropped, most packets
/// that waited, and the share of the capacity that was used. They count all traffic from time zero, warm-up included.
pub(crate) fn add(
    outcome: &mut RunOutcome,
    world: &World,
    (topology, timeline): (&Topology, &[(Instant, Change)]),
    links: impl Iterator<Item = usize>,
) {
    let mut all = Vec::new();
    for (index, link) in links.filter_map(|index| Some((index, topology.links.get(index)?))) {
        for direction in Direction::BOTH {
            let counts = world.link_counts(index, direction);
            let mut add = |name: &str, value: f64| {
                all.push((format!("link.{}.{}.{name}", link.name, direction.name()), value));
            };
            add("dropped_packets", counts.drops.total() as f64);
            add("queue_max_packets", f64::from(counts.queue_max));
            let capacity = Oracle::link_capacity(topology, timeline, index, direction);
            let most = capacity.map_or(0.0, |capacity| capacity.bytes(Instant::ZERO, world.now()));
            if most > 0.0 {
                add("utilisation", (counts.bytes as f64 / most).min(1.0));
            }
        }
    }
    outcome.metrics.append(all);
}
