//! The event loop.

use crate::flow::{FlowSetup, Host};
use anabranch_engine::Cx;
use anabranch_engine::connection::Connection;
use anabranch_engine::endpoint::Endpoint;
use anabranch_network::{Change, Network, Topology};
use anabranch_trace::Recorder;
use anabranch_units::{Direction, Instant, Rng, Side};
use anabranch_wire::Packet;
use anabranch_workload::{Fault, PacketSource};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a world is made of, but for its flows.
#[derive(Debug)]
pub struct WorldSetup {
    /// Paths and links.
    pub topology: Topology,
    /// Seed of every random stream.
    pub seed: u64,
    /// Changes of the network.
    pub timeline: Vec<(Instant, Change)>,
    /// Datagrams that cross it.
    pub sources: Vec<SourceSetup>,
    /// What is checked on the way.
    pub checks: Checks,
}

/// Extra checks of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Every packet is written to bytes and read back before it travels; the run must not notice.
    pub wire: bool,
}

/// A source of datagrams and the bottleneck that they cross.
#[derive(Debug)]
pub struct SourceSetup {
    /// When and how large.
    pub source: Box<dyn PacketSource>,
    /// Index of the path, or of the shared link.
    pub over: usize,
    /// `over` counts links.
    pub shared: bool,
    /// Which way.
    pub direction: Direction,
}

/// Why [`World::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// All awaited flows are done.
    Done,
    /// The time is over.
    Time,
}

/// Why a run cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Nothing will ever happen again, and an awaited flow is not done.
    Silence,
    /// An application got what was never written.
    Fault {
        /// Which flow, by its place.
        flow: usize,
        /// What.
        fault: Fault,
    },
    /// A packet did not survive being written and read back.
    Wire,
}

impl core::fmt::Display for Stuck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Silence => f.write_str("nothing can happen any more, and a transfer is not complete"),
            Self::Fault { flow, fault } => write!(f, "flow {flow}: {fault}"),
            Self::Wire => f.write_str("a packet did not survive being written and read back"),
        }
    }
}

/// What a packet carries through the network.
#[derive(Clone, Debug, Default)]
struct Parcel {
    host: u32,
    packet: Packet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    Host(u32),
    Start(u32),
    Stop(u32),
    Source(u32),
    Timeline(u32),
}

#[derive(Debug)]
struct Source {
    setup: SourceSetup,
    size: u32,
}

#[derive(Debug)]
struct Flow {
    awaited: bool,
    captured: bool,
}

/// Hosts, applications and the network between them.
#[derive(Debug)]
pub struct World {
    now: Instant,
    network: Network<Box<Parcel>>,
    /// Boxes of delivered parcels, to be used again: packets are built in them, and move as pointers.
    #[expect(clippy::vec_box, reason = "the boxes themselves are what is used again")]
    spare: Vec<Box<Parcel>>,
    /// Client and server of flow n at 2n and 2n + 1.
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    sources: Vec<Source>,
    timeline: Vec<(Instant, Change)>,
    /// What is due when; the number makes the order of equal times that of insertion.
    agenda: BinaryHeap<Reverse<(Instant, u64, Alarm)>>,
    inserted: u64,
    events: u64,
    checks: Checks,
    /// Awaited flows that are not done; `None` if no flow is awaited.
    awaiting: Option<usize>,
    stuck: Option<Stuck>,
}

