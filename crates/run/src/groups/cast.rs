//! The pairs of hosts of a run, and the network that they share.

use super::ways::Ways;
use crate::cross::{ChangingNetwork, entrances, sources, tcp_flows};
use crate::job::{Choice, Job, RunError, unsupported};
use crate::layout::Layout;
use anabranch_metrics::MeterConfig;
use anabranch_network::{Bottleneck, Change, PathSpec, Place, Topology};
use anabranch_scenario::{Group, Scenario};
use anabranch_sim::{Checks, End, FlowSetup, WorldChange, WorldSetup, client_port};
use anabranch_units::{ConnId, Direction, Instant, Rng, Side};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pair of hosts in the world.
pub(crate) struct Pair {
    /// Index of the group.
    pub group: usize,
    /// Number of its first connection.
    pub first: u32,
    /// Number of its connections.
    pub connections: u32,
    /// The world's path of each of its own.
    pub paths: Vec<usize>,
    /// Directions in which an end sends as much as it can, until the run ends.
    pub fills: Vec<Direction>,
}

/// Equipment that the pairs bring into the world: each is a run of its own, but for the network.
pub(crate) struct Equipment {
    /// The flows of each pair, then cross traffic that is TCP.
    pub flows: Vec<FlowSetup>,
    /// Configuration of each pair's meter, in which connections count from 0, and the pair's first connection.
    pub meters: Vec<(MeterConfig, u32)>,
    pub world: WorldSetup,
}

/// All hosts of a run.
pub(crate) struct Cast {
    pub pairs: Vec<Pair>,
    ground: ChangingNetwork,
}

impl Cast {
    /// The pairs of each group, in the order of the file, with all that they bring.
    ///
    /// # Errors
    /// The scenario needs what groups cannot have, or a plug-in cannot be built.
    pub fn of(job: &Job, checks: Checks) -> Result<(Self, Equipment), RunError> {
        let Choice::Multipath(_) = job.choice else {
            return Err(unsupported("a single path in a scenario with groups"));
        };
        let scenario = &*job.scenario;
        let links = scenario.topology.links.clone();
        let timeline = scenario.network_changes().filter(|(_, change)| link_of(change).is_some()).collect();
        let mut ground = ChangingNetwork { topology: Topology { paths: Vec::new(), links }, timeline };
        let (mut pairs, mut connections) = (Vec::<Pair>::new(), 0);
        let (mut flows, mut meters, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, group) in scenario.groups.iter().enumerate() {
            let of_pair = Arc::new(scenario.of_pair(group));
            let mut ways = Ways::of(scenario, group, job.seed);
            for k in 0..group.count {
                let name = format!("{}.{k}", group.name);
                let name = (!pairs.is_empty()).then_some(&*name);
                let own = own_job(job, group, &of_pair, name);
                let layout = Layout::of(&own)?;
                let paths = settle(&mut ground, scenario, Settler { layout: &layout, ways: ways.of_pair(k), name });
                let fills = Direction::BOTH.into_iter().filter(|way| layout.fills(*way)).collect();
                let pair = Pair { group: index, first: connections, connections: layout.connections(), paths, fills };
                let before = flows.len();
                changes.extend(layout.host_changes(&own)?.into_iter().map(|(at, change)| (at, after(change, before))));
                flows.extend(layout.measured(&own)?.into_iter().map(|flow| pair.flow(flow)));
                meters.push((layout.meter(&own), pair.first));
                connections += pair.connections;
                pairs.push(pair);
            }
        }
        // One group without an end keeps the run going to its own.
        let awaited = flows.iter().all(|flow| flow.awaited);
        flows.iter_mut().for_each(|flow| flow.awaited = awaited);
        let cross = tcp_flows(scenario, job.seed, &mut ground);
        for (id, flow) in (connections..).map(ConnId).zip(&cross) {
            flows.push(flow.build(job, id, awaited)?);
        }
        let entrances = entrances(scenario, &mut ground);
        ground.timeline.sort_by_key(|(at, _)| *at);
        let of_network = ground.timeline.iter().map(|(at, change)| (*at, change.clone().into()));
        let (topology, seed) = (ground.topology.clone(), job.seed);
        let (timeline, sources) = (of_network.chain(changes).collect(), sources(scenario, seed, &entrances));
        let world = WorldSetup { topology, seed, timeline, sources, checks };
        Ok((Self { pairs, ground }, Equipment { flows, meters, world }))
    }

    /// The network, and how it changes.
    pub fn network(&self) -> (&Topology, &[(Instant, Change)]) {
        (&self.ground.topology, &self.ground.timeline)
    }
}

