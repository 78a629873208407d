//! Baselines that a sweep does not change, which are run once.

use crate::job::Choice;
use crate::plan::Plan;
use crate::results::RunRecord;
use crate::runner::CellRecords;
use std::collections::BTreeMap;
use std::ops::Range;

/// A row: its cell and its place in that.
type Place = (usize, usize);

/// Rows of several cells that have the same outcomes.
pub(crate) struct Twins {
    /// The first row of the same outcomes, for each other one.
    first: BTreeMap<Place, Place>,
    /// The runs of first rows whose twins are still to come, with the last cell of these.
    kept: BTreeMap<Place, (usize, Vec<RunRecord>)>,
}

impl Twins {
    /// Of the baselines; schedulers use every path, and so every key.
    pub fn of(plan: &Plan) -> Self {
        let (mut first, mut kept) = (BTreeMap::new(), BTreeMap::new());
        if plan.in_virtual_time() && plan.cells.len() > 1 {
            let mut known: BTreeMap<u128, Place> = BTreeMap::new();
            for (index, cell) in plan.cells.iter().enumerate() {
                for (place, row) in
                    cell.rows.iter().enumerate().filter(|(_, row)| matches!(row.choice, Choice::Single(_)))
                {
                    let original = *known.entry(plan.job(cell, row, 0).identity()).or_insert((index, place));
                    if original != (index, place) {
                        first.insert((index, place), original);
                        kept.entry(original).or_insert((index, Vec::new())).0 = index;
                    }
                }
            }
        }
        Self { first, kept }
    }

    /// True if all runs of a row of a batch, whose cells have these numbers of repetitions, are copied from one of the same
    /// batch.
    pub fn waits(&self, batch: &Range<usize>, targets: &[u32], (cell, row): Place) -> bool {
        let first = self.first.get(&(cell, row)).map(|(first, _)| *first).filter(|first| batch.contains(first));
        first.is_some_and(|first| targets[first - batch.start] >= targets[cell - batch.start])
    }

    /// Gives the rows of a batch the runs of their twins, up to the cell's target each. A cell of which nothing was run, because
    /// a failure came before it, gets none from its own batch.
    pub fn copy(&self, plan: &Plan, batch: &Range<usize>, records: &mut [CellRecords], targets: &[u32]) {
        for ((cell, rows), target) in batch.clone().zip(records).zip(targets) {
            let is_begun = rows.iter().any(|row| !row.is_empty());
            for (place, row) in rows.iter_mut().enumerate() {
                let Some(first) = self.first.get(&(cell, place)) else { continue };
                let Some((_, runs)) = self.kept.get(first).filter(|_| is_begun || !batch.contains(&first.0)) else {
                    continue;
                };
                let labels = &plan.cells[cell].rows[place];
                row.extend(runs.iter().take(*target as usize).skip(row.len()).map(|run| RunRecord {
                    scheduler: labels.scheduler_label.clone(),
                    congestion: labels.congestion_label.clone(),
                    cell: plan.cells[cell].values(),
                    ..run.clone()
                }));
            }
        }
    }

    /// Keeps the runs of a batch that later rows need, and forgets those that none needs any more.
    pub fn keep(&mut self, begin: usize, records: &[CellRecords]) {
        let end = begin + records.len();
        for ((cell, row), (_, runs)) in self.kept.iter_mut().filter(|((cell, _), _)| (begin..end).contains(cell)) {
            runs.clone_from(&records[cell - begin][*row]);
        }
        self.kept.retain(|_, (last, _)| *last >= begin);
    }
}
