//! Arguments of the commands that run scenarios, and of those that take their results.

use super::format::Format;
use crate::number;
use anabranch_run::Shard;
use anabranch_units::Duration;
use anabranch_workbench::making::{Filing, Repetitions};
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
scheduler `linux-default` and the congestion controls of the kernel. The results then have `live`: the accuracy of the emulation, \
the kernels' settings and counters, and tcp_info of each subflow. However a run ends, it leaves nothing on the machine.

--out DIR replaces the files that an earlier --out of the same scenario left in DIR, after all new files are complete. Ctrl-C ends the runs, with exit \
code 130, and prints the results of those that are finished. With --out the finished runs are also kept in DIR, and the same \
command continues from there, even after a crash. If a file cannot be written, the results are still printed, and the exit code \
is 1.";

/// `anabranch run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A scenario file, the name of a built-in scenario, or `-` for standard input
    pub scenario: PathBuf,
    /// Schedulers to run instead of the scenario's, separated by commas; `all` for each of them; `NAME(PARAMETER=VALUE)`
    /// sets a parameter
    #[arg(long, value_name = "A[,B…]|all")]
    pub scheduler: Vec<String>,
    /// The scheduler that the others are compared with, unless it is the first of them; it runs in any case
    #[arg(long, value_name = "NAME", requires = "scheduler")]
    pub reference: Option<String>,
    /// Congestion controls to run instead of the scenario's, in the same notation
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
    /// Make and keep only the runs of machine I of N; `anabranch merge` combines the machines' results
    #[arg(long, value_name = "I/N", requires = "out", value_parser = number::shard, conflicts_with_all = ["realtime", "pcap", "events", "open"])]
    pub shard: Option<Shard>,
    /// Write captures of the first repetition of each row into this directory
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write every event of the first run as lines of JSON
    #[arg(long, value_name = "FILE", alias = "trace")]
    pub events: Option<PathBuf>,
    /// The host that sends the data (the server's, or of an upload the client's): this engine, or the Linux kernel in real time
    #[arg(long, value_name = "engine|linux")]
    pub sender: Option<String>,
    /// The host at the other end: this engine, or the Linux kernel in real time
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
    /// Threads. The default is one per core; in real time it is one, because such runs disturb each other
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
    /// Packets that timeline/ follows in each row's first run, from the beginning of the measured time: 20000 by default,
    /// 0 for none. A sweep has series/ and timeline/ only with this option
    #[arg(long, value_name = "N", requires = "out", allow_negative_numbers = true, value_parser = number::packets)]
    pub timeline: Option<usize>,
    /// Packets of each timeline in report.html: by default 30000 over all timelines. More packets make a larger file.
    /// timeline/ follows at least as many, unless --timeline sets another number
    #[arg(long, value_name = "N", requires = "out", allow_negative_numbers = true, value_parser = number::packets)]
    pub packets: Option<usize>,
    /// The connection that series/ and timeline/ follow, numbered in the order of opening
    #[arg(long, value_name = "N", default_value = "1", requires = "out", allow_negative_numbers = true, value_parser = number::ordinal::<NonZeroU32>)]
    pub connection: NonZeroU32,
    /// Show the report when it is written
    #[arg(long, requires = "out")]
    pub open: bool,
}

impl Output {
    /// Where the files go, and what is in them.
    pub fn filing(&self) -> Filing<'_> {
        Filing {
            out: self.out.as_deref(),
            force: self.force,
            timeline: self.timeline,
            packets: self.packets,
            connection: self.connection,
            jobs: self.jobs,
        }
    }
}

pub(super) const RERUN_EXAMPLES: &str = "\
Examples:
  anabranch rerun results                 # compares
  anabranch rerun results --out again     # and writes all files again

inputs.json of a results directory has the inputs of its runs: the scenario, its traces, and all options. The command repeats the \
runs from these texts, and compares the results with DIR/results.json. The exit code is 0 if every byte is equal. Otherwise it is \
1, and the command prints the differences: another build of the program, runs with other events, a changed trace. Runs in real \
time cannot be repeated.";

/// `anabranch rerun`.
#[derive(Debug, Args)]
pub struct RerunArguments {
    /// The directory that `--out` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

pub(super) const ARCHIVE_EXAMPLES: &str = "\
Example:
  anabranch archive results --out artifact.tar.gz

The file has what commands wrote into DIR, SHA-256 of each file, and a README that says how to make the runs again. The same \
directory gives the same bytes. A reader unpacks it, and runs `anabranch rerun` on its folder.";

/// `anabranch archive`.
#[derive(Debug, Args)]
pub struct ArchiveArguments {
    /// The directory that `--out` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The file, which ends in .tar.gz
    #[arg(long, value_name = "FILE", default_value = "artifact.tar.gz")]
    pub out: PathBuf,
}

pub(super) const FIGURE_EXAMPLES: &str = "\
Examples:
  anabranch figure results                                  # lists the figures
  anabranch figure results goodput --out goodput.pdf
  anabranch figure results over-time-ofo --out ofo.svg --figure-width 516pt

The figure has its legend, in the colours of the report, and text of 7 points in DejaVu Sans, which a PDF has embedded. Curves that \
coincide are drawn on each other, the lower one wider, and named below.";

/// `anabranch figure`.
#[derive(Debug, Args)]
pub struct FigureArguments {
    /// The directory that `--out` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// A name of the list; without it, the list is printed
    pub name: Option<String>,
    /// The file, which ends in .pdf or .svg; the figure's name with .pdf unless given
    #[arg(long, value_name = "FILE", requires = "name")]
    pub out: Option<PathBuf>,
    /// Width in points (1/72 inch), from 120pt to 1200pt: a column of a two-column paper is about 252pt wide, a page 516pt
    #[arg(long, value_name = "W", default_value = "252pt", value_parser = number::points)]
    pub figure_width: f64,
}

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  anabranch run wifi-lte --out results
  anabranch report results --open

DIR/report.html is one file, which fetches nothing: summary and comparisons, charts with intervals (each can be saved \
as SVG), series over time, the packet timeline, settings, seeds, the scenario. DIR/tables has the tables as CSV and as LaTeX for \
booktabs, with at most 1,000 rows. The report is made from results.json, manifest.json, series/*.csv and timeline/*.json, or from \
a report.json.";

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
    /// Packets of each timeline on the page, from those in DIR/timeline: by default 30000 over all timelines. A packet
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
    /// Measure every path before the run, even if that takes long. By default only paths that take no more than two
    /// seconds together are measured
    #[arg(long, conflicts_with = "no_preflight")]
    pub preflight: bool,
    /// Do not measure paths before the run
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
