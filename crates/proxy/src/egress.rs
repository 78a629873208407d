//! The server's end of clients' connections: it dials their targets. A client of ours requests its targets inside a carrier; others come to ports that have
//! one each (`published_ports.rs`).

use crate::address_filter::AddressFilter;
use crate::buffer_budget::BufferBudget;
use crate::connection_table::{ConnectionTable, ConnectionUpdate, Flow, ProxyEnd};
use crate::dial::{Dial, Dialled};
use crate::local_addresses::LocalAddresses;
use crate::message::{
    ClientMessage, LONGEST, MessageReader, OpenRequest, PORT, Refusal, ServerMessage, VERSION, framed,
};
use crate::published_ports::PublishedPorts;
use crate::relay::Relay;
use crate::request::{described, scheduler};
use crate::resolver::{Lookup, LookupLimits, NameLookups, Resolved, Resolver, unresolved};
use crate::setup::{ConnectionSettings, SegmentSizes, all_paths};
use crate::target::{Host, Target};
use anabranch_carrier::Addresses;
use anabranch_engine::Cx;
use anabranch_engine::connection::Connection;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_link::{ClientStatus, LinkError, PathState, Quota};
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
pub struct EgressSettings {
    /// Addresses that may be dialled.
    pub filter: AddressFilter,
    /// Resolves names.
    pub resolver: Resolver,
    /// Settings of the connections with clients.
    pub connections: ConnectionSettings,
    /// Bytes of buffers for all connections of all clients.
    pub memory: u64,
}

/// How far a connection of a client's is.
#[derive(Debug)]
pub(crate) enum EgressStage {
    /// The client has not said where the connection goes; greeted or not.
    AwaitingRequest(MessageReader, bool),
    /// The target's name is being resolved; the bytes are for the target.
    Resolving(u16, Bytes),
    /// The target is dialled.
    Dialling(Dial, Bytes),
    /// The connection and its target exchange bytes.
    Relaying(Relay),
    /// Nothing more is read from it.
    Over,
}

/// How targets are known.
#[derive(Debug)]
enum TargetSource {
    /// A client of ours requests them, by the messages of `message.rs`, from these addresses. The filter says which ones may be dialled.
    Requested(Addresses, AddressFilter),
    /// The owner has given each port its own.
    Published(PublishedPorts),
}

/// The station of a client of ours at the server, or that of all others.
#[derive(Debug)]
pub(crate) struct Egress {
    table: ConnectionTable<EgressStage>,
    source: TargetSource,
    lookups: NameLookups,
    budget: BufferBudget,
    dialling: usize,
    segments: SegmentSizes,
    buffer: Vec<u8>,
    /// Connections whose target could not be had.
    refused: BTreeMap<Refusal, u64>,
}

