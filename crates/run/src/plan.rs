//! The runs of a scenario.

use crate::cross;
use crate::job::{Choice, Job};
use crate::record::CellValues;
use crate::row_kind::single;
use crate::swept::SweptKey;
use anabranch_network::{
    BehindChange, BottleneckSpec, CapacitySpec, Change, Discipline, LinkSpec, LossSpec, PathSpec, RadioSpec, WaySpec,
};
use anabranch_scenario::{Arrivals, Cell, MtuSignal, ObjectSizes, PlugIn, Scenario, TraceStart, Traffic, TrafficKind};
use anabranch_units::Duration;
use indexmap::IndexMap;
use std::ops::Range;
use std::sync::Arc;

/// One cell of a sweep, or the one scenario without a sweep.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The keys that vary, with their values as written; empty without a sweep.
    pub cell: Cell,
    /// The scenario with these values in place.
    pub scenario: Arc<Scenario>,
}

/// The user's options beyond the scenario.
#[derive(Clone, Debug)]
pub struct Options {
    /// Schedulers to run instead of the scenario's; empty = the scenario's.
    pub schedulers: Vec<PlugIn>,
    /// Congestion controls to run instead of the scenario's; empty = the scenario's.
    pub congestions: Vec<PlugIn>,
    /// Run every path alone beside the schedulers.
    pub baselines: bool,
    /// How often.
    pub repeat: Repeat,
    /// In real time: no two runs are equal, so every row is random.
    pub real_time: bool,
    /// Find the causes that hold the runs back, by more runs of the first seeds: without losses, with a large window. Not without
    /// baselines, in a sweep or in real time.
    pub causes: bool,
    /// Follow each run over time, in bins of this length: [`crate::RunRecord::curves`].
    pub curves: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schedulers: Vec::new(),
            congestions: Vec::new(),
            baselines: true,
            repeat: Repeat::AsWritten,
            real_time: false,
            causes: true,
            curves: None,
        }
    }
}

/// How often each row is run, if the scenario has randomness; without any, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The scenario's number.
    AsWritten,
    /// Until the mean of every row's main metric is known well enough: see [`crate::Runner::run`].
    Auto,
}

/// Everything to run, cell by cell.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's title.
    pub(crate) title: String,
    pub(crate) cells: Vec<CellPlan>,
    pub(crate) auto: bool,
    curves: Option<Duration>,
    /// More runs may be made, in virtual time, to find what holds these back.
    pub(crate) causes: bool,
}

/// The rows of one cell. All share the scenario, so that a seed means the same random draws for each.
#[derive(Clone, Debug)]
pub(crate) struct CellPlan {
    pub scenario: Arc<Scenario>,
    pub cell: Cell,
    /// The number of its first row in the plan.
    pub first_row: usize,
    /// Multipath rows by congestion control and scheduler, then the baselines.
    pub rows: Vec<PlanRow>,
    pub random: bool,
}

/// One line of the results' table: repeated with several seeds.
#[derive(Clone, Debug)]
pub(crate) struct PlanRow {
    pub choice: Choice,
    pub congestion: PlugIn,
    /// Names as results print them.
    pub scheduler_label: String,
    pub congestion_label: String,
}

impl PlanRow {
    /// Results name each parameter that has another value than its default: the name alone would not say what ran.
    fn new(choice: Choice, scheduler_label: String, congestion: &PlugIn) -> Self {
        Self { choice, scheduler_label, congestion_label: congestion.with_parameters(), congestion: congestion.clone() }
    }
}

impl Plan {
    /// The cross product of cells, congestion controls and schedulers, and the baselines of each cell.
    ///
    /// A sweep over `scheduler` or `congestion` makes rows, not cells, so that baselines are not run twice.
    pub fn new(variants: &[Variant], options: &Options) -> Self {
        let mut groups: IndexMap<Cell, Vec<&Scenario>> = IndexMap::new();
        for variant in variants {
            let cell: Cell = variant.cell.iter().filter(|(key, _)| !names_plug_in(key)).cloned().collect();
            groups.entry(cell).or_default().push(&variant.scenario);
        }
        let title = variants.first().map(|v| v.scenario.name.clone()).unwrap_or_default();
        let has_groups = variants.iter().any(|variant| !variant.scenario.groups.is_empty());
        let cells = numbered(groups.into_iter().map(|(cell, scenarios)| CellPlan::new(cell, &scenarios, options)));
        let auto = options.repeat == Repeat::Auto;
        let Options { curves, real_time, .. } = *options;
        // The cells of a sweep may be made apart, and are brought together without a run.
        let causes = options.causes && options.baselines && !real_time && cells.len() == 1 && !has_groups;
        Self { title, cells, auto, curves, causes }
    }

