//! The command line.

use crate::number::{self, Repetitions};
use anabranch_run::Shard;
use anabranch_units::Duration;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// Multipath TCP, deterministic: run packet schedulers and coupled congestion controls over simulated paths.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, propagate_version = false, max_term_width = 100)]
pub struct Arguments {
    /// The command; without it, a short tour
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Arguments {
    /// True if there is a command of this name.
    pub fn has_command(name: &str) -> bool {
        Self::command().find_subcommand(name).is_some()
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare six schedulers over WLAN and 3G, with single-path baselines
    #[command(after_help = "Examples:\n  anabranch demo\n  anabranch demo --out results --open")]
    Demo(DemoArguments),
    /// Run a scenario and print the results
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArguments>),
    /// Run any program over a scenario's paths, emulated in real time between two Linux kernels
    #[command(after_help = SHELL_EXAMPLES)]
    Shell(ShellArguments),
    /// Parse and validate a scenario, and print it with every default filled in
    #[command(after_help = "Example:\n  anabranch check my.toml --set path.wlan.loss=2%")]
    Check(CheckArguments),
    /// List schedulers, congestion controls, built-in scenarios, papers, metrics, scenario keys or models
    #[command(after_help = "Example:\n  anabranch list schedulers")]
    List(ListArguments),
    /// Explain a scheduler, congestion control, metric, model, scenario key or one of its values
    #[command(after_help = "Examples:\n  anabranch explain blest\n  anabranch explain minrtt+pr\n  \
                            anabranch explain path.loss\n  anabranch explain web\n  anabranch explain ofo_mean_bytes\n  anabranch explain delayed-start\n  \
                            anabranch explain --all schedulers > docs/schedulers.md")]
    Explain(ExplainArguments),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  anabranch completions bash > ~/.local/share/bash-completion/completions/anabranch"
    )]
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Run the experiments of a paper, and print the published values beside ours with a verdict for each claim
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(ReproduceArguments),
    /// Run all schedulers over a reference grid, and rank them by how near they come to the best possible
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Evaluate a closed-form model, or the best possible in a scenario
    #[command(after_help = MODEL_EXAMPLES)]
    Model(ModelArguments),
    /// Run a scenario in the simulator and with Linux at either end, and show how far the results lie apart
    #[command(after_help = PARITY_EXAMPLES)]
    Parity(Box<ParityArguments>),
    /// Create a scheduler in a checkout of the repository: its file, and its lines in the lists
    #[command(after_help = "Example:\n  anabranch new scheduler my-rule")]
    New(NewArguments),
    /// Bring the shards of a command together: the results of one run of all
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArguments),
    /// Make the HTML report of a results directory
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
}

const RUN_EXAMPLES: &str = "\
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

--out DIR replaces the files that an earlier --out left in DIR, when all is written. Ctrl-C ends the runs, with exit \
code 130, and prints the results of those that are finished. With --out they are also kept in DIR, whatever ends the \
command: the same command continues from there. Results are printed even if a file cannot be written, which is exit code 1.";

const SHELL_EXAMPLES: &str = "\
Examples:
  anabranch shell 3g-wlan
  anabranch shell 3g-wlan --server 'iperf3 -s' -- iperf3 -c 10.0.0.2
  anabranch shell 3g-wlan --server 'python3 -m http.server 8000' -- \\
      sh -c 'mptcpize run curl -O http://$ANABRANCH_SERVER:8000/some.iso'

CMD runs in a network namespace that has an address on each path; the server's namespace has one address, which all \
paths reach. Multipath TCP is on in both: a program that opens sockets of protocol 262 (IPPROTO_MPTCP), or `mptcpize \
run PROGRAM`, uses all paths; TCP, UDP and ICMP take the first. Time 0 of outages and of the timeline is the start of \
CMD. Programs are the traffic: the scenario's own traffic, scheduler and duration do not count; its cross traffic \
does. This needs root.

CMD gets the terminal and its keys, and its exit code is that of this command (127 if it cannot be started). The \
network stays until what CMD sent has arrived and the server has read it; if nothing arrives for half a minute, or on \
Ctrl-C, standard error says what is lost. Programs that CMD or the server left behind are ended. A table of what \
crossed each path follows on standard error.

