//! One row per run, column by column: what `runs.csv` and `runs.parquet` hold.

use anabranch_run::{Results, RunRecord, SweptKey};

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
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
}

/// The runs: names, seed, the cell as `cell.KEY` and, where it is a number, as KEY in SI units, `finished`, every value under its summary name, `digest`, `events`. A column
/// holds what any run has.
pub fn columns(results: &Results) -> Vec<Column> {
    let runs = &results.runs;
    let column = |name: &str, cells| Column { name: name.to_owned(), cells };
    let text = |of: fn(&RunRecord) -> &String| Cells::Text(runs.iter().map(|run| Some(of(run).clone())).collect());
    let whole = |of: fn(&RunRecord) -> u64| Cells::Whole(runs.iter().map(of).collect());
    let mut columns = vec![
        column("scheduler", text(|run| &run.scheduler)),
        column("congestion", text(|run| &run.congestion)),
        column("seed", whole(|run| run.seed)),
    ];
    for key in union(runs, |run| run.cell.keys().cloned().collect()) {
        let texts: Vec<Option<String>> = runs.iter().map(|run| run.cell.get(&key).cloned()).collect();
        let numbers = |swept: &SweptKey| {
            Cells::Real(texts.iter().map(|text| swept.values.get(text.as_ref()?).copied()).collect())
        };
        let numbers = results.sweep.get(&key).map(numbers);
        columns.push(Column { name: format!("cell.{key}"), cells: Cells::Text(texts) });
        columns.extend(numbers.map(|cells| Column { name: key, cells }));
    }
    columns.push(column("finished", Cells::Truth(runs.iter().map(|run| run.finished).collect())));
    let values: Vec<Vec<(String, f64)>> = runs.iter().map(|run| run.values().collect()).collect();
    for name in union(&values, |own| own.iter().map(|(name, _)| name.clone()).collect()) {
        let of = |own: &Vec<(String, f64)>| own.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let cells = Cells::Real(values.iter().map(of).collect());
        columns.push(Column { name, cells });
    }
    columns.push(column("digest", text(|run| &run.digest)));
    columns.push(column("events", whole(|run| run.events)));
    columns
}

/// The names that any of `all` has, in the order in which they first appear.
fn union<T>(all: &[T], names: impl Fn(&T) -> Vec<String>) -> Vec<String> {
    let mut union: Vec<String> = Vec::new();
    for name in all.iter().flat_map(names) {
        if !union.contains(&name) {
            union.push(name);
        }
    }
    union
}
