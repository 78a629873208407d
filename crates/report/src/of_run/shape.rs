//! A scenario's network as its report shows it.

use super::network::{Network, PathShape};
use anabranch_network::{BottleneckSpec, CapacitySpec, DropTail, LinkSpec, LossSpec, Topology};
use anabranch_scenario::Scenario;
use anabranch_units::Direction;

/// Bytes of a full packet, as queues that count packets are shown.
const PACKET: f64 = 1500.0;

impl Network {
    /// The network of a scenario; of a sweep, without what it varies.
    pub fn of(scenario: &Scenario) -> Self {
        let topology = &scenario.topology;
        let paths = (0..topology.paths.len()).map(|path| shape(topology, path)).collect();
        Self { warmup_s: scenario.warmup.as_secs_f64(), paths }
    }
}

fn shape(topology: &Topology, index: usize) -> PathShape {
    let path = &topology.paths[index];
    let links: Vec<&LinkSpec> =
        path.down.bottleneck.route().iter().filter_map(|link| topology.links.get(*link)).collect();
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let behind = links.iter().filter_map(|link| link.behind(Direction::Down));
    let lost = behind.map(|way| mean_loss(way.loss)).filter(|loss| *loss > 0.0);
    let mut shape = PathShape {
        name: path.name.clone(),
        link: (!names.is_empty()).then(|| names.join(", ")),
        delay_s: topology.delay(path, Direction::Down).as_secs_f64(),
        loss: lost.fold(mean_loss(path.down.loss), |all, loss| all + (1.0 - all) * loss),
        ..PathShape::default()
    };
    if let Some((_, BottleneckSpec { capacity, queue, .. })) = topology.narrowest(index, Direction::Down) {
        (shape.rate_bps, shape.recorded) = match capacity {
            CapacitySpec::Fixed(_) | CapacitySpec::Bucket(_) => (capacity.initial_rate().as_bps() as f64, false),
            CapacitySpec::Trace(_) | CapacitySpec::Steps(_) => (capacity.initial_rate().as_bps() as f64, true),
        };
        (shape.queue_bytes, shape.queue_packets) = match queue.limit() {
            DropTail::Packets(packets) => (PACKET * f64::from(packets), Some(packets)),
            DropTail::Bytes(bytes) => (bytes as f64, None),
        };
    }
    shape
}

/// The part of all packets, in the long run.
fn mean_loss(loss: LossSpec) -> f64 {
    match loss {
        LossSpec::None => 0.0,
        LossSpec::Bernoulli(probability) => probability,
        // The stationary distribution of the two states: bad with p/(p + r).
        LossSpec::GilbertElliott { p, r, h, k } if p + r > 0.0 => (p * (1.0 - h) + r * (1.0 - k)) / (p + r),
        LossSpec::GilbertElliott { k, .. } => 1.0 - k,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::{NoFiles, Source, read};

    fn network(name: &str, text: &str) -> Network {
        let source = Source { name: name.into(), text: text.into() };
        Network::of(&read(&source, &[], &NoFiles).unwrap().scenario)
    }

    #[test]
    fn the_shape_is_that_of_the_scenario() {
        let network = network("blest", include_str!("../../../../scenarios/blest-3g-wlan-bulk.toml"));
        let [wlan, g3] = &network.paths[..] else { panic!("two paths") };
        assert_eq!((network.warmup_s, wlan.name.as_str(), g3.name.as_str()), (60.0, "wlan", "3g"));
        assert_eq!((wlan.rate_bps, wlan.delay_s, wlan.loss, wlan.queue_packets), (25e6, 0.025, 0.01, Some(100)));
        assert_eq!((g3.rate_bps, g3.delay_s, g3.loss, g3.queue_bytes), (5e6, 0.065, 0.0, 3750.0 * 1500.0));
        assert!(!wlan.recorded && wlan.link.is_none());
    }

    #[test]
    fn paths_of_a_shared_link_have_its_capacity() {
        let network = network("shared", include_str!("../../../../scenarios/shared-bottleneck.toml"));
        let shared: Vec<PathShape> = network.paths.into_iter().filter(|path| path.link.is_some()).collect();
        assert!(!shared.is_empty() && shared.iter().all(|path| path.rate_bps > 0.0), "{shared:?}");
    }

    #[test]
    fn loss_in_bursts_is_shown_by_its_mean() {
        let bursts = LossSpec::GilbertElliott { p: 0.01, r: 0.09, h: 0.5, k: 1.0 };
        assert!((mean_loss(bursts) - 0.05).abs() < 1e-12);
    }
}
