//! What is done over every path set.

use anabranch_network::{Bottleneck, CapacitySpec, PathSpec, Topology};
use anabranch_scenario::{Scenario, TrafficKind};
use anabranch_units::{Duration, Rate};

/// An application over a path set.
#[derive(Clone, Debug)]
pub struct Application {
    /// `bulk`, `256 KB`, `frames`.
    pub name: &'static str,
    /// The path set with it.
    pub scenario: Scenario,
}

/// Bulk and frames last so long, if that is not too much data.
const LONGEST: Duration = Duration::from_secs(10);
/// The most data that the paths of a set could carry in that time.
const MOST_BYTES: u64 = 25_000_000;
/// A transfer that takes longer is given up: it counts as never finished.
const PATIENCE: Duration = Duration::from_secs(60);

const TRANSFERS: [(&str, u64); 4] = [("16 KB", 16_000), ("256 KB", 256_000), ("2 MB", 2_000_000), ("8 MB", 8_000_000)];

/// Frames per second, and the part of what all paths together carry that they take.
const FRAME_INTERVAL: Duration = Duration::from_millis(40);
const FRAME_PERCENT: u64 = 60;

/// Unlimited bulk, four transfers from 16 KB to 8 MB, and 25 frames a second that fill 60 % of the paths.
pub fn applications(paths: &Scenario) -> Vec<Application> {
    let capacity = capacity(&paths.topology);
    let duration = LONGEST.min(capacity.time_for(MOST_BYTES));
    let with = |name, kind: TrafficKind, duration| Application {
        name,
        scenario: Scenario {
            traffic: vec![kind.into()],
            duration: Some(duration),
            warmup: Duration::ZERO,
            ..paths.clone()
        },
    };
    let size = (capacity.bytes_in(FRAME_INTERVAL) * FRAME_PERCENT / 100).max(1);
    let frames = TrafficKind::Frames { size, interval: FRAME_INTERVAL, count: None };
    let mut frames = with("frames", frames, duration);
    // Who cares for delay sets TCP_NODELAY.
    frames.scenario.settings.tcp.nagle = false;
    let transfer = |(name, size)| with(name, TrafficKind::Bulk { size: Some(size) }, PATIENCE);
    [with("bulk", TrafficKind::Bulk { size: None }, duration)]
        .into_iter()
        .chain(TRANSFERS.into_iter().map(transfer))
        .chain([frames])
        .collect()
}

/// What all paths together carry towards the client, at first; of a recording, its mean.
fn capacity(topology: &Topology) -> Rate {
    let links = topology.links.iter().map(|link| &link.down.capacity);
    let own = |path: &PathSpec| match &path.down.bottleneck {
        Bottleneck::Own(own) => Some(own.capacity.clone()),
        Bottleneck::Shared(_) => None,
    };
    let bps = |capacity: &CapacitySpec| capacity.initial_rate().as_bps();
    let own: u64 = topology.paths.iter().filter_map(own).map(|capacity| bps(&capacity)).sum();
    Rate::from_bps(own + links.map(bps).sum::<u64>())
}
