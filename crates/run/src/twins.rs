//! Baselines that a sweep does not change, which are run once.

use crate::job::Choice;
use crate::plan::{CellPlan, Plan};
use crate::record::RunRecord;
use std::collections::BTreeMap;
use std::ops::Range;

/// A row: its cell and its place in that.
pub(crate) type Place = (usize, usize);

/// The first row of the same outcomes, for each other one.
pub(crate) struct Twins(BTreeMap<Place, Place>);

impl Twins {
    /// The twins of the baselines; schedulers use every path, and so every key.
    pub fn of(plan: &Plan) -> Self {
        let mut first = BTreeMap::new();
        if plan.in_virtual_time() && plan.cells.len() > 1 {
            let mut known: BTreeMap<u128, Place> = BTreeMap::new();
            for (index, cell) in plan.cells.iter().enumerate() {
                let singles = cell.rows.iter().enumerate().filter(|(_, row)| matches!(row.choice, Choice::Single(_)));
                for (place, row) in singles {
                    let original = *known.entry(plan.job(cell, row, 0).identity()).or_insert((index, place));
                    if original != (index, place) {
                        first.insert((index, place), original);
                    }
                }
            }
        }
        Self(first)
    }

    /// The first row, if it is in one of these cells.
    pub fn first(&self, row: Place, cells: &Range<usize>) -> Option<Place> {
        self.0.get(&row).copied().filter(|(cell, _)| cells.contains(cell))
    }
}

/// The same run in the row at `place` of `cell`.
pub(crate) fn twin(run: RunRecord, cell: &CellPlan, place: usize) -> RunRecord {
    let labels = &cell.rows[place];
    let (scheduler, congestion) = (labels.scheduler_label.clone(), labels.congestion_label.clone());
    RunRecord { scheduler, congestion, cell: cell.values(), ..run }
}
