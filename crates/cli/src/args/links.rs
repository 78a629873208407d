//! Arguments of the commands for real links.

use super::run::Output;
use crate::number;
use anabranch_workbench::making::Repetitions;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) const KEY_EXAMPLES: &str = "\
Examples:
  anabranch key new laptop.key
  anabranch key show laptop.key
  anabranch key show laptop.key --authorize laptop >> authorized

A key file has a private key and a pre-shared key; only its owner may read it (mode 0600). docs/links.md describes real links.";

/// `anabranch key`.
#[derive(Debug, Subcommand)]
pub enum KeyAction {
    /// Write a new key to a file, and print its public half
    New {
        /// A file that does not exist yet
        file: PathBuf,
    },
    /// Print the public half of a key
    Show {
        /// The key's file
        file: PathBuf,
        /// Print the line for a server's list of authorised keys instead. The line has the pre-shared key: it is a secret
        #[arg(long, value_name = "NAME")]
        authorize: Option<String>,
    },
}

/// The port of a server unless another is given.
pub const PORT: u16 = 51_900;

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  anabranch key new server.key
  anabranch serve --measure
  anabranch serve --proxy --allow 192.168.7.0/24
  sudo anabranch serve --native --via eth0,eth1 --forward 8080:127.0.0.1:80

Only clients whose keys are in the list of authorised keys are served. `anabranch key show CLIENT.KEY --authorize NAME` prints a \
client's line. The server does not reply to other hosts. It needs no root, and ends on Ctrl-C or SIGTERM. docs/links.md has an \
example.

With --native there are no keys: any host may connect to the ports of --forward at the addresses of --via, by its kernel's \
Multipath TCP, or by TCP, over IPv4. Each connection goes to the target of its port; --scheduler applies to data for the client. \
The other addresses are announced to the client. Only programs encrypt. The command adds devices, routes and nftables rules while \
it runs. For these it needs `ip`, `nft` and root; the process that serves clients gives up root. docs/native-machine.md says what it changes.";

/// `anabranch serve`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("carrying").args(["proxy", "native"])))]
pub struct ServeArguments {
    /// Where to listen: an address of this host and a UDP port
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:51900")]
    pub listen: SocketAddr,
    /// The list of authorised keys
    #[arg(long, value_name = "FILE", default_value = "authorized")]
    pub authorized: PathBuf,
    /// The server's key
    #[arg(long, value_name = "FILE", default_value = "server.key")]
    pub key: PathBuf,
    /// UNIX socket to create for `anabranch status`. Default: status.sock in $RUNTIME_DIRECTORY (systemd), else
    /// anabranch.sock in $XDG_RUNTIME_DIR, else none
    #[arg(long, value_name = "FILE")]
    pub socket: Option<PathBuf>,
    /// Let all clients in the list measure: the server sends the data of their runs
    #[arg(long)]
    pub measure: bool,
    /// Be the far end of the clients' proxies: the server dials the targets of their connections
    #[arg(long)]
    pub proxy: bool,
    /// Dial these addresses too, although they are not public; may be repeated
    #[arg(long, value_name = "CIDR", value_delimiter = ',', requires = "proxy")]
    pub allow: Vec<String>,
    /// Multipath TCP on the wire, for clients of any kind, without keys; needs root for the setup
    #[arg(long, conflicts_with_all = ["measure", "listen", "authorized", "key"], requires = "via", requires = "forward")]
    pub native: bool,
    /// The interfaces at whose addresses clients reach --native, separated by commas
    #[arg(long, value_name = "A[,B…]", value_delimiter = ',', requires = "native")]
    pub via: Vec<String>,
    /// A port of these interfaces, and the target of its connections: PORT:HOST:PORT; may be repeated
    #[arg(long, value_name = "PORT:HOST:PORT", requires = "native")]
    pub forward: Vec<String>,
    /// Scheduler of the data that --native sends to clients
    #[arg(long, value_name = "NAME", default_value = "minrtt", requires = "native")]
    pub scheduler: String,
    /// Congestion control of the data that --proxy or --native sends to clients
    #[arg(long, value_name = "NAME", default_value = "cubic", requires = "carrying")]
    pub congestion: String,
    /// How long a connection of --proxy or --native survives without any path
    #[arg(long, value_name = "T", default_value = "60s", requires = "carrying")]
    pub orphan_timeout: String,
    /// Proxied connections do not use ECN: for networks that drop packets which can be marked
    #[arg(long, requires = "proxy")]
    pub no_ecn: bool,
}

