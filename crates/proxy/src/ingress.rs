//! The client's end of proxied connections, whatever carries them: which programs come, by which rules and over which paths, how it ends.

use crate::connection_table::{ConnectionTable, Flow};
use crate::denied_targets::DeniedTargets;
use crate::listeners::{Accepted, ListenerKind, Listeners};
use crate::message::Refusal;
use crate::negotiation::{Negotiation, NegotiationStep, ProgramRequest};
use crate::pending_programs::{PendingProgram, PendingPrograms, ProgramOrigin};
use crate::relay::Relay;
use crate::routes::Routes;
use crate::rules::Rules;
use crate::target::Target;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_link::{ClientStatus, LinkError, PathState, Quota};
use anabranch_trace::CloseReason;
use anabranch_units::{Duration, Instant, PathId, Side};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Connections, those in TIME-WAIT included.
pub(super) const CONNECTIONS: usize = 8_192;
/// Connections with programs, and those that wait for one.
pub(crate) const FLOWS: usize = 4_096;
/// Flows that programs of other hosts may have: the rest is for programs of this one.
const REMOTE: u64 = 3_072;
/// When the system has no file descriptor left, the next attempt to accept a program.
const LATER: Duration = Duration::from_millis(100);

/// How far a flow is.
pub(crate) trait FlowStage {
    /// The target, if there is one.
    fn target(&self) -> Option<&Target>;
    /// The program's socket.
    fn relay(&mut self) -> Option<&mut Relay>;
    /// The program and its target exchange bytes.
    fn is_relaying(&self) -> bool;
    /// The far end of its connection, if connections have different ones.
    fn remote(&self) -> Option<SocketAddr> {
        None
    }
}

/// Programs and their flows, without what carries the connections.
#[derive(Debug)]
pub(crate) struct Ingress<S> {
    pub table: ConnectionTable<S>,
    pub rules: Rules,
    pub routes: Routes,
    pub buffer: Vec<u8>,
    /// The far end of all connections, if it is one.
    server: Option<SocketAddr>,
    listeners: Listeners,
    /// Programs that negotiate.
    pending: PendingPrograms,
    /// Places for programs of other hosts.
    remote: Quota,
    /// Programs that had to go from there.
    crowded_out: u64,
    /// Requests that came to nothing.
    refused: BTreeMap<Refusal, u64>,
    /// Targets among these that are not public, for the user.
    denied: DeniedTargets,
    /// Relayed connections that were cut off.
    cut_off: BTreeMap<&'static str, u64>,
}

