//! A shell between emulated paths: any program over the scenario's network, in real time.
//!
//! Both hosts are Linux kernels. A program runs in the client's namespace, with the terminal, and perhaps one in the
//! server's; what they send to each other crosses the scenario's paths, whatever it is: its IP packets travel unparsed.

mod keeper;
mod program;
mod settle;
mod signals;
mod summary;

use crate::exchange::{Exchange, FLOW, Outside};
use crate::kernel::KernelHost;
use crate::real_time::{addresses, live, outside};
use crate::{Capture, Clock, LabError, Namespace, privilege};
use anabranch_metrics::LinkMeter;
use anabranch_run::layout::Layout;
use anabranch_run::{Choice, Job, RunError};
use anabranch_scenario::{Cell, Host, Hosts, Scenario, TrafficKind};
use anabranch_sim::{Checks, World};
use anabranch_units::{Duration, Instant, Side};
pub use keeper::keep;
use nix::sys::signal::Signal;
use program::{Place, Program};
pub use settle::Pending;
use settle::{LONGEST, Look, PATIENCE, Patience, READING};
use signals::Signals;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
pub use summary::{PathSummary, Summary, WaySummary};

/// Two kernels and the paths between them, ready for programs; for as long as the thread lives that starts them. A process
/// that uses this asks [`keep`] first of all. Signals that end a process by a key or by hanging up are
/// held back from this thread as long as it lives: they are the programs'.
#[derive(Debug)]
pub struct Shell {
    // The order is that in which they are dropped: programs first.
    client: Option<Program>,
    server: Option<Program>,
    exchange: Exchange,
    meter: LinkMeter,
    job: Job,
    signals: Signals,
}

/// What became of a server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// It listens: a socket of its namespace waits for connections or datagrams.
    Listening,
    /// It runs, but nothing listens yet.
    Silent,
    /// It has ended, without an error.
    Ended,
}

/// What did not arrive though it was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unarrived {
    /// How much.
    pub left: Pending,
    /// Why the wait ended.
    pub why: Why,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A signal came.
    Interrupted,
    /// So long nothing arrived.
    NoProgress(Duration),
    /// It took so long.
    TooLong(Duration),
}

/// How long the wait lasts before the user is told.
const UNTOLD: Duration = Duration::from_secs(1);
/// How long a server may take until it listens.
const LISTENING: std::time::Duration = std::time::Duration::from_secs(10);
/// How often to look whether it does.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// How often to look whether the program has ended.
const PULSE: Duration = Duration::from_millis(10);
/// The kernel's name for the congestion control of a namespace.
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

impl Shell {
    /// Sets both hosts up. The scenario's traffic, scheduler and duration do not count; its congestion control does where
    /// the kernel lets a namespace choose it. `captures` is a directory for captures of both hosts.
    ///
    /// # Errors
    /// Neither root nor the like; a program or a setting that this system does not have.
    pub fn new(scenario: &Scenario, captures: Option<&Path>) -> Result<Self, LabError> {
        privilege::acquire()?;
        let signals = Signals::hold().map_err(LabError::system("holding signals back"))?;
        let refused = |error: RunError| LabError::World { what: error.to_string() };
        let job = job(scenario);
        let plan = Layout::of(&job).map_err(refused)?;
        let mut flows = plan.flows(&job).map_err(refused)?;
        flows[0].captured = false;
        let world = World::new(plan.world(&job, Checks::default()).map_err(refused)?, flows);
        let mut outside = outside(&job, &plan)?;
        for Outside { host, .. } in &mut outside {
            let chosen = congestion(host, &job.congestion.name)?;
            host.settings.sysctls.push((CONGESTION.into(), chosen));
        }
        let timeline: Vec<_> = scenario.network_changes().collect();
        let meter = LinkMeter::new(&scenario.topology, &timeline, scenario.topology.paths.len());
        let mut exchange = Exchange::new(world, outside);
        exchange.captured = false;
        let shell = Self { client: None, server: None, exchange, meter, job, signals };
        let names: Vec<String> = shell.paths().map(|(name, _)| name.to_owned()).collect();
        let capture = captures.map(|folder| Capture::create(folder, &names)).transpose()?;
        Ok(Self { exchange: Exchange { capture, ..shell.exchange }, ..shell })
    }

    /// The server's address.
    pub fn server(&self) -> IpAddr {
        addresses(&self.job).server()
    }

