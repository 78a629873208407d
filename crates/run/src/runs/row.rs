//! The runs of one row.

use super::shape::Shape;
use super::store::{BLOCK, Shelf};
use crate::curves::Curves;
use crate::live::Live;
use crate::record::{CellValues, RunRecord};
use crate::values::Values;
use anabranch_metrics::MetricRef;
use indexmap::IndexSet;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A row of [`super::Runs`].
#[derive(Clone)]
pub(super) struct Row {
    scheduler: Arc<str>,
    congestion: Arc<str>,
    cell: Arc<CellValues>,
    len: usize,
    blocks: Vec<Block>,
    /// Rarely present values, by number of the run.
    asides: BTreeMap<usize, Arc<Aside>>,
}

/// Runs of one shape that came together: a column after the other in the store, those of [`Own`] first.
#[derive(Clone)]
struct Block {
    place: u64,
    runs: usize,
    shape: Arc<Shape>,
    /// The number of the first run that came with it; runs of other shapes may have come with it too, at most [`BLOCK`] in all.
    came: usize,
}

/// The columns that every block has.
#[derive(Clone, Copy)]
enum Own {
    /// The number of the run in its row.
    Number,
    Seed,
    Events,
    Finished,
    /// The digest's upper half.
    Upper,
    Lower,
}

impl Own {
    const COUNT: usize = Self::Lower as usize + 1;
}

/// Parts of a run that are no numbers, or that few runs have.
#[derive(PartialEq)]
struct Aside {
    /// One that is not the number that it is written as.
    digest: Option<String>,
    curves: Curves,
    live: Option<Live>,
}

impl Aside {
    /// The rarely present values of `run`, if it has any.
    fn of(run: &mut RunRecord) -> Option<Arc<Self>> {
        let digest = Some(&run.digest).filter(|digest| hexadecimal(number(digest)) != **digest).cloned();
        let aside = Self { digest, curves: std::mem::take(&mut run.curves), live: run.live.take() };
        let is_empty = aside.digest.is_none() && aside.curves.is_empty() && aside.live.is_none();
        (!is_empty).then(|| Arc::new(aside))
    }
}

/// The number that a digest writes; 0 if it writes none.
fn number(digest: &str) -> u128 {
    u128::from_str_radix(digest, 16).unwrap_or(0)
}

fn hexadecimal(digest: u128) -> String {
    format!("{digest:032x}")
}

impl Row {
    pub fn new(scheduler: &str, congestion: &str, cell: Arc<CellValues>) -> Self {
        let (scheduler, congestion) = (scheduler.into(), congestion.into());
        Self { scheduler, congestion, cell, len: 0, blocks: Vec::new(), asides: BTreeMap::new() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// In the order in which runs first have them.
    pub fn shapes(&self) -> impl Iterator<Item = &Arc<Shape>> {
        self.blocks.iter().map(|block| &block.shape)
    }

    pub fn lives(&self) -> impl Iterator<Item = &Live> {
        self.asides.values().filter_map(|aside| aside.live.as_ref())
    }

    /// Adds runs, whose shapes `shape` finds.
    pub fn extend(
        &mut self,
        mut runs: Vec<RunRecord>,
        shape: &mut dyn FnMut(&RunRecord) -> Arc<Shape>,
        shelf: &Shelf,
    ) -> io::Result<()> {
        debug_assert!(runs.len() <= BLOCK, "`part` finds blocks by it");
        let came = self.len;
        let (mut asides, mut blocks) = (Vec::new(), Vec::new());
        let mut shaped: Vec<(Arc<Shape>, Vec<usize>)> = Vec::new();
        for (index, run) in runs.iter_mut().enumerate() {
            asides.extend(Aside::of(run).map(|aside| (came + index, aside)));
            let known = shaped.iter().position(|(shape, _)| shape.fits(run));
            let place = known.unwrap_or_else(|| {
                shaped.push((shape(run), Vec::new()));
                shaped.len() - 1
            });
            shaped[place].1.push(index);
        }
        for (shape, members) in shaped {
            let members: Vec<(usize, &RunRecord)> = members.iter().map(|&index| (came + index, &runs[index])).collect();
            let place = shelf.store.put(columns(&members, &shape))?;
            blocks.push(Block { place, runs: members.len(), shape, came });
        }
        // All of them, or none.
        self.asides.extend(asides);
        self.blocks.extend(blocks);
        self.len += runs.len();
        Ok(())
    }

    /// The runs, those that came together at a time.
    pub fn steps<'a>(&'a self, shelf: &'a Shelf) -> impl Iterator<Item = Vec<RunRecord>> + 'a {
        let together = self.blocks.chunk_by(|a, b| a.came == b.came);
        together.map(move |blocks| {
            let mut runs: Vec<(usize, RunRecord)> = blocks.iter().flat_map(|block| self.read(block, shelf)).collect();
            runs.sort_by_key(|(number, _)| *number);
            runs.into_iter().map(|(_, run)| run).collect()
        })
    }

    /// The digest of the run with this number, whose halves the store has.
    fn digest(&self, number: usize, (upper, lower): (u64, u64)) -> String {
        let aside = self.asides.get(&number).and_then(|aside| aside.digest.clone());
        aside.unwrap_or_else(|| hexadecimal(u128::from(upper) << 64 | u128::from(lower)))
    }

    /// The runs of a block with their numbers.
    fn read(&self, block: &Block, shelf: &Shelf) -> Vec<(usize, RunRecord)> {
        let words = words(&shelf.get(block.place, block.bytes()));
        let word = |column: usize, run: usize| words[column * block.runs + run];
        let record = |run: usize| {
            let own = |column: Own| word(column as usize, run);
            let number = own(Own::Number) as usize;
            let values = (Own::COUNT..Own::COUNT + block.shape.len()).map(|column| f64::from_bits(word(column, run)));
            let (metrics, paths) = block.shape.values(values);
            let aside = self.asides.get(&number);
            let record = RunRecord {
                scheduler: self.scheduler.as_ref().to_owned(),
                congestion: self.congestion.as_ref().to_owned(),
                seed: own(Own::Seed),
                cell: (*self.cell).clone(),
                finished: own(Own::Finished) != 0,
                metrics,
                paths,
                digest: self.digest(number, (own(Own::Upper), own(Own::Lower))),
                events: own(Own::Events),
                curves: aside.map(|aside| aside.curves.clone()).unwrap_or_default(),
                live: aside.and_then(|aside| aside.live.clone()),
            };
            (number, record)
        };
        (0..block.runs).map(record).collect()
    }
}

impl Block {
    fn bytes(&self) -> usize {
        (Own::COUNT + self.shape.len()) * self.runs * 8
    }

    /// A column, without the others.
    fn column(&self, column: usize, shelf: &Shelf) -> Vec<u64> {
        words(&shelf.get(self.place + (column * self.runs * 8) as u64, self.runs * 8))
    }
}

/// Runs of one shape with their numbers, column after column.
fn columns(runs: &[(usize, &RunRecord)], shape: &Shape) -> Vec<u8> {
    let mut words = vec![0; (Own::COUNT + shape.len()) * runs.len()];
    for (index, (place, run)) in runs.iter().enumerate() {
        let mut set = |column: usize, word: u64| words[column * runs.len() + index] = word;
        let digest = number(&run.digest);
        set(Own::Number as usize, *place as u64);
        set(Own::Seed as usize, run.seed);
        set(Own::Events as usize, run.events);
        set(Own::Finished as usize, run.finished.into());
        set(Own::Upper as usize, (digest >> 64) as u64);
        set(Own::Lower as usize, digest as u64);
        let values = [&run.metrics].into_iter().chain(run.paths.values()).flat_map(Values::iter);
        (Own::COUNT..).zip(values).for_each(|(column, (_, value))| set(column, value.to_bits()));
    }
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The runs of one row, read column by column.
#[derive(Clone, Copy)]
pub struct RunRow<'a> {
    row: &'a Row,
    shelf: &'a Shelf,
}

impl<'a> RunRow<'a> {
    pub(super) fn new(row: &'a Row, shelf: &'a Shelf) -> Self {
        Self { row, shelf }
    }

    /// As in [`RunRecord`].
    pub fn scheduler(&self) -> &'a Arc<str> {
        &self.row.scheduler
    }

    /// As in [`RunRecord`].
    pub fn congestion(&self) -> &'a Arc<str> {
        &self.row.congestion
    }

