//! The client's end: a session with a server that admits measurements.

use crate::idle::{IdleRtt, IdleRtts};
use crate::message::{ClientMessage, MessageReader, ServerMessage, VERSION, framed};
use crate::record::{PathRecord, PathSamples};
use crate::server::write;
use crate::setup::{control, paths};
use crate::station::MeasurementStation;
use anabranch_engine::Cx;
use anabranch_engine::connection::Connection;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_lab::{Clock, interrupt};
use anabranch_link::{ClientLink, Driver, Engine, LinkError, PeerError, SessionSettings, secrets::seed};
use anabranch_trace::Recorder;
use anabranch_units::{Duration, Instant, PathId, Side};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How long a server has to answer a handshake, and a path to answer a challenge after it.
const HANDSHAKE: Duration = Duration::from_secs(8);
const CHALLENGE: Duration = Duration::from_secs(4);
/// How long a request may remain without any part of its answer.
const ANSWER: Duration = Duration::from_secs(20);
/// Without a sign of the server for so long, or without a delivered byte of a run that has no duration, a run ends in an error.
pub(super) const SILENCE: Duration = Duration::from_secs(60);
/// The loop looks for signals this often.
const LOOK: Duration = Duration::from_millis(20);

/// A session with a server, and a connection for messages about runs.
#[derive(Debug)]
pub struct MeasurementSession {
    pub(super) driver: Driver<ClientLink, (), MeasurementStation>,
    names: Vec<String>,
    address: SocketAddr,
    handle: Handle,
    frames: MessageReader,
    program: String,
    /// No run and no question is left open: the next run may begin.
    pub(super) sound: bool,
    /// Everything seen of each path, if the session records.
    pub(super) recordings: Option<Vec<PathSamples>>,
}

/// How often time is compared with the server's; the quickest answer counts.
const COMPARISONS: u32 = 5;

impl MeasurementSession {
    /// Joins the server over every interface.
    ///
    /// # Errors
    /// An interface is missing, the server or a path does not answer, or the server admits no measurements.
    pub fn open(settings: SessionSettings) -> Result<Self, LinkError> {
        let SessionSettings { key, server, address, interfaces } = settings;
        let clock = Clock::start();
        let mut link = ClientLink::new(clock.now(), key, server, address);
        for (n, interface) in interfaces.iter().enumerate() {
            link.add_path(clock.now(), PathId(n as u8), interface)?;
        }
        let make = |(), _| Some(MeasurementStation::new(Side::Client, Engine::new(Endpoint::default(), seed())));
        let mut driver = Driver::new(link, clock, Box::new(make));
        wait(&mut driver, HANDSHAKE, |driver| driver.link.is_established())?
            .ok_or(LinkError::Peer(PeerError::NoHandshake { address, interfaces: interfaces.join(", ") }))?;
        answered(&mut driver, &interfaces, address)?;
        let all: Vec<PathId> = (0..interfaces.len() as u8).map(PathId).collect();
        let setup = control(paths(driver.link.addresses(), &all));
        let now = driver.now();
        let station = driver.station(()).zip(setup);
        let handle = station
            .map(|(station, setup)| station.control.with(now, &mut (), |endpoint, cx| endpoint.connect(cx, setup)));
        let handle = handle.ok_or(LinkError::Peer(PeerError::Lost { address }))?;
        let (frames, program) = (MessageReader::default(), String::new());
        let names = path_names(&interfaces);
        let (sound, recordings) = (true, None);
        let mut session = Self { driver, names, address, handle, frames, program, sound, recordings };
        session.program = match session.ask(&ClientMessage::Hello { version: VERSION })? {
            ServerMessage::Welcome { program } => program,
            other => return Err(session.unexpected(&other)),
        };
        Ok(session)
    }

    /// The version of the server's program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// From now on, records what downloads over one path alone show of it.
    pub fn record(&mut self) {
        self.recordings = Some(vec![PathSamples::default(); self.names.len()]);
    }

