//! Cells that are run at once, step by step.

use crate::plan::{AUTO_CONFIRMED, AUTO_LIMIT, AUTO_STEP, CellPlan, Plan};
use crate::record::{CellRecords, RunRecord};
use crate::runs::{BLOCK, Runs};
use crate::summary::{fill_in_ratios, is_narrow};
use crate::twins::{Place, Twins, twin};
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
    twins: &'a Twins,
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
    /// Sources by cell and row: the row whose runs it copies, if any, and the repetitions that this one has.
    sources: Vec<Vec<Option<(Place, u32)>>>,
}

impl<'a> Batch<'a> {
    /// Opens the rows of the cells in `runs`.
    pub fn new(plan: &'a Plan, cells: Range<usize>, twins: &'a Twins, runs: &mut Runs) -> Self {
        let own = &plan.cells[cells.clone()];
        own.iter().for_each(|cell| cell.open(runs));
        let targets = own.iter().map(|cell| cell.first_target(plan.auto)).collect();
        let (done, narrow) = (vec![0; own.len()], vec![0; own.len()]);
        let rows: usize = own.iter().map(|cell| cell.rows.len()).sum();
        let step = (BLOCK / rows.max(1)).max(1) as u32;
        Self { plan, twins, cells, targets, done, narrow, step }
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
        let rows = |cell: usize| (0..self.plan.cells[cell].rows.len()).map(move |row| (cell, row));
        let of_cell = |cell| rows(cell).map(|row| self.source(row, runs)).collect();
        let sources = self.cells.clone().map(of_cell).collect();
        (!is_done).then(|| Step { plan: self.plan, cells: self.cells.clone(), repetitions, sources })
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

    /// The row whose runs `row` copies, and how many repetitions that has.
    fn source(&self, row: Place, runs: &Runs) -> Option<(Place, u32)> {
        if let Some(first) = self.twins.first(row, &(0..self.cells.start)) {
            return Some((first, runs.row(number(self.plan, first)).len() as u32));
        }
        let target = |(cell, _): Place| self.targets[cell - self.cells.start];
        let first = self.twins.first(row, &self.cells).filter(|first| target(*first) >= target(row))?;
        Some((first, target(row)))
    }
}

/// A row's number in the plan.
fn number(plan: &Plan, (cell, row): Place) -> usize {
    plan.cells[cell].first_row + row
}

impl Step<'_> {
    /// The runs to make: those that are not copied.
    pub fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (cell, (repetitions, sources)) in self.cells.clone().zip(self.repetitions.iter().zip(&self.sources)) {
            for repetition in repetitions.clone() {
                let is_own = |row: &usize| sources[*row].is_none_or(|(_, has)| repetition >= has);
                tasks.extend((0..sources.len()).filter(is_own).map(|row| Task { cell, row, repetition }));
            }
        }
        tasks
    }

    /// Puts the outcomes of the tasks into `runs`, with copies and ratios. Of a row, nothing is stored after a gap, which
    /// would be paired with a run of another seed; of a cell of which nothing was run, because a failure came before it,
    /// nothing at all.
    pub fn store(self, tasks: &[Task], outcomes: Vec<Option<RunRecord>>, runs: &mut Runs) -> io::Result<()> {
        let cells = &self.plan.cells[self.cells.clone()];
        let mut rows: Vec<CellRecords> = cells.iter().map(|cell| vec![Vec::new(); cell.rows.len()]).collect();
        let mut is_begun = vec![false; cells.len()];
        for (task, outcome) in tasks.iter().zip(outcomes) {
            let cell = task.cell - self.cells.start;
            let Some(record) = outcome else { continue };
            is_begun[cell] = true;
            let copied = self.copies((cell, task.row)).len();
            let row = &mut rows[cell][task.row];
            if self.repetitions[cell].start as usize + copied + row.len() == task.repetition as usize {
                row.push(record);
            }
        }
        for (index, cell) in cells.iter().enumerate().filter(|(index, _)| is_begun[*index]) {
            for place in 0..cell.rows.len() {
                let copied = self.copied((index, place), &rows, runs);
                let copied = copied.into_iter().map(|run| twin(run, cell, place)).collect::<Vec<_>>();
                rows[index][place].splice(..0, copied);
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

    /// The repetitions that a row copies. Its cell is counted from the batch's first.
    fn copies(&self, (cell, row): Place) -> Range<u32> {
        let Range { start, end } = self.repetitions[cell].clone();
        start..self.sources[cell][row].map_or(start, |(_, has)| has.clamp(start, end))
    }

    /// The runs that a row copies, from an earlier batch or from this step.
    fn copied(&self, place: Place, fresh: &[CellRecords], runs: &Runs) -> Vec<RunRecord> {
        let Some((first, _)) = self.sources[place.0][place.1] else { return Vec::new() };
        let copies = self.copies(place);
        match first.0.checked_sub(self.cells.start) {
            Some(cell) => fresh[cell][first.1].iter().take(copies.len()).cloned().collect(),
            None => runs.row(number(self.plan, first)).part(copies.start as usize..copies.end as usize),
        }
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
