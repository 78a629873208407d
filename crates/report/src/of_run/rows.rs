//! Metrics over all rows.

use anabranch_run::ResultRow;

/// The metrics that any of `rows` has, in the order in which they first appear.
pub fn metrics<'a>(rows: &[ResultRow<'a>]) -> Vec<&'a str> {
    let mut all = Vec::new();
    for metric in rows.iter().flat_map(ResultRow::metrics) {
        if !all.contains(&metric) {
            all.push(metric);
        }
    }
    all
}

/// The greatest absolute mean of a metric.
pub fn greatest(rows: &[ResultRow<'_>], metric: &str) -> f64 {
    rows.iter().filter_map(|row| Some(row.get(metric)?.mean.abs())).fold(0.0, f64::max)
}

/// True if any row has the metric.
pub fn has(rows: &[ResultRow<'_>], metric: &str) -> bool {
    rows.iter().any(|row| row.get(metric).is_some())
}
