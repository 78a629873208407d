//! The same scenario in virtual time, with a kernel at either end, and between two kernels: how far the answers lie apart.

use anabranch_network::Change;
pub use anabranch_run::Estimate;
use anabranch_run::{
    CellValues, Driver, Job, Options, Plan, Refusal, Results, RunError, RunOutcome, Variant, is_random,
};
use anabranch_scenario::{Host, PlugIn, Scenario, TimelineChange};
use anabranch_trace::Recorder;
use anabranch_units::Duration;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The scheduler that the kernel has, so that every mode is the same experiment.
pub const SCHEDULER: &str = "linux-default";

/// Delays that the emulation of a path adds, both ways, by devices and the scheduling of threads. A transfer may be chaotic: a
/// tenth of a millisecond more decides whether a queue overflows. So the simulator runs with each of these.
const LATE: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(300),
    Duration::from_micros(400),
    Duration::from_micros(500),
];

/// The hosts at the two ends, sender first. Virtual time for two engines, real time for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// `sim`, `engine→linux`, …
    pub name: &'static str,
    /// The host that sends the data.
    pub sender: Host,
    /// The other one.
    pub receiver: Host,
}

/// All four; the others are compared with the last.
pub const MODES: [Mode; 4] = [
    Mode { name: "sim", sender: Host::Engine, receiver: Host::Engine },
    Mode { name: "engine→linux", sender: Host::Engine, receiver: Host::Linux },
    Mode { name: "linux→engine", sender: Host::Linux, receiver: Host::Engine },
    Mode { name: "linux→linux", sender: Host::Linux, receiver: Host::Linux },
];

/// The modes that are compared with [`REFERENCE`].
pub const COMPARED: &[Mode] = MODES.split_last().expect("there are modes").1;

/// The reference of the comparisons: the kernel at both ends.
pub const REFERENCE: &Mode = MODES.split_last().expect("there are modes").0;

/// The simulator, and the mode that it is compared with.
pub const BRIEF: [Mode; 2] = [MODES[0], MODES[3]];

impl Mode {
    /// No clock is read.
    pub fn is_virtual(&self) -> bool {
        (self.sender, self.receiver) == (Host::Engine, Host::Engine)
    }

    /// Everything that is run in this mode: the scheduler over all paths and, with `baselines`, each path alone.
    pub fn plan(&self, variants: &[Variant], congestions: &[PlugIn], baselines: bool) -> Plan {
        let options = Options {
            schedulers: vec![PlugIn { name: SCHEDULER.into(), parameters: Vec::new() }],
            congestions: congestions.iter().map(as_kernel).collect(),
            // In virtual time too, no two repetitions have the same delays: see `Later`.
            real_time: true,
            baselines,
            ..Options::default()
        };
        let variants: Vec<Variant> = variants.iter().map(|variant| between(variant, self)).collect();
        Plan::new(&variants, &options)
    }
}

/// The driver of the simulator's runs: each repetition has paths as late as an emulation may be.
pub struct Later<'a>(pub &'a dyn Driver);

impl Driver for Later<'_> {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        self.0.prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let repetition = job.seed.wrapping_sub(job.scenario.seed) as usize;
        let scenario = Arc::new(later(&job.scenario, LATE[repetition % LATE.len()]));
        self.0.run(&Job { scenario, ..job.clone() }, listener)
    }
}

/// The scenario with paths that deliver later by `late`, in either direction.
fn later(scenario: &Scenario, late: Duration) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.topology.paths.iter_mut().for_each(|path| {
        path.down.delay += late;
        path.up.delay += late;
    });
    for entry in &mut scenario.timeline {
        if let TimelineChange::Network(Change::Delay(_, _, delay)) = &mut entry.change {
            *delay += late;
        }
    }
    scenario
}

