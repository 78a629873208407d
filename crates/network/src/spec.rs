//! The specification of a network.

use crate::{
    BucketSpec, Discipline, DropTail, JitterSpec, MediumSpec, MiddleboxSpec, RadioChange, RadioSpec, RateSteps, Steps,
};
use anabranch_units::{Direction, Duration, Instant, Rate};
use core::fmt;
use std::sync::Arc;

/// Paths, and the shared links that some of them cross.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// Paths; the index is the path's number.
    pub paths: Vec<PathSpec>,
    /// Shared bottlenecks.
    pub links: Vec<LinkSpec>,
}

/// One path, both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSpec {
    /// Name, unique among paths and links.
    pub name: String,
    /// Server → client.
    pub down: WaySpec,
    /// Client → server.
    pub up: WaySpec,
}

impl PathSpec {
    /// One direction.
    pub fn way(&self, direction: Direction) -> &WaySpec {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

impl Topology {
    /// The bottleneck of a direction of a path that is narrowest at first, and its owner; of several, the first on the way. `None`
    /// if there is no such path or link. A recorded capacity counts with its mean.
    pub fn narrowest(&self, path: usize, direction: Direction) -> Option<(Place, &BottleneckSpec)> {
        match &self.paths.get(path)?.way(direction).bottleneck {
            Bottleneck::Own(own) => Some((Place::Path(path), own)),
            Bottleneck::Route(links) => {
                let link = *links.iter().min_by_key(|link| {
                    let spec = self.links.get(**link).map(|link| link.bottleneck(direction));
                    spec.map_or(Rate::from_bps(0), |spec| spec.capacity.initial_rate())
                })?;
                Some((Place::Link(link), self.links.get(link)?.bottleneck(direction)))
            }
        }
    }

    /// Propagation delay of a direction of a path, those of its links included.
    pub fn delay(&self, path: &PathSpec, direction: Direction) -> Duration {
        let way = path.way(direction);
        let links = way.bottleneck.route().iter().filter_map(|link| self.links.get(*link)?.behind(direction));
        links.fold(way.delay, |sum, behind| sum + behind.delay)
    }

    /// Propagation delay of both directions of a path together.
    pub fn round_trip(&self, path: &PathSpec) -> Duration {
        self.delay(path, Direction::Down) + self.delay(path, Direction::Up)
    }
}

/// A bottleneck that several paths cross, and what lies behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Name, unique among paths and links.
    pub name: String,
    /// Server → client.
    pub down: BottleneckSpec,
    /// Client → server.
    pub up: BottleneckSpec,
    /// Delay and impairments behind the bottleneck, down and up; `None` = neither. A damaged packet ends at the link's far end.
    /// The other parts of a path are no parts of a link.
    pub behind: Option<Box<[WaySpec; 2]>>,
}

impl LinkSpec {
    /// A link without delay and impairments.
    pub fn new(name: &str, down: BottleneckSpec, up: BottleneckSpec) -> Self {
        Self { name: name.into(), down, up, behind: None }
    }

    /// Delay and impairments of one direction.
    pub fn behind(&self, direction: Direction) -> Option<&WaySpec> {
        self.behind.as_ref().map(|behind| &behind[direction as usize])
    }