    /// The baselines of this plan, without the rows of Multipath TCP.
    #[must_use]
    pub fn baselines(mut self) -> Self {
        for cell in &mut self.cells {
            cell.rows.retain(|row| matches!(row.choice, Choice::Single(_)));
        }
        self.cells = numbered(self.cells.into_iter());
        self
    }
}

impl Plan {
    /// One job of each row.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        self.cells.iter().flat_map(|cell| cell.rows.iter().map(|row| self.job(cell, row, 0)))
    }

    /// Whether the seed matters, per cell.
    pub fn randomness(&self) -> impl Iterator<Item = bool> + '_ {
        self.cells.iter().map(|cell| cell.random)
    }

    /// The plan has several cells.
    pub fn is_sweep(&self) -> bool {
        self.cells.len() > 1
    }

    /// Every run, if the number of repetitions is given.
    pub fn runs(&self) -> impl Iterator<Item = Job> + '_ {
        let rows = self.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row)));
        rows.flat_map(move |(cell, row)| (0..cell.first_target(self.auto)).map(move |n| self.job(cell, row, n)))
    }

    /// Shape of each cell, in order: how many rows it has, and how many repetitions of each, at least.
    pub fn shape(&self) -> Vec<(usize, u32)> {
        self.cells.iter().map(|cell| (cell.rows.len(), cell.first_target(self.auto))).collect()
    }

    /// The repetitions `repetitions`, counted from 0, of the cells `cells`: a plan of its own, with all rows, so that its ratios
    /// and pairs are those of the whole. A cell without randomness has one repetition, whatever the range. Cells that do not
    /// exist are left out. The range has at least one repetition.
    #[must_use]
    pub fn part(&self, cells: Range<usize>, repetitions: Range<u32>) -> Self {
        let of = |cell: &CellPlan| {
            let mut cell = cell.clone();
            if cell.random {
                let scenario = Arc::make_mut(&mut cell.scenario);
                scenario.seed = scenario.seed.wrapping_add(repetitions.start.into());
                scenario.repeat = repetitions.len() as u32;
            }
            cell
        };
        let own = self.cells.iter().skip(cells.start).take(cells.len());
        Self { title: self.title.clone(), cells: numbered(own.map(of)), auto: false, ..*self }
    }

    /// One repetition of a row of `cell`.
    pub(crate) fn job(&self, cell: &CellPlan, row: &PlanRow, repetition: u32) -> Job {
        Job {
            scenario: cell.scenario.clone(),
            cell: cell.cell.clone(),
            choice: row.choice.clone(),
            congestion: row.congestion.clone(),
            seed: cell.scenario.seed.wrapping_add(repetition.into()),
            curves: self.curves,
        }
    }

    /// The keys that the cells vary, in numbers.
    pub(crate) fn swept(&self) -> IndexMap<String, SweptKey> {
        let keys = self.cells.first().into_iter().flat_map(|cell| cell.cell.iter().map(|(key, _)| key));
        let values =
            |key| self.cells.iter().flat_map(move |c| c.cell.iter().filter(move |(k, _)| k == key).map(|(_, v)| v));
        keys.filter_map(|key| Some((key.clone(), SweptKey::of(key, values(key))?))).collect()
    }

    /// How many runs there are, at least, and how long they take in real time; `None` if a run lasts until its transfer
    /// is done.
    pub fn extent(&self) -> (usize, Option<Duration>) {
        let of = |cell: &CellPlan| {
            let runs = cell.rows.len() * cell.first_target(self.auto) as usize;
            let each = cell.scenario.duration.map(|duration| cell.scenario.warmup + duration);
            (runs, each.map(|each| each * runs as u64))
        };
        self.cells.iter().map(of).fold((0, Some(Duration::ZERO)), |(runs, time), (more, its)| {
            (runs + more, time.zip(its).map(|(a, b)| a + b))
        })
    }
}

/// The cells of one plan, with their rows numbered.
fn numbered(cells: impl Iterator<Item = CellPlan>) -> Vec<CellPlan> {
    let mut first_row = 0;
    let number = |cell: CellPlan| {
        let numbered = CellPlan { first_row, ..cell };
        first_row += numbered.rows.len();
        numbered
    };
    cells.map(number).collect()
}

