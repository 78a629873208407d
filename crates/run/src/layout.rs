//! A job's world, its flows, its measurements. Every driver starts from this.

use crate::application::{Application, applications};
use crate::cross::{ChangingNetwork, Entrance, TcpFlow, entrances, sources, tcp_flows};
use crate::curves::{Curves, Drawn};
pub use crate::job::unsupported;
use crate::job::{CONNECTION, Choice, Job, Measured, RunError, RunOutcome};
use crate::known::{KnownCapacity, fills, registered};
use crate::known_rates::{self, KnownRates, Share, Span, all_lost};
use crate::setup::{fifo, setup};
use crate::several::{self, Best};
use crate::values::Values;
use anabranch_engine::congestion::PACED_HEADERS;
use anabranch_engine::connection::PathSetup;
use anabranch_engine::{DssWidth, FirstPath, Scheduler, Settings};
use anabranch_metrics::{
    Better, CapacityCurve, CurveConfig, CurveRecorder, FrameSchedule, MeterConfig, MetricInfo, Oracle, PathConfig,
    RunMetrics, SegmentSizes, Timed, WrittenFrames, header_len, names, oracle_ratio,
};
use anabranch_network::{
    Bottleneck, BottleneckSpec, CapacitySpec, Change, PathSpec, Place, RateSteps, Steps, Topology,
};
use anabranch_scenario::{
    Host, MtuSignal, PathOptions, PlugIn, Presence, Scenario, TimelineChange, TimelineEntry, TraceStart,
};
use anabranch_sim::{
    Checks, End, FlowSetup, Opening, Party, PathChoice, Switch, WorldChange, WorldSetup, address, client_port,
    paths_between,
};
use anabranch_units::{ConnId, Direction, Duration, FramePattern, Instant, PathId, Rng, Side, TrafficDirection};
use anabranch_workload::Workload;
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;

