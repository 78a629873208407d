//! Cross traffic: the random values of each of a scenario's other flows, and the paths that they need.

use crate::job::{Job, RunError};
use crate::setup::{fifo, setup};
use anabranch_engine::FirstPath;
use anabranch_metrics::CrossFlow;
use anabranch_network::{Bottleneck, Change, LinkSpec, PathSpec, Place, Topology, WaySpec};
use anabranch_scenario::{Cross, CrossData, CrossKind, Distribution, Over, PACKET_SIZES, PlugIn, Scenario, TimeRange};
use anabranch_sim::{FlowSetup, Party, SourceSetup, address, paths_between};
use anabranch_units::{ConnId, Direction, Duration, Instant, PathId, Rate, Rng, Side};
use anabranch_workload::{
    BulkSink, BulkSource, ConstantRate, OnOff, OnOffSpec, PacketSizes, PacketSource, PoissonSource, Workload,
};

/// A network and how it changes.
#[derive(Clone, Debug)]
pub(crate) struct ChangingNetwork {
    pub topology: Topology,
    pub timeline: Vec<(Instant, Change)>,
}

/// One TCP flow.
#[derive(Clone, Debug)]
pub(crate) struct TcpFlow {
    /// Index of the network's path.
    path: usize,
    direction: Direction,
    start: Instant,
    stop: Option<Instant>,
    congestion: PlugIn,
    load: Load,
}

/// The data that its sender writes.
#[derive(Clone, Debug)]
enum Load {
    Bulk(Option<u64>),
    Packets(PoissonSource),
}

/// Flow `k` of entry `n`: it names the flow's random streams. The first has the entry's own name.
fn name(n: usize, k: u32) -> String {
    if k == 0 { format!("cross.{n}") } else { format!("cross.{n}.{k}") }
}

/// Uniform in the range.
fn draw(range: TimeRange, seed: u64, name: &str) -> Duration {
    let more = (range.max - range.min).as_nanos();
    if more == 0 {
        return range.min;
    }
    range.min + Duration::from_nanos(Rng::stream(seed, name).below(more.saturating_add(1)))
}

fn start(cross: &Cross, seed: u64, name: &str) -> Instant {
    Instant::ZERO + draw(cross.start, seed, &format!("{name}.start"))
}

/// A flow's own mean, as a multiple of the stated one.
fn share(rates: Distribution, seed: u64, name: &str) -> f64 {
    match rates {
        Distribution::Fixed => 1.0,
        Distribution::Exponential => Rng::stream(seed, &format!("{name}.rate")).exponential(),
    }
}

fn rate(rate: Rate, rates: Distribution, seed: u64, name: &str) -> Rate {
    match rates {
        Distribution::Fixed => rate,
        // `as` saturates.
        Distribution::Exponential => Rate::from_bps((rate.as_bps() as f64 * share(rates, seed, name) + 0.5) as u64),
    }
}

fn sizes(mean: u32, packets: Distribution) -> PacketSizes {
    match packets {
        Distribution::Fixed => PacketSizes::Fixed(mean),
        Distribution::Exponential => PacketSizes::exponential(mean, PACKET_SIZES),
    }
}

/// Where the flows of an entry that are not TCP enter the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrance {
    /// Index of the path, or of the link.
    over: usize,
    /// `over` counts links.
    shared: bool,
}

/// The entrance of each entry; the paths that flows over several links need are added to `ground`.
pub(crate) fn entrances(scenario: &Scenario, ground: &mut ChangingNetwork) -> Vec<Entrance> {
    let entrance = |cross: &Cross| match (&cross.over, &cross.kind) {
        (Over::Path(path), _) => Entrance { over: *path, shared: false },
        (Over::Links(links), CrossKind::Udp { .. } | CrossKind::UdpOnOff { .. }) if links.len() > 1 => {
            let path = across(&ground.topology, links);
            Entrance { over: ground.add(path), shared: false }
        }
        (Over::Links(links), _) => Entrance { over: links[0], shared: true },
    };
    scenario.cross.iter().map(entrance).collect()
}

/// The flows that are not TCP.
pub(crate) fn sources(scenario: &Scenario, seed: u64, entrances: &[Entrance]) -> Vec<SourceSetup> {
    let entries = scenario.cross.iter().enumerate().zip(entrances);
    let flows = entries.flat_map(|((n, cross), entrance)| (0..cross.count).map(move |k| (cross, name(n, k), entrance)));
    let setup = |(cross, name, entrance): (&Cross, String, &Entrance)| {
        let Entrance { over, shared } = *entrance;
        Some(SourceSetup { source: source(cross, seed, &name)?, over, shared, direction: cross.direction })
    };
    flows.filter_map(setup).collect()
}

