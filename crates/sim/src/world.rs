//! The event loop.

use crate::agenda::{Agenda, Alarm, Turn, place};
use crate::flow::{End, FlowSetup, HostId, PORT};
use crate::host::{Host, Opening, PathChoice, Switch};
use crate::outside::{Content, Outbound, Place, Raw, damaged};
use crate::parcel::Parcel;
use crate::stillness::MOST_PACKETS;
use crate::stuck::{Halt, Stuck};
use crate::too_big::TooBig;
use anabranch_engine::Cx;
use anabranch_engine::connection::{Connection, PathSetup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::schedule::Device;
use anabranch_network::{Change, Delivery, LinkCounts, Network, PathSpec, Topology};
use anabranch_trace::Recorder;
use anabranch_units::{Direction, Duration, Instant, PathId, Rng, Side};
use anabranch_wire::Packet;
use anabranch_workload::PacketSource;
use core::net::IpAddr;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// The setup of a world, without its flows.
#[derive(Debug)]
pub struct WorldSetup {
    /// Paths and links.
    pub topology: Topology,
    /// Seed of every random stream.
    pub seed: u64,
    /// Changes during the run.
    pub timeline: Vec<(Instant, WorldChange)>,
    /// Sources of datagram cross traffic.
    pub sources: Vec<SourceSetup>,
    /// Extra checks.
    pub checks: Checks,
}

/// A change during a run.
#[derive(Clone, Debug)]
pub enum WorldChange {
    /// A path or a link.
    Network(anabranch_network::Change),
    /// The scheduler at both ends of the flow with this index.
    Scheduler(usize, Switch),
    /// Backup flag and policy of a path, at both ends of the flow with this index.
    Options(usize, PathId, PathChoice),
    /// A path appears before the client of the flow with this index, which joins over it or connects.
    PathUp(usize, PathSetup),
    /// A path goes: the client of the flow with this index withdraws its address.
    PathDown(usize, PathId),
}

impl From<anabranch_network::Change> for WorldChange {
    fn from(change: anabranch_network::Change) -> Self {
        Self::Network(change)
    }
}

/// Extra checks of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Every packet is written to bytes and read back before it travels; the run must not change.
    pub wire: bool,
}

/// A source of datagrams and the bottleneck that they cross.
#[derive(Debug)]
pub struct SourceSetup {
    /// Times and sizes of its packets.
    pub source: Box<dyn PacketSource>,
    /// Index of the path, or of the shared link.
    pub over: usize,
    /// `over` counts links.
    pub shared: bool,
    /// Direction of the source.
    pub direction: Direction,
}

/// A packet that takes no longer to leave may as well be several: drivers in real time are no more exact.
const UNSEEN: Duration = Duration::from_micros(50);

/// A parcel is fetched when so many others are to arrive before it on its way: what they take is longer than what memory takes.
const AHEAD: usize = 4;

/// Events between two checks for a stop; a power of two.
const LOOK: u32 = 256;

/// A device of a host: the network path that begins there, and the side that sends on it.
#[derive(Clone, Copy, Debug)]
struct DeviceId {
    path: usize,
    side: Side,
}

#[derive(Debug)]
struct Source {
    setup: SourceSetup,
    size: u32,
}

#[derive(Debug)]
struct FlowState {
    awaited: bool,
    /// The ends that are done, of an awaited flow.
    done: [bool; 2],
    may_fail: bool,
    captured: bool,
    routes: Vec<(IpAddr, usize)>,
    /// A subflow with a lower number uses the network path of its number.
    own_paths: usize,
}

/// Hosts, applications and the network between them.
#[derive(Debug)]
pub struct World {
    pub(crate) now: Instant,
    pub(crate) network: Network<Box<Parcel>>,
    /// Boxes of delivered parcels for reuse: packets are built in them, and move as pointers.
    #[expect(clippy::vec_box, reason = "the boxes themselves are what is used again")]
    spare: Vec<Box<Parcel>>,
    /// The parcel for the next packet.
    draft: Box<Parcel>,
    /// Hosts by [`HostId::index`].
    hosts: Vec<Place>,
    /// Packets that reached hosts outside.
    outbox: VecDeque<Outbound>,
    flows: Vec<FlowState>,
    /// Bottlenecks that are the sending host's device.
    devices: Vec<DeviceId>,
    /// Packets larger than their paths carry.
    too_big: TooBig,
    sources: Vec<Source>,
    timeline: Vec<(Instant, WorldChange)>,
    pub(crate) agenda: Agenda,
    events: u64,
    checks: Checks,
    /// Awaited flows that are not done; `None` if no flow is awaited.
    awaiting: Option<usize>,
    /// Awaited flows whose client, and whose server, is not done.
    pub(crate) unfinished: [usize; 2],
    stuck: Option<Stuck>,
    /// A request from outside to stop.
    stop: Option<&'static AtomicBool>,
    /// Counts down to its next check.
    turns: u32,
}