    /// The paths' names with the client's address on each.
    pub fn paths(&self) -> impl Iterator<Item = (&str, IpAddr)> {
        let addresses = addresses(&self.job);
        let paths = self.job.scenario.topology.paths.iter().enumerate();
        paths.map(move |(n, path)| (path.name.as_str(), addresses.client(n)))
    }

    /// A file that `nsenter --net=FILE` takes to enter a host's namespace from elsewhere.
    pub fn namespace(&self, side: Side) -> String {
        self.host(side).namespace.path()
    }

    /// The kernel's congestion control, if it is not the scenario's.
    pub fn other_congestion(&self) -> Option<(&str, &str)> {
        let (_, chosen) = self.host(Side::Client).settings.sysctls.iter().find(|(name, _)| name == CONGESTION)?;
        let wanted = self.job.congestion.name.as_str();
        (chosen != wanted).then_some((wanted, chosen))
    }

    /// Variables that tell programs where they are.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut all = vec![("ANABRANCH_SERVER".to_owned(), self.server().to_string())];
        all.extend(self.paths().map(|(name, address)| (variable(name), address.to_string())));
        all.push(("ANABRANCH_CLIENT_NS".into(), self.namespace(Side::Client)));
        all.push(("ANABRANCH_SERVER_NS".into(), self.namespace(Side::Server)));
        all
    }

    fn host(&self, side: Side) -> &KernelHost {
        let found = self.exchange.outside.iter().find(|outside| outside.side == side);
        &found.expect("a shell has a kernel at each end").host
    }

    /// Starts `command` by `sh -c` in the server's namespace, and waits until it listens. What it prints goes to standard
    /// error. It is ended with the shell.
    ///
    /// # Errors
    /// It cannot be started, or fails before it listens.
    pub fn serve(&mut self, command: &str) -> Result<Served, LabError> {
        let line = ["sh", "-c", command].map(OsString::from);
        let namespace = &self.host(Side::Server).namespace;
        let mut server = Program::start(namespace, Place::Background, &line, self.environment(), command)?;
        let begun = std::time::Instant::now();
        let failed = |what: &str| LabError::Application { what: format!("the server `{command}` {what}") };
        let served = loop {
            // Asked before its sockets: one that has ended may have left another that listens.
            let ended = server.exited()?;
            if listens(&self.host(Side::Server).namespace)? {
                break Served::Listening;
            }
            match ended {
                Some(0) => break Served::Ended,
                Some(code) => return Err(failed(&format!("ended with {code} before it listened"))),
                None if begun.elapsed() > LISTENING => break Served::Silent,
                None => std::thread::sleep(LOOK),
            }
            if self.signals.next().is_some() {
                return Err(failed("was interrupted before it listened"));
            }
        };
        self.server = Some(server);
        Ok(served)
    }

    /// Runs `command` (the program first) in the client's namespace until it ends: its exit code, as a shell tells it. The
    /// network's time begins now.
    ///
    /// # Errors
    /// It cannot be started; the network fails.
    pub fn run(&mut self, command: &[OsString]) -> Result<u8, LabError> {
        let Some(program) = command.first() else {
            return Err(LabError::Application { what: "there is no command to run".into() });
        };
        let name = program.display().to_string();
        self.exchange.clock = Clock::start();
        let namespace = &self.host(Side::Client).namespace;
        let started = Program::start(namespace, Place::Foreground, command, self.environment(), &name)?;
        let child = self.client.insert(started);
        loop {
            let until = self.exchange.clock.now() + PULSE;
            self.exchange.run(until, &mut self.meter)?;
            while let Some(signal) = self.signals.next() {
                // The others come from keys of the terminal, which gives them to the program as well.
                if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
                    child.signal(signal);
                }
            }
            if let Some(code) = child.exited()? {
                return Ok(code);
            }
        }
    }

    /// Waits until what the program sent has arrived and the server has read it, and tells `slow` when that takes its time.
    /// What the program left behind is ended meanwhile. Gives up when nothing arrives for half a minute, after ten minutes,
    /// or when a signal comes; then what is left.
    ///
    /// # Errors
    /// The network fails; the kernel does not tell of its sockets.
    pub fn settle(&mut self, slow: &mut dyn FnMut(&Pending)) -> Result<Option<Unarrived>, LabError> {
        // A key that ended the program counts no more.
        while self.signals.next().is_some() {}
        if let Some(client) = &self.client {
            client.end();
        }
        let mut look = Look::new(&self.host(Side::Client).namespace, &self.host(Side::Server).namespace)?;
        let ended = self.pulse()?;
        let (mut patience, mut told) = (Patience::new(PATIENCE, ended), false);
        loop {
            let now = self.pulse()?;
            let packets = self.exchange.world.under_way_to(FLOW, Side::Server, ended);
            let left = Pending { packets, ..look.sent()? };
            if left.is_nothing() && self.client.as_mut().is_none_or(Program::is_gone) {
                break;
            }
            let why = match patience.ends(now, left.bytes + left.packets as u64) {
                _ if self.signals.next().is_some() => Why::Interrupted,
                true if now.since(patience.begun()) >= LONGEST => Why::TooLong(LONGEST),
                true => Why::NoProgress(PATIENCE),
                false => {
                    if !left.is_nothing() && !told && now.since(patience.begun()) >= UNTOLD {
                        slow(&left);
                        told = true;
                    }
                    continue;
                }
            };
            return Ok((!left.is_nothing()).then_some(Unarrived { left, why }));
        }
        // What has arrived is the server's; it is given time, and asked nothing.
        let mut patience = Patience::new(READING, self.exchange.clock.now());
        loop {
            let now = self.pulse()?;
            let unread = look.unread()?;
            if unread == 0 || patience.ends(now, unread) || self.signals.next().is_some() {
                return Ok(None);
            }
        }
    }

    /// Lets the network run for a moment; the time then.
    fn pulse(&mut self) -> Result<Instant, LabError> {
        let until = self.exchange.clock.now() + PULSE;
        self.exchange.run(until, &mut self.meter)?;
        Ok(until)
    }

    /// Ends the server and sums up; and whether the captures are whole.
    ///
    /// # Errors
    /// The kernels' counters cannot be read.
    pub fn finish(mut self) -> Result<(Summary, Result<(), LabError>), LabError> {
        let summary = Summary::new(&self.job.scenario, &self.exchange, &self.meter, live(&self.exchange, &self.job)?);
        drop(self.client.take());
        drop(self.server.take());
        let captured = self.exchange.capture.take().map_or(Ok(()), Capture::finish);
        Ok((summary, captured))
    }
}