Variables for CMD and server:
  ANABRANCH_SERVER       the server's address
  ANABRANCH_CLIENT_NAME  the client's address on path NAME (capitals, _)
  ANABRANCH_CLIENT_NS    the client's namespace, for
                         `nsenter --net=FILE` in another terminal
  ANABRANCH_SERVER_NS    the server's";

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table to read.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One line per run or row.
    Csv,
}

/// How lists are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Lines to read.
    #[default]
    Table,
    /// A JSON array of objects.
    Json,
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
    /// How many packets timeline/ follows, from the beginning of the measured time, in each row's first run; 0 for none.
    /// 20000 unless given; a sweep has no series/ and timeline/ without this option
    #[arg(long, value_name = "N", requires = "out", allow_negative_numbers = true, value_parser = number::packets)]
    pub timeline: Option<usize>,
    /// Which of several connections series/ and timeline/ follow, as they are opened; 1 is the first
    #[arg(long, value_name = "N", default_value = "1", requires = "out", allow_negative_numbers = true, value_parser = number::ordinal::<NonZeroU32>)]
    pub connection: NonZeroU32,
    /// Show the report when it is written
    #[arg(long, requires = "out")]
    pub open: bool,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  anabranch run wifi-lte --out results
  anabranch report results --open

DIR/report.html is one file, which fetches nothing: summary and comparisons, charts with intervals (each can be saved \
as SVG), series over time, the packet timeline, settings, seeds, the scenario. The tables are also in DIR/tables as \
CSV, and as LaTeX for booktabs, with 1,000 rows at most. It is made of results.json, manifest.json, series/*.csv and timeline/*.json, or of a \
report.json.";

const MERGE_EXAMPLES: &str = "\
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
    pub output: Output,
}

/// `anabranch shell`.
#[derive(Debug, Args)]
pub struct ShellArguments {
    /// A scenario file or the name of a built-in scenario
    pub scenario: PathBuf,
    /// A command line for `sh` in the server's namespace, started first and ended last; it stays in the foreground, and
    /// what it prints goes to standard error
    #[arg(long, value_name = "CMD")]
    pub server: Option<String>,
    /// Set a key of the scenario, as in path.wlan.loss=2%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of losses and cross traffic
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::seed)]
    pub seed: Option<u64>,
    /// Write the summary as JSON into this file
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Write captures of both hosts into this directory
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    #[command(flatten)]
    pub preflight: PreflightArguments,
    /// Print only errors on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// The command in the client's namespace; $SHELL unless given
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
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

/// `anabranch check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// A scenario file or the name of a built-in scenario
    pub scenario: PathBuf,
    /// Set a key of the scenario, as in path.wlan.loss=2%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// `anabranch list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// The kind of entries
    #[arg(value_enum)]
    pub what: Listing,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// The kinds of entries that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Packet schedulers
    Schedulers,
    /// Congestion controls
    Congestion,
    /// Built-in scenarios
    Scenarios,
    /// Papers to reproduce, with their items
    Papers,
    /// Measured values
    Metrics,
    /// Keys of a scenario file
    Keys,
    /// Closed-form models
    Models,
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
    /// Its name: small letters and digits, with - between words
    pub name: String,
}

/// The kinds of plug-ins that can be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlugInKind {
    /// A packet scheduler
    Scheduler,
}

/// The kinds of plug-ins that have reference pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Catalogue {
    /// Packet schedulers
    Schedulers,
    /// Congestion controls
    Congestion,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  anabranch compare --quick
  anabranch compare --scheduler minrtt,blest --congestion lia --traffic web
  anabranch compare --grid my-paths --out results
  anabranch compare --first-path --room --out results

The reference grid is 53 path sets (scenarios/frontier) with six applications each: unlimited bulk, a web page of 1 MB, \
transfers of 256 KB, 2 MB and 8 MB, and frames 25 times per second that fill 60 % of the paths; 16 KB runs only on \
request. The basic part has paths that never change; the extended part asymmetric delays, changing capacity, handovers, small \
windows, fast and shared paths, several connections, uploads, a sender's own device, prices. Every scheduler meets the same \
seeds. A path set is a scenario file whose traffic (except the number of its flows) and duration do not count; a comment \
`# Kind: near/far. Part: mine.` on its first line groups it in the tables.

In a cell, schedulers tie unless they differ by more than 0.5 % and the paired t test over the seeds gives p < 0.05.

Ctrl-C ends the runs, with exit code 130; the cells that are finished are ranked, printed and written to --out.";

/// `anabranch compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Schedulers, separated by commas, with parameters as `NAME(PARAMETER=VALUE)`; unless given, every one, and those forms
    /// with +pr and +or that papers measure
    #[arg(long, value_name = "A[,B…]|all")]
    pub scheduler: Vec<String>,
    /// Congestion controls, separated by commas, each a table of its own; unless given, cubic,lia,bbr, or cubic alone with
    /// --quick
    #[arg(long, value_name = "A[,B…]")]
    pub congestion: Vec<String>,
    /// Applications, separated by commas: bulk, 16 KB, web, 256 KB, 2 MB, 8 MB, frames; all but 16 KB unless given
    #[arg(long, value_name = "A[,B…]", value_delimiter = ',')]
    pub traffic: Vec<String>,
    /// Path sets: every scenario file of this directory instead of the reference grid
    #[arg(long, value_name = "DIR")]
    pub grid: Option<PathBuf>,
    /// Two seeds per cell instead of the scenarios' number
    #[arg(long, conflicts_with = "repeat")]
    pub quick: bool,
    /// Seeds per cell instead of the scenarios' number
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::repeat::<NonZeroU32>)]
    pub repeat: Option<NonZeroU32>,
    /// Threads; one per core unless given
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::threads::<NonZeroUsize>)]
    pub jobs: Option<NonZeroUsize>,
    /// How to print the standings
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// Also open the connections on each path in turn: the cost of the choice of the first path
    #[arg(long)]
    pub first_path: bool,
    /// Also remove slow start, loss, other traffic, the window, the congestion control: the causes of the distance to the oracle
    #[arg(long)]
    pub room: bool,
    /// Also write frontier.json, .csv, .md and .svg into this directory, and the results of --first-path and --room
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Put the tables into this file, between the lines `<!-- NAME -->` and `<!-- /NAME -->`: frontier, frontier-cells, and
    /// first-path and room if these are run; may be given several times
    #[arg(long, value_name = "FILE")]
    pub update: Vec<PathBuf>,
    /// Write the picture into this file: each scheduler's distance from the best by kind of paths and application, as SVG
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}

const MODEL_EXAMPLES: &str = "\
Examples:
  anabranch model
  anabranch model delayed-start --sweep gamma=1..8:0.5
  anabranch model bufferbloat-loss --set bdp=floor --sweep buffer=0,1,8
  anabranch model rtt-cycle --set rate=20mbit --set rtt=30ms --format csv
  anabranch model increment-efficiency --sweep beta=1,2,4 --sweep gamma=1..8
  anabranch model oracle wifi-lte --set path.lte.rate=5mbit

A range is A..B:STEP, A..B*FACTOR or A..B/COUNT; A..B advances by 1, or in tenths of the range where values have a unit. \
Several sweeps give every combination. JSON and CSV have SI units. `anabranch explain NAME` has the equations.";

/// `anabranch model`.
#[derive(Debug, Args)]
pub struct ModelArguments {
    /// Which model; without it, all of them with their parameters
    pub name: Option<String>,
    /// Of `oracle` alone: a scenario file or the name of a built-in scenario
    pub scenario: Option<PathBuf>,
    /// Set a parameter, as in gamma=4.4 or rtt=30ms (of `oracle`, a key of the scenario); may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// One row per value of a parameter, as listed or in a range; may be repeated
    #[arg(long, value_name = "KEY=A,B…|A..B:STEP|A..B*F|A..B/N")]
    pub sweep: Vec<String>,
    /// How to print the rows
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  anabranch list papers
  anabranch reproduce fdps
  anabranch reproduce blest table4 --quick --open
  anabranch reproduce all

Finished runs are kept in the directory: the same command continues where the last one stopped. Ctrl-C ends the runs, with \
exit code 130; items that are finished are printed.

A claim is of the first class that applies:
  open                 the paper leaves out what is needed
  contradicts itself   another place of the paper contradicts it
  trivial, duplicate   it holds whichever scheduler runs, or rests on another claim's datum
  anchor               a baseline's value, by which readings of the set-up are chosen
  below resolution     smaller than the paper's own repetitions can resolve
  reproduces in size   in sign and size under all admissible readings
  direction            in sign or order under all admissible readings
  under some readings  the report names them
  under none           of those that were run";

/// `anabranch reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// A paper of `anabranch list papers`, `all`, or a folder with a claims.toml and the scenarios that it names
    pub paper: PathBuf,
    /// One of its items; all of them unless given
    pub item: Option<String>,
    /// Also run items with kernels at the receiving end, in real time; the duration is printed first. Needs Linux and root
    #[arg(long)]
    pub live: bool,
    /// A quick look: three seeds, shorter runs, only the reading as written
    #[arg(long)]
    pub quick: bool,
    /// Also judge claims in readings that the baselines do not admit, and under other assumptions
    #[arg(long, conflicts_with = "quick")]
    pub readings: bool,
    /// Repetitions instead of the papers'; `auto` adds seeds until the 95 % interval of the main metric is narrow enough
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true, value_parser = number::repetitions)]
    pub repeat: Option<Repetitions>,
    /// Threads; one per core unless given
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::threads::<NonZeroUsize>)]
    pub jobs: Option<NonZeroUsize>,
    /// How to print the verdicts
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// The directory of results, report and finished runs
    #[arg(long, value_name = "DIR", default_value = "reproduction")]
    pub out: PathBuf,
    /// Open the report
    #[arg(long)]
    pub open: bool,
    /// Put one section per paper into this file, between the lines `<!-- reproduction -->` and `<!-- /reproduction -->`, or
    /// the summary between `<!-- reproduction summary -->` and `<!-- /reproduction summary -->`; the pictures go beside it
    #[arg(long, value_name = "FILE")]
    pub update: Vec<PathBuf>,
}

const PARITY_EXAMPLES: &str = "\
Examples:
  anabranch parity wifi-lte --repeat 5
  anabranch parity --grid scenarios/parity --update docs/parity.md

Four modes: two engines in virtual time (sim), engine to Linux, Linux to engine, Linux to Linux; each with the \
kernel's scheduler (linux-default) over all paths, and with plain TCP over each path. Differences are against Linux to \
Linux. Needs Linux with Multipath TCP, and root.

Ctrl-C ends the runs, with exit code 130; the scenarios that are finished are printed and written to --out.";

/// `anabranch parity`.
#[derive(Debug, Args)]
pub struct ParityArguments {
    /// A scenario file or the name of a built-in scenario
    #[arg(required_unless_present = "grid", conflicts_with = "grid")]
    pub scenario: Option<PathBuf>,
    /// Every scenario file of this directory
    #[arg(long, value_name = "DIR")]
    pub grid: Option<PathBuf>,
    /// Congestion controls, separated by commas; the kernel must have them
    #[arg(long, value_name = "A[,B…]", default_values = ["reno", "cubic"])]
    pub congestion: Vec<String>,
    /// Only Multipath TCP over all paths, in the simulator and between two kernels
    #[arg(long)]
    pub brief: bool,
    /// Set a key of the scenario, as in path.wlan.loss=2%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Repetitions of each row
    #[arg(long, value_name = "N", default_value = "3", allow_negative_numbers = true, value_parser = number::repeat::<NonZeroU32>)]
    pub repeat: NonZeroU32,
    /// Runs in real time at once: more finish sooner, but disturb each other when the paths are fast
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = number::threads::<NonZeroUsize>)]
    pub jobs: NonZeroUsize,
    /// How to print the results
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// Also write parity.json and parity.md into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Put the table into this file, between the lines `<!-- parity -->` and `<!-- /parity -->`
    #[arg(long, value_name = "FILE")]
    pub update: Option<PathBuf>,
}

/// `anabranch run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A scenario file or the name of a built-in scenario
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
    /// or delay) is narrower than 2 % of its mean in every row, at most 200
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true, value_parser = number::repetitions)]
    pub repeat: Option<Repetitions>,
    /// Measured time, such as 90s
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Skip the single-path baselines
    #[arg(long)]
    pub no_baselines: bool,
    #[command(flatten)]
    pub output: Output,
    /// Only make and keep the runs of one of N machines, I from 1 to N; `anabranch merge` brings them together
    #[arg(long, value_name = "I/N", requires = "out", value_parser = number::shard, conflicts_with_all = ["realtime", "pcap", "trace", "open"])]
    pub shard: Option<Shard>,
    /// Write captures of the first repetition of each row into this directory
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write every event of the first run as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
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
