//! The server's end of clients' connections: it dials their targets. A client of ours requests its targets inside a carrier; others come to ports that have
//! one each (`gate.rs`).

use crate::board::{Board, Line, News, Served};
use crate::budget::Budget;
use crate::dial::{Dial, Dialled};
use crate::gate::Gate;
use crate::guard::Guard;
use crate::joint::Joint;
use crate::message::{Answer, Ask, Frames, LONGEST, Open, PORT, Refusal, VERSION, framed};
use crate::own::Own;
use crate::request::{described, scheduler};
use crate::resolver::{Limits, Lookup, Names, Resolved, Resolver, unresolved};
use crate::setup::{Common, Segments, all_paths};
use crate::target::{Host, Target};
use anabranch_carrier::Addresses;
use anabranch_engine::Cx;
use anabranch_engine::connection::Connection;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_link::{ClientStatus, LinkError, Memory, PathState};
use anabranch_trace::CloseReason;
use anabranch_units::{Instant, PathId, Side};
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;

/// Connections of one client, or of all that are not ours; those that wait with a request and those in TIME-WAIT included.
const CONNECTIONS: usize = 8_192;
/// Connections whose targets are being resolved or dialled, at most.
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
    /// Settings of the connections with clients.
    pub common: Common,
    /// Bytes of buffers for all connections of all clients.
    pub memory: u64,
}

/// How far a connection of a client's is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// The client has not said where the connection goes; greeted or not.
    Asked(Frames, bool),
    /// The target's name is being resolved; the bytes are for the target.
    Resolving(u16, Bytes),
    /// The target is dialled.
    Dialling(Dial, Bytes),
    /// The connection is joined with its target.
    Joined(Joint),
    /// Nothing more is read from it.
    Over,
}

/// How targets are known.
#[derive(Debug)]
enum Manner {
    /// A client of ours requests them, by the messages of `message.rs`, from these addresses. The guard says which ones may be dialled.
    Asked(Addresses, Guard),
    /// The owner has given each port its own.
    Given(Gate),
}

