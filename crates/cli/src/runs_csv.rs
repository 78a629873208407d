//! CSV, for spreadsheets and data frames: one line per run.

use crate::runs_table::Columns;
use anabranch_report::csv_lines;
use anabranch_run::{Results, RunRecord};

/// Runs whose columns are held at once.
const CHUNK: usize = 4096;

/// The runs as CSV; a run without a value leaves the field empty.
pub fn runs_csv(results: &Results) -> String {
    let table = Columns::of(results);
    let header: Vec<String> = table.cells(&[]).into_iter().map(|column| column.name).collect();
    let lines = |runs: &[RunRecord]| {
        let columns = table.cells(runs);
        let record = |row| columns.iter().map(|column| column.cells.text(row)).collect();
        csv_lines(&(0..runs.len()).map(record).collect::<Vec<Vec<String>>>())
    };
    results.runs.chunks(CHUNK).fold(csv_lines(&[header]), |text, runs| text + &lines(runs))
}
