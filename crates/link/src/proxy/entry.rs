//! The client's end: programs connect to it, and it hands their connections to the server.

use super::asking::{Asking, Heard};
use super::board::{Board, FIRST_LINE, Line, News};
use super::joint::Joint;
use super::listeners::{Accepted, Kind, Listeners};
use super::message::{Answer, Frames, Refusal};
use super::pool::Pool;
use super::routes::Routes;
use super::rules::Rules;
use super::socks::{Dialogue, End, Reply};
use super::target::Target;
use crate::LinkError;
use crate::station::Station;
use crate::status::{ClientStatus, PathState};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_trace::{CloseReason, Recorder};
use anabranch_units::{Duration, Instant, PathId};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

/// Connections, those in TIME-WAIT included.
const CONNECTIONS: usize = 8_192;
/// Connections with programs, and those that wait for one.
const LINES: usize = 4_096;
/// How long a program has for the negotiation.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// When the system has no file descriptor left, the next attempt to accept a program.
const LATER: Duration = Duration::from_millis(100);
/// Bytes of a program that are read at once before its target is known.
const NEGOTIATED: usize = 1_024;

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It waits for a program; greeted or not.
    Warm(Frames, bool),
    /// The program says where it wants to go, until then at the latest.
    Talking(Joint, Dialogue, Instant),
    /// The server was asked.
    Asking(Box<Asking>),
    /// It is joined.
    Joined(Joint, Target),
    /// The program gets its last bytes.
    Ending(Joint),
    /// Nothing more is read from it.
    Over,
}

impl Stage {
    /// The target of a connection that has one.
    fn target(&self) -> Option<&Target> {
        match self {
            Self::Joined(_, target) => Some(target),
            Self::Asking(asking) => Some(&asking.target),
            _ => None,
        }
    }
}

/// The proxy's station.
#[derive(Debug)]
pub(crate) struct Entry {
    board: Board<Stage>,
    listeners: Listeners,
    rules: Rules,
    routes: Routes,
    pool: Pool,
    buffer: Vec<u8>,
    /// Requests that came to nothing.
    refused: BTreeMap<Refusal, u64>,
    /// Joined connections that were cut off.
    cut_off: BTreeMap<&'static str, u64>,
}

