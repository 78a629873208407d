//! One engine and one kernel with paths between them, in real time; the test steers the applications at both ends.
//!
//! Where this machine lacks root, TUN or MPTCP, a test says SKIPPED and passes. Tests that fill the processors run one at
//! a time, because time is real; tests that mostly wait run beside each other.
#![allow(dead_code)] // each test binary uses its own part

pub mod boxes;
pub mod notes;
pub mod steer;

pub use notes::Notes;
pub use steer::Steer;

use anabranch_engine::connection::{Connection, Setup};
use anabranch_engine::{Cx, FirstPath, Settings};
use anabranch_lab::kernel::{Addresses, Application, Counters, KernelHost, KernelSettings, Line, Protocol};
use anabranch_lab::{Exchange, LabError, Middlebox, Namespace, Outside, Tun};
use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, LossSpec, PathSpec, QueueSpec, Topology, WaySpec};
use anabranch_sim::{Checks, End, FlowSetup, Opening, PORT, Party, World, WorldChange, WorldSetup, paths_between};
use anabranch_units::{ConnId, Duration, Instant, PathId, Rate, Side};
use anabranch_workload::Workload;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A path that is the same in both directions: Mbit/s, one-way delay in ms. Its queue holds 100 ms.
pub fn path(name: &str, mbit: u64, delay: u64) -> PathSpec {
    let queue = QueueSpec::Packets((mbit * 10).max(20) as u32);
    let bottleneck = BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(mbit * 1_000_000)), queue);
    let way = WaySpec::clean(Bottleneck::Own(bottleneck), ms(delay));
    PathSpec { name: name.into(), down: way.clone(), up: way }
}

/// The same with random loss in both directions.
pub fn lossy(name: &str, mbit: u64, delay: u64, loss: f64) -> PathSpec {
    let mut path = path(name, mbit, delay);
    path.down.loss = LossSpec::Bernoulli(loss);
    path.up.loss = LossSpec::Bernoulli(loss);
    path
}

/// The setup of a test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine's end; the other is the kernel's.
    pub engine: Side,
    pub v6: bool,
    pub paths: Vec<PathSpec>,
    pub timeline: Vec<(Instant, WorldChange)>,
    pub seed: u64,
    /// The engine's settings; the kernel's are equivalent.
    pub settings: Settings,
    pub scheduler: String,
    pub congestion: String,
    /// The paths that an engine client joins as backups.
    pub backup: Vec<bool>,
    /// The number of paths that an engine knows beforehand.
    pub known: usize,
    pub announce: Vec<(u8, IpAddr, Option<u16>)>,
    pub accept_announced: bool,
    /// The protocol of the kernel's socket, and its congestion control.
    pub protocol: Protocol,
    pub kernel_congestion: String,
    /// Devices that pass packets of up to 64 KB.
    pub offload: bool,
    /// Further settings of the kernel.
    pub sysctls: Vec<(String, String)>,
    /// Lines for `ip -batch` on the kernel's host after setup.
    pub ip: Vec<String>,
    /// Paths on which the kernel client's address is an MPTCP endpoint, with flags.
    pub endpoints: Vec<(usize, String)>,
    /// Record the engine's packets.
    pub captured: bool,
}

impl Plan {
    /// An engine at this end, a kernel at the other, `paths` paths of 20 Mbit/s and a round trip of 20 ms. A kernel
    /// client joins no further path until the test adds an endpoint.
    pub fn new(engine: Side, paths: usize) -> Self {
        Self {
            engine,
            v6: false,
            paths: (0..paths).map(|n| path(&format!("path{n}"), 20, 10)).collect(),
            timeline: Vec::new(),
            seed: 1,
            settings: Settings::default(),
            scheduler: "minrtt".into(),
            congestion: "cubic".into(),
            backup: vec![false; paths],
            known: paths,
            announce: Vec::new(),
            accept_announced: false,
            protocol: Protocol::Mptcp,
            kernel_congestion: "cubic".into(),
            offload: false,
            sysctls: Vec::new(),
            ip: vec!["mptcp endpoint flush".into()],
            endpoints: Vec::new(),
            captured: true,
        }
    }

    /// Over IPv6.
    pub fn v6(mut self) -> Self {
        self.v6 = true;
        self
    }

    /// A line for `ip -batch` on the kernel's host.
    pub fn ip(mut self, line: impl Into<String>) -> Self {
        self.ip.push(line.into());
        self
    }

