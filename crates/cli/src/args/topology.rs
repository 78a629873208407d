//! Arguments of `anabranch topology`.

use anabranch_scenario::parse_rate;
use anabranch_units::Rate;
use clap::{Args, Subcommand, ValueEnum};

pub(super) const TOPOLOGY_EXAMPLES: &str = "\
Examples:
  anabranch topology dumbbell > dumbbell.toml && anabranch run dumbbell.toml
  anabranch topology olia-c --c1 2mbit | anabranch run - --congestion lia,olia
  anabranch topology fat-tree --k 4 --subflows 4 | anabranch run -

Each topology has flags of its own: `anabranch topology fat-tree --help`.";

/// Flags of every topology.
#[derive(Clone, Debug, Args)]
pub struct CommonArguments {
    /// Congestion control of the pairs with Multipath TCP
    #[arg(long, default_value = "lia")]
    pub congestion: String,
    /// Measured time
    #[arg(long, default_value = "30s", value_name = "TIME")]
    pub duration: String,
    /// Time before it
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub warmup: String,
}

/// The names.
#[derive(Clone, Debug, Subcommand)]
pub enum TopologyArguments {
    /// Pairs with two subflows and pairs with TCP, all over one bottleneck
    #[command(after_help = "Example:\n  anabranch topology dumbbell --multipath 8 --single 2 --queue 50p")]
    Dumbbell(DumbbellArguments),
    /// Links in a row: some pairs cross all of them, others one each
    #[command(after_help = "Example:\n  anabranch topology parking-lot --links 5")]
    ParkingLot(ParkingLotArguments),
    /// Scenario A of Khalili et al. (CoNEXT 2012): a server and an access point, which single-path users share
    #[command(after_help = "Example:\n  anabranch topology olia-a --n1 20 --n2 10 --c1 1mbit --c2 1mbit")]
    OliaA(OliaArguments),
    /// Scenario B of Khalili et al.: two providers, four paths, of which one crosses both
    #[command(after_help = "Example:\n  anabranch topology olia-b --cx 27mbit --ct 36mbit")]
    OliaB(OliaBArguments),
    /// Scenario C of Khalili et al.: an access point for multipath users alone, and one that single-path users share
    #[command(after_help = "Example:\n  anabranch topology olia-c --n1 10 --n2 10 --c1 2mbit --c2 1mbit")]
    OliaC(OliaArguments),
    /// Links in a ring, with a pair over each two neighbours (Wischik et al., NSDI 2011)
    #[command(after_help = "Example:\n  anabranch topology torus --narrow 3mbit")]
    Torus(TorusArguments),
    /// Homes with lines of their own and phones without, behind one cell
    #[command(after_help = "Example:\n  anabranch topology cell --homes 10 --phones 0")]
    Cell(CellArguments),
    /// Leaves with hosts, each with a cable to each spine
    #[command(
        after_help = "Example:\n  anabranch topology leaf-spine --leaves 8 --spines 2 --traffic incast --size 64KB"
    )]
    LeafSpine(LeafSpineArguments),
    /// Three layers of equal switches with k ports, for k³/4 hosts
    #[command(after_help = "Example:\n  anabranch topology fat-tree --k 8 --subflows 8 --rate 100mbit")]
    FatTree(FatTreeArguments),
}

/// `anabranch topology dumbbell`.
#[derive(Clone, Debug, Args)]
pub struct DumbbellArguments {
    /// Pairs with Multipath TCP
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub multipath: u32,
    /// Pairs with TCP
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub single: u32,
    /// Rate of the bottleneck
    #[arg(long, default_value = "100mbit")]
    pub rate: String,
    /// One-way delay of the bottleneck
    #[arg(long, default_value = "20ms", value_name = "TIME")]
    pub delay: String,
    /// Queue of the bottleneck
    #[arg(long, default_value = "1bdp")]
    pub queue: String,
    /// Flags of all topologies
    #[command(flatten)]
    pub common: CommonArguments,
}

/// `anabranch topology parking-lot`.
#[derive(Clone, Debug, Args)]
pub struct ParkingLotArguments {
    /// Links in the row
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=30))]
    pub links: u32,
    /// Pairs over all links
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=300))]
    pub through: u32,
    /// Pairs over each link alone
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=300))]
    pub local: u32,
    /// Rate of each link
    #[arg(long, default_value = "20mbit")]
    pub rate: String,
    /// One-way delay of each link
    #[arg(long, default_value = "10ms", value_name = "TIME")]
    pub delay: String,
    /// Queue of each link
    #[arg(long, default_value = "1bdp")]
    pub queue: String,
    /// Flags of all topologies
    #[command(flatten)]
    pub common: CommonArguments,
}

/// `anabranch topology olia-a` and `olia-c`.
#[derive(Clone, Debug, Args)]
pub struct OliaArguments {
    /// Users with two paths
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub n1: u32,
    /// Users with one path
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub n2: u32,
    /// Rate per user with two paths, of the bottleneck that they alone have
    #[arg(long, default_value = "1mbit", value_parser = rate)]
    pub c1: Rate,
    /// Rate per user with one path, of the bottleneck that all share
    #[arg(long, default_value = "1mbit", value_parser = rate)]
    pub c2: Rate,
    /// Flags of all three scenarios
    #[command(flatten)]
    pub testbed: TestbedArguments,
}

