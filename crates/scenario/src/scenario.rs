//! A checked scenario: every default filled in, every name resolved.

use crate::fabric::Fabric;
use crate::group::Group;
use anabranch_engine::Settings;
use anabranch_engine::schedule::PathPolicy;
use anabranch_network::{Change, Topology};
use anabranch_units::{Direction, Duration, Instant, PlaybackRule, Rate, Side, TrafficDirection};
use anabranch_workload::{Ladder, VideoStream};

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
    /// The start is delayed by a random time in `[0, start_jitter)`.
    pub start_jitter: Duration,
    /// Schedulers to run; one unless the command line or a sweep says otherwise.
    pub scheduler: PlugIn,
    /// Congestion control.
    pub congestion: PlugIn,
    /// The era whose defaults `settings` has.
    pub era: Option<&'static str>,
    /// Buffers, MSS, TCP.
    pub settings: Settings,
    /// Paths and shared links; queues given in BDP are resolved to bytes.
    pub topology: Topology,
    /// Options of the paths beside the topology, by index.
    pub paths: Vec<PathOptions>,
    /// The applications.
    pub traffic: Vec<Traffic>,
    /// Switches and cables between the hosts of groups; their links stand in the topology.
    pub fabrics: Vec<Fabric>,
    /// Pairs of hosts; none for a single pair over all paths.
    pub groups: Vec<Group>,
    /// Links, by index and ascending, of which each pair of hosts has its own.
    pub per_pair: Vec<usize>,
    /// Other flows.
    pub cross: Vec<Cross>,
    /// Changes during the run.
    pub timeline: Vec<TimelineEntry>,
    /// Engine or Linux kernel, per host.
    pub hosts: Hosts,
}

/// Options of a path beside its place in the topology, for both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathOptions {
    /// The part of its own trace at time 0.
    pub trace_start: TraceStart,
    /// Whether the path is used only if no other path works.
    pub backup: bool,
    /// Price, cap and weight.
    pub policy: PathPolicy,
    /// The fabric that it crosses, by index. Its place in the topology then is the longest way there; each pair of hosts has its own.
    pub fabric: Option<usize>,
    /// When it is there.
    pub presence: Presence,
    /// How the hosts learn of its MTU.
    pub mtu_signal: MtuSignal,
    /// IP version; `None` = that of the hosts.
    pub ip: Option<u8>,
}

impl PathOptions {
    /// The IP version of the path between these hosts.
    pub fn version(&self, hosts: &Hosts) -> u8 {
        self.ip.unwrap_or(hosts.ip)
    }
}

/// Whether path `n` appears later than the first, and no path of its IP version is there from the beginning.
pub(crate) fn opens_a_version_late(paths: &[PathOptions], hosts: &Hosts, n: usize) -> bool {
    let first = paths.iter().map(|path| path.presence.start).min().flatten();
    let mut early = paths.iter().filter(|path| path.presence.start == first);
    paths[n].presence.start > first && early.all(|path| path.version(hosts) != paths[n].version(hosts))
}

/// How hosts learn of the largest packet that a path carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuSignal {
    /// The MTU of their interfaces says it.
    #[default]
    Interface,
    /// A router drops a larger packet, and says so to its sender.
    Icmp,
    /// Larger packets vanish.
    None,
}

/// The time in which a path is there. The client knows: it joins when the path appears, and withdraws its address when it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// When it appears; `None` = it is there from the beginning.
    pub start: Option<Instant>,
    /// When it goes; `None` = never.
    pub stop: Option<Instant>,
}

impl Presence {
    /// Whether the path is there.
    pub fn at(&self, now: Instant) -> bool {
        self.start.is_none_or(|start| start <= now) && self.stop.is_none_or(|stop| now < stop)
    }

    /// Whether the path is there all the time.
    pub fn is_constant(&self) -> bool {
        *self == Self::default()
    }
}

/// The part of a path's own trace at time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceStart {
    /// The beginning of the trace.
    #[default]
    Begin,
    /// A place that the seed draws: the same part of the way through the traces of all paths.
    Seed,
    /// So long after its beginning, in whole milliseconds and before its end.
    At(Duration),
}

