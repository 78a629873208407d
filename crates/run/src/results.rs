//! The document of `run --format json`. The field order here is the order in the document, which has every field; docs/results.md has its
//! schema.

use crate::diagnosis::Diagnosis;
use crate::record::CellValues;
use crate::runs::Runs;
use crate::swept::SweptKey;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Version of the results' schema.
pub const SCHEMA: u32 = 1;

/// All results of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program that made it.
    pub anabranch: String,
    /// The scenario's title.
    pub scenario: String,
    /// Runs are missing: the command was interrupted, or one failed. Null otherwise.
    #[serde(default)]
    pub incomplete: Option<Incomplete>,
    /// The swept keys whose values are all numbers of one unit.
    #[serde(default)]
    pub sweep: IndexMap<String, SweptKey>,
    /// Hash over the runs' digests in order, in hexadecimal.
    pub digest: String,
    /// One entry per run: by cell, congestion control, scheduler, seed; baselines after the schedulers.
    pub runs: Runs,
    /// One entry per row (cell × congestion control × scheduler) and metric.
    pub summary: Vec<Summary>,
    /// Paired differences between schedulers.
    pub comparisons: Vec<Comparison>,
    /// Findings about the limits of the runs.
    #[serde(default)]
    pub diagnosis: Vec<Diagnosis>,
}

/// How much of the results is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// Runs in the results.
    pub finished: usize,
    /// Runs of the whole plan, at least.
    pub planned: usize,
}

/// One metric of one row over its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// As in [`crate::RunRecord`].
    pub scheduler: Arc<str>,
    /// As in [`crate::RunRecord`].
    pub congestion: Arc<str>,
    /// As in [`crate::RunRecord`].
    pub cell: Arc<CellValues>,
    /// A metric's name, `path.NAME.METRIC` for one of a path.
    pub metric: Arc<str>,
    /// Runs that have the metric.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n − 1); null for n = 1.
    #[serde(default)]
    pub sd: Option<f64>,
    /// Lower end of the mean's 95 % interval; null where the runs can have none (`anabranch_metrics::mean_interval`), or overlap in a trace.
    #[serde(default)]
    pub ci95_low: Option<f64>,
    /// Upper end.
    #[serde(default)]
    pub ci95_high: Option<f64>,
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// True if the scenario has no randomness, so that one run suffices.
    #[serde(default)]
    pub deterministic: bool,
    /// How many of the row's runs did not finish their transfer.
    #[serde(default)]
    pub unfinished: usize,
}

/// `a − b`, run by run with the same seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// A scheduler.
    pub a: Arc<str>,
    /// The scheduler that it is compared with.
    pub b: Arc<str>,
    /// Congestion control of both.
    pub congestion: Arc<str>,
    /// Cell of both.
    pub cell: Arc<CellValues>,
    /// A metric of the connection.
    pub metric: Arc<str>,
    /// Pairs.
    pub n: usize,
    /// Mean of `a − b`.
    pub mean_diff: f64,
    /// Lower end of its 95 % interval; null in the same cases.
    #[serde(default)]
    pub ci95_low: Option<f64>,
    /// Upper end.
    #[serde(default)]
    pub ci95_high: Option<f64>,
    /// Two-sided p value of the paired t test; null if the differences do not vary.
    #[serde(default)]
    pub p: Option<f64>,
    /// Two-sided p value of Wilcoxon's signed-rank test: exact for at most 25 differences; null for one pair, or if no pair differs.
    #[serde(default)]
    pub p_wilcoxon: Option<f64>,
    /// `mean_diff` ÷ the standard deviation of the differences (Cohen's d_z) with Hedges' correction for few pairs; null for
    /// fewer than three, or if the differences do not vary.
    #[serde(default)]
    pub effect_size: Option<f64>,
}

impl Results {
    /// Writes the JSON document, ending in a newline.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn write_json(&self, sink: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *sink, self)?;
        sink.write_all(b"\n")
    }

    /// The JSON document, ending in a newline.
    pub fn to_json(&self) -> String {
        // Every map's keys are strings and every number is finite, so this cannot fail.
        let mut text = Vec::new();
        let _ = self.write_json(&mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}

/// Hash over the runs' digests.
pub(crate) fn document_digest(runs: &Runs) -> String {
    let mut hash = Xxh3::new();
    for digest in runs.rows().flat_map(|row| row.digests()) {
        hash.update(digest.as_bytes());
        hash.update(b"\n");
    }
    format!("{:032x}", hash.digest128())
}
