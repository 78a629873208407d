//! A run as results have it.

use crate::curves::Curves;
use crate::job::RunOutcome;
use crate::live::Live;
use crate::values::Values;
use anabranch_metrics::MetricRef;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The keys of a sweep that vary, with their values as written.
pub type CellValues = IndexMap<String, String>;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Canonical name with its suffix, or `single:PATH`.
    pub scheduler: String,
    /// Canonical name.
    pub congestion: String,
    /// Seed of this repetition.
    pub seed: u64,
    /// The sweep's cell.
    pub cell: CellValues,
    /// False if a sized transfer did not end within the duration.
    pub finished: bool,
    /// Metrics of the connection.
    pub metrics: Values,
    /// Metrics of each path used.
    pub paths: IndexMap<String, Values>,
    /// Hash over the run's events.
    pub digest: String,
    /// Events handled.
    pub events: u64,
    /// Values over time and distributions, by name; empty unless requested.
    #[serde(default)]
    pub curves: Curves,
    /// Facts of a run in real time: how true it was, and what kernels counted. Null in virtual time.
    #[serde(default)]
    pub live: Option<Live>,
}

/// A cell's runs: those of each row, by repetition.
pub type CellRecords = Vec<Vec<RunRecord>>;

impl RunRecord {
    /// Names an outcome. Values that JSON cannot write (not finite) are left out.
    pub fn new(scheduler: &str, congestion: &str, seed: u64, cell: CellValues, outcome: RunOutcome) -> Self {
        let RunOutcome { mut metrics, mut paths, digest, events, finished, curves, live, measured: _ } = outcome;
        metrics.retain(f64::is_finite);
        paths.values_mut().for_each(|values| values.retain(f64::is_finite));
        let (scheduler, congestion) = (scheduler.to_owned(), congestion.to_owned());
        Self { scheduler, congestion, seed, cell, finished, metrics, paths, digest, events, curves, live }
    }

    /// The value with this name.
    pub fn get(&self, name: MetricRef<'_>) -> Option<f64> {
        let values = match name.path {
            None => &self.metrics,
            Some(path) => self.paths.get(path)?,
        };
        values.get(name.name).copied()
    }

    /// All values: the connection's by name, the paths' as `path.NAME.METRIC`.
    pub fn values(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let paths = self.paths.iter().flat_map(|(path, values)| {
            values.iter().map(move |(metric, value)| (MetricRef::of_path(path, metric).to_string(), *value))
        });
        self.metrics.iter().map(|(name, value)| (name.to_owned(), *value)).chain(paths)
    }
}
