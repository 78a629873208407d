//! One row per run, column by column: what `runs.csv` and `runs.parquet` hold.

use anabranch_metrics::MetricRef;
use anabranch_run::{Results, RunRecord, SweptKey};

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// One cell per run.
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Words; absent where a run has none.
    Text(Vec<Option<String>>),
    /// Counts.
    Whole(Vec<u64>),
    /// Measured values; absent where one does not apply to a run.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Truth(Vec<bool>),
}

impl Cells {
    /// A cell as CSV has it; empty if absent.
    pub fn text(&self, row: usize) -> String {
        match self {
            Self::Text(cells) => cells[row].clone().unwrap_or_default(),
            Self::Whole(cells) => cells[row].to_string(),
            Self::Real(cells) => cells[row].map(|value| value.to_string()).unwrap_or_default(),
            Self::Truth(cells) => cells[row].to_string(),
        }
    }

    /// Adds the cells of further rows, which are of the same kind.
    fn extend(&mut self, more: Self) {
        match (self, more) {
            (Self::Text(cells), Self::Text(more)) => cells.extend(more),
            (Self::Whole(cells), Self::Whole(more)) => cells.extend(more),
            (Self::Real(cells), Self::Real(more)) => cells.extend(more),
            (Self::Truth(cells), Self::Truth(more)) => cells.extend(more),
            (_, more) => debug_assert!(false, "a column is of one kind: {more:?}"),
        }
    }
}

/// Runs whose columns are made at once.
pub const CHUNK: usize = 4096;

/// The columns that the runs of some results have.
pub struct Columns<'r> {
    results: &'r Results,
    /// Swept keys.
    keys: Vec<&'r String>,
    /// Values, by their summary names.
    values: Vec<MetricRef<'r>>,
}

impl<'r> Columns<'r> {
    /// The columns of `results`: each holds a value that any run has.
    pub fn of(results: &'r Results) -> Self {
        let mut keys: Vec<&String> = Vec::new();
        for key in results.runs.rows().flat_map(|row| row.cell().keys()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Self { results, keys, values: results.runs.names() }
    }

    /// The columns of all runs.
    pub fn all(&self) -> Vec<Column> {
        let mut columns = self.cells(&[]);
        for runs in self.results.runs.chunks(CHUNK) {
            columns.iter_mut().zip(self.cells(&runs)).for_each(|(column, more)| column.cells.extend(more.cells));
        }
        columns
    }

    /// The columns of `runs`, some of the results: names, seed, the cell as `cell.KEY` and, where it is a number, as KEY in SI
    /// units, `finished`, every value under its summary name, `digest`, `events`.
    pub fn cells(&self, runs: &[RunRecord]) -> Vec<Column> {
        let column = |name: &str, cells| Column { name: name.to_owned(), cells };
        let text = |of: fn(&RunRecord) -> &String| Cells::Text(runs.iter().map(|run| Some(of(run).clone())).collect());
        let whole = |of: fn(&RunRecord) -> u64| Cells::Whole(runs.iter().map(of).collect());
        let mut columns = vec![
            column("scheduler", text(|run| &run.scheduler)),
            column("congestion", text(|run| &run.congestion)),
            column("seed", whole(|run| run.seed)),
        ];
        for key in &self.keys {
            let texts: Vec<Option<String>> = runs.iter().map(|run| run.cell.get(*key).cloned()).collect();
            let numbers = |swept: &SweptKey| {
                Cells::Real(texts.iter().map(|text| swept.values.get(text.as_ref()?).copied()).collect())
            };
            // A swept seed is a column already.
            let numbers = self.results.sweep.get(*key).filter(|_| *key != "seed").map(numbers);
            columns.push(Column { name: format!("cell.{key}"), cells: Cells::Text(texts) });
            columns.extend(numbers.map(|cells| column(key, cells)));
        }
        columns.push(column("finished", Cells::Truth(runs.iter().map(|run| run.finished).collect())));
        columns.extend(self.values.iter().map(|value| {
            let cells = Cells::Real(runs.iter().map(|run| run.get(*value)).collect());
            Column { name: value.to_string(), cells }
        }));
        columns.push(column("digest", text(|run| &run.digest)));
        columns.push(column("events", whole(|run| run.events)));
        columns
    }
}