    /// Each path's name and what was recorded of it, with traces of `room` bytes in all; `None` if nothing came through it.
    pub(super) fn records(&self, room: u64) -> Vec<(String, Option<PathRecord>)> {
        let room = room / self.names.len().max(1) as u64;
        let largest = |id| self.driver.link.path(id).map_or(0, |path| path.max_packet);
        let recordings = self.recordings.iter().flatten().zip(self.ids());
        let records = recordings.map(|(recording, id)| recording.read(largest(id), room));
        self.names.iter().cloned().zip(records).collect()
    }

    /// The names of the paths: those of the interfaces, as scenarios admit them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.names.len() as u8).map(PathId)
    }

    /// The server's answer that makes no sense here.
    pub(super) fn unexpected(&self, reply: &ServerMessage) -> LinkError {
        let address = self.address;
        match reply {
            ServerMessage::Refused { why } => LinkError::Peer(PeerError::Refused { address, why: why.clone() }),
            _ => LinkError::Malformed { what: format!("{address} answers another question than was asked") },
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T) -> Result<T, LinkError> {
        let (now, handle, lost) = (self.driver.now(), self.handle, PeerError::Lost { address: self.address });
        let station = self.driver.station(());
        let done = station.and_then(|station| {
            station.control.with(now, &mut (), |endpoint, cx| {
                let connection = endpoint.connection_mut(handle)?;
                Some(act(connection, cx))
            })
        });
        done.ok_or(LinkError::Peer(lost))
    }

    /// Sends and receives for a while, and reports packets of the run to `recorder`.
    pub(super) fn turn(&mut self, until: Instant, recorder: &mut dyn Recorder) -> Result<(), LinkError> {
        let deadline = until.min(self.driver.now() + LOOK);
        self.driver.turn(deadline, recorder)
    }

    /// Sends and receives until `until`.
    pub(super) fn rest(&mut self, time: Duration) -> Result<(), LinkError> {
        let until = self.driver.now() + time;
        while self.driver.now() < until {
            check()?;
            self.turn(until, &mut ())?;
        }
        Ok(())
    }

    /// The first answer to a question.
    ///
    /// # Errors
    /// The server is gone.
    pub(super) fn ask(&mut self, ask: &ClientMessage) -> Result<ServerMessage, LinkError> {
        let mut out: VecDeque<Bytes> = [Bytes::from(framed(ask)?)].into();
        self.exchange(&mut out)
    }

    /// The next answer.
    ///
    /// # Errors
    /// The server is gone.
    pub(super) fn next_reply(&mut self) -> Result<ServerMessage, LinkError> {
        self.exchange(&mut VecDeque::new())
    }

    /// Writes `out`, and reads a message.
    fn exchange(&mut self, out: &mut VecDeque<Bytes>) -> Result<ServerMessage, LinkError> {
        let mut patience = self.driver.now() + ANSWER;
        loop {
            if let Some(reply) = self.frames.next_message()? {
                return Ok(reply);
            }
            check()?;
            let (came, is_over) = self.with(|connection, cx| {
                while connection.poll_event().is_some() {}
                write(out, connection, cx);
                (connection.read(cx), connection.is_closed() || connection.read_finished())
            })?;
            match came {
                Some(bytes) => {
                    self.frames.push(&bytes);
                    patience = self.driver.now() + ANSWER;
                }
                None if is_over || self.driver.now() > patience => {
                    return Err(LinkError::Peer(PeerError::Lost { address: self.address }));
                }
                None => self.turn(patience, &mut ())?,
            }
        }
    }

    /// Challenges every path `count` times, one challenge at a time, while nothing else flows.
    ///
    /// # Errors
    /// A socket fails.
    pub(crate) fn probe(&mut self, count: u32) -> Result<Vec<IdleRtts>, LinkError> {
        let ids: Vec<PathId> = self.ids().collect();
        let mut idle = vec![IdleRtts::default(); ids.len()];
        for _ in 0..count {
            let before: Vec<u64> = ids.iter().map(|id| self.answers(*id)).collect();
            let begun = self.driver.now();
            ids.iter().for_each(|id| self.driver.link.challenge(begun, *id));
            // The path challenges again a second after.
            let until = begun + Duration::from_millis(900);
            let more = |this: &Self| ids.iter().zip(&before).any(|(id, before)| this.answers(*id) == *before);
            while self.driver.now() < until && more(self) {
                check()?;
                self.turn(until, &mut ())?;
            }
            for ((id, before), idle) in ids.iter().zip(&before).zip(&mut idle) {
                let rtt = self.driver.link.path(*id).and_then(|path| path.rtt).filter(|_| self.answers(*id) > *before);
                idle.sent += 1;
                idle.times.extend(rtt.map(|rtt| IdleRtt { at: begun, rtt }));
            }
            self.rest(Duration::from_millis(10))?;
        }
        Ok(idle)
    }

    fn answers(&self, id: PathId) -> u64 {
        self.driver.link.path(id).map_or(0, |path| path.answers)
    }

    /// Waits until no packet of an earlier run comes any more.
    pub(super) fn drain(&mut self) -> Result<(), LinkError> {
        let limit = self.driver.now() + Duration::from_secs(10);
        let mut late = None;
        while self.driver.now() < limit {
            let seen = self.driver.station(()).map(|station| station.late);
            if seen == late {
                break;
            }
            late = seen;
            self.rest(Duration::from_millis(150))?;
        }
        Ok(())
    }

    /// The server's time of the run at [`Instant::ZERO`] of ours, in nanoseconds; half of a round trip is its error at most.
    pub(super) fn offset(&mut self) -> Result<i64, LinkError> {
        let mut best = (Duration::MAX, 0);
        for _ in 0..COMPARISONS {
            let asked = self.driver.now();
            let ServerMessage::Time(there) = self.ask(&ClientMessage::Time)? else {
                return Err(LinkError::Peer(PeerError::Lost { address: self.address }));
            };
            let took = self.driver.now().since(asked);
            let here = asked + took / 2;
            best = best.min((took, there.wrapping_sub(here.as_nanos()) as i64));
        }
        Ok(best.1)
    }

    /// Nothing has come over any path for a while.
    pub(super) fn is_silent(&self) -> bool {
        let heard = self.ids().filter_map(|id| self.driver.link.path(id)?.heard);
        heard.max().is_some_and(|at| self.driver.now().since(at) > SILENCE)
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Names for paths through these interfaces, as scenarios admit them: of letters, digits, `-` and `_`, each once.
pub fn path_names(interfaces: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (n, interface) in interfaces.iter().enumerate() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = interface.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        names.push(if names.contains(&name) { format!("{name}-{n}") } else { name });
    }
    names
}

/// A signal has come.
pub(super) fn check() -> Result<(), LinkError> {
    if interrupt::is_asked() { Err(LinkError::Interrupted) } else { Ok(()) }
}

type Client = Driver<ClientLink, (), MeasurementStation>;

/// Sends and receives until something is so; `None` if it was not in time.
fn wait(driver: &mut Client, time: Duration, is_so: impl Fn(&Client) -> bool) -> Result<Option<()>, LinkError> {
    let until = driver.now() + time;
    while driver.now() < until {
        check()?;
        if is_so(driver) {
            return Ok(Some(()));
        }
        driver.turn(until.min(driver.now() + LOOK), &mut ())?;
    }
    Ok(None)
}

/// Every path has answered a challenge.
fn answered(driver: &mut Client, interfaces: &[String], address: SocketAddr) -> Result<(), LinkError> {
    let is_silent = |driver: &Client, n: usize| driver.link.path(PathId(n as u8)).is_none_or(|path| path.rtt.is_none());
    let all = wait(driver, CHALLENGE, |driver| !(0..interfaces.len()).any(|n| is_silent(driver, n)))?;
    if all.is_some() {
        return Ok(());
    }
    let silent = interfaces.iter().enumerate().filter(|(n, _)| is_silent(driver, *n));
    let silent: Vec<&str> = silent.map(|(_, interface)| interface.as_str()).collect();
    Err(LinkError::Peer(PeerError::SilentPath { address, interface: silent.join(", ") }))
}