pub(super) const PROXY_EXAMPLES: &str = "\
Examples:
  anabranch proxy example.net --via wlan0,usb0 --server-key KEY
  curl --proxy socks5h://127.0.0.1:1080 https://example.org/file -o file
  anabranch proxy example.net --via wlan0,usb0 --server-key KEY \\
      --rules rules --forward 8080:intranet.example:80
  sudo anabranch proxy --native --via wlan0,usb0

SERVER runs `anabranch serve --proxy`; KEY is the output of `anabranch key show server.key` there. Each connection of a program \
is one Multipath TCP connection to the server, over all interfaces; the server dials its target. Programs reach the proxy by SOCKS5 \
(CONNECT, names resolved by the server), or at a port of this host that --forward gives to a target.

Each line of --rules is a rule HOST PORTS KEY=VALUE…, such as `*.example.net 443 scheduler=blest path.usb0.backup=true`. The first matching rule applies. \
SIGHUP reloads the file. Interfaces may go down and come up; missing ones are used as soon as they come up. docs/proxy.md has the details.

With --native there is no server: each connection is one Multipath TCP connection to the target itself, by IPv4. A Linux server \
with Multipath TCP uses all interfaces; other servers get plain TCP over one interface. Only programs encrypt. Devices, \
routes and nftables rules are made for the time that it runs; it needs `ip` and `nft`, and root for them; what serves programs gives root up. docs/native-machine.md says what it changes.";

/// This host's part of a real link.
#[derive(Debug, Args)]
pub struct NearArguments {
    /// The interfaces to use, separated by commas
    #[arg(long, value_name = "A[,B…]", value_delimiter = ',', required = true)]
    pub via: Vec<String>,
    /// Our key
    #[arg(long, value_name = "FILE", default_value = "client.key")]
    pub key: PathBuf,
}

/// `anabranch proxy`.
#[derive(Debug, Args)]
pub struct ProxyArguments {
    /// The server's name or address, with its UDP port unless that is 51900
    #[arg(required_unless_present = "native")]
    pub server: Option<String>,
    #[command(flatten)]
    pub near: NearArguments,
    /// The server's public key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, required_unless_present = "native")]
    pub server_key: Option<String>,
    /// Multipath TCP on the wire, straight to the targets, without a server; needs root for the setup
    #[arg(long, conflicts_with_all = ["server", "server_key", "key"])]
    pub native: bool,
    /// Where programs reach the proxy by SOCKS5; may be repeated. 127.0.0.1:1080 unless --forward is given
    #[arg(long, value_name = "ADDR:PORT")]
    pub socks: Vec<SocketAddr>,
    /// A port of this host, and the target of its connections: [ADDR:]PORT:HOST:PORT; may be repeated
    #[arg(long, value_name = "PORT:HOST:PORT")]
    pub forward: Vec<String>,
    /// Users of --socks, USER:PASSWORD in each line (mode 0600): needed where other hosts can reach the port
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// Scheduler of connections without a rule that sets one
    #[arg(long, value_name = "NAME", default_value = "minrtt")]
    pub scheduler: String,
    /// Congestion control of the data that this host sends
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub congestion: String,
    /// Schedulers and policies of the paths, by target
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// How long a connection survives without any path; the server has its own
    #[arg(long, value_name = "T", default_value = "60s")]
    pub orphan_timeout: String,
    /// Connections to the server do not use ECN: for networks that drop packets which can be marked
    #[arg(long, conflicts_with = "native")]
    pub no_ecn: bool,
    /// Where `anabranch status` finds the proxy: as with `serve`
    #[arg(long, value_name = "FILE")]
    pub socket: Option<PathBuf>,
}

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  anabranch status
  anabranch status --json --socket /run/anabranch/status.sock