    pub fn addresses(&self) -> Addresses {
        Addresses { v6: vec![self.v6; self.paths.len()] }
    }

    /// Makes the kernel client's address on a path an MPTCP endpoint: `subflow`, `subflow fullmesh`, `signal`…
    pub fn endpoint(mut self, path: usize, flags: &str) -> Self {
        self.endpoints.push((path, flags.into()));
        self
    }

    /// The `ip` line that adds an endpoint.
    fn endpoint_line(&self, (path, flags): &(usize, String)) -> String {
        let address = self.addresses().client(*path);
        format!("mptcp endpoint add {address} dev path{path} id {} {flags}", path + 1)
    }

    /// The kernel's end.
    pub fn kernel(&self) -> Side {
        self.engine.peer()
    }

    /// The setup of the engine's connection number `n`.
    fn setup(&self, n: usize) -> Setup {
        let over: Vec<(PathId, bool)> = (0..self.known).map(|n| (PathId(n as u8), self.backup[n])).collect();
        let mut paths = paths_between(self.v6, 0, self.engine, &over);
        if self.engine == Side::Client {
            let port = paths[0].tuple.local.port() + n as u16;
            // All subflows that may become the first use the port by which both ends number the connection.
            let raced = self.settings.first_path == FirstPath::Race;
            let opening = if raced { paths.len() } else { 1 };
            paths[..opening].iter_mut().for_each(|path| path.tuple.local.set_port(port));
        }
        Setup {
            id: ConnId(n as u32),
            settings: self.settings.clone(),
            scheduler: anabranch_schedulers::build(&self.scheduler, &[]).expect("a known scheduler"),
            congestion: anabranch_congestion::build(&self.congestion, &[]).expect("a known congestion control"),
            paths,
            announce: self.announce.clone(),
            accept_announced: self.accept_announced,
        }
    }

    fn world(&self, workloads: Vec<Box<dyn Workload>>, at_once: usize) -> World {
        let setup = WorldSetup {
            topology: Topology { paths: self.paths.clone(), links: Vec::new() },
            seed: self.seed,
            timeline: self.timeline.clone(),
            sources: Vec::new(),
            checks: Checks::default(),
        };
        let party = |(n, workload)| Party { setup: self.setup(n), workload };
        let parties = workloads.into_iter().enumerate().map(party).collect();
        let engine = End::Engine { parties, opening: Opening::AtOnce(at_once) };
        let (client, server) = match self.engine {
            Side::Client => (engine, End::Outside),
            Side::Server => (End::Outside, engine),
        };
        let flow = FlowSetup {
            id: ConnId(0),
            start: Instant::ZERO,
            stop: None,
            // The test decides when it is over.
            awaited: false,
            may_fail: false,
            captured: true,
            client,
            server,
            routes: self.addresses().routes(),
        };
        World::new(setup, vec![flow])
    }

    /// Sets everything up and starts the clock. Each end has one application per connection; the client opens `at_once`
    /// at a time.
    pub fn begin(
        &self,
        at_engine: Vec<Box<dyn Workload>>,
        at_kernel: Vec<Box<dyn Workload>>,
        at_once: usize,
        middlebox: Option<Middlebox>,
    ) -> Exchange {
        let host = self.host().expect("a kernel host");
        let outside = Outside { middlebox, ..Outside::new(self.kernel(), host) };
        let mut exchange = Exchange::new(self.world(at_engine, at_once), vec![outside]);
        let line = Line {
            side: self.kernel(),
            server: SocketAddr::new(self.addresses().server(0), PORT),
            mixed: false,
            protocol: self.protocol,
            congestion: self.kernel_congestion.clone(),
            no_delay: false,
            clock: exchange.clock,
            start: Instant::ZERO,
            opening: Opening::AtOnce(at_once),
            from: self.addresses().client(0),
        };
        let outside = &mut exchange.outside[0];
        let application = Application::start(&outside.host.namespace, line, at_kernel).expect("an application");
        outside.applications.push(application);
        exchange
    }

