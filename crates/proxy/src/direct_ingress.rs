//! Programs' connections straight to their targets: Multipath TCP, or plain TCP with those that speak nothing else (RFC 8684 §3.7).

use crate::buffer_budget::BufferBudget;
use crate::connection_table::{ConnectionUpdate, FIRST_FLOW, Flow};
use crate::daemon::IngressEnd;
use crate::dial::{ADDRESSES, PATIENCE};
use crate::ingress::{CONNECTIONS, FlowStage, Ingress, reason};
use crate::listeners::Listeners;
use crate::message::Refusal;
use crate::negotiation::{Negotiation, NegotiationStep, ProgramRequest};
use crate::relay::Relay;
use crate::resolver::{NameLookups, Resolved, Resolver, unresolved};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::setup::ConnectionSettings;
use crate::target::{Host, Target};
use anabranch_engine::endpoint::Handle;
use anabranch_link::LinkError;
use anabranch_trace::CloseReason;
use anabranch_units::Instant;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The token of answers to names.
const NAMES: u64 = FIRST_FLOW - 1;

/// How far a program is.
#[derive(Debug)]
pub(crate) enum DirectStage {
    /// The program says where it wants to go.
    Negotiating(Negotiation),
    /// The name of its target is being resolved.
    Resolving(ProgramRequest),
    /// The program's target is being connected.
    Opening(Box<Opening>),
    /// The program and its target exchange bytes.
    Relaying(Relay, Target, SocketAddr),
    /// The program gets its last bytes.
    Ending(Relay),
    /// Nothing more is read from the connection.
    Over,
}

/// A connection that is being opened.
#[derive(Debug)]
pub(crate) struct Opening {
    request: ProgramRequest,
    remote: SocketAddr,
    /// The last of them is next.
    others: Vec<SocketAddr>,
    /// When the present address is given up.
    until: Instant,
}

impl FlowStage for DirectStage {
    fn target(&self) -> Option<&Target> {
        match self {
            Self::Relaying(_, target, _) => Some(target),
            Self::Opening(opening) => Some(&opening.request.target),
            _ => None,
        }
    }

    fn relay(&mut self) -> Option<&mut Relay> {
        match self {
            Self::Negotiating(negotiation) => Some(&mut negotiation.relay),
            Self::Resolving(request) => Some(&mut request.relay),
            Self::Opening(opening) => Some(&mut opening.request.relay),
            Self::Relaying(relay, ..) | Self::Ending(relay) => Some(relay),
            Self::Over => None,
        }
    }

    fn is_relaying(&self) -> bool {
        matches!(self, Self::Relaying(..))
    }

    fn remote(&self) -> Option<SocketAddr> {
        match self {
            Self::Relaying(.., remote) => Some(*remote),
            Self::Opening(opening) => Some(opening.remote),
            _ => None,
        }
    }
}

/// The station of a proxy without a server.
#[derive(Debug)]
pub(crate) struct DirectIngress {
    ingress: Ingress<DirectStage>,
    lookups: NameLookups,
    connections: ConnectionSettings,
    budget: BufferBudget,
    /// Most payload of a segment, in bytes.
    mss: u32,
}

