//! The cost of the choice of the first path: the same cells with each path in turn carrying the first subflow.

use super::{PathSet, Task, applications, plan, run_all, score};
use anabranch_run::{Driver, Failure, Observer, Options, Pool};
use anabranch_scenario::{Over, PlugIn, Scenario, TimelineChange};
use serde::{Deserialize, Serialize};

/// One path set with one application and one scheduler, opened on each path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The path set's title.
    pub paths: String,
    /// Kind of the path set.
    pub kind: String,
    /// The application.
    pub traffic: String,
    /// The scheduler.
    pub scheduler: String,
    /// Mean ratio to the oracle, by the path that carries the first subflow, in the scenario's order. The oracle is the same
    /// for all: it takes the best.
    pub ratios: Vec<f64>,
}

impl Opened {
    /// Result with the best first path.
    pub fn best(&self) -> f64 {
        self.ratios.iter().copied().fold(0.0, f64::max)
    }

    /// Result with the worst first path.
    pub fn worst(&self) -> f64 {
        self.ratios.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The cells to open on each path.
#[derive(Clone, Debug)]
pub struct FirstPath {
    /// Over all of these.
    pub path_sets: Vec<PathSet>,
    /// Applications of [`super::APPLICATIONS`]: such as end.
    pub traffic: Vec<&'static str>,
    /// Each over every path set.
    pub schedulers: Vec<PlugIn>,
    /// Congestion control of all of them.
    pub congestion: PlugIn,
}

impl FirstPath {
    /// Runs everything; nothing if not all of it was done, and why.
    pub fn run(&self, driver: &dyn Driver, pool: &dyn Pool, observer: &dyn Observer) -> (Vec<Opened>, Option<Failure>) {
        let mut found: Vec<Opened> = Vec::new();
        let (_, ended) = run_all(&self.tasks(), (driver, pool, observer), |_, records| {
            records.iter().flatten().for_each(|row| {
                let Some(run) = row.first() else { return };
                let value = |key| run.cell.get(key).cloned().unwrap_or_default();
                let ratio = score::mean_of(row, score::ratio);
                let [paths, kind, traffic] = [super::PATHS, super::KIND, super::TRAFFIC].map(value);
                let scheduler = run.scheduler.clone();
                let same = |o: &&mut Opened| (&o.paths, &o.traffic, &o.scheduler) == (&paths, &traffic, &scheduler);
                match found.iter_mut().find(same) {
                    Some(known) => known.ratios.push(ratio),
                    None => found.push(Opened { paths, kind, traffic, scheduler, ratios: vec![ratio] }),
                }
            });
        });
        if ended.is_some() { (Vec::new(), ended) } else { (found, None) }
    }

    fn tasks(&self) -> Vec<Task<()>> {
        let (schedulers, congestions) = (self.schedulers.clone(), vec![self.congestion.clone()]);
        let options = Options { schedulers, congestions, baselines: false, ..Options::default() };
        let mut tasks = Vec::new();
        for set in &self.path_sets {
            for first in 0..set.scenario.topology.paths.len() {
                let set = PathSet { scenario: with_first(&set.scenario, first), ..set.clone() };
                for application in applications(&set.scenario, &self.traffic) {
                    let title = format!("{}, path {first} first", set.scenario.name);
                    tasks.push(Task { key: (), plan: plan(&set, application, &options), title });
                }
            }
        }
        tasks
    }
}

/// The same scenario with path `first` in the first place, which carries the first subflow, and the others behind it in their
/// order. Paths keep their names, and with them their random streams.
pub fn with_first(scenario: &Scenario, first: usize) -> Scenario {
    let count = scenario.topology.paths.len();
    let mut order: Vec<usize> = (0..count).collect();
    if first < count {
        order[..=first].rotate_right(1);
    }
    let now = |old: usize| order.iter().position(|place| *place == old).unwrap_or(old);
    let mut moved = scenario.clone();
    moved.topology.paths = order.iter().map(|i| scenario.topology.paths[*i].clone()).collect();
    moved.paths = order.iter().map(|i| scenario.paths[*i]).collect();
    for cross in &mut moved.cross {
        if let Over::Path(path) = &mut cross.over {
            *path = now(*path);
        }
    }
    for entry in &mut moved.timeline {
        match &mut entry.change {
            TimelineChange::Scheduler(_) => {}
            TimelineChange::Option(path, _) => *path = now(*path),
            TimelineChange::Network(change) => change.path_mut().into_iter().for_each(|path| *path = now(*path)),
        }
    }
    moved
}