/// Whether some path has a limit for its packets, now or later.
fn may_be_too_big(topology: &Topology, timeline: &[(Instant, WorldChange)]) -> bool {
    let sets = |change: &WorldChange| matches!(change, WorldChange::Network(Change::Mtu(..)));
    let limits = |path: &PathSpec| path.down.mtu.or(path.up.mtu).is_some();
    topology.paths.iter().any(limits) || timeline.iter().any(|(_, change)| sets(change))
}

impl World {
    /// A world at time zero.
    pub fn new(setup: WorldSetup, flows: Vec<FlowSetup>) -> Self {
        let WorldSetup { topology, seed, timeline, sources, checks } = setup;
        let mut world = Self {
            now: Instant::ZERO,
            network: Network::new(&topology, seed),
            spare: Vec::new(),
            draft: Box::default(),
            hosts: Vec::with_capacity(flows.len() * 2),
            outbox: VecDeque::new(),
            flows: Vec::with_capacity(flows.len()),
            devices: devices(&topology),
            too_big: TooBig::new(may_be_too_big(&topology, &timeline)),
            sources: sources.into_iter().map(|setup| Source { setup, size: 0 }).collect(),
            timeline,
            agenda: Agenda::default(),
            events: 0,
            checks,
            awaiting: None,
            unfinished: [0; 2],
            stuck: None,
            stop: None,
            turns: 0,
        };
        for n in 0..world.timeline.len() {
            world.agenda.set_turn(world.timeline[n].0, Turn::Timeline(n as u32));
        }
        for n in 0..world.sources.len() {
            world.draw_datagram(n);
        }
        for (n, flow) in flows.into_iter().enumerate() {
            world.add_flow(n, flow, seed);
        }
        world
    }

    fn add_flow(&mut self, n: usize, flow: FlowSetup, seed: u64) {
        let number = flow.id.0.to_string();
        let stream = |side| Rng::stream(seed, &["flow", &number, side].join("."));
        let mut start = |at| self.agenda.set_alarm(at, Side::Client, Alarm::Start(n as u32));
        start(flow.start);
        if let End::Engine { opening: Opening::At(times), .. } = &flow.client {
            times.iter().filter(|at| **at > flow.start).for_each(|at| start(*at));
        }
        if let Some(stop) = flow.stop {
            self.agenda.set_turn(stop, Turn::Stop(n as u32));
        }
        let place = |side, end, rng| match end {
            End::Engine { parties, opening } => Place::Engine(Box::new(Host::new(side, PORT, parties, opening, rng))),
            End::Outside => Place::Outside(false),
        };
        self.hosts.push(place(Side::Client, flow.client, stream("client")));
        self.hosts.push(place(Side::Server, flow.server, stream("server")));
        let FlowSetup { awaited, may_fail, captured, routes, .. } = flow;
        let own_paths = match routes.is_empty() {
            true => usize::MAX,
            false => routes.iter().enumerate().take_while(|(n, (_, path))| n == path).count(),
        };
        self.flows.push(FlowState { awaited, done: [false; 2], may_fail, captured, routes, own_paths });
        if awaited {
            self.awaiting = Some(self.awaiting.unwrap_or(0) + 1);
            self.unfinished = self.unfinished.map(|n| n + 1);
        }
    }

    /// Both hosts get to this time before either goes beyond it, for a recorder that reads what both have done by then.
    pub fn mark(&mut self, at: Instant) {
        self.agenda.set_turn(at, Turn::Mark);
    }

