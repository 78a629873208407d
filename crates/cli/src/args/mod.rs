//! The command line.

mod advise;
mod analyse;
mod format;
mod infer;
mod links;
mod look_up;
mod playground;
mod run;
mod shell;
mod study;
mod topology;

pub use advise::AdviseArguments;
pub use analyse::{AnalyseArguments, HostName};
pub use format::{Format, ListFormat};
pub use infer::InferArguments;
pub use links::{
    KeyAction, MeasureArguments, NearArguments, PORT, ProxyArguments, ServeArguments, StatusArguments, TrafficName,
    default_socket,
};
pub use look_up::{Catalogue, CheckArguments, ExplainArguments, ListArguments, NewArguments, PlugInKind};
pub use playground::PlaygroundArguments;
pub use run::{
    ArchiveArguments, DemoArguments, FigureArguments, MergeArguments, Output, ReportArguments, RerunArguments,
    RunArguments,
};
pub use shell::ShellArguments;
pub use study::{CompareArguments, ModelArguments, ParityArguments, ReproduceArguments, TraceAction};

pub use topology::{
    CellArguments, CentreArguments, CommonArguments, DumbbellArguments, FatTreeArguments, LeafSpineArguments,
    OliaArguments, OliaBArguments, ParkingLotArguments, TestbedArguments, TopologyArguments, TorusArguments,
    TrafficPattern,
};

use advise::ADVISE_EXAMPLES;
use analyse::ANALYSE_EXAMPLES;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use infer::INFER_EXAMPLES;
use links::{KEY_EXAMPLES, MEASURE_EXAMPLES, PROXY_EXAMPLES, SERVE_EXAMPLES, STATUS_EXAMPLES};
use playground::PLAYGROUND_EXAMPLES;
use run::{ARCHIVE_EXAMPLES, FIGURE_EXAMPLES, MERGE_EXAMPLES, REPORT_EXAMPLES, RERUN_EXAMPLES, RUN_EXAMPLES};
use shell::SHELL_EXAMPLES;
use std::path::PathBuf;
use study::{COMPARE_EXAMPLES, MODEL_EXAMPLES, PARITY_EXAMPLES, REPRODUCE_EXAMPLES, TRACE_EXAMPLES};
use topology::TOPOLOGY_EXAMPLES;

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
    /// Write the manual pages, one per command, into a directory
    #[command(after_help = "Example:\n  anabranch man ~/.local/share/man/man1")]
    Man {
        /// The directory; it is made if it is missing
        folder: PathBuf,
    },
    /// Print the licences of all that is in this program
    #[command(after_help = "Example:\n  anabranch licences | less")]
    Licences,
    /// Run the experiments of a paper, and print the published values beside ours with a verdict for each claim
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(ReproduceArguments),
    /// Find the testbeds in which simulated baselines are those that a paper published or you measured
    #[command(after_help = INFER_EXAMPLES)]
    Infer(InferArguments),
    /// Run all schedulers over a reference grid, and rank them by their distance from the best possible result
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Evaluate a closed-form model, or the best possible result in a scenario
    #[command(after_help = MODEL_EXAMPLES)]
    Model(ModelArguments),
    /// Say whether to use several links together, and by which scheduler
    #[command(after_help = ADVISE_EXAMPLES)]
    Advise(AdviseArguments),
    /// Say what Multipath TCP connections did, from captures of their packets
    #[command(after_help = ANALYSE_EXAMPLES)]
    Analyse(AnalyseArguments),
    /// Make a trace of a recording in another format, or draw one
    #[command(after_help = TRACE_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Trace {
        /// The action
        #[command(subcommand)]
        action: TraceAction,
    },
    /// Run a scenario in the simulator and with Linux at either end, and show how much the results differ
    #[command(after_help = PARITY_EXAMPLES)]
    Parity(Box<ParityArguments>),
    /// Serve a page that simulates in the browser: sketch paths, watch packets, compare schedulers
    #[command(after_help = PLAYGROUND_EXAMPLES)]
    Playground(PlaygroundArguments),
    /// Print a scenario of many hosts: a dumbbell, a data centre, the scenarios of papers
    #[command(after_help = TOPOLOGY_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Topology {
        /// The name
        #[command(subcommand)]
        name: Box<TopologyArguments>,
    },
    /// Create a scheduler in a checkout of the repository: its file and its registry lines
    #[command(after_help = "Example:\n  anabranch new scheduler my-rule")]
    New(NewArguments),
    /// Make a key for a real link, or show its public part
    #[command(after_help = KEY_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Key {
        /// The action
        #[command(subcommand)]
        action: KeyAction,
    },
    /// Serve clients over real links: the far end of `measure` and `proxy`, encrypted; or Multipath TCP for any client
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArguments),
    /// Carry the connections of programs over several interfaces at once: a SOCKS5 proxy, and forwarded ports
    #[command(after_help = PROXY_EXAMPLES)]
    Proxy(Box<ProxyArguments>),
    /// Show the state of a running `serve` or `proxy`
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArguments),
    /// Measure schedulers over your own network interfaces, between this host and a server
    #[command(after_help = MEASURE_EXAMPLES)]
    Measure(Box<MeasureArguments>),
    /// Merge the shards of a command into the results of one run
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArguments),
    /// Repeat the runs of a results directory, and show the differences
    #[command(after_help = RERUN_EXAMPLES)]
    Rerun(RerunArguments),
    /// Draw a figure of a results directory as PDF or SVG, as wide as a paper's column
    #[command(after_help = FIGURE_EXAMPLES)]
    Figure(FigureArguments),
    /// Put a results directory into one file, to be kept beside a paper
    #[command(after_help = ARCHIVE_EXAMPLES)]
    Archive(ArchiveArguments),
    /// Make the HTML report of a results directory
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
}

impl Command {
    /// Whether runs of single paths may come from earlier commands.
    pub fn is_cached(&self) -> bool {
        let cache = match self {
            Self::Demo(arguments) => &arguments.cache,
            Self::Run(arguments) => &arguments.cache,
            Self::Compare(arguments) => &arguments.cache,
            _ => return false,
        };
        !cache.no_cache
    }
}
