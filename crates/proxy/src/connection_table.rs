//! The connections of one end of a proxy, each with a socket or to have one, and which of them have something to do.

use crate::buffer_budget::BufferReservation;
use crate::poller::{Poller, Readiness};
use crate::relay::{Progress, Relay};
use anabranch_carrier::MAX_PATHS;
use anabranch_engine::connection::{Connection, ConnectionEvent};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple, State};
use anabranch_link::{Driver, Engine, LinkError, PathState, PathStats, Station, path_of, secrets::seed};
use anabranch_trace::{CloseReason, Event, Origin, Recorder, SendKind};
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::{Flags, MptcpOption, Packet, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// Tokens below are not those of flows.
pub(crate) const FIRST_FLOW: u64 = 1 << 32;
/// The token of an alarm that is for no flow.
pub(crate) const NO_FLOW: u64 = u64::MAX;

/// A proxied connection: a connection of the engine, and what becomes of it.
#[derive(Debug)]
pub(crate) struct Flow<S> {
    /// The connection, if it has one.
    pub handle: Option<Handle>,
    /// The memory of its buffers.
    pub reservation: Option<BufferReservation>,
    /// How far it is.
    pub stage: S,
}

/// The proxied connections (flows) of one session, by token.
#[derive(Debug)]
pub(crate) struct ConnectionTable<S> {
    pub engine: Engine,
    pub poller: Poller,
    flows: BTreeMap<u64, Flow<S>>,
    tokens: BTreeMap<Handle, u64>,
    /// Flows that have something to do.
    due: BTreeSet<u64>,
    /// When flows are looked at again, whatever happens.
    alarms: BTreeSet<(Instant, u64)>,
    next: u64,
    stats: TrafficStats,
    /// Clients open connections, and join further subflows.
    side: Side,
    /// Connections that the server does not know any more.
    forgotten: BTreeSet<Handle>,
}

impl<S> ConnectionTable<S> {
    /// A table without flows. The ends here of all its connections are of this side.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(endpoint: Endpoint, side: Side) -> Result<Self, LinkError> {
        Ok(Self {
            engine: Engine::new(endpoint, seed()),
            poller: Poller::new()?,
            flows: BTreeMap::new(),
            tokens: BTreeMap::new(),
            due: BTreeSet::new(),
            alarms: BTreeSet::new(),
            next: FIRST_FLOW,
            stats: TrafficStats::default(),
            side,
            forgotten: BTreeSet::new(),
        })
    }

    /// A token for a flow that is [put](Self::put) later.
    pub fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Puts a flow where it is found; it has something to do if it is to `wake`.
    pub fn put(&mut self, token: u64, flow: Flow<S>, wake: bool) {
        if let Some(handle) = flow.handle {
            self.tokens.insert(handle, token);
        }
        self.flows.insert(token, flow);
        if wake {
            self.due.insert(token);
        }
    }

    /// Takes a flow out, to change it or to forget it.
    pub fn take(&mut self, token: u64) -> Option<Flow<S>> {
        let flow = self.flows.remove(&token)?;
        if let Some(handle) = flow.handle {
            self.tokens.remove(&handle);
        }
        Some(flow)
    }

    /// A flow, to look at.
    pub fn find(&self, token: u64) -> Option<&Flow<S>> {
        self.flows.get(&token)
    }

    /// All flows.
    pub fn flows(&self) -> impl Iterator<Item = (u64, &Flow<S>)> {
        self.flows.iter().map(|(token, flow)| (*token, flow))
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// The flow has something to do.
    pub fn wake(&mut self, token: u64) {
        self.due.insert(token);
    }

    /// The flow has something to do at `at`.
    pub fn alarm(&mut self, at: Instant, token: u64) {
        self.alarms.insert((at, token));
    }

    /// Removes the alarm of a flow that has nothing to do then any more.
    pub fn disarm(&mut self, at: Instant, token: u64) {
        self.alarms.remove(&(at, token));
    }

    /// A connection with the context to use it.
    pub fn with<T>(
        &mut self,
        now: Instant,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let stats = &mut self.stats;
        self.engine.with(now, stats, |endpoint, cx| Some(act(endpoint.connection_mut(handle)?, cx)))
    }

    /// Moves what can be moved between a flow's socket and its connection. False if that is over: all has been moved, or the socket
    /// failed and the connection is aborted.
    pub fn exchange(&mut self, now: Instant, token: u64, handle: Handle, relay: &mut Relay, buffer: &mut [u8]) -> bool {
        match self.with(now, handle, |connection, cx| relay.exchange(now, connection, cx, buffer)) {
            Some(Progress::Done) => return false,
            Some(Progress::Failed) => {
                self.with(now, handle, |connection, cx| connection.abort(cx));
                return false;
            }
            Some(Progress::Fails(until)) => self.alarm(until, token),
            Some(Progress::More) => self.wake(token),
            Some(Progress::Waits) | None => {}
        }
        true
    }

    /// The peer has shown that it does not know the connection. True once.
    pub fn is_forgotten(&mut self, handle: Handle) -> bool {
        self.forgotten.remove(&handle)
    }

    /// The peer knows no connection any more that was open: it began again. One that is being opened it may yet learn of.
    fn forget(&mut self) {
        let endpoint = &self.engine.endpoint;
        let was_open = |handle: &Handle| endpoint.connection(*handle).is_some_and(Connection::is_multipath);
        let lost = self.tokens.iter().filter(|(handle, _)| was_open(handle));
        for (handle, token) in lost {
            self.forgotten.insert(*handle);
            self.due.insert(*token);
        }
    }

    /// Takes note of a packet that says that its receiver knows no such connection: a reset with this reason answers MP_JOIN
    /// with an unknown token (RFC 8684 §3.2). A connection that is open over another path is not forgotten, and a reset that its
    /// subflow has not accepted (RFC 9293 §3.10.7.3) says nothing: anyone may have sent it.
    fn note_refusal(&mut self, handle: Handle, packet: &Packet) {
        let unknown = |option: &MptcpOption| matches!(option, MptcpOption::TcpRst(Reason { code: 1, .. }));
        let options = packet.segment.options.mptcp();
        if packet.segment.flags.has(Flags::RST)
            && self.side == Side::Client
            && options.iter().any(unknown)
            && let Some(connection) = self.engine.endpoint.connection(handle)
            && !connection.subflows().any(|(_, ends, state)| state.is_synchronized() || is_open(packet, ends, state))
        {
            self.forgotten.insert(handle);
        }
    }

    /// On all connections, segments over a path have at most so many bytes of payload.
    pub fn set_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        for handle in self.handles() {
            self.with(now, handle, |connection, _| connection.set_mss(path, mss));
        }
    }

    /// Opens a connection.
    pub fn connect(&mut self, now: Instant, setup: anabranch_engine::connection::Setup) -> Handle {
        let stats = &mut self.stats;
        self.engine.with(now, stats, |endpoint, cx| endpoint.connect(cx, setup))
    }

    /// The flows that have something to do now.
    pub fn due(&mut self, now: Instant, ready: &mut dyn FnMut(&mut S, Readiness)) -> Vec<u64> {
        let Self { flows, due, poller, .. } = self;
        while poller.poll(|token, readiness| {
            if let Some(flow) = flows.get_mut(&token) {
                ready(&mut flow.stage, readiness);
            }
            due.insert(token);
        }) {}
        while let Some(handle) = self.engine.endpoint.poll_news() {
            due.extend(self.tokens.get(&handle));
        }
        while let Some((_, token)) = self.alarms.first().copied().filter(|(at, _)| *at <= now) {
            self.alarms.pop_first();
            due.insert(token);
        }
        core::mem::take(due).into_iter().collect()
    }

    /// Segments of peers that broke a rule, by rule.
    pub fn violations(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        self.stats.violations.iter().map(|(rule, count)| (format!("violation: {rule}"), *count))
    }

    /// Ends all connections at once: their peers need not wait for what does not come.
    pub fn abort(&mut self, now: Instant) {
        for handle in self.handles() {
            self.with(now, handle, |connection, cx| connection.abort(cx));
        }
    }

    /// The connections of all flows.
    pub fn handles(&self) -> Vec<Handle> {
        self.tokens.keys().copied().collect()
    }

    /// The state of each path, of all flows together; `address` says where a path goes.
    pub fn paths(&self, now: Instant, address: &dyn Fn(PathId) -> Option<String>) -> Vec<PathState> {
        let connections = self.tokens.keys().filter_map(|handle| self.engine.endpoint.connection(*handle));
        let subflows = connections.flat_map(|connection| {
            let view = move |(id, FourTuple { local, remote }, _)| {
                Some((place_of(local.ip(), remote.ip())?, *connection.view().path(id)?))
            };
            connection.subflows().filter_map(view)
        });
        let views: Vec<_> = subflows.collect();
        let sent: u64 = self.stats.sent.values().map(|path| path.sent_bytes).sum();
        let state = |id: PathId| {
            let stats = self.stats.sent.get(&id).copied().unwrap_or_default();
            let paths = || views.iter().filter(|(place, _)| *place == id).map(|(_, path)| path);
            let received = self.stats.received.get(&id).copied().unwrap_or_default();
            Some(PathState {
                path: id.0,
                address: address(id)?,
                srtt_s: paths().filter_map(|path| path.srtt).min().map(Duration::as_secs_f64),
                rate_bps: stats.rate_bps(now),
                sent_bytes: stats.sent_bytes,
                share: stats.sent_bytes as f64 / sent.max(1) as f64,
                loss_ratio: stats.retransmitted as f64 / stats.packets.max(1) as f64,
                cwnd_packets: paths().map(|path| u64::from(path.cwnd)).sum(),
                in_flight_packets: paths().map(|path| u64::from(path.in_flight)).sum(),
                received_bytes: received.sent_bytes,
                received_bps: received.rate_bps(now),
            })
        };
        (0..MAX_PATHS as u8).map(PathId).filter_map(state).collect()
    }
}

