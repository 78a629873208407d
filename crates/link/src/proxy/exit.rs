//! The server's end of a client's proxied connections: it dials their targets.

use super::board::{Board, Line, News, Served};
use super::budget::Budget;
use super::dial::{Dial, Dialled};
use super::guard::{Guard, own_addresses};
use super::joint::Joint;
use super::message::{Answer, Ask, Frames, LONGEST, Open, PORT, Policy, Refusal, VERSION, framed};
use super::resolver::{Names, Resolved, Resolver, unresolved};
use super::setup::{Common, Segments, all_paths, path};
use super::target::{Host, Target};
use crate::LinkError;
use crate::memory::Memory;
use crate::status::{ClientStatus, PathState};
use anabranch_carrier::{Addresses, MAX_PATHS};
use anabranch_engine::connection::{Connection, PathSetup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::schedule::PathPolicy;
use anabranch_engine::{Cx, Scheduler};
use anabranch_trace::{CloseReason, SchedulerName};
use anabranch_units::{Instant, PathId, Side};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// Connections of one client, those that wait with a request and those in TIME-WAIT included.
const CONNECTIONS: usize = 8_192;
/// Targets of one client that are being resolved or dialled.
const DIALLING: usize = 512;
/// Bytes of either buffer of a connection for which there is no memory: it says so, and ends.
const BARE: u64 = 4 << 10;
/// The token of answers to names.
const NAMES: u64 = 0;

/// Settings for all clients of a server.
#[derive(Clone, Debug)]
pub struct ExitSettings {
    /// Addresses that may be dialled.
    pub guard: Guard,
    /// Resolves names.
    pub resolver: Resolver,
    /// Of the connections with clients.
    pub common: Common,
    /// Bytes of buffers for all connections of all clients.
    pub memory: u64,
}

/// How far a connection of a client's is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It has not said where it goes; greeted or not.
    Asked(Frames, bool),
    /// Its name is being resolved; the bytes are for the target.
    Resolving(u16, Bytes),
    /// Its target is dialled.
    Dialling(Dial, Bytes),
    /// It is joined with its target.
    Joined(Joint),
    /// Nothing more is read from it.
    Over,
}

/// A client's station at the server.
#[derive(Debug)]
pub(crate) struct Exit {
    board: Board<Stage>,
    addresses: Addresses,
    guard: Guard,
    names: Names,
    budget: Budget,
    dialling: usize,
    segments: Segments,
    buffer: Vec<u8>,
}

