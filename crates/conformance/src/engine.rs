//! The engine as the host under test, in virtual time.

use crate::play::world::{SERVER_PORT, World};
use crate::play::{Got, Sent, Status, Subject};
use crate::script::{Address, After, Call, Closed, Counter, Most, Script, Settings as Asked};
use anabranch_engine::connection::{Connection, ConnectionEvent, PathSetup, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, DssWidth, FirstPath, FourTuple, RecoveryKind, Settings, TcpSettings};
use anabranch_trace::{CloseReason, Event, Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Rng};
use anabranch_wire::{Packet, Reason};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The greatest difference between a packet's time and the script's.
const TOLERANCE: Duration = Duration::from_millis(1);
/// The first port of the engine as a client.
const FIRST_PORT: u16 = 40_000;
/// Most timers that fire at one time.
const MOST_SPINS: u32 = 10_000;
/// Reason of a reset that the application requests.
const UNSPECIFIED: Reason = Reason { code: 0, transient: false };

/// Counts the violations that the engine records.
#[derive(Debug, Default)]
struct Violations(BTreeMap<String, u64>);

impl Recorder for Violations {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        if let Event::Violation(violation) = event {
            *self.0.entry(format!("{violation:?}")).or_default() += 1;
        }
    }
}

/// Bytes for IP, TCP and the longest options of a data segment.
fn engine_settings(asked: &Asked) -> Settings {
    // The option bytes that the engine subtracts from its announced MSS.
    let dss = if asked.dss == 8 { 28 } else { 24 };
    let options = if asked.mptcp { dss } else { 0 } + if asked.timestamps { 12 } else { 0 };
    let duration = |time: Duration| anabranch_units::Duration::from_nanos(time.as_nanos() as u64);
    let usual = TcpSettings::default();
    Settings {
        tcp: TcpSettings {
            recovery: if asked.rack { RecoveryKind::Rack } else { RecoveryKind::Sack },
            rto_min: duration(asked.rto_min),
            rto_max: duration(asked.rto_max),
            initial_window: asked.initial_window,
            idle_restart: asked.idle_restart,
            delayed_ack: if asked.quick_ack { anabranch_units::Duration::ZERO } else { usual.delayed_ack },
            nagle: asked.nagle,
            timestamps: asked.timestamps,
            sack: asked.sack,
            ecn: asked.ecn,
            syn_retries: asked.syn_retries,
            retries: asked.retries,
            keep_alive: asked.keep_alive.map(duration),
            time_wait: duration(asked.time_wait),
            ..usual
        },
        mptcp: asked.mptcp,
        checksum: asked.checksum,
        dss: if asked.dss == 8 { DssWidth::Eight } else { DssWidth::Four },
        mss: u32::from(asked.mss).saturating_sub(options),
        send_buffer: asked.send_buffer,
        recv_buffer: asked.recv_buffer,
        first_path: if asked.race.is_some() { FirstPath::Race } else { FirstPath::First },
        race_delay: asked.race.map_or(Settings::RACE_DELAY, duration),
        ..Settings::default()
    }
}

fn setup(asked: &Asked, paths: Vec<PathSetup>) -> Result<Setup, String> {
    Ok(Setup {
        id: ConnId(0),
        settings: engine_settings(asked),
        scheduler: anabranch_schedulers::build(&asked.scheduler, &[]).map_err(|error| error.to_string())?,
        congestion: anabranch_congestion::build(&asked.congestion, &[]).map_err(|error| error.to_string())?,
        paths,
        announce: Vec::new(),
        accept_announced: asked.accept_announced,
    })
}

/// An endpoint with the connection of the script.
#[derive(Debug)]
pub struct EngineHost {
    endpoint: Endpoint,
    handle: Option<Handle>,
    now: Instant,
    log: Violations,
    rng: Rng,
    asked: Arc<Asked>,
    /// A client's paths: the first, and those over which it joins.
    paths: Vec<PathSetup>,
    /// The paths that the script names, by their ends: address of ours, address and port of the peer's.
    ends: Vec<(IpAddr, SocketAddr)>,
    v6: bool,
    sent: VecDeque<Sent>,
    established: bool,
    multipath: bool,
    closed: Option<Closed>,
    /// Bytes taken out of the connection and not yet read.
    left: Vec<u8>,
    ended: bool,
}