impl Entry {
    /// For programs at `listeners`.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(listeners: Listeners, rules: Rules, routes: Routes, pool: Pool) -> Result<Self, LinkError> {
        let board = Board::new(Endpoint::new(CONNECTIONS))?;
        listeners.register(&board.sockets)?;
        let (buffer, refused, cut_off) = (vec![0; 64 << 10], BTreeMap::new(), BTreeMap::new());
        Ok(Self { board, listeners, rules, routes, pool, buffer, refused, cut_off })
    }

    /// From now on the rules are these. Connections that exist follow them with what they send, and by their backup flags with what they
    /// receive.
    pub fn set_rules(&mut self, now: Instant, rules: Rules) {
        self.rules = rules;
        let open = self.board.lines().filter_map(|(_, line)| Some((line.handle?, line.stage.target()?.clone())));
        for (handle, target) in open.collect::<Vec<_>>() {
            let (rules, routes) = (&self.rules, &self.routes);
            self.board.with(now, handle, |connection, cx| routes.treat(connection, cx, rules.of(&target)));
        }
    }

    /// The paths that can be used, the best one first. Connections leave the others, and join those that are new.
    pub fn set_present(&mut self, now: Instant, present: Vec<PathId>) {
        if !self.routes.set(present) {
            return;
        }
        let all = self.board.lines().filter_map(|(_, line)| Some((line.handle?, line.stage.target().cloned())));
        for (handle, target) in all.collect::<Vec<_>>() {
            self.follow(now, handle, target.as_ref());
        }
    }

    /// Makes a connection use the paths that there are.
    fn follow(&mut self, now: Instant, handle: Handle, target: Option<&Target>) {
        let (rules, routes) = (&self.rules, &self.routes);
        let treatment = target.map(|target| rules.of(target));
        self.board.with(now, handle, |connection, cx| routes.follow(connection, cx, treatment));
    }

    /// The state, as that of one client.
    pub fn status(&self, now: Instant, name: &str) -> ClientStatus {
        let joined = self.board.lines().filter(|(_, line)| matches!(line.stage, Stage::Joined(..)));
        let paths: Vec<PathState> = self.board.paths(now, &|id| self.routes.name(id).map(str::to_owned));
        let scheduler = Some(self.rules.usual().scheduler.with_parameters());
        ClientStatus { name: name.to_owned(), scheduler, connections: joined.count(), paths }
    }

    /// Requests that came to nothing, and connections that were cut off, by reason.
    pub fn failures(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let refused = self.refused.iter().map(|(why, count)| (format!("refused: {why:?}"), *count));
        refused.chain(self.cut_off.iter().map(|(why, count)| (format!("cut off: {why}"), *count)))
    }

    /// The server's first answer: it serves proxies, or why it does not.
    pub fn answer_of_server(&self) -> Option<Result<(), Refusal>> {
        self.pool.answer()
    }

    /// Where programs reach it.
    pub fn locals(&self) -> Vec<std::net::SocketAddr> {
        self.listeners.locals().collect()
    }

    /// Accepts programs at a listener.
    fn accept(&mut self, now: Instant, place: u64) {
        while let Some((accepted, kind)) = self.listeners.accept(place) {
            match accepted {
                Accepted::Program(socket) => self.begin(now, socket, kind),
                Accepted::Nobody => return,
                Accepted::Later => return self.board.alarm(now + LATER, place),
            }
        }
    }

    fn begin(&mut self, now: Instant, socket: TcpStream, kind: Kind) {
        let token = self.board.token();
        let registered = self.board.len() < LINES && self.board.sockets.add(&socket, token).is_ok();
        let joint = Joint::new(socket);
        if !registered {
            // It is dropped with a reset.
            return;
        }
        let line = match kind {
            Kind::Socks { guarded } => {
                self.board.alarm(now + NEGOTIATION, token);
                let stage = Stage::Talking(joint, Dialogue::new(guarded), now + NEGOTIATION);
                Line { handle: None, share: None, stage }
            }
            Kind::Forward(target) => self.ask(now, token, Asking::new(joint, target, Bytes::new(), false)),
        };
        self.board.put(token, line, true);
    }

    /// Takes the next step of a line.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(Line { handle, share, stage }) = self.board.take(token) else { return };
        let forgotten = handle.filter(|handle| self.board.is_forgotten(*handle));
        if let Some(handle) = forgotten {
            // The server began anew, or gave it up. So it may be with the others that wait.
            self.board.with(now, handle, |connection, cx| connection.abort(cx));
            self.pool.forget(now, &mut self.board);
        }
        let news = handle.map(|handle| self.board.with(now, handle, |connection, _| News::of(connection)));
        if let (Some(Some(News { established: true, .. })), Some(handle)) = (news, handle) {
            // The race is over. The others are joined from ports of our choice, as soon as the server has said something.
            self.follow(now, handle, stage.target().cloned().as_ref());
        }
        let end = news.map(|news| news.map(|news| news.closed));
        let mut line = match (end, handle, stage) {
            (Some(Some(None)), Some(handle), stage) => {
                let line = Line { handle: Some(handle), share, stage: Stage::Over };
                self.advance(now, token, handle, line, stage)
            }
            (Some(end), Some(handle), Stage::Asking(asking)) => {
                self.unanswered(now, token, handle, *asking, end.flatten())
            }
            (Some(end), Some(handle), stage) => {
                let why = end.flatten();
                if let (Stage::Joined(..), Some(why)) = (&stage, why.filter(|why| *why != CloseReason::Finished)) {
                    let why = if forgotten.is_some() { "forgotten by the server" } else { reason(why) };
                    *self.cut_off.entry(why).or_default() += 1;
                }
                if matches!(stage, Stage::Warm(..)) {
                    self.pool.fail(now);
                }
                let stage = match stage {
                    Stage::Joined(joint, _) => self.farewell(now, token, handle, joint, why),
                    _ => Stage::Over,
                };
                Line { handle: None, share, stage }
            }
            (_, _, Stage::Talking(joint, talk, until)) => self.talk(now, token, joint, talk, until),
            (_, _, stage) => Line { handle: None, share, stage },
        };
        if line.handle.is_some() || is_open(&mut line.stage, now) {
            self.board.put(token, line, false);
        }
    }

    /// With a connection that has not ended.
    fn advance(&mut self, now: Instant, token: u64, handle: Handle, line: Line<Stage>, stage: Stage) -> Line<Stage> {
        let stage = match stage {
            Stage::Warm(frames, greeted) => self.warm(now, handle, frames, greeted),
            Stage::Asking(asking) => return self.answer(now, token, handle, line, *asking),
            Stage::Joined(mut joint, target) => {
                let goes_on = self.board.exchange(now, token, handle, &mut joint, &mut self.buffer);
                if goes_on { Stage::Joined(joint, target) } else { Stage::Over }
            }
            Stage::Over => {
                self.board.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                Stage::Over
            }
            stage => stage,
        };
        Line { stage, ..line }
    }

    /// A connection that waits receives the greeting, and nothing else.
    fn warm(&mut self, now: Instant, handle: Handle, mut frames: Frames, mut greeted: bool) -> Stage {
        let ended = self.board.with(now, handle, |connection, cx| {
            while let Some(bytes) = connection.read(cx) {
                frames.push(&bytes);
            }
            connection.read_finished()
        });
        let fits = match frames.next::<Answer>() {
            Ok(Some(Answer::Welcome)) => {
                self.pool.welcome();
                !core::mem::replace(&mut greeted, true)
            }
            Ok(Some(Answer::Refused(why))) => {
                self.pool.refused = Some(why);
                false
            }
            Ok(None) => frames.len() == 0 || !greeted,
            _ => false,
        };
        if !fits || ended == Some(true) {
            self.pool.fail(now);
            self.board.with(now, handle, |connection, cx| connection.abort(cx));
            return Stage::Over;
        }
        Stage::Warm(frames, greeted)
    }

    /// A program without a target.
    fn talk(&mut self, now: Instant, token: u64, mut joint: Joint, mut talk: Dialogue, until: Instant) -> Line<Stage> {
        let none = |stage| Line { handle: None, share: None, stage };
        if joint.is_over() || now >= until {
            joint.conclude();
            return none(Stage::Over);
        }
        while let Some(bytes) = joint.hear(&mut self.buffer[..NEGOTIATED]) {
            if bytes.is_empty() {
                joint.conclude();
                return none(Stage::Over);
            }
            let listeners = &self.listeners;
            let outcome = talk.take(bytes, &|user, password| listeners.admit(user, password));
            joint.say(outcome.say);
            match outcome.end {
                Some(End::Connect { target, early }) => {
                    return self.ask(now, token, Asking::new(joint, target, early.into(), true));
                }
                Some(End::Refused) => {
                    joint.conclude();
                    return none(Stage::Ending(joint));
                }
                None => {}
            }
        }
        joint.flush();
        none(Stage::Talking(joint, talk, until))
    }

    /// Asks the server for a target, over a connection that waits if there is one.
    fn ask(&mut self, now: Instant, token: u64, mut asking: Asking) -> Line<Stage> {
        let Some(warm) = self.pool.draw(now, &mut self.board, &self.routes) else {
            let why = if self.routes.any() { Refusal::TooMany } else { Refusal::NetworkUnreachable };
            return self.fail(asking, why);
        };
        let treatment = self.rules.of(&asking.target);
        let routes = &self.routes;
        let asked = self.board.with(now, warm.handle, |connection, cx| {
            routes.treat(connection, cx, treatment);
            asking.ask(now, connection, cx, warm.frames, routes.open(&asking.target, treatment), warm.waited)
        });
        if asked != Some(true) {
            return self.fail(asking, Refusal::Unknown);
        }
        self.board.alarm(asking.until, token);
        Line { handle: Some(warm.handle), share: Some(warm.share), stage: Stage::Asking(Box::new(asking)) }
    }

    /// The connection of a request has ended, and `why`. The answer may have come before.
    fn unanswered(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        mut asking: Asking,
        why: Option<CloseReason>,
    ) -> Line<Stage> {
        let read = self
            .board
            .with(now, handle, |connection, cx| (asking.hear(now, connection, cx), asking.has_arrived(connection)));
        match read {
            Some((Heard::Opened(rest), _)) => {
                let (joint, _) = asking.opened(rest);
                Line { handle: None, share: None, stage: self.farewell(now, token, handle, joint, why) }
            }
            Some((Heard::Refused(why), _)) => self.fail(asking, why),
            // A connection that had waited may have been lost long before: the request goes over a new one, once.
            Some((_, false)) if asking.waited => self.ask(now, token, asking),
            _ => self.fail(asking, Refusal::HostUnreachable),
        }
    }

    /// The last bytes of a connection that has ended go to its program.
    fn farewell(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        mut joint: Joint,
        why: Option<CloseReason>,
    ) -> Stage {
        let until = self.board.with(now, handle, |connection, cx| match why {
            Some(CloseReason::Finished) => {
                joint.drain(connection, cx);
                None
            }
            _ => Some(joint.cut(now, connection, cx)),
        });
        until.flatten().into_iter().for_each(|until| self.board.alarm(until, token));
        Stage::Ending(joint)
    }

    /// Reads the server's answer.
    fn answer(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        line: Line<Stage>,
        mut asking: Asking,
    ) -> Line<Stage> {
        if asking.joint.is_over() {
            self.board.with(now, handle, |connection, cx| connection.abort(cx));
            return line;
        }
        let heard = self.board.with(now, handle, |connection, cx| asking.hear(now, connection, cx));
        match heard {
            Some(Heard::Nothing) => Line { stage: Stage::Asking(Box::new(asking)), ..line },
            Some(Heard::Opened(rest)) => {
                let (joint, target) = asking.opened(rest);
                self.board.wake(token);
                Line { stage: Stage::Joined(joint, target), ..line }
            }
            Some(Heard::Refused(why)) => {
                self.board.with(now, handle, |connection, cx| connection.finish(cx));
                self.leave(line);
                self.fail(asking, why)
            }
            // The server must not begin it any more.
            heard => {
                self.board.with(now, handle, |connection, cx| connection.abort(cx));
                self.leave(line);
                self.fail(asking, if let Some(Heard::Nonsense(why)) = heard { why } else { Refusal::TimedOut })
            }
        }
    }

    /// The connection of a line has no program any more, and ends on its own.
    fn leave(&mut self, line: Line<Stage>) {
        let token = self.board.token();
        self.board.put(token, Line { stage: Stage::Over, ..line }, true);
    }

    /// Nothing came of a request: a program that speaks SOCKS gets the reason, another one a reset.
    fn fail(&mut self, asking: Asking, why: Refusal) -> Line<Stage> {
        *self.refused.entry(why).or_default() += 1;
        let Asking { mut joint, socks, .. } = asking;
        if socks {
            joint.say(reply(why).bytes().to_vec());
            joint.conclude();
            joint.flush();
        }
        Line { handle: None, share: None, stage: Stage::Ending(joint) }
    }
}

