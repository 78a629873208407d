//! CSV, for spreadsheets and data frames: one line per run.

use crate::runs_table::columns;
use anabranch_report::csv_lines;
use anabranch_run::Results;

/// The runs as CSV; a run without a value leaves the field empty.
pub fn runs_csv(results: &Results) -> String {
    let columns = columns(results);
    let header = columns.iter().map(|column| column.name.clone()).collect();
    let record = |row| columns.iter().map(|column| column.cells.text(row)).collect();
    let records: Vec<Vec<String>> = std::iter::once(header).chain((0..results.runs.len()).map(record)).collect();
    csv_lines(&records)
}