impl Exit {
    /// For a session with these addresses. `memory` is that of all clients.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub(crate) fn new(addresses: Addresses, settings: &ExitSettings, memory: &Memory) -> Result<Self, LinkError> {
        let mut endpoint = Endpoint::new(CONNECTIONS);
        let budget = Budget::new(memory, settings.memory);
        let (common, offered) = (settings.common.clone(), budget.clone());
        let accept = move |_| common.setup(offered.offer().unwrap_or(BARE), all_paths(addresses, Side::Server));
        if let Some(setup) = settings.common.setup(budget.offer().unwrap_or_default(), Vec::new()) {
            endpoint.listen_for_complete(PORT, setup.settings, Box::new(accept));
        }
        let board = Board::new(endpoint)?;
        let names =
            Names::new(settings.resolver.clone(), addresses.client(PathId(0))).map_err(LinkError::system("eventfd"))?;
        board.sockets.add(names.bell(), NAMES).map_err(LinkError::system("epoll"))?;
        let (guard, segments, buffer) = (settings.guard.clone(), Segments::default(), vec![0; 64 << 10]);
        Ok(Self { board, addresses, guard, names, budget, dialling: 0, segments, buffer })
    }

    /// The state of the client `name`.
    pub fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<String>) -> ClientStatus {
        let joined = self.board.lines().filter(|(_, line)| matches!(line.stage, Stage::Joined(_)));
        let paths: Vec<PathState> = self.board.paths(now, address);
        ClientStatus { name: name.to_owned(), scheduler: None, connections: joined.count(), paths }
    }

    fn accept(&mut self, now: Instant, handle: Handle) {
        let each = self.board.with(now, handle, |connection, _| {
            self.segments.all().for_each(|(path, mss)| connection.set_mss(path, mss));
            // Nothing is written yet: the room is the whole buffer.
            connection.writable()
        });
        let each = each.unwrap_or_default();
        let share = self.budget.take(each).filter(|_| each > BARE);
        let stage = match share {
            Some(_) => Stage::Asked(Frames::default(), false),
            None => self.refuse(now, handle, Refusal::TooMany),
        };
        let token = self.board.token();
        self.board.put(token, Line { handle: Some(handle), share, stage }, true);
    }

    /// Takes the next step of a line.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(mut line) = self.board.take(token) else { return };
        let busy = matches!(line.stage, Stage::Resolving(..) | Stage::Dialling(..));
        let end = line.handle.map(|handle| self.board.with(now, handle, |connection, _| News::of(connection).closed));
        line.stage = match (end, line.handle) {
            (Some(Some(None)), Some(handle)) => self.advance(now, token, handle, line.stage),
            (Some(end), Some(handle)) => {
                let why = end.flatten();
                let rest =
                    self.board.with(now, handle, |connection, cx| farewell(now, line.stage, why, connection, cx));
                line.handle = None;
                let (stage, until) = rest.unwrap_or((Stage::Over, None));
                until.into_iter().for_each(|until| self.board.alarm(until, token));
                stage
            }
            // The connection is gone, and its last bytes wait for the socket.
            _ => line.stage,
        };
        let busier = matches!(line.stage, Stage::Resolving(..) | Stage::Dialling(..));
        self.dialling = self.dialling + usize::from(busier) - usize::from(busy);
        if line.handle.is_some() || flushes(&mut line.stage, now) {
            self.board.put(token, line, false);
        }
    }

    fn advance(&mut self, now: Instant, token: u64, handle: Handle, stage: Stage) -> Stage {
        match stage {
            Stage::Asked(frames, greeted) => self.listen(now, token, handle, frames, greeted),
            Stage::Dialling(dial, early) => self.dialled(now, token, handle, dial, early),
            Stage::Joined(mut joint) => {
                let goes_on = self.board.exchange(now, token, handle, &mut joint, &mut self.buffer);
                if goes_on { Stage::Joined(joint) } else { Stage::Over }
            }
            Stage::Resolving(port, early) => Stage::Resolving(port, early),
            Stage::Over => {
                self.board.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                Stage::Over
            }
        }
    }

    /// Reads requests.
    fn listen(&mut self, now: Instant, token: u64, handle: Handle, mut frames: Frames, mut greeted: bool) -> Stage {
        let ended = self.board.with(now, handle, |connection, cx| {
            while frames.len() <= LONGEST
                && let Some(bytes) = connection.read(cx)
            {
                frames.push(&bytes);
            }
            connection.read_finished()
        });
        loop {
            match frames.next::<Ask>() {
                Ok(Some(Ask::Hello { version: VERSION })) if !greeted => {
                    greeted = true;
                    self.say(now, handle, Answer::Welcome);
                }
                Ok(Some(Ask::Open(open))) if greeted => {
                    return match self.open(now, token, handle, open, frames.into_rest().into()) {
                        Ok(stage) => stage,
                        Err(why) => self.refuse(now, handle, why),
                    };
                }
                Ok(Some(_)) | Err(_) => return self.refuse(now, handle, Refusal::Unknown),
                Ok(None) => break,
            }
        }
        if ended == Some(true) {
            self.board.with(now, handle, |connection, cx| connection.finish(cx));
            return Stage::Over;
        }
        Stage::Asked(frames, greeted)
    }

    /// Begins what a request wants.
    fn open(&mut self, now: Instant, token: u64, handle: Handle, open: Open, early: Bytes) -> Result<Stage, Refusal> {
        let (name, scheduler) = scheduler(&open.scheduler).ok_or(Refusal::Unknown)?;
        let path = |policy| Some(self.segments.with(described(self.addresses, policy)?));
        let paths = open.policies.iter().map(path).collect::<Option<Vec<_>>>();
        let paths = paths.ok_or(Refusal::Unknown)?;
        self.board.with(now, handle, |connection, cx| {
            connection.set_scheduler(cx, name, scheduler);
            paths.into_iter().for_each(|path| connection.set_path(path));
        });
        if self.dialling >= DIALLING {
            return Err(Refusal::TooMany);
        }
        match open.target.host.checked().ok_or(Refusal::Unknown)? {
            Host::Address(address) => {
                let admitted = self.guard.admit_some(vec![address], own_addresses())?;
                self.dial(now, token, at_port(admitted, open.target.port), early)
            }
            Host::Name(name) => match self.names.ask(token, name) {
                true => Ok(Stage::Resolving(open.target.port, early)),
                false => Err(Refusal::TooMany),
            },
        }
    }

    /// Dials the first of these addresses that answers.
    fn dial(&mut self, now: Instant, token: u64, to: Vec<SocketAddr>, early: Bytes) -> Result<Stage, Refusal> {
        let dial = Dial::begin(now, to, &self.board.sockets, token)?;
        self.board.alarm(dial.until(), token);
        Ok(Stage::Dialling(dial, early))
    }

    fn dialled(&mut self, now: Instant, token: u64, handle: Handle, dial: Dial, early: Bytes) -> Stage {
        match dial.advance(now, &self.board.sockets, token) {
            Ok(Dialled::Waits(dial)) => {
                self.board.alarm(dial.until(), token);
                Stage::Dialling(dial, early)
            }
            Ok(Dialled::Connected(socket)) => {
                self.say(now, handle, Answer::Opened);
                let mut joint = Joint::new(socket);
                joint.say(early);
                self.board.wake(token);
                Stage::Joined(joint)
            }
            Err(why) => self.refuse(now, handle, why),
        }
    }

    /// A name is resolved, once: what is dialled is what was checked.
    fn resolved(&mut self, now: Instant, Resolved { token, found }: Resolved) {
        let Some(mut line) = self.board.take(token) else { return };
        let (Stage::Resolving(port, _), Some(handle)) = (&line.stage, line.handle) else {
            return self.board.put(token, line, true);
        };
        let port = *port;
        let Stage::Resolving(_, early) = core::mem::replace(&mut line.stage, Stage::Over) else { return };
        let checked = |found: Vec<IpAddr>| match found.is_empty() {
            true => Err(Refusal::NoSuchName),
            false => self.guard.admit_some(found, own_addresses()),
        };
        let dial = match found.map_err(|error| unresolved(error.kind())).and_then(checked) {
            Ok(to) => self.dial(now, token, at_port(to, port), early),
            Err(why) => Err(why),
        };
        line.stage = match dial {
            Ok(stage) => stage,
            Err(why) => {
                self.dialling -= 1;
                self.refuse(now, handle, why)
            }
        };
        self.board.put(token, line, true);
    }

    fn refuse(&mut self, now: Instant, handle: Handle, why: Refusal) -> Stage {
        self.say(now, handle, Answer::Refused(why));
        self.board.with(now, handle, |connection, cx| connection.finish(cx));
        Stage::Over
    }

    fn say(&mut self, now: Instant, handle: Handle, answer: Answer) {
        // An answer has a few bytes, and is the first thing that is written.
        let frame = framed(&answer).unwrap_or_default();
        self.board.with(now, handle, |connection, cx| connection.write(cx, frame.into()));
    }
}

