//! The measured setup: two hosts and the network between them.

use anabranch_engine::Settings;
use anabranch_engine::connection::Setup;
use anabranch_lab::kernel::{Addresses, Application, KernelHost, KernelSettings, Line, Protocol};
use anabranch_lab::{Clock, Exchange, LabError, Namespace, Outside};
use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, PathSpec, QueueSpec, Topology, WaySpec};
use anabranch_sim::{Checks, End, FlowSetup, Opening, PORT, Party, World, WorldSetup, paths_between};
use anabranch_units::{ConnId, Duration, Instant, PathId, Rate, Side};
use anabranch_workload::{BulkSink, BulkSource, Workload};
use std::fmt;
use std::net::SocketAddr;

/// The kind of host at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Engine,
    Kernel,
}

/// The network between the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// TUN devices, packet by packet, over paths without limits.
    Plain,
    /// The same over paths of 10 Gbit/s and 1 ms.
    Modelled,
    /// TUN devices with packets of up to 64 KB, over paths without limits.
    Offload,
    /// One pair of veth devices per path, without this project's code.
    Veth,
}

/// One row: sender, receiver and network.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub link: Link,
    pub from: Host,
    pub to: Host,
    pub multipath: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = match self.link {
            Link::Plain => "TUN",
            Link::Modelled => "TUN, paths of 10 Gbit/s and 1 ms",
            Link::Offload => "TUN with offload",
            Link::Veth => "veth",
        };
        let host = |host| if host == Host::Engine { "engine" } else { "kernel" };
        let what = if self.multipath { "MPTCP, 2 subflows" } else { "TCP" };
        write!(f, "{link} | {} → {}, {what}", host(self.from), host(self.to))
    }
}

/// The server sends.
const SENDER: Side = Side::Server;
const BUFFER: u64 = 4 << 20;
const CONGESTION: &str = "cubic";

impl Case {
    pub fn paths(&self) -> usize {
        if self.multipath { 2 } else { 1 }
    }

    pub fn addresses(&self) -> Addresses {
        Addresses { v6: vec![false; self.paths()] }
    }

    fn host(&self, side: Side) -> Host {
        if side == SENDER { self.from } else { self.to }
    }

    fn settings(&self) -> Settings {
        // Packets of 1500 bytes.
        let mss = if self.multipath { 1424 } else { 1448 };
        Settings { mptcp: self.multipath, mss, send_buffer: BUFFER, recv_buffer: BUFFER, ..Settings::default() }
    }

    pub fn kernel_settings(&self) -> KernelSettings {
        KernelSettings { offload: self.link == Link::Offload, ..KernelSettings::new(&self.settings(), CONGESTION) }
    }

    fn topology(&self) -> Topology {
        let (gbps, delay) = match self.link {
            Link::Modelled => (10, Duration::from_millis(1)),
            // Twelve nanoseconds per packet.
            _ => (1000, Duration::ZERO),
        };
        let capacity = CapacitySpec::Fixed(Rate::from_bps(gbps * 1_000_000_000));
        let bottleneck = BottleneckSpec::new(capacity, QueueSpec::Bytes(2 * BUFFER));
        let way = WaySpec::clean(Bottleneck::Own(bottleneck), delay);
        let path = |n| PathSpec { name: format!("path{n}"), down: way.clone(), up: way.clone() };
        Topology { paths: (0..self.paths()).map(path).collect(), links: Vec::new() }
    }

    fn end(&self, side: Side) -> End {
        if self.host(side) == Host::Kernel {
            return End::Outside;
        }
        let over: Vec<(PathId, bool)> = (0..self.paths()).map(|n| (PathId(n as u8), false)).collect();
        let setup = Setup {
            id: ConnId(0),
            settings: self.settings(),
            scheduler: anabranch_schedulers::build("minrtt", &[]).expect("a known scheduler"),
            congestion: anabranch_congestion::build(CONGESTION, &[]).expect("a known congestion control"),
            paths: paths_between(false, 0, side, &over),
            announce: Vec::new(),
            accept_announced: false,
        };
        Party { setup, workload: workload(side) }.into()
    }

    fn world(&self) -> World {
        let setup = WorldSetup {
            topology: self.topology(),
            seed: 1,
            timeline: Vec::new(),
            sources: Vec::new(),
            checks: Checks::default(),
        };
        let flow = FlowSetup::between(self.end(Side::Client), self.end(Side::Server), self.addresses().routes());
        World::new(setup, vec![flow])
    }

    /// Sets everything up and starts the clock.
    pub fn start(&self) -> Result<Exchange, LabError> {
        let over: Vec<usize> = (0..self.paths()).collect();
        let mut outside = Vec::new();
        // The server first: it must listen before the client connects.
        for side in [Side::Server, Side::Client].into_iter().filter(|side| self.host(*side) == Host::Kernel) {
            let host =
                KernelHost::new(side, self.addresses(), &over, &vec![false; over.len()], &self.kernel_settings())?;
            outside.push(Outside::new(side, host));
        }
        let mut exchange = Exchange::new(self.world(), outside);
        exchange.captured = false;
        for outside in &mut exchange.outside {
            outside.applications.push(self.application(&outside.host.namespace, outside.side, exchange.clock)?);
        }
        Ok(exchange)
    }

    /// The application on a kernel.
    pub fn application(&self, namespace: &Namespace, side: Side, clock: Clock) -> Result<Application, LabError> {
        let line = Line {
            side,
            server: SocketAddr::new(self.addresses().server(0), PORT),
            protocol: if self.multipath { Protocol::Mptcp } else { Protocol::Tcp },
            congestion: CONGESTION.into(),
            no_delay: false,
            clock,
            start: Instant::ZERO,
            opening: Opening::AtOnce(1),
            from: self.addresses().client(0),
            mixed: false,
        };
        Application::start(namespace, line, vec![workload(side)])
    }
}

fn workload(side: Side) -> Box<dyn Workload> {
    if side == SENDER { Box::new(BulkSource::new(None)) } else { Box::new(BulkSink::new(None)) }
}