    /// As in [`RunRecord`].
    pub fn cell(&self) -> &'a Arc<CellValues> {
        &self.row.cell
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.row.len
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of all values that any run has, in the order in which runs first have them.
    pub fn names(&self) -> Vec<MetricRef<'a>> {
        distinct(self.row.shapes())
    }

    /// A value of each run, in order; `None` where it does not apply.
    pub fn values(&self, name: MetricRef<'_>) -> Vec<Option<f64>> {
        let mut values = vec![None; self.len()];
        for block in &self.row.blocks {
            let Some(place) = block.shape.place(name) else { continue };
            let column = block.column(Own::COUNT + place, self.shelf);
            for (number, word) in block.column(Own::Number as usize, self.shelf).into_iter().zip(column) {
                values[number as usize] = Some(f64::from_bits(word));
            }
        }
        values
    }

    /// The same of a metric of the connection.
    pub fn metric(&self, name: &str) -> Vec<Option<f64>> {
        self.values(MetricRef { path: None, name })
    }

    /// The seed of each run.
    pub fn seeds(&self) -> Vec<u64> {
        self.own(Own::Seed)
    }

    /// Whether each run finished its transfer.
    pub fn finished(&self) -> Vec<bool> {
        self.own(Own::Finished).into_iter().map(|finished| finished != 0).collect()
    }

    /// The digest of each run.
    pub fn digests(&self) -> Vec<String> {
        let halves = self.own(Own::Upper).into_iter().zip(self.own(Own::Lower));
        halves.enumerate().map(|(number, halves)| self.row.digest(number, halves)).collect()
    }

    /// The runs.
    pub fn records(&self) -> impl Iterator<Item = RunRecord> + 'a {
        self.row.steps(self.shelf).flatten()
    }

    fn own(&self, column: Own) -> Vec<u64> {
        let mut all = vec![0; self.len()];
        for block in &self.row.blocks {
            let numbers = block.column(Own::Number as usize, self.shelf);
            let words = block.column(column as usize, self.shelf);
            numbers.into_iter().zip(words).for_each(|(number, word)| all[number as usize] = word);
        }
        all
    }
}

/// The names of some shapes, each once.
pub(super) fn distinct<'a>(shapes: impl Iterator<Item = &'a Arc<Shape>>) -> Vec<MetricRef<'a>> {
    let (mut seen, mut names): (Vec<&Arc<Shape>>, IndexSet<MetricRef<'_>>) = Default::default();
    for shape in shapes {
        if seen.iter().any(|known| Arc::ptr_eq(known, shape)) {
            continue;
        }
        seen.push(shape);
        names.extend(shape.names());
    }
    names.into_iter().collect()
}
