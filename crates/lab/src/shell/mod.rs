//! A shell between emulated paths: any program over the scenario's network, in real time.
//!
//! Both hosts are Linux kernels. A program runs in the client's namespace, with the terminal, and optionally one in the
//! server's. All packets between them cross the scenario's paths; their IP packets are not parsed.

mod keeper;
mod program;
mod settle;
mod signals;
mod summary;

use crate::exchange::{Exchange, FLOW, Outside};
use crate::kernel::KernelHost;
use crate::real_time::{addresses, host_changes, live, outside};
use crate::{Capture, Clock, LabError, Namespace, privilege};
use anabranch_metrics::LinkMeter;
use anabranch_run::layout::Layout;
use anabranch_run::{Choice, Job, RunError};
use anabranch_scenario::{Host, Hosts, Scenario, TimelineChange, TimelineEntry, TrafficKind};
use anabranch_sim::{Checks, World};
use anabranch_units::{Duration, Instant, Side};
pub use keeper::keep;
use nix::sys::signal::Signal;
use program::{Place, Program};
pub use settle::Pending;
use settle::{LONGEST, Look, PATIENCE, Patience, READING};
use signals::Signals;
use std::ffi::OsString;
use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
pub use summary::{PathSummary, ShellSummary, WaySummary};

/// Two kernels and the paths between them, ready for programs, as long as the starting thread lives. A process that
/// uses this calls [`keep`] first of all. Signals from the terminal's keys and hang-up are blocked on this thread as
/// long as it lives: they are for the programs.
#[derive(Debug)]
pub struct Shell {
    // In the order of dropping: programs first.
    client: Option<Program>,
    server: Option<Program>,
    exchange: Exchange,
    meter: LinkMeter,
    job: Job,
    plan: Layout,
    signals: Signals,
}

/// The outcome of a server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The program listens: a socket of its namespace waits for connections or datagrams.
    Listening,
    /// The program runs, but nothing listens yet.
    Silent,
    /// The program has ended, without an error.
    Ended,
}

/// The data that did not arrive although it was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unarrived {
    /// The amount.
    pub left: Pending,
    /// Why the wait ended.
    pub why: Why,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A signal came.
    Interrupted,
    /// Nothing arrived for this time.
    NoProgress(Duration),
    /// The time limit.
    TooLong(Duration),
}

/// How long the wait lasts before the user gets a message.
const UNTOLD: Duration = Duration::from_secs(1);
/// The time that a server has until it listens.
const LISTENING: std::time::Duration = std::time::Duration::from_secs(10);
/// The interval at which this is checked.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// The interval at which the program's end is checked.
const PULSE: Duration = Duration::from_millis(10);
/// The kernel's name for the congestion control of a namespace.
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// Refuses a scenario that demands of a path what no Linux host does.
fn check_options(scenario: &Scenario) -> Result<(), LabError> {
    let is_unknown =
        |entry: &TimelineEntry| matches!(entry.change, TimelineChange::Option(_, change) if !change.is_of_kernels());
    let late = scenario.never_joined_by_linux().map(|path| &scenario.topology.paths[path].name);
    let what = if scenario.timeline.iter().any(is_unknown) {
        "price, cap or weight in the timeline: both hosts are Linux, which has none of these for a path".into()
    } else if scenario.changes_interfaces() {
        "`mtu` in the timeline: both hosts are Linux, which keeps the MTU of its interfaces; set mtu_signal = \"icmp\""
            .into()
    } else if let Some(path) = late {
        format!(
            "path `{path}` appears later, and no path of its IP version is there before: a Linux client would not join it"
        )
    } else {
        return Ok(());
    };
    Err(LabError::World { what })
}

impl Shell {
    /// Sets both hosts up. The scenario's traffic, scheduler and duration are ignored; its congestion control applies
    /// where the kernel lets a namespace choose it.
    ///
    /// # Errors
    /// A lack of privilege; a program or a setting that this system does not have.
    pub fn new(scenario: &Scenario) -> Result<Self, LabError> {
        check_options(scenario)?;
        privilege::acquire()?;
        let signals = Signals::hold().map_err(LabError::system("holding signals back"))?;
        let refused = |error: RunError| LabError::World { what: error.to_string() };
        let job = job(scenario);
        let plan = Layout::of_one(&job).map_err(refused)?;
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
        Ok(Self { client: None, server: None, exchange, meter, job, plan, signals })
    }

