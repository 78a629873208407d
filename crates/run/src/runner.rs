//! Runs a plan and draws its results together.

use crate::driver::{Driver, Labelled, Observer, Pool};
use crate::job::RunError;
use crate::plan::{AUTO_LIMIT, AUTO_STEP, Plan};
use crate::results::{Results, RunRecord, SCHEMA, document_digest};
use crate::summary::{compare, fill_in_ratios, is_narrow, summarise};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// A cell's runs: those of each row, by repetition.
pub(crate) type CellRecords = Vec<Vec<RunRecord>>;

/// One repetition of one row.
struct Task {
    cell: usize,
    row: usize,
    repetition: u32,
}

impl Runner<'_> {
    /// Does all runs of `plan`.
    ///
    /// With [`crate::Repeat::Auto`], each cell is run with ten seeds, then ten more at a time, until for each of its rows
    /// the 95 % interval of the mean of its [`anabranch_metrics::main_metric`], from end to end, is narrower than 2 % of the mean, or 200
    /// seeds are done.
    ///
    /// # Errors
    /// The first run, in the plan's order, that failed.
    pub fn run(&self, plan: &Plan) -> Result<Results, Failure> {
        Ok(assemble(plan, self.records(plan)?))
    }

    /// The runs of each cell of `plan` by row and repetition, with the ratios against the baselines.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn records(&self, plan: &Plan) -> Result<Vec<CellRecords>, Failure> {
        let mut records: Vec<CellRecords> =
            plan.cells.iter().map(|cell| cell.rows.iter().map(|_| Vec::new()).collect()).collect();
        let mut targets: Vec<u32> = plan.cells.iter().map(|cell| cell.first_target(plan.auto)).collect();
        loop {
            let tasks = open_tasks(&records, &targets);
            if tasks.is_empty() {
                break;
            }
            let done = records.iter().flatten().map(Vec::len).sum();
            let outcomes = self.run_tasks(plan, &tasks, done)?;
            for (task, record) in tasks.iter().zip(outcomes) {
                records[task.cell][task.row].push(record);
            }
            if plan.auto {
                for ((cell, rows), target) in plan.cells.iter().zip(&records).zip(&mut targets) {
                    let open = cell.random && !rows.iter().all(|row| is_narrow(row)) && *target < AUTO_LIMIT;
                    *target += if open { AUTO_STEP } else { 0 };
                }
            }
        }
        plan.cells.iter().zip(&mut records).for_each(|(cell, rows)| fill_in_ratios(cell, rows));
        Ok(records)
    }

    /// The records of `tasks`, in their order. `done` runs came before.
    fn run_tasks(&self, plan: &Plan, tasks: &[Task], done: usize) -> Result<Vec<RunRecord>, Failure> {
        let planned = done + tasks.len();
        let finished = AtomicUsize::new(done);
        // Runs after one that failed are not needed any more.
        let failed = AtomicUsize::new(usize::MAX);
        let slots: Vec<OnceLock<Result<RunRecord, Failure>>> = tasks.iter().map(|_| OnceLock::new()).collect();
        self.observer.progress(done, planned);
        self.pool.for_each(tasks.len(), &|index| {
            if index > failed.load(Ordering::Relaxed) {
                return;
            }
            if slots[index].get_or_init(|| self.run_task(plan, &tasks[index])).is_err() {
                failed.fetch_min(index, Ordering::Relaxed);
                return;
            }
            self.observer.progress(finished.fetch_add(1, Ordering::Relaxed) + 1, planned);
        });
        let not_run = || unsupported("not run", "the pool left it out");
        slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(|| Err(not_run()))).collect()
    }

    fn run_task(&self, plan: &Plan, task: &Task) -> Result<RunRecord, Failure> {
        let cell = &plan.cells[task.cell];
        let row = &cell.rows[task.row];
        let rows_before: usize = plan.cells[..task.cell].iter().map(|cell| cell.rows.len()).sum();
        let job = plan.job(cell, row, task.repetition);
        let labelled = Labelled {
            job: &job,
            scheduler: &row.scheduler_label,
            congestion: &row.congestion_label,
            row: rows_before + task.row,
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

/// The runs that are missing until every row of cell i has `targets[i]` records.
fn open_tasks(records: &[CellRecords], targets: &[u32]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (cell, (rows, target)) in records.iter().zip(targets).enumerate() {
        for (row, done) in rows.iter().enumerate() {
            tasks.extend((done.len() as u32..*target).map(|repetition| Task { cell, row, repetition }));
        }
    }
    tasks
}

/// Draws the records of all cells together.
fn assemble(plan: &Plan, records: Vec<CellRecords>) -> Results {
    let (mut summary, mut comparisons) = (Vec::new(), Vec::new());
    for (cell, rows) in plan.cells.iter().zip(&records) {
        summary.extend(rows.iter().flat_map(|row| summarise(row, !cell.random)));
        comparisons.extend(compare(cell, rows));
    }
    let runs: Vec<RunRecord> = records.into_iter().flatten().flatten().collect();
    Results {
        schema: SCHEMA,
        anabranch: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: plan.title.clone(),
        digest: document_digest(&runs),
        runs,
        summary,
        comparisons,
    }
}