    /// From now on [`Self::run`] ends with [`Stuck::Asked`] soon after `asked` is set, whatever the state.
    pub fn stop_when(&mut self, asked: &'static AtomicBool) {
        self.stop = Some(asked);
    }

    fn is_asked(&self) -> bool {
        self.stop.is_some_and(|asked| asked.load(Ordering::Relaxed))
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events handled so far: delivered packets and alarms.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn place(&self, flow: usize, side: Side) -> &Place {
        &self.hosts[HostId::new(flow, side).index()]
    }

    /// A host's endpoint, for inspection; `None` if it is outside.
    pub fn endpoint(&self, flow: usize, side: Side) -> Option<&Endpoint> {
        self.place(flow, side).engine().map(|host| &host.endpoint)
    }

    /// A host's first connection, for inspection; `None` before the client connects or the server accepts, and after it
    /// has closed.
    pub fn connection(&self, flow: usize, side: Side) -> Option<&Connection> {
        let host = self.place(flow, side).engine()?;
        host.handle().and_then(|handle| host.endpoint.connection(handle))
    }

    /// A host's first connection, as handle for [`Self::act`]; `None` before it exists.
    pub fn handle(&self, flow: usize, side: Side) -> Option<Handle> {
        self.place(flow, side).engine()?.handle()
    }

    /// The number of applications at this end that have finished their work.
    pub fn done(&self, flow: usize, side: Side) -> usize {
        match self.place(flow, side) {
            Place::Engine(host) => host.done(),
            Place::Outside(done) => (*done).into(),
        }
    }

    /// Changes a host's endpoint between two calls of [`Self::run`]; its packets leave when the world continues.
    /// Without effect on a host outside.
    pub fn act(
        &mut self,
        flow: usize,
        side: Side,
        recorder: &mut dyn Recorder,
        act: &mut dyn FnMut(&mut Endpoint, &mut Cx<'_>),
    ) {
        let host = HostId::new(flow, side);
        if let Some(engine) = self.hosts[host.index()].engine_mut() {
            engine.act(self.now, recorder, act);
            self.flush(host, recorder);
            self.check(host);
        }
    }

    /// A host outside sent an IP packet into a network path. It enters now, so call [`Self::run`] up to the present
    /// first. A packet that is still to be cut up is cut up here if the packetisation matters to the path.
    pub fn inject(&mut self, flow: usize, side: Side, path: usize, raw: Raw, recorder: &mut dyn Recorder) {
        let direction = side.sends();
        let gso = raw.left.gso.filter(|_| self.network.counts_packets(path, direction, UNSEEN));
        match gso.and_then(|gso| Some((gso, raw.parse().ok()?))) {
            Some((gso, whole)) => {
                for packet in whole.cut(gso.size) {
                    let (size, mut parcel) = (packet.len() as u32, self.parcel(flow, side));
                    parcel.packet = packet;
                    parcel.raw = None;
                    self.enter(HostId::new(flow, side), path, size, parcel, recorder);
                }
            }
            None => {
                let (size, mut parcel) = (raw.bytes.len() as u32, self.parcel(flow, side));
                parcel.raw = Some(Box::new(raw));
                self.enter(HostId::new(flow, side), path, size, parcel, recorder);
            }
        }
    }

    /// A packet of a host outside enters its path, unless it is too large.
    fn enter(&mut self, host: HostId, path: usize, size: u32, parcel: Box<Parcel>, recorder: &mut dyn Recorder) {
        let direction = host.side().sends();
        match self.network.refuse(self.now, recorder, path, direction, size) {
            None => self.network.send(self.now, recorder, path, direction, size, parcel),
            Some(refused) => {
                self.too_big.note(host, path, refused, parcel);
                self.await_reports(host.side());
            }
        }
    }

    /// A parcel for a packet that this end of a flow sends now.
    fn parcel(&mut self, flow: usize, side: Side) -> Box<Parcel> {
        let mut parcel = self.spare.pop().unwrap_or_default();
        parcel.host = HostId::new(flow, side).peer();
        parcel.sent = self.now;
        parcel
    }

    /// Packets under way to this end of a flow that entered the network at `until` or before.
    pub fn under_way_to(&self, flow: usize, side: Side, until: Instant) -> usize {
        let host = HostId::new(flow, side);
        self.network.under_way().filter(|parcel| parcel.host == host && parcel.sent <= until).count()
    }

    /// Packets of one direction of a link, and their fate so far.
    pub fn link_counts(&self, link: usize, direction: Direction) -> LinkCounts {
        self.network.link_counts(link, direction)
    }

    /// The next packet that reached a host outside.
    pub fn poll_outside(&mut self) -> Option<Outbound> {
        self.outbox.pop_front()
    }

    /// Records that a host outside has finished its work.
    pub fn set_done(&mut self, flow: usize, side: Side) {
        let host = HostId::new(flow, side);
        if let Place::Outside(done) = &mut self.hosts[host.index()] {
            *done = true;
            self.check(host);
        }
    }

    /// The time of the next internal event.
    pub fn poll_timeout(&self) -> Instant {
        let alarms = self.agenda.alarm(Side::Client).min(self.agenda.alarm(Side::Server));
        alarms.min(self.agenda.turn()).min(self.network.poll_timeout().unwrap_or(Instant::MAX))
    }

    /// Runs until all awaited flows are done or `until` is reached.
    pub fn run(&mut self, until: Instant, recorder: &mut dyn Recorder) -> Result<Halt, Stuck> {
        let halt = self.advance(until, recorder)?;
        if halt == Halt::Time {
            if until == Instant::MAX {
                return if self.is_given_up() { Ok(Halt::GivenUp) } else { Err(Stuck::Silence) };
            }
            self.now = until;
            self.network.settle(self.now, recorder);
        }
        Ok(halt)
    }

    /// As [`Self::run`], but a pause at `until` leaves no trace: departures that the network records late stay so. A run in any number of
    /// parts, the last by [`Self::run`] unless it is over before, has the events of a run in one.
    pub fn advance(&mut self, until: Instant, recorder: &mut dyn Recorder) -> Result<Halt, Stuck> {
        let is_ahead = self.may_run_ahead() && !recorder.needs_order();
        while !self.is_over() {
            let next = self.poll_timeout();
            if next > until || next == Instant::MAX {
                return Ok(Halt::Time);
            }
            self.proceed(next, until, is_ahead, recorder)?;
        }
        // Nothing follows that would record them.
        self.network.settle(self.now, recorder);
        Ok(Halt::Done)
    }

    /// One end of each awaited flow has given its connections up. The other may not know: an end with nothing to send has no timer
    /// (half-open, RFC 9293 §3.5.1).
    fn is_given_up(&self) -> bool {
        let has_connection = |flow, side| self.place(flow, side).engine().is_some_and(Host::has_connection);
        let stands = |flow| has_connection(flow, Side::Client) && has_connection(flow, Side::Server);
        !(0..self.flows.len()).any(|flow| self.flows[flow].awaited && stands(flow))
    }

    /// All awaited flows are done.
    pub(crate) fn is_over(&self) -> bool {
        self.awaiting == Some(0)
    }

    /// Whether no host outside acts meanwhile, and no client alone decides that a flow is done.
    fn may_run_ahead(&self) -> bool {
        let one_end_decides = |flow: &FlowState| flow.awaited && flow.may_fail;
        self.hosts.iter().all(|host| host.engine().is_some()) && !self.flows.iter().any(one_end_decides)
    }

    /// Looks behind an event whether the run cannot continue.
    #[inline(always)]
    pub(crate) fn look(&mut self) -> Result<(), Stuck> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(LOOK) && self.is_asked() {
            return Err(Stuck::Asked);
        }
        self.stuck.take().map_or(Ok(()), Err)
    }

    /// Delivers the next packet that is due in a direction by now; what hosts sent up to `known` is known.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, direction: Direction, known: Instant, recorder: &mut dyn Recorder) {
        let Some(delivery) = self.network.poll_deliver(self.now, direction, known, recorder) else { return };
        let Delivery { path, direction, mut item, corrupted } = delivery;
        if let Some(coming) = self.network.coming(path, direction, AHEAD) {
            coming.fetch();
        }
        self.events += 1;
        let host = item.host;
        match &self.hosts[host.index()] {
            Place::Outside(_) => self.arrive_outside(host, path, &mut item, corrupted, recorder),
            // Its checksum would not match.
            Place::Engine(_) if corrupted => {}
            Place::Engine(_) => self.arrive_inside(host, path, &item, recorder),
        }
        self.spare.push(item);
    }

