//! The runs of an item, by row, cell and seed.

use crate::assessment::NoValue;
use crate::claim::{RATIO, Side};
use crate::item_row::ItemRow;
use anabranch_run::{Ask, CellValues, RunRecord};

/// The runs of one part of an item, asked by the item's own names of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples<'a> {
    runs: &'a [RunRecord],
    /// The item's rows, and those that replace them.
    rows: &'a [ItemRow],
    instead: &'a [ItemRow],
}

impl<'a> Samples<'a> {
    /// `instead` is empty, or has one row for each of `rows`.
    pub fn new(runs: &'a [RunRecord], rows: &'a [ItemRow], instead: &'a [ItemRow]) -> Self {
        Self { runs, rows, instead }
    }

    /// The row `name` of the item, or the one in its place.
    fn row(&self, name: &str) -> Option<&'a ItemRow> {
        let place = self.rows.iter().position(|row| row.name == name)?;
        self.instead.get(place).or(self.rows.get(place))
    }

    /// Name of the row in the item.
    pub fn name<'b>(&self, name: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.row(name).map_or(name, |row| &row.name)
    }

    /// Name of the row in results.
    fn label(&self, name: &str) -> String {
        self.row(name).map_or_else(|| name.to_owned(), ItemRow::label)
    }

    /// The cells that have all values of `at`, in the order of the runs.
    fn cells(&self, at: &[(String, String)]) -> Vec<&'a CellValues> {
        let mut cells: Vec<&CellValues> = Vec::new();
        for run in self.runs {
            let fits = at.iter().all(|(key, value)| run.cell.get(key) == Some(value));
            if fits && !cells.contains(&&run.cell) {
                cells.push(&run.cell);
            }
        }
        cells
    }

    /// `(seed, value)` of each run of a row in a cell that has the metric.
    fn values(&self, row: &'a str, cell: &CellValues, metric: &str) -> Vec<(u64, f64)> {
        let label = self.label(row);
        let runs = self.runs.iter().filter(|run| run.scheduler == label && run.cell == *cell);
        runs.filter_map(|run| Some((run.seed, value(run, metric)?))).collect()
    }

    /// One value per seed, as a multiple of the side's `per` where there is one.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(&self, side: &'a Side, metric: &str, at: &[(String, String)]) -> Result<Vec<(u64, f64)>, NoValue> {
        let values = self.absolute(side, metric, at)?;
        let Some(per) = &side.per else { return Ok(values) };
        let base = self.of(per, metric, at)?;
        let ratio = |(seed, value): (u64, f64)| {
            let (_, base) = base.iter().find(|(own, base)| *own == seed && *base != 0.0)?;
            Some((seed, value / base))
        };
        Ok(values.into_iter().filter_map(ratio).collect())
    }

    /// The curve `NAME` or `NAME[20s..40s]` of each run of a row in a cell.
    ///
    /// # Errors
    /// Why there is none.
    pub fn curves(&self, side: &'a Side, name: &str, at: &[(String, String)]) -> Result<Vec<Stretch>, NoValue> {
        let (cell, label) = (self.cell(side, at)?, self.label(&side.row));
        let runs = self.runs.iter().filter(|run| run.scheduler == label && run.cell == *cell);
        let curves: Vec<Stretch> = runs.filter_map(|run| stretch(run, name)).collect();
        if curves.is_empty() { Err(format!("no run of {label} has the curve {name}").into()) } else { Ok(curves) }
    }

    /// The cells of a side.
    pub fn cells_of(&self, side: &Side, at: &[(String, String)]) -> Vec<&'a CellValues> {
        self.cells(&side.place(at))
    }

    /// The one cell of a side.
    fn cell(&self, side: &Side, at: &[(String, String)]) -> Result<&'a CellValues, NoValue> {
        match self.cells_of(side, at)[..] {
            [cell] => Ok(cell),
            [] => Err(NoValue::NotRun),
            ref cells => Err(format!("{} cells are meant, not one", cells.len()).into()),
        }
    }

    fn absolute(&self, side: &'a Side, metric: &str, at: &[(String, String)]) -> Result<Vec<(u64, f64)>, NoValue> {
        let metric = side.metric.as_deref().unwrap_or(metric);
        let cell = self.cell(side, at)?;
        let values = self.values(&side.row, cell, metric);
        if values.is_empty() {
            Err(format!("no run of {} has {metric}", self.label(&side.row)).into())
        } else {
            Ok(values)
        }
    }

    /// One entry per row, with one value for each seed that all rows have in all cells of `at`: the row's part of the mean of
    /// all rows, averaged over the cells.
    ///
    /// # Errors
    /// Why there is none.
    pub fn scores(&self, rows: &'a [String], metric: &str, at: &[(String, String)]) -> Result<Vec<Vec<f64>>, NoValue> {
        let cells = self.cells(at);
        if cells.is_empty() {
            return Err(NoValue::NotRun);
        }
        let mut scores: Vec<(u64, Vec<f64>, usize)> = Vec::new();
        for cell in &cells {
            let columns: Vec<Vec<(u64, f64)>> = rows.iter().map(|row| self.values(row, cell, metric)).collect();
            for &(seed, _) in &columns[0] {
                let of_seed =
                    |column: &Vec<(u64, f64)>| column.iter().find(|(s, _)| *s == seed).map(|(_, value)| *value);
                let Some(values) = columns.iter().map(of_seed).collect::<Option<Vec<f64>>>() else { continue };
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let shares = values.iter().map(|value| if mean == 0.0 { 1.0 } else { value / mean });
                match scores.iter_mut().find(|(s, ..)| *s == seed) {
                    Some((_, sums, count)) => {
                        sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                        *count += 1;
                    }
                    None => scores.push((seed, shares.collect(), 1)),
                }
            }
        }
        // A seed that lacks a cell would be scored by other conditions.
        scores.retain(|(_, _, count)| *count == cells.len());
        let means = |(_, sums, count): (u64, Vec<f64>, usize)| sums.iter().map(|sum| sum / count as f64).collect();
        let of_seeds: Vec<Vec<f64>> = scores.into_iter().map(means).collect();
        let scores: Vec<Vec<f64>> =
            (0..rows.len()).map(|row| of_seeds.iter().map(|scores| scores[row]).collect()).collect();
        if of_seeds.is_empty() { Err(format!("no seed has {metric} in every row and cell").into()) } else { Ok(scores) }
    }
}

/// A curve within a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// From one value to the next.
    pub step: f64,
    /// The values.
    pub values: Vec<f64>,
}

fn stretch(run: &RunRecord, name: &str) -> Option<Stretch> {
    let (name, from, to) = match name.parse() {
        Ok(Ask::Window { curve, from, to }) => (curve, from.as_secs_f64(), to.as_secs_f64()),
        _ => (name.to_owned(), f64::NEG_INFINITY, f64::INFINITY),
    };
    let curve = run.curves.get(&name)?;
    let inside = |(n, value): (usize, &Option<f64>)| {
        let x = curve.start + n as f64 * curve.step;
        value.filter(|_| x >= from && x < to)
    };
    Some(Stretch { step: curve.step, values: curve.values.iter().enumerate().filter_map(inside).collect() })
}

/// A metric of a run, or how many times another it is, if that is not zero.
fn value(run: &RunRecord, metric: &str) -> Option<f64> {
    match metric.split_once(RATIO) {
        Some((of, to)) => Some(run.value(of)? / run.value(to).filter(|value| *value != 0.0)?),
        None => run.value(metric),
    }
}