impl World {
    /// A world at time zero.
    pub fn new(setup: WorldSetup, flows: Vec<FlowSetup>) -> Self {
        let WorldSetup { topology, seed, timeline, sources, checks } = setup;
        let mut world = Self {
            now: Instant::ZERO,
            network: Network::new(&topology, seed),
            spare: Vec::new(),
            hosts: Vec::with_capacity(flows.len() * 2),
            flows: Vec::with_capacity(flows.len()),
            sources: sources.into_iter().map(|setup| Source { setup, size: 0 }).collect(),
            timeline,
            agenda: BinaryHeap::new(),
            inserted: 0,
            events: 0,
            checks,
            awaiting: None,
            stuck: None,
        };
        for n in 0..world.timeline.len() {
            world.set_alarm(world.timeline[n].0, Alarm::Timeline(n as u32));
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
        let stream = |side: &str| Rng::stream(seed, &format!("flow.{}.{side}", flow.id.0));
        self.set_alarm(flow.start, Alarm::Start(n as u32));
        if let Some(stop) = flow.stop {
            self.set_alarm(stop, Alarm::Stop(n as u32));
        }
        let (client, server) = (stream("client"), stream("server"));
        self.hosts.push(Host::new(Side::Client, flow.client, client));
        self.hosts.push(Host::new(Side::Server, flow.server, server));
        self.flows.push(Flow { awaited: flow.awaited, captured: flow.captured });
        if flow.awaited {
            self.awaiting = Some(self.awaiting.unwrap_or(0) + 1);
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events handled so far: packets delivered and alarms.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// A host's endpoint, to look at.
    pub fn endpoint(&self, flow: usize, side: Side) -> &Endpoint {
        &self.hosts[flow * 2 + usize::from(side == Side::Server)].endpoint
    }

    /// A host's connection, to look at; `None` before the client connects or the server accepts, and after it
    /// has closed.
    pub fn connection(&self, flow: usize, side: Side) -> Option<&Connection> {
        let host = &self.hosts[flow * 2 + usize::from(side == Side::Server)];
        host.handle.and_then(|handle| host.endpoint.connection(handle))
    }

    /// A host's endpoint, with its time, to act on between two calls of [`Self::run`]; what it has to send leaves when
    /// the world runs on.
    pub fn act(
        &mut self,
        flow: usize,
        side: Side,
        recorder: &mut dyn Recorder,
        act: &mut dyn FnMut(&mut Endpoint, &mut Cx<'_>),
    ) {
        let host = flow * 2 + usize::from(side == Side::Server);
        let h = &mut self.hosts[host];
        let mut cx = Cx { now: self.now, recorder: &mut *recorder, rng: &mut h.rng };
        act(&mut h.endpoint, &mut cx);
        self.flush(host, recorder);
    }

    /// Runs until all awaited flows are done or `until` is reached.
    pub fn run(&mut self, until: Instant, recorder: &mut dyn Recorder) -> Result<Halt, Stuck> {
        loop {
            if self.awaiting == Some(0) {
                return Ok(Halt::Done);
            }
            let alarm = self.agenda.peek().map_or(Instant::MAX, |Reverse((at, ..))| *at);
            let delivery = self.network.poll_timeout().unwrap_or(Instant::MAX);
            let next = alarm.min(delivery);
            if next > until || next == Instant::MAX {
                if until == Instant::MAX {
                    return Err(Stuck::Silence);
                }
                self.now = until;
                self.network.settle(until, recorder);
                return Ok(Halt::Time);
            }
            self.now = next;
            if delivery <= alarm {
                self.deliver(recorder);
            } else {
                self.ring(recorder);
            }
            if let Some(stuck) = self.stuck.take() {
                return Err(stuck);
            }
        }
    }

    /// Delivers what is due now.
    fn deliver(&mut self, recorder: &mut dyn Recorder) {
        while let Some(delivery) = self.network.poll_deliver(self.now, recorder) {
            self.events += 1;
            if delivery.corrupted {
                continue;
            }
            let Parcel { host, ref packet } = *delivery.item;
            let host = host as usize;
            if self.flows[host / 2].captured {
                let path = anabranch_units::PathId(delivery.path as u8);
                recorder.packet(self.now, self.hosts[host].side, false, path, packet);
            }
            self.hosts[host].receive(self.now, recorder, packet);
            self.spare.push(delivery.item);
            self.flush(host, recorder);
        }
    }

    /// Handles the first alarm.
    fn ring(&mut self, recorder: &mut dyn Recorder) {
        let Some(Reverse((at, _, alarm))) = self.agenda.pop() else { return };
        self.events += 1;
        match alarm {
            Alarm::Host(host) => {
                let host = host as usize;
                // A later entry may have been replaced by an earlier one that rang already.
                if self.hosts[host].alarm == at {
                    self.hosts[host].alarm = Instant::MAX;
                    self.hosts[host].on_timer(self.now, recorder);
                    self.flush(host, recorder);
                }
            }
            Alarm::Start(flow) => {
                let host = flow as usize * 2;
                self.hosts[host].connect(self.now, recorder);
                self.flush(host, recorder);
            }
            Alarm::Stop(flow) => {
                for host in [flow as usize * 2, flow as usize * 2 + 1] {
                    self.hosts[host].abort(self.now, recorder);
                    self.flush(host, recorder);
                }
            }
            Alarm::Source(n) => {
                let Source { setup, size } = &self.sources[n as usize];
                let (over, direction, size) = (setup.over, setup.direction, *size);
                if setup.shared {
                    self.network.send_over_link(self.now, recorder, over, direction, size);
                } else {
                    self.network.send_over_path(self.now, recorder, over, direction, size);
                }
                self.draw_datagram(n as usize);
            }
            Alarm::Timeline(n) => {
                let change = self.timeline[n as usize].1.clone();
                self.network.apply(self.now, recorder, &change);
            }
        }
    }

    fn draw_datagram(&mut self, n: usize) {
        if let Some(datagram) = self.sources[n].setup.source.next_packet() {
            self.sources[n].size = datagram.size;
            self.set_alarm(datagram.at, Alarm::Source(n as u32));
        }
    }

    fn set_alarm(&mut self, at: Instant, alarm: Alarm) {
        self.inserted += 1;
        self.agenda.push(Reverse((at, self.inserted, alarm)));
    }

    /// Sends what a host has to send, and notes when it wants to be called.
    fn flush(&mut self, host: usize, recorder: &mut dyn Recorder) {
        let captured = self.flows[host / 2].captured;
        let h = &mut self.hosts[host];
        let side = h.side;
        let mut parcel = self.spare.pop().unwrap_or_default();
        let mut cx = Cx { now: self.now, recorder: &mut *recorder, rng: &mut h.rng };
        while let Some(path) = h.endpoint.transmit_into(&mut cx, &mut parcel.packet) {
            // A reset for a stray segment belongs to no connection and so to no path.
            let Some(path) = path else { continue };
            let packet = &parcel.packet;
            if self.checks.wire && !Packet::parse(packet.emit().into()).is_ok_and(|read| read == *packet) {
                return self.stuck = Some(Stuck::Wire);
            }
            if captured {
                cx.recorder.packet(self.now, side, true, path, packet);
            }
            let size = packet.len() as u32;
            parcel.host = (host ^ 1) as u32;
            self.network.send(self.now, cx.recorder, path.index(), side.sends(), size, parcel);
            parcel = self.spare.pop().unwrap_or_default();
        }
        self.spare.push(parcel);
        self.check(host);
        let at = self.hosts[host].next_alarm();
        if at < self.hosts[host].alarm {
            // An alarm is never in the past.
            self.hosts[host].alarm = at.max(self.now);
            self.set_alarm(at.max(self.now), Alarm::Host(host as u32));
        }
    }

    /// Looks whether the flow of `host` is done or went wrong.
    fn check(&mut self, host: usize) {
        let flow = host / 2;
        if let Some(fault) = self.hosts[host].workload.fault() {
            self.stuck = Some(Stuck::Fault { flow, fault });
        }
        let done = |h: &Host| h.workload.is_done();
        if self.flows[flow].awaited && done(&self.hosts[flow * 2]) && done(&self.hosts[flow * 2 + 1]) {
            self.flows[flow].awaited = false;
            self.awaiting = self.awaiting.map(|n| n - 1);
        }
    }
}