    /// A packet reached an engine.
    #[inline(always)]
    fn arrive_inside(&mut self, host: HostId, path: usize, parcel: &Parcel, recorder: &mut dyn Recorder) {
        let Place::Engine(engine) = &mut self.hosts[host.index()] else { return };
        let read;
        let packet = match &parcel.raw {
            None => &parcel.packet,
            // An engine ignores packets other than TCP.
            Some(raw) => match raw.parse() {
                Ok(packet) => {
                    read = packet;
                    &read
                }
                Err(_) => return,
            },
        };
        if self.flows[host.flow()].captured {
            recorder.packet(self.now, engine.side, false, PathId(path as u8), packet);
        }
        let has_news = engine.receive(self.now, recorder, packet);
        self.flush(host, recorder);
        if has_news {
            self.check(host);
        }
    }

    /// A packet reached a host outside.
    fn arrive_outside(
        &mut self,
        host: HostId,
        path: usize,
        parcel: &mut Parcel,
        corrupted: bool,
        recorder: &mut dyn Recorder,
    ) {
        let (flow, side) = (host.flow(), host.side());
        let content = match parcel.raw.take() {
            // A checksum filled in after the damage would cover it.
            Some(raw) if corrupted && raw.left.checksum.is_some() => return,
            Some(raw) if corrupted => Content::Raw(damaged(&raw.bytes)),
            Some(raw) => Content::Raw(*raw),
            None if corrupted => Content::Raw(damaged(&parcel.packet.emit())),
            None => Content::Segment(core::mem::take(&mut parcel.packet)),
        };
        if self.flows[flow].captured && !corrupted {
            match &content {
                Content::Segment(packet) => recorder.packet(self.now, side, false, PathId(path as u8), packet),
                Content::Raw(raw) => {
                    if let Ok(packet) = raw.parse() {
                        recorder.packet(self.now, side, false, PathId(path as u8), &packet);
                    }
                }
            }
        }
        self.outbox.push_back(Outbound { flow, side, path, sent: parcel.sent, at: self.now, content });
    }

