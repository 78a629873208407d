//! Arguments of `anabranch infer`.

use super::format::ListFormat;
use crate::number;
use anabranch_run::Shard;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const INFER_EXAMPLES: &str = "\
Examples:
  anabranch infer my-testbed.toml
  anabranch infer fdps --out inferred
  anabranch infer all --out inferred --open
  anabranch infer fdps --shard 1/2 --out a     # on one machine
  anabranch infer fdps --shard 2/2 --out b     # on another
  anabranch infer fdps --from a --from b --out whole

A file names a scenario, the keys that are unknown, each with a prior, and measured values. A paper has its priors in unsaid.toml, \
and its published baselines are the measured values. Testbeds are drawn from the priors, the baselines run in each, and the nearest \
are kept. Then the schedulers of a paper run in those, and each claim is counted over them. docs/infer.md has the form of the file.

Finished runs are kept in --out: the same command continues where the last one stopped. A shard first makes its part of the \
baselines. When --from brings all of them together, it makes its part of the next round, or of the schedulers.";

/// `anabranch infer`.
#[derive(Debug, Args)]
pub struct InferArguments {
    /// A file of unknowns and measured values; a paper of `anabranch list papers`, `all`, or a folder with claims.toml and
    /// unsaid.toml
    #[arg(value_name = "FILE|PAPER")]
    pub source: PathBuf,
    /// Testbeds drawn in a round, instead of the file's number
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::ordinal::<NonZeroUsize>)]
    pub draws: Option<NonZeroUsize>,
    /// Testbeds kept, instead of the file's number
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::ordinal::<NonZeroUsize>)]
    pub keep: Option<NonZeroUsize>,
    /// Threads; one per core unless given
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::threads::<NonZeroUsize>)]
    pub jobs: Option<NonZeroUsize>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// Also write inference.json, claims.csv, draws-NAME.parquet and report.html into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace other results in --out
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Make and keep only the runs of machine I of N
    #[arg(long, value_name = "I/N", requires = "out", value_parser = number::shard, conflicts_with = "open")]
    pub shard: Option<Shard>,
    /// Take the runs that a shard kept in this directory; may be repeated
    #[arg(long, value_name = "DIR", requires = "out")]
    pub from: Vec<PathBuf>,
    /// Show the report when it is written
    #[arg(long, requires = "out")]
    pub open: bool,
}