fn reply(why: Refusal) -> Reply {
    match why {
        Refusal::NotAllowed => Reply::NotAllowed,
        Refusal::NetworkUnreachable => Reply::NetworkUnreachable,
        Refusal::NoSuchName | Refusal::HostUnreachable => Reply::HostUnreachable,
        Refusal::Refused => Reply::Refused,
        Refusal::TimedOut => Reply::TimedOut,
        Refusal::Unknown | Refusal::TooMany => Reply::Failed,
    }
}

fn reason(why: CloseReason) -> &'static str {
    match why {
        CloseReason::Finished => "finished",
        CloseReason::Aborted => "aborted",
        CloseReason::ResetByPeer => "reset by peer",
        CloseReason::Refused => "refused",
        CloseReason::TimedOut => "timed out",
    }
}

/// A line without a connection has still something to do.
fn is_open(stage: &mut Stage, now: Instant) -> bool {
    match stage {
        Stage::Talking(..) => true,
        Stage::Ending(joint) => joint.is_ending(now),
        _ => false,
    }
}

impl Station for Entry {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        self.board.receive(now, recorder, packet);
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        self.board.transmit_into(now, recorder, packet)
    }

    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.board.handle_timeout(now, recorder);
    }

    fn poll_timeout(&mut self) -> Instant {
        self.board.poll_timeout()
    }

    fn work(&mut self, now: Instant) -> bool {
        let due = self.board.due(now, &mut |stage, change| match stage {
            Stage::Talking(joint, ..) | Stage::Joined(joint, _) | Stage::Ending(joint) => joint.changed(change),
            Stage::Asking(asking) => asking.joint.changed(change),
            Stage::Warm(..) | Stage::Over => {}
        });
        for token in &due {
            match *token < FIRST_LINE {
                true => self.accept(now, *token),
                false => self.step(now, *token),
            }
        }
        self.pool.refill(now, &mut self.board, &self.routes);
        !due.is_empty()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.board.input()
    }
}