    /// Handles a side's first alarm.
    pub(crate) fn ring(&mut self, side: Side, recorder: &mut dyn Recorder) {
        let Some((at, alarm)) = self.agenda.take_alarm(side) else { return };
        self.events += 1;
        match alarm {
            Alarm::Host(host) => {
                // A later entry may have been replaced by an earlier one that rang already.
                if let Place::Engine(engine) = &mut self.hosts[host.index()]
                    && engine.alarm == at
                {
                    engine.alarm = Instant::MAX;
                    engine.still.round(self.now);
                    engine.on_timer(self.now, recorder);
                    if engine.still.is_endless() {
                        self.stuck = Some(engine.endless(host.flow()));
                    }
                    self.flush(host, recorder);
                    self.check(host);
                }
            }
            Alarm::Start(flow) => {
                let host = HostId::new(flow as usize, Side::Client);
                if let Place::Engine(engine) = &mut self.hosts[host.index()] {
                    engine.connect(self.now, recorder);
                    self.flush(host, recorder);
                    self.check(host);
                }
            }
            Alarm::Source(n) => {
                let Source { setup, size } = &self.sources[n as usize];
                let (over, direction, size) = (setup.over, setup.direction, *size);
                if setup.shared {
                    self.network.send_over_link(self.now, recorder, over, direction, size, n.into());
                } else {
                    self.network.send_over_path(self.now, recorder, over, direction, size, n.into());
                }
                self.draw_datagram(n as usize);
            }
            Alarm::TooBig(n) => self.report_too_big(n, recorder),
        }
    }

    /// Handles the first turn.
    pub(crate) fn take_turn(&mut self, recorder: &mut dyn Recorder) {
        match self.agenda.take_turn() {
            Some(Turn::Stop(flow)) => {
                self.events += 1;
                for host in HostId::both(flow as usize) {
                    if let Place::Engine(engine) = &mut self.hosts[host.index()] {
                        engine.abort(self.now, recorder);
                        self.flush(host, recorder);
                        self.check(host);
                    }
                }
            }
            Some(Turn::Timeline(n)) => {
                self.events += 1;
                let change = self.timeline[n as usize].1.clone();
                self.apply(&change, recorder);
            }
            Some(Turn::Mark) | None => {}
        }
    }

