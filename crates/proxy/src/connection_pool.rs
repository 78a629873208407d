//! Connections that wait for a program: a new one of a program costs no handshake, and has all paths.

use crate::buffer_budget::{BufferBudget, BufferReservation};
use crate::connection_table::{ConnectionTable, Flow, NO_FLOW};
use crate::message::{ClientMessage, MessageReader, Refusal, VERSION, framed};
use crate::routes::Routes;
use crate::setup::ConnectionSettings;
use crate::tunnel_stage::TunnelStage;
use anabranch_engine::endpoint::Handle;
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Connections that wait.
const WARM: usize = 8;
/// The first and the longest pause after a connection was lost that waited.
const PAUSES: std::ops::Range<Duration> = Duration::from_secs(1)..Duration::from_secs(30);

/// Connections that wait, the oldest first.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    waiting: VecDeque<u64>,
    server: SocketAddr,
    connections: ConnectionSettings,
    budget: BufferBudget,
    /// The server has welcomed a connection.
    welcomed: bool,
    /// The reason for which it last refused one.
    pub refused: Option<Refusal>,
    /// After a failure: no connection is opened to wait before then, and how much later the next time.
    pause: Option<(Instant, Duration)>,
}

/// A connection for a program.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    pub handle: Handle,
    pub reservation: BufferReservation,
    pub frames: MessageReader,
    /// The connection had waited.
    pub waited: bool,
}

impl ConnectionPool {
    /// Without connections to `server`.
    pub fn new(server: SocketAddr, connections: ConnectionSettings) -> Self {
        let budget = BufferBudget::whole();
        Self { waiting: VecDeque::new(), server, connections, budget, welcomed: false, refused: None, pause: None }
    }

    /// The far end of its connections.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// A connection was welcomed.
    pub fn welcome(&mut self) {
        (self.welcomed, self.pause) = (true, None);
    }

    /// A connection that waited is lost: the next attempts wait longer and longer.
    pub fn fail(&mut self, now: Instant) {
        if self.pause.is_none_or(|(until, _)| now >= until) {
            let wait = self.pause.map_or(PAUSES.start, |(_, wait)| (wait * 2).min(PAUSES.end));
            self.pause = Some((now + wait, wait));
        }
    }

    /// The server's first answer.
    pub fn answer(&self) -> Option<Result<(), Refusal>> {
        if self.welcomed { Some(Ok(())) } else { self.refused.map(Err) }
    }

    /// A connection for a program: one that was greeted, one that was begun, or a new one. `None` if there is no memory left.
    pub fn draw(
        &mut self,
        now: Instant,
        table: &mut ConnectionTable<TunnelStage>,
        routes: &Routes,
    ) -> Option<PooledConnection> {
        let ready =
            |token: &u64| table.find(*token).is_some_and(|flow| matches!(flow.stage, TunnelStage::Warm(_, true)));
        let place = self.waiting.iter().position(ready).unwrap_or(0);
        while let Some(token) = self.waiting.remove(place).or_else(|| self.waiting.pop_front()) {
            let flow = table.take(token);
            if let Some(Flow {
                handle: Some(handle),
                reservation: Some(reservation),
                stage: TunnelStage::Warm(frames, _),
            }) = flow
            {
                return Some(PooledConnection { handle, reservation, frames, waited: true });
            }
        }
        let (handle, reservation) = self.connect(now, table, routes)?;
        Some(PooledConnection { handle, reservation, frames: MessageReader::default(), waited: false })
    }

    /// Opens connections in the place of those that were drawn or lost.
    pub fn refill(&mut self, now: Instant, table: &mut ConnectionTable<TunnelStage>, routes: &Routes) {
        let waits = |token: &u64| table.find(*token).is_some_and(|flow| matches!(flow.stage, TunnelStage::Warm(..)));
        self.waiting.retain(waits);
        if let Some((until, _)) = self.pause.filter(|(until, _)| now < *until) {
            return table.alarm(until, NO_FLOW);
        }
        while self.waiting.len() < WARM
            && routes.any()
            && let Some((handle, reservation)) = self.connect(now, table, routes)
        {
            let token = table.token();
            let stage = TunnelStage::Warm(MessageReader::default(), false);
            table.put(token, Flow { handle: Some(handle), reservation: Some(reservation), stage }, true);
            self.waiting.push_back(token);
        }
    }

    /// Aborts what waits.
    pub fn forget(&mut self, now: Instant, table: &mut ConnectionTable<TunnelStage>) {
        for token in self.waiting.drain(..) {
            if let Some(flow) = table.take(token) {
                if let Some(handle) = flow.handle {
                    table.with(now, handle, |connection, cx| connection.abort(cx));
                }
                table.put(token, Flow { stage: TunnelStage::Over, ..flow }, true);
            }
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        table: &mut ConnectionTable<TunnelStage>,
        routes: &Routes,
    ) -> Option<(Handle, BufferReservation)> {
        let each = self.budget.offer()?;
        let reservation = self.budget.take(each)?;
        let paths = routes.fresh(self.server, None)?;
        let handle = table.connect(now, self.connections.setup(each, paths)?);
        let hello = framed(&ClientMessage::Hello { version: VERSION }).ok()?;
        table.with(now, handle, |connection, cx| connection.write(cx, hello.into()));
        Some((handle, reservation))
    }
}