impl Pair {
    /// A flow of the pair with the world's numbers of connections and paths. Its addresses are those of the pair.
    fn flow(&self, mut flow: FlowSetup) -> FlowSetup {
        flow.id.0 += self.first;
        flow.captured = false;
        flow.routes.iter_mut().for_each(|(_, path)| *path = self.paths[*path]);
        for (end, side) in [(&mut flow.client, Side::Client), (&mut flow.server, Side::Server)] {
            let End::Engine { parties, .. } = end else { continue };
            for setup in parties.iter_mut().map(|party| &mut party.setup) {
                setup.id.0 += self.first;
                for path in &mut setup.paths {
                    let client = if side == Side::Client { &mut path.tuple.local } else { &mut path.tuple.remote };
                    if client.port() != 0 {
                        client.set_port(client_port(setup.id));
                    }
                }
            }
        }
        flow
    }
}

/// The run of a pair alone. All but the first pair, which has no `name`, draw from streams of their own.
fn own_job(job: &Job, group: &Group, scenario: &Arc<Scenario>, name: Option<&str>) -> Job {
    let choice = group.scheduler.clone().map_or_else(|| job.choice.clone(), Choice::Multipath);
    let congestion = group.congestion.clone().unwrap_or_else(|| job.congestion.clone());
    let seed = name.map_or(job.seed, |name| Rng::stream(job.seed, &["pair", name].join(".")).bits());
    Job { scenario: scenario.clone(), cell: job.cell.clone(), choice, congestion, seed, curves: None }
}

/// A pair that gets its place in the network.
struct Settler<'p> {
    layout: &'p Layout,
    /// The links of its paths where they are not those of the scenario.
    ways: Vec<Option<Vec<usize>>>,
    /// `None` of the first pair.
    name: Option<&'p str>,
}

/// Adds the paths of a pair to the network, with the links that it shares with none, and their changes. Returns the network's index of
/// each path.
fn settle(ground: &mut ChangingNetwork, scenario: &Scenario, pair: Settler<'_>) -> Vec<usize> {
    let Settler { layout, ways, name } = pair;
    let (own, timeline) = layout.network();
    let crosses = |path: &PathSpec, link: usize| [&path.down, &path.up].iter().any(|way| way.bottleneck.crosses(link));
    let named = |of: &str| name.map_or_else(|| of.to_owned(), |name| [of, name].join("."));
    let mut links = BTreeMap::new();
    for &link in scenario.per_pair.iter().filter(|link| own.paths.iter().any(|path| crosses(path, **link))) {
        let mut spec = scenario.topology.links[link].clone();
        spec.name = named(&spec.name);
        links.insert(link, ground.topology.links.len());
        ground.topology.links.push(spec);
    }
    let first = ground.topology.paths.len();
    for (path, way) in own.paths.iter().zip(ways) {
        let mut path = path.clone();
        if let Some(links) = way {
            path.up.bottleneck = Bottleneck::Route(links.iter().rev().copied().collect());
            path.down.bottleneck = Bottleneck::Route(links);
        }
        path.name = named(&path.name);
        for way in [&mut path.down, &mut path.up] {
            if let Bottleneck::Route(route) = &mut way.bottleneck {
                route.iter_mut().for_each(|link| *link = *links.get(link).unwrap_or(link));
            }
        }
        ground.topology.paths.push(path);
    }
    for (at, change) in timeline {
        let mut change = change.clone();
        if let Some(link) = link_of(&change) {
            // A shared link changes once for all pairs.
            let Some(own) = links.get(&link) else { continue };
            move_to(&mut change, *own);
        } else if let Some(path) = change.path_mut() {
            *path += first;
        }
        ground.timeline.push((*at, change));
    }
    (first..ground.topology.paths.len()).collect()
}

/// The link that changes, if one does.
fn link_of(change: &Change) -> Option<usize> {
    match change {
        Change::Behind(link, ..) => Some(*link),
        Change::Rate(Place::Link(link), ..)
        | Change::Burst(Place::Link(link), ..)
        | Change::Police(Place::Link(link), ..)
        | Change::Queue(Place::Link(link), ..) => Some(*link),
        _ => None,
    }
}

/// Makes a link's change one of another link.
fn move_to(change: &mut Change, link: usize) {
    match change {
        Change::Behind(of, ..) => *of = link,
        other => other.bottleneck_mut().into_iter().for_each(|place| *place = Place::Link(link)),
    }
}

/// A change of a pair's hosts, whose flows stand behind `n` others.
fn after(change: WorldChange, n: usize) -> WorldChange {
    match change {
        WorldChange::Network(change) => WorldChange::Network(change),
        WorldChange::Scheduler(flow, switch) => WorldChange::Scheduler(n + flow, switch),
        WorldChange::Options(flow, path, choice) => WorldChange::Options(n + flow, path, choice),
        WorldChange::PathUp(flow, setup) => WorldChange::PathUp(n + flow, setup),
        WorldChange::PathDown(flow, path) => WorldChange::PathDown(n + flow, path),
    }
}