    fn apply(&mut self, change: &WorldChange, recorder: &mut dyn Recorder) {
        match change {
            WorldChange::Network(change) => self.network.apply(self.now, recorder, change),
            WorldChange::PathUp(flow, setup) => self.change_client(*flow, recorder, |host, now, recorder| {
                host.path_up(now, recorder, setup);
            }),
            WorldChange::PathDown(flow, path) => self.change_client(*flow, recorder, |host, now, recorder| {
                host.path_down(now, recorder, *path);
            }),
            WorldChange::Scheduler(flow, switch) => self.change_both(*flow, recorder, |host, now, recorder| {
                host.set_scheduler(now, recorder, switch);
            }),
            WorldChange::Options(flow, path, choice) => self.change_both(*flow, recorder, |host, _, _| {
                host.set_options(*path, *choice);
            }),
        }
    }

    /// Changes the engines at both ends of a flow.
    fn change_both(
        &mut self,
        flow: usize,
        recorder: &mut dyn Recorder,
        change: impl Fn(&mut Host, Instant, &mut dyn Recorder),
    ) {
        for host in HostId::both(flow) {
            if let Some(engine) = self.hosts.get_mut(host.index()).and_then(Place::engine_mut) {
                change(engine, self.now, recorder);
                self.flush(host, recorder);
            }
        }
    }

    /// Changes the client of a flow, if it is an engine.
    fn change_client(
        &mut self,
        flow: usize,
        recorder: &mut dyn Recorder,
        change: impl FnOnce(&mut Host, Instant, &mut dyn Recorder),
    ) {
        let host = HostId::new(flow, Side::Client);
        if let Some(engine) = self.hosts.get_mut(host.index()).and_then(Place::engine_mut) {
            change(engine, self.now, recorder);
            self.flush(host, recorder);
            self.check(host);
        }
    }

    fn draw_datagram(&mut self, n: usize) {
        if let Some(datagram) = self.sources[n].setup.source.next_packet() {
            self.sources[n].size = datagram.size;
            let sender = if self.sources[n].setup.direction == Direction::Down { Side::Server } else { Side::Client };
            self.agenda.set_alarm(datagram.at, sender, Alarm::Source(n as u32));
        }
    }

    /// Sends what an engine has to send, and notes when it wants to be called.
    fn flush(&mut self, host: HostId, recorder: &mut dyn Recorder) {
        if !self.devices.is_empty() {
            self.read_devices(host, recorder);
        }
        let Place::Engine(engine) = &mut self.hosts[host.index()] else { return };
        let flow = &self.flows[host.flow()];
        let (side, captured, mut sent) = (engine.side, flow.captured, 0);
        let (endpoint, mut cx) = engine.sender(self.now, recorder);
        while let Some(path) = endpoint.transmit_into(&mut cx, &mut self.draft.packet) {
            sent += 1;
            if sent > MOST_PACKETS {
                break;
            }
            let packet = &self.draft.packet;
            let path = match path {
                Some(path) if path.index() < flow.own_paths => path.index(),
                _ => match path_of_client(side, packet, &flow.routes) {
                    Some(path) => path,
                    None => continue,
                },
            };
            if self.checks.wire && !Packet::parse(packet.emit().into()).is_ok_and(|read| read == *packet) {
                return self.stuck = Some(Stuck::Wire);
            }
            if captured {
                cx.recorder.packet(self.now, side, true, PathId(path as u8), packet);
            }
            let size = packet.len() as u32;
            let next = self.spare.pop().unwrap_or_default();
            let mut parcel = core::mem::replace(&mut self.draft, next);
            parcel.host = host.peer();
            parcel.sent = self.now;
            parcel.raw = None;
            if self.too_big.possible
                && let Some(refused) = self.network.refuse(self.now, cx.recorder, path, side.sends(), size)
            {
                self.too_big.note(host, path, refused, parcel);
                continue;
            }
            self.network.send(self.now, cx.recorder, path, side.sends(), size, parcel);
        }
        if sent > 0 {
            engine.still.sent(self.now, sent);
            if engine.still.is_endless() {
                self.stuck = Some(engine.endless(host.flow()));
            }
        }
        let at = engine.next_alarm();
        let alarm = engine.alarm;
        if at < alarm {
            // An alarm is never in the past.
            engine.alarm = at.max(self.now);
            self.agenda.set_alarm(at.max(self.now), side, Alarm::Host(host));
        }
        if self.too_big.possible {
            self.await_reports(side);
        }
    }

