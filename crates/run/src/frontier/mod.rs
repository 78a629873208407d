//! Every scheduler over a grid of path sets and applications: how near each comes to the best possible, and where it hurts.

mod applications;
mod score;

pub use applications::{Application, applications};
pub use score::{CellScore, Entry, Frontier, Standing};

use crate::driver::{Driver, Labelled, Observer, Pool, Refusal};
use crate::plan::{Options, Plan, Variant};
use crate::runner::{Failure, Runner};
use anabranch_scenario::{PlugIn, Scenario};
use anabranch_trace::Recorder;
use std::sync::Arc;

/// The keys of a cell: path set and application.
pub(crate) const PATHS: &str = "paths";
pub(crate) const TRAFFIC: &str = "traffic";

/// What to run.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Path sets: scenarios whose traffic and duration do not count.
    pub path_sets: Vec<Scenario>,
    /// Each is run over every path set with every application.
    pub schedulers: Vec<PlugIn>,
    /// Of all of them; single paths take its single-path form.
    pub congestion: PlugIn,
}

impl Grid {
    /// Gets from the system what the runs need.
    ///
    /// # Errors
    /// The grid is beyond this driver, or this system.
    pub fn prepare(&self, driver: &dyn Driver) -> Result<(), Refusal> {
        self.plans().iter().try_for_each(|(_, plan)| driver.prepare(plan))
    }

    /// Runs everything: cell by cell, so that no more than one cell's runs are kept. If a run fails or is interrupted, the
    /// cells before it are there all the same, and why it ended.
    pub fn run(&self, driver: &dyn Driver, pool: &dyn Pool, observer: &dyn Observer) -> (Frontier, Option<Failure>) {
        let plans = self.plans();
        let planned: usize = plans.iter().map(|(_, plan)| plan.extent().0).sum();
        let (mut done, mut finished, mut ended) = (0, 0, None);
        let mut cells = Vec::new();
        for (paths, plan) in &plans {
            let part = Part { whole: observer, done, planned };
            match (Runner { driver, pool, observer: &part }).records(plan) {
                Ok(records) => cells.extend(records.iter().filter_map(|rows| score::cell(rows))),
                Err(failure) => {
                    ended = Some(Failure { run: format!("{}, {}", paths.name, failure.run), ..failure });
                    break;
                }
            }
            done += plan.extent().0;
            finished += 1;
        }
        (Frontier::new(&self.congestion.name, cells, plans.len() - finished), ended)
    }

    /// A plan for each cell, with its path set: path sets in their order, and each with every application.
    fn plans(&self) -> Vec<(&Scenario, Plan)> {
        let of = |paths| applications(paths).into_iter().map(move |application| (paths, self.plan(paths, application)));
        self.path_sets.iter().flat_map(of).collect()
    }

    fn plan(&self, paths: &Scenario, application: Application) -> Plan {
        let variant = Variant {
            cell: vec![(PATHS.into(), paths.name.clone()), (TRAFFIC.into(), application.name.into())],
            scenario: Arc::new(application.scenario),
        };
        let (schedulers, congestions) = (self.schedulers.clone(), vec![self.congestion.clone()]);
        Plan::new(&[variant], &Options { schedulers, congestions, ..Options::default() })
    }
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
