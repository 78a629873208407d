//! CSV, for spreadsheets and data frames: one line a run.

use anabranch_run::{Results, RunRecord};

/// The runs as CSV: names, seed, the cell as `cell.KEY`, `finished`, every value under its summary name, `digest`,
/// `events`. A column holds what any run has; a run without it leaves the field empty.
pub fn runs_csv(results: &Results) -> String {
    let cells = union(&results.runs, |run| run.cell.keys().cloned().collect());
    let values = union(&results.runs, |run| run.values().map(|(name, _)| name).collect());
    let fixed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut header = fixed(&["scheduler", "congestion", "seed"]);
    header.extend(cells.iter().map(|key| format!("cell.{key}")));
    header.push("finished".into());
    header.extend(values.iter().cloned());
    header.extend(fixed(&["digest", "events"]));
    let mut records = vec![header];
    for run in &results.runs {
        let mut record = vec![run.scheduler.clone(), run.congestion.clone(), run.seed.to_string()];
        record.extend(cells.iter().map(|key| run.cell.get(key).cloned().unwrap_or_default()));
        record.push(run.finished.to_string());
        let own: Vec<(String, f64)> = run.values().collect();
        let field = |name: &String| own.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_string());
        record.extend(values.iter().map(|name| field(name).unwrap_or_default()));
        record.extend([run.digest.clone(), run.events.to_string()]);
        records.push(record);
    }
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

/// The names that any run has, in the order in which they first appear.
fn union(runs: &[RunRecord], names: impl Fn(&RunRecord) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in runs.iter().flat_map(names) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}
