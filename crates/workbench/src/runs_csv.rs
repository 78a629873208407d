//! CSV, for spreadsheets and data frames: one line per run.

use crate::runs_table::{CHUNK, Columns};
use anabranch_report::csv_lines;
use anabranch_run::Results;
use std::io::{self, Write};

/// Writes the runs as CSV; a run without a value leaves the field empty.
///
/// # Errors
/// Those of `sink`.
pub fn write_runs_csv(results: &Results, sink: &mut dyn Write) -> io::Result<()> {
    let table = Columns::of(results);
    let header: Vec<String> = table.cells(&[]).into_iter().map(|column| column.name).collect();
    sink.write_all(csv_lines(&[header]).as_bytes())?;
    for runs in results.runs.chunks(CHUNK) {
        let columns = table.cells(&runs);
        let record = |row| columns.iter().map(|column| column.cells.text(row)).collect();
        sink.write_all(csv_lines(&(0..runs.len()).map(record).collect::<Vec<Vec<String>>>()).as_bytes())?;
    }
    Ok(())
}

/// The same as a text.
pub fn runs_csv(results: &Results) -> String {
    let mut text = Vec::new();
    // Into memory: nothing can fail.
    let _ = write_runs_csv(results, &mut text);
    String::from_utf8(text).unwrap_or_default()
}