The output has, for each client with a session, the scheduler of the current run. For each path it has the address, smoothed RTT, \
rate in the last second, share of the payload, retransmitted share and congestion windows. --json also has the \
counts of what the server refused.";

/// `anabranch status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The server's socket, as given to `serve`
    #[arg(long, value_name = "FILE")]
    pub socket: Option<PathBuf>,
}

/// The socket unless one is given.
pub fn default_socket() -> Option<PathBuf> {
    let of = |variable, name| {
        std::env::var_os(variable).filter(|value| !value.is_empty()).map(|folder| PathBuf::from(folder).join(name))
    };
    of("RUNTIME_DIRECTORY", "status.sock").or_else(|| of("XDG_RUNTIME_DIR", "anabranch.sock"))
}

pub(super) const MEASURE_EXAMPLES: &str = "\
Examples:
  anabranch measure example.net --via wlan0,usb0 --server-key KEY
  anabranch measure example.net --via wlan0,usb0 --server-key KEY \\
      --scheduler minrtt,blest --congestion lia --repeat 20 --out results

SERVER runs `anabranch serve --measure`; KEY is the output of `anabranch key show server.key` there. The server sends, this host \
receives; with --set traffic.direction=up this host sends, with both each does. Metrics, tables and files are those of `anabranch run`. Each path is measured right before each run: idle_rtt_s, \
idle_jitter_s and idle_loss_ratio. The rows single:INTERFACE have the goodput of each path alone. Metrics that need the capacity or the queue of a path (oracle_ratio, utilisation, queue_max_packets) are \
absent.

Real networks change during a measurement. So each repetition runs every row, in a random order, and compares rows within the \
repetition. The first interface opens connections. Other programs should not use the interfaces meanwhile. An interrupted command prints what is \
finished; it cannot be continued.

Before the runs each path is surveyed, for about three seconds (with --record eleven, unless the rows single:INTERFACE are \
downloads); the scenario in --out has its rates and delays. --record makes a better scenario, and compares the results with those \
of `anabranch run` on it. docs/measure.md describes how it is made.";

/// `anabranch measure`.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// The server's name or address, with its UDP port unless that is 51900
    pub server: String,
    #[command(flatten)]
    pub near: NearArguments,
    /// The server's public key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub server_key: String,
    /// Schedulers, separated by commas; `NAME(PARAMETER=VALUE)` sets a parameter
    #[arg(long, value_name = "A[,B…]|all", default_value = "minrtt")]
    pub scheduler: Vec<String>,
    /// Congestion controls, in the same notation
    #[arg(long, value_name = "A[,B…]|all", default_value = "cubic")]
    pub congestion: Vec<String>,
    /// The application
    #[arg(long, value_enum, default_value_t)]
    pub traffic: TrafficName,
    /// Duration of each run, 10s by default; a run of a web page ends with the page
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Set a key of the scenario, as in connection.mss=1360 or traffic.size=64MiB; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Repetitions; `auto` adds repetitions until the 95 % interval is narrower than 2 % of the mean, at most 200
    #[arg(long, value_name = "N|auto", default_value = "5", allow_negative_numbers = true, value_parser = number::repetitions)]
    pub repeat: Repetitions,
    /// Seed of the order of the runs and of random traffic
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = number::seed)]
    pub seed: u64,
    /// Skip the single-path baselines
    #[arg(long)]
    pub no_baselines: bool,
    /// Write a scenario of the paths for `anabranch run`, with traces beside it, from the downloads over each path alone;
    /// and print how well the simulator predicts the results
    #[arg(long, value_name = "FILE.toml")]
    pub record: Option<PathBuf>,
    /// Write captures of this host's packets, decrypted, of the first repetition of each row into this directory
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write every event of the first run, of both hosts, as lines of JSON
    #[arg(long, value_name = "FILE", alias = "trace")]
    pub events: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// The applications of `anabranch measure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TrafficName {
    /// As much as the paths carry
    #[default]
    Bulk,
    /// A frame of 20 KB every 20 ms: 8 Mbit/s
    Frames,
    /// A page of 100 objects, 2 MB in all
    Web,
    /// Responses of 10 KB, each requested 100 ms after the one before
    Request,
}