/// The scenario's network between two kernels; programs are the traffic.
fn job(scenario: &Scenario) -> Job {
    let hosts = Hosts { sender: Host::Linux, receiver: Host::Linux, ..scenario.hosts };
    let scenario = Scenario { traffic: vec![TrafficKind::Bulk { size: None }.into()], hosts, ..scenario.clone() };
    Job {
        cell: Cell::default(),
        choice: Choice::Multipath(scenario.scheduler.clone()),
        congestion: scenario.congestion.clone(),
        seed: scenario.seed,
        curves: None,
        scenario: Arc::new(scenario),
    }
}

/// Sets a namespace's congestion control to `wanted` if the kernel lets it; the one that it has then.
fn congestion(host: &KernelHost, wanted: &str) -> Result<String, LabError> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
    let choose = || {
        // A namespace may have those alone that every user may have.
        if read("tcp_allowed_congestion_control")?.split_whitespace().any(|allowed| allowed == wanted) {
            std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", wanted)?;
        }
        Ok(read("tcp_congestion_control")?.trim().to_owned())
    };
    host.namespace.enter(choose)?.map_err(LabError::system("choosing the congestion control"))
}

/// `ANABRANCH_CLIENT_3G_2` for the path `3g-2`.
fn variable(path: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("ANABRANCH_CLIENT_{}", path.chars().map(plain).collect::<String>())
}

/// A socket of the namespace waits for connections, or for datagrams.
fn listens(namespace: &Namespace) -> Result<bool, LabError> {
    let table = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    namespace.enter(|| {
        // The fourth column is the state: 0A is LISTEN.
        let listening = |line: &str| line.split_whitespace().nth(3) == Some("0A");
        let streams = ["tcp", "tcp6"].map(table).iter().any(|text| text.lines().skip(1).any(listening));
        streams || ["udp", "udp6"].map(table).iter().any(|text| text.lines().count() > 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_names_that_a_shell_takes() {
        assert_eq!(variable("wlan"), "ANABRANCH_CLIENT_WLAN");
        assert_eq!(variable("3g-2.é"), "ANABRANCH_CLIENT_3G_2__");
    }
}