/// The station of a client of ours at the server, or that of all others.
#[derive(Debug)]
pub(crate) struct Exit {
    board: Board<Stage>,
    manner: Manner,
    names: Names,
    budget: Budget,
    dialling: usize,
    segments: Segments,
    buffer: Vec<u8>,
    /// Connections whose target could not be had.
    refused: BTreeMap<Refusal, u64>,
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
        let manner = Manner::Asked(addresses, settings.guard.clone());
        Self::with(endpoint, manner, budget, settings.resolver.clone(), addresses.client(PathId(0)))
    }

    /// For all that come to `gate`. Segments carry at most `mss` bytes.
    ///
    /// # Errors
    /// The system has no thread or file descriptor left.
    pub(crate) fn behind(gate: Gate, common: &Common, mss: u32, lookup: Lookup) -> Result<Self, LinkError> {
        let mut endpoint = Endpoint::new(CONNECTIONS);
        let budget = Budget::whole();
        for port in gate.ports() {
            let (of_each, offered) = (common.clone(), budget.clone());
            let accept = move |_| of_each.direct(offered.offer().unwrap_or(BARE), mss, Vec::new());
            if let Some(setup) = common.direct(budget.offer().unwrap_or_default(), mss, Vec::new()) {
                endpoint.listen_for_complete(port, setup.settings, Box::new(accept));
            }
        }
        let resolver =
            Resolver::with(lookup, Limits::alone(DIALLING)).map_err(LinkError::system("starting threads"))?;
        Self::with(endpoint, Manner::Given(gate), budget, resolver, Ipv4Addr::UNSPECIFIED)
    }

    fn with(
        endpoint: Endpoint,
        manner: Manner,
        budget: Budget,
        resolver: Resolver,
        client: Ipv4Addr,
    ) -> Result<Self, LinkError> {
        let board = Board::new(endpoint, Side::Server)?;
        let names = Names::new(resolver, client).map_err(LinkError::system("eventfd"))?;
        board.sockets.add(names.bell(), NAMES).map_err(LinkError::system("epoll"))?;
        let (segments, buffer, refused) = (Segments::default(), vec![0; 64 << 10], BTreeMap::new());
        Ok(Self { board, manner, names, budget, dialling: 0, segments, buffer, refused })
    }

    /// The state of the client `name`.
    pub fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<String>) -> ClientStatus {
        let joined = self.board.lines().filter(|(_, line)| matches!(line.stage, Stage::Joined(_)));
        let paths: Vec<PathState> = self.board.paths(now, address);
        let scheduler = self.gate().map(|gate| gate.scheduler().with_parameters());
        ClientStatus { name: name.to_owned(), scheduler, connections: joined.count(), paths }
    }

    /// The gate, if there is one.
    pub fn gate(&self) -> Option<&Gate> {
        match &self.manner {
            Manner::Given(gate) => Some(gate),
            Manner::Asked(..) => None,
        }
    }

    /// Connections whose target could not be had, and segments that broke a rule, by reason.
    pub fn failures(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let refused = self.refused.iter().map(|(why, count)| (format!("refused: {why:?}"), *count));
        refused.chain(self.board.violations())
    }

    /// Ends all connections at once.
    pub fn abort(&mut self, now: Instant) {
        self.board.abort(now);
    }

    /// Clients have these addresses of the gate's now, by path; on the paths `moved` they have changed.
    pub fn set_addresses(&mut self, now: Instant, there: &[Option<Ipv4Addr>], moved: &[PathId]) {
        let Manner::Given(gate) = &mut self.manner else { return };
        gate.set(there);
        for handle in self.board.handles() {
            self.board.with(now, handle, |connection, cx| gate.renew(connection, cx, moved));
        }
    }

    fn accept(&mut self, now: Instant, handle: Handle) {
        let each = self.board.with(now, handle, |connection, _| {
            self.segments.all().for_each(|(path, mss)| connection.set_mss(path, mss));
            // Nothing is written yet: the room is the whole buffer.
            connection.writable()
        });
        let each = each.unwrap_or_default();
        let share = self.budget.take(each).filter(|_| each > BARE);
        let token = self.board.token();
        let stage = match share {
            Some(_) => self.welcome(now, token, handle).unwrap_or_else(|why| self.refuse(now, handle, why)),
            None => self.refuse(now, handle, Refusal::TooMany),
        };
        self.dialling += usize::from(stage.is_dialling());
        self.board.put(token, Line { handle: Some(handle), share, stage }, true);
    }

    /// The first stage of a connection.
    fn welcome(&mut self, now: Instant, token: u64, handle: Handle) -> Result<Stage, Refusal> {
        let Manner::Given(gate) = &self.manner else { return Ok(Stage::Asked(Frames::default(), false)) };
        let target = self.board.with(now, handle, |connection, cx| gate.admit(connection, cx)).flatten();
        self.seek(now, token, target.ok_or(Refusal::Unknown)?, Bytes::new())
    }

    /// Takes the next step of a line.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(mut line) = self.board.take(token) else { return };
        let busy = line.stage.is_dialling();
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
        self.dialling = self.dialling + usize::from(line.stage.is_dialling()) - usize::from(busy);
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
            while frames.buffered() <= LONGEST
                && let Some(bytes) = connection.read(cx)
            {
                frames.push(&bytes);
            }
            connection.read_finished()
        });
        loop {
            match frames.next_message::<Ask>() {
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
        let Manner::Asked(addresses, _) = self.manner else { return Err(Refusal::Unknown) };
        let path = |policy| Some(self.segments.with(described(addresses, policy)?));
        let paths = open.policies.iter().map(path).collect::<Option<Vec<_>>>();
        let paths = paths.ok_or(Refusal::Unknown)?;
        self.board.with(now, handle, |connection, cx| {
            connection.set_scheduler(cx, name, scheduler);
            paths.into_iter().for_each(|path| connection.set_path(path));
        });
        let host = open.target.host.checked().ok_or(Refusal::Unknown)?;
        self.seek(now, token, Target { host, ..open.target }, early)
    }

    /// Looks for the addresses of a target, and dials them.
    fn seek(&mut self, now: Instant, token: u64, target: Target, early: Bytes) -> Result<Stage, Refusal> {
        if self.dialling >= DIALLING {
            return Err(Refusal::TooMany);
        }
        match target.host {
            Host::Address(address) => {
                let admitted = self.admit(vec![address])?;
                self.dial(now, token, at_port(admitted, target.port), early)
            }
            Host::Name(name) => match self.names.ask(token, name) {
                true => Ok(Stage::Resolving(target.port, early)),
                false => Err(Refusal::TooMany),
            },
        }
    }

    /// Those of the addresses that may be dialled: all, if the owner named their target.
    fn admit(&self, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Refusal> {
        match &self.manner {
            Manner::Asked(_, guard) => {
                let own = Own::look().map_err(|_| Refusal::NotAllowed)?;
                guard.admit_some(found, |address| own.has(address))
            }
            Manner::Given(_) => Ok(found),
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
            false => self.admit(found),
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

    /// Nothing comes of a connection: a client of ours gets the reason, another one a reset.
    fn refuse(&mut self, now: Instant, handle: Handle, why: Refusal) -> Stage {
        *self.refused.entry(why).or_default() += 1;
        self.say(now, handle, Answer::Refused(why));
        let asked = self.gate().is_none();
        self.board.with(now, handle, |connection, cx| if asked { connection.finish(cx) } else { connection.abort(cx) });
        Stage::Over
    }

    /// Answers a client of ours.
    fn say(&mut self, now: Instant, handle: Handle, answer: Answer) {
        if self.gate().is_some() {
            return;
        }
        // An answer has a few bytes, and is the first thing that is written.
        let frame = framed(&answer).unwrap_or_default();
        self.board.with(now, handle, |connection, cx| connection.write(cx, frame.into()));
    }
}

impl Stage {
    /// The target is being resolved or dialled.
    fn is_dialling(&self) -> bool {
        matches!(self, Self::Resolving(..) | Self::Dialling(..))
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
