//! Arguments of `anabranch shell`.

use super::run::PreflightArguments;
use crate::number;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const SHELL_EXAMPLES: &str = "\
Examples:
  anabranch shell 3g-wlan
  anabranch shell 3g-wlan --server 'iperf3 -s' -- iperf3 -c 10.0.0.2
  anabranch shell 3g-wlan --server 'python3 -m http.server 8000' -- \\
      sh -c 'mptcpize run curl -O http://$ANABRANCH_SERVER:8000/some.iso'

CMD runs in a network namespace that has an address on each path; the server's namespace has one address, which all \
paths reach. Multipath TCP is on in both: a program that opens sockets of protocol 262 (IPPROTO_MPTCP), or `mptcpize \
run PROGRAM`, uses all paths; TCP, UDP and ICMP take the first. Time 0 of outages and of the timeline is the start of \
CMD. Programs are the traffic: the scenario's own traffic, scheduler and duration are ignored; its cross traffic \
runs. This needs root, or a user who may make user namespaces and open /dev/net/tun.

CMD gets the terminal, and its exit code becomes that of this command (127 if CMD cannot be started). The network stays until \
CMD's data has arrived and the server has read it. After half a minute without an arrival, or on Ctrl-C, the lost data is \
reported on standard error. Programs that CMD or the server left running are ended. A table of the traffic on each path follows \
on standard error.

Variables for CMD and server:
  ANABRANCH_SERVER       the server's address; with paths of both IP versions
                         also ANABRANCH_SERVER_IPV4 and ANABRANCH_SERVER_IPV6
  ANABRANCH_CLIENT_NAME  the client's address on path NAME (capitals, _)
  ANABRANCH_CLIENT_NS    the client's namespace, for
                         `nsenter --net=FILE` in another terminal
  ANABRANCH_SERVER_NS    the server's";

/// `anabranch shell`.
#[derive(Debug, Args)]
pub struct ShellArguments {
    /// A scenario file, the name of a built-in scenario, or `-` for standard input
    pub scenario: PathBuf,
    /// A command line for `sh` in the server's namespace, started first and ended last. It must stay in the foreground;
    /// its output goes to standard error
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
