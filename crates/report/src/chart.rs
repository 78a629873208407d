//! Charts as values. Values are in the unit that the axis names; names that are schedulers get the scheduler's style.

use anabranch_recorders::Timeline;
use anabranch_run::Summary;
use serde::{Deserialize, Serialize};

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Means with intervals, by group and row.
    Bars(Bars),
    /// Means with interval bands over a key.
    Lines(Lines),
    /// Densities over whole numbers.
    Distribution(Distribution),
    /// Values over time, one panel a quantity.
    TimeSeries(TimeSeries),
    /// Single values and the curve of a model.
    Scatter(Scatter),
    /// Packets from sender to application.
    Timeline(Timeline),
}

/// The quantity along an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Axis {
    /// Label with the unit: `goodput, Mbit/s`.
    pub label: String,
    /// Logarithmic.
    pub log: bool,
    /// Values below zero have a meaning; of others, intervals end at zero.
    pub signed: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }
}

/// A mean of `n` runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Runs.
    pub n: usize,
}

impl Mean {
    /// The mean of a metric, in a unit of which `per` of the metric's own make one.
    pub fn of(summary: &Summary, per: f64) -> Self {
        let scaled = |value: Option<f64>| value.map(|value| value / per);
        Self { mean: summary.mean / per, low: scaled(summary.ci95_low), high: scaled(summary.ci95_high), n: summary.n }
    }
}

/// Bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Axis of the values.
    pub axis: Axis,
    /// In the order in which they are drawn; those of one group together.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The group of the bar; empty where there are no groups.
    #[serde(default)]
    pub group: String,
    /// Which row.
    pub row: String,
    /// Ours, if measured.
    #[serde(default)]
    pub ours: Option<Mean>,
    /// The published value, drawn as a mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
}

/// Lines over a swept key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The key.
    pub x: Axis,
    /// The values.
    pub y: Axis,
    /// One per row.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Which row.
    pub name: String,
    /// Ours, by rising x.
    pub points: Vec<(f64, Mean)>,
    /// Published `(x, y)`, drawn as marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<(f64, f64)>,
}

/// Densities such as RBD and RD (RFC 5236).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Whole numbers: packets.
    pub x: Axis,
    /// Share of all.
    pub y: Axis,
    /// One per row.
    pub curves: Vec<Density>,
}

/// One density.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Density {
    /// Which row.
    pub name: String,
    /// `(x, share)` by rising x; what is missing is zero.
    pub shares: Vec<(i64, f64)>,
}

/// Panels with a common time axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSeries {
    /// One a quantity.
    pub panels: Vec<Panel>,
    /// Up to here nothing is measured, in seconds.
    pub warmup_s: f64,
}

/// One quantity over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// Axis of the values.
    pub axis: Axis,
    /// One per path or row.
    pub curves: Vec<Curve>,
}

/// A value at equal steps. Absent where nothing was known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name of the path or row; empty if there is but one.
    pub name: String,
    /// Time of the first value, in seconds.
    pub start_s: f64,
    /// Between two values.
    pub step_s: f64,
    /// Mean over runs, or over the samples within the step.
    pub mean: Vec<Option<f64>>,
    /// Lower end of the band; empty for no band.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
}

/// Measurements and a model's curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Measured.
    pub sets: Vec<Points>,
    /// As the model has it, by rising x.
    #[serde(default)]
    pub models: Vec<Points>,
    /// Coefficient of determination, written below the chart.
    #[serde(default)]
    pub r2: Option<f64>,
}

/// Named points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Points {
    /// Name of what the points show.
    pub name: String,
    /// `(x, y)`.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// The names that need a style, in the order in which they appear.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Bars(chart) => chart.bars.iter().map(|bar| bar.row.as_str()).collect(),
            Self::Lines(chart) => chart.lines.iter().map(|line| line.name.as_str()).collect(),
            Self::Distribution(chart) => chart.curves.iter().map(|curve| curve.name.as_str()).collect(),
            Self::TimeSeries(chart) => {
                chart.panels.iter().flat_map(|panel| &panel.curves).map(|curve| curve.name.as_str()).collect()
            }
            Self::Scatter(chart) => chart.sets.iter().chain(&chart.models).map(|set| set.name.as_str()).collect(),
            Self::Timeline(timeline) => timeline.paths.iter().map(String::as_str).collect(),
        }
    }
}
