//! A meter for each pair of hosts.

use super::cast::Cast;
use anabranch_metrics::{Meter, MeterConfig, RunMetrics};
use anabranch_trace::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{ConnId, Direction, Instant, PathId};

/// The meters of all pairs. Each sees the events of its own hosts, with connections numbered from 0; what happens at links is counted by
/// the network, for all pairs together.
pub(crate) struct Meters {
    meters: Vec<Meter>,
    /// Meter of each connection, and the first connection of its pair.
    owners: Vec<(u32, u32)>,
}

impl Meters {
    /// `configs` by pair.
    pub fn new(cast: &Cast, configs: Vec<MeterConfig>) -> Self {
        let meters = configs.into_iter().map(Meter::new).collect();
        let owners = cast
            .pairs
            .iter()
            .zip(0..)
            .flat_map(|(pair, n)| std::iter::repeat_n((n, pair.first), pair.connections as usize));
        Self { meters, owners: owners.collect() }
    }

    /// Times at which both hosts must have come as far.
    pub fn marks(&self) -> impl Iterator<Item = Instant> + '_ {
        // Alike for all: the beginning and the end of the measured time.
        self.meters.first().into_iter().flat_map(Meter::marks)
    }

    /// The metrics of each pair.
    pub fn finish(self, now: Instant) -> Vec<RunMetrics> {
        self.meters.into_iter().map(|meter| meter.finish(now)).collect()
    }
}

impl Recorder for Meters {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if origin.host.is_none() {
            return;
        }
        // Cross traffic has no owner.
        let Some(&(meter, first)) = self.owners.get(origin.connection.0 as usize) else { return };
        let origin = Origin { connection: ConnId(origin.connection.0 - first), ..origin };
        self.meters[meter as usize].record(now, origin, event);
    }

    fn link(&mut self, _now: Instant, _path: PathId, _direction: Direction, _size: u32, _what: LinkEvent) {}

    fn needs_order(&self) -> bool {
        false
    }
}