    /// One direction.
    pub fn bottleneck(&self, direction: Direction) -> &BottleneckSpec {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

/// A queue and its capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct BottleneckSpec {
    /// The capacity.
    pub capacity: CapacitySpec,
    /// The queueing discipline.
    pub queue: QueueSpec,
    /// Packets beyond this token bucket are dropped on arrival.
    pub police: Option<BucketSpec>,
    /// The medium over which it sends. Bottlenecks whose media have one name divide it.
    pub medium: Option<Arc<MediumSpec>>,
}

impl BottleneckSpec {
    /// A bottleneck without a policer, whose medium is its own.
    pub fn new(capacity: CapacitySpec, queue: QueueSpec) -> Self {
        Self { capacity, queue, police: None, medium: None }
    }
}

/// One direction of a path: bottleneck, then delay, then impairments.
#[derive(Clone, Debug, PartialEq)]
pub struct WaySpec {
    /// The path's own bottleneck or a shared one.
    pub bottleneck: Bottleneck,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Recorded delay in its place; then `delay` is its mean.
    pub recorded_delay: Option<Arc<Steps<Duration>>>,
    /// Variation of the delay.
    pub jitter: JitterSpec,
    /// The layers under the link.
    pub radio: RadioSpec,
    /// Bytes added to each packet's size (may be negative).
    pub overhead: i32,
    /// Random loss.
    pub loss: LossSpec,
    /// Recorded probability of loss in its place.
    pub recorded_loss: Option<Arc<Steps<f64>>>,
    /// Reordering.
    pub reorder: ReorderSpec,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives with a wrong checksum.
    pub corrupt: f64,
    /// Times in which no packet arrives, `[from, to)`.
    pub outages: Vec<(Instant, Instant)>,
    /// Bytes of the largest IP packet that a router behind the sending host lets pass; `None` = any.
    pub mtu: Option<u32>,
    /// Whether the sender of a larger packet gets a message about its loss (RFC 1191, RFC 8201).
    pub reports_mtu: bool,
    /// The bottleneck is the sending host's own device: the host can read its queue.
    pub device: bool,
    /// Boxes between the sending host and the bottleneck, in order.
    pub middleboxes: Vec<MiddleboxSpec>,
}

impl WaySpec {
    /// A bottleneck and a delay, without impairments.
    pub fn clean(bottleneck: Bottleneck, delay: Duration) -> Self {
        Self {
            bottleneck,
            delay,
            recorded_delay: None,
            jitter: JitterSpec::NONE,
            radio: RadioSpec::NONE,
            overhead: 0,
            loss: LossSpec::None,
            recorded_loss: None,
            reorder: ReorderSpec { probability: 0.0, by: Duration::ZERO },
            duplicate: 0.0,
            corrupt: 0.0,
            outages: Vec::new(),
            mtu: None,
            reports_mtu: true,
            device: false,
            middleboxes: Vec::new(),
        }
    }

    /// The least one-way delay, jitter and slots aside.
    pub fn least_delay(&self) -> Duration {
        let recorded = self.recorded_delay.as_ref().and_then(|steps| steps.parts().map(|(_, delay)| delay).min());
        recorded.unwrap_or(self.delay)
    }
}

/// The owner of a bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub enum Bottleneck {
    /// The path's own.
    Own(BottleneckSpec),
    /// Links by their index in [`Topology::links`], in the order in which a packet meets them; at least one.
    Route(Vec<usize>),
}

impl Bottleneck {
    /// One link.
    pub fn shared(link: usize) -> Self {
        Self::Route(vec![link])
    }

    /// The path's own.
    pub fn own(&self) -> Option<&BottleneckSpec> {
        match self {
            Self::Own(own) => Some(own),
            Self::Route(_) => None,
        }
    }

    /// The links; none if the path has its own.
    pub fn route(&self) -> &[usize] {
        match self {
            Self::Own(_) => &[],
            Self::Route(links) => links,
        }
    }

    /// Whether the link is one of them.
    pub fn crosses(&self, link: usize) -> bool {
        self.route().contains(&link)
    }
}

/// The capacity of a bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub enum CapacitySpec {
    /// A rate; a timeline may change it.
    Fixed(Rate),
    /// The same, of which unused bytes are kept, and sent at once: a shaper.
    Bucket(BucketSpec),
    /// Recorded delivery opportunities.
    Trace(Arc<CapacityTrace>),
    /// A recorded rate.
    Steps(Arc<RateSteps>),
}

/// Recorded capacity in mahimahi's format: milliseconds at each of which `1500` bytes may leave; unused opportunities
/// are wasted.
#[derive(Clone, PartialEq, Eq)]
pub struct CapacityTrace {
    /// Ascending milliseconds.
    pub(crate) opportunities: Vec<u64>,
    /// Milliseconds after which they repeat, at least the last of them.
    pub(crate) period: u64,
}

impl fmt::Debug for CapacityTrace {
    /// Their number and a hash: a trace may have a million.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mix = |hash: u64, at: &u64| (hash.rotate_left(5) ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = self.opportunities.iter().fold(0, mix);
        write!(f, "CapacityTrace({} opportunities, {} ms, {hash:016x})", self.opportunities.len(), self.period)
    }
}

/// The queue of a bottleneck. The packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSpec {
    /// Drop-tail, packets.
    Packets(u32),
    /// Drop-tail, bytes.
    Bytes(u64),
    /// A discipline of the registry, and the queue's capacity.
    Managed(Discipline, DropTail),
}