/// One metric of one row, in every mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParityRow {
    /// The sweep's cell.
    pub cell: CellValues,
    /// [`SCHEDULER`], or `single:PATH`.
    pub scheduler: String,
    /// Congestion control.
    pub congestion: String,
    /// A metric's name, `path.NAME.METRIC` for one of a path.
    pub metric: String,
    /// Values by mode. A metric that a mode cannot know is absent.
    pub values: IndexMap<String, Estimate>,
    /// Difference by mode: mean ÷ mean between two kernels − 1. Absent where that mean is zero.
    pub difference: IndexMap<String, f64>,
}

/// One scenario in every mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parity {
    /// The scenario's title.
    pub scenario: String,
    /// Every metric of every row.
    pub rows: Vec<ParityRow>,
    /// The greatest lateness, of 99 of 100 packets, of any run in real time. Seconds.
    pub late_p99_s: f64,
    /// How many runs in real time there were, and how many of them were not emulated accurately.
    pub live_runs: usize,
    /// See `live_runs`.
    pub inaccurate_runs: usize,
}

impl Parity {
    /// Draws the results of `modes` together, which are in their order.
    pub fn of(modes: &[Mode], all: &[Results]) -> Self {
        let live: Vec<_> = all.iter().flat_map(|results| results.runs.lives()).collect();
        Self {
            scenario: all.first().map(|results| results.scenario.clone()).unwrap_or_default(),
            rows: rows(modes, all),
            late_p99_s: live.iter().map(|live| live.emulation.late_p99_s).fold(0.0, f64::max),
            live_runs: live.len(),
            inaccurate_runs: live.iter().filter(|live| !live.emulation.accurate).count(),
        }
    }
}

/// CUBIC as the kernel has it, unless a parameter says otherwise.
fn as_kernel(congestion: &PlugIn) -> PlugIn {
    let mut congestion = congestion.clone();
    let given = congestion.parameters.iter().any(|(name, _)| name == "linux");
    if congestion.name == "cubic" && !given {
        congestion.parameters.push(("linux".into(), 1.0));
    }
    congestion
}

/// The name of a congestion control without what [`as_kernel`] adds.
fn as_asked(label: &str) -> &str {
    label.strip_suffix("(linux=true)").unwrap_or(label)
}

/// The same with other hosts.
fn between(variant: &Variant, mode: &Mode) -> Variant {
    let mut scenario: Scenario = (*variant.scenario).clone();
    scenario.hosts.sender = mode.sender;
    scenario.hosts.receiver = mode.receiver;
    if mode.is_virtual() && !is_random(&scenario) {
        scenario.repeat = LATE.len() as u32;
    }
    Variant { cell: variant.cell.clone(), scenario: Arc::new(scenario) }
}

/// Joins the summaries of all modes by row and metric, in the order in which they first appear.
fn rows(modes: &[Mode], all: &[Results]) -> Vec<ParityRow> {
    let mut rows: IndexMap<_, ParityRow> = IndexMap::new();
    for (mode, results) in modes.iter().zip(all) {
        for summary in &results.summary {
            let cell = format!("{:?}", summary.cell);
            let key = (cell, summary.congestion.clone(), summary.scheduler.clone(), summary.metric.clone());
            let row = rows.entry(key).or_insert_with(|| ParityRow {
                cell: (*summary.cell).clone(),
                scheduler: summary.scheduler.to_string(),
                congestion: as_asked(&summary.congestion).to_owned(),
                metric: summary.metric.to_string(),
                values: IndexMap::new(),
                difference: IndexMap::new(),
            });
            let (n, mean, low, high) = (summary.n, summary.mean, summary.ci95_low, summary.ci95_high);
            row.values.insert(mode.name.into(), Estimate { n, mean, ci95_low: low, ci95_high: high });
        }
    }
    let mut rows: Vec<ParityRow> = rows.into_values().collect();
    rows.iter_mut().for_each(compare);
    rows
}

fn compare(row: &mut ParityRow) {
    let Some(reference) = row.values.get(REFERENCE.name).map(|estimate| estimate.mean) else {
        return;
    };
    if reference == 0.0 {
        return;
    }
    for mode in COMPARED {
        if let Some(estimate) = row.values.get(mode.name) {
            row.difference.insert(mode.name.into(), estimate.mean / reference - 1.0);
        }
    }
}