impl EngineHost {
    /// A host for `script`.
    ///
    /// # Errors
    /// A scheduler or congestion control that does not exist.
    pub fn new(script: &Script) -> Result<Self, String> {
        let world = World::new(script);
        let mut paths = Vec::new();
        let joined = script.joins.iter().map(|line| (line.path, line.backup));
        for (path, backup) in core::iter::once((0, false)).chain(joined).filter(|_| script.is_client()) {
            let ends = &world.paths[usize::from(path)];
            let port = ends.local_port.unwrap_or(FIRST_PORT + u16::from(path));
            let tuple = FourTuple { local: SocketAddr::new(ends.local, port), remote: ends.peer };
            paths.push(PathSetup { backup, ..PathSetup::new(PathId(path), tuple) });
        }
        setup(&script.settings, Vec::new())?;
        Ok(Self {
            endpoint: Endpoint::default(),
            handle: None,
            now: Instant::ZERO,
            log: Violations::default(),
            rng: Rng::stream(12, "conformance"),
            asked: Arc::new(script.settings.clone()),
            paths,
            ends: world.paths.iter().map(|path| (path.local, path.peer)).collect(),
            v6: script.settings.ipv6,
            sent: VecDeque::new(),
            established: false,
            multipath: false,
            closed: None,
            left: Vec::new(),
            ended: false,
        })
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T) -> Result<T, String> {
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        let connection = self.handle.and_then(|handle| self.endpoint.connection_mut(handle));
        let done = act(connection.ok_or("there is no connection")?, &mut cx);
        self.poll();
        Ok(done)
    }

    /// Collects the endpoint's packets and events.
    fn poll(&mut self) {
        self.hear_events();
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        while let Some((_, packet)) = self.endpoint.poll_transmit(&mut cx) {
            self.sent.push_back(Sent { at: since_start(self.now), bytes: packet.emit() });
        }
        self.hear_events();
    }

    fn hear_events(&mut self) {
        if let Some(handle) = self.endpoint.poll_accept() {
            self.handle = Some(handle);
        }
        let Some(handle) = self.handle else { return };
        if let Some(connection) = self.endpoint.connection(handle) {
            self.multipath = connection.is_multipath();
        }
        while let Some(event) = self.endpoint.poll_event(handle) {
            match event {
                ConnectionEvent::Established => self.established = true,
                ConnectionEvent::Closed(reason) => {
                    self.closed = Some(match reason {
                        CloseReason::Finished => Closed::Finished,
                        CloseReason::Aborted => Closed::Aborted,
                        CloseReason::ResetByPeer => Closed::Reset,
                        CloseReason::TimedOut => Closed::TimedOut,
                        CloseReason::Refused => Closed::Refused,
                    });
                    // The connection is removed soon, so the rest is read now.
                    self.drain(usize::MAX);
                }
                _ => {}
            }
        }
    }

    /// Takes at least `wanted` bytes out of the connection, if it has them; the connection returns whole pieces.
    fn drain(&mut self, wanted: usize) {
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle)) else { return };
        while self.left.len() < wanted {
            let Some(bytes) = connection.read(&mut cx) else { break };
            self.left.extend_from_slice(&bytes);
        }
        self.ended |= connection.read_finished();
    }

    /// The engine's id of the application's path.
    fn path(&self, number: u8) -> Result<PathId, String> {
        let (local, peer) = self.ends[usize::from(number)];
        let connection = self.handle.and_then(|handle| self.endpoint.connection(handle));
        let mut subflows = connection.ok_or("there is no connection")?.subflows();
        let found = subflows.find(|(_, tuple, _)| tuple.local.ip() == local && tuple.remote == peer);
        found.map(|(id, ..)| id).ok_or_else(|| format!("there is no subflow on path {number}"))
    }

    fn address(&self, whose: Address) -> IpAddr {
        crate::play::world::address(self.v6, whose)
    }
}

fn since_start(at: Instant) -> Duration {
    Duration::from_nanos(at.since(Instant::ZERO).as_nanos())
}

fn instant(at: Duration) -> Instant {
    Instant::ZERO + anabranch_units::Duration::from_nanos(at.as_nanos() as u64)
}

