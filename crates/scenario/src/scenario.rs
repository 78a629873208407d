//! A checked scenario: every default filled in, every name resolved.

use anabranch_engine::Settings;
use anabranch_engine::schedule::PathPolicy;
use anabranch_network::{Change, Topology};
use anabranch_units::{Direction, Duration, Instant, Rate};

/// One experiment. `scheduler` × `congestion` × `sweep` cells × `repeat` seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Title.
    pub name: String,
    /// Measured time after the warm-up; `None` = until all traffic is delivered.
    pub duration: Option<Duration>,
    /// Discarded time before it.
    pub warmup: Duration,
    /// Seed of repetition 0; repetition r uses `seed + r`.
    pub seed: u64,
    /// Repetitions.
    pub repeat: u32,
    /// When the traffic starts, warm-up included.
    pub start: Duration,
    /// It starts later by a random time in `[0, start_jitter)`.
    pub start_jitter: Duration,
    /// Schedulers to run; one unless the command line or a sweep says otherwise.
    pub scheduler: PlugIn,
    /// Congestion control.
    pub congestion: PlugIn,
    /// The stack of other years whose defaults `settings` has, where the file says no other.
    pub era: Option<&'static str>,
    /// Buffers, MSS, TCP.
    pub settings: Settings,
    /// Paths and shared links; queues given in BDP are resolved to bytes.
    pub topology: Topology,
    /// Paths that are only backups, by index.
    pub backup: Vec<bool>,
    /// Price, cap and weight, by path index.
    pub policy: Vec<PathPolicy>,
    /// What the application does.
    pub traffic: Vec<Traffic>,
    /// Other flows.
    pub cross: Vec<Cross>,
    /// Changes while it runs.
    pub timeline: Vec<TimelineEntry>,
    /// Which hosts are engines and which the Linux kernel.
    pub hosts: Hosts,
}

/// A scheduler or congestion control by its canonical name, with the parameters that were given.
#[derive(Clone, Debug, PartialEq)]
pub struct PlugIn {
    /// Canonical name; a scheduler's may end in `+pr` or `+or`.
    pub name: String,
    /// Parameters that differ from the defaults or were written.
    pub parameters: Vec<(String, f64)>,
}

/// What the application does, on how many connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// What it does.
    pub kind: TrafficKind,
    /// How many of it there are at a time, each on a connection of its own; at least 1. A page is one.
    pub flows: u32,
    /// When they begin.
    pub arrivals: Arrivals,
}

/// What an application does on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficKind {
    /// The server sends as much as it can; `size` bytes, or until the end.
    Bulk {
        /// Bytes; `None` = until the end.
        size: Option<u64>,
    },
    /// The server writes a frame at a steady pace, the first when the connection is established.
    Frames {
        /// Bytes of a frame.
        size: u64,
        /// Time from one frame to the next.
        interval: Duration,
        /// How many; `None` = until the end.
        count: Option<u64>,
    },
    /// The client asks, the server answers, one after the other on the same connection.
    Request {
        /// Bytes of a request.
        request: u64,
        /// Bytes of a response.
        size: u64,
        /// Time from a response to the next request.
        interval: Duration,
        /// How many; `None` = until the end.
        count: Option<u64>,
    },
    /// The client asks for a page's objects over several connections that share them out.
    Web {
        /// Bytes of all objects together.
        size: u64,
        /// How many objects; at most `size`.
        objects: u32,
        /// How many connections at a time.
        connections: u32,
        /// How long they last.
        connections_per: ConnectionsPer,
        /// How `size` is shared out.
        sizes: ObjectSizes,
        /// Bytes of a request.
        request: u64,
    },
}

/// What a connection of a page serves for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionsPer {
    /// The whole page: all connections open at the start and share the objects out.
    Page,
    /// One object: another connection opens as soon as an object is whole.
    Object,
}

/// How the bytes of a page are shared out among its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectSizes {
    /// As equal as can be.
    Equal,
    /// Lognormal, drawn anew with each seed.
    Lognormal,
}

/// When flows begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// All at the start.
    Together,
    /// Poisson arrivals from the start on.
    Poisson {
        /// Mean arrivals per second, above zero.
        rate: f64,
    },
}

impl From<TrafficKind> for Traffic {
    /// One flow.
    fn from(kind: TrafficKind) -> Self {
        Self { kind, flows: 1, arrivals: Arrivals::Together }
    }
}

impl TrafficKind {
    /// Bytes that the server sends; `None` = until the end.
    pub fn total(&self) -> Option<u64> {
        match self {
            Self::Bulk { size } => *size,
            Self::Frames { size, count, .. } | Self::Request { size, count, .. } => {
                count.map(|count| count.saturating_mul(*size))
            }
            Self::Web { size, .. } => Some(*size),
        }
    }
}

