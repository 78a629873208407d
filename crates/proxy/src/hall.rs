//! Programs' lines, whatever carries their connections: who comes, by which rules and over which paths, how it ends.

use crate::anteroom::{Anteroom, Guest, Origin};
use crate::board::{Board, Line};
use crate::joint::Joint;
use crate::listeners::{Accepted, Kind, Listeners};
use crate::message::Refusal;
use crate::routes::Routes;
use crate::rules::Rules;
use crate::talking::{Talk, Talked, Wish};
use crate::target::Target;
use crate::unallowed::Unallowed;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_link::{ClientStatus, LinkError, Memory, PathState};
use anabranch_trace::CloseReason;
use anabranch_units::{Duration, Instant, PathId, Side};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Connections, those in TIME-WAIT included.
pub(super) const CONNECTIONS: usize = 8_192;
/// Connections with programs, and those that wait for one.
pub(crate) const LINES: usize = 4_096;
/// Lines that programs of other hosts may have: the rest is for programs of this one.
const REMOTE: u64 = 3_072;
/// When the system has no file descriptor left, the next attempt to accept a program.
const LATER: Duration = Duration::from_millis(100);

/// How far a line is.
pub(crate) trait Staged {
    /// The target, if there is one.
    fn target(&self) -> Option<&Target>;
    /// The program's socket.
    fn joint(&mut self) -> Option<&mut Joint>;
    /// The program is joined with its target.
    fn is_joined(&self) -> bool;
    /// The far end of its connection, if connections have different ones.
    fn remote(&self) -> Option<SocketAddr> {
        None
    }
}

/// Programs and their lines.
#[derive(Debug)]
pub(crate) struct Hall<S> {
    pub board: Board<S>,
    pub rules: Rules,
    pub routes: Routes,
    pub buffer: Vec<u8>,
    /// The far end of all connections, if it is one.
    server: Option<SocketAddr>,
    listeners: Listeners,
    /// Programs that negotiate.
    anteroom: Anteroom,
    /// Places for programs of other hosts.
    remote: Memory,
    /// Programs that had to go from there.
    crowded_out: u64,
    /// Requests that came to nothing.
    refused: BTreeMap<Refusal, u64>,
    /// Targets among these that are not public, for the user.
    unallowed: Unallowed,
    /// Joined connections that were cut off.
    cut_off: BTreeMap<&'static str, u64>,
}