impl<S: FlowStage> Ingress<S> {
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
        let table = ConnectionTable::new(Endpoint::new(CONNECTIONS), Side::Client)?;
        listeners.register(&table.poller)?;
        let (pending, remote, crowded_out) = (PendingPrograms::default(), Quota::new(REMOTE), 0);
        let (buffer, refused, cut_off) = (vec![0; 64 << 10], BTreeMap::new(), BTreeMap::new());
        let denied = DeniedTargets::default();
        Ok(Self {
            table,
            rules,
            routes,
            buffer,
            server,
            listeners,
            pending,
            remote,
            crowded_out,
            refused,
            denied,
            cut_off,
        })
    }

    /// From now on the rules are these. Connections that exist follow them with what they send, and by their backup flags with what they
    /// receive.
    pub fn set_rules(&mut self, now: Instant, rules: Rules) {
        self.rules = rules;
        let open = |stage: &S| Some((stage.target()?.clone(), self.remote(stage)?));
        let open = self.table.flows().filter_map(|(_, flow)| Some((flow.handle?, open(&flow.stage)?)));
        for (handle, (target, remote)) in open.collect::<Vec<_>>() {
            let (rules, routes) = (&self.rules, &self.routes);
            self.table.with(now, handle, |connection, cx| routes.treat(connection, cx, rules.of(&target), remote));
        }
    }

    /// The paths that can be used, the best one first. Connections leave the others, and join those that are new.
    pub fn set_present(&mut self, now: Instant, present: Vec<PathId>) {
        if !self.routes.set(present) {
            return;
        }
        self.each(|ingress, handle, stage| ingress.follow(now, handle, stage));
    }

    /// Relayed connections have other subflows over these paths, which have other addresses; one that has fallen back to plain TCP, whose
    /// ends cannot change, is ended.
    pub fn renew(&mut self, now: Instant, paths: &[PathId]) {
        self.each(|ingress, handle, stage| {
            let Some(remote) = ingress.remote(stage).filter(|_| stage.is_relaying()) else { return };
            let treatment = stage.target().map(|target| ingress.rules.of(target));
            let routes = &ingress.routes;
            ingress.table.with(now, handle, |connection, cx| routes.renew(connection, cx, paths, treatment, remote));
        });
    }

    fn each(&mut self, act: impl Fn(&mut Self, Handle, &S)) {
        let open: Vec<u64> = self.table.flows().filter(|(_, flow)| flow.handle.is_some()).map(|(n, _)| n).collect();
        for token in open {
            let Some(flow) = self.table.take(token) else { continue };
            if let Some(handle) = flow.handle {
                act(self, handle, &flow.stage);
            }
            self.table.put(token, flow, true);
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
        let (routes, relaying, has_server) = (&self.routes, stage.is_relaying(), self.server.is_some());
        self.table.with(now, handle, |connection, cx| {
            // Before the server has acknowledged anything, no other path can be joined (RFC 8684 §3.1). The connection ends at once, so
            // that its request goes over a new one.
            if has_server && connection.view().data_acked() == 0 && routes.strands(connection) {
                connection.abort(cx);
            } else if connection.is_multipath() || !relaying {
                routes.follow(connection, cx, treatment, remote);
            }
        });
    }

    /// The state, as that of one client.
    pub fn status(&self, now: Instant, name: &str) -> ClientStatus {
        let relayed = self.table.flows().filter(|(_, flow)| flow.stage.is_relaying());
        let paths: Vec<PathState> = self.table.paths(now, &|id| self.routes.name(id).map(str::to_owned));
        let scheduler = Some(self.rules.usual().scheduler.with_parameters());
        ClientStatus { name: name.to_owned(), scheduler, connections: relayed.count(), paths }
    }

    /// Programs that had to make room, requests that came to nothing, connections that were cut off, and segments that broke a rule, by
    /// reason.
    pub fn failures(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let refused = self.refused.iter().map(|(why, count)| (format!("refused: {why:?}"), *count));
        let cut_off = self.cut_off.iter().map(|(why, count)| (format!("cut off: {why}"), *count));
        let crowded_out = (self.crowded_out > 0).then(|| ("crowded out".to_owned(), self.crowded_out));
        crowded_out.into_iter().chain(refused).chain(cut_off).chain(self.table.violations())
    }

    /// Where programs reach it.
    pub fn locals(&self) -> Vec<SocketAddr> {
        self.listeners.locals().collect()
    }

    /// The next program at a listener, with the number of its flow.
    pub fn accept(&mut self, now: Instant, place: u64) -> Option<(u64, NegotiationStep)> {
        loop {
            let (accepted, kind) = self.listeners.accept(place)?;
            let (socket, from) = match accepted {
                Accepted::Program(socket, from) => (socket, ProgramOrigin::of(from)),
                Accepted::Nobody => return None,
                Accepted::Later => {
                    self.table.alarm(now + LATER, place);
                    return None;
                }
            };
            let token = self.table.token();
            let registered = self.table.poller.add(&socket, token).is_ok();
            let relay = Relay::new(socket);
            // Otherwise it is dropped with a reset.
            if registered {
                let negotiated = match kind {
                    ListenerKind::Socks { guarded } => {
                        self.welcome(token, place, from, Negotiation::new(now, relay, guarded))
                    }
                    ListenerKind::Forward(target) => {
                        self.seat(ProgramRequest { relay, target, early: Bytes::new(), socks: false }, from)
                    }
                };
                return Some((token, negotiated));
            }
        }
    }

    /// A program may negotiate. Another one may have to go for it, with a reset.
    fn welcome(
        &mut self,
        token: u64,
        listener: u64,
        origin: ProgramOrigin,
        negotiation: Negotiation,
    ) -> NegotiationStep {
        self.table.alarm(negotiation.until, token);
        if let Some(oldest) = self.pending.enter(token, PendingProgram { listener, origin, until: negotiation.until }) {
            self.leave_pending(oldest);
            self.table.take(oldest);
            self.crowded_out += 1;
        }
        NegotiationStep::Waits(negotiation)
    }

    fn leave_pending(&mut self, token: u64) -> Option<PendingProgram> {
        let program = self.pending.leave(token)?;
        self.table.disarm(program.until, token);
        Some(program)
    }

    /// A program has named its target: it gets a flow, if there is one for it.
    fn seat(&mut self, mut request: ProgramRequest, origin: ProgramOrigin) -> NegotiationStep {
        let is_full = self.table.len().saturating_sub(self.pending.len()) >= FLOWS;
        let place = match origin {
            ProgramOrigin::Local => Some(None),
            ProgramOrigin::Remote(_) => self.remote.take(1).map(Some),
        };
        let Some(place) = place.filter(|_| !is_full) else {
            return NegotiationStep::Refused(self.refuse(request, Refusal::TooMany));
        };
        request.relay.place = place;
        NegotiationStep::Wants(request)
    }

    /// Takes what a program without a target sent.
    pub fn negotiate(&mut self, now: Instant, token: u64, negotiation: Negotiation) -> NegotiationStep {
        let negotiated = negotiation.step(now, &self.listeners, &mut self.buffer);
        if matches!(negotiated, NegotiationStep::Waits(_)) {
            return negotiated;
        }
        match (self.leave_pending(token), negotiated) {
            (Some(PendingProgram { origin, .. }), NegotiationStep::Wants(request)) => self.seat(request, origin),
            (_, negotiated) => negotiated,
        }
    }

    /// Nothing came of a request.
    pub fn refuse(&mut self, request: ProgramRequest, why: Refusal) -> Relay {
        *self.refused.entry(why).or_default() += 1;
        if why == Refusal::NotAllowed {
            self.denied.note(&request.target);
        }
        request.refused(why)
    }

    /// A notice for the user, if there is something to say now.
    pub fn notice(&mut self, now: Instant) -> Option<String> {
        self.denied.notice(now)
    }

    /// A relayed connection was cut off.
    pub fn count_cut(&mut self, why: &'static str) {
        *self.cut_off.entry(why).or_default() += 1;
    }

    /// The last bytes of a connection that has ended go to its program.
    pub fn farewell(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        mut relay: Relay,
        why: Option<CloseReason>,
    ) -> Relay {
        let until = self.table.with(now, handle, |connection, cx| match why {
            Some(CloseReason::Finished) => {
                relay.drain(connection, cx);
                None
            }
            _ => Some(relay.cut(now, connection, cx)),
        });
        until.flatten().into_iter().for_each(|until| self.table.alarm(until, token));
        relay
    }

    /// The connection of a flow has no program any more, and ends on its own.
    pub fn leave(&mut self, flow: Flow<S>) {
        let token = self.table.token();
        self.table.put(token, flow, true);
    }

    /// The flows that have something to do now, and the listeners.
    pub fn due(&mut self, now: Instant) -> Vec<u64> {
        self.table.due(now, &mut |stage, readiness| {
            if let Some(relay) = stage.relay() {
                relay.set_ready(readiness);
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