    fn host(&self) -> Result<KernelHost, LabError> {
        let mut settings = KernelSettings::new(&self.settings, &self.kernel_congestion);
        settings.sysctls.extend(self.sysctls.iter().cloned());
        settings.offload = self.offload;
        let over: Vec<usize> = (0..self.paths.len()).collect();
        let host = KernelHost::new(self.kernel(), self.addresses(), &over, &vec![false; over.len()], &settings)?;
        let endpoints = self.endpoints.iter().map(|endpoint| self.endpoint_line(endpoint));
        let lines: Vec<String> = self.ip.iter().cloned().chain(endpoints).collect();
        host.namespace.command("ip", &["-batch", "-"], &lines.join("\n"))?;
        Ok(host)
    }
}

/// The machine: one test fills it, or several wait on it.
static MACHINE: RwLock<()> = RwLock::new(());

/// The requirement that this machine lacks.
fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let look = || -> Result<(), LabError> {
        let namespace = Namespace::new()?;
        namespace.enter(|| Tun::open("probe", 1500, false))??;
        let socket = namespace.enter(|| {
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, Some(socket2::Protocol::MPTCP))
        })?;
        socket.map(drop).map_err(LabError::system("opening an MPTCP socket"))?;
        namespace.command("ip", &["mptcp", "limits"], "").map(drop)
    };
    MISSING.get_or_init(|| look().err().map(|error| error.to_string())).as_deref()
}

/// The machine for one test alone; `None`, and a message on standard error, where this machine cannot run it.
pub fn alone() -> Option<RwLockWriteGuard<'static, ()>> {
    let alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    able().then_some(alone)
}

/// The machine for a test that mostly waits, beside others of its kind; `None` as with [`alone`].
pub fn beside() -> Option<RwLockReadGuard<'static, ()>> {
    let beside = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    able().then_some(beside)
}

/// Whether this machine can run the test; if not, a message on standard error says why.
fn able() -> bool {
    let Some(why) = missing() else { return true };
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not by a macro, whose output appears only when a test fails.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
    false
}

/// A running laboratory. Every wait in it runs the world.
pub struct Lab {
    pub exchange: Exchange,
    pub notes: Notes,
    /// The engine's application.
    pub engine: Steer,
    /// The kernel's application.
    pub kernel: Steer,
    /// The error of the kernel's application.
    pub kernel_error: Option<String>,
    pub plan: Plan,
    _beside: RwLockReadGuard<'static, ()>,
}

/// The world's time between two checks of a condition.
const TURN: Duration = Duration::from_millis(5);
/// The default time limit of a wait: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(15);

impl Lab {
    /// Applications that the test steers, at both ends. `None`, and a message on standard error, where it cannot run.
    pub fn start(plan: Plan) -> Option<Self> {
        Self::start_behind(plan, None)
    }

    /// The same with a middlebox between the kernel and the network.
    pub fn start_behind(plan: Plan, middlebox: Option<Middlebox>) -> Option<Self> {
        let (engine, kernel) = (Steer::new(), Steer::new());
        let (at_engine, at_kernel) = (engine.workload(), kernel.workload());
        Self::with(plan, middlebox, (engine, at_engine), (kernel, at_kernel))
    }

    /// Any applications. A [`Steer`] without a workload has no meaning.
    pub fn with(
        plan: Plan,
        middlebox: Option<Middlebox>,
        (engine, at_engine): (Steer, Box<dyn Workload>),
        (kernel, at_kernel): (Steer, Box<dyn Workload>),
    ) -> Option<Self> {
        let beside = beside()?;
        let exchange = plan.begin(vec![at_engine], vec![at_kernel], 1, middlebox);
        let notes = Notes::new(plan.engine, plan.captured);
        Some(Self { exchange, notes, engine, kernel, kernel_error: None, plan, _beside: beside })
    }

