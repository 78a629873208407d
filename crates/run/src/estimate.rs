//! The estimate of a mean from a sample.

use anabranch_metrics::SampleStatistics;
use serde::{Deserialize, Serialize};

/// A mean and its 95 % interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Runs.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Lower end; absent for n = 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci95_low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci95_high: Option<f64>,
}

impl Estimate {
    /// From one value per run; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let SampleStatistics { n, mean, ci95, .. } = SampleStatistics::of(values)?;
        let (ci95_low, ci95_high) = ci95.unzip();
        Some(Self { n, mean, ci95_low, ci95_high })
    }
}
