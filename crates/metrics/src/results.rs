//! The values of one run.

use crate::{Density, Extents, METRICS};
use anabranch_units::{FramePattern, Instant};
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// The measurements of one run. Values have the order of [`METRICS`]; a metric that does not apply is absent.
#[derive(Clone, Debug)]
pub struct RunMetrics {
    /// Values of the run.
    pub values: Vec<(&'static str, f64)>,
    /// Metrics of each path, in the order of the configuration.
    pub paths: Vec<PathMetrics>,
    /// Every byte of sized traffic was delivered; always true for unlimited traffic.
    pub finished: bool,
    /// When the first SYN left.
    pub started: Option<Instant>,
    /// The measured time.
    pub measured: (Instant, Instant),
    /// Distributions of displacement and reorder-buffer occupancy.
    pub density: Density,
    /// Reordered packets and their extents.
    pub extents: Extents,
    /// Frames whose delays count.
    pub frames: WrittenFrames,
}

/// Frames of each direction, in the order of [`anabranch_units::TrafficDirection::ways`], connection by connection.
pub type WrittenFrames = [Vec<FrameTimes>; 2];

/// When the frames of one connection were due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTimes {
    /// Frame 0.
    pub first: Instant,
    /// Numbers of those that count.
    pub counted: Range<u64>,
}

impl FrameTimes {
    /// When those that count were due, and their bytes.
    pub fn due<'a>(&'a self, pattern: &'a FramePattern) -> impl Iterator<Item = (Instant, u64)> + 'a {
        self.counted.clone().map(|n| (self.first + pattern.at(n), pattern.size(n)))
    }
}

/// The measurements of one run on one path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathMetrics {
    /// The path's name.
    pub name: String,
    /// Values of the path.
    pub values: Vec<(&'static str, f64)>,
}

impl RunMetrics {
    /// A value of the run.
    pub fn get(&self, name: &str) -> Option<f64> {
        lookup(&self.values, name)
    }

    /// Adds or replaces a value of the run (one that needs other runs or a bound), at its place; `None` takes it out.
    pub fn set(&mut self, name: &'static str, value: Option<f64>) {
        self.values.retain(|(n, _)| *n != name);
        if let Some(value) = value {
            let order = |name: &str| METRICS.iter().position(|m| !m.per_path && m.name == name);
            let place = order(name);
            let at = self.values.partition_point(|(n, _)| order(n) < place);
            self.values.insert(at, (name, value));
        }
    }
}

impl PathMetrics {
    /// A value of the path.
    pub fn get(&self, name: &str) -> Option<f64> {
        lookup(&self.values, name)
    }
}

fn lookup(values: &[(&'static str, f64)], name: &str) -> Option<f64> {
    values.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
}

/// Leaves out what does not apply.
pub(crate) fn present<const N: usize>(values: [(&'static str, Option<f64>); N]) -> Vec<(&'static str, f64)> {
    let mut present = Vec::with_capacity(N);
    present.extend(values.into_iter().filter_map(|(name, value)| Some((name, value?))));
    present
}
