//! Worlds for tests: one path or more, one bulk transfer, a log of events.
#![allow(dead_code)] // each test file uses its own part

pub mod random;

use anabranch_engine::Settings;
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::{PathPolicy, Scheduler};
use anabranch_network::{
    Bottleneck, BottleneckSpec, CapacitySpec, LinkSpec, LossSpec, PathSpec, QueueSpec, Topology, WaySpec,
};
use anabranch_schedulers::adversary::Adversary;
use anabranch_sim::{Checks, FlowSetup, Party, Switch, World, WorldChange, WorldSetup, paths_between};
use anabranch_trace::{Event, Origin, Recorder, SchedulerName};
use anabranch_units::{ConnId, Duration, Instant, PathId, Rate, Side};
use anabranch_workload::{BulkSink, BulkSource};
use std::sync::Arc;

/// The scheduler that gives commands at random.
pub const ADVERSARY: &str = "adversary";

/// Environment variables for whoever runs the tests: seeds, and whether to print packets.
#[expect(clippy::disallowed_methods, reason = "only what is tried and printed depends on it")]
pub fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One direction: rate in kbit/s, delay in ms, queue in packets.
pub fn way(kbit: u64, delay: u64, queue: u32) -> WaySpec {
    let bottleneck = BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(kbit * 1000)), QueueSpec::Packets(queue));
    WaySpec::clean(Bottleneck::Own(bottleneck), ms(delay))
}

/// A path that is the same in both directions.
pub fn path(name: &str, kbit: u64, delay: u64, queue: u32) -> PathSpec {
    PathSpec { name: name.into(), down: way(kbit, delay, queue), up: way(kbit, delay, queue) }
}

/// A path with random loss towards the client.
pub fn lossy(name: &str, kbit: u64, delay: u64, queue: u32, loss: f64) -> PathSpec {
    let mut p = path(name, kbit, delay, queue);
    p.down.loss = LossSpec::Bernoulli(loss);
    p
}

fn scheduler(name: &str, parameters: &[(String, f64)], seed: u64) -> Box<dyn Scheduler> {
    match name {
        ADVERSARY => Box::new(Adversary::new(seed)),
        name => anabranch_schedulers::build(name, parameters).expect("a known scheduler"),
    }
}

/// A bulk transfer from the server to the client.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub paths: Vec<PathSpec>,
    pub links: Vec<LinkSpec>,
    pub timeline: Vec<(Instant, anabranch_network::Change)>,
    /// Schedulers that take over.
    pub switches: Vec<(Instant, String)>,
    /// The operator's policies of paths, by index.
    pub policy: Vec<PathPolicy>,
    /// A name of the registry, or [`ADVERSARY`].
    pub scheduler: String,
    /// Parameters of the scheduler; schedulers that take over have none.
    pub parameters: Vec<(String, f64)>,
    pub congestion: String,
    pub size: Option<u64>,
    pub settings: Settings,
    pub seed: u64,
    pub checks: Checks,
}

impl Transfer {
    pub fn new(paths: Vec<PathSpec>) -> Self {
        Self {
            paths,
            links: Vec::new(),
            timeline: Vec::new(),
            switches: Vec::new(),
            policy: Vec::new(),
            scheduler: "minrtt".into(),
            parameters: Vec::new(),
            congestion: "cubic".into(),
            size: None,
            settings: Settings::default(),
            seed: 1,
            checks: Checks::default(),
        }
    }

    pub fn setup(&self, n: u32, side: Side, over: &[(PathId, bool)]) -> Setup {
        let mut paths = paths_between(false, n, side, over);
        for path in &mut paths {
            path.policy = self.policy.get(path.id.index()).copied().unwrap_or_default();
        }
        Setup {
            id: ConnId(n),
            settings: self.settings.clone(),
            scheduler: scheduler(&self.scheduler, &self.parameters, self.seed),
            congestion: anabranch_congestion::build(&self.congestion, &[]).expect("a known congestion control"),
            paths,
            announce: Vec::new(),
            accept_announced: false,
        }
    }

    pub fn flow(&self, n: u32, over: &[(PathId, bool)]) -> FlowSetup {
        let setup = |side| self.setup(n, side, over);
        FlowSetup {
            id: ConnId(n),
            start: Instant::ZERO,
            stop: None,
            awaited: self.size.is_some(),
            may_fail: false,
            captured: n == 0,
            client: Party { setup: setup(Side::Client), workload: Box::new(BulkSink::new(self.size)) }.into(),
            server: Party { setup: setup(Side::Server), workload: Box::new(BulkSource::new(self.size)) }.into(),
            routes: Vec::new(),
        }
    }

    pub fn world(&self) -> World {
        let all: Vec<_> = (0..self.paths.len()).map(|n| (PathId(n as u8), false)).collect();
        self.world_of(vec![self.flow(0, &all)])
    }

    /// The changes: the network's, then the schedulers'.
    fn changes(&self) -> Vec<(Instant, WorldChange)> {
        let network = self.timeline.iter().map(|(at, change)| (*at, change.clone().into()));
        let switches = self.switches.iter().map(|(at, name)| {
            let (seed, chosen) = (self.seed, name.clone());
            let label = anabranch_schedulers::resolve(name).map(|resolved| resolved.label());
            let name = label.unwrap_or(SchedulerName { base: ADVERSARY, suffix: "" });
            (*at, WorldChange::Scheduler(0, Switch { name, make: Arc::new(move || scheduler(&chosen, &[], seed)) }))
        });
        network.chain(switches).collect()
    }

    pub fn world_of(&self, flows: Vec<FlowSetup>) -> World {
        let setup = WorldSetup {
            topology: Topology { paths: self.paths.clone(), links: self.links.clone() },
            seed: self.seed,
            timeline: self.changes(),
            sources: Vec::new(),
            checks: self.checks,
        };
        World::new(setup, flows)
    }
}

/// Counts the bytes that the client's application received, per connection, after a given time.
#[derive(Debug, Default)]
pub struct Delivered {
    pub from: Instant,
    pub bytes: Vec<u64>,
    pub last: Instant,
    pub stalls: u32,
    pub timeouts: u32,
    pub losses: u32,
    pub log: Vec<String>,
    pub verbose: bool,
}

impl Recorder for Delivered {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match event {
            Event::Delivered(range) if origin.host == Some(Side::Client) => {
                let n = origin.connection.0 as usize;
                self.bytes.resize(self.bytes.len().max(n + 1), 0);
                self.last = now;
                if now >= self.from {
                    self.bytes[n] += range.len();
                }
            }
            Event::Stall => self.stalls += 1,
            Event::Timeout { .. } => self.timeouts += 1,
            Event::Lost { packets } => self.losses += packets,
            _ => {}
        }
        if self.verbose && !matches!(event, Event::Link { .. } | Event::Window(_)) {
            println!("{now} {:?} p{} {event:?}", origin.host, origin.path);
        }
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &anabranch_wire::Packet) {
        if self.verbose {
            println!("{now} {host:?} {} p{path} {packet}", if sent { ">" } else { "<" });
        }
    }
}
