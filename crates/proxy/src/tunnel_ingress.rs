//! The client's end: programs connect to it, and it hands their connections to the server.

use crate::connection_pool::ConnectionPool;
use crate::connection_table::{ConnectionUpdate, FIRST_FLOW, Flow};
use crate::daemon::IngressEnd;
use crate::ingress::{Ingress, reason};
use crate::listeners::Listeners;
use crate::message::{MessageReader, Refusal, ServerMessage};
use crate::negotiation::NegotiationStep;
use crate::pending_request::{PendingRequest, RequestOutcome};
use crate::routes::Routes;
use crate::rules::Rules;
use crate::tunnel_stage::TunnelStage;
use anabranch_engine::endpoint::Handle;
use anabranch_link::LinkError;
use anabranch_trace::CloseReason;
use anabranch_units::{Instant, PathId};
use std::net::SocketAddr;

/// The proxy's station.
#[derive(Debug)]
pub(crate) struct TunnelIngress {
    ingress: Ingress<TunnelStage>,
    pool: ConnectionPool,
}

impl TunnelIngress {
    /// For programs at `listeners`; `pool` has the connections to `server`.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(
        listeners: Listeners,
        rules: Rules,
        routes: Routes,
        server: SocketAddr,
        pool: ConnectionPool,
    ) -> Result<Self, LinkError> {
        Ok(Self { ingress: Ingress::new(listeners, rules, routes, Some(server))?, pool })
    }

    /// The server's first answer: it serves proxies, or why it does not.
    pub fn answer_of_server(&self) -> Option<Result<(), Refusal>> {
        self.pool.answer()
    }

    /// Accepts programs at a listener.
    fn accept(&mut self, now: Instant, place: u64) {
        while let Some((token, negotiated)) = self.ingress.accept(now, place) {
            let flow = self.negotiated(now, token, negotiated);
            self.ingress.table.put(token, flow, true);
        }
    }

    /// A program without a connection.
    fn negotiated(&mut self, now: Instant, token: u64, negotiated: NegotiationStep) -> Flow<TunnelStage> {
        let stage = match negotiated {
            NegotiationStep::Wants(request) => return self.ask(now, token, PendingRequest::new(request)),
            NegotiationStep::Waits(negotiation) => TunnelStage::Negotiating(negotiation),
            NegotiationStep::Refused(relay) => TunnelStage::Ending(relay),
            NegotiationStep::Gone => TunnelStage::Over,
        };
        Flow { handle: None, reservation: None, stage }
    }

    /// Takes the next step of a flow.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(Flow { handle, reservation, stage }) = self.ingress.table.take(token) else { return };
        let forgotten = handle.filter(|handle| self.ingress.table.is_forgotten(*handle));
        if let Some(handle) = forgotten {
            // The server began again, or gave it up. So it may be with the others that wait.
            self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
            self.pool.forget(now, &mut self.ingress.table);
        }
        let news =
            handle.map(|handle| self.ingress.table.with(now, handle, |connection, _| ConnectionUpdate::of(connection)));
        if let (Some(Some(ConnectionUpdate { established: true, .. })), Some(handle)) = (news, handle) {
            // The race is over. The others are joined from ports of our choice, as soon as the server has said something.
            self.ingress.follow(now, handle, &stage);
        }
        let end = news.map(|news| news.map(|news| news.closed));
        let mut flow = match (end, handle, stage) {
            (Some(Some(None)), Some(handle), stage) => {
                let flow = Flow { handle: Some(handle), reservation, stage: TunnelStage::Over };
                self.advance(now, token, handle, flow, stage)
            }
            (Some(end), Some(handle), TunnelStage::Requesting(pending)) => {
                self.unanswered(now, token, handle, *pending, end.flatten())
            }
            (Some(end), Some(handle), stage) => {
                let why = end.flatten();
                if let (TunnelStage::Relaying(..), Some(why)) =
                    (&stage, why.filter(|why| *why != CloseReason::Finished))
                {
                    let why = if forgotten.is_some() { "forgotten by the server" } else { reason(why) };
                    self.ingress.count_cut(why);
                }
                if matches!(stage, TunnelStage::Warm(..)) {
                    self.pool.fail(now);
                }
                let stage = match stage {
                    TunnelStage::Relaying(relay, _) => {
                        TunnelStage::Ending(self.ingress.farewell(now, token, handle, relay, why))
                    }
                    _ => TunnelStage::Over,
                };
                Flow { handle: None, reservation, stage }
            }
            (_, _, TunnelStage::Negotiating(negotiation)) => {
                let negotiated = self.ingress.negotiate(now, token, negotiation);
                self.negotiated(now, token, negotiated)
            }
            (_, _, stage) => Flow { handle: None, reservation, stage },
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
        flow: Flow<TunnelStage>,
        stage: TunnelStage,
    ) -> Flow<TunnelStage> {
        let stage = match stage {
            TunnelStage::Warm(frames, greeted) => self.warm(now, handle, frames, greeted),
            TunnelStage::Requesting(pending) => return self.answer(now, token, handle, flow, *pending),
            TunnelStage::Relaying(mut relay, target) => {
                let Ingress { table, buffer, .. } = &mut self.ingress;
                let goes_on = table.exchange(now, token, handle, &mut relay, buffer);
                if goes_on { TunnelStage::Relaying(relay, target) } else { TunnelStage::Over }
            }
            TunnelStage::Over => {
                self.ingress.table.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                TunnelStage::Over
            }
            stage => stage,
        };
        Flow { stage, ..flow }
    }

    /// A connection that waits receives the greeting, and nothing else.
    fn warm(&mut self, now: Instant, handle: Handle, mut frames: MessageReader, mut greeted: bool) -> TunnelStage {
        let ended = self.ingress.table.with(now, handle, |connection, cx| {
            while let Some(bytes) = connection.read(cx) {
                frames.push(&bytes);
            }
            connection.read_finished()
        });
        let fits = match frames.next_message::<ServerMessage>() {
            Ok(Some(ServerMessage::Welcome)) => {
                self.pool.welcome();
                !core::mem::replace(&mut greeted, true)
            }
            Ok(Some(ServerMessage::Refused(why))) => {
                self.pool.refused = Some(why);
                false
            }
            Ok(None) => frames.buffered() == 0 || !greeted,
            _ => false,
        };
        if !fits || ended == Some(true) {
            self.pool.fail(now);
            self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
            return TunnelStage::Over;
        }
        TunnelStage::Warm(frames, greeted)
    }

    /// Asks the server for a target, over a connection that waits if there is one.
    fn ask(&mut self, now: Instant, token: u64, mut pending: PendingRequest) -> Flow<TunnelStage> {
        let Ingress { table, rules, routes, .. } = &mut self.ingress;
        let Some(warm) = self.pool.draw(now, table, routes) else {
            let why = if routes.any() { Refusal::TooMany } else { Refusal::NetworkUnreachable };
            return self.fail(pending, why);
        };
        let treatment = rules.of(&pending.request.target);
        let server = self.pool.server();
        let asked = table.with(now, warm.handle, |connection, cx| {
            routes.treat(connection, cx, treatment, server);
            let open = routes.open(&pending.request.target, treatment);
            pending.ask(now, connection, cx, warm.frames, open, warm.waited)
        });
        if asked != Some(true) {
            return self.fail(pending, Refusal::Unknown);
        }
        table.alarm(pending.until, token);
        Flow {
            handle: Some(warm.handle),
            reservation: Some(warm.reservation),
            stage: TunnelStage::Requesting(Box::new(pending)),
        }
    }

    /// The connection of a request has ended, and `why`. The answer may have come before.
    fn unanswered(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        mut pending: PendingRequest,
        why: Option<CloseReason>,
    ) -> Flow<TunnelStage> {
        let read = self
            .ingress
            .table
            .with(now, handle, |connection, cx| (pending.hear(now, connection, cx), pending.has_arrived(connection)));
        match read {
            Some((RequestOutcome::Opened(rest), _)) => {
                let (relay, _) = pending.opened(rest);
                let stage = TunnelStage::Ending(self.ingress.farewell(now, token, handle, relay, why));
                Flow { handle: None, reservation: None, stage }
            }
            Some((RequestOutcome::Refused(why), _)) => self.fail(pending, why),
            Some((_, false)) if pending.may_repeat() => self.ask(now, token, pending),
            _ => self.fail(pending, Refusal::HostUnreachable),
        }
    }

    /// Reads the server's answer.
    fn answer(
        &mut self,
        now: Instant,
        token: u64,
        handle: Handle,
        flow: Flow<TunnelStage>,
        mut pending: PendingRequest,
    ) -> Flow<TunnelStage> {
        if pending.request.relay.is_over() {
            self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
            return flow;
        }
        let heard = self.ingress.table.with(now, handle, |connection, cx| pending.hear(now, connection, cx));
        match heard {
            Some(RequestOutcome::Nothing) => Flow { stage: TunnelStage::Requesting(Box::new(pending)), ..flow },
            Some(RequestOutcome::Opened(rest)) => {
                let (relay, target) = pending.opened(rest);
                self.ingress.table.wake(token);
                Flow { stage: TunnelStage::Relaying(relay, target), ..flow }
            }
            Some(RequestOutcome::Refused(why)) => {
                self.ingress.table.with(now, handle, |connection, cx| connection.finish(cx));
                self.ingress.leave(flow);
                self.fail(pending, why)
            }
            // The server must not begin it any more.
            heard => {
                self.ingress.table.with(now, handle, |connection, cx| connection.abort(cx));
                self.ingress.leave(flow);
                self.fail(
                    pending,
                    if let Some(RequestOutcome::Nonsense(why)) = heard { why } else { Refusal::TimedOut },
                )
            }
        }
    }

    /// Nothing came of a request.
    fn fail(&mut self, pending: PendingRequest, why: Refusal) -> Flow<TunnelStage> {
        Flow { handle: None, reservation: None, stage: TunnelStage::Ending(self.ingress.refuse(pending.request, why)) }
    }
}

/// A flow without a connection has still something to do.
fn is_open(stage: &mut TunnelStage, now: Instant) -> bool {
    match stage {
        TunnelStage::Negotiating(_) => true,
        TunnelStage::Ending(relay) => relay.is_ending(now),
        _ => false,
    }
}

impl IngressEnd for TunnelIngress {
    type Stage = TunnelStage;

    fn ingress(&self) -> &Ingress<TunnelStage> {
        &self.ingress
    }

    fn ingress_mut(&mut self) -> &mut Ingress<TunnelStage> {
        &mut self.ingress
    }

    fn serve(&mut self, now: Instant) -> bool {
        let due = self.ingress.due(now);
        for token in &due {
            match *token < FIRST_FLOW {
                true => self.accept(now, *token),
                false => self.step(now, *token),
            }
        }
        let Ingress { table, routes, .. } = &mut self.ingress;
        self.pool.refill(now, table, routes);
        !due.is_empty()
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        let mss = self.ingress.routes.set_max_packet(path, bytes);
        self.ingress.table.set_mss(now, path, mss);
    }
}
