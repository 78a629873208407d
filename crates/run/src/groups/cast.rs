//! The pairs of hosts of a run, and the network that they share.

use crate::cross::{ChangingNetwork, Entrance, TcpFlow, entrances, sources, tcp_flows};
use crate::job::{Choice, Job, RunError, unsupported};
use crate::layout::Layout;
use anabranch_network::{Bottleneck, Change, PathSpec, Place, Topology};
use anabranch_scenario::{Group, Scenario};
use anabranch_sim::{Checks, End, FlowSetup, WorldChange, WorldSetup, client_port};
use anabranch_units::{ConnId, Instant, Rng, Side};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pair of hosts: a run of its own, but for the network.
pub(crate) struct Pair {
    /// Index of the group.
    pub group: usize,
    pub job: Job,
    pub layout: Layout,
    /// Number of its first connection in the world; its own count from 0.
    pub first: u32,
    /// The world's path of each of its own.
    pub paths: Vec<usize>,
}

/// All hosts of a run.
pub(crate) struct Cast {
    pub pairs: Vec<Pair>,
    /// The number of connections of all pairs.
    connections: u32,
    cross: Vec<TcpFlow>,
    entrances: Vec<Entrance>,
    ground: ChangingNetwork,
}

impl Cast {
    /// The pairs of each group, in the order of the file.
    pub fn of(job: &Job) -> Result<Self, RunError> {
        let Choice::Multipath(_) = job.choice else {
            return Err(unsupported("a single path in a scenario with groups"));
        };
        let scenario = &*job.scenario;
        let links = scenario.topology.links.clone();
        let timeline = scenario.network_changes().filter(|(_, change)| link_of(change).is_some()).collect();
        let mut ground = ChangingNetwork { topology: Topology { paths: Vec::new(), links }, timeline };
        let (mut pairs, mut connections) = (Vec::new(), 0);
        for (index, group) in scenario.groups.iter().enumerate() {
            let of_pair = Arc::new(scenario.of_pair(group));
            for k in 0..group.count {
                let is_first = pairs.is_empty();
                let name = format!("{}.{k}", group.name);
                let own = own_job(job, group, &of_pair, (!is_first).then_some(&*name));
                let layout = Layout::of(&own)?;
                let paths = settle(&mut ground, scenario, &layout, (!is_first).then_some(&*name));
                let count = layout.connections();
                pairs.push(Pair { group: index, job: own, layout, first: connections, paths });
                connections += count;
            }
        }
        let cross = tcp_flows(scenario, job.seed, &mut ground);
        let entrances = entrances(scenario, &mut ground);
        ground.timeline.sort_by_key(|(at, _)| *at);
        Ok(Self { pairs, connections, cross, entrances, ground })
    }

    /// The network, and how it changes.
    pub fn network(&self) -> (&Topology, &[(Instant, Change)]) {
        (&self.ground.topology, &self.ground.timeline)
    }

    /// The network with everything in it but the flows.
    pub fn world(&self, job: &Job, checks: Checks) -> Result<WorldSetup, RunError> {
        let changes = self.ground.timeline.iter().map(|(at, change)| (*at, change.clone().into()));
        let mut timeline: Vec<(Instant, WorldChange)> = changes.collect();
        let mut flows = 0;
        for pair in &self.pairs {
            let own = pair.layout.host_changes(&pair.job)?;
            timeline.extend(own.into_iter().map(|(at, change)| (at, after(change, flows))));
            flows += pair.layout.applications().len();
        }
        let (topology, seed) = (self.ground.topology.clone(), job.seed);
        Ok(WorldSetup { topology, seed, timeline, sources: sources(&job.scenario, seed, &self.entrances), checks })
    }

    /// The flows of each pair, then cross traffic that is TCP.
    pub fn flows(&self, job: &Job) -> Result<Vec<FlowSetup>, RunError> {
        let mut flows: Vec<FlowSetup> =
            self.pairs.iter().map(Pair::flows).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        let awaited = flows.iter().any(|flow| flow.awaited);
        for (id, flow) in (self.connections..).map(ConnId).zip(&self.cross) {
            flows.push(flow.build(job, id, awaited)?);
        }
        Ok(flows)
    }
}

impl Pair {
    /// The pair in a world with others.
    fn flows(&self) -> Result<Vec<FlowSetup>, RunError> {
        Ok(self.layout.measured(&self.job)?.into_iter().map(|flow| self.flow(flow)).collect())
    }

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

/// Adds the paths of a pair to the network, with the links that it shares with none, and their changes. Returns the network's index of
/// each path.
fn settle(ground: &mut ChangingNetwork, scenario: &Scenario, pair: &Layout, name: Option<&str>) -> Vec<usize> {
    let (own, timeline) = pair.network();
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
    for path in &own.paths {
        let mut path = path.clone();
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
