//! Arguments of the commands that run scenarios, and of those that take their results.

use super::format::Format;
use crate::number::{self, Repetitions};
use anabranch_run::Shard;
use anabranch_units::Duration;
use clap::Args;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  anabranch run wifi-lte
  anabranch run my.toml --scheduler minrtt+pr,blest --repeat auto
  anabranch run my.toml --scheduler 'blest,blest(delta=0.01,lambda=2)'
  anabranch run my.toml --scheduler all --format json > results.json
  anabranch run wifi-lte --sweep path.lte.delay=10ms..320ms*2 --repeat 20
  anabranch run wifi-lte --receiver linux    # our engine sends to Linux

SCENARIO is a file, or the name of a built-in scenario (`anabranch list scenarios`). Every path is also run alone, \
with plain TCP, and shown as `single:NAME`. Repetition r of every row uses the seed + r, so that schedulers meet the \
same losses. The same version and seed give the same bytes on every machine, with any number of jobs.

A Linux host is this machine's own kernel in a network namespace, with the scenario's paths emulated in real time. \
This needs Linux and root, or a user who may make user namespaces and open /dev/net/tun. A Linux sender has the \
scheduler `linux-default` and the congestion controls of the kernel. Results then have `live`: how accurate the emulation \
was, the kernels' settings and counters, tcp_info of each subflow. Nothing is left behind, however a run ends.

--out DIR replaces the files that an earlier --out of the same scenario left in DIR, when all is written. Ctrl-C ends the runs, with exit \
code 130, and prints the results of those that are finished. With --out they are also kept in DIR, whatever ends the \
command: the same command continues from there. Results are printed even if a file cannot be written, which is exit code 1.";

/// `anabranch run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A scenario file, the name of a built-in scenario, or `-` for standard input
    pub scenario: PathBuf,
    /// Schedulers to run instead of the scenario's, separated by commas; `all` for each of them; `NAME(PARAMETER=VALUE)`
    /// sets a parameter
    #[arg(long, value_name = "A[,B…]|all")]
    pub scheduler: Vec<String>,
    /// Congestion controls to run instead of the scenario's, written likewise
    #[arg(long, value_name = "A[,B…]|all")]
    pub congestion: Vec<String>,
    /// Set a key of the scenario, as in path.wlan.loss=2%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run every value of a key, as listed or in a range; several make a grid. `anabranch explain sweep` has the notation
    #[arg(long, value_name = "KEY=A,B…|A..B*F|A..B/N")]
    pub sweep: Vec<String>,
    /// Advance all swept keys together instead: the first value of each, then the second
    #[arg(long, requires = "sweep")]
    pub zip: bool,
    /// Seed of the first repetition
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::seed)]
    pub seed: Option<u64>,
    /// Repetitions; `auto` adds seeds until the 95 % interval of the table's first figure (goodput, completion time
    /// or delay) is narrower than 2 % of its mean in every row, twice in succession, at most 200
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true, value_parser = number::repetitions)]
    pub repeat: Option<Repetitions>,
    /// Measured time, such as 90s
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Skip the single-path baselines
    #[arg(long)]
    pub no_baselines: bool,
    #[command(flatten)]
    pub cache: CacheArguments,
    #[command(flatten)]
    pub output: Output,
    /// Only make and keep the runs of one of N machines, I from 1 to N; `anabranch merge` brings them together
    #[arg(long, value_name = "I/N", requires = "out", value_parser = number::shard, conflicts_with_all = ["realtime", "pcap", "events", "open"])]
    pub shard: Option<Shard>,
    /// Write captures of the first repetition of each row into this directory
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write every event of the first run as lines of JSON
    #[arg(long, value_name = "FILE", alias = "trace")]
    pub events: Option<PathBuf>,
    /// The server's host, which sends bulk data: this engine, or the Linux kernel in real time
    #[arg(long, value_name = "engine|linux")]
    pub sender: Option<String>,
    /// The client's host, which connects: this engine, or the Linux kernel in real time
    #[arg(long, value_name = "engine|linux")]
    pub receiver: Option<String>,
    /// Run in real time, even if both hosts are engines
    #[arg(long)]
    pub realtime: bool,
    #[command(flatten)]
    pub preflight: PreflightArguments,
}

/// Whether runs of single paths may come from the cache.
#[derive(Clone, Copy, Debug, Args)]
pub struct CacheArguments {
    /// Take no single-path baseline from the cache of earlier commands, and leave none there
    #[arg(long)]
    pub no_cache: bool,
}