impl DirectIngress {
    /// For programs at `listeners`.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(
        listeners: Listeners,
        rules: Rules,
        routes: Routes,
        connections: ConnectionSettings,
        resolver: Resolver,
        mss: u32,
    ) -> Result<Self, LinkError> {
        let ingress = Ingress::new(listeners, rules, routes, None)?;
        // Only servers have several clients.
        let lookups = NameLookups::new(resolver, Ipv4Addr::UNSPECIFIED).map_err(LinkError::system("eventfd"))?;
        ingress.table.poller.add(lookups.wakeup(), NAMES).map_err(LinkError::system("epoll"))?;
        Ok(Self { ingress, lookups, connections, budget: BufferBudget::whole(), mss })
    }

    fn accept(&mut self, now: Instant, place: u64) {
        while let Some((token, negotiated)) = self.ingress.accept(now, place) {
            let flow = self.negotiated(now, token, negotiated);
            self.ingress.table.put(token, flow, true);
        }
    }

    /// A program without a connection.
    fn negotiated(&mut self, now: Instant, token: u64, negotiated: NegotiationStep) -> Flow<DirectStage> {
        match negotiated {
            NegotiationStep::Wants(request) => self.seek(now, token, request),
            NegotiationStep::Waits(negotiation) => without(DirectStage::Negotiating(negotiation)),
            NegotiationStep::Refused(relay) => without(DirectStage::Ending(relay)),
            NegotiationStep::Gone => without(DirectStage::Over),
        }
    }

    /// Looks for the addresses of a target.
    fn seek(&mut self, now: Instant, token: u64, request: ProgramRequest) -> Flow<DirectStage> {
        match &request.target.host {
            Host::Address(address) => {
                let address = *address;
                self.found(now, token, request, vec![address])
            }
            Host::Name(name) => match self.lookups.ask(token, name.clone()) {
                true => without(DirectStage::Resolving(request)),
                false => self.refuse(request, Refusal::TooMany),
            },
        }
    }

    /// Connects to the first of these addresses that answers.
    fn found(&mut self, now: Instant, token: u64, request: ProgramRequest, found: Vec<IpAddr>) -> Flow<DirectStage> {
        let port = request.target.port;
        let mut others: Vec<_> = found.into_iter().filter_map(reachable).map(|ip| (ip, port).into()).collect();
        others.truncate(ADDRESSES);
        others.reverse();
        self.open(now, token, request, others, Refusal::NetworkUnreachable)
    }

    /// Connects to the next address; `last` is why the one before did not answer.
    fn open(
        &mut self,
        now: Instant,
        token: u64,
        request: ProgramRequest,
        mut others: Vec<SocketAddr>,
        last: Refusal,
    ) -> Flow<DirectStage> {
        let Some(remote) = others.pop() else { return self.refuse(request, last) };
        let Ingress { table, rules, routes, .. } = &mut self.ingress;
        let treatment = rules.of(&request.target);
        let Some(paths) = routes.fresh(remote, Some(treatment)) else {
            return self.refuse(request, Refusal::NetworkUnreachable);
        };
        // Those that linger in TIME-WAIT count: each has a port of ours.
        if table.engine.endpoint.len() >= CONNECTIONS {
            return self.refuse(request, Refusal::TooMany);
        }
        let each = self.budget.offer().unwrap_or_default();
        let (Some(reservation), Some(setup)) = (self.budget.take(each), self.connections.direct(each, self.mss, paths))
        else {
            return self.refuse(request, Refusal::TooMany);
        };
        let handle = table.connect(now, setup);
        table.with(now, handle, |connection, cx| {
            routes.schedule(connection, cx, treatment);
            connection.write(cx, request.early.clone());
        });
        let until = now + PATIENCE;
        table.alarm(until, token);
        let stage = DirectStage::Opening(Box::new(Opening { request, remote, others, until }));
        Flow { handle: Some(handle), reservation: Some(reservation), stage }
    }

    fn refuse(&mut self, request: ProgramRequest, why: Refusal) -> Flow<DirectStage> {
        without(DirectStage::Ending(self.ingress.refuse(request, why)))
    }

    /// Takes the next step of a flow.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(Flow { handle, reservation, stage }) = self.ingress.table.take(token) else { return };
        if let Some(handle) = handle.filter(|handle| self.ingress.table.is_forgotten(*handle)) {
            // The target was started again.
            self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
        }
        let mut flow = match (handle, stage) {
            (Some(handle), stage) => {
                let flow = Flow { handle: Some(handle), reservation, stage: DirectStage::Over };
                match self.ingress.table.with(now, handle, |connection, _| ConnectionUpdate::of(connection)) {
                    Some(ConnectionUpdate { established, closed: None }) => {
                        self.advance(now, token, handle, flow, stage, established)
                    }
                    Some(ConnectionUpdate { established, closed }) => {
                        self.ended(now, token, handle, stage, closed, established)
                    }
                    None => without(DirectStage::Over),
                }
            }
            (None, DirectStage::Negotiating(negotiation)) => {
                let negotiated = self.ingress.negotiate(now, token, negotiation);
                self.negotiated(now, token, negotiated)
            }
            (None, stage) => without(stage),
        };
        if flow.handle.is_some() || is_open(&mut flow.stage, now) {
            self.ingress.table.put(token, flow, false);
        }
    }

    /// Carries on a flow with a connection that has not ended.
    fn advance(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        flow: Flow<DirectStage>,
        stage: DirectStage,
        established: bool,
    ) -> Flow<DirectStage> {
        let stage = match stage {
            DirectStage::Opening(opening) if established => self.join(now, token, handle, *opening),
            DirectStage::Opening(opening) if opening.request.relay.is_over() => {
                self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
                DirectStage::Over
            }
            DirectStage::Opening(opening) if now >= opening.until => {
                self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
                self.ingress.leave(flow);
                return self.open(now, token, opening.request, opening.others, Refusal::TimedOut);
            }
            DirectStage::Relaying(mut relay, target, remote) => {
                let Ingress { table, buffer, .. } = &mut self.ingress;
                let goes_on = table.exchange(now, token, handle, &mut relay, buffer);
                if goes_on { DirectStage::Relaying(relay, target, remote) } else { DirectStage::Over }
            }
            DirectStage::Over => {
                self.ingress.table.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                DirectStage::Over
            }
            stage => stage,
        };
        Flow { stage, ..flow }
    }

    /// The target has answered: the program may send.
    fn join(&mut self, now: Instant, token: u64, handle: Handle, opening: Opening) -> DirectStage {
        let Opening { request, remote, .. } = opening;
        let (relay, target) = request.granted();
        let stage = DirectStage::Relaying(relay, target, remote);
        // The race is over. The others are joined from ports of our choice, if the target speaks Multipath TCP.
        self.ingress.follow(now, handle, &stage);
        self.ingress.table.wake(token);
        stage
    }

    /// A connection has ended, and `why`.
    fn ended(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        stage: DirectStage,
        why: Option<CloseReason>,
        established: bool,
    ) -> Flow<DirectStage> {
        let relay = match stage {
            DirectStage::Opening(opening) if !established => {
                let Opening { request, others, .. } = *opening;
                return self.open(now, token, request, others, unopened(why));
            }
            DirectStage::Opening(opening) => opening.request.granted().0,
            DirectStage::Relaying(relay, ..) => {
                if let Some(why) = why.filter(|why| *why != CloseReason::Finished) {
                    self.ingress.count_cut(reason(why));
                }
                relay
            }
            _ => return without(DirectStage::Over),
        };
        without(DirectStage::Ending(self.ingress.farewell(now, token, handle, relay, why)))
    }

    /// The addresses of a name.
    fn resolved(&mut self, now: Instant, Resolved { token, found }: Resolved) {
        let Some(flow) = self.ingress.table.take(token) else { return };
        let flow = match (flow.stage, found) {
            (DirectStage::Resolving(request), Ok(found)) if found.is_empty() => {
                self.refuse(request, Refusal::NoSuchName)
            }
            (DirectStage::Resolving(request), Ok(found)) => self.found(now, token, request, found),
            (DirectStage::Resolving(request), Err(error)) => self.refuse(request, unresolved(error.kind())),
            (stage, _) => Flow { stage, ..flow },
        };
        self.ingress.table.put(token, flow, true);
    }
}