impl<S: Staged> Hall<S> {
    /// For programs at `listeners`.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(
        listeners: Listeners,
        rules: Rules,
        routes: Routes,
        server: Option<SocketAddr>,
    ) -> Result<Self, LinkError> {
        let board = Board::new(Endpoint::new(CONNECTIONS), Side::Client)?;
        listeners.register(&board.sockets)?;
        let (anteroom, remote, crowded_out) = (Anteroom::default(), Memory::new(REMOTE), 0);
        let (buffer, refused, cut_off) = (vec![0; 64 << 10], BTreeMap::new(), BTreeMap::new());
        let unallowed = Unallowed::default();
        Ok(Self {
            board,
            rules,
            routes,
            buffer,
            server,
            listeners,
            anteroom,
            remote,
            crowded_out,
            refused,
            unallowed,
            cut_off,
        })
    }

    /// From now on the rules are these. Connections that exist follow them with what they send, and by their backup flags with what they
    /// receive.
    pub fn set_rules(&mut self, now: Instant, rules: Rules) {
        self.rules = rules;
        let open = |stage: &S| Some((stage.target()?.clone(), self.remote(stage)?));
        let open = self.board.lines().filter_map(|(_, line)| Some((line.handle?, open(&line.stage)?)));
        for (handle, (target, remote)) in open.collect::<Vec<_>>() {
            let (rules, routes) = (&self.rules, &self.routes);
            self.board.with(now, handle, |connection, cx| routes.treat(connection, cx, rules.of(&target), remote));
        }
    }

    /// The paths that can be used, the best one first. Connections leave the others, and join those that are new.
    pub fn set_present(&mut self, now: Instant, present: Vec<PathId>) {
        if !self.routes.set(present) {
            return;
        }
        self.each(|hall, handle, stage| hall.follow(now, handle, stage));
    }

    /// Joined connections have other subflows over these paths, which have other addresses; one that has fallen back to plain TCP, whose
    /// ends cannot change, is ended.
    pub fn renew(&mut self, now: Instant, paths: &[PathId]) {
        self.each(|hall, handle, stage| {
            let Some(remote) = hall.remote(stage).filter(|_| stage.is_joined()) else { return };
            let treatment = stage.target().map(|target| hall.rules.of(target));
            let routes = &hall.routes;
            hall.board.with(now, handle, |connection, cx| routes.renew(connection, cx, paths, treatment, remote));
        });
    }

    fn each(&mut self, act: impl Fn(&mut Self, Handle, &S)) {
        let open: Vec<u64> = self.board.lines().filter(|(_, line)| line.handle.is_some()).map(|(n, _)| n).collect();
        for token in open {
            let Some(line) = self.board.take(token) else { continue };
            if let Some(handle) = line.handle {
                act(self, handle, &line.stage);
            }
            self.board.put(token, line, true);
        }
    }

    fn remote(&self, stage: &S) -> Option<SocketAddr> {
        self.server.or(stage.remote())
    }

    /// Makes a connection use the paths that there are. One that has fallen back to plain TCP keeps the path that it has: its interface
    /// may come back.
    pub fn follow(&mut self, now: Instant, handle: Handle, stage: &S) {
        let Some(remote) = self.remote(stage) else { return };
        let treatment = stage.target().map(|target| self.rules.of(target));
        let (routes, joined, has_server) = (&self.routes, stage.is_joined(), self.server.is_some());
        self.board.with(now, handle, |connection, cx| {
            // Before the server has acknowledged anything, no other path can be joined (RFC 8684 §3.1). The connection ends at once, so
            // that its request goes over a new one.
            if has_server && connection.view().data_acked() == 0 && routes.strands(connection) {
                connection.abort(cx);
            } else if connection.is_multipath() || !joined {
                routes.follow(connection, cx, treatment, remote);
            }
        });
    }

    /// The state, as that of one client.
    pub fn status(&self, now: Instant, name: &str) -> ClientStatus {
        let joined = self.board.lines().filter(|(_, line)| line.stage.is_joined());
        let paths: Vec<PathState> = self.board.paths(now, &|id| self.routes.name(id).map(str::to_owned));
        let scheduler = Some(self.rules.usual().scheduler.with_parameters());
        ClientStatus { name: name.to_owned(), scheduler, connections: joined.count(), paths }
    }

    /// Programs that had to make room, requests that came to nothing, connections that were cut off, and segments that broke a rule, by
    /// reason.
    pub fn failures(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let refused = self.refused.iter().map(|(why, count)| (format!("refused: {why:?}"), *count));
        let cut_off = self.cut_off.iter().map(|(why, count)| (format!("cut off: {why}"), *count));
        let crowded_out = (self.crowded_out > 0).then(|| ("crowded out".to_owned(), self.crowded_out));
        crowded_out.into_iter().chain(refused).chain(cut_off).chain(self.board.violations())
    }

    /// Where programs reach it.
    pub fn locals(&self) -> Vec<SocketAddr> {
        self.listeners.locals().collect()
    }

    /// The next program at a listener, with the number of its line.
    pub fn accept(&mut self, now: Instant, place: u64) -> Option<(u64, Talked)> {
        loop {
            let (accepted, kind) = self.listeners.accept(place)?;
            let (socket, from) = match accepted {
                Accepted::Program(socket, from) => (socket, Origin::of(from)),
                Accepted::Nobody => return None,
                Accepted::Later => {
                    self.board.alarm(now + LATER, place);
                    return None;
                }
            };
            let token = self.board.token();
            let registered = self.board.sockets.add(&socket, token).is_ok();
            let joint = Joint::new(socket);
            // Otherwise it is dropped with a reset.
            if registered {
                let talked = match kind {
                    Kind::Socks { guarded } => self.welcome(token, place, from, Talk::new(now, joint, guarded)),
                    Kind::Forward(target) => self.seat(Wish { joint, target, early: Bytes::new(), socks: false }, from),
                };
                return Some((token, talked));
            }
        }
    }

    /// A program may negotiate. Another one may have to go for it, with a reset.
    fn welcome(&mut self, token: u64, listener: u64, origin: Origin, talk: Talk) -> Talked {
        self.board.alarm(talk.until, token);
        if let Some(oldest) = self.anteroom.enter(token, Guest { listener, origin, until: talk.until }) {
            self.leave_anteroom(oldest);
            self.board.take(oldest);
            self.crowded_out += 1;
        }
        Talked::Waits(talk)
    }

    fn leave_anteroom(&mut self, token: u64) -> Option<Guest> {
        let guest = self.anteroom.leave(token)?;
        self.board.disarm(guest.until, token);
        Some(guest)
    }

    /// A program has named its target: it gets a line, if there is one for it.
    fn seat(&mut self, mut wish: Wish, origin: Origin) -> Talked {
        let is_full = self.board.len().saturating_sub(self.anteroom.len()) >= LINES;
        let place = match origin {
            Origin::Local => Some(None),
            Origin::Remote(_) => self.remote.take(1).map(Some),
        };
        let Some(place) = place.filter(|_| !is_full) else {
            return Talked::Refused(self.refuse(wish, Refusal::TooMany));
        };
        wish.joint.place = place;
        Talked::Wants(wish)
    }

    /// Takes what a program without a target sent.
    pub fn talk(&mut self, now: Instant, token: u64, talk: Talk) -> Talked {
        let talked = talk.step(now, &self.listeners, &mut self.buffer);
        if matches!(talked, Talked::Waits(_)) {
            return talked;
        }
        match (self.leave_anteroom(token), talked) {
            (Some(Guest { origin, .. }), Talked::Wants(wish)) => self.seat(wish, origin),
            (_, talked) => talked,
        }
    }

    /// Nothing came of a request.
    pub fn refuse(&mut self, wish: Wish, why: Refusal) -> Joint {
        *self.refused.entry(why).or_default() += 1;
        if why == Refusal::NotAllowed {
            self.unallowed.note(&wish.target);
        }
        wish.refused(why)
    }

    /// A line for the user, if there is something to say now.
    pub fn notice(&mut self, now: Instant) -> Option<String> {
        self.unallowed.notice(now)
    }

    /// A joined connection was cut off.
    pub fn count_cut(&mut self, why: &'static str) {
        *self.cut_off.entry(why).or_default() += 1;
    }

    /// The last bytes of a connection that has ended go to its program.
    pub fn farewell(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        mut joint: Joint,
        why: Option<CloseReason>,
    ) -> Joint {
        let until = self.board.with(now, handle, |connection, cx| match why {
            Some(CloseReason::Finished) => {
                joint.drain(connection, cx);
                None
            }
            _ => Some(joint.cut(now, connection, cx)),
        });
        until.flatten().into_iter().for_each(|until| self.board.alarm(until, token));
        joint
    }

    /// The connection of a line has no program any more, and ends on its own.
    pub fn leave(&mut self, line: Line<S>) {
        let token = self.board.token();
        self.board.put(token, line, true);
    }

    /// The lines that have something to do now, and the listeners.
    pub fn due(&mut self, now: Instant) -> Vec<u64> {
        self.board.due(now, &mut |stage, change| {
            if let Some(joint) = stage.joint() {
                joint.changed(change);
            }
        })
    }
}

/// Why a connection was cut off, in words.
pub(super) fn reason(why: CloseReason) -> &'static str {
    match why {
        CloseReason::Finished => "finished",
        CloseReason::Aborted => "aborted",
        CloseReason::ResetByPeer => "reset by peer",
        CloseReason::Refused => "refused",
        CloseReason::TimedOut => "timed out",
    }
}