/// The path of packets between these addresses: the one of its ends that a link gave to a path names it.
fn place_of(one: IpAddr, other: IpAddr) -> Option<PathId> {
    path_of(one).or_else(|| path_of(other))
}

/// The packet is for this subflow, which exists still.
fn is_open(packet: &Packet, ends: FourTuple, state: State) -> bool {
    let local = SocketAddr::from((packet.dst, packet.segment.dst_port));
    let remote = SocketAddr::from((packet.src, packet.segment.src_port));
    ends == FourTuple { local, remote } && state != State::Closed
}

/// Events of a connection that a flow acts on. Other events say only that there is something to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionUpdate {
    /// The first subflow is established.
    pub established: bool,
    /// The connection ended.
    pub closed: Option<CloseReason>,
}

impl ConnectionUpdate {
    /// The events of a connection since the last time.
    pub fn of(connection: &mut Connection) -> Self {
        let mut update = Self::default();
        while let Some(event) = connection.poll_event() {
            match event {
                ConnectionEvent::Established => update.established = true,
                ConnectionEvent::Closed(why) => update.closed = Some(why),
                _ => {}
            }
        }
        update
    }
}

impl<S> ConnectionTable<S> {
    fn receive(&mut self, now: Instant, packet: &Packet) {
        self.stats.note(now, packet);
        let stats = &mut self.stats;
        let handle = self.engine.with(now, stats, |endpoint, cx| endpoint.handle_packet(cx, packet));
        if let Some(handle) = handle {
            self.note_refusal(handle, packet);
        }
        self.due.extend(handle.and_then(|handle| self.tokens.get(&handle)));
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.engine.poll_timeout() <= now {
            self.engine.handle_timeout(now, &mut self.stats);
        }
    }