/// A flow without a connection.
fn without(stage: DirectStage) -> Flow<DirectStage> {
    Flow { handle: None, reservation: None, stage }
}

/// A flow without a connection has still something to do.
fn is_open(stage: &mut DirectStage, now: Instant) -> bool {
    match stage {
        DirectStage::Negotiating(_) => true,
        DirectStage::Resolving(request) => !request.relay.is_over(),
        DirectStage::Ending(relay) => relay.is_ending(now),
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

impl IngressEnd for DirectIngress {
    type Stage = DirectStage;

    fn ingress(&self) -> &Ingress<DirectStage> {
        &self.ingress
    }

    fn ingress_mut(&mut self) -> &mut Ingress<DirectStage> {
        &mut self.ingress
    }

    fn serve(&mut self, now: Instant) -> bool {
        let due = self.ingress.due(now);
        for token in &due {
            match *token {
                NAMES => {
                    self.lookups.clear_wakeup();
                    while let Some(resolved) = self.lookups.next() {
                        self.resolved(now, resolved);
                    }
                }
                token if token < FIRST_FLOW => self.accept(now, token),
                token => self.step(now, token),
            }
        }
        !due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_table::ProxyStation;
    use crate::ingress::FLOWS;
    use crate::resolver::LookupLimits;
    use anabranch_engine::FourTuple;
    use anabranch_engine::connection::PathSetup;
    use anabranch_link::Station;
    use anabranch_scenario::PlugIn;
    use anabranch_units::{Duration, PathId};
    use anabranch_wire::Packet;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    fn station() -> ProxyStation<DirectIngress> {
        let listeners = Listeners::open(&[(Ipv4Addr::LOCALHOST, 0).into()], &[], None).unwrap();
        let rules = Rules::none(anabranch_scenario::scheduler("test", "minrtt").unwrap());
        let routes = Routes::new(vec!["wlan0".to_owned()], |_| Ipv4Addr::new(198, 18, 0, 1));
        let resolver = Resolver::with(Arc::new(|_| Ok(Vec::new())), LookupLimits::alone(1)).unwrap();
        let mut station =
            ProxyStation(DirectIngress::new(listeners, rules, routes, connections(), resolver, 1_400).unwrap());
        station.0.ingress.set_present(Instant::ZERO, vec![PathId(0)]);
        station
    }

    fn connections() -> ConnectionSettings {
        let congestion = PlugIn { name: "cubic".to_owned(), parameters: Vec::new() };
        ConnectionSettings { congestion, orphan_timeout: Duration::from_secs(60), ecn: true }
    }

    /// A program that requests a target by SOCKS, once the station has read that.
    fn program(station: &mut ProxyStation<DirectIngress>) -> TcpStream {
        let mut program = TcpStream::connect(station.0.ingress.locals()[0]).unwrap();
        program.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        program.set_nonblocking(true).unwrap();
        while program.read(&mut answer).is_err() {
            station.work(Instant::ZERO);
        }
        program.write_all(&[5, 1, 0, 1, 192, 0, 2, 1, 0, 80]).unwrap();
        let asked = |station: &ProxyStation<DirectIngress>| {
            station.0.ingress.failures().count() + station.0.ingress.table.engine.endpoint.len()
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
        let fill = |station: &mut ProxyStation<DirectIngress>| {
            let setup = connections().direct(4_096, 1_400, paths()).unwrap();
            station.0.ingress.table.connect(Instant::ZERO, setup)
        };
        let first = fill(&mut station);
        while station.0.ingress.table.engine.endpoint.len() < CONNECTIONS - 1 {
            fill(&mut station);
        }
        let _last = program(&mut station);
        assert_eq!(
            (station.0.ingress.table.engine.endpoint.len(), station.0.ingress.failures().count()),
            (CONNECTIONS, 0)
        );
        let _refused = program(&mut station);
        assert_eq!(station.0.ingress.failures().collect::<Vec<_>>(), [("refused: TooMany".to_owned(), 1)]);
        station.0.ingress.table.with(Instant::ZERO, first, |connection, cx| connection.abort(cx));
        while station.0.ingress.table.engine.endpoint.len() == CONNECTIONS {
            station.transmit_into(Instant::ZERO, &mut (), &mut Packet::default());
            station.0.ingress.table.with(
                Instant::ZERO,
                first,
                |connection, _| while connection.poll_event().is_some() {},
            );
        }
        let _granted = program(&mut station);
        assert_eq!(station.0.ingress.table.engine.endpoint.len(), CONNECTIONS);
    }

    #[test]
    fn beyond_4096_lines_a_program_is_refused() {
        let mut station = station();
        let _first = program(&mut station);
        assert_eq!(station.0.ingress.failures().count(), 0);
        for _ in 1..FLOWS {
            // Flows that are not looked at.
            let token = station.0.ingress.table.token();
            station.0.ingress.table.put(token, without(DirectStage::Over), false);
        }
        let _refused = program(&mut station);
        assert_eq!(station.0.ingress.failures().collect::<Vec<_>>(), [("refused: TooMany".to_owned(), 1)]);
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
