//! Programs' connections straight to their targets: Multipath TCP, or plain TCP with those that speak nothing else (RFC 8684 §3.7).

use crate::board::{FIRST_LINE, Line, News};
use crate::budget::Budget;
use crate::dial::{ADDRESSES, PATIENCE};
use crate::front::Lobby;
use crate::hall::{CONNECTIONS, Hall, Staged, reason};
use crate::joint::Joint;
use crate::listeners::Listeners;
use crate::message::Refusal;
use crate::resolver::{Names, Resolved, Resolver, unresolved};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::setup::Common;
use crate::talking::{Talk, Talked, Wish};
use crate::target::{Host, Target};
use anabranch_engine::endpoint::Handle;
use anabranch_link::LinkError;
use anabranch_trace::CloseReason;
use anabranch_units::Instant;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The token of answers to names.
const NAMES: u64 = FIRST_LINE - 1;

/// How far a program is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// The program says where it wants to go.
    Talking(Talk),
    /// The name of its target is being resolved.
    Resolving(Wish),
    /// The program's target is being connected.
    Opening(Box<Opening>),
    /// The program is joined with its target.
    Joined(Joint, Target, SocketAddr),
    /// The program gets its last bytes.
    Ending(Joint),
    /// Nothing more is read from the connection.
    Over,
}

/// A connection that is being opened.
#[derive(Debug)]
pub(crate) struct Opening {
    wish: Wish,
    remote: SocketAddr,
    /// The last of them is next.
    others: Vec<SocketAddr>,
    /// When the present address is given up.
    until: Instant,
}

impl Staged for Stage {
    fn target(&self) -> Option<&Target> {
        match self {
            Self::Joined(_, target, _) => Some(target),
            Self::Opening(opening) => Some(&opening.wish.target),
            _ => None,
        }
    }

    fn joint(&mut self) -> Option<&mut Joint> {
        match self {
            Self::Talking(talk) => Some(&mut talk.joint),
            Self::Resolving(wish) => Some(&mut wish.joint),
            Self::Opening(opening) => Some(&mut opening.wish.joint),
            Self::Joined(joint, ..) | Self::Ending(joint) => Some(joint),
            Self::Over => None,
        }
    }

    fn is_joined(&self) -> bool {
        matches!(self, Self::Joined(..))
    }

    fn remote(&self) -> Option<SocketAddr> {
        match self {
            Self::Joined(.., remote) => Some(*remote),
            Self::Opening(opening) => Some(opening.remote),
            _ => None,
        }
    }
}

/// The station of a proxy without a server.
#[derive(Debug)]
pub(crate) struct Direct {
    hall: Hall<Stage>,
    names: Names,
    common: Common,
    budget: Budget,
    /// Most payload of a segment, in bytes.
    mss: u32,
}

