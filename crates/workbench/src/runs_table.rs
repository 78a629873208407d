//! One row per run, column by column: what `runs.csv` and `runs.parquet` hold, and the outcomes that such columns were written from.

use anabranch_metrics::{METRICS, MetricRef};
use anabranch_run::{Results, RunOutcome, RunRecord, SweptKey};

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

/// Columns of every table of runs beside the cells' and the values'.
const OTHERS: [&str; 6] = ["scheduler", "congestion", "seed", "finished", "digest", "events"];

/// The names of those columns that have values; `names` are all columns.
pub fn value_names(names: &[String]) -> Vec<&str> {
    let is_key = |name: &str| names.iter().any(|other| other.strip_prefix("cell.") == Some(name));
    let is_value = |name: &&str| !OTHERS.contains(name) && !name.starts_with("cell.") && !is_key(name);
    names.iter().map(String::as_str).filter(is_value).collect()
}

/// The part of a table of runs that outcomes have; all columns have the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// Hash over the events of each run.
    pub digests: Vec<String>,
    /// Events of each run.
    pub events: Vec<u64>,
    /// Whether the transfer of each run ended.
    pub finished: Vec<bool>,
    /// Values of the columns of [`value_names`].
    pub values: Vec<(String, Vec<Option<f64>>)>,
}

impl Written {
    /// The outcomes, row by row; without curves, and without what a table does not hold. `None` if columns differ in length.
    pub fn outcomes(&self) -> Option<Vec<RunOutcome>> {
        let rows = self.digests.len();
        let lengths = [self.events.len(), self.finished.len()].into_iter();
        if lengths.chain(self.values.iter().map(|(_, cells)| cells.len())).any(|length| length != rows) {
            return None;
        }
        let mut values: Vec<_> = self.values.iter().map(|(name, cells)| (MetricRef::parse(name), cells)).collect();
        // A part whose first run lacks a metric has its column at the end.
        values.sort_by_key(|(name, _)| {
            METRICS.iter().position(|known| (known.per_path, known.name) == (name.path.is_some(), name.name))
        });
        let outcome = |row: usize| {
            let (digest, events, finished) = (self.digests[row].clone(), self.events[row], self.finished[row]);
            let mut outcome = RunOutcome { digest, events, finished, ..RunOutcome::default() };
            for (name, cells) in &values {
                let Some(value) = cells[row] else { continue };
                let of = name.path.map(|path| outcome.paths.entry(path.to_owned()).or_default());
                of.unwrap_or(&mut outcome.metrics).insert(name.name.to_owned(), value);
            }
            outcome
        };
        Some((0..rows).map(outcome).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::{Options, Plan, Runner, Serial, Variant, VirtualTime};
    use anabranch_scenario::Document;

    /// The columns have all parts of an outcome that results keep.
    #[test]
    fn columns_have_the_outcomes_that_they_were_written_from() {
        let text = "duration = '300ms'\nrepeat = 2\n[sweep]\n'path.zz.loss' = ['0%', '2%']\n\
            [[path]]\nname = 'zz'\nrate = '4mbit'\ndelay = '5ms'\nloss = '1%'\n\
            [[path]]\nname = 'a'\nrate = '2mbit'\ndelay = '9ms'\n";
        let document = Document::parse("test", text).expect("it is a scenario");
        let cells = document.cells.into_iter();
        let variants: Vec<Variant> =
            cells.map(|(cell, scenario)| Variant { cell, scenario: scenario.into() }).collect();
        let plan = Plan::new(&variants, &Options { causes: false, ..Options::default() });
        let results = Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap();
        let mut columns = Columns::of(&results).all();
        // A metric that only later runs have.
        let goodput = columns.iter().position(|column| column.name == "goodput_bps").expect("it is measured");
        let goodput = columns.remove(goodput);
        columns.push(goodput);
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        assert!(names.contains(&"path.zz.loss".to_owned()), "a swept key");
        let mut written = Written::default();
        for name in value_names(&names) {
            let column = columns.iter().find(|column| column.name == name).expect("it is one of them");
            let Cells::Real(cells) = &column.cells else { panic!("{name} has no values") };
            written.values.push((name.to_owned(), cells.clone()));
        }
        let runs: Vec<RunRecord> = results.runs.iter().collect();
        written.digests = runs.iter().map(|run| run.digest.clone()).collect();
        written.events = runs.iter().map(|run| run.events).collect();
        written.finished = runs.iter().map(|run| run.finished).collect();
        let outcomes = written.outcomes().expect("columns of one length");
        assert_eq!(outcomes.len(), runs.len());
        for (outcome, run) in outcomes.iter().zip(&runs) {
            assert_eq!((&outcome.metrics, &outcome.paths), (&run.metrics, &run.paths));
            assert!(outcome.metrics.keys().eq(run.metrics.keys()) && outcome.paths.keys().eq(run.paths.keys()));
            assert_eq!((&outcome.digest, outcome.events, outcome.finished), (&run.digest, run.events, run.finished));
        }
        written.events.pop();
        assert_eq!(written.outcomes(), None);
    }
}
