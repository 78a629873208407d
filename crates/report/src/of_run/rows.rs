//! Metrics over all rows.

use anabranch_metrics::MetricInfo;
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

/// The main metric of all rows together.
pub fn main_metric<'r>(rows: impl IntoIterator<Item = &'r ResultRow<'r>> + Clone) -> &'static MetricInfo {
    anabranch_metrics::main_metric(|metric| rows.clone().into_iter().any(|row| row.get(metric).is_some()))
}
