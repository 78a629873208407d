//! A meter for each part of the connections: for each pair of hosts, or each application.

use anabranch_metrics::{Meter, MeterConfig, RunMetrics};
use anabranch_trace::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{ConnId, Direction, Instant, PathId};
use std::collections::BTreeSet;

/// The meters of all parts. Each sees the events of its own hosts, with connections numbered from 0; what happens at links is counted
/// elsewhere, for all parts together.
#[derive(Debug)]
pub(crate) struct Meters {
    meters: Vec<Meter>,
    /// Meter of each connection, and the first connection of its part.
    owners: Vec<(u32, u32)>,
}

impl Meters {
    /// Configurations, each with the number of the part's first connection, ascending and without gaps.
    pub fn new(parts: impl IntoIterator<Item = (MeterConfig, u32)>) -> Self {
        let (mut meters, mut owners) = (Vec::new(), Vec::new());
        for (n, (config, first)) in (0..).zip(parts) {
            owners.extend(std::iter::repeat_n((n, first), config.connections as usize));
            meters.push(Meter::new(config));
        }
        Self { meters, owners }
    }

    /// Times at which both hosts must have come as far.
    pub fn marks(&self) -> BTreeSet<Instant> {
        self.meters.iter().flat_map(Meter::marks).collect()
    }

    /// The metrics of each part.
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
