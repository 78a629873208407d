//! `advise`.

use super::format::ListFormat;
use crate::number;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const ADVISE_EXAMPLES: &str = "\
Examples:
  anabranch advise wifi-lte
  anabranch advise --path wifi=30mbit,10ms,0.5% --path lte=20mbit,60ms
  anabranch advise site.toml --for calls,pages --error 20

A line is NAME=RATE,DELAY,LOSS,QUEUE in the notation of scenario files. The delay is one way, half of an idle ping; loss is \
none and the queue 1bdp unless given. `price=` and `cap=` may follow. A recording of `measure --record` is a scenario, too.

The schedulers race over draws around these numbers: all meet the same draws, and those that cannot win leave early.";

/// `anabranch advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// A scenario file, a recording of `measure --record`, or the name of a built-in scenario
    #[arg(required_unless_present = "path", conflicts_with = "path")]
    pub scenario: Option<PathBuf>,
    /// A line in numbers; given once for each
    #[arg(long, value_name = "NAME=RATE,DELAY,LOSS,QUEUE")]
    pub path: Vec<String>,
    /// Applications over the lines, separated by commas: downloads, calls, pages, requests, frames; all of them unless given
    #[arg(long = "for", value_name = "A[,B…]", value_delimiter = ',')]
    pub uses: Vec<String>,
    /// How far the numbers may be off, in per cent: draws vary rates, delays and queues by up to this, losses by three times this
    #[arg(long, value_name = "PERCENT", default_value = "10", allow_negative_numbers = true)]
    pub error: f64,
    /// Schedulers, separated by commas; every one unless given
    #[arg(long, value_name = "A[,B…]")]
    pub scheduler: Vec<String>,
    /// Congestion control; the scenario's unless given
    #[arg(long, value_name = "A")]
    pub congestion: Option<String>,
    /// Set a key of the scenario, as in path.wlan.loss=2%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads; one per core unless given
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::threads::<NonZeroUsize>)]
    pub jobs: Option<NonZeroUsize>,
    /// How to print the advice
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}