/// Random loss, drawn per packet index of the direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossSpec {
    /// None.
    None,
    /// Every packet is lost with this probability.
    Bernoulli(f64),
    /// Two states (netem's `gemodel`): `p` good→bad, `r` bad→good, per packet; loss probability `1-k` in good,
    /// `1-h` in bad.
    GilbertElliott {
        /// Good → bad.
        p: f64,
        /// Bad → good.
        r: f64,
        /// Delivery probability in the bad state.
        h: f64,
        /// Delivery probability in the good state.
        k: f64,
    },
}

impl LossSpec {
    /// Every packet is lost: an outage by another name.
    pub fn is_total(&self) -> bool {
        *self == Self::Bernoulli(1.0)
    }
}

/// Reordering: with this probability a packet is held back by `by`, and others overtake it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderSpec {
    /// Probability per packet.
    pub probability: f64,
    /// Extra delay.
    pub by: Duration,
}

/// The owner of a bottleneck that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The path with this index.
    Path(usize),
    /// The shared link with this index.
    Link(usize),
}

/// A change while the network runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The rate. A path across a link has none of its own.
    Rate(Place, Direction, Rate),
    /// A path's delay.
    Delay(usize, Direction, Duration),
    /// The variation of a path's delay.
    Jitter(usize, Direction, JitterSpec),
    /// The burst of a shaper, in bytes. A rate becomes a shaper, with a full bucket if nothing waits.
    Burst(Place, Direction, u64),
    /// The policer, with a full bucket if there was none.
    Police(Place, Direction, BucketSpec),
    /// The largest packet that a path carries, in bytes.
    Mtu(usize, Direction, u32),
    /// A layer under a path's link.
    Radio(usize, Direction, RadioChange),
    /// The middleboxes of a path: new ones, which have seen no segment.
    Middleboxes(usize, Direction, Vec<MiddleboxSpec>),
    /// A path's random loss.
    Loss(usize, Direction, LossSpec),
    /// The part of a path's packets that are held back.
    Reorder(usize, Direction, ReorderSpec),
    /// The capacity of a drop-tail queue; packets beyond it that wait already stay. A managed queue keeps its own.
    Queue(Place, Direction, DropTail),
    /// The part of the link with this index that lies behind its bottleneck.
    Behind(usize, Direction, BehindChange),
}

/// A change behind the bottleneck of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum BehindChange {
    /// The delay.
    Delay(Duration),
    /// The variation of the delay.
    Jitter(JitterSpec),
    /// A layer under the link.
    Radio(RadioChange),
    /// The random loss.
    Loss(LossSpec),
    /// The part of the packets that are held back.
    Reorder(ReorderSpec),
}

impl Change {
    /// The owner of the bottleneck that changes; `None` if something else does.
    pub fn bottleneck_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::Rate(place, ..) | Self::Burst(place, ..) | Self::Police(place, ..) | Self::Queue(place, ..) => {
                Some(place)
            }
            Self::Delay(..)
            | Self::Jitter(..)
            | Self::Radio(..)
            | Self::Mtu(..)
            | Self::Middleboxes(..)
            | Self::Loss(..)
            | Self::Behind(..)
            | Self::Reorder(..) => None,
        }
    }

    /// The direction that changes.
    pub fn direction_mut(&mut self) -> &mut Direction {
        match self {
            Self::Rate(_, way, _)
            | Self::Delay(_, way, _)
            | Self::Jitter(_, way, _)
            | Self::Burst(_, way, _)
            | Self::Police(_, way, _)
            | Self::Mtu(_, way, _)
            | Self::Radio(_, way, _)
            | Self::Middleboxes(_, way, _)
            | Self::Loss(_, way, _)
            | Self::Behind(_, way, _)
            | Self::Reorder(_, way, _)
            | Self::Queue(_, way, _) => way,
        }
    }

    /// Index of the path that changes; `None` if a shared link does.
    pub fn path_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Rate(place, ..) | Self::Burst(place, ..) | Self::Police(place, ..) | Self::Queue(place, ..) => {
                match place {
                    Place::Path(path) => Some(path),
                    Place::Link(_) => None,
                }
            }
            Self::Delay(path, ..)
            | Self::Jitter(path, ..)
            | Self::Radio(path, ..)
            | Self::Mtu(path, ..)
            | Self::Middleboxes(path, ..)
            | Self::Loss(path, ..)
            | Self::Reorder(path, ..) => Some(path),
            Self::Behind(..) => None,
        }
    }
}
