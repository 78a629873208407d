//! The names of a run's values.

use crate::record::RunRecord;
use crate::values::{Name, Values};
use anabranch_metrics::MetricRef;
use indexmap::IndexMap;
use std::sync::Arc;

/// The names of a run's values, in order: those of the connection, then those of each path.
#[derive(Debug, PartialEq)]
pub(super) struct Shape {
    metrics: Arc<Vec<Name>>,
    paths: Vec<(String, Arc<Vec<Name>>)>,
}

impl Shape {
    /// The shape of `run`.
    pub fn of(run: &RunRecord) -> Self {
        let paths = run.paths.iter().map(|(path, values)| (path.clone(), values.names().clone()));
        Self { metrics: run.metrics.names().clone(), paths: paths.collect() }
    }

    /// True if it is that of `run`.
    pub fn fits(&self, run: &RunRecord) -> bool {
        let of_path =
            |((path, names), (own, values)): (&(String, _), (&String, &Values))| path == own && names == values.names();
        self.metrics == *run.metrics.names()
            && self.paths.len() == run.paths.len()
            && self.paths.iter().zip(&run.paths).all(of_path)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = MetricRef<'_>> {
        let own = self.metrics.iter().map(|name| MetricRef { path: None, name });
        own.chain(self.paths.iter().flat_map(|(path, names)| names.iter().map(|name| MetricRef::of_path(path, name))))
    }

    /// The place of a name.
    pub fn place(&self, name: MetricRef<'_>) -> Option<usize> {
        self.names().position(|own| own == name)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.metrics.len() + self.paths.iter().map(|(_, names)| names.len()).sum::<usize>()
    }

    /// The values of a run, given in order.
    pub fn values(&self, mut values: impl Iterator<Item = f64>) -> (Values, IndexMap<String, Values>) {
        let mut take = |names: &Arc<Vec<Name>>| Values::new(names.clone(), values.by_ref().take(names.len()).collect());
        let metrics = take(&self.metrics);
        (metrics, self.paths.iter().map(|(path, names)| (path.clone(), take(names))).collect())
    }
}