impl Direct {
    /// For programs at `listeners`.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(
        listeners: Listeners,
        rules: Rules,
        routes: Routes,
        common: Common,
        resolver: Resolver,
        mss: u32,
    ) -> Result<Self, LinkError> {
        let hall = Hall::new(listeners, rules, routes, None)?;
        // Only servers have several clients.
        let names = Names::new(resolver, Ipv4Addr::UNSPECIFIED).map_err(LinkError::system("eventfd"))?;
        hall.board.sockets.add(names.bell(), NAMES).map_err(LinkError::system("epoll"))?;
        Ok(Self { hall, names, common, budget: Budget::whole(), mss })
    }

    fn accept(&mut self, now: Instant, place: u64) {
        while let Some((token, talked)) = self.hall.accept(now, place) {
            let line = self.talked(now, token, talked);
            self.hall.board.put(token, line, true);
        }
    }

    /// A program without a connection.
    fn talked(&mut self, now: Instant, token: u64, talked: Talked) -> Line<Stage> {
        match talked {
            Talked::Wants(wish) => self.seek(now, token, wish),
            Talked::Waits(talk) => without(Stage::Talking(talk)),
            Talked::Refused(joint) => without(Stage::Ending(joint)),
            Talked::Gone => without(Stage::Over),
        }
    }

    /// Looks for the addresses of a target.
    fn seek(&mut self, now: Instant, token: u64, wish: Wish) -> Line<Stage> {
        match &wish.target.host {
            Host::Address(address) => {
                let address = *address;
                self.found(now, token, wish, vec![address])
            }
            Host::Name(name) => match self.names.ask(token, name.clone()) {
                true => without(Stage::Resolving(wish)),
                false => self.refuse(wish, Refusal::TooMany),
            },
        }
    }

    /// Connects to the first of these addresses that answers.
    fn found(&mut self, now: Instant, token: u64, wish: Wish, found: Vec<IpAddr>) -> Line<Stage> {
        let port = wish.target.port;
        let mut others: Vec<_> = found.into_iter().filter_map(reachable).map(|ip| (ip, port).into()).collect();
        others.truncate(ADDRESSES);
        others.reverse();
        self.open(now, token, wish, others, Refusal::NetworkUnreachable)
    }

    /// Connects to the next address; `last` is why the one before did not answer.
    fn open(
        &mut self,
        now: Instant,
        token: u64,
        wish: Wish,
        mut others: Vec<SocketAddr>,
        last: Refusal,
    ) -> Line<Stage> {
        let Some(remote) = others.pop() else { return self.refuse(wish, last) };
        let Hall { board, rules, routes, .. } = &mut self.hall;
        let treatment = rules.of(&wish.target);
        let Some(paths) = routes.fresh(remote, Some(treatment)) else {
            return self.refuse(wish, Refusal::NetworkUnreachable);
        };
        // Those that linger in TIME-WAIT count: each has a port of ours.
        if board.engine.endpoint.len() >= CONNECTIONS {
            return self.refuse(wish, Refusal::TooMany);
        }
        let each = self.budget.offer().unwrap_or_default();
        let (Some(share), Some(setup)) = (self.budget.take(each), self.common.direct(each, self.mss, paths)) else {
            return self.refuse(wish, Refusal::TooMany);
        };
        let handle = board.connect(now, setup);
        board.with(now, handle, |connection, cx| {
            routes.schedule(connection, cx, treatment);
            connection.write(cx, wish.early.clone());
        });
        let until = now + PATIENCE;
        board.alarm(until, token);
        let stage = Stage::Opening(Box::new(Opening { wish, remote, others, until }));
        Line { handle: Some(handle), share: Some(share), stage }
    }

    fn refuse(&mut self, wish: Wish, why: Refusal) -> Line<Stage> {
        without(Stage::Ending(self.hall.refuse(wish, why)))
    }

    /// Takes the next step of a line.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(Line { handle, share, stage }) = self.hall.board.take(token) else { return };
        if let Some(handle) = handle.filter(|handle| self.hall.board.is_forgotten(*handle)) {
            // The target was started again.
            self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
        }
        let mut line = match (handle, stage) {
            (Some(handle), stage) => {
                let line = Line { handle: Some(handle), share, stage: Stage::Over };
                match self.hall.board.with(now, handle, |connection, _| News::of(connection)) {
                    Some(News { established, closed: None }) => {
                        self.advance(now, token, handle, line, stage, established)
                    }
                    Some(News { established, closed }) => self.ended(now, token, handle, stage, closed, established),
                    None => without(Stage::Over),
                }
            }
            (None, Stage::Talking(talk)) => {
                let talked = self.hall.talk(now, token, talk);
                self.talked(now, token, talked)
            }
            (None, stage) => without(stage),
        };
        if line.handle.is_some() || is_open(&mut line.stage, now) {
            self.hall.board.put(token, line, false);
        }
    }

    /// Carries on a line with a connection that has not ended.
    fn advance(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        line: Line<Stage>,
        stage: Stage,
        established: bool,
    ) -> Line<Stage> {
        let stage = match stage {
            Stage::Opening(opening) if established => self.join(now, token, handle, *opening),
            Stage::Opening(opening) if opening.wish.joint.is_over() => {
                self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
                Stage::Over
            }
            Stage::Opening(opening) if now >= opening.until => {
                self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
                self.hall.leave(line);
                return self.open(now, token, opening.wish, opening.others, Refusal::TimedOut);
            }
            Stage::Joined(mut joint, target, remote) => {
                let Hall { board, buffer, .. } = &mut self.hall;
                let goes_on = board.exchange(now, token, handle, &mut joint, buffer);
                if goes_on { Stage::Joined(joint, target, remote) } else { Stage::Over }
            }
            Stage::Over => {
                self.hall.board.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                Stage::Over
            }
            stage => stage,
        };
        Line { stage, ..line }
    }

    /// The target has answered: the program may send.
    fn join(&mut self, now: Instant, token: u64, handle: Handle, opening: Opening) -> Stage {
        let Opening { wish, remote, .. } = opening;
        let (joint, target) = wish.granted();
        let stage = Stage::Joined(joint, target, remote);
        // The race is over. The others are joined from ports of our choice, if the target speaks Multipath TCP.
        self.hall.follow(now, handle, &stage);
        self.hall.board.wake(token);
        stage
    }

    /// A connection has ended, and `why`.
    fn ended(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        stage: Stage,
        why: Option<CloseReason>,
        established: bool,
    ) -> Line<Stage> {
        let joint = match stage {
            Stage::Opening(opening) if !established => {
                let Opening { wish, others, .. } = *opening;
                return self.open(now, token, wish, others, unopened(why));
            }
            Stage::Opening(opening) => opening.wish.granted().0,
            Stage::Joined(joint, ..) => {
                if let Some(why) = why.filter(|why| *why != CloseReason::Finished) {
                    self.hall.count_cut(reason(why));
                }
                joint
            }
            _ => return without(Stage::Over),
        };
        without(Stage::Ending(self.hall.farewell(now, token, handle, joint, why)))
    }

    /// The addresses of a name.
    fn resolved(&mut self, now: Instant, Resolved { token, found }: Resolved) {
        let Some(line) = self.hall.board.take(token) else { return };
        let line = match (line.stage, found) {
            (Stage::Resolving(wish), Ok(found)) if found.is_empty() => self.refuse(wish, Refusal::NoSuchName),
            (Stage::Resolving(wish), Ok(found)) => self.found(now, token, wish, found),
            (Stage::Resolving(wish), Err(error)) => self.refuse(wish, unresolved(error.kind())),
            (stage, _) => Line { stage, ..line },
        };
        self.hall.board.put(token, line, true);
    }
}