/// `anabranch topology olia-b`.
#[derive(Clone, Debug, Args)]
pub struct OliaBArguments {
    /// Users of each colour
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub users: u32,
    /// Rate of provider X
    #[arg(long, default_value = "27mbit", value_parser = rate)]
    pub cx: Rate,
    /// Rate of provider T
    #[arg(long, default_value = "36mbit", value_parser = rate)]
    pub ct: Rate,
    /// Red users keep their one path
    #[arg(long)]
    pub single: bool,
    /// Flags of all three scenarios
    #[command(flatten)]
    pub testbed: TestbedArguments,
}

/// Flags of the testbed of Khalili et al.
#[derive(Clone, Debug, Args)]
pub struct TestbedArguments {
    /// One-way delay of each path
    #[arg(long, default_value = "40ms", value_name = "TIME")]
    pub delay: String,
    /// Queue of each bottleneck; unless given, RED with thresholds in proportion to the rate, as in the paper
    #[arg(long)]
    pub queue: Option<String>,
    /// Flags of all topologies
    #[command(flatten)]
    pub common: CommonArguments,
}

/// `anabranch topology torus`.
#[derive(Clone, Debug, Args)]
pub struct TorusArguments {
    /// Links in the ring, and pairs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..=50))]
    pub links: u32,
    /// Rate of each link
    #[arg(long, default_value = "12mbit")]
    pub rate: String,
    /// Rate of the third link; that of all unless given
    #[arg(long, value_name = "RATE")]
    pub narrow: Option<String>,
    /// One-way delay of each link
    #[arg(long, default_value = "50ms", value_name = "TIME")]
    pub delay: String,
    /// Queue of each link
    #[arg(long, default_value = "1bdp")]
    pub queue: String,
    /// Flags of all topologies
    #[command(flatten)]
    pub common: CommonArguments,
}

/// `anabranch topology cell`.
#[derive(Clone, Debug, Args)]
pub struct CellArguments {
    /// Homes, each with a line and the cell
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub homes: u32,
    /// Phones, with the cell alone
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=4000))]
    pub phones: u32,
    /// Rate of the cell
    #[arg(long, default_value = "100mbit", value_name = "RATE")]
    pub cell: String,
    /// Rate of each home's line
    #[arg(long, default_value = "16mbit", value_name = "RATE")]
    pub line: String,
    /// Flags of all topologies
    #[command(flatten)]
    pub common: CommonArguments,
}

/// `anabranch topology leaf-spine`.
#[derive(Clone, Debug, Args)]
pub struct LeafSpineArguments {
    /// Switches to which hosts connect
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub leaves: u32,
    /// Switches among the leaves
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub spines: u32,
    /// Hosts of each leaf
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub hosts: u32,
    /// Flags of all data centres
    #[command(flatten)]
    pub centre: CentreArguments,
}

/// `anabranch topology fat-tree`.
#[derive(Clone, Debug, Args)]
pub struct FatTreeArguments {
    /// Ports of each switch: an even number
    #[arg(long, default_value_t = 4, value_parser = ports)]
    pub k: u32,
    /// Flags of all data centres
    #[command(flatten)]
    pub centre: CentreArguments,
}

/// Flags of every data centre.
#[derive(Clone, Debug, Args)]
pub struct CentreArguments {
    /// Senders and their receivers
    #[arg(long, value_enum, default_value_t = TrafficPattern::Permutation)]
    pub traffic: TrafficPattern,
    /// Pairs; one per host unless given, one less for incast
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: Option<u32>,
    /// Subflows of each pair, each over a way of its own; 1 = TCP
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub subflows: u32,
    /// Bytes that each pair transfers; without end unless given
    #[arg(long)]
    pub size: Option<String>,
    /// Rate of each cable
    #[arg(long, default_value = "100mbit")]
    pub rate: String,
    /// One-way delay of each cable
    #[arg(long, default_value = "20us", value_name = "TIME")]
    pub delay: String,
    /// Queue of each port
    #[arg(long, default_value = "100p")]
    pub queue: String,
    /// Congestion control
    #[arg(long, default_value = "lia")]
    pub congestion: String,
    /// Measured time
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub duration: String,
    /// Time before it
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub warmup: String,
    /// Seed of the pairs and of the switches' hashes
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = crate::number::seed)]
    pub seed: u64,
}

/// Senders and their receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrafficPattern {
    /// Each host sends to one other
    Permutation,
    /// All send to one
    Incast,
    /// Both ends are drawn
    Random,
}

fn rate(text: &str) -> Result<Rate, String> {
    parse_rate(text).ok_or_else(|| "expected a rate above zero, such as 25mbit".to_owned())
}

fn ports(text: &str) -> Result<u32, String> {
    let ports = text.parse().ok().filter(|k: &u32| (2..=16).contains(k) && k.is_multiple_of(2));
    ports.ok_or_else(|| "expected an even number from 2 to 16".to_owned())
}
