//! The room: the distance of the best schedulers from the oracle, and the part of it due to each hindrance, found by taking it
//! away.

use super::first_path::with_first;
use super::{CellScore, Frontier, PathSet, Task, applications, plan, portfolio, run_all, score};
use anabranch_metrics::mean;
use anabranch_network::{Change, LossSpec};
use anabranch_run::{Driver, Failure, Observer, Options, Pool, RunRecord, with_known_capacity};
use anabranch_scenario::{CrossKind, PlugIn, Scenario, TimelineChange};
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

/// The causes that are taken away, in the order of the tables, and how.
pub const TAKEN_AWAY: [(&str, &str); 7] = [
    (
        "slow start",
        "each subflow begins with the window that fills its path, paced at its rate, and keeps it until the first loss; with \
         several connections each begins with its part and grows from there",
    ),
    ("loss", "no random loss, from the timeline either, but for what loses everything"),
    ("other traffic", "no bursts of other traffic; rival flows stay"),
    ("the window", "buffers of 64 MiB"),
    ("CUBIC", "BBR on every subflow"),
    ("the first path", "the first subflow on the best path of the cell"),
    ("all", "the first four at once, and the best first path"),
];

const BUFFER: u64 = 64 << 20;
/// The number of schedulers that represent all: the portfolio of [`portfolio`].
const TEAM: usize = 3;
/// Seeds of the runs without something, at most; those with everything in place count with as many.
const SEEDS: usize = 3;

/// The room to the oracle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// Congestion control.
    pub congestion: String,
    /// The scheduler whose mean ratio to the oracle is greatest.
    pub leader: String,
    /// The schedulers with which everything else was run, each with the loss of the best of those up to it against the best
    /// of all, mean over the cells.
    pub team: Vec<(String, f64)>,
    /// One entry per kind of path set and application.
    pub rows: Vec<RoomRow>,
}

/// Means over the path sets of one kind, with one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomRow {
    /// Kind of path sets.
    pub kind: String,
    /// The application.
    pub traffic: String,
    /// Path sets.
    pub sets: usize,
    /// Ratio to the oracle of the best path alone.
    pub single: f64,
    /// Ratio of the leader.
    pub leader: f64,
    /// Ratio of the best of all schedulers in each cell.
    pub best: f64,
    /// Ratio of the best of the team in each cell, with the seeds of what follows.
    pub team: f64,
    /// The same with each thing of [`TAKEN_AWAY`] taken away. The oracle is that of the cell as it then is.
    pub without: IndexMap<String, f64>,
}

