//! Cells that are run at once, step by step.

use crate::plan::{AUTO_CONFIRMED, AUTO_LIMIT, AUTO_STEP, CellPlan, Plan};
use crate::record::{CellRecords, RunRecord};
use crate::runs::{BLOCK, Runs};
use crate::summary::{fill_in_ratios, is_narrow};
use std::io;
use std::ops::Range;

/// One repetition of one row.
pub(crate) struct Task {
    /// Number of the cell in the plan.
    pub cell: usize,
    pub row: usize,
    pub repetition: u32,
}

/// Ranges of cells that are run at once: few enough runs to be held as they come. With [`crate::Repeat::Auto`] a cell is alone,
/// since its number of runs is open.
pub(crate) fn batches(plan: &Plan) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut runs = 0;
    for (index, cell) in plan.cells.iter().enumerate() {
        let own = cell.rows.len() * cell.first_target(plan.auto) as usize;
        match batches.last_mut() {
            Some(last) if !plan.auto && runs + own <= BLOCK => last.end = index + 1,
            _ => {
                batches.push(index..index + 1);
                runs = 0;
            }
        }
        runs += own;
    }
    batches
}

/// Some cells of a plan, and how far they are.
pub(crate) struct Batch<'a> {
    plan: &'a Plan,
    cells: Range<usize>,
    /// Repetitions of each cell.
    targets: Vec<u32>,
    /// Repetitions of each cell that are done, or in the steps so far.
    done: Vec<u32>,
    /// For how many rounds, up to now, the means of each cell have been known well enough.
    narrow: Vec<u32>,
    /// Repetitions that are done at once.
    step: u32,
}

/// The next repetitions of a batch. The seeds of all rows advance together, so that what an interruption leaves can be
/// compared.
pub(crate) struct Step<'a> {
    plan: &'a Plan,
    cells: Range<usize>,
    /// Repetitions of each cell.
    repetitions: Vec<Range<u32>>,
}

impl<'a> Batch<'a> {
    /// Opens the rows of the cells in `runs`.
    pub fn new(plan: &'a Plan, cells: Range<usize>, runs: &mut Runs) -> Self {
        let own = &plan.cells[cells.clone()];
        own.iter().for_each(|cell| cell.open(runs));
        let targets = own.iter().map(|cell| cell.first_target(plan.auto)).collect();
        let (done, narrow) = (vec![0; own.len()], vec![0; own.len()]);
        let rows: usize = own.iter().map(|cell| cell.rows.len()).sum();
        let step = (BLOCK / rows.max(1)).max(1) as u32;
        Self { plan, cells, targets, done, narrow, step }
    }

    /// The next step, unless all is done; `runs` has the runs of those before.
    pub fn next(&mut self, runs: &Runs) -> Option<Step<'a>> {
        if self.plan.auto {
            self.raise(runs);
        }
        let next = |(done, target): (&u32, &u32)| *done..(done + self.step).min(*target);
        let repetitions: Vec<Range<u32>> = self.done.iter().zip(&self.targets).map(next).collect();
        self.done = repetitions.iter().map(|repetitions| repetitions.end).collect();
        let is_done = repetitions.iter().all(Range::is_empty);
        (!is_done).then(|| Step { plan: self.plan, cells: self.cells.clone(), repetitions })
    }

    /// More repetitions for the cells whose means have not been known well enough in [`AUTO_CONFIRMED`] rounds one after the other. A
    /// single round would choose the seeds that happen to lie close together.
    fn raise(&mut self, runs: &Runs) {
        for (place, cell) in self.plan.cells[self.cells.clone()].iter().enumerate() {
            if !cell.random || self.done[place] < self.targets[place] {
                continue;
            }
            let is_known = cell.numbers().all(|number| is_narrow(&runs.row(number)));
            self.narrow[place] = if is_known { self.narrow[place] + 1 } else { 0 };
            if self.targets[place] < AUTO_LIMIT && self.narrow[place] < AUTO_CONFIRMED {
                self.targets[place] += AUTO_STEP;
            }
        }
    }
}

impl Step<'_> {
    /// The runs to make.
    pub fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (cell, repetitions) in self.cells.clone().zip(&self.repetitions) {
            let rows = self.plan.cells[cell].rows.len();
            for repetition in repetitions.clone() {
                tasks.extend((0..rows).map(|row| Task { cell, row, repetition }));
            }
        }
        tasks
    }

    /// Puts the outcomes of the tasks into `runs`, with ratios. Of a row, nothing is stored after a gap, which would be paired with a run
    /// of another seed.
    pub fn store(self, tasks: &[Task], outcomes: Vec<Option<RunRecord>>, runs: &mut Runs) -> io::Result<()> {
        let cells = &self.plan.cells[self.cells.clone()];
        let mut rows: Vec<CellRecords> = cells.iter().map(|cell| vec![Vec::new(); cell.rows.len()]).collect();
        for (task, outcome) in tasks.iter().zip(outcomes) {
            let cell = task.cell - self.cells.start;
            let Some(record) = outcome else { continue };
            let row = &mut rows[cell][task.row];
            if self.repetitions[cell].start as usize + row.len() == task.repetition as usize {
                row.push(record);
            }
        }
        for (cell, mut rows) in cells.iter().zip(rows) {
            fill_in_ratios(cell, &mut rows);
            for (number, row) in cell.numbers().zip(rows) {
                runs.extend(number, row)?;
            }
        }
        Ok(())
    }
}

impl CellPlan {
    /// The numbers of its rows in the plan.
    pub fn numbers(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows.len()
    }

    /// Opens its rows.
    fn open(&self, runs: &mut Runs) {
        let values = std::sync::Arc::new(self.values());
        for row in &self.rows {
            runs.open(&row.scheduler_label, &row.congestion_label, values.clone());
        }
    }
}