/// A run's metrics as its outcome, without curves.
pub fn outcome(metrics: &RunMetrics, digest: String, events: u64) -> RunOutcome {
    let values = |list: &[(&'static str, f64)]| -> Values { list.iter().copied().collect() };
    RunOutcome {
        metrics: values(&metrics.values),
        paths: metrics.paths.iter().map(|p| (p.name.clone(), values(&p.values))).collect(),
        digest,
        events,
        finished: metrics.finished,
        curves: Curves::new(),
        live: None,
        measured: None,
    }
}

/// The inputs of a bound on the run with these metrics.
pub(crate) fn measured(metrics: &RunMetrics) -> Measured {
    Measured { time: metrics.measured, frames: metrics.frames.clone() }
}

/// The scenario's network, with traces begun where their paths say. The seed draws one place for all, so that what was
/// recorded together is replayed together.
pub fn topology(scenario: &Scenario, seed: u64) -> Topology {
    let mut topology = scenario.topology.clone();
    let part = Rng::stream(seed, "trace").unit();
    for (path, options) in topology.paths.iter_mut().zip(&scenario.paths) {
        let from = |period: u64| match options.trace_start {
            TraceStart::Begin => 0,
            TraceStart::Seed => (part * period as f64) as u64,
            TraceStart::At(from) => from.as_nanos() / 1_000_000,
        };
        for way in [&mut path.down, &mut path.up] {
            match &mut way.bottleneck {
                Bottleneck::Own(BottleneckSpec { capacity: CapacitySpec::Trace(trace), .. }) => {
                    *trace = Arc::new(trace.begun_at(from(trace.period_millis())));
                }
                Bottleneck::Own(BottleneckSpec { capacity: CapacitySpec::Steps(steps), .. }) => {
                    *steps = Arc::new(RateSteps::from(begun(steps.steps(), from)));
                }
                Bottleneck::Own(_) | Bottleneck::Route(_) => {}
            }
            way.recorded_delay = way.recorded_delay.as_ref().map(|steps| Arc::new(begun(steps, from)));
            way.recorded_loss = way.recorded_loss.as_ref().map(|steps| Arc::new(begun(steps, from)));
        }
    }
    for (path, options) in topology.paths.iter_mut().zip(&scenario.paths) {
        for way in [&mut path.down, &mut path.up] {
            // Hosts that know their interfaces send nothing larger.
            way.mtu = way.mtu.filter(|_| options.mtu_signal != MtuSignal::Interface);
            way.reports_mtu = options.mtu_signal == MtuSignal::Icmp;
        }
    }
    // Nothing passes an absent path.
    for (path, options) in topology.paths.iter_mut().zip(&scenario.paths) {
        let Presence { start, stop } = options.presence;
        let before = start.map(|start| (Instant::ZERO, start));
        let after = stop.map(|stop| (stop, Instant::MAX));
        for way in [&mut path.down, &mut path.up] {
            way.outages.extend(before.into_iter().chain(after));
        }
    }
    topology
}

/// The timeline's changes of paths and links, but for the interfaces of hosts.
fn network_changes(scenario: &Scenario) -> Vec<(Instant, Change)> {
    scenario.network_changes().filter(|(_, change)| scenario.interface_of(change).is_none()).collect()
}

/// A recording, begun where `from` says, which knows its milliseconds.
fn begun<T: Copy + PartialEq>(steps: &Steps<T>, from: impl Fn(u64) -> u64) -> Steps<T> {
    steps.begun_at(Duration::from_millis(from(steps.duration().as_nanos() / 1_000_000)))
}

/// A job's world, flows and measurements.
#[derive(Debug)]
pub struct Layout {
    /// Paths of the connections under test, by index; the first carries the first subflow unless the scenario names another.
    pub over: Vec<usize>,
    /// The connection speaks Multipath TCP.
    pub multipath: bool,
    /// At least one.
    applications: Vec<Application>,
    cross: Vec<TcpFlow>,
    /// Entrance of each entry of cross traffic.
    entrances: Vec<Entrance>,
    /// The scenario's, and what cross traffic needs behind it.
    topology: Topology,
    timeline: Vec<(Instant, Change)>,
}

impl Layout {
    /// # Errors
    /// The scenario needs something that no driver can do.
    pub fn of(job: &Job) -> Result<Self, RunError> {
        let scenario = &*job.scenario;
        if !scenario.groups.is_empty() {
            return Err(unsupported("groups of hosts, but in virtual time"));
        }
        if scenario.traffic.is_empty() {
            return Err(unsupported("a scenario without traffic"));
        }
        let (over, multipath) = match &job.choice {
            Choice::Multipath(_) => ((0..scenario.topology.paths.len()).collect(), scenario.settings.mptcp),
            Choice::Single(path) => (vec![*path], false),
        };
        let mut ground =
            ChangingNetwork { topology: topology(scenario, job.seed), timeline: network_changes(scenario) };
        let cross = tcp_flows(scenario, job.seed, &mut ground);
        let entrances = entrances(scenario, &mut ground);
        let ChangingNetwork { topology, timeline } = ground;
        let applications = applications(scenario, job.seed);
        Ok(Self { over, multipath, applications, cross, entrances, topology, timeline })
    }

    /// As [`Self::of`], for drivers in real time.
    ///
    /// # Errors
    /// As [`Self::of`]; there are several applications, or one that stops.
    pub fn of_one(job: &Job) -> Result<Self, RunError> {
        let layout = Self::of(job)?;
        match layout.alone() {
            None => Err(unsupported("several applications, but in virtual time")),
            Some(Application { stop: Some(_), .. }) => {
                Err(unsupported("an application that stops, but in virtual time"))
            }
            Some(_) => Ok(layout),
        }
    }

    /// The first application.
    fn first(&self) -> &Application {
        &self.applications[0]
    }

    /// The application, if there is one alone.
    fn alone(&self) -> Option<&Application> {
        if let [one] = &self.applications[..] { Some(one) } else { None }
    }

    /// The applications, each with a flow of its own.
    pub(crate) fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// The run ends with its traffic.
    fn has_end(&self) -> bool {
        self.applications.iter().all(Application::has_end)
    }

    /// The network with everything in it but the flows.
    ///
    /// # Errors
    /// A plug-in cannot be built.
    pub fn world(&self, job: &Job, checks: Checks) -> Result<WorldSetup, RunError> {
        let changes = self.timeline.iter().map(|(at, change)| (*at, change.clone().into()));
        let mut timeline: Vec<(Instant, WorldChange)> = changes.collect();
        timeline.extend(self.host_changes(job)?);
        let (topology, seed) = (self.topology.clone(), job.seed);
        Ok(WorldSetup { topology, seed, timeline, sources: sources(&job.scenario, seed, &self.entrances), checks })
    }

    /// The timeline's changes of the hosts under test.
    ///
    /// # Errors
    /// A plug-in cannot be built.
    pub(crate) fn host_changes(&self, job: &Job) -> Result<Vec<(Instant, WorldChange)>, RunError> {
        let mut changes = Vec::new();
        for (flow, application) in self.applications.iter().enumerate() {
            changes.extend(self.switches(job, flow)?);
            changes.extend(self.options(job, flow));
            changes.extend(self.comings(job, (flow, application)));
        }
        Ok(changes)
    }

    /// How many connections are under test.
    pub(crate) fn connections(&self) -> u32 {
        self.applications.iter().map(Application::count).sum()
    }

    /// How many of them may be under way at a time.
    fn at_once(&self) -> u32 {
        self.applications.iter().map(|application| application.connections.at_once()).sum()
    }

    /// Whether an end sends this way as much as it can, until the run ends.
    pub(crate) fn fills(&self, way: Direction) -> bool {
        self.applications.iter().any(|application| application.stop.is_none() && application.fills(way))
    }

    /// The network, and how it changes.
    pub(crate) fn network(&self) -> (&Topology, &[(Instant, Change)]) {
        (&self.topology, &self.timeline)
    }

    /// The paths that appear before the client of the connections under test, or go. Plain TCP has no address to withdraw.
    fn comings(&self, job: &Job, (flow, application): (usize, &Application)) -> Vec<(Instant, WorldChange)> {
        let mut comings = Vec::new();
        for (path, _) in self.used(job) {
            let Presence { start, stop } = job.scenario.paths[path.index()].presence;
            if let Some(at) = start.filter(|start| *start > application.start()) {
                let options = job.scenario.options_at(path.index(), at);
                let backup = self.multipath && options.backup;
                for mut setup in paths_of(&job.scenario, Side::Client, &[(path, backup)]) {
                    setup.policy = options.policy;
                    setup.mss = mss(&job.scenario, path.index(), at);
                    setup.tuple.local.set_port(0);
                    comings.push((at, WorldChange::PathUp(flow, setup)));
                }
            }
            comings.extend(stop.filter(|_| self.multipath).map(|at| (at, WorldChange::PathDown(flow, path))));
        }
        comings
    }

    /// Changes of the paths' options and interfaces. Plain TCP has no use for the options.
    fn options(&self, job: &Job, flow: usize) -> Vec<(Instant, WorldChange)> {
        let scenario = &*job.scenario;
        let of = |path: usize| {
            let options = scenario.option_changes(path).map(|(at, _)| at).filter(|_| self.multipath);
            let changes = scenario.network_changes();
            let interface = changes.filter(|(_, change)| scenario.interface_of(change) == Some(path)).map(|(at, _)| at);
            let mut times: Vec<Instant> = options.chain(interface).collect();
            times.sort_unstable();
            times.dedup();
            times.into_iter().map(move |at| {
                let PathOptions { backup, policy, .. } = scenario.options_at(path, at);
                let choice = PathChoice { backup: backup && self.multipath, policy, mss: mss(scenario, path, at) };
                (at, WorldChange::Options(flow, PathId(path as u8), choice))
            })
        };
        self.over.iter().flat_map(|path| of(*path)).collect()
    }

    /// The schedulers that take over on the connections of a flow. Plain TCP has no use for them.
    fn switches(&self, job: &Job, flow: usize) -> Result<Vec<(Instant, WorldChange)>, RunError> {
        let entries = job.scenario.timeline.iter().filter(|_| self.multipath);
        let of = |entry: &TimelineEntry| match &entry.change {
            TimelineChange::Network(_) | TimelineChange::Option(..) => None,
            TimelineChange::Scheduler(plug_in) => Some(switch(plug_in, flow).map(|switch| (entry.at, switch))),
        };
        entries.filter_map(of).collect()
    }

    /// The connections under test, between one pair of hosts: a flow per application. Then cross traffic that is TCP. Hosts that are not
    /// engines are outside.
    ///
    /// # Errors
    /// A plug-in cannot be built.
    pub fn flows(&self, job: &Job) -> Result<Vec<FlowSetup>, RunError> {
        let cross = self.cross_flows().map(|(id, flow)| flow.build(job, id, self.has_end()));
        self.measured(job)?.into_iter().map(Ok).chain(cross).collect()
    }

    /// Cross traffic that is TCP, with the numbers that follow those of the connections under test.
    fn cross_flows(&self) -> impl Iterator<Item = (ConnId, &TcpFlow)> {
        (self.connections()..).map(ConnId).zip(&self.cross)
    }

    /// Paths of the connections under test, and which of them are backups.
    fn used(&self, job: &Job) -> Vec<(PathId, bool)> {
        let backup = |path: usize| self.multipath && job.scenario.paths[path].backup;
        self.over.iter().map(|path| (PathId(*path as u8), backup(*path))).collect()
    }

    /// One end of the first application's connections, in their order.
    ///
    /// # Errors
    /// A plug-in cannot be built.
    pub fn parties(&self, job: &Job, side: Side) -> Result<Vec<Party>, RunError> {
        self.parties_of(self.first(), job, side)
    }

    fn parties_of(&self, application: &Application, job: &Job, side: Side) -> Result<Vec<Party>, RunError> {
        let scenario = &*job.scenario;
        let mut over = self.used(job);
        if side == Side::Client {
            over.retain(|(path, _)| scenario.paths[path.index()].presence.at(application.start()));
        }
        let scheduler = match &job.choice {
            Choice::Multipath(plug_in) => plug_in.clone(),
            Choice::Single(_) => fifo(),
        };
        let mut settings = scenario.settings.clone();
        settings.mptcp = self.multipath;
        settings.first_path = self.first_path(job);
        let party = |id: ConnId| -> Result<Party, RunError> {
            let mut setup = setup(id, &settings, &scheduler, &job.congestion)?;
            let (way, sends) = (side.sends(), application.direction().has(side.sends()));
            if sends && registered(&job.congestion.name).1 {
                let fills = fills(&scenario.topology, way, full_packet(&settings), self.at_once());
                setup.congestion = Box::new(KnownCapacity::new(setup.congestion, fills));
            }
            if sends && known_rates::registered(&scheduler.name).1 {
                setup.scheduler = self.with_known_rates(setup.scheduler, way, job);
            }
            setup.paths = paths_of(scenario, side, &over);
            setup.announce = self.announced(job, side);
            for path in &mut setup.paths {
                path.policy = scenario.paths[path.id.index()].policy;
                path.mss = mss(scenario, path.id.index(), Instant::ZERO);
            }
            for (n, path) in setup.paths.iter_mut().enumerate() {
                let client = if side == Side::Client { &mut path.tuple.local } else { &mut path.tuple.remote };
                let opens = match settings.first_path {
                    FirstPath::First => n == 0,
                    FirstPath::On(id) => path.id == id,
                    FirstPath::Race => true,
                };
                // This port gives the connection the same number at both ends; joins draw theirs.
                client.set_port(if opens { client_port(id) } else { 0 });
            }
            Ok(Party { setup, workload: application.connections.workload(side) })
        };
        application.ids().map(party).collect()
    }

    /// Addresses that an engine announces: its address of the other IP version, to a client that is a kernel. A kernel joins no other address;
    /// an engine knows all.
    fn announced(&self, job: &Job, side: Side) -> Vec<(u8, IpAddr, Option<u16>)> {
        let is_asked = side == Side::Server && self.multipath && host(job, Side::Client) == Host::Linux;
        let version = |path: usize| job.scenario.ip_of(path);
        let first = version(self.opens_over(job));
        let other = self.over.iter().map(|path| version(*path)).find(|version| is_asked && *version != first);
        other.map(|other| (1, address(other == 6, PathId(0), CONNECTION.0, Side::Server), None)).into_iter().collect()
    }

    /// `inner`, which knows what the bottleneck of each path on this way has for it.
    fn with_known_rates(&self, inner: Box<dyn Scheduler>, way: Direction, job: &Job) -> Box<dyn Scheduler> {
        let share = |path: usize| {
            let (sharers, silences) = (self.sharers(path, way), self.silences(path, way));
            Some(Share::new(self.capacity(path, way)?, sharers, silences))
        };
        let shares = (0..job.scenario.topology.paths.len()).map(share).collect();
        KnownRates::around(inner, shares, header(job, true).into())
    }

    /// When nothing that is sent this way over `path` arrives: its outages, and while everything is lost.
    fn silences(&self, path: usize, direction: Direction) -> Vec<Span> {
        let way = self.topology.paths[path].way(direction);
        let changes = self.timeline.iter().filter_map(|(at, change)| match *change {
            Change::Loss(of, towards, loss) if (of, towards) == (path, direction) => Some((*at, loss)),
            _ => None,
        });
        let losses = iter::once((Instant::ZERO, way.loss)).chain(changes);
        way.outages.iter().copied().chain(all_lost(losses)).collect()
    }

    /// Flows with congestion control that may send at a time through the bottleneck of `path`, this way: one for each
    /// connection under test and each of its paths there, and TCP that is cross traffic.
    fn sharers(&self, path: usize, way: Direction) -> u32 {
        let place = self.topology.narrowest(path, way).map(|(place, _)| place);
        let meets = |other: &usize| match place {
            Some(Place::Link(link)) => self.topology.paths[*other].way(way).bottleneck.crosses(link),
            Some(Place::Path(_)) | None => *other == path,
        };
        let own = self.over.iter().filter(|other| meets(other)).count() as u32 * self.at_once();
        let rivals = self.cross.iter().filter_map(|flow| flow.path_of(way));
        own + rivals.filter(|other| meets(other)).count() as u32
    }

    /// Which ends of the connections under test send data.
    fn direction(&self) -> TrafficDirection {
        let directions = self.applications.iter().map(Application::direction);
        directions.reduce(TrafficDirection::and).unwrap_or_default()
    }

    /// The connections under test, a flow per application.
    pub(crate) fn measured(&self, job: &Job) -> Result<Vec<FlowSetup>, RunError> {
        self.applications.iter().map(|application| self.flow(application, job)).collect()
    }

    fn flow(&self, application: &Application, job: &Job) -> Result<FlowSetup, RunError> {
        let end = |side| -> Result<End, RunError> {
            if host(job, side) == Host::Linux {
                return Ok(End::Outside);
            }
            let parties = self.parties_of(application, job, side)?;
            Ok(End::Engine { parties, opening: application.connections.opening().clone() })
        };
        let v6 = |path: PathId| job.scenario.ip_of(path.index()) == 6;
        let client = |path: PathId| (address(v6(path), path, CONNECTION.0, Side::Client), path.index());
        Ok(FlowSetup {
            id: ConnId(application.first),
            start: application.start(),
            stop: application.stop,
            awaited: self.has_end(),
            may_fail: application.stop.is_some(),
            captured: true,
            client: end(Side::Client)?,
            server: end(Side::Server)?,
            routes: self.used(job).iter().map(|(path, _)| client(*path)).collect(),
        })
    }

    /// Over which path a client opens the connections under test. One path has no choice.
    fn first_path(&self, job: &Job) -> FirstPath {
        if self.over.len() > 1 { job.scenario.settings.first_path } else { FirstPath::First }
    }

    /// The path over which a client that is a kernel opens the connections under test: one, in any case. If the chosen one
    /// appears later, another one; if all do, the first that appears.
    pub fn opens_over(&self, job: &Job) -> usize {
        let chosen = match self.first_path(job) {
            FirstPath::On(path) => path.index(),
            FirstPath::First | FirstPath::Race => self.over[0],
        };
        let presence = |path: usize| job.scenario.paths[path].presence;
        let there = [chosen].into_iter().chain(self.over.iter().copied()).find(|path| presence(*path).at(self.start()));
        let later = || self.over.iter().copied().filter(|path| presence(*path).start > Some(self.start()));
        there.or_else(|| later().min_by_key(|path| presence(*path).start)).unwrap_or(chosen)
    }

    /// When such a client opens the first of them: not before its path is there.
    pub fn opens_at(&self, job: &Job) -> Instant {
        let start = job.scenario.paths[self.opens_over(job)].presence.start;
        self.start().max(start.unwrap_or(Instant::ZERO))
    }

    /// When the application requested connections that had to wait for a path, by number.
    fn requested(&self, job: &Job) -> Vec<Instant> {
        let appears = self.opens_at(job);
        if appears <= self.start() {
            return Vec::new();
        }
        match self.opening() {
            Opening::AtOnce(count) | Opening::Served(count) => vec![self.start(); *count],
            Opening::At(times) => times.iter().copied().take_while(|at| *at < appears).collect(),
        }
    }

    /// The first application at one end of its connections, in their order.
    pub fn workloads(&self, side: Side) -> Vec<Box<dyn Workload>> {
        self.first().ids().map(|_| self.first().connections.workload(side)).collect()
    }

    /// The connection under test that a client opens from `port`.
    pub fn number(port: u16) -> Option<ConnId> {
        port.checked_sub(client_port(CONNECTION)).map(|n| ConnId(n.into()))
    }

    /// When the first application's first connection opens.
    pub fn start(&self) -> Instant {
        self.first().start()
    }

    /// When each of them opens.
    pub fn opening(&self) -> &Opening {
        self.first().connections.opening()
    }

    /// Configuration of the meter of all applications together.
    pub fn meter(&self, job: &Job) -> MeterConfig {
        let scenario = &*job.scenario;
        let used = scenario.topology.paths.iter().enumerate();
        let until = scenario.duration.map(|d| Instant::ZERO + scenario.warmup + d);
        let alone = self.alone();
        MeterConfig {
            from: Instant::ZERO + scenario.warmup,
            until: until.into_iter().chain(alone.and_then(|application| application.stop)).min(),
            connections: self.connections(),
            direction: self.direction(),
            directions: self.directions(),
            cross: self.cross_flows().map(|(id, flow)| flow.measured(id)).collect(),
            size: self.total(),
            flow_size: alone.and_then(|application| application.connections.flow_size()),
            requested: self.requested(job),
            timed: alone.map_or(Timed::Nothing, |application| application.connections.timed()),
            mss: scenario.settings.mss,
            displacement_threshold: None,
            head_start: self.multipath && self.over.len() > 1,
            efficiency: self.has_efficiency(job),
            paths: used
                .map(|(n, path)| PathConfig {
                    name: path.name.clone(),
                    price: scenario.paths[n].policy.price,
                    prices: scenario.option_changes(n).map(|(at, options)| (at, options.policy.price)).collect(),
                    capacities: self.capacities(n),
                    marks: self.direction().ways().iter().any(|way| self.marks(path, *way)),
                    outages: self.outages(path),
                })
                .collect(),
        }
    }

    /// Configurations of the meters of each of several applications, beside that of all of them, each with the number of its first connection.
    pub(crate) fn meters(&self, job: &Job) -> Vec<(MeterConfig, u32)> {
        if self.alone().is_some() {
            return Vec::new();
        }
        let all = self.meter(job);
        self.applications.iter().map(|application| (application.meter(&all), application.first)).collect()
    }

    /// Which ends send data on each connection, if that differs.
    fn directions(&self) -> Vec<TrafficDirection> {
        let all = self.direction();
        if self.applications.iter().all(|application| application.direction() == all) {
            return Vec::new();
        }
        let of = |application: &Application| iter::repeat_n(application.direction(), application.count() as usize);
        self.applications.iter().flat_map(of).collect()
    }

    /// Bytes of all applications together, if all send so many and none is stopped before.
    fn total(&self) -> Option<u64> {
        let several = self.applications.len() > 1;
        let of = |application: &Application| {
            application.connections.total().filter(|_| !several || application.stop.is_none())
        };
        self.applications.iter().map(of).try_fold(0u64, |sum, total| Some(sum.saturating_add(total?)))
    }

    /// LIA couples two paths.
    fn has_efficiency(&self, job: &Job) -> bool {
        self.multipath && self.over.len() == 2 && job.congestion.name == "lia"
    }

    /// The recorder of the run's curves, if `job` requests them.
    pub fn curves(&self, job: &Job) -> Option<Drawn> {
        let paths = &job.scenario.topology.paths;
        let efficiency = self.has_efficiency(job);
        let config = |way, bin| CurveConfig { connection: CONNECTION, way, bin, paths: paths.len(), efficiency };
        let used = self.over.iter().map(|n| (PathId(*n as u8), paths[*n].name.clone()));
        job.curves.map(|bin| {
            let recorders = self.first().direction().ways().iter().map(|way| CurveRecorder::new(config(*way, bin)));
            Drawn::new(recorders.collect(), used.collect())
        })
    }

    /// Times in which nothing arrives over a path, in either direction: its own outages, and those of its links.
    fn outages(&self, path: &PathSpec) -> Vec<(Instant, Instant)> {
        let of_links = Direction::BOTH.into_iter().flat_map(|way| {
            let route = path.way(way).bottleneck.route().iter();
            route.filter_map(move |link| self.topology.links.get(*link)?.behind(way))
        });
        [&path.down, &path.up].into_iter().chain(of_links).flat_map(|way| &way.outages).copied().collect()
    }

    fn capacity(&self, path: usize, way: Direction) -> Option<CapacityCurve> {
        Oracle::capacity(&self.topology, &self.timeline, path, way)
    }

    /// The capacities of a path on each way of the data; none if one is unknown.
    fn capacities(&self, path: usize) -> Vec<CapacityCurve> {
        let ways = self.direction().ways().iter();
        ways.map(|way| self.capacity(path, *way)).collect::<Option<_>>().unwrap_or_default()
    }

    /// Whether a queue of a path on this way marks packets.
    fn marks(&self, path: &PathSpec, way: Direction) -> bool {
        let bottleneck = &path.way(way).bottleneck;
        let links = bottleneck.route().iter().filter_map(|link| self.topology.links.get(*link));
        bottleneck.own().into_iter().chain(links.map(|link| link.bottleneck(way))).any(|spec| spec.queue.marks())
    }

    /// Leaves only the paths that the run used, and adds how near it came to the best possible.
    pub fn judge(&self, job: &Job, metrics: &mut RunMetrics) {
        let paths = &job.scenario.topology.paths;
        let names: Vec<&str> = self.over.iter().map(|n| paths[*n].name.as_str()).collect();
        metrics.paths.retain(|path| names.contains(&path.name.as_str()));
        let (measured, reached) = (measured(metrics), |name: &str| metrics.get(name));
        let own = self.ratio(job, (&self.over, self.multipath), &measured, reached);
        let is_alone = matches!(job.choice, Choice::Single(_));
        let of_all = is_alone.then(|| self.ratio_of_all(job, &measured, reached)).flatten();
        metrics.set(names::ORACLE_RATIO, own);
        metrics.set(names::ORACLE_RATIO_OF_ALL, of_all);
    }

    /// How near a run that `reached` these values came to the best possible over all paths.
    pub(crate) fn ratio_of_all(
        &self,
        job: &Job,
        measured: &Measured,
        reached: impl Fn(&str) -> Option<f64>,
    ) -> Option<f64> {
        let all: Vec<usize> = (0..job.scenario.topology.paths.len()).collect();
        self.ratio(job, (&all, job.scenario.settings.mptcp), measured, reached)
    }

    /// The same over the paths `over`, also by Multipath TCP if that is spoken.
    fn ratio(
        &self,
        job: &Job,
        over: (&[usize], bool),
        Measured { time, frames }: &Measured,
        reached: impl Fn(&str) -> Option<f64>,
    ) -> Option<f64> {
        let bound = self.bound_over(job, over, *time, (frames, time.1));
        let reached = reached(bound.metric);
        // The shorter the better: T*/T.
        let shorter = MetricInfo::of_run(bound.metric).is_some_and(|info| info.better == Some(Better::Lower));
        let (above, below) = if shorter { (bound.value, reached) } else { (reached, bound.value) };
        oracle_ratio(above, below)
    }

    /// The frames that an end sends, of traffic that has any.
    pub(crate) fn frames(&self) -> Option<FrameSchedule> {
        match self.alone()?.connections.timed() {
            Timed::Frames(frames) => Some(frames),
            Timed::Responses(_) | Timed::Video(_) | Timed::Nothing => None,
        }
    }

    /// The best possible in the main metric of the traffic, for the measured time from … until and the frames
    /// that were written in it, none of which counts more than its age at `end`.
    pub(crate) fn bound(&self, job: &Job, measured: (Instant, Instant), frames: (&WrittenFrames, Instant)) -> Best {
        self.bound_over(job, (&self.over, self.multipath), measured, frames)
    }

    /// As [`Self::bound`], over the paths `over`, also by Multipath TCP if that is spoken.
    fn bound_over(
        &self,
        job: &Job,
        (over, multipath): (&[usize], bool),
        (from, until): (Instant, Instant),
        (written, end): (&WrittenFrames, Instant),
    ) -> Best {
        let settings = &job.scenario.settings;
        let multipath = multipath.then(|| header(job, true));
        let sizes = SegmentSizes { mss: settings.mss, plain: header(job, false), multipath };
        let oracle = |way: &Direction| Oracle::new(&self.topology, &self.timeline, over, sizes, *way);
        let oracles: Vec<Oracle> = self.direction().ways().iter().map(oracle).collect();
        let Some(Application { connections, .. }) = self.alone() else {
            return several::bound(&self.applications, &oracles, self.direction(), (from, until));
        };
        let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
        let (metric, value) = match (connections.timed(), connections.total()) {
            (Timed::Frames(frames), _) => {
                (names::FRAME_DELAY, seconds(frame_delay(&oracles, written, end, &frames.pattern)))
            }
            (_, Some(_)) => {
                let each = oracles.iter().map(|oracle| connections.least_completion(oracle));
                (names::COMPLETION, seconds(each.collect::<Option<Vec<_>>>().and_then(|each| each.into_iter().max())))
            }
            // Responses without end wait for their requests.
            (Timed::Responses(_), None) => (names::RESPONSE, None),
            // The best of a video depends on what its rule knows.
            (Timed::Video(_), None) => (names::QOE, None),
            (Timed::Nothing, None) => {
                (names::GOODPUT, several::most_goodput(oracles.iter(), self.start(), (from, until)))
            }
        };
        Best { metric, value }
    }
}

/// The least mean delay of frames that were written each way, whose oracles these are.
fn frame_delay(oracles: &[Oracle], written: &WrittenFrames, end: Instant, pattern: &FramePattern) -> Option<Duration> {
    let (mut sum, mut count) = (0, 0);
    for (oracle, frames) in oracles.iter().zip(written) {
        let own: u64 = frames.iter().map(|times| times.counted.end.saturating_sub(times.counted.start)).sum();
        if let Some(delay) = oracle.frame_delay(frames, end, pattern) {
            sum += u128::from(delay.as_nanos()) * u128::from(own);
            count += u128::from(own);
        }
    }
    (count > 0).then(|| Duration::from_nanos((sum / count) as u64))
}

/// Bytes of a full packet's headers, with Multipath TCP's option or without.
fn header(job: &Job, multipath: bool) -> u32 {
    let settings = &job.scenario.settings;
    let dss = match settings.dss {
        DssWidth::Four => 4,
        DssWidth::Eight => 8,
    };
    header_len(job.scenario.hosts.ip, settings.tcp.timestamps, multipath.then_some(dss))
}

/// These paths of the connections under test as `side` knows them, each with the addresses of its own IP version.
fn paths_of(scenario: &Scenario, side: Side, over: &[(PathId, bool)]) -> Vec<PathSetup> {
    let of = |path: &(PathId, bool)| paths_between(scenario.ip_of(path.0.index()) == 6, CONNECTION.0, side, &[*path]);
    over.iter().flat_map(of).collect()
}

/// Most payload bytes of a segment on a path at a time, where its interfaces limit that.
fn mss(scenario: &Scenario, path: usize, at: Instant) -> Option<u32> {
    let headers = anabranch_scenario::full_packet(0, scenario.ip_of(path)) as u32;
    scenario.interface_mtu_at(path, at).map(|mtu| mtu - headers)
}

/// Bytes of a full IPv4 packet.
fn full_packet(settings: &Settings) -> u64 {
    u64::from(settings.mss) + PACED_HEADERS
}

/// A scheduler that takes over on a flow.
fn switch(plug_in: &PlugIn, flow: usize) -> Result<WorldChange, RunError> {
    let refused = |e: anabranch_schedulers::BuildError| unsupported(&e.to_string());
    let resolved = anabranch_schedulers::resolve(&plug_in.name).map_err(refused)?;
    resolved.build(&plug_in.parameters).map_err(refused)?;
    let parameters = plug_in.parameters.clone();
    let make = Arc::new(move || resolved.build(&parameters).expect("these were just found to be fine"));
    Ok(WorldChange::Scheduler(flow, Switch { name: resolved.label(), make }))
}

/// One end of the connections under test.
pub fn host(job: &Job, side: Side) -> Host {
    job.scenario.host(side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::Document;

    #[test]
    fn every_subflow_and_rival_at_a_bottleneck_shares_it() {
        let text = r#"
duration = "1s"
[[link]]
name = "common"
rate = "8mbit"
[[path]]
name = "a"
link = "common"
delay = "10ms"
[[path]]
name = "b"
link = "common"
delay = "10ms"
[[path]]
name = "c"
rate = "8mbit"
delay = "10ms"
[[cross]]
link = "common"
kind = "tcp"
count = 2
[[cross]]
path = "c"
kind = "tcp"
direction = "up"
[[traffic]]
kind = "bulk"
flows = 3
"#;
        let scenario = Document::parse("test", text).unwrap().cells.remove(0).1;
        let choice = Choice::Multipath(scenario.scheduler.clone());
        let job = Job::of(Arc::new(scenario), choice, 1);
        let layout = Layout::of(&job).unwrap();
        // Three connections with two subflows each and two rivals; three connections, for the rival there sends up.
        assert_eq!([0, 1, 2].map(|path| layout.sharers(path, Direction::Down)), [8, 8, 3]);
        // The other way each has its own link, but for the rival.
        assert_eq!(layout.sharers(2, Direction::Up), 4);
    }
}
