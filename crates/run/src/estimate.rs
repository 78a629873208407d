//! The estimate of a mean from a sample.

use anabranch_metrics::{mean, mean_interval, student_interval};
use serde::{Deserialize, Serialize};

/// A mean and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Runs.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Lower end; absent where the runs can have no interval (`anabranch_metrics::mean_interval`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci95_low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci95_high: Option<f64>,
}

impl Estimate {
    /// From one value per run; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::with(values, mean_interval(values))
    }

    /// From values that are means of many runs each, and so nearly normal, few as they may be: Student's interval.
    pub fn of_means(values: &[f64]) -> Option<Self> {
        Self::with(values, student_interval(values))
    }

    fn with(values: &[f64], ci95: Option<(f64, f64)>) -> Option<Self> {
        let (ci95_low, ci95_high) = ci95.unzip();
        Some(Self { n: values.len(), mean: mean(values)?, ci95_low, ci95_high })
    }
}