/// A scheduler, congestion control or rule of bitrate adaptation by its canonical name, with the given parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct PlugIn {
    /// Canonical name; a scheduler's may end in `+pr` or `+or`.
    pub name: String,
    /// Parameters that were given, or differ from their defaults.
    pub parameters: Vec<(String, f64)>,
}

impl PlugIn {
    /// Plug-in with every parameter at its default.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.into(), parameters: Vec::new() }
    }
}

impl Scenario {
    /// Which ends send data, in any of the applications.
    pub fn direction(&self) -> TrafficDirection {
        let directions = self.traffic.iter().map(|traffic| traffic.direction);
        directions.reduce(TrafficDirection::and).unwrap_or_default()
    }

    /// The host at one end.
    pub fn host(&self, side: Side) -> Host {
        self.hosts.at(side, self.direction())
    }

    /// No paths and no traffic, with every default.
    pub(crate) fn blank() -> Self {
        Self {
            name: String::new(),
            duration: None,
            warmup: Duration::ZERO,
            seed: 1,
            repeat: 1,
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            scheduler: PlugIn::named("minrtt"),
            congestion: PlugIn::named("cubic"),
            era: None,
            settings: Settings::default(),
            topology: Topology::default(),
            paths: Vec::new(),
            traffic: Vec::new(),
            fabrics: Vec::new(),
            groups: Vec::new(),
            per_pair: Vec::new(),
            cross: Vec::new(),
            timeline: Vec::new(),
            hosts: Hosts { sender: Host::Engine, receiver: Host::Engine, ip: 4 },
        }
    }
}

/// Applications of one kind, with the number of their connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Name in results; `None` only of one that is alone.
    pub name: Option<String>,
    /// When it begins, warm-up included; `None` = when the scenario's traffic starts.
    pub start: Option<Duration>,
    /// When both ends give its connections up; `None` = never.
    pub stop: Option<Instant>,
    /// The kind.
    pub kind: TrafficKind,
    /// Simultaneous instances, each with its own connection; at least 1. One page counts as one.
    pub flows: u32,
    /// When they begin.
    pub arrivals: Arrivals,
    /// Which ends send data; [`TrafficDirection::Down`] if the kind [has requests](TrafficKind::has_requests).
    pub direction: TrafficDirection,
}

/// The application on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficKind {
    /// A sender sends as much as it can: `size` bytes, or until the end.
    Bulk {
        /// Bytes; `None` = until the end.
        size: Option<u64>,
    },
    /// A sender writes a frame at a steady pace, the first when the connection is established.
    Frames {
        /// Bytes of a frame.
        size: u64,
        /// Time from one frame to the next.
        interval: Duration,
        /// Number of frames; `None` = until the end.
        count: Option<u64>,
        /// From the time at which a frame is due to its play-out, if it is played out; above zero.
        deadline: Option<Duration>,
    },
    /// Frames of speech and of a camera, until the end.
    Call {
        /// Payload of speech.
        audio: Rate,
        /// Mean payload of the pictures; `None` = speech alone.
        video: Option<Rate>,
        /// Pictures per second; at least 1.
        frame_rate: u32,
        /// From a key frame to the next, in pictures; at least 8.
        key_every: u32,
        /// From capture to play-out; above zero.
        deadline: Duration,
    },
    /// The client plays a video in segments, and chooses the rate of each.
    Video {
        /// Rates at which each segment is there.
        ladder: Ladder,
        /// Playing time of a segment; above zero.
        segment: Duration,
        /// Playing time of the whole; `None` = longer than the run.
        length: Option<Duration>,
        /// Most playing time that the player keeps; at least a segment.
        buffer: Duration,
        /// Playing time in the buffer at which play begins; `None` = a segment.
        start_at: Option<Duration>,
        /// Playing time in the buffer at which play continues after a stall; `None` = a segment.
        resume_at: Option<Duration>,
        /// The rule that chooses.
        abr: PlugIn,
        /// Live: how far behind the newest moment the player begins; `None` = all segments are there from the beginning.
        live: Option<Duration>,
        /// Bytes of a request.
        request: u64,
    },
    /// The client sends requests and the server answers them, one after the other on the same connection.
    Request {
        /// Bytes of a request.
        request: u64,
        /// Bytes of a response.
        size: u64,
        /// Time from a response to the next request.
        interval: Duration,
        /// Number of requests; `None` = until the end.
        count: Option<u64>,
    },
    /// The client requests a page's objects over several connections.
    Web {
        /// Bytes of all objects together.
        size: u64,
        /// Number of objects; at most `size`.
        objects: u32,
        /// Number of simultaneous connections.
        connections: u32,
        /// The lifetime of a connection.
        connections_per: ConnectionsPer,
        /// The distribution of `size` over the objects.
        sizes: ObjectSizes,
        /// Bytes of a request.
        request: u64,
    },
}