fn source(cross: &Cross, seed: u64, name: &str) -> Option<Box<dyn PacketSource>> {
    let start = start(cross, seed, name);
    let source: Box<dyn PacketSource> = match cross.kind {
        CrossKind::Tcp { .. } => return None,
        CrossKind::Udp { rate: mean, rates, packet } => {
            Box::new(ConstantRate::new(rate(mean, rates, seed, name), packet, start, cross.stop))
        }
        CrossKind::UdpOnOff { rate: mean, rates, packet, packets, on, off, shape } => {
            let rate = rate(mean, rates, seed, name);
            let spec = OnOffSpec { rate, sizes: sizes(packet, packets), on, off, shape };
            Box::new(OnOff::new(spec, start, cross.stop, Rng::stream(seed, name)))
        }
    };
    Some(source)
}

/// The TCP flows; the paths that they need are added to `ground`.
pub(crate) fn tcp_flows(scenario: &Scenario, seed: u64, ground: &mut ChangingNetwork) -> Vec<TcpFlow> {
    let mut flows = Vec::new();
    for (n, cross) in scenario.cross.iter().enumerate() {
        let CrossKind::Tcp { congestion, delay, data } = &cross.kind else { continue };
        let drawn = delay.is_some_and(|delay| !delay.is_fixed());
        let mut common = None;
        for k in 0..cross.count {
            let name = name(n, k);
            let delay = delay.map(|delay| draw(delay, seed, &format!("{name}.delay")));
            // Flows with one delay share a path.
            let path = common.filter(|_| !drawn).unwrap_or_else(|| ground.path_for(cross, delay, &name));
            common = Some(path);
            let load = match *data {
                CrossData::Bulk(size) => Load::Bulk(size),
                CrossData::Packets { per_second, rates, packet, packets } => {
                    let rng = Rng::stream(seed, &format!("{name}.packets"));
                    let per_second = per_second * share(rates, seed, &name);
                    Load::Packets(PoissonSource::new(per_second, sizes(packet, packets), rng))
                }
            };
            let (direction, start, stop) = (cross.direction, start(cross, seed, &name), cross.stop);
            flows.push(TcpFlow { path, direction, start, stop, congestion: congestion.clone(), load });
        }
    }
    flows
}

impl ChangingNetwork {
    /// The network's path for a TCP flow: the path that the scenario names, unless the flow crosses a link or has a delay of
    /// its own.
    fn path_for(&mut self, cross: &Cross, delay: Option<Duration>, name: &str) -> usize {
        let spec = match (&cross.over, delay) {
            (Over::Path(path), None) => return *path,
            (Over::Path(path), Some(delay)) => self.beside(*path, delay, name),
            (Over::Links(links), None) => across(&self.topology, links),
            (Over::Links(links), Some(delay)) => PathSpec { name: name.into(), ..over(links, [delay; 2]) },
        };
        self.add(spec)
    }

    /// Adds a path. Returns its index.
    fn add(&mut self, spec: PathSpec) -> usize {
        self.topology.paths.push(spec);
        self.topology.paths.len() - 1
    }

    /// A path with the bottleneck and the impairments of `path`, but with a delay and random streams of its own.
    fn beside(&mut self, path: usize, delay: Duration, name: &str) -> PathSpec {
        self.share_bottleneck(path);
        let own = self.topology.paths.len();
        let mut same = Vec::new();
        for (at, change) in &self.timeline {
            let mut change = change.clone();
            let of_way = matches!(
                change,
                Change::Loss(..)
                    | Change::Jitter(..)
                    | Change::Radio(..)
                    | Change::Reorder(..)
                    | Change::Mtu(..)
                    | Change::Middleboxes(..)
            );
            if let Some(of) = change.path_mut().filter(|of| of_way && **of == path) {
                *of = own;
                same.push((*at, change));
            }
        }
        self.timeline.extend(same);
        self.timeline.sort_by_key(|(at, _)| *at);
        let of = &self.topology.paths[path];
        let way = |way: &WaySpec| WaySpec { delay, device: false, ..way.clone() };
        PathSpec { name: name.into(), down: way(&of.down), up: way(&of.up) }
    }

