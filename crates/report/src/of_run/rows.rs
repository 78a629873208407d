//! Metrics over all rows.

use crate::quantity::of_application;
use anabranch_metrics::{MetricInfo, MetricRef};
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

/// A main metric of rows: of one of several applications, or of the connection.
#[derive(Clone, Debug)]
pub struct Main {
    /// Name in results.
    pub name: String,
    /// Entry in the table of metrics.
    pub info: &'static MetricInfo,
}

impl From<&'static MetricInfo> for Main {
    fn from(info: &'static MetricInfo) -> Self {
        Self { name: info.name.to_owned(), info }
    }
}

impl Main {
    /// All main metrics of the rows.
    pub fn all<'r>(rows: impl IntoIterator<Item = &'r ResultRow<'r>>) -> Vec<Self> {
        let mut names: Vec<&str> = Vec::new();
        for name in rows.into_iter().flat_map(ResultRow::metrics) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let all = anabranch_metrics::main_metrics(names);
        all.into_iter().map(|(name, info)| Self { name, info }).collect()
    }

    /// The application, if it is of one.
    pub fn application(&self) -> Option<&str> {
        MetricRef::parse(&self.name).application().map(|(application, _)| application)
    }

    /// `goodput`, or `late frames per minute of call`.
    pub fn label(&self) -> String {
        self.info.label.to_owned() + &self.application().map(of_application).unwrap_or_default()
    }
}
