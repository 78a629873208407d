//! Every scheduler over a grid of path sets and applications: how near each comes to the best possible, and where it hurts.

mod applications;
mod score;

pub use applications::{Application, applications};
pub use score::{CellScore, Entry, Frontier, Standing};

use crate::driver::{Driver, Labelled, Observer, Pool};
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
    /// Runs everything: path set by path set, so that no more than one set's runs are kept.
    ///
    /// # Errors
    /// The first run that failed, with its path set.
    pub fn run(&self, driver: &dyn Driver, pool: &dyn Pool, observer: &dyn Observer) -> Result<Frontier, Failure> {
        let plans: Vec<Plan> = self.path_sets.iter().map(|paths| self.plan(paths)).collect();
        let planned: usize = plans.iter().map(|plan| plan.extent().0).sum();
        let mut done = 0;
        let mut cells = Vec::new();
        for (paths, plan) in self.path_sets.iter().zip(&plans) {
            let part = Part { whole: observer, done, planned };
            let records = Runner { driver, pool, observer: &part }.records(plan);
            let records =
                records.map_err(|failure| Failure { run: format!("{}, {}", paths.name, failure.run), ..failure })?;
            done += plan.extent().0;
            cells.extend(records.iter().filter_map(|rows| score::cell(rows)));
        }
        Ok(Frontier::new(&self.congestion.name, cells))
    }

    fn plan(&self, paths: &Scenario) -> Plan {
        let variant = |application: Application| Variant {
            cell: vec![(PATHS.into(), paths.name.clone()), (TRAFFIC.into(), application.name.into())],
            scenario: Arc::new(application.scenario),
        };
        let variants: Vec<Variant> = applications(paths).into_iter().map(variant).collect();
        let (schedulers, congestions) = (self.schedulers.clone(), vec![self.congestion.clone()]);
        Plan::new(&variants, &Options { schedulers, congestions, ..Options::default() })
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