    /// Makes the own bottleneck of a path a link that others may cross too.
    fn share_bottleneck(&mut self, path: usize) {
        let own = |way: &WaySpec| match &way.bottleneck {
            Bottleneck::Own(own) => Some(own.clone()),
            Bottleneck::Route(_) => None,
        };
        let spec = &mut self.topology.paths[path];
        let (down, up) = (own(&spec.down), own(&spec.up));
        // Where one direction crosses a link already, this one's is not used.
        let Some(either) = down.clone().or(up.clone()) else { return };
        let link = self.topology.links.len();
        for (way, _) in [(&mut spec.down, &down), (&mut spec.up, &up)].into_iter().filter(|(_, own)| own.is_some()) {
            way.bottleneck = Bottleneck::shared(link);
        }
        let (down, up) = (down.unwrap_or(either.clone()), up.unwrap_or(either));
        self.topology.links.push(LinkSpec::new(&spec.name, down, up));
        for (_, change) in &mut self.timeline {
            if let Some(place) = change.bottleneck_mut().filter(|place| **place == Place::Path(path)) {
                *place = Place::Link(link);
            }
        }
    }
}

/// A path over links that adds nothing to them.
fn across(topology: &Topology, links: &[usize]) -> PathSpec {
    let name = |link: &usize| topology.links[*link].name.as_str();
    let name = links.iter().map(name).fold("cross".to_owned(), |sum, name| sum + "." + name);
    // Over one link its delay is that of the first path across it, so that it meets the bottleneck on equal terms.
    let first = match links {
        [link] => topology.paths.iter().find(|path| path.down.bottleneck.crosses(*link)),
        _ => None,
    };
    let delays = first.map_or(Default::default(), |path| [path.down.delay, path.up.delay]);
    PathSpec { name, ..over(links, delays) }
}

/// A path without a name over links, in the order of the way down, with its own delays.
fn over(links: &[usize], [down, up]: [Duration; 2]) -> PathSpec {
    let way = |links, delay| WaySpec::clean(Bottleneck::Route(links), delay);
    let back = links.iter().rev().copied().collect();
    PathSpec { name: String::new(), down: way(links.to_vec(), down), up: way(back, up) }
}

impl TcpFlow {
    /// The network's path that its data takes in this direction, if it does.
    pub fn path_of(&self, direction: Direction) -> Option<usize> {
        (self.direction == direction).then_some(self.path)
    }

    /// Entry of the flow in the meter, as connection `id`.
    pub fn measured(&self, id: ConnId) -> CrossFlow {
        let size = match self.load {
            Load::Bulk(size) => size,
            Load::Packets(_) => None,
        };
        CrossFlow { id, size }
    }

    /// The flow as connection `id`, in plain TCP. If `awaited`, a run that ends with its traffic waits for a
    /// flow that has a size.
    ///
    /// # Errors
    /// A plug-in cannot be built.
    pub fn build(&self, job: &Job, id: ConnId, awaited: bool) -> Result<FlowSetup, RunError> {
        let v6 = job.scenario.hosts.ip == 6;
        let mut settings = job.scenario.settings.clone();
        settings.mptcp = false;
        settings.first_path = FirstPath::First;
        if matches!(self.load, Load::Packets(_)) {
            settings.tcp.nagle = false;
        }
        // Routes name the network's path, whose number may be beyond that of a connection's paths.
        let path = PathId(self.path.min(PathId::LIMIT - 1) as u8);
        let party = |side: Side| -> Result<Party, RunError> {
            let mut setup = setup(id, &settings, &fifo(), &self.congestion)?;
            setup.paths = paths_between(v6, id.0, side, &[(path, false)]);
            Ok(Party { setup, workload: self.workload(side) })
        };
        Ok(FlowSetup {
            id,
            start: self.start,
            stop: self.stop,
            awaited: awaited && self.measured(id).size.is_some(),
            may_fail: true,
            captured: false,
            client: party(Side::Client)?.into(),
            server: party(Side::Server)?.into(),
            routes: vec![(address(v6, path, id.0, Side::Client), self.path)],
        })
    }

    fn workload(&self, side: Side) -> Box<dyn Workload> {
        match (&self.load, side.sends() == self.direction) {
            (Load::Bulk(size), true) => Box::new(BulkSource::new(*size)),
            (Load::Bulk(size), false) => Box::new(BulkSink::new(*size)),
            (Load::Packets(source), true) => Box::new(source.clone()),
            (Load::Packets(_), false) => Box::new(BulkSink::new(None)),
        }
    }
}

/// The seed matters to these flows.
pub(crate) fn is_random(cross: &Cross) -> bool {
    let drawn = |distribution| distribution == Distribution::Exponential;
    let kind = match cross.kind {
        CrossKind::UdpOnOff { .. } => true,
        CrossKind::Udp { rates, .. } => drawn(rates),
        CrossKind::Tcp { data: CrossData::Packets { .. }, .. } => true,
        CrossKind::Tcp { delay, .. } => delay.is_some_and(|delay| !delay.is_fixed()),
    };
    kind || !cross.start.is_fixed()
}