    /// The routers' messages about what this side has sent just now, and they have dropped, are under way.
    #[cold]
    #[inline(never)]
    fn await_reports(&mut self, side: Side) {
        for (at, number) in self.too_big.take_sent() {
            self.agenda.set_alarm(at, side, Alarm::TooBig(number));
        }
    }

    /// A router's message reaches the sender of a packet.
    fn report_too_big(&mut self, number: u32, recorder: &mut dyn Recorder) {
        let Some(report) = self.too_big.take(number) else { return };
        let (host, path) = (report.to, report.path);
        match &mut self.hosts[host.index()] {
            Place::Engine(engine) => {
                engine.on_too_big(self.now, recorder, report.packet(), report.mtu);
                self.flush(host, recorder);
                self.check(host);
            }
            Place::Outside(_) => {
                let Some(raw) = report.into_raw() else { return };
                let (flow, side, at) = (host.flow(), host.side(), self.now);
                self.outbox.push_back(Outbound { flow, side, path, sent: at, at, content: Content::Raw(raw) });
            }
        }
    }

    /// Updates a host's device counters. A separate function, because most worlds have none.
    #[cold]
    #[inline(never)]
    fn read_devices(&mut self, host: HostId, recorder: &mut dyn Recorder) {
        let Place::Engine(engine) = &mut self.hosts[host.index()] else { return };
        for &DeviceId { path, side } in self.devices.iter().filter(|device| device.side == engine.side) {
            let queue = self.network.queue_len(self.now, recorder, path, side.sends());
            let queued = queue.packets.saturating_add(queue.busy.into());
            let sent = self.network.departed(path, side.sends());
            engine.endpoint.set_device(PathId(path as u8), Device { queued, sent });
        }
    }

    /// Checks whether the flow of `host` is done or has failed.
    #[inline]
    fn check(&mut self, host: HostId) {
        if let Some(fault) = self.hosts[host.index()].engine().and_then(Host::fault) {
            self.stuck = Some(Stuck::Fault { flow: host.flow(), fault });
        }
        if self.flows[host.flow()].awaited {
            self.check_end(host);
        }
    }

    /// Checks whether this end of an awaited flow is done.
    #[inline(never)]
    fn check_end(&mut self, host: HostId) {
        let is_done = self.hosts[host.index()].is_done();
        let flow = &mut self.flows[host.flow()];
        debug_assert!(is_done || !flow.done[place(host.side())], "a host that was done has work again");
        let is_gone = flow.may_fail
            && self.hosts[HostId::new(host.flow(), Side::Client).index()].engine().is_some_and(Host::is_gone);
        for side in [Side::Client, Side::Server].map(place) {
            if !flow.done[side] && (is_gone || is_done && side == place(host.side())) {
                flow.done[side] = true;
                self.unfinished[side] -= 1;
            }
        }
        if flow.done == [true; 2] {
            flow.awaited = false;
            self.awaiting = self.awaiting.map(|n| n - 1);
        }
    }
}

/// The ways of a network whose bottleneck is a device of the host that sends there.
fn devices(topology: &Topology) -> Vec<DeviceId> {
    let sides = [Side::Server, Side::Client];
    let ways = topology.paths.iter().enumerate().flat_map(|(n, path)| [&path.down, &path.up].map(|way| (n, way)));
    ways.zip(sides.into_iter().cycle())
        .filter(|((_, way), _)| way.device)
        .map(|((path, _), side)| DeviceId { path, side })
        .collect()
}

/// The network path of a packet from an engine that belongs to no subflow whose addresses the setup names: the client's
/// address decides. A reset for a stray segment from an unknown address has none.
#[inline(never)]
fn path_of_client(side: Side, packet: &Packet, routes: &[(IpAddr, usize)]) -> Option<usize> {
    let client = if side == Side::Client { packet.src } else { packet.dst };
    routes.iter().find(|(address, _)| *address == client).map(|(_, path)| *path)
}
