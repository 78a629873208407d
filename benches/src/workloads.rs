//! The workloads: scenarios, run as `anabranch run` runs them.

use anabranch_engine::schedule::Scheduler;
use anabranch_metrics::Meter;
use anabranch_run::layout::Layout;
use anabranch_run::{CONNECTION, Choice, Job, RunOutcome, VirtualTime};
use anabranch_scenario::Document;
use anabranch_sim::{Checks, End, FlowSetup, World, paths_between};
use anabranch_trace::{Digest, Event, Origin, Recorder, Tee};
use anabranch_units::{ConnId, Duration, Instant, PathId, Side};
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes of a full segment.
const MSS: u64 = 1400;

/// One workload: connections that send bulk data over all paths for some time, with the metrics of a run on.
pub struct Workload {
    pub name: String,
    /// The connections of one pair of hosts, as a scenario.
    text: String,
    /// Pairs of hosts, which share the paths.
    pairs: u32,
    /// Runs, each with a seed of its own, from 1 on.
    pub runs: u64,
    /// The wrapper of the scheduler.
    seat: fn(Box<dyn Scheduler>) -> Box<dyn Scheduler>,
}

/// Ends of a scenario: what its connections are made of.
struct Kind<'a> {
    scheduler: &'a str,
    congestion: &'static str,
    /// Bytes.
    buffer: u64,
    flows: u32,
}

/// A path: Mbit/s, one-way ms, loss towards the client in per cent, queue in packets.
fn path(name: &str, mbit: u64, delay: u64, loss: u32, queue: u32) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{mbit}mbit\"\ndelay = \"{delay}ms\"\nloss = \"{loss}%\"\nqueue = \"{queue}p\"\n"
    )
}

/// Connections over `paths` for some seconds.
fn workload(name: &str, kind: &Kind<'_>, seconds: u64, paths: &[String]) -> Workload {
    let Kind { scheduler, congestion, buffer, flows } = kind;
    let mut text = format!("duration = \"{seconds}s\"\n[connection]\nscheduler = \"{scheduler}\"\n");
    let _ = write!(text, "congestion = \"{congestion}\"\nsend_buffer = \"{buffer}B\"\nrecv_buffer = \"{buffer}B\"\n");
    text += &paths.concat();
    text += "[[traffic]]\nkind = \"bulk\"\n";
    if *flows > 1 {
        // Handshakes of one moment would wait for each other.
        let _ = write!(text, "flows = {flows}\narrivals = {{ kind = \"poisson\", rate = {}.0 }}\n", 4 * flows);
    }
    Workload { name: name.into(), text, pairs: 1, runs: 1, seat: |scheduler| scheduler }
}

/// As `w1`, over `paths` paths: WLAN and 3G in turn, each pair 3 ms longer than the previous one.
#[allow(dead_code, reason = "for decisions")]
pub fn wireless(scheduler: &str, paths: usize, seconds: u64) -> Workload {
    let nth = |n: usize| match (n % 2, 3 * (n / 2) as u64) {
        (0, longer) => path(&format!("wlan{n}"), 25, 25 + longer, 1, 100),
        (_, longer) => path(&format!("3g{n}"), 5, 65 + longer, 0, 3750),
    };
    let kind = Kind { scheduler, congestion: "olia", buffer: 8 << 20, flows: 1 };
    workload("wireless", &kind, seconds, &(0..paths).map(nth).collect::<Vec<_>>())
}

/// Seconds of [`crowd`] with this many flows.
pub const CROWDS: [(u32, u64); 5] = [(1, 100), (10, 20), (100, 5), (1000, 2), (10_000, 1)];

/// As many connections between two hosts, over two paths that give each connection 6 Mbit/s at a round-trip time of 20 ms: ten packets
/// per round trip and path.
pub fn crowd(flows: u32, seconds: u64) -> Workload {
    let kind = Kind { scheduler: "minrtt", congestion: "cubic", buffer: 1 << 20, flows };
    let paths = ["a", "b"].map(|name| path(name, 6 * u64::from(flows), 10, 0, 10 * flows.max(10)));
    workload(&format!("flows-{flows}"), &kind, seconds, &paths)
}

/// Ten thousand connections of 100 KB each, one after the other as they arrive: what those that ended leave behind.
pub fn ended() -> Workload {
    let mut ended = crowd(10_000, 10);
    ended.name = "ended".into();
    ended.text = ended.text.replace("rate = 40000.0", "rate = 2000.0") + "size = \"100KB\"\n";
    ended
}

/// Runs of 14 KB, one after the other: each is over before the windows have grown.
pub fn short() -> Workload {
    let kind = Kind { scheduler: "minrtt", congestion: "olia", buffer: 8 << 20, flows: 1 };
    let mut short = workload("short", &kind, 90, &[path("wlan", 25, 25, 1, 100), path("3g", 5, 65, 0, 3750)]);
    short.text += "size = \"14KB\"\n";
    Workload { runs: 1000, ..short }
}