/// A line without a connection.
fn without(stage: Stage) -> Line<Stage> {
    Line { handle: None, share: None, stage }
}

/// A line without a connection has still something to do.
fn is_open(stage: &mut Stage, now: Instant) -> bool {
    match stage {
        Stage::Talking(_) => true,
        Stage::Resolving(wish) => !wish.joint.is_over(),
        Stage::Ending(joint) => joint.is_ending(now),
        _ => false,
    }
}

/// The address as the interfaces lead to it: IPv4 of one host that is not this one's loopback.
fn reachable(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V4(v4) = address.to_canonical() else { return None };
    let reserved = v4.octets()[0] >= 240 || v4.octets()[0] == 0;
    (!v4.is_loopback() && !v4.is_multicast() && !reserved).then_some(v4)
}

/// Why a connection did not open.
fn unopened(why: Option<CloseReason>) -> Refusal {
    match why {
        Some(CloseReason::Refused | CloseReason::ResetByPeer) => Refusal::Refused,
        Some(CloseReason::TimedOut) => Refusal::TimedOut,
        _ => Refusal::HostUnreachable,
    }
}

impl Lobby for Direct {
    type Stage = Stage;

    fn hall(&self) -> &Hall<Stage> {
        &self.hall
    }

    fn hall_mut(&mut self) -> &mut Hall<Stage> {
        &mut self.hall
    }