    /// Captures the packets of the client and of the server from now on into these files, each with its name for messages.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn capture(&mut self, files: [(PathBuf, File); 2]) -> Result<(), LabError> {
        let names: Vec<String> = self.paths().map(|(name, _)| name.to_owned()).collect();
        self.exchange.capture = Some(Capture::new(files, &names)?);
        Ok(())
    }

    /// The server's address.
    pub fn server(&self) -> IpAddr {
        addresses(&self.job).server(self.plan.opens_over(&self.job))
    }

    /// The paths' names with the client's address on each.
    pub fn paths(&self) -> impl Iterator<Item = (&str, IpAddr)> {
        let addresses = addresses(&self.job);
        let paths = self.job.scenario.topology.paths.iter().enumerate();
        paths.map(move |(n, path)| (path.name.as_str(), addresses.client(n)))
    }

    /// A file for `nsenter --net=FILE`, to enter a host's namespace from elsewhere.
    pub fn namespace(&self, side: Side) -> String {
        self.host(side).namespace.path()
    }

    /// The kernel's congestion control, if it differs from the scenario's.
    pub fn other_congestion(&self) -> Option<(&str, &str)> {
        let (_, chosen) = self.host(Side::Client).settings.sysctls.iter().find(|(name, _)| name == CONGESTION)?;
        let wanted = self.job.congestion.name.as_str();
        (chosen != wanted).then_some((wanted, chosen))
    }

    /// Environment variables that describe the network to programs.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut all = vec![("ANABRANCH_SERVER".to_owned(), self.server().to_string())];
        let servers = addresses(&self.job).servers();
        all.extend(servers.iter().filter(|_| servers.len() > 1).map(|server| {
            let version = if server.is_ipv6() { 6 } else { 4 };
            (format!("ANABRANCH_SERVER_IPV{version}"), server.to_string())
        }));
        all.extend(self.paths().map(|(name, address)| (variable(name), address.to_string())));
        all.push(("ANABRANCH_CLIENT_NS".into(), self.namespace(Side::Client)));
        all.push(("ANABRANCH_SERVER_NS".into(), self.namespace(Side::Server)));
        all
    }

    fn host(&self, side: Side) -> &KernelHost {
        let found = self.exchange.outside.iter().find(|outside| outside.side == side);
        &found.expect("a shell has a kernel at each end").host
    }

    /// Starts `command` by `sh -c` in the server's namespace, and waits until it listens. Its output goes to standard
    /// error. It ends with the shell.
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
            // Checked before its sockets: a program that ended may have left another one that listens.
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

    /// Runs `command` (the program first) in the client's namespace until it ends; returns its exit code in the form of
    /// a shell. The network's time begins now.
    ///
    /// # Errors
    /// It cannot be started, or the network fails.
    pub fn run(&mut self, command: &[OsString]) -> Result<u8, LabError> {
        let Some(program) = command.first() else {
            return Err(LabError::Application { what: "there is no command to run".into() });
        };
        let name = program.display().to_string();
        self.exchange.clock = Clock::start();
        for outside in &mut self.exchange.outside {
            outside.changes = host_changes(outside, &self.job, &self.plan, self.exchange.clock)?;
        }
        let namespace = &self.host(Side::Client).namespace;
        let started = Program::start(namespace, Place::Foreground, command, self.environment(), &name)?;
        let child = self.client.insert(started);
        loop {
            let until = self.exchange.clock.now() + PULSE;
            self.exchange.run(until, &mut self.meter)?;
            while let Some(signal) = self.signals.next() {
                // The others come from the terminal's keys, and reach the program as well.
                if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
                    child.signal(signal);
                }
            }
            if let Some(code) = child.exited()? {
                return Ok(code);
            }
        }
    }

    /// Waits until the data that the program sent has arrived and the server has read it; calls `slow` when that takes
    /// long. Processes that the program left are ended meanwhile. Gives up after half a minute without progress, after
    /// ten minutes, or on a signal; returns the rest then.
    ///
    /// # Errors
    /// The network fails, or the kernel does not list its sockets.
    pub fn settle(&mut self, slow: &mut dyn FnMut(&Pending)) -> Result<Option<Unarrived>, LabError> {
        // A signal that ended the program no longer counts.
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
        // The rest has arrived at the server; it gets time, and no signal.
        let mut patience = Patience::new(READING, self.exchange.clock.now());
        loop {
            let now = self.pulse()?;
            let unread = look.unread()?;
            if unread == 0 || patience.ends(now, unread) || self.signals.next().is_some() {
                return Ok(None);
            }
        }
    }

    /// Runs the network briefly; returns the time then.
    fn pulse(&mut self) -> Result<Instant, LabError> {
        let until = self.exchange.clock.now() + PULSE;
        self.exchange.run(until, &mut self.meter)?;
        Ok(until)
    }

    /// Ends the server and summarises; also whether the captures are complete.
    ///
    /// # Errors
    /// The kernels' counters cannot be read.
    pub fn finish(mut self) -> Result<(ShellSummary, Result<(), LabError>), LabError> {
        let summary =
            ShellSummary::new(&self.job.scenario, &self.exchange, &self.meter, live(&self.exchange, &self.job)?);
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
    let (choice, seed) = (Choice::Multipath(scenario.scheduler.clone()), scenario.seed);
    Job::of(Arc::new(scenario), choice, seed)
}

/// Sets a namespace's congestion control to `wanted` if the kernel permits it; returns the one in effect.
fn congestion(host: &KernelHost, wanted: &str) -> Result<String, LabError> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
    let choose = || {
        // A namespace may use only the algorithms that are open to every user.
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
    use anabranch_scenario::Document;

    #[test]
    fn variables_are_names_that_a_shell_takes() {
        assert_eq!(variable("wlan"), "ANABRANCH_CLIENT_WLAN");
        assert_eq!(variable("3g-2.é"), "ANABRANCH_CLIENT_3G_2__");
    }

    #[test]
    fn what_no_linux_host_does_is_refused() {
        let refused = |of_path: &str, changes: &str| {
            let text = format!("[[path]]\nname = 'a'\nrate = '1mbit'\ndelay = '1ms'\n{of_path}\n{changes}");
            let document = Document::parse("x.toml", &format!("duration = '9s'\n{text}")).unwrap();
            check_options(&document.scenario).err().map(|error| error.to_string())
        };
        assert_eq!(refused("", ""), None);
        assert_eq!(refused("start = '1s'\nstop = '2s'", ""), None);
        let change = |key| format!("[[timeline]]\nat = '1s'\nset = 'path.a.{key}'\nvalue = ");
        assert_eq!(refused("", &(change("backup") + "true")), None);
        assert!(refused("", &(change("weight") + "2")).unwrap().contains("weight"));
        assert_eq!(refused("", &(change("queue") + "'9p'")), None);
        let other = "[[path]]\nname = 'b'\nrate = '1mbit'\ndelay = '1ms'\nip = 6\n";
        assert_eq!(refused("", other), None);
        assert!(refused("", &format!("{other}start = '1s'")).unwrap().contains("path `b`"));
    }
}