/// The lifetime of a page's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionsPer {
    /// The whole page: all connections open at the start and share the objects.
    Page,
    /// One object: another connection opens as soon as an object is complete.
    Object,
}

/// The distribution of a page's bytes over its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectSizes {
    /// As equal as possible.
    Equal,
    /// Lognormal, drawn again with each seed.
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
    /// One flow; of a call both ends send, else the server.
    fn from(kind: TrafficKind) -> Self {
        let both = matches!(kind, TrafficKind::Call { .. });
        let direction = if both { TrafficDirection::Both } else { TrafficDirection::Down };
        Self { name: None, start: None, stop: None, kind, flows: 1, arrivals: Arrivals::Together, direction }
    }
}

impl TrafficKind {
    /// The client requests what the server sends: data flow down alone.
    pub fn has_requests(&self) -> bool {
        match self {
            Self::Bulk { .. } | Self::Frames { .. } | Self::Call { .. } => false,
            Self::Video { .. } | Self::Request { .. } | Self::Web { .. } => true,
        }
    }

    /// Bytes that a sender sends; `None` = until the end.
    pub fn total(&self) -> Option<u64> {
        match self {
            Self::Bulk { size } => *size,
            Self::Call { .. } | Self::Video { .. } => None,
            Self::Frames { size, count, .. } | Self::Request { size, count, .. } => {
                count.map(|count| count.saturating_mul(*size))
            }
            Self::Web { size, .. } => Some(*size),
        }
    }

    /// The video and how its player keeps it, of that kind.
    pub fn video(&self) -> Option<VideoStream> {
        let Self::Video { ladder, segment, length, buffer, start_at, resume_at, live, .. } = self else { return None };
        let level = |given: &Option<Duration>| given.unwrap_or(*segment);
        let count = length.map(|length| length.as_nanos().div_ceil(segment.as_nanos().max(1)));
        let rule = PlaybackRule { segment: *segment, start_at: level(start_at), resume_at: level(resume_at), count };
        Some(VideoStream { ladder: ladder.clone(), rule, buffer: *buffer, live: *live })
    }
}

impl Traffic {
    /// Bytes sent over all connections, by either end; `None` = until the end.
    pub fn total(&self) -> Option<u64> {
        let ways = self.direction.ways().len() as u64;
        self.kind.total().map(|each| each.saturating_mul(u64::from(self.flows) * ways))
    }

    /// Whether the application ends if nothing fails: it is sized, or stopped.
    pub fn has_end(&self) -> bool {
        self.stop.is_some() || self.total().is_some()
    }

    /// Connections.
    pub fn connections(&self) -> u32 {
        match self.kind {
            TrafficKind::Web { objects, connections_per: ConnectionsPer::Object, .. } => objects,
            _ => self.at_once(),
        }
    }

    /// The number of them that may be active at a time.
    pub fn at_once(&self) -> u32 {
        match self.kind {
            // A connection beyond the number of objects would have no request.
            TrafficKind::Web { connections, objects, .. } => connections.min(objects),
            TrafficKind::Bulk { .. }
            | TrafficKind::Frames { .. }
            | TrafficKind::Call { .. }
            | TrafficKind::Video { .. }
            | TrafficKind::Request { .. } => self.flows,
        }
    }
}

