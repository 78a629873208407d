//! CSV, for spreadsheets and data frames: one line a run.

use crate::runs_table::columns;
use anabranch_run::Results;

/// The runs as CSV; a run without a value leaves the field empty.
pub fn runs_csv(results: &Results) -> String {
    let columns = columns(results);
    let header = columns.iter().map(|column| column.name.clone()).collect();
    let record = |row| columns.iter().map(|column| column.cells.text(row)).collect();
    let records: Vec<Vec<String>> = std::iter::once(header).chain((0..results.runs.len()).map(record)).collect();
    lines(&records)
}

/// Records of one length as CSV.
pub fn lines(records: &[Vec<String>]) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    for record in records {
        // Records of one length into memory: nothing can fail.
        let _ = table.write_record(record);
    }
    String::from_utf8_lossy(&table.into_inner().unwrap_or_default()).into_owned()
}