impl Traffic {
    /// Bytes that the server sends over all connections; `None` = until the end.
    pub fn total(&self) -> Option<u64> {
        self.kind.total().map(|each| each.saturating_mul(self.flows.into()))
    }

    /// Connections.
    pub fn connections(&self) -> u32 {
        match self.kind {
            TrafficKind::Web { objects, connections_per: ConnectionsPer::Object, .. } => objects,
            _ => self.at_once(),
        }
    }

    /// How many of them may be under way at a time.
    pub fn at_once(&self) -> u32 {
        match self.kind {
            // More than there are objects would have nothing to do.
            TrafficKind::Web { connections, objects, .. } => connections.min(objects),
            TrafficKind::Bulk { .. } | TrafficKind::Frames { .. } | TrafficKind::Request { .. } => self.flows,
        }
    }
}

/// Other flows across a path or a link, alike but for what each draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Cross {
    /// Path index, or link index if `shared`.
    pub over: usize,
    /// `over` counts links.
    pub shared: bool,
    /// What kind of flow.
    pub kind: CrossKind,
    /// Which way its data flows.
    pub direction: Direction,
    /// How many.
    pub count: u32,
    /// When it starts: so long after the beginning.
    pub start: TimeRange,
    /// When it stops; `None` = never.
    pub stop: Option<Instant>,
}

/// A range of times of which each flow draws its own; often a single time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The shortest.
    pub min: Duration,
    /// The longest, at least `min`.
    pub max: Duration,
}

impl TimeRange {
    /// No luck is needed.
    pub fn is_fixed(&self) -> bool {
        self.min == self.max
    }
}

/// How values are spread around a mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Not at all.
    Fixed,
    /// Exponentially.
    Exponential,
}

/// Least and greatest size of a packet whose size is drawn, bytes.
pub const PACKET_SIZES: (u32, u32) = (40, 1500);

/// What the application on a TCP cross flow does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CrossData {
    /// It sends as much as it can; so many bytes, or until the end.
    Bulk(Option<u64>),
    /// It writes packets at exponential intervals.
    Packets {
        /// Mean number.
        per_second: f64,
        /// Whether each flow draws a mean of its own.
        rates: Distribution,
        /// Mean bytes of one.
        packet: u32,
        /// How their sizes are spread.
        packets: Distribution,
    },
}

/// Kinds of cross traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum CrossKind {
    /// A TCP flow.
    Tcp {
        /// Its congestion control.
        congestion: PlugIn,
        /// One-way delay behind the bottleneck, each way; `None` = that of the path.
        delay: Option<TimeRange>,
        /// What it carries.
        data: CrossData,
    },
    /// Constant bit rate.
    Udp {
        /// Bits per second, IP packets counted whole.
        rate: Rate,
        /// Whether each flow draws a rate of its own.
        rates: Distribution,
        /// Bytes of one IP packet.
        packet: u32,
    },
    /// On/off: Pareto on times, exponential off times.
    UdpOnOff {
        /// Rate while on.
        rate: Rate,
        /// Whether each flow draws a rate of its own.
        rates: Distribution,
        /// Mean bytes of one IP packet.
        packet: u32,
        /// How their sizes are spread.
        packets: Distribution,
        /// Mean on time.
        on: Duration,
        /// Mean off time.
        off: Duration,
        /// Shape of the Pareto distribution of on times; above 1.
        shape: f64,
    },
}

/// Something that changes at a stated time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// When (warm-up included).
    pub at: Instant,
    /// What.
    pub change: TimelineChange,
}

/// What a timeline changes.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineChange {
    /// A path or a link.
    Network(Change),
    /// The connection's scheduler, at both ends.
    Scheduler(PlugIn),
}

impl Scenario {
    /// The timeline's changes of paths and links.
    pub fn network_changes(&self) -> impl Iterator<Item = (Instant, Change)> + '_ {
        self.timeline.iter().filter_map(|entry| match &entry.change {
            TimelineChange::Network(change) => Some((entry.at, change.clone())),
            TimelineChange::Scheduler(_) => None,
        })
    }
}

/// Who speaks at each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// This engine.
    #[default]
    Engine,
    /// The Linux kernel.
    Linux,
}

/// Both ends, and the IP version between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The server's host: the sender of bulk data.
    pub sender: Host,
    /// The client's host.
    pub receiver: Host,
    /// 4 or 6.
    pub ip: u8,
}

/// One cell of a sweep: the keys that vary with their values as written.
pub type Cell = Vec<(String, String)>;
