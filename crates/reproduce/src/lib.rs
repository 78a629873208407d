//! Published values beside ours: what a paper claims, which runs answer it, and a verdict for each claim.
//!
//! A paper is a folder: scenario files, and `claims.toml` with the published values and the bands in which ours reproduce
//! them, written before the first run. This crate reads no file and runs nothing.

mod claim;
mod conclude;
mod curves;
mod cycle;
mod estimate;
mod found;
mod judge;
mod outcome;
mod paper;
mod plan;
mod prediction;
mod read;
mod samples;
mod theory;

pub use claim::{Claim, Kind, Point, Side, Statistic, Unit};
pub use conclude::conclude;
pub use judge::judge;
pub use outcome::{ItemOutcome, Judged, MeanCurve, PaperOutcome, Reproduction, Sensitive, Verdict};
pub use paper::{Figure, Item, Paper, Row, Sensitivity};
pub use plan::{Asked, Part, example, parts};
pub use prediction::Prediction;
pub use read::{Mistake, read};
