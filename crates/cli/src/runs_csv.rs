//! One line a run, for spreadsheets.

use crate::runs_table::columns;
use anabranch_run::Results;

/// The runs as CSV; a run without a value leaves the field empty.
pub fn runs_csv(results: &Results) -> String {
    let columns = columns(results);
    let mut table = csv::Writer::from_writer(Vec::new());
    // Records of one length into memory: nothing can fail.
    let _ = table.write_record(columns.iter().map(|column| &column.name));
    for row in 0..results.runs.len() {
        let _ = table.write_record(columns.iter().map(|column| column.cells.text(row)));
    }
    String::from_utf8_lossy(&table.into_inner().unwrap_or_default()).into_owned()
}