fn names_plug_in(key: &str) -> bool {
    matches!(key, "scheduler" | "congestion" | "connection.scheduler" | "connection.congestion")
}

/// Repetitions of the first round of [`Repeat::Auto`], and how many each further round adds.
pub(crate) const AUTO_STEP: u32 = 10;
/// Rounds of [`Repeat::Auto`], one after the other, that must find all means known well enough.
pub(crate) const AUTO_CONFIRMED: u32 = 2;
/// The most repetitions of [`Repeat::Auto`].
pub const AUTO_LIMIT: u32 = 200;

impl CellPlan {
    fn new(cell: Cell, scenarios: &[&Scenario], options: &Options) -> Self {
        let scenario = Arc::new(scenarios[0].clone());
        let written = |of: fn(&Scenario) -> &PlugIn| scenarios.iter().map(|s| of(s).clone()).collect();
        let given = |asked: &Vec<PlugIn>, of| if asked.is_empty() { written(of) } else { asked.clone() };
        let schedulers = distinct(given(&options.schedulers, |s| &s.scheduler));
        let congestions = distinct(given(&options.congestions, |s| &s.congestion));
        let mut rows = Vec::new();
        for congestion in &congestions {
            for scheduler in &schedulers {
                let choice = Choice::Multipath(scheduler.clone());
                rows.push(PlanRow::new(choice, scheduler.with_parameters(), congestion));
            }
        }
        // A path belongs to each pair of its groups: there is none to run alone.
        if options.baselines && scenario.groups.is_empty() {
            let forms = distinct(congestions.iter().map(single_path_form).collect());
            for congestion in &forms {
                let ends = |index: usize| scenario.duration.is_some() || may_deliver_all(&scenario, index);
                for (index, path) in scenario.topology.paths.iter().enumerate().filter(|(index, _)| ends(*index)) {
                    rows.push(PlanRow::new(Choice::Single(index), single(&path.name), congestion));
                }
            }
        }
        let random = options.real_time || is_random(&scenario);
        Self { scenario, cell, first_row: 0, rows, random }
    }

    pub fn values(&self) -> CellValues {
        self.cell.iter().cloned().collect()
    }

    pub fn first_target(&self, auto: bool) -> u32 {
        match (self.random, auto) {
            (false, _) => 1,
            (true, true) => AUTO_STEP,
            (true, false) => self.scenario.repeat.max(1),
        }
    }
}

/// Whether a transfer over this path alone may end: it stays, and is no black hole for full packets.
fn may_deliver_all(scenario: &Scenario, index: usize) -> bool {
    let (path, options) = (&scenario.topology.paths[index], &scenario.paths[index]);
    let full = anabranch_scenario::full_packet(scenario.settings.mss, scenario.ip_of(index));
    let changes = scenario.network_changes().filter_map(|(_, change)| match change {
        Change::Mtu(of, _, mtu) if of == index => Some(mtu),
        _ => None,
    });
    let is_narrow = [path.down.mtu, path.up.mtu].into_iter().flatten().chain(changes).any(|mtu| u64::from(mtu) < full);
    let swallows = options.mtu_signal == MtuSignal::None && is_narrow && !scenario.settings.tcp.mtu_probing;
    options.presence.stop.is_none() && !swallows
}

/// The congestion control of a baseline, in place of `congestion`; its parameters stay if the algorithm does.
pub(crate) fn single_path_form(congestion: &PlugIn) -> PlugIn {
    let name = anabranch_congestion::single_path_form(&congestion.name);
    let parameters = if name == congestion.name { congestion.parameters.clone() } else { Vec::new() };
    PlugIn { name: name.to_owned(), parameters }
}

fn distinct(plug_ins: Vec<PlugIn>) -> Vec<PlugIn> {
    let mut seen: Vec<PlugIn> = Vec::new();
    for plug_in in plug_ins {
        if !seen.contains(&plug_in) {
            seen.push(plug_in);
        }
    }
    seen
}

