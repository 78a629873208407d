//! Stands in for what `run` is about to have.
use anabranch_metrics::Summary;
use anabranch_run::RunRecord;
use serde::{Deserialize, Serialize};
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub n: usize,
    pub mean: f64,
    pub ci95_low: Option<f64>,
    pub ci95_high: Option<f64>,
}
impl Estimate {
    pub fn of(values: &[f64]) -> Option<Self> {
        Summary::of(values).map(|s| Self {
            n: s.n,
            mean: s.mean,
            ci95_low: s.ci95.map(|c| c.0),
            ci95_high: s.ci95.map(|c| c.1),
        })
    }
}
pub trait ValueOf {
    fn value(&self, name: &str) -> Option<f64>;
}
impl ValueOf for RunRecord {
    fn value(&self, name: &str) -> Option<f64> {
        self.values().find(|(n, _)| n == name).map(|(_, v)| v)
    }
}
