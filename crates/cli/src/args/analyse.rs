//! `analyse`.

use super::format::ListFormat;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub(super) const ANALYSE_EXAMPLES: &str = "\
Examples:
  anabranch run wifi-lte --scheduler minrtt --repeat 1 --pcap captures
  anabranch analyse captures/*.pcapng
  anabranch analyse captures/*.client.pcapng --connection 1 --format json

Reads pcap and pcapng: Ethernet with VLAN tags, Linux cooked (`any`), raw IP, TUN and loopback; headers alone are enough \
(tcpdump -s 128). Files are merged by time.";

/// A host of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostName {
    /// The one that opens connections.
    Client,
    /// The one that is called.
    Server,
}

/// `anabranch analyse`.
#[derive(Debug, Args)]
pub struct AnalyseArguments {
    /// Captures, of one end or of both
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<PathBuf>,
    /// Beside which host they were captured; unless given, the first round trip decides
    #[arg(long, value_enum, value_name = "HOST")]
    pub host: Option<HostName>,
    /// Only the connection of this number
    #[arg(long, value_name = "N")]
    pub connection: Option<u32>,
    /// Most connections that are described; the rest is counted
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub most: usize,
    /// How to print the analysis
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}