    fn poll_timeout(&mut self) -> Instant {
        let alarm = self.alarms.first().map_or(Instant::MAX, |(at, _)| *at);
        let due = if self.due.is_empty() { Instant::MAX } else { Instant::ZERO };
        self.engine.poll_timeout().min(alarm).min(due)
    }
}

/// An end of proxied connections, which [`ProxyStation`] makes a station by its table.
pub(crate) trait ProxyEnd {
    /// How far its flows are.
    type Stage;
    /// Flows of this end.
    fn table(&self) -> &ConnectionTable<Self::Stage>;
    /// The same, to change them.
    fn table_mut(&mut self) -> &mut ConnectionTable<Self::Stage>;
    /// Takes the next steps of flows that have something to do. False if there was none.
    fn serve(&mut self, now: Instant) -> bool;
    /// See [`Station::set_max_packet`].
    fn set_max_packet(&mut self, _now: Instant, _path: PathId, _bytes: usize) {}
}

/// The station of such an end.
#[derive(Debug)]
pub(crate) struct ProxyStation<T>(pub T);

/// The loop with one such station.
pub(crate) type ProxyDriver<L, T> = Driver<L, (), ProxyStation<T>>;

impl<T: ProxyEnd> Station for ProxyStation<T> {
    fn receive(&mut self, now: Instant, _: &mut dyn Recorder, packet: &Packet) {
        self.0.table_mut().receive(now, packet);
    }