/// All workloads.
pub fn all() -> Vec<Workload> {
    let w1 = |name, loss, seconds| {
        let kind = Kind { scheduler: "minrtt+pr", congestion: "olia", buffer: 8 << 20, flows: 1 };
        workload(name, &kind, seconds, &[path("wlan", 25, 25, loss, 100), path("3g", 5, 65, 0, 3750)])
    };
    let wired = |name, mbit, delay, queue, buffer| {
        let kind = Kind { scheduler: "minrtt", congestion: "cubic", buffer, flows: 1 };
        workload(name, &kind, 5, &["a", "b"].map(|name| path(name, mbit, delay, 0, queue)))
    };
    let w2 = Kind { scheduler: "minrtt", congestion: "cubic", buffer: 1 << 20, flows: 1 };
    let w2 = workload("w2", &w2, 10, &[path("a", 200, 10, 0, 500), path("b", 100, 20, 0, 500)]);
    vec![
        w1("w1", 1, 90),
        w1("w1-lossless", 0, 90),
        w1("w1-long", 1, 900),
        Workload { pairs: 100, ..w2 },
        wired("w3", 1000, 5, 1000, 16 << 20),
        wired("w3-wide", 1000, 50, 10_000, 160 << 20),
        wired("w3-fast", 10_000, 5, 10_000, 160 << 20),
        short(),
        ended(),
    ]
}

/// The results of runs.
#[derive(Default)]
pub struct Outcome {
    /// Data segments sent.
    pub segments: u64,
    /// Digest of all events, of several runs their XOR: a change that is only about speed must not change it.
    pub digest: u128,
}

impl Outcome {
    fn new(segments: u64, digest: &str) -> Self {
        Self { segments, digest: u128::from_str_radix(digest, 16).expect("hexadecimal digits") }
    }

    /// The outcome of these runs and of others.
    fn and(self, other: Self) -> Self {
        Self { segments: self.segments + other.segments, digest: self.digest ^ other.digest }
    }
}

impl From<RunOutcome> for Outcome {
    fn from(outcome: RunOutcome) -> Self {
        let bytes: f64 = outcome.paths.values().filter_map(|path| path.get("sent_bytes")).copied().sum();
        Self::new((bytes as u64).div_ceil(MSS), &outcome.digest)
    }
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
    /// As a scenario file; `None` if no one scenario has all of it.
    #[allow(dead_code, reason = "for speed")]
    pub fn scenario(&self) -> Option<&str> {
        (self.pairs == 1).then_some(&self.text)
    }

    /// The workload with each scheduler wrapped in `seat`.
    #[allow(dead_code, reason = "for decisions")]
    pub fn seated(self, seat: fn(Box<dyn Scheduler>) -> Box<dyn Scheduler>) -> Self {
        Self { seat, ..self }
    }

    /// Runs it once.
    pub fn run(&self) -> Outcome {
        let text = &self.text;
        let mut document = Document::parse(&self.name, text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}"));
        let (cell, scenario) = document.cells.remove(0);
        let choice = Choice::Multipath(scenario.scheduler.clone());
        let job = Job { cell, ..Job::of(Arc::new(scenario), choice, 1) };
        if self.pairs > 1 {
            return self.run_pairs(&job);
        }
        (1..=self.runs).map(|seed| self.run_seed(Job { seed, ..job.clone() })).fold(Outcome::default(), Outcome::and)
    }

    fn run_seed(&self, job: Job) -> Outcome {
        let driver = VirtualTime::default();
        driver.run_with(&job, &mut (), |flows| self.sit(flows)).expect("nothing goes wrong").into()
    }

    fn sit(&self, flows: &mut [FlowSetup]) {
        let ends = flows.iter_mut().flat_map(|flow| [&mut flow.client, &mut flow.server]);
        let engines = ends.filter_map(|end| match end {
            End::Engine { parties, .. } => Some(parties),
            End::Outside => None,
        });
        for party in engines.flatten() {
            let nobody = anabranch_schedulers::build("minrtt", &[]).expect("a known scheduler");
            let scheduler = core::mem::replace(&mut party.setup.scheduler, nobody);
            party.setup.scheduler = (self.seat)(scheduler);
        }
    }

    /// A scenario has one pair of hosts; here the others cross their paths.
    fn run_pairs(&self, job: &Job) -> Outcome {
        let plan = Layout::of(job).expect("a scenario that can be run");
        let over: Vec<_> = (0..plan.over.len()).map(|n| (PathId(n as u8), false)).collect();
        let mut flows = Vec::new();
        for n in 0..self.pairs {
            let pair = plan.flows(job).expect("a scenario that can be run");
            flows.extend(pair.into_iter().map(|pair| nth_pair(pair, n, &over)));
        }
        let mut world = World::new(plan.world(job, Checks::default()).expect("known plug-ins"), flows);
        let until = Instant::ZERO + job.scenario.duration.unwrap_or(Duration::ZERO);
        let mut recorder = Tee(Tee(Meter::new(plan.meter(job)), Digest::new()), Count::default());
        world.run(until, &mut recorder).expect("nothing goes wrong");
        let Tee(Tee(meter, digest), Count(segments)) = recorder;
        std::hint::black_box(meter.finish(world.now()));
        Outcome::new(segments, &digest.finish())
    }
}

/// The pair of hosts number `n`, which begins `n` milliseconds later.
fn nth_pair(pair: FlowSetup, n: u32, over: &[(PathId, bool)]) -> FlowSetup {
    let id = ConnId(CONNECTION.0 + n);
    let mut pair = FlowSetup {
        id,
        start: pair.start + Duration::from_micros(1000 * u64::from(n)),
        captured: false,
        routes: Vec::new(),
        ..pair
    };
    for (end, side) in [(&mut pair.client, Side::Client), (&mut pair.server, Side::Server)] {
        if let End::Engine { parties, .. } = end {
            for party in parties {
                party.setup.id = id;
                party.setup.paths = paths_between(false, n, side, over);
            }
        }
    }
    pair
}
