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
        let (topology, direction) = (&scenario.topology, scenario.direction());
        let shapes =
            |way| -> Vec<PathShape> { (0..topology.paths.len()).map(|path| shape(topology, path, way)).collect() };
        let back = if direction.is_both() { shapes(Direction::Up) } else { Vec::new() };
        let paths = shapes(direction.first());
        Self { warmup_s: scenario.warmup.as_secs_f64(), direction, paths, back }
    }
}

fn shape(topology: &Topology, index: usize, direction: Direction) -> PathShape {
    let path = &topology.paths[index];
    let way = path.way(direction);
    let links: Vec<&LinkSpec> = way.bottleneck.route().iter().filter_map(|link| topology.links.get(*link)).collect();
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let behind = links.iter().filter_map(|link| link.behind(direction));
    let lost = behind.map(|way| mean_loss(way.loss)).filter(|loss| *loss > 0.0);
    let mut shape = PathShape {
        name: path.name.clone(),
        link: (!names.is_empty()).then(|| names.join(", ")),
        delay_s: topology.delay(path, direction).as_secs_f64(),
        loss: lost.fold(mean_loss(way.loss), |all, loss| all + (1.0 - all) * loss),
        ..PathShape::default()
    };
    if let Some((_, BottleneckSpec { capacity, queue, .. })) = topology.narrowest(index, direction) {
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
    fn paths_are_shown_in_the_direction_of_the_data() {
        let of = |direction: &str| {
            let path =
                "[[path]]\nname = 'a'\nrate = { down = '80mbit', up = '8mbit' }\ndelay = '5ms'\nloss = { up = '2%' }\n";
            let text = format!("{path}[[traffic]]\nkind = 'bulk'\nsize = '1MB'\ndirection = '{direction}'\n");
            network("a", &text)
        };
        let shapes = |network: &Network| -> Vec<(String, f64, f64)> {
            let all = network.paths.iter().chain(&network.back);
            all.map(|path| (path.name.clone(), path.rate_bps, path.loss)).collect()
        };
        let (down, up, both) = (of("down"), of("up"), of("both"));
        assert_eq!(shapes(&down), [("a".to_owned(), 80e6, 0.0)]);
        assert_eq!(shapes(&up), [("a".to_owned(), 8e6, 0.02)]);
        assert_eq!(shapes(&both), [("a".to_owned(), 80e6, 0.0), ("a".to_owned(), 8e6, 0.02)]);
        assert!(down.direction_in_words().is_none());
        assert!(up.direction_in_words().unwrap().contains("from the client to the server"));
        assert!(both.direction_in_words().unwrap().contains("both ways"));
        let drawn = super::super::draw_network(&both).unwrap();
        assert!(drawn.contains("a, down</tspan> 80 Mbit/s") && drawn.contains("a, up</tspan> 8 Mbit/s"), "{drawn}");
        let place = |network: &Network, host: &str| super::super::draw_network(network).unwrap().find(host).unwrap();
        assert!(place(&down, ">server<") < place(&down, ">client<"));
        assert!(place(&up, ">client<") < place(&up, ">server<"));
    }

    #[test]
    fn loss_in_bursts_is_shown_by_its_mean() {
        let bursts = LossSpec::GilbertElliott { p: 0.01, r: 0.09, h: 0.5, k: 1.0 };
        assert!((mean_loss(bursts) - 0.05).abs() < 1e-12);
    }
}
