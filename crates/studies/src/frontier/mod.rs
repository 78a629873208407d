//! Every scheduler over a grid of path sets and applications: the distance of each from the best possible, cell by cell.

mod advice;
mod applications;
mod first_path;
mod mirrored;
mod room;
mod score;
mod standing;

pub use advice::{AS_GOOD, Advice, advice, portfolio};
pub use applications::{APPLICATIONS, Application, applications, usual_applications};
pub use first_path::{FirstPath, Opened, with_first};
pub use room::{Room, RoomRow, TAKEN_AWAY};
pub use score::{BEST_SINGLE, CellScore, Entry, MARGIN, TIE};
pub use standing::{Loss, NEAR, Standing};

use anabranch_run::{CellRecords, Driver, Failure, Labelled, Observer, Options, Plan, Pool, Refusal, Runner, Variant};
use anabranch_scenario::{PlugIn, Scenario};
use anabranch_trace::Recorder;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The keys of a cell: path set, its kind and part of the grid, and application.
pub(crate) const PATHS: &str = "paths";
pub(crate) const KIND: &str = "kind";
pub(crate) const PART: &str = "part";
pub(crate) const TRAFFIC: &str = "traffic";

/// A scenario whose traffic (except the number of its flows, and which end sends) and duration do not count.
#[derive(Clone, Debug)]
pub struct PathSet {
    /// The kind of its paths: `near/far`, `loss`.
    pub kind: String,
    /// Which part of the grid it belongs to.
    pub part: String,
    /// The paths.
    pub scenario: Scenario,
}

/// The runs of a comparison.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Over all of these.
    pub path_sets: Vec<PathSet>,
    /// Applications of [`APPLICATIONS`].
    pub traffic: Vec<&'static str>,
    /// Each is run over every path set with every application.
    pub schedulers: Vec<PlugIn>,
    /// Congestion controls, each with all schedulers; single paths take its single-path form.
    pub congestions: Vec<PlugIn>,
}

/// All schedulers over the grid, by congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of the program that made it.
    pub anabranch: String,
    /// One per congestion control.
    pub frontiers: Vec<Frontier>,
    /// The number of unfinished cells: above zero if the grid's runs ended early.
    #[serde(default, skip_serializing_if = "is_none")]
    pub missing: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// All schedulers over the grid with one congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frontier {
    /// Congestion control of all of them.
    pub congestion: String,
    /// One entry per scheduler and single-path baseline (`single:best`), the best first.
    pub standings: Vec<Standing>,
    /// The best choices, by kind of paths and application.
    pub advice: Vec<Advice>,
    /// One entry per path set and application.
    pub cells: Vec<CellScore>,
}

impl Frontier {
    fn new(congestion: &str, cells: Vec<CellScore>) -> Self {
        let congestion = congestion.to_owned();
        Self { congestion, standings: standing::standings(&cells), advice: advice(&cells), cells }
    }

    /// The scheduler that comes nearest to the oracle.
    pub fn leader(&self) -> Option<&Standing> {
        self.standings.iter().find(|standing| standing.is_placed())
    }
}

/// A plan for one cell.
struct Task<T> {
    /// The key of its runs.
    key: T,
    plan: Plan,
    /// Name in messages.
    title: String,
}

impl Grid {
    /// Gets from the system what the runs need.
    ///
    /// # Errors
    /// The grid is beyond this driver, or this system.
    pub fn prepare(&self, driver: &dyn Driver) -> Result<(), Refusal> {
        self.tasks().iter().try_for_each(|task| driver.prepare(&task.plan))
    }

    /// Runs everything: cell by cell, so that no more than one cell's runs are kept. If a run fails or is interrupted, the
    /// cells before it are returned with the reason.
    pub fn run(&self, driver: &dyn Driver, pool: &dyn Pool, observer: &dyn Observer) -> (Comparison, Option<Failure>) {
        let tasks = self.tasks();
        let mut cells: Vec<Vec<CellScore>> = vec![Vec::new(); self.congestions.len()];
        let (finished, ended) = run_all(&tasks, (driver, pool, observer), |task, records| {
            let own = records.iter().zip(task.plan.randomness());
            cells[task.key].extend(own.filter_map(|(rows, random)| score::cell(rows, random)));
        });
        let named =
            self.congestions.iter().zip(cells).filter(|(_, cells)| finished == tasks.len() || !cells.is_empty());
        let frontiers = named.map(|(congestion, cells)| Frontier::new(&congestion.name, cells)).collect();
        let anabranch = env!("CARGO_PKG_VERSION").to_owned();
        (Comparison { anabranch, frontiers, missing: tasks.len() - finished }, ended)
    }

    /// A plan for each cell: by the place of its congestion control, path set in their order, and application.
    fn tasks(&self) -> Vec<Task<usize>> {
        let mut tasks = Vec::new();
        for (congestion, plug_in) in self.congestions.iter().enumerate() {
            for set in &self.path_sets {
                for application in applications(&set.scenario, &self.traffic) {
                    let title = set.scenario.name.clone();
                    let options = Options {
                        schedulers: self.schedulers.clone(),
                        congestions: vec![plug_in.clone()],
                        ..Options::default()
                    };
                    tasks.push(Task { key: congestion, plan: plan(set, application, &options), title });
                }
            }
        }
        tasks
    }
}

fn plan(set: &PathSet, application: Application, options: &Options) -> Plan {
    let values = [&set.scenario.name, &set.kind, &set.part, application.name];
    let cell = [PATHS, KIND, PART, TRAFFIC].map(str::to_owned).into_iter().zip(values.map(|v: &str| v.to_owned()));
    Plan::new(&[Variant { cell: cell.collect(), scenario: Arc::new(application.scenario) }], options)
}

/// Runs `tasks` one after the other and gives the result of each to `take`. Returns how many finished, and why not all.
fn run_all<T>(
    tasks: &[Task<T>],
    (driver, pool, observer): (&dyn Driver, &dyn Pool, &dyn Observer),
    mut take: impl FnMut(&Task<T>, Vec<CellRecords>),
) -> (usize, Option<Failure>) {
    let planned: usize = tasks.iter().map(|task| task.plan.extent().0).sum();
    let mut done = 0;
    for (finished, task) in tasks.iter().enumerate() {
        let part = Part { whole: observer, done, planned };
        match (Runner { driver, pool, observer: &part }).records(&task.plan) {
            Ok(records) => take(task, records),
            Err(failure) => {
                return (finished, Some(Failure { run: format!("{}, {}", task.title, failure.run), ..failure }));
            }
        }
        done += task.plan.extent().0;
    }
    (tasks.len(), None)
}

/// One part of a larger work.
struct Part<'a> {
    whole: &'a dyn Observer,
    done: usize,
    planned: usize,
}

impl Observer for Part<'_> {
    fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        self.whole.observe(job, run);
    }
    fn progress(&self, done: usize, _planned: usize) {
        self.whole.progress(self.done + done, self.planned);
    }
}

#[cfg(test)]
mod tests;
