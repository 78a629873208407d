//! Runs a plan and draws its results together.

use crate::batch::{Batch, Task, batches};
use crate::diagnosis::diagnose;
use crate::driver::{Driver, Labelled, Observer, Pool};
use crate::job::{Job, RunError, RunOutcome};
use crate::plan::{CellPlan, Plan};
use crate::record::{CellRecords, RunRecord};
use crate::results::{Incomplete, Results, SCHEMA, document_digest};
use crate::runs::{BLOCK, RunRow, Runs};
use crate::summary::{compare, summarise};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, io};

/// Runs plans with a driver, on a pool, watched by an observer.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// Does each run.
    pub driver: &'a dyn Driver,
    /// Spreads them over threads. Results do not depend on it.
    pub pool: &'a dyn Pool,
    /// Watches.
    pub observer: &'a dyn Observer,
}

/// A run that failed, and with it the whole plan: results with holes would mislead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which run: `blest, olia, seed 3`.
    pub run: String,
    /// Why.
    pub error: RunError,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.run, self.error)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// One of several parts of a plan, which different machines may run: seed after seed goes to the next, with all its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `of`.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl Runner<'_> {
    /// Does all runs of `plan`.
    ///
    /// With [`crate::Repeat::Auto`], each cell is run with ten seeds, then ten more at a time, until for each of its rows
    /// the 95 % interval of the mean of its [`anabranch_metrics::main_metric`], from end to end, is narrower than 2 % of the mean, twice
    /// in succession, or 200 seeds are done.
    ///
    /// # Errors
    /// The first run, in the plan's order, that failed.
    pub fn run(&self, plan: &Plan) -> Result<Results, Failure> {
        match self.run_as_far(plan) {
            (results, None) => Ok(results),
            (_, Some(failure)) => Err(failure),
        }
    }

    /// Does the runs of `plan` until one fails: the results of those that were finished, marked as incomplete, and why
    /// the others are missing.
    pub fn run_as_far(&self, plan: &Plan) -> (Results, Option<Failure>) {
        self.run_into(plan, Runs::default())
    }

    /// The same with `runs`, in which there is none yet: a store of the caller's may hold more than memory does.
    pub fn run_into(&self, plan: &Plan, mut runs: Runs) -> (Results, Option<Failure>) {
        let (mut summary, mut comparisons, mut diagnosis) = (Vec::new(), Vec::new(), Vec::new());
        let failure = self.cells(plan, &mut runs, &mut |cell, rows| {
            summary.extend(rows.iter().enumerate().flat_map(|(place, row)| summarise(cell, place, row)));
            comparisons.extend(compare(cell, rows));
            let ask = |jobs: &[Job]| self.ask(jobs);
            diagnosis.extend(diagnose(plan, cell, rows, plan.causes.then_some(&ask)));
        });
        let digest = document_digest(&runs);
        let failure = failure.or_else(|| runs.check().err().map(|error| lost(&error)));
        if runs.check().is_err() {
            // Zeros took the place of values that could not be read.
            (summary, comparisons, diagnosis, runs) = Default::default();
        }
        let missing = |_: &Failure| Incomplete { finished: runs.len(), planned: plan.extent().0.max(runs.len()) };
        let results = Results {
            schema: SCHEMA,
            anabranch: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: plan.title.clone(),
            incomplete: failure.as_ref().map(missing),
            sweep: plan.swept(),
            digest,
            runs,
            summary,
            comparisons,
            diagnosis,
        };
        (results, failure)
    }

    /// Makes the runs of a part of `plan`, for a driver that keeps them: how many, and why not all.
    pub fn run_shard(&self, plan: &Plan, shard: Shard) -> (usize, Option<Failure>) {
        let seeds = (0..)
            .zip(&plan.cells)
            .flat_map(|(index, cell)| (0..cell.first_target(plan.auto)).map(move |repetition| (index, repetition)));
        let own = seeds.skip(shard.number as usize - 1).step_by(shard.of as usize);
        let mut tasks = own.flat_map(|(cell, repetition)| {
            (0..plan.cells[cell].rows.len()).map(move |row| Task { cell, row, repetition })
        });
        let (mut done, planned) = (0, plan.extent().0);
        loop {
            let some: Vec<Task> = tasks.by_ref().take(BLOCK).collect();
            if some.is_empty() {
                return (done, None);
            }
            let (records, failure) = self.run_tasks(plan, &some, (done, planned));
            done += records.into_iter().flatten().count();
            if failure.is_some() {
                return (done, failure);
            }
        }
    }

    /// The runs of each cell of `plan` by row and repetition, with the ratios against the baselines.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn records(&self, plan: &Plan) -> Result<Vec<CellRecords>, Failure> {
        let mut records = Vec::new();
        let failure = self.cells(plan, &mut Runs::default(), &mut |_, rows| {
            records.push(rows.iter().map(|row| row.records().collect()).collect());
        });
        failure.map_or(Ok(records), Err)
    }

    /// Runs the cells in their order into `runs`, and gives the rows of each to `take` when all are there, with the ratios
    /// against the baselines; of the cells that a failure cuts short, those that were made before it.
    fn cells(&self, plan: &Plan, runs: &mut Runs, take: &mut dyn FnMut(&CellPlan, &[RunRow<'_>])) -> Option<Failure> {
        let planned = plan.extent().0;
        for range in batches(plan) {
            let failure = self.run_batch(plan, range.clone(), runs, planned);
            for cell in &plan.cells[range] {
                let rows: Vec<RunRow<'_>> = cell.numbers().map(|number| runs.row(number)).collect();
                if rows.iter().any(|row| !row.is_empty()) {
                    take(cell, &rows);
                }
            }
            let failure = runs.check().err().map(|error| lost(&error)).or(failure);
            if failure.is_some() {
                return failure;
            }
        }
        None
    }

    /// The outcomes of `jobs` that are not the plan's. They are no results, so that none of them is observed, and one that fails is
    /// left out.
    fn ask(&self, jobs: &[Job]) -> Vec<Option<RunOutcome>> {
        self.on_pool(jobs.len(), &|index| self.driver.run(&jobs[index], &mut ()).ok())
    }

    /// The answers of `make` to each of `0..count`, made on the pool; `None` also of one that the pool left out.
    fn on_pool<T: Send + Sync>(&self, count: usize, make: &(dyn Fn(usize) -> Option<T> + Sync)) -> Vec<Option<T>> {
        let slots: Vec<OnceLock<Option<T>>> = (0..count).map(|_| OnceLock::new()).collect();
        self.pool.for_each(count, &|index| {
            slots[index].get_or_init(|| make(index));
        });
        slots.into_iter().map(|slot| slot.into_inner().flatten()).collect()
    }

    /// Runs some cells into `runs`. A cell with many seeds is run in several steps.
    fn run_batch(&self, plan: &Plan, range: Range<usize>, runs: &mut Runs, planned: usize) -> Option<Failure> {
        let mut batch = Batch::new(plan, range, runs);
        while let Some(step) = batch.next(runs) {
            let tasks = step.tasks();
            let (outcomes, failure) = self.run_tasks(plan, &tasks, (runs.len(), planned));
            let stored = step.store(&tasks, outcomes, runs);
            let failure = failure.or_else(|| stored.err().map(|error| lost(&error)));
            if failure.is_some() {
                return failure;
            }
        }
        None
    }

    /// The records of `tasks`, in their order, until the first that failed; `done` runs came before, of at least `planned`.
    fn run_tasks(
        &self,
        plan: &Plan,
        tasks: &[Task],
        (done, planned): (usize, usize),
    ) -> (Vec<Option<RunRecord>>, Option<Failure>) {
        let planned = planned.max(done + tasks.len());
        let finished = AtomicUsize::new(done);
        // Runs after one that failed are not needed any more.
        let failed = AtomicUsize::new(usize::MAX);
        self.observer.progress(done, planned);
        let answers = self.on_pool(tasks.len(), &|index| {
            if index > failed.load(Ordering::Relaxed) {
                return None;
            }
            let answer = self.run_task(plan, &tasks[index]);
            match &answer {
                Ok(_) => self.observer.progress(finished.fetch_add(1, Ordering::Relaxed) + 1, planned),
                Err(_) => {
                    failed.fetch_min(index, Ordering::Relaxed);
                }
            }
            Some(answer)
        });
        let mut failure = None;
        let mut record =
            |answer: Result<RunRecord, Failure>| answer.map_err(|first| failure.get_or_insert(first).clone()).ok();
        let records: Vec<Option<RunRecord>> = answers.into_iter().map(|answer| answer.and_then(&mut record)).collect();
        if failure.is_none() && records.iter().any(Option::is_none) {
            failure = Some(unsupported("not run", "the pool left it out"));
        }
        (records, failure)
    }

    fn run_task(&self, plan: &Plan, task: &Task) -> Result<RunRecord, Failure> {
        let cell = &plan.cells[task.cell];
        let row = &cell.rows[task.row];
        let job = plan.job(cell, row, task.repetition);
        let labelled = Labelled {
            job: &job,
            scheduler: &row.scheduler_label,
            congestion: &row.congestion_label,
            row: cell.first_row + task.row,
            repetition: task.repetition,
        };
        let mut answer = None;
        self.observer.observe(&labelled, &mut |recorder| answer = Some(self.driver.run(&job, recorder)));
        let run = || labelled.to_string();
        let outcome = answer.ok_or_else(|| unsupported(&run(), "the observer left it out"))?;
        let outcome = outcome.map_err(|error| Failure { run: run(), error })?;
        Ok(RunRecord::new(&row.scheduler_label, &row.congestion_label, job.seed, cell.values(), outcome))
    }
}

fn unsupported(run: &str, what: &str) -> Failure {
    Failure { run: run.to_owned(), error: RunError::Unsupported { what: what.to_owned() } }
}

/// The store failed.
fn lost(error: &io::Error) -> Failure {
    Failure { run: "results".to_owned(), error: RunError::Unheld { why: error.to_string() } }
}
