//! Runs a plan and draws its results together.

use crate::diagnosis::diagnose;
use crate::driver::{Driver, Labelled, Observer, Pool};
use crate::job::RunError;
use crate::plan::{AUTO_LIMIT, AUTO_STEP, CellPlan, Plan};
use crate::results::{Incomplete, Results, RunRecord, SCHEMA, document_digest};
use crate::summary::{compare, fill_in_ratios, is_narrow, summarise};
use crate::twins::Twins;
use std::fmt;
use std::ops::Range;
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

/// One of several parts of a plan, which different machines may run: seed after seed goes to the next, with all its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `of`.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// One repetition of one row.
struct Task {
    cell: usize,
    row: usize,
    repetition: u32,
}

/// Runs that are made at once, unless one cell has more: enough to keep many threads busy, few enough to be held.
const BATCH: usize = 4096;

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
        match self.run_as_far(plan) {
            (results, None) => Ok(results),
            (_, Some(failure)) => Err(failure),
        }
    }

    /// Does the runs of `plan` until one fails: the results of those that were finished, marked as incomplete, and why
    /// the others are missing.
    pub fn run_as_far(&self, plan: &Plan) -> (Results, Option<Failure>) {
        let (mut runs, mut summary, mut comparisons, mut diagnosis) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let failure = self.cells(plan, &mut |cell, rows| {
            summary.extend(rows.iter().flat_map(|row| summarise(row, !cell.random)));
            comparisons.extend(compare(cell, &rows));
            diagnosis.extend(diagnose(cell, &rows));
            runs.extend(rows.into_iter().flatten());
        });
        let missing = |_: &Failure| Incomplete { finished: runs.len(), planned: plan.extent().0.max(runs.len()) };
        let results = Results {
            schema: SCHEMA,
            anabranch: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: plan.title.clone(),
            incomplete: failure.as_ref().map(missing),
            sweep: plan.swept(),
            digest: document_digest(&runs),
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
        let mut done = 0;
        loop {
            let some: Vec<Task> = tasks.by_ref().take(BATCH).collect();
            if some.is_empty() {
                return (done, None);
            }
            let (records, failure) = self.run_tasks(plan, &some, done);
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
    pub(crate) fn records(&self, plan: &Plan) -> Result<Vec<CellRecords>, Failure> {
        let mut records = Vec::new();
        self.cells(plan, &mut |_, rows| records.push(rows)).map_or(Ok(records), Err)
    }

    /// Runs the cells in their order, and gives the runs of each to `take` when all are there, with the ratios against the
    /// baselines; of the cells that a failure cuts short, those that were made before it. A row that has the same outcome as
    /// one of an earlier cell is not run again.
    fn cells(&self, plan: &Plan, take: &mut dyn FnMut(&CellPlan, CellRecords)) -> Option<Failure> {
        let mut twins = Twins::of(plan);
        let mut done = 0;
        for range in batches(plan) {
            let (records, failure) = self.run_batch(plan, &range, &mut twins, done);
            for (cell, mut rows) in plan.cells[range].iter().zip(records) {
                done += rows.iter().map(Vec::len).sum::<usize>();
                fill_in_ratios(cell, &mut rows);
                if rows.iter().any(|row| !row.is_empty()) {
                    take(cell, rows);
                }
            }
            if failure.is_some() {
                return failure;
            }
        }
        None
    }

    /// The runs of some cells; `done` runs came before. A cell with many seeds is run in several steps.
    fn run_batch(
        &self,
        plan: &Plan,
        range: &Range<usize>,
        twins: &mut Twins,
        done: usize,
    ) -> (Vec<CellRecords>, Option<Failure>) {
        let cells = &plan.cells[range.clone()];
        let mut records: Vec<CellRecords> = cells.iter().map(|cell| vec![Vec::new(); cell.rows.len()]).collect();
        let mut targets: Vec<u32> = cells.iter().map(|cell| cell.first_target(plan.auto)).collect();
        let rows: usize = cells.iter().map(|cell| cell.rows.len()).sum();
        let step = (BATCH / rows.max(1)).max(1) as u32;
        let mut reached = 0;
        loop {
            reached += step;
            let near: Vec<u32> = targets.iter().map(|target| reached.min(*target)).collect();
            // Those of earlier batches.
            twins.copy(plan, range, &mut records, &near);
            let tasks = open_tasks(range.start, &records, &near, |cell, row| twins.waits(range, &near, (cell, row)));
            let before = done + records.iter().flatten().map(Vec::len).sum::<usize>();
            let (outcomes, failure) = self.run_tasks(plan, &tasks, before);
            for (task, record) in tasks.iter().zip(outcomes) {
                add(&mut records[task.cell - range.start][task.row], task.repetition, record);
            }
            // Those of this one.
            twins.keep(range.start, &records);
            twins.copy(plan, range, &mut records, &near);
            if failure.is_some() {
                return (records, failure);
            }
            for ((cell, rows), target) in cells.iter().zip(&records).zip(&mut targets) {
                let is_open = plan.auto && cell.random && !rows.iter().all(|row| is_narrow(row));
                *target += if is_open && reached >= *target && *target < AUTO_LIMIT { AUTO_STEP } else { 0 };
            }
            let is_done = |(rows, target): (&CellRecords, &u32)| rows.iter().all(|row| row.len() >= *target as usize);
            if records.iter().zip(&targets).all(is_done) {
                return (records, None);
            }
        }
    }

    /// The records of `tasks`, in their order, until the first that failed; `done` runs came before.
    fn run_tasks(&self, plan: &Plan, tasks: &[Task], done: usize) -> (Vec<Option<RunRecord>>, Option<Failure>) {
        let planned = plan.extent().0.max(done + tasks.len());
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
        let mut failure = None;
        let mut record = |slot: OnceLock<Result<RunRecord, Failure>>| match slot.into_inner() {
            Some(Ok(record)) => Some(record),
            Some(Err(first)) => {
                failure.get_or_insert(first);
                None
            }
            None => None,
        };
        let records: Vec<Option<RunRecord>> = slots.into_iter().map(&mut record).collect();
        if failure.is_none() && records.iter().any(Option::is_none) {
            failure = Some(unsupported("not run", "the pool left it out"));
        }
        (records, failure)
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

/// Adds a run to its row. After a gap it is left out: it would be paired with a run of another seed.
fn add(row: &mut Vec<RunRecord>, repetition: u32, record: Option<RunRecord>) {
    if let Some(mut record) = record.filter(|_| row.len() == repetition as usize) {
        if let Some(last) = row.last() {
            record.share(last);
        }
        row.push(record);
    }
}

fn unsupported(run: &str, what: &str) -> Failure {
    Failure { run: run.to_owned(), error: RunError::Unsupported { what: what.to_owned() } }
}

/// The runs that are missing until every row of cell i, counted from `first` on, has `targets[i]` records. The seeds of all
/// rows advance together, so that what an interruption leaves can be compared.
fn open_tasks(
    first: usize,
    records: &[CellRecords],
    targets: &[u32],
    waits: impl Fn(usize, usize) -> bool,
) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (cell, (rows, target)) in (first..).zip(records.iter().zip(targets)) {
        for repetition in 0..*target {
            let is_open = |row: &usize| rows[*row].len() <= repetition as usize && !waits(cell, *row);
            tasks.extend((0..rows.len()).filter(is_open).map(|row| Task { cell, row, repetition }));
        }
    }
    tasks
}

/// Ranges of cells that are run at once. With [`crate::Repeat::Auto`] a cell is alone: its number of runs is open.
fn batches(plan: &Plan) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut runs = 0;
    for (index, cell) in plan.cells.iter().enumerate() {
        let own = cell.rows.len() * cell.first_target(plan.auto) as usize;
        match batches.last_mut() {
            Some(last) if !plan.auto && runs + own <= BATCH => last.end = index + 1,
            _ => {
                batches.push(index..index + 1);
                runs = 0;
            }
        }
        runs += own;
    }
    batches
}
