//! The applications of a pair of hosts, each with connections of its own.

use crate::crowd::Connections;
use anabranch_metrics::{MeterConfig, Timed};
use anabranch_scenario::{Scenario, Traffic};
use anabranch_units::{ConnId, Direction, Duration, Instant, Rng, TrafficDirection};

/// An application's connections among those under test.
#[derive(Debug)]
pub(crate) struct Application {
    /// Name in results; empty if it is alone.
    pub name: String,
    /// The connections, which count from 0.
    pub connections: Connections,
    /// Number of the first connection in the world.
    pub first: u32,
    /// When both ends give its connections up.
    pub stop: Option<Instant>,
}

/// The applications of a scenario, in the order of the file. All but the first draw from random streams of their own.
pub(crate) fn applications(scenario: &Scenario, seed: u64) -> Vec<Application> {
    let mut first = 0;
    let of = |(n, traffic): (usize, &Traffic)| {
        let name = traffic.name.clone().unwrap_or_default();
        let own = if n == 0 { seed } else { Rng::stream(seed, &["traffic", &name].join(".")).bits() };
        let jitter = Rng::stream(own, "start").below(scenario.start_jitter.as_nanos());
        let start = traffic.start.unwrap_or(scenario.start) + Duration::from_nanos(jitter);
        let connections = Connections::new(traffic, Instant::ZERO + start, own);
        let application = Application { name, first, stop: traffic.stop, connections };
        first += application.count();
        application
    };
    scenario.traffic.iter().enumerate().map(of).collect()
}

impl Application {
    /// How many connections it has.
    pub fn count(&self) -> u32 {
        self.connections.count()
    }

    /// Numbers of its connections.
    pub fn ids(&self) -> impl Iterator<Item = ConnId> {
        (self.first..).take(self.count() as usize).map(ConnId)
    }

    /// When its first connection opens.
    pub fn start(&self) -> Instant {
        self.connections.start()
    }

    /// Which ends send data.
    pub fn direction(&self) -> TrafficDirection {
        self.connections.direction()
    }

    /// Whether the application ends: it is sized, or stopped.
    pub fn has_end(&self) -> bool {
        self.stop.is_some() || self.connections.total().is_some()
    }

    /// Whether an end sends this way as much as it can, until it is stopped.
    pub fn fills(&self, way: Direction) -> bool {
        let Self { connections, .. } = self;
        self.direction().has(way) && connections.total().is_none() && matches!(connections.timed(), Timed::Nothing)
    }

    /// Configuration of its own meter, beside that of `all` applications: its measured time begins and ends with it.
    pub fn meter(&self, all: &MeterConfig) -> MeterConfig {
        let connections = &self.connections;
        MeterConfig {
            from: all.from.max(self.start()),
            until: all.until.into_iter().chain(self.stop).min(),
            connections: self.count(),
            direction: self.direction(),
            directions: Vec::new(),
            cross: Vec::new(),
            size: connections.total(),
            flow_size: connections.flow_size(),
            requested: Vec::new(),
            timed: connections.timed(),
            head_start: false,
            efficiency: false,
            ..all.clone()
        }
    }
}
