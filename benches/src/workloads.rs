//! The workloads.

use anabranch_engine::Settings;
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::Scheduler;
use anabranch_metrics::{Meter, MeterConfig, PathConfig, Timed};
use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, LossSpec, PathSpec, QueueSpec, Topology, WaySpec};
use anabranch_sim::{Checks, FlowSetup, Party, World, WorldSetup, paths_between};
use anabranch_trace::{Digest, Event, Origin, Recorder, Tee};
use anabranch_units::{ConnId, Duration, Instant, PathId, Rate, Side};
use anabranch_workload::{BulkSink, BulkSource};

/// One workload: connections that send bulk data over all paths for some time, with the metrics of a run on.
pub struct Workload {
    pub name: &'static str,
    scheduler: String,
    /// The wrapper of the scheduler.
    seat: fn(Box<dyn Scheduler>) -> Box<dyn Scheduler>,
    congestion: &'static str,
    connections: u32,
    seconds: u64,
    buffer: u64,
    paths: Vec<PathSpec>,
}

/// A path: Mbit/s, one-way ms, loss towards the client, queue in packets.
fn path(name: &str, mbit: u64, delay: u64, loss: f64, queue: u32) -> PathSpec {
    let way = |loss: f64| {
        let capacity = CapacitySpec::Fixed(Rate::from_bps(mbit * 1_000_000));
        let bottleneck = BottleneckSpec { capacity, queue: QueueSpec::Packets(queue) };
        let clean = WaySpec::clean(Bottleneck::Own(bottleneck), Duration::from_millis(delay));
        WaySpec { loss: if loss > 0.0 { LossSpec::Bernoulli(loss) } else { LossSpec::None }, ..clean }
    };
    PathSpec { name: name.into(), down: way(loss), up: way(0.0) }
}

/// As `w1`, over `paths` paths: WLAN and 3G in turn, each pair 3 ms longer than the previous one.
pub fn wireless(scheduler: &str, paths: usize, seconds: u64) -> Workload {
    let nth = |n: usize| match (n % 2, 3 * (n / 2) as u64) {
        (0, longer) => path(&format!("wlan{n}"), 25, 25 + longer, 0.01, 100),
        (_, longer) => path(&format!("3g{n}"), 5, 65 + longer, 0.0, 3750),
    };
    Workload {
        name: "wireless",
        scheduler: scheduler.into(),
        seat: |scheduler| scheduler,
        congestion: "olia",
        connections: 1,
        seconds,
        buffer: 8 << 20,
        paths: (0..paths).map(nth).collect(),
    }
}

/// All workloads.
pub fn all() -> Vec<Workload> {
    let w1 = |name, loss, seconds| Workload {
        name,
        paths: vec![path("wlan", 25, 25, loss, 100), path("3g", 5, 65, 0.0, 3750)],
        ..wireless("minrtt+pr", 2, seconds)
    };
    let wired = |name, mbit, delay, queue, buffer| Workload {
        name,
        scheduler: "minrtt".into(),
        seat: |scheduler| scheduler,
        congestion: "cubic",
        connections: 1,
        seconds: 5,
        buffer,
        paths: vec![path("a", mbit, delay, 0.0, queue), path("b", mbit, delay, 0.0, queue)],
    };
    vec![
        w1("w1", 0.01, 90),
        w1("w1-lossless", 0.0, 90),
        w1("w1-long", 0.01, 900),
        Workload {
            name: "w2",
            scheduler: "minrtt".into(),
            seat: |scheduler| scheduler,
            congestion: "cubic",
            connections: 100,
            seconds: 10,
            buffer: 1 << 20,
            paths: vec![path("a", 200, 10, 0.0, 500), path("b", 100, 20, 0.0, 500)],
        },
        wired("w3", 1000, 5, 1000, 16 << 20),
        wired("w3-wide", 1000, 50, 10_000, 160 << 20),
        wired("w3-fast", 10_000, 5, 10_000, 160 << 20),
    ]
}

/// The results of a run.
pub struct Outcome {
    /// Data segments sent.
    pub segments: u64,
    /// Digest of all events: a change that is only about speed must not change it.
    pub digest: String,
}

/// Counts data segments.
#[derive(Default)]
struct Count(u64);

impl Recorder for Count {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        self.0 += u64::from(matches!(event, Event::DataSent { .. }));
    }
}

impl Workload {
    /// With each scheduler wrapped in `seat`.
    pub fn seated(self, seat: fn(Box<dyn Scheduler>) -> Box<dyn Scheduler>) -> Self {
        Self { seat, ..self }
    }

    /// Runs it once.
    pub fn run(&self) -> Outcome {
        let setup = WorldSetup {
            topology: Topology { paths: self.paths.clone(), links: Vec::new() },
            seed: 1,
            timeline: Vec::new(),
            sources: Vec::new(),
            checks: Checks::default(),
        };
        let mut world = World::new(setup, (0..self.connections).map(|n| self.flow(n)).collect());
        let until = Instant::from_millis(self.seconds * 1000);
        let mut recorder = Tee(Count::default(), Tee(Meter::new(self.meter(until)), Digest::new()));
        world.run(until, &mut recorder).expect("nothing goes wrong");
        let Tee(Count(segments), Tee(meter, digest)) = recorder;
        std::hint::black_box(meter.finish(world.now()));
        Outcome { segments, digest: digest.finish() }
    }

    fn meter(&self, until: Instant) -> MeterConfig {
        let paths = self.paths.iter();
        MeterConfig {
            from: Instant::ZERO,
            until: Some(until),
            connections: 1,
            cross: Vec::new(),
            size: None,
            flow_size: None,
            timed: Timed::Nothing,
            mss: 1400,
            displacement_threshold: None,
            head_start: self.paths.len() > 1,
            efficiency: false,
            paths: paths
                .map(|p| PathConfig { name: p.name.clone(), price: 0.0, capacity: None, outages: vec![] })
                .collect(),
        }
    }

    fn flow(&self, n: u32) -> FlowSetup {
        let over: Vec<_> = (0..self.paths.len()).map(|n| (PathId(n as u8), false)).collect();
        let settings = Settings { send_buffer: self.buffer, recv_buffer: self.buffer, ..Settings::default() };
        let setup = |side| Setup {
            id: ConnId(n),
            settings: settings.clone(),
            scheduler: (self.seat)(anabranch_schedulers::build(&self.scheduler, &[]).expect("a known scheduler")),
            congestion: anabranch_congestion::build(self.congestion, &[]).expect("a known congestion control"),
            paths: paths_between(false, n, side, &over),
            announce: Vec::new(),
            accept_announced: false,
        };
        FlowSetup {
            id: ConnId(n),
            start: Instant::from_millis(u64::from(n)),
            stop: None,
            awaited: false,
            may_fail: false,
            captured: false,
            client: Party { setup: setup(Side::Client), workload: Box::new(BulkSink::new(None)) }.into(),
            server: Party { setup: setup(Side::Server), workload: Box::new(BulkSource::new(None)) }.into(),
            routes: Vec::new(),
        }
    }
}
