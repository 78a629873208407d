//! The runs of an inference, of one machine or of several.

use crate::failure::Failure;
use crate::kept::{Kept, salvage};
use crate::progress::Progress;
use crate::shard::missing;
use crate::stage::{Stage, carry_out, carry_out_shard};
use crate::watch::Wanted;
use anabranch_run::{Choice, Driver, Job, Plan, Refusal, Results, RunError, RunOutcome, Shard};
use anabranch_trace::Recorder;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// Gives a run that fails no values, so that its testbed is never kept: one draw does not end an inference.
pub(super) struct Bearing<'a> {
    driver: &'a dyn Driver,
    failed: Mutex<BTreeSet<String>>,
}

impl<'a> Bearing<'a> {
    pub fn new(driver: &'a dyn Driver) -> Self {
        Self { driver, failed: Mutex::default() }
    }

    /// The runs that failed since the last call, with the reason of each.
    pub fn failed(&self) -> Vec<String> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *failed).into_iter().collect()
    }
}

impl Driver for Bearing<'_> {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        self.driver.prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let what = match self.driver.run(job, listener) {
            Err(RunError::Fault { what }) => what,
            other => return other,
        };
        let row = match &job.choice {
            Choice::Multipath(scheduler) => scheduler.with_parameters(),
            Choice::Single(path) => format!("single:{}", job.scenario.topology.paths[*path].name),
        };
        let cell: String = job.cell.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.insert(format!("{row}, seed {}{cell}: {what}", job.seed));
        Ok(RunOutcome::default())
    }
}

/// How runs are made.
pub(super) struct Making<'a> {
    pub driver: Bearing<'a>,
    pub journal: Option<&'a Kept<'a>>,
    pub jobs: Option<NonZeroUsize>,
    pub shard: Option<Shard>,
    pub progress: &'a dyn Progress,
    /// Runs that this shard made.
    pub made: Cell<usize>,
}

impl Making<'_> {
    /// The results of plans. `None` of a shard that lacks some runs: then it has made its part of them.
    pub fn carry(&self, name: &str, plans: Vec<Plan>) -> Result<Option<Vec<Results>>, Failure> {
        let stage = |plan: Plan| Stage {
            plan,
            driver: &self.driver,
            real_time: false,
            jobs: self.jobs,
            name: format!("{name}: "),
            kept: salvage(self.journal),
            folder: None,
            order: None,
        };
        let stages: Vec<Stage<'_>> = plans.into_iter().map(stage).collect();
        if let (Some(shard), Some(journal)) = (self.shard, self.journal)
            && stages.iter().any(|stage| missing(&stage.plan, |job| journal.has(job)).0 > 0)
        {
            for stage in &stages {
                self.made.set(self.made.get() + carry_out_shard(stage, shard, self.progress)?);
            }
            return Ok(None);
        }
        let mut carried = carry_out(&stages, Wanted::default(), self.progress)?;
        match carried.wrong.is_empty() {
            true => Ok(Some(carried.results)),
            false => Err(carried.wrong.remove(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::{Options, Runner, Serial, Variant};
    use anabranch_scenario::Document;
    use std::sync::Arc;

    /// Runs of one seed end with a fault.
    struct Faulty;

    impl Driver for Faulty {
        fn run(&self, job: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
            match (job.seed, &job.choice) {
                (2, Choice::Single(_)) => Err(RunError::Fault { what: "nothing can happen".into() }),
                (9, _) => Err(RunError::Interrupted),
                _ => Ok(RunOutcome { finished: true, ..RunOutcome::default() }),
            }
        }
    }

    fn plan(seed: u64) -> Plan {
        let text = format!(
            "duration = \"1s\"\nseed = {seed}\nrepeat = 2\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\nloss = \"1%\"\n"
        );
        let scenario = Document::parse("test", &text).expect("it is a scenario").scenario;
        let cell = vec![("testbed".to_owned(), "7".to_owned())];
        Plan::new(&[Variant { cell, scenario: Arc::new(scenario) }], &Options { causes: false, ..Options::default() })
    }

    #[test]
    fn a_run_that_fails_has_no_values_and_is_named() {
        let bearing = Bearing::new(&Faulty);
        let run = |seed| Runner { driver: &bearing, pool: &Serial, observer: &() }.run(&plan(seed));
        let results = run(1).expect("a fault is borne");
        assert_eq!(results.runs.iter().filter(|run| !run.finished).count(), 1);
        assert_eq!(bearing.failed(), ["single:a, seed 2, testbed = 7: nothing can happen"]);
        assert!(bearing.failed().is_empty());
        // A user who stops the command is obeyed.
        assert!(run(9).is_err());
    }
}