/// Options of every command that runs scenarios.
#[derive(Debug, Args)]
pub struct Output {
    /// Threads; one per core unless given, one for runs in real time, which disturb each other
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::threads::<NonZeroUsize>)]
    pub jobs: Option<NonZeroUsize>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write manifest.json, results.json, runs.csv, runs.parquet, summary.csv, comparisons.csv, series/, timeline/ and
    /// report.html into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another scenario in --out
    #[arg(long, requires = "out")]
    pub force: bool,
    /// How many packets timeline/ follows, from the beginning of the measured time, in each row's first run; 0 for none.
    /// 20000 unless given; a sweep has no series/ and timeline/ without this option
    #[arg(long, value_name = "N", requires = "out", allow_negative_numbers = true, value_parser = number::packets)]
    pub timeline: Option<usize>,
    /// How many packets of each timeline report.html shows, which grows with them; 30000 over all timelines unless given. timeline/
    /// follows at least as many, unless --timeline says otherwise
    #[arg(long, value_name = "N", requires = "out", allow_negative_numbers = true, value_parser = number::packets)]
    pub packets: Option<usize>,
    /// Which of several connections series/ and timeline/ follow, as they are opened; 1 is the first
    #[arg(long, value_name = "N", default_value = "1", requires = "out", allow_negative_numbers = true, value_parser = number::ordinal::<NonZeroU32>)]
    pub connection: NonZeroU32,
    /// Show the report when it is written
    #[arg(long, requires = "out")]
    pub open: bool,
}

pub(super) const RERUN_EXAMPLES: &str = "\
Examples:
  anabranch rerun results                 # compares
  anabranch rerun results --out again     # and writes all files again

A results directory has in inputs.json what its runs were made from: the scenario, the traces that it names, all options. The \
runs are made from these texts, and the results compared with DIR/results.json. The exit code is 0 if every byte comes \
out again. Otherwise it is 1, and the differences are said: another build of the program, runs with other events. A trace \
that has changed since is named, too. Runs that followed the clock cannot be made again.";

/// `anabranch rerun`.
#[derive(Debug, Args)]
pub struct RerunArguments {
    /// The directory that `--out` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  anabranch run wifi-lte --out results
  anabranch report results --open

DIR/report.html is one file, which fetches nothing: summary and comparisons, charts with intervals (each can be saved \
as SVG), series over time, the packet timeline, settings, seeds, the scenario. The tables are also in DIR/tables as \
CSV, and as LaTeX for booktabs, with 1,000 rows at most. It is made of results.json, manifest.json, series/*.csv and timeline/*.json, or of a \
report.json.";

pub(super) const MERGE_EXAMPLES: &str = "\
Example:
  anabranch run sweep.toml --shard 1/2 --out a    # on one machine
  anabranch run sweep.toml --shard 2/2 --out b    # on another
  anabranch merge a b --out whole

The results are those of `anabranch run sweep.toml --out whole`, byte for byte; manifest.json has another command, machine \
and time. All shards are made by one build of the program.";

/// `anabranch merge`.
#[derive(Debug, Args)]
pub struct MergeArguments {
    /// The directories that `run --shard` wrote
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// `anabranch report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// The directory that `--out` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// How many packets of each timeline the page shows, of those in DIR/timeline; 30000 over all timelines unless given. A packet
    /// takes about 6 bytes in the demo's page
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::packets)]
    pub packets: Option<usize>,
    /// Show the report when it is written
    #[arg(long)]
    pub open: bool,
}

/// `anabranch demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Repetitions of each row, with seeds 1, 2, …
    #[arg(long, value_name = "N", default_value = "20", allow_negative_numbers = true, value_parser = number::repeat::<NonZeroU32>)]
    pub repeat: NonZeroU32,
    #[command(flatten)]
    pub cache: CacheArguments,
    #[command(flatten)]
    pub output: Output,
}

/// Whether to measure emulated paths before anything runs over them.
#[derive(Clone, Copy, Debug, Args)]
pub struct PreflightArguments {
    /// Measure every path before the run, however long that takes; without it, those that take no longer than two seconds
    /// in all
    #[arg(long, conflicts_with = "no_preflight")]
    pub preflight: bool,
    /// Measure nothing before the run
    #[arg(long)]
    pub no_preflight: bool,
}

impl PreflightArguments {
    /// How long to measure; `None` = not at all.
    pub fn limit(&self) -> Option<Duration> {
        match (self.preflight, self.no_preflight) {
            (_, true) => None,
            (true, false) => Some(Duration::MAX),
            (false, false) => Some(anabranch_run::Preflight::LIMIT),
        }
    }
}
