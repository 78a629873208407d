//! The runs of some results, column by column: in memory, or in a store that holds more than memory does.

mod row;
mod shape;
mod store;

pub use row::RunRow;
pub(crate) use store::BLOCK;
pub use store::Store;

use crate::live::Live;
use crate::record::{CellValues, RunRecord};
use anabranch_metrics::MetricRef;
use row::Row;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use shape::Shape;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, io};
use store::{Memory, Shelf};

/// Runs, row by row: scheduler × congestion control × cell. Values lie in a [`Store`], eight bytes each; what is read of them is
/// copied.
#[derive(Clone)]
pub struct Runs {
    rows: Vec<Row>,
    /// Number of runs of all rows.
    len: usize,
    /// Each once.
    shapes: Vec<Arc<Shape>>,
    shelf: Arc<Shelf>,
}

impl Default for Runs {
    /// In memory.
    fn default() -> Self {
        Self::new(Box::new(Memory::default()))
    }
}

impl Runs {
    /// None yet; their values will lie in `store`.
    pub fn new(store: Box<dyn Store>) -> Self {
        Self { rows: Vec::new(), len: 0, shapes: Vec::new(), shelf: Arc::new(Shelf::new(store)) }
    }

    /// Begins the next row.
    pub(crate) fn open(&mut self, scheduler: &str, congestion: &str, cell: Arc<CellValues>) {
        self.rows.push(Row::new(scheduler, congestion, cell));
    }

    /// Adds runs to the row with this number.
    ///
    /// # Errors
    /// The store has no room for them.
    pub(crate) fn extend(&mut self, row: usize, runs: Vec<RunRecord>) -> io::Result<()> {
        let mut shape = |run: &RunRecord| {
            let known = self.shapes.iter().rev().find(|shape| shape.fits(run)).cloned();
            known.unwrap_or_else(|| {
                let shape = Arc::new(Shape::of(run));
                self.shapes.push(shape.clone());
                shape
            })
        };
        let more = runs.len();
        self.rows[row].extend(runs, &mut shape, &self.shelf)?;
        self.len += more;
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this number.
    pub(crate) fn row(&self, row: usize) -> RunRow<'_> {
        RunRow::new(&self.rows[row], &self.shelf)
    }

    /// The rows that have runs, in order.
    pub fn rows(&self) -> impl Iterator<Item = RunRow<'_>> {
        self.rows.iter().filter(|row| row.len() > 0).map(|row| RunRow::new(row, &self.shelf))
    }

    /// Every run, in order: row by row, seed by seed.
    pub fn iter(&self) -> impl Iterator<Item = RunRecord> + '_ {
        self.rows.iter().flat_map(|row| row.steps(&self.shelf)).flatten()
    }

    /// All of them at once.
    pub fn to_vec(&self) -> Vec<RunRecord> {
        self.iter().collect()
    }

    /// The same, so many at a time, and the rest.
    pub fn chunks(&self, count: usize) -> impl Iterator<Item = Vec<RunRecord>> + '_ {
        let mut runs = self.iter();
        std::iter::from_fn(move || Some(runs.by_ref().take(count).collect::<Vec<_>>()).filter(|some| !some.is_empty()))
    }

    /// The names of all values that any run has, in the order in which runs first have them.
    pub fn names(&self) -> Vec<MetricRef<'_>> {
        row::distinct(self.rows.iter().flat_map(Row::shapes))
    }

    /// The seeds, each once, in order.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds: BTreeSet<u64> = self.rows().flat_map(|row| row.seeds()).collect();
        seeds.into_iter().collect()
    }

    /// How true each run in real time was, in order.
    pub fn lives(&self) -> impl Iterator<Item = &Live> {
        self.rows.iter().flat_map(Row::lives)
    }

    /// The first error of reading values, after which they are not those that were put there.
    ///
    /// # Errors
    /// It.
    pub fn check(&self) -> io::Result<()> {
        self.shelf.check()
    }
}

impl FromIterator<RunRecord> for Runs {
    fn from_iter<I: IntoIterator<Item = RunRecord>>(records: I) -> Self {
        let mut runs = Self::default();
        let mut waiting: Vec<RunRecord> = Vec::new();
        for record in records {
            let is_next = |last: &RunRecord| {
                (&last.scheduler, &last.congestion, &last.cell) == (&record.scheduler, &record.congestion, &record.cell)
            };
            if !waiting.last().is_some_and(is_next) {
                runs.add(&mut waiting);
                runs.open(&record.scheduler, &record.congestion, Arc::new(record.cell.clone()));
            } else if waiting.len() == BLOCK {
                runs.add(&mut waiting);
            }
            waiting.push(record);
        }
        runs.add(&mut waiting);
        runs
    }
}

impl Runs {
    /// Adds those that wait to the last row. Memory has room for them.
    fn add(&mut self, waiting: &mut Vec<RunRecord>) {
        if let Some(last) = self.rows.len().checked_sub(1) {
            let _ = self.extend(last, std::mem::take(waiting));
        }
    }
}

impl PartialEq for Runs {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Runs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Records;
        impl<'de> Visitor<'de> for Records {
            type Value = Runs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of runs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Runs, A::Error> {
                let mut failure = None;
                let next = || {
                    list.next_element::<RunRecord>().unwrap_or_else(|error| {
                        failure = Some(error);
                        None
                    })
                };
                let runs = std::iter::from_fn(next).collect();
                failure.map_or(Ok(runs), Err)
            }
        }
        deserializer.deserialize_seq(Records)
    }
}

#[cfg(test)]
mod tests;