    /// Runs the world for `time`.
    pub fn run(&mut self, time: Duration) {
        let until = self.exchange.clock.now() + time;
        while self.exchange.clock.now() < until {
            match self.exchange.run(until, &mut self.notes) {
                Ok(_) => {}
                Err(LabError::Application { what }) => {
                    self.kernel_error.get_or_insert(what);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Runs the world until `holds`; panics after 15 s.
    pub fn until(&mut self, what: &str, holds: impl FnMut(&mut Self) -> bool) {
        self.until_in(PATIENCE, what, holds);
    }

    /// The same with another time limit.
    pub fn until_in(&mut self, patience: Duration, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let limit = self.exchange.clock.now() + patience;
        while !holds(self) {
            assert!(self.exchange.clock.now() < limit, "waited in vain: {what}\n{}", self.describe());
            self.run(TURN);
        }
    }

    /// The state that a failed test shows.
    pub fn describe(&self) -> String {
        let subflows = self.subflows();
        format!(
            "engine: {:?}\nkernel: {:?}, error {:?}\nsubflows: {subflows:?}\nevents: {:?}\ncounters: {:#?}\n{}{}",
            self.engine.progress(),
            self.kernel.progress(),
            self.kernel_error,
            self.notes.events,
            self.counters(),
            self.command("ss -tanim"),
            self.command("ss -Mani")
        )
    }

    /// Both applications have a connection.
    pub fn connect(&mut self) {
        self.until("a connection", |lab| lab.engine.progress().established && lab.kernel.progress().established);
    }

    /// Both ends have `n` subflows; the kernel counts all but the first.
    pub fn until_subflows(&mut self, n: usize) {
        self.until(&format!("{n} subflows"), |lab| lab.established() == n && lab.kernel_subflows() + 1 == n);
    }

    /// `bytes` from the engine to the kernel and as many back arrive intact.
    pub fn exchange_bytes(&mut self, bytes: u64) {
        self.engine.send(bytes);
        self.kernel.send(bytes);
        self.until_arrived();
    }

    /// All requested bytes have been written and read, intact.
    pub fn until_arrived(&mut self) {
        self.until("all data", |lab| {
            let (engine, kernel) = (lab.engine.progress(), lab.kernel.progress());
            assert_eq!((engine.fault, kernel.fault), (None, None));
            engine.received == kernel.to_write && kernel.received == engine.to_write
        });
    }

    /// Both finish, and everything arrives; then the engine's connection ends in order, without an error.
    pub fn close(&mut self) {
        self.engine.finish();
        self.kernel.finish();
        self.until_ended();
    }

    /// After both have been asked to finish: everything arrives, and the connection ends in order.
    pub fn until_ended(&mut self) {
        self.until("the end of both streams", |lab| lab.engine.progress().ended && lab.kernel.progress().ended);
        self.until_arrived();
        self.until("the engine's end", |lab| lab.notes.closed().is_some());
        assert_eq!(self.notes.closed(), Some(anabranch_trace::CloseReason::Finished));
        assert_eq!(self.kernel_error, None);
    }

    /// The engine's connection; `None` before it exists and after its removal.
    pub fn connection(&self) -> Option<&Connection> {
        self.exchange.world.connection(0, self.plan.engine)
    }

    /// Acts on the engine's connection.
    pub fn act(&mut self, mut act: impl FnMut(&mut Connection, &mut Cx<'_>)) {
        let side = self.plan.engine;
        let handle = self.exchange.world.handle(0, side).expect("a connection");
        self.exchange.world.act(0, side, &mut self.notes, &mut |endpoint, cx| {
            act(endpoint.connection_mut(handle).expect("a connection that is open"), cx);
        });
    }

    /// The engine's subflows: path, remote address, state.
    pub fn subflows(&self) -> Vec<(PathId, SocketAddr, anabranch_engine::State)> {
        let list =
            self.connection().map(|c| c.subflows().map(|(id, tuple, state)| (id, tuple.remote, state)).collect());
        list.unwrap_or_default()
    }

    /// The number of established subflows of the engine.
    pub fn established(&self) -> usize {
        self.subflows().iter().filter(|(_, _, state)| *state == anabranch_engine::State::Established).count()
    }

    /// The kernel's host.
    pub fn host(&self) -> &KernelHost {
        &self.exchange.outside[0].host
    }

    /// The increase of the kernel's counters since setup.
    pub fn counters(&self) -> Counters {
        self.host().counted().expect("counters")
    }

    /// One counter of the kernel, by its `nstat` name.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters().get(name).copied().unwrap_or(0)
    }

    /// Runs a program on the kernel's host; returns its output.
    pub fn command(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.host().namespace.command(words[0], &words[1..], "").expect(line)
    }

    /// The kernel's established MPTCP subflows except the first.
    pub fn kernel_subflows(&self) -> usize {
        // `ss -M` shows one line per connection, and subflows only as TCP sockets.
        let sockets = self.command("ss -Htni state established");
        sockets.matches("tcp-ulp-mptcp").count().saturating_sub(1)
    }

    /// Ends the kernel's application at once: its socket is closed with unread data, lingering for 0 s.
    pub fn kill_kernel_application(&mut self) {
        self.exchange.outside[0].applications.clear();
    }
}