    fn serve(&mut self, now: Instant) -> bool {
        let due = self.hall.due(now);
        for token in &due {
            match *token {
                NAMES => {
                    self.names.hush();
                    while let Some(resolved) = self.names.next() {
                        self.resolved(now, resolved);
                    }
                }
                token if token < FIRST_LINE => self.accept(now, token),
                token => self.step(now, token),
            }
        }
        !due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::ProxyStation;
    use crate::hall::LINES;
    use crate::resolver::Limits;
    use anabranch_engine::FourTuple;
    use anabranch_engine::connection::PathSetup;
    use anabranch_link::Station;
    use anabranch_scenario::PlugIn;
    use anabranch_units::{Duration, PathId};
    use anabranch_wire::Packet;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    fn station() -> ProxyStation<Direct> {
        let listeners = Listeners::open(&[(Ipv4Addr::LOCALHOST, 0).into()], &[], None).unwrap();
        let rules = Rules::none(anabranch_scenario::scheduler("test", "minrtt").unwrap());
        let routes = Routes::new(vec!["wlan0".to_owned()], |_| Ipv4Addr::new(198, 18, 0, 1));
        let resolver = Resolver::with(Arc::new(|_| Ok(Vec::new())), Limits::alone(1)).unwrap();
        let mut station = ProxyStation(Direct::new(listeners, rules, routes, common(), resolver, 1_400).unwrap());
        station.0.hall.set_present(Instant::ZERO, vec![PathId(0)]);
        station
    }

    fn common() -> Common {
        let congestion = PlugIn { name: "cubic".to_owned(), parameters: Vec::new() };
        Common { congestion, orphan_timeout: Duration::from_secs(60), ecn: true }
    }

    /// A program that requests a target by SOCKS, once the station has read that.
    fn program(station: &mut ProxyStation<Direct>) -> TcpStream {
        let mut program = TcpStream::connect(station.0.hall.locals()[0]).unwrap();
        program.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        program.set_nonblocking(true).unwrap();
        while program.read(&mut answer).is_err() {
            station.work(Instant::ZERO);
        }
        program.write_all(&[5, 1, 0, 1, 192, 0, 2, 1, 0, 80]).unwrap();
        let asked = |station: &ProxyStation<Direct>| {
            station.0.hall.failures().count() + station.0.hall.board.engine.endpoint.len()
        };
        let before = asked(station);
        while asked(station) == before {
            station.work(Instant::ZERO);
        }
        program
    }

    #[test]
    fn beyond_8192_connections_a_program_is_refused_until_one_is_gone() {
        let mut station = station();
        let paths = || {
            vec![PathSetup::new(
                PathId(0),
                FourTuple { local: ([198, 18, 0, 1], 7).into(), remote: ([192, 0, 2, 2], 7).into() },
            )]
        };
        let fill = |station: &mut ProxyStation<Direct>| {
            let setup = common().direct(4_096, 1_400, paths()).unwrap();
            station.0.hall.board.connect(Instant::ZERO, setup)
        };
        let first = fill(&mut station);
        while station.0.hall.board.engine.endpoint.len() < CONNECTIONS - 1 {
            fill(&mut station);
        }
        let _last = program(&mut station);
        assert_eq!((station.0.hall.board.engine.endpoint.len(), station.0.hall.failures().count()), (CONNECTIONS, 0));
        let _refused = program(&mut station);
        assert_eq!(station.0.hall.failures().collect::<Vec<_>>(), [("refused: TooMany".to_owned(), 1)]);
        station.0.hall.board.with(Instant::ZERO, first, |connection, cx| connection.abort(cx));
        while station.0.hall.board.engine.endpoint.len() == CONNECTIONS {
            station.transmit_into(Instant::ZERO, &mut (), &mut Packet::default());
            station.0.hall.board.with(Instant::ZERO, first, |connection, _| while connection.poll_event().is_some() {});
        }
        let _granted = program(&mut station);
        assert_eq!(station.0.hall.board.engine.endpoint.len(), CONNECTIONS);
    }

    #[test]
    fn beyond_4096_lines_a_program_is_refused() {
        let mut station = station();
        let _first = program(&mut station);
        assert_eq!(station.0.hall.failures().count(), 0);
        for _ in 1..LINES {
            // Lines that are not looked at.
            let token = station.0.hall.board.token();
            station.0.hall.board.put(token, without(Stage::Over), false);
        }
        let _refused = program(&mut station);
        assert_eq!(station.0.hall.failures().collect::<Vec<_>>(), [("refused: TooMany".to_owned(), 1)]);
    }

    #[test]
    fn the_interfaces_lead_to_single_hosts_by_ipv4() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for there in ["192.0.2.1", "10.0.0.1", "::ffff:192.0.2.1", "198.18.0.9"] {
            assert!(reachable(ip(there)).is_some(), "{there}");
        }
        for not in ["127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "2001:db8::1", "::ffff:127.0.0.1"] {
            assert_eq!(reachable(ip(not)), None, "{not}");
        }
    }
}