/// False if the seed cannot matter, so that one run suffices.
pub fn is_random(scenario: &Scenario) -> bool {
    let topology = &scenario.topology;
    !scenario.start_jitter.is_zero()
        || scenario.groups.iter().any(|group| {
            group.start_jitter.is_some_and(|jitter| !jitter.is_zero()) || group.traffic.iter().any(traffic_is_random)
        })
        || !scenario.groups.is_empty() && scenario.paths.iter().any(|path| path.fabric.is_some())
        || topology
            .paths
            .iter()
            .zip(&scenario.paths)
            .any(|(path, options)| options.trace_start == TraceStart::Seed && has_trace(path))
        || scenario.traffic.iter().any(traffic_is_random)
        || topology.paths.iter().flat_map(|path| [&path.down, &path.up]).any(way_is_random)
        || topology.links.iter().flat_map(|link| [&link.down, &link.up]).any(bottleneck_is_random)
        || topology.links.iter().flat_map(|link| link.behind.iter().flat_map(|behind| behind.iter())).any(way_is_random)
        || scenario.cross.iter().any(cross::is_random)
        || scenario.network_changes().any(|(_, change)| match &change {
            Change::Loss(_, _, loss) | Change::Behind(_, _, BehindChange::Loss(loss)) => loss_is_random(loss),
            Change::Jitter(_, _, jitter) | Change::Behind(_, _, BehindChange::Jitter(jitter)) => !jitter.is_none(),
            Change::Radio(_, _, change) | Change::Behind(_, _, BehindChange::Radio(change)) => {
                RadioSpec::NONE.with(*change).is_random()
            }
            Change::Reorder(_, _, reorder) | Change::Behind(_, _, BehindChange::Reorder(reorder)) => {
                reorder.probability > 0.0
            }
            Change::Behind(_, _, BehindChange::Delay(_)) => false,
            Change::Rate(..)
            | Change::Delay(..)
            | Change::Burst(..)
            | Change::Police(..)
            | Change::Mtu(..)
            | Change::Middleboxes(..)
            | Change::Queue(..) => false,
        })
}

/// A direction of the path follows a trace of its own.
pub(crate) fn has_trace(path: &PathSpec) -> bool {
    let own = |way: &WaySpec| way.bottleneck.own().is_some_and(follows_trace);
    let follows = |way: &WaySpec| own(way) || way.recorded_delay.is_some() || way.recorded_loss.is_some();
    [&path.down, &path.up].into_iter().any(follows)
}

/// A direction of the link follows a trace.
pub(crate) fn link_has_trace(link: &LinkSpec) -> bool {
    let recorded = |way: &WaySpec| way.recorded_delay.is_some() || way.recorded_loss.is_some();
    let behind = link.behind.iter().flat_map(|behind| behind.iter()).any(recorded);
    behind || [&link.down, &link.up].into_iter().any(follows_trace)
}

fn follows_trace(bottleneck: &BottleneckSpec) -> bool {
    matches!(bottleneck.capacity, CapacitySpec::Trace(_) | CapacitySpec::Steps(_))
}

fn traffic_is_random(traffic: &Traffic) -> bool {
    // Spelt out, so that a new kind must be decided here.
    let of_kind = match &traffic.kind {
        TrafficKind::Bulk { .. }
        | TrafficKind::Frames { .. }
        | TrafficKind::Video { .. }
        | TrafficKind::Request { .. } => false,
        TrafficKind::Call { video, .. } => video.is_some(),
        TrafficKind::Web { sizes, .. } => match sizes {
            ObjectSizes::Equal => false,
            ObjectSizes::Lognormal => true,
        },
    };
    of_kind || matches!(traffic.arrivals, Arrivals::Poisson { .. })
}

fn way_is_random(way: &WaySpec) -> bool {
    way.bottleneck.own().is_some_and(bottleneck_is_random)
        || loss_is_random(&way.loss)
        || way.recorded_loss.is_some()
        || !way.jitter.is_none()
        || way.radio.is_random()
        || way.reorder.probability > 0.0
        || way.duplicate > 0.0
        || way.corrupt > 0.0
}

fn bottleneck_is_random(bottleneck: &BottleneckSpec) -> bool {
    // Spelt out, so that a new kind must be decided here.
    match &bottleneck.capacity {
        CapacitySpec::Fixed(_) | CapacitySpec::Bucket(_) | CapacitySpec::Trace(_) | CapacitySpec::Steps(_) => {
            bottleneck.queue.discipline().is_some_and(Discipline::is_random)
        }
    }
}

pub(crate) fn loss_is_random(loss: &LossSpec) -> bool {
    match *loss {
        LossSpec::None => false,
        LossSpec::Bernoulli(p) => p > 0.0,
        LossSpec::GilbertElliott { p, h, k, .. } => k < 1.0 || (p > 0.0 && h < 1.0),
    }
}