/// Cross flows over a path or a link, alike except for their random draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Cross {
    /// The path or the links that they cross.
    pub over: Over,
    /// The kind of flow.
    pub kind: CrossKind,
    /// The direction of its data.
    pub direction: Direction,
    /// The number of flows.
    pub count: u32,
    /// When it starts, counted from the beginning.
    pub start: TimeRange,
    /// When it stops; `None` = never.
    pub stop: Option<Instant>,
}

impl Cross {
    /// One flow of this kind from the start on, over the first path.
    pub(crate) fn blank(kind: CrossKind) -> Self {
        let (direction, start) = (Direction::Down, TimeRange::default());
        Self { over: Over::Path(0), kind, direction, count: 1, start, stop: None }
    }
}

/// The bottlenecks that cross traffic shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// That of the path with this index.
    Path(usize),
    /// Links by index, in the order in which data from the server meets them; at least one.
    Links(Vec<usize>),
}

/// A range of times from which each flow draws one; often a single time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The shortest.
    pub min: Duration,
    /// The longest, at least `min`.
    pub max: Duration,
}

impl TimeRange {
    /// The range is a single time.
    pub fn is_fixed(&self) -> bool {
        self.min == self.max
    }
}

/// The distribution of values around a mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All equal.
    Fixed,
    /// Exponential.
    Exponential,
}

/// Least and greatest size of a packet with a random size, in bytes.
pub const PACKET_SIZES: (u32, u32) = (40, 1500);

/// The application on a TCP cross flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CrossData {
    /// The flow sends as much as it can: this many bytes, or until the end.
    Bulk(Option<u64>),
    /// The flow writes packets at exponential intervals.
    Packets {
        /// Mean packets per second.
        per_second: f64,
        /// Whether each flow draws its own mean.
        rates: Distribution,
        /// Mean bytes per packet.
        packet: u32,
        /// The distribution of packet sizes.
        packets: Distribution,
    },
}

/// Kinds of cross traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum CrossKind {
    /// A TCP flow.
    Tcp {
        /// Congestion control of the flow.
        congestion: PlugIn,
        /// One-way delay behind the bottleneck, in each direction; `None` = the path's.
        delay: Option<TimeRange>,
        /// Data of the flow.
        data: CrossData,
    },
    /// Constant bit rate.
    Udp {
        /// Bits per second, counting whole IP packets.
        rate: Rate,
        /// Whether each flow draws its own rate.
        rates: Distribution,
        /// Bytes of one IP packet.
        packet: u32,
    },
    /// On/off: Pareto on times, exponential off times.
    UdpOnOff {
        /// Rate while on.
        rate: Rate,
        /// Whether each flow draws its own rate.
        rates: Distribution,
        /// Mean bytes of one IP packet.
        packet: u32,
        /// The distribution of packet sizes.
        packets: Distribution,
        /// Mean on time.
        on: Duration,
        /// Mean off time.
        off: Duration,
        /// Shape of the Pareto distribution of on times; above 1.
        shape: f64,
    },
}

/// A change at a stated time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// The time, warm-up included.
    pub at: Instant,
    /// The change.
    pub change: TimelineChange,
}

/// The target of a timeline's change.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineChange {
    /// A path or a link.
    Network(Change),
    /// The connection's scheduler, at both ends.
    Scheduler(PlugIn),
    /// An option of the path with this index, at both ends.
    Option(usize, OptionChange),
}

/// A change of one option of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionChange {
    /// Whether the path is a backup.
    Backup(bool),
    /// Price per byte.
    Price(f64),
    /// Bytes that the tariff includes.
    Cap(u64),
    /// Share of the traffic.
    Weight(f64),
}

impl OptionChange {
    /// Whether a Linux client can make it.
    pub fn is_of_kernels(self) -> bool {
        matches!(self, Self::Backup(_))
    }