/// One cell without one thing, opened on one path: the team's best ratio.
type MeanRatios = IndexMap<(String, String, &'static str), f64>;

impl Room {
    /// Runs the cells of `frontier`, which was made of `path_sets`, with one thing after the other taken away.
    pub fn run(
        (frontier, path_sets, congestion): (&Frontier, &[PathSet], &PlugIn),
        schedulers: &[PlugIn],
        (driver, pool, observer): (&dyn Driver, &dyn Pool, &dyn Observer),
    ) -> (Option<Self>, Option<Failure>) {
        let Some(leader) = frontier.leader() else { return (None, None) };
        let team = portfolio(&frontier.cells, TEAM);
        let is_player = |scheduler: &&PlugIn| team.iter().any(|(name, _)| *name == scheduler.with_parameters());
        let players: Vec<PlugIn> = schedulers.iter().filter(is_player).cloned().collect();
        let traffic: IndexSet<&str> = frontier.cells.iter().map(|cell| cell.traffic.as_str()).collect();
        let tasks: Vec<Task<&'static str>> = path_sets
            .iter()
            .flat_map(|set| variants(set, congestion))
            .flat_map(|variant| tasks(variant, &traffic, &players))
            .collect();
        let mut found = MeanRatios::new();
        let (_, ended) = run_all(&tasks, (driver, pool, observer), |task, records| {
            records.iter().for_each(|rows| note(&mut found, task.key, rows));
        });
        if ended.is_some() {
            return (None, ended);
        }
        let rows = rows(frontier, &leader.scheduler, &team, &found);
        (Some(Self { congestion: congestion.name.clone(), leader: leader.scheduler.clone(), team, rows }), None)
    }
}

/// A path set without one thing.
struct Without {
    thing: &'static str,
    set: PathSet,
    congestion: PlugIn,
}

fn variants(set: &PathSet, congestion: &PlugIn) -> Vec<Without> {
    let of = |index: usize, scenario: Scenario, congestion: PlugIn| Without {
        thing: TAKEN_AWAY[index].0,
        set: PathSet { scenario, ..set.clone() },
        congestion,
    };
    let own = || congestion.clone();
    let without = |take: &[fn(&mut Scenario)]| {
        let repeat = set.scenario.repeat.min(SEEDS as u32);
        let mut scenario = Scenario { repeat, ..set.scenario.clone() };
        take.iter().for_each(|take| take(&mut scenario));
        scenario
    };
    let bbr = PlugIn { name: "bbr".into(), parameters: Vec::new() };
    let mut all = vec![
        of(0, without(&[]), with_known_capacity(congestion)),
        of(1, without(&[no_loss]), own()),
        of(2, without(&[no_cross]), own()),
        of(3, without(&[no_window]), own()),
        of(4, without(&[]), bbr),
    ];
    for first in 0..set.scenario.topology.paths.len() {
        all.push(of(5, with_first(&without(&[]), first), own()));
        let ideal = with_first(&without(&[no_loss, no_cross, no_window]), first);
        all.push(of(6, ideal, with_known_capacity(congestion)));
    }
    all
}

fn no_loss(scenario: &mut Scenario) {
    for path in &mut scenario.topology.paths {
        path.down.loss = LossSpec::None;
        path.up.loss = LossSpec::None;
    }
    scenario.timeline.iter_mut().for_each(|entry| match &mut entry.change {
        // A loss of all packets is an outage: it stays.
        TimelineChange::Network(Change::Loss(_, _, loss)) if !loss.is_total() => *loss = LossSpec::None,
        _ => {}
    });
}

fn no_cross(scenario: &mut Scenario) {
    // Rivals are what the set is about; the background is not.
    scenario.cross.retain(|cross| matches!(cross.kind, CrossKind::Tcp { .. }));
}

fn no_window(scenario: &mut Scenario) {
    scenario.settings.send_buffer = BUFFER;
    scenario.settings.recv_buffer = BUFFER;
}

fn tasks(variant: Without, traffic: &IndexSet<&str>, players: &[PlugIn]) -> Vec<Task<&'static str>> {
    let congestions = vec![variant.congestion.clone()];
    let options = Options { schedulers: players.to_vec(), congestions, baselines: false, ..Options::default() };
    let names: Vec<&str> = traffic.iter().copied().collect();
    let applications = applications(&variant.set.scenario, &names).into_iter();
    let title = format!("{} without {}", variant.set.scenario.name, variant.thing);
    let task = |application| Task {
        key: variant.thing,
        plan: plan(&variant.set, application, &options),
        title: title.clone(),
    };
    applications.map(task).collect()
}

/// Keeps the best of what was found of a cell without `thing`.
fn note(found: &mut MeanRatios, thing: &'static str, rows: &[Vec<RunRecord>]) {
    for row in rows {
        let Some(run) = row.first() else { continue };
        let value = |key| run.cell.get(key).cloned().unwrap_or_default();
        let ratio = score::mean_of(row, score::ratio);
        let best = found.entry((value(super::PATHS), value(super::TRAFFIC), thing)).or_insert(0.0);
        *best = best.max(ratio);
    }
}

fn rows(frontier: &Frontier, leader: &str, team: &[(String, f64)], found: &MeanRatios) -> Vec<RoomRow> {
    let of_team = |cell: &CellScore| {
        let ratio = |entry: &score::Entry| mean(&entry.ratios[..entry.ratios.len().min(SEEDS)]).unwrap_or(0.0);
        team.iter().filter_map(|(name, _)| cell.entry(name)).map(ratio).fold(0.0, f64::max)
    };
    let row = |kind: &String, traffic: &String, sets: usize| {
        let own = || frontier.cells.iter().filter(|cell| cell.kind == *kind && cell.traffic == *traffic);
        let average = |value: &dyn Fn(&CellScore) -> f64| mean(&own().map(value).collect::<Vec<_>>()).unwrap_or(0.0);
        let of = |name: &str| average(&|cell| cell.entry(name).map_or(0.0, score::Entry::ratio));
        let thing = |name: &'static str| {
            average(&|cell| found.get(&(cell.paths.clone(), cell.traffic.clone(), name)).copied().unwrap_or(0.0))
        };
        RoomRow {
            kind: kind.clone(),
            traffic: traffic.clone(),
            sets,
            single: of(score::BEST_SINGLE),
            leader: of(leader),
            best: average(&CellScore::best),
            team: average(&of_team),
            without: TAKEN_AWAY.iter().map(|(name, _)| ((*name).to_owned(), thing(name))).collect(),
        }
    };
    frontier.advice.iter().map(|advice| row(&advice.kind, &advice.traffic, advice.sets)).collect()
}