    fn transmit_into(&mut self, now: Instant, _: &mut dyn Recorder, packet: &mut Packet) -> bool {
        let ConnectionTable { engine, stats, .. } = self.0.table_mut();
        let sends = engine.transmit_into(now, stats, packet);
        if sends {
            stats.leaves(now, packet);
        }
        sends
    }

    fn handle_timeout(&mut self, now: Instant, _: &mut dyn Recorder) {
        self.0.table_mut().handle_timeout(now);
    }

    fn poll_timeout(&mut self) -> Instant {
        self.0.table_mut().poll_timeout()
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        self.0.set_max_packet(now, path, bytes);
    }

    fn forget(&mut self) {
        self.0.table_mut().forget();
    }

    fn work(&mut self, now: Instant) -> bool {
        self.0.serve(now)
    }

    fn add_inputs<'a>(&'a self, inputs: &mut Vec<BorrowedFd<'a>>) {
        inputs.push(self.0.table().poller.input());
    }
}

/// The load of each path, all connections together.
#[derive(Debug, Default)]
struct TrafficStats {
    sent: BTreeMap<PathId, PathStats>,
    /// Payload that came, where [`PathStats`] has what was sent.
    received: BTreeMap<PathId, PathStats>,
    /// The payload of the packet that is about to leave, and whether it is retransmitted.
    leaving: Option<(u64, bool)>,
    /// Segments that break a rule, by the name of the rule.
    violations: BTreeMap<String, u64>,
}

impl TrafficStats {
    /// A packet leaves.
    fn leaves(&mut self, now: Instant, packet: &Packet) {
        let Some((bytes, again)) = self.leaving.take() else { return };
        if let Some(path) = place_of(packet.src, packet.dst) {
            let sent = self.sent.entry(path).or_default();
            sent.add(now, bytes);
            sent.retransmitted += u64::from(again);
        }
    }

    /// A packet came.
    fn note(&mut self, now: Instant, packet: &Packet) {
        if let Some(path) = place_of(packet.dst, packet.src) {
            self.received.entry(path).or_default().add(now, packet.segment.payload.len() as u64);
        }
    }
}

impl Recorder for TrafficStats {
    fn record(&mut self, _: Instant, _: Origin, event: &Event) {
        match event {
            Event::Violation(rule) => *self.violations.entry(format!("{rule:?}")).or_default() += 1,
            Event::DataSent { data, kind, .. } => {
                self.leaving = Some((data.len(), *kind == SendKind::Retransmission));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::ConnectionSettings;
    use anabranch_engine::connection::PathSetup;
    use anabranch_scenario::PlugIn;
    use anabranch_units::SeqNumber;
    use anabranch_wire::Segment;

    /// The peer's reset with the reason for an unknown token, in answer to the segment of `ours`; it acknowledges `ack`.
    fn reset(ours: &Packet, ack: SeqNumber) -> Packet {
        let Segment { src_port, dst_port, .. } = ours.segment;
        let flags = Flags(Flags::RST.0 | Flags::ACK.0);
        let mut segment = Segment { src_port: dst_port, dst_port: src_port, ack, flags, ..Segment::default() };
        assert!(segment.options.push_mptcp(MptcpOption::TcpRst(Reason { code: 1, transient: false })));
        Packet { src: ours.dst, dst: ours.src, segment }
    }

    #[test]
    fn a_peer_has_forgotten_a_connection_if_its_subflow_accepts_the_reset() {
        let mut table: ConnectionTable<()> = ConnectionTable::new(Endpoint::new(4), Side::Client).unwrap();
        let congestion = PlugIn { name: "cubic".to_owned(), parameters: Vec::new() };
        let connections = ConnectionSettings { congestion, orphan_timeout: Duration::from_secs(60), ecn: true };
        let ends = FourTuple { local: ([10, 1, 2, 1], 1_024).into(), remote: ([10, 1, 2, 129], 2).into() };
        let setup = connections.setup(1 << 16, vec![PathSetup::new(PathId(0), ends)]).unwrap();
        let (now, mut syn) = (Instant::from_millis(1), Packet::default());
        let handle = table.connect(now, setup);
        while table.engine.transmit_into(now, &mut (), &mut syn) {}
        assert!(syn.segment.flags.has(Flags::SYN));
        // Anyone may have sent it (RFC 9293 §3.10.7.3).
        table.receive(now, &reset(&syn, syn.segment.seq.at(2)));
        assert!(!table.is_forgotten(handle));
        table.receive(now, &reset(&syn, syn.segment.seq.at(1)));
        assert!(table.is_forgotten(handle) && !table.is_forgotten(handle), "once");
    }
}
