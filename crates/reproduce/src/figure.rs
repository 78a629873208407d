//! Figures of an item.

use serde::{Deserialize, Serialize};

/// How an item is drawn, as the paper draws it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Figure {
    /// A bar a row, grouped by cell.
    Bars {
        /// Metric.
        metric: String,
    },
    /// A line a row over a key of the sweep.
    Lines {
        /// The key.
        x: String,
        /// Metric.
        metric: String,
        /// Logarithmic x axis.
        log: bool,
    },
    /// A curve a row over time, mean over the runs.
    Time {
        /// The curve's name.
        curve: String,
    },
    /// A distribution a row.
    Distribution {
        /// `rbd` or `rd`.
        curve: String,
    },
    /// A point a cell and row, of two means, and what models give.
    Scatter {
        /// The metric across.
        x: String,
        /// The metric up.
        metric: String,
        /// Name of each model and its points, by rising x.
        models: Vec<(String, Vec<(f64, f64)>)>,
    },
}

impl Figure {
    /// The metric or curve that it draws.
    pub fn what(&self) -> &str {
        match self {
            Self::Bars { metric } | Self::Lines { metric, .. } | Self::Scatter { metric, .. } => metric,
            Self::Time { curve } | Self::Distribution { curve } => curve,
        }
    }
}
