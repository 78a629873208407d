//! Arguments of the commands that compare: over a grid, with equations, with papers, with kernels.

use super::format::{Format, ListFormat};
use super::run::CacheArguments;
use crate::number;
use anabranch_workbench::making::Repetitions;
use clap::{Args, Subcommand};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  anabranch compare --quick
  anabranch compare --scheduler minrtt,blest --congestion lia --traffic web
  anabranch compare --grid my-paths --out results
  anabranch compare --first-path --room --out results
  anabranch compare --wavering --quick

The reference grid is 53 path sets (scenarios/frontier) with six applications each: unlimited bulk, a web page of 1 MB, \
transfers of 256 KB, 2 MB and 8 MB, and frames 25 times per second that fill 60 % of the paths; 16 KB runs only on \
request. The basic part has paths that never change; the extended part asymmetric delays, changing capacity, handovers, small \
windows, fast and shared paths, several connections, uploads, a sender's own device, prices. Every scheduler meets the same \
seeds. A path set is a scenario file; its duration and its traffic, except the number of flows, are ignored. A comment \
`# Kind: near/far. Part: mine.` on its first line groups it in the tables.

In a cell, schedulers tie unless they differ by more than 0.5 % and the paired t test over the seeds gives p < 0.05.

Ctrl-C ends the runs, with exit code 130; the cells that are finished are ranked, printed and written to --out.";

/// `anabranch compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Schedulers, separated by commas, with parameters as `NAME(PARAMETER=VALUE)`; unless given, every one, and the +pr and
    /// +or forms that papers measure
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
    /// The 24 wavering path sets instead of the reference grid: jitter, rates that step, paths that come and go, policers
    #[arg(long, conflicts_with = "grid")]
    pub wavering: bool,
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
    /// Also open the connections on each path in turn, to show what the choice of the first path costs
    #[arg(long)]
    pub first_path: bool,
    /// Also remove slow start, loss, other traffic, the window, the congestion control: the causes of the distance to the oracle
    #[arg(long)]
    pub room: bool,
    /// Also run each scheduler that measures capacities with the true capacities, as `known-rates+NAME`. Connections that
    /// share a bottleneck get equal parts, and a path in an outage has no capacity
    #[arg(long, conflicts_with_all = ["update", "picture", "room", "first_path"])]
    pub known_rates: bool,
    #[command(flatten)]
    pub cache: CacheArguments,
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

pub(super) const MODEL_EXAMPLES: &str = "\
Examples:
  anabranch model
  anabranch model delayed-start --sweep gamma=1..8:0.5
  anabranch model bufferbloat-loss --set bdp=floor --sweep buffer=0,1,8
  anabranch model rtt-cycle --set rate=20mbit --set rtt=30ms --format csv
  anabranch model increment-efficiency --sweep beta=1,2,4 --sweep gamma=1..8
  anabranch model oracle wifi-lte --set path.lte.rate=5mbit

A range is A..B:STEP, A..B*FACTOR or A..B/COUNT; A..B advances by 1, or in tenths of the range where values have a unit. \
Several sweeps give every combination. JSON and CSV have SI units. `anabranch explain NAME` has the equations.";

/// `anabranch trace`.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Recognise a recording, and print it as a trace in CSV
    Convert {
        /// A recording: mahimahi, Pensieve, an HSDPA log, a 5G drive test, Starlink RTT, iperf3, irtt or ping
        file: PathBuf,
        /// Write the trace to this file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Draw a trace, or a recording in a format that `convert` knows
    Show {
        /// The trace
        file: PathBuf,
        /// Also write the picture to this file, as SVG
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

pub(super) const TRACE_EXAMPLES: &str = "\
Examples:
  anabranch trace convert drive.log --out drive.csv
  anabranch trace show drive.csv
  ping -D 192.0.2.1 > ping.txt; anabranch trace convert ping.txt";

/// `anabranch model`.
#[derive(Debug, Args)]
pub struct ModelArguments {
    /// Which model; without it, all of them with their parameters
    pub name: Option<String>,
    /// For `oracle` only: a scenario file or the name of a built-in scenario
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

pub(super) const REPRODUCE_EXAMPLES: &str = "\
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
    /// Replace the results of a scenario in --out
    #[arg(long)]
    pub force: bool,
    /// Open the report
    #[arg(long)]
    pub open: bool,
    /// Put one section per paper into this file, between the lines `<!-- reproduction -->` and `<!-- /reproduction -->`, or
    /// the summary between `<!-- reproduction summary -->` and `<!-- /reproduction summary -->`; the pictures go beside it
    #[arg(long, value_name = "FILE")]
    pub update: Vec<PathBuf>,
}

pub(super) const PARITY_EXAMPLES: &str = "\
Examples:
  anabranch parity wifi-lte --repeat 5
  anabranch parity --grid scenarios/parity --update docs/lab/parity.md

Four modes: two engines in virtual time (sim), engine to Linux, Linux to engine, Linux to Linux; each with the \
kernel's scheduler (linux-default) over all paths, and with plain TCP over each path. Differences are against Linux to \
Linux. Engines act as kernels: hosts.sender_model and hosts.receiver_model are linux unless --set says otherwise, and cubic \
is cubic(linux=true). Needs Linux with Multipath TCP, and root.

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
    /// Number of simultaneous runs in real time; more of them finish sooner, but disturb each other on fast paths
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