    pub(crate) fn apply(self, options: &mut PathOptions) {
        match self {
            Self::Backup(backup) => options.backup = backup,
            Self::Price(price) => options.policy.price = price,
            Self::Cap(cap) => options.policy.cap = Some(cap),
            Self::Weight(weight) => options.policy.weight = Some(weight),
        }
    }
}

impl Scenario {
    /// The timeline's changes of paths and links.
    pub fn network_changes(&self) -> impl Iterator<Item = (Instant, Change)> + '_ {
        self.timeline.iter().filter_map(|entry| match &entry.change {
            TimelineChange::Network(change) => Some((entry.at, change.clone())),
            TimelineChange::Scheduler(_) | TimelineChange::Option(..) => None,
        })
    }

    /// The IP version of a path.
    pub fn ip_of(&self, path: usize) -> u8 {
        self.paths[path].version(&self.hosts)
    }

    /// The first path that a Linux client would not join: it appears late, and no earlier one has its IP version.
    pub fn never_joined_by_linux(&self) -> Option<usize> {
        (0..self.paths.len()).find(|path| opens_a_version_late(&self.paths, &self.hosts, *path))
    }

    /// The path whose interfaces a change gives another MTU.
    pub fn interface_of(&self, change: &Change) -> Option<usize> {
        match *change {
            Change::Mtu(path, ..) if self.paths[path].mtu_signal == MtuSignal::Interface => Some(path),
            _ => None,
        }
    }

    /// The timeline changes the MTU of interfaces.
    pub fn changes_interfaces(&self) -> bool {
        self.network_changes().any(|(_, change)| self.interface_of(&change).is_some())
    }

    /// Bytes of the largest packet that the interfaces of a path carry at a time, both directions; `None` if they do not limit it.
    pub fn interface_mtu_at(&self, path: usize, now: Instant) -> Option<u32> {
        if self.paths[path].mtu_signal != MtuSignal::Interface {
            return None;
        }
        let changes: Vec<_> = self.network_changes().take_while(|(at, _)| *at <= now).collect();
        let of = |direction| {
            let newest = changes.iter().rev().find_map(|(_, change)| match change {
                Change::Mtu(of, way, bytes) if (*of, *way) == (path, direction) => Some(*bytes),
                _ => None,
            });
            newest.or(self.topology.paths[path].way(direction).mtu)
        };
        [Direction::Down, Direction::Up].into_iter().filter_map(of).min()
    }

    /// All options of a path at a time.
    pub fn options_at(&self, path: usize, now: Instant) -> PathOptions {
        let changes = self.option_changes(path).take_while(|(at, _)| *at <= now);
        changes.last().map_or(self.paths[path], |(_, options)| options)
    }

    /// The times at which an option of a path changes, and all options of the path from then on.
    pub fn option_changes(&self, path: usize) -> impl Iterator<Item = (Instant, PathOptions)> + '_ {
        let mut options = self.paths[path];
        self.timeline.iter().filter_map(move |entry| match entry.change {
            TimelineChange::Option(of, change) if of == path => {
                change.apply(&mut options);
                Some((entry.at, options))
            }
            _ => None,
        })
    }
}

/// The implementation at an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// This engine.
    #[default]
    Engine,
    /// The Linux kernel.
    Linux,
}

/// Both hosts, and the IP version between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The host that sends the data; where both send, the server's.
    pub sender: Host,
    /// The other one.
    pub receiver: Host,
    /// 4 or 6.
    pub ip: u8,
}

impl Hosts {
    /// The host on `side`, where data flow so.
    pub fn at(&self, side: Side, direction: TrafficDirection) -> Host {
        if side == direction.first().sender() { self.sender } else { self.receiver }
    }

    /// Whether one of them, at least, is such a host.
    pub fn any_is(&self, host: Host) -> bool {
        self.sender == host || self.receiver == host
    }
}

/// One cell of a sweep: the varied keys with their values as written.
pub type Cell = Vec<(String, String)>;