impl Egress {
    /// For a session with these addresses. `memory` is that of all clients.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub(crate) fn new(addresses: Addresses, settings: &EgressSettings, memory: &Quota) -> Result<Self, LinkError> {
        let mut endpoint = Endpoint::new(CONNECTIONS);
        let budget = BufferBudget::new(memory, settings.memory);
        let (connections, offered) = (settings.connections.clone(), budget.clone());
        let accept = move |_| connections.setup(offered.offer().unwrap_or(BARE), all_paths(addresses, Side::Server));
        if let Some(setup) = settings.connections.setup(budget.offer().unwrap_or_default(), Vec::new()) {
            endpoint.listen_for_complete(PORT, setup.settings, Box::new(accept));
        }
        let source = TargetSource::Requested(addresses, settings.filter.clone());
        Self::with(endpoint, source, budget, settings.resolver.clone(), addresses.client(PathId(0)))
    }

    /// For all that come to `published`. Segments carry at most `mss` bytes.
    ///
    /// # Errors
    /// The system has no thread or file descriptor left.
    pub(crate) fn publishing(
        published: PublishedPorts,
        connections: &ConnectionSettings,
        mss: u32,
        lookup: Lookup,
    ) -> Result<Self, LinkError> {
        let mut endpoint = Endpoint::new(CONNECTIONS);
        let budget = BufferBudget::whole();
        for port in published.ports() {
            let (of_each, offered) = (connections.clone(), budget.clone());
            let accept = move |_| of_each.direct(offered.offer().unwrap_or(BARE), mss, Vec::new());
            if let Some(setup) = connections.direct(budget.offer().unwrap_or_default(), mss, Vec::new()) {
                endpoint.listen_for_complete(port, setup.settings, Box::new(accept));
            }
        }
        let resolver =
            Resolver::with(lookup, LookupLimits::alone(DIALLING)).map_err(LinkError::system("starting threads"))?;
        Self::with(endpoint, TargetSource::Published(published), budget, resolver, Ipv4Addr::UNSPECIFIED)
    }

    fn with(
        endpoint: Endpoint,
        source: TargetSource,
        budget: BufferBudget,
        resolver: Resolver,
        client: Ipv4Addr,
    ) -> Result<Self, LinkError> {
        let table = ConnectionTable::new(endpoint, Side::Server)?;
        let lookups = NameLookups::new(resolver, client).map_err(LinkError::system("eventfd"))?;
        table.poller.add(lookups.wakeup(), NAMES).map_err(LinkError::system("epoll"))?;
        let (segments, buffer, refused) = (SegmentSizes::default(), vec![0; 64 << 10], BTreeMap::new());
        Ok(Self { table, source, lookups, budget, dialling: 0, segments, buffer, refused })
    }

    /// The state of the client `name`.
    pub fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<String>) -> ClientStatus {
        let joined = self.table.flows().filter(|(_, flow)| matches!(flow.stage, EgressStage::Relaying(_)));
        let paths: Vec<PathState> = self.table.paths(now, address);
        let scheduler = self.published().map(|published| published.scheduler().with_parameters());
        ClientStatus { name: name.to_owned(), scheduler, connections: joined.count(), paths }
    }

    /// The published ports, if clients are not ours.
    pub fn published(&self) -> Option<&PublishedPorts> {
        match &self.source {
            TargetSource::Published(published) => Some(published),
            TargetSource::Requested(..) => None,
        }
    }

    /// Connections whose target could not be had, and segments that broke a rule, by reason.
    pub fn failures(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let refused = self.refused.iter().map(|(why, count)| (format!("refused: {why:?}"), *count));
        refused.chain(self.table.violations())
    }

    /// Ends all connections at once.
    pub fn abort(&mut self, now: Instant) {
        self.table.abort(now);
    }

    /// Clients have these addresses of the published ports now, by path; on the paths `moved` they have changed.
    pub fn set_addresses(&mut self, now: Instant, there: &[Option<Ipv4Addr>], moved: &[PathId]) {
        let TargetSource::Published(published) = &mut self.source else { return };
        published.set(there);
        for handle in self.table.handles() {
            self.table.with(now, handle, |connection, cx| published.renew(connection, cx, moved));
        }
    }

    fn accept(&mut self, now: Instant, handle: Handle) {
        let each = self.table.with(now, handle, |connection, _| {
            self.segments.all().for_each(|(path, mss)| connection.set_mss(path, mss));
            // Nothing is written yet: the room is the whole buffer.
            connection.writable()
        });
        let each = each.unwrap_or_default();
        let reservation = self.budget.take(each).filter(|_| each > BARE);
        let token = self.table.token();
        let stage = match reservation {
            Some(_) => self.welcome(now, token, handle).unwrap_or_else(|why| self.refuse(now, handle, why)),
            None => self.refuse(now, handle, Refusal::TooMany),
        };
        self.dialling += usize::from(stage.is_dialling());
        self.table.put(token, Flow { handle: Some(handle), reservation, stage }, true);
    }

    /// The first stage of a connection.
    fn welcome(&mut self, now: Instant, token: u64, handle: Handle) -> Result<EgressStage, Refusal> {
        let TargetSource::Published(published) = &self.source else {
            return Ok(EgressStage::AwaitingRequest(MessageReader::default(), false));
        };
        let target = self.table.with(now, handle, |connection, cx| published.admit(connection, cx)).flatten();
        self.seek(now, token, target.ok_or(Refusal::Unknown)?, Bytes::new())
    }

    /// Takes the next step of a flow.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(mut flow) = self.table.take(token) else { return };
        let busy = flow.stage.is_dialling();
        let end = flow
            .handle
            .map(|handle| self.table.with(now, handle, |connection, _| ConnectionUpdate::of(connection).closed));
        flow.stage = match (end, flow.handle) {
            (Some(Some(None)), Some(handle)) => self.advance(now, token, handle, flow.stage),
            (Some(end), Some(handle)) => {
                let why = end.flatten();
                let rest =
                    self.table.with(now, handle, |connection, cx| farewell(now, flow.stage, why, connection, cx));
                flow.handle = None;
                let (stage, until) = rest.unwrap_or((EgressStage::Over, None));
                until.into_iter().for_each(|until| self.table.alarm(until, token));
                stage
            }
            // The connection is gone, and its last bytes wait for the socket.
            _ => flow.stage,
        };
        self.dialling = self.dialling + usize::from(flow.stage.is_dialling()) - usize::from(busy);
        if flow.handle.is_some() || flushes(&mut flow.stage, now) {
            self.table.put(token, flow, false);
        }
    }

    fn advance(&mut self, now: Instant, token: u64, handle: Handle, stage: EgressStage) -> EgressStage {
        match stage {
            EgressStage::AwaitingRequest(frames, greeted) => self.listen(now, token, handle, frames, greeted),
            EgressStage::Dialling(dial, early) => self.dialled(now, token, handle, dial, early),
            EgressStage::Relaying(mut relay) => {
                let goes_on = self.table.exchange(now, token, handle, &mut relay, &mut self.buffer);
                if goes_on { EgressStage::Relaying(relay) } else { EgressStage::Over }
            }
            EgressStage::Resolving(port, early) => EgressStage::Resolving(port, early),
            EgressStage::Over => {
                self.table.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                EgressStage::Over
            }
        }
    }

    /// Reads requests.
    fn listen(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        mut frames: MessageReader,
        mut greeted: bool,
    ) -> EgressStage {
        let ended = self.table.with(now, handle, |connection, cx| {
            while frames.buffered() <= LONGEST
                && let Some(bytes) = connection.read(cx)
            {
                frames.push(&bytes);
            }
            connection.read_finished()
        });
        loop {
            match frames.next_message::<ClientMessage>() {
                Ok(Some(ClientMessage::Hello { version: VERSION })) if !greeted => {
                    greeted = true;
                    self.say(now, handle, ServerMessage::Welcome);
                }
                Ok(Some(ClientMessage::Open(open))) if greeted => {
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
            self.table.with(now, handle, |connection, cx| connection.finish(cx));
            return EgressStage::Over;
        }
        EgressStage::AwaitingRequest(frames, greeted)
    }

    /// Begins what a request wants.
    fn open(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        open: OpenRequest,
        early: Bytes,
    ) -> Result<EgressStage, Refusal> {
        let (name, scheduler) = scheduler(&open.scheduler).ok_or(Refusal::Unknown)?;
        let TargetSource::Requested(addresses, _) = self.source else { return Err(Refusal::Unknown) };
        let path = |policy| Some(self.segments.with(described(addresses, policy)?));
        let paths = open.policies.iter().map(path).collect::<Option<Vec<_>>>();
        let paths = paths.ok_or(Refusal::Unknown)?;
        self.table.with(now, handle, |connection, cx| {
            connection.set_scheduler(cx, name, scheduler);
            paths.into_iter().for_each(|path| connection.set_path(path));
        });
        let host = open.target.host.checked().ok_or(Refusal::Unknown)?;
        self.seek(now, token, Target { host, ..open.target }, early)
    }

    /// Looks for the addresses of a target, and dials them.
    fn seek(&mut self, now: Instant, token: u64, target: Target, early: Bytes) -> Result<EgressStage, Refusal> {
        if self.dialling >= DIALLING {
            return Err(Refusal::TooMany);
        }
        match target.host {
            Host::Address(address) => {
                let admitted = self.admit(vec![address])?;
                self.dial(now, token, at_port(admitted, target.port), early)
            }
            Host::Name(name) => match self.lookups.ask(token, name) {
                true => Ok(EgressStage::Resolving(target.port, early)),
                false => Err(Refusal::TooMany),
            },
        }
    }

    /// Those of the addresses that may be dialled: all, if the owner named their target.
    fn admit(&self, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Refusal> {
        match &self.source {
            TargetSource::Requested(_, filter) => {
                let own = LocalAddresses::look().map_err(|_| Refusal::NotAllowed)?;
                filter.admit_some(found, |address| own.has(address))
            }
            TargetSource::Published(_) => Ok(found),
        }
    }

    /// Dials the first of these addresses that answers.
    fn dial(&mut self, now: Instant, token: u64, to: Vec<SocketAddr>, early: Bytes) -> Result<EgressStage, Refusal> {
        let dial = Dial::begin(now, to, &self.table.poller, token)?;
        self.table.alarm(dial.until(), token);
        Ok(EgressStage::Dialling(dial, early))
    }

    fn dialled(&mut self, now: Instant, token: u64, handle: Handle, dial: Dial, early: Bytes) -> EgressStage {
        match dial.advance(now, &self.table.poller, token) {
            Ok(Dialled::Waits(dial)) => {
                self.table.alarm(dial.until(), token);
                EgressStage::Dialling(dial, early)
            }
            Ok(Dialled::Connected(socket)) => {
                self.say(now, handle, ServerMessage::Opened);
                let mut relay = Relay::new(socket);
                relay.say(early);
                self.table.wake(token);
                EgressStage::Relaying(relay)
            }
            Err(why) => self.refuse(now, handle, why),
        }
    }

    /// A name is resolved, once: what is dialled is what was checked.
    fn resolved(&mut self, now: Instant, Resolved { token, found }: Resolved) {
        let Some(mut flow) = self.table.take(token) else { return };
        let (EgressStage::Resolving(port, _), Some(handle)) = (&flow.stage, flow.handle) else {
            return self.table.put(token, flow, true);
        };
        let port = *port;
        let EgressStage::Resolving(_, early) = core::mem::replace(&mut flow.stage, EgressStage::Over) else { return };
        let checked = |found: Vec<IpAddr>| match found.is_empty() {
            true => Err(Refusal::NoSuchName),
            false => self.admit(found),
        };
        let dial = match found.map_err(|error| unresolved(error.kind())).and_then(checked) {
            Ok(to) => self.dial(now, token, at_port(to, port), early),
            Err(why) => Err(why),
        };
        flow.stage = match dial {
            Ok(stage) => stage,
            Err(why) => {
                self.dialling -= 1;
                self.refuse(now, handle, why)
            }
        };
        self.table.put(token, flow, true);
    }

    /// Nothing comes of a connection: a client of ours gets the reason, another one a reset.
    fn refuse(&mut self, now: Instant, handle: Handle, why: Refusal) -> EgressStage {
        *self.refused.entry(why).or_default() += 1;
        self.say(now, handle, ServerMessage::Refused(why));
        let asked = self.published().is_none();
        self.table.with(now, handle, |connection, cx| if asked { connection.finish(cx) } else { connection.abort(cx) });
        EgressStage::Over
    }

    /// Answers a client of ours.
    fn say(&mut self, now: Instant, handle: Handle, answer: ServerMessage) {
        if self.published().is_some() {
            return;
        }
        // An answer has a few bytes, and is the first thing that is written.
        let frame = framed(&answer).unwrap_or_default();
        self.table.with(now, handle, |connection, cx| connection.write(cx, frame.into()));
    }
}

impl EgressStage {
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
    stage: EgressStage,
    why: Option<CloseReason>,
    connection: &mut Connection,
    cx: &mut Cx<'_>,
) -> (EgressStage, Option<Instant>) {
    let EgressStage::Relaying(mut relay) = stage else { return (EgressStage::Over, None) };
    let until = match why {
        Some(CloseReason::Finished) => {
            relay.drain(connection, cx);
            None
        }
        _ => Some(relay.cut(now, connection, cx)),
    };
    (EgressStage::Relaying(relay), until)
}

/// A socket still takes bytes of a connection that is gone.
fn flushes(stage: &mut EgressStage, now: Instant) -> bool {
    match stage {
        EgressStage::Relaying(relay) => relay.is_ending(now),
        _ => false,
    }
}

impl ProxyEnd for Egress {
    type Stage = EgressStage;

    fn table(&self) -> &ConnectionTable<EgressStage> {
        &self.table
    }

    fn table_mut(&mut self) -> &mut ConnectionTable<EgressStage> {
        &mut self.table
    }

    fn serve(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(handle) = self.table.engine.endpoint.poll_accept() {
            self.accept(now, handle);
            any = true;
        }
        let due = self.table.due(now, &mut |stage, readiness| match stage {
            EgressStage::Dialling(dial, _) => dial.set_ready(readiness),
            EgressStage::Relaying(relay) => relay.set_ready(readiness),
            _ => {}
        });
        any |= !due.is_empty();
        for token in due {
            match token {
                NAMES => {
                    self.lookups.clear_wakeup();
                    while let Some(resolved) = self.lookups.next() {
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
        self.table.set_mss(now, path, mss);
    }
}