fn at_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// The last bytes of a connection that has ended, for its socket; when that is reset, if the end was not in order.
fn farewell(
    now: Instant,
    stage: Stage,
    why: Option<CloseReason>,
    connection: &mut Connection,
    cx: &mut Cx<'_>,
) -> (Stage, Option<Instant>) {
    let Stage::Joined(mut joint) = stage else { return (Stage::Over, None) };
    let until = match why {
        Some(CloseReason::Finished) => {
            joint.drain(connection, cx);
            None
        }
        _ => Some(joint.cut(now, connection, cx)),
    };
    (Stage::Joined(joint), until)
}

/// A socket still takes bytes of a connection that is gone.
fn flushes(stage: &mut Stage, now: Instant) -> bool {
    match stage {
        Stage::Joined(joint) => joint.is_ending(now),
        _ => false,
    }
}

/// Reads the bytes of a client as a server does, and dials nothing: the target that they name, if they do. For fuzzing, and for tests of
/// other clients.
///
/// # Errors
/// The bytes do not keep to the format, or request what there is not.
pub fn read_request(bytes: &[u8]) -> Result<Option<Target>, LinkError> {
    let mut frames = Frames::default();
    frames.push(bytes);
    while let Some(ask) = frames.next::<Ask>()? {
        if let Ask::Open(open) = ask {
            let policies = open.policies.iter().all(is_policy);
            let known =
                scheduler(&open.scheduler).is_some() && policies && open.target.host.clone().checked().is_some();
            let what = "a target, a scheduler or a policy that there is not".to_owned();
            return if known { Ok(Some(open.target)) } else { Err(LinkError::Malformed { what }) };
        }
    }
    Ok(None)
}

/// A scheduler as a client names it.
fn scheduler(text: &str) -> Option<(SchedulerName, Box<dyn Scheduler>)> {
    let plug_in = anabranch_scenario::scheduler("client", text).ok()?;
    let name = anabranch_schedulers::resolve(&plug_in.name).ok()?.label();
    Some((name, anabranch_schedulers::build(&plug_in.name, &plug_in.parameters).ok()?))
}

/// A path with the policy that a client gives it, if that is one.
fn described(addresses: Addresses, policy: &Policy) -> Option<PathSetup> {
    let Policy { path: id, price, cap, weight } = *policy;
    let stated = PathPolicy { price, cap, weight };
    is_policy(policy).then(|| PathSetup { policy: stated, ..path(addresses, Side::Server, PathId(id)) })
}

fn is_policy(policy: &Policy) -> bool {
    usize::from(policy.path) < MAX_PATHS
        && (0.0..f64::INFINITY).contains(&policy.price)
        && policy.weight.is_none_or(|weight| weight > 0.0 && weight.is_finite())
}

impl Served for Exit {
    type Stage = Stage;

    fn board(&self) -> &Board<Stage> {
        &self.board
    }

    fn board_mut(&mut self) -> &mut Board<Stage> {
        &mut self.board
    }

    fn serve(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(handle) = self.board.engine.endpoint.poll_accept() {
            self.accept(now, handle);
            any = true;
        }
        let due = self.board.due(now, &mut |stage, change| match stage {
            Stage::Dialling(dial, _) => dial.changed(change),
            Stage::Joined(joint) => joint.changed(change),
            _ => {}
        });
        any |= !due.is_empty();
        for token in due {
            match token {
                NAMES => {
                    self.names.hush();
                    while let Some(resolved) = self.names.next() {
                        self.resolved(now, resolved);
                    }
                }
                _ => self.step(now, token),
            }
        }
        any
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        let mss = self.segments.set(path, bytes);
        self.board.set_mss(now, path, mss);
    }
}
