//! Arguments of the commands that check, list, explain and create.

use super::format::ListFormat;
use anabranch_workbench::list::{LISTINGS, Listing};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `anabranch check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// A scenario file, the name of a built-in scenario, or `-` for standard input
    pub scenario: PathBuf,
    /// Set a key of the scenario, as in path.wlan.loss=2%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// `anabranch list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// The kind of entries
    #[arg(value_parser = listing())]
    pub what: &'static Listing,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// Reads the name of a list. The help has all of them.
fn listing() -> impl TypedValueParser<Value = &'static Listing> {
    let words = LISTINGS.iter().map(|listing| PossibleValue::new(listing.name).help(listing.about));
    PossibleValuesParser::new(words).try_map(|name| Listing::find(&name).map_err(|failure| failure.render(false)))
}

/// `anabranch explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// A name from `anabranch list`
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub name: Option<String>,
    /// Every page, as one Markdown document
    #[arg(long, value_enum, value_name = "WHAT")]
    pub all: Option<Catalogue>,
}

/// `anabranch new`.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// The kind of plug-in
    #[arg(value_enum)]
    pub kind: PlugInKind,
    /// Name of the plug-in: small letters and digits, with - between words
    pub name: String,
}

/// The kinds of plug-ins that can be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlugInKind {
    /// A packet scheduler
    Scheduler,
}

/// The reference documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Catalogue {
    /// Packet schedulers
    Schedulers,
    /// Congestion controls
    Congestion,
    /// Rules by which a video's player chooses rates
    Abrs,
    /// Keys of a scenario file
    Keys,
    /// Measured values
    Metrics,
    /// Commands with their help
    Commands,
    /// Built-in scenarios
    Scenarios,
}