impl Subject for EngineHost {
    fn now(&self) -> Duration {
        since_start(self.now)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Sent>, String> {
        let until = instant(until);
        self.poll();
        let mut spins = 0;
        while self.sent.is_empty() {
            let Some(due) = self.endpoint.poll_timeout().filter(|due| *due <= until) else { break };
            spins = if due <= self.now { spins + 1 } else { 0 };
            if spins > MOST_SPINS {
                return Err(format!("time stands still: a timer at {:?} is never served", since_start(due)));
            }
            self.now = self.now.max(due);
            let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
            self.endpoint.handle_timeout(&mut cx);
            self.poll();
        }
        if self.sent.is_empty() {
            self.now = self.now.max(until);
        }
        Ok(self.sent.pop_front())
    }

    fn inject(&mut self, bytes: &[u8]) -> Result<(), String> {
        // Packets that the engine's parser refuses do not reach it, as in a driver.
        if let Ok(packet) = Packet::parse(Bytes::copy_from_slice(bytes)) {
            let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
            self.endpoint.handle_packet(&mut cx, &packet);
        }
        self.poll();
        Ok(())
    }

    fn call(&mut self, call: &Call, data: Vec<u8>) -> Result<(), String> {
        match *call {
            Call::Listen => {
                let asked = Arc::clone(&self.asked);
                self.endpoint.listen(SERVER_PORT, Box::new(move |_| setup(&asked, Vec::new()).ok()));
            }
            Call::Connect => {
                let setup = setup(&self.asked, self.paths.clone())?;
                let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
                self.handle = Some(self.endpoint.connect(&mut cx, setup));
                self.poll();
            }
            Call::Accept if self.established => {}
            Call::Accept => return Err("no connection is established".into()),
            Call::Write(_) | Call::WriteText(_) => {
                let len = data.len();
                let taken = self.with(|connection, cx| connection.write(cx, data.into()))?;
                if taken < len {
                    return Err(format!("only {taken} of {len} bytes were taken"));
                }
            }
            Call::Shutdown | Call::Close => self.with(|connection, cx| connection.finish(cx))?,
            Call::Abort => self.with(|connection, cx| connection.abort(cx))?,
            Call::Announce(id, whose, port) => {
                let address = self.address(whose);
                if !self.with(|connection, cx| connection.announce(cx, id, address, port))? {
                    return Err("the address cannot be announced under this ID".into());
                }
            }
            Call::Withdraw(id) => self.with(|connection, cx| connection.withdraw(cx, id))?,
            Call::Backup(number, backup) => {
                let path = self.path(number)?;
                self.with(|connection, _| connection.set_backup(path, backup))?;
            }
            Call::ResetPath(number) => {
                let path = self.path(number)?;
                self.with(|connection, cx| connection.reset_path(cx, path, UNSPECIFIED))?;
            }
            Call::Read(..) | Call::ReadText(_) | Call::ReadEnd | Call::ReadNothing => {}
        }
        Ok(())
    }

    fn read(&mut self, most: usize) -> Got {
        self.drain(most);
        self.poll();
        if !self.left.is_empty() {
            let most = most.min(self.left.len());
            return Got::Bytes(self.left.drain(..most).collect());
        }
        match self.closed {
            _ if self.ended => Got::End,
            Some(how) => Got::Broken(format!("the connection was closed: {how:?}")),
            None => Got::Nothing,
        }
    }

    fn status(&mut self) -> Result<Status, String> {
        self.poll();
        Ok(Status { established: self.established, multipath: self.multipath, closed: self.closed })
    }

    fn count(&mut self, counter: Counter, name: &str) -> Result<Option<u64>, String> {
        Ok((counter == Counter::Engine).then(|| self.log.0.get(name).copied().unwrap_or(0)))
    }

    fn bounds(&self, after: &After) -> (Duration, Duration) {
        match after.most {
            Most::Exactly => (after.least.saturating_sub(TOLERANCE), after.least + TOLERANCE),
            Most::Until(most) => (after.least, most),
            Most::Open => (after.least, after.least * 5 + Duration::from_millis(200)),
        }
    }

    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    fn afterwards(&self) -> Duration {
        Duration::ZERO
    }
}
