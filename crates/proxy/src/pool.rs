//! Connections that wait for a program: a new one of a program costs no handshake, and has all paths.

use crate::board::{Board, Line, NOBODY};
use crate::budget::{Budget, Part};
use crate::message::{Ask, Frames, Refusal, VERSION, framed};
use crate::routes::Routes;
use crate::setup::Common;
use crate::stage::Stage;
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
pub(crate) struct Pool {
    waiting: VecDeque<u64>,
    server: SocketAddr,
    common: Common,
    budget: Budget,
    /// The server has welcomed a connection.
    welcomed: bool,
    /// The reason for which it last refused one.
    pub refused: Option<Refusal>,
    /// After a failure: no connection is opened to wait before then, and how much later the next time.
    pause: Option<(Instant, Duration)>,
}

/// A connection for a program.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub handle: Handle,
    pub share: Part,
    pub frames: Frames,
    /// The connection had waited.
    pub waited: bool,
}

impl Pool {
    /// Without connections to `server`.
    pub fn new(server: SocketAddr, common: Common) -> Self {
        let budget = Budget::whole();
        Self { waiting: VecDeque::new(), server, common, budget, welcomed: false, refused: None, pause: None }
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
    pub fn draw(&mut self, now: Instant, board: &mut Board<Stage>, routes: &Routes) -> Option<Drawn> {
        let ready = |token: &u64| board.find(*token).is_some_and(|line| matches!(line.stage, Stage::Warm(_, true)));
        let place = self.waiting.iter().position(ready).unwrap_or(0);
        while let Some(token) = self.waiting.remove(place).or_else(|| self.waiting.pop_front()) {
            let line = board.take(token);
            if let Some(Line { handle: Some(handle), share: Some(share), stage: Stage::Warm(frames, _) }) = line {
                return Some(Drawn { handle, share, frames, waited: true });
            }
        }
        let (handle, share) = self.connect(now, board, routes)?;
        Some(Drawn { handle, share, frames: Frames::default(), waited: false })
    }

    /// Opens connections in the place of those that were drawn or lost.
    pub fn refill(&mut self, now: Instant, board: &mut Board<Stage>, routes: &Routes) {
        let waits = |token: &u64| board.find(*token).is_some_and(|line| matches!(line.stage, Stage::Warm(..)));
        self.waiting.retain(waits);
        if let Some((until, _)) = self.pause.filter(|(until, _)| now < *until) {
            return board.alarm(until, NOBODY);
        }
        while self.waiting.len() < WARM
            && routes.any()
            && let Some((handle, share)) = self.connect(now, board, routes)
        {
            let token = board.token();
            let stage = Stage::Warm(Frames::default(), false);
            board.put(token, Line { handle: Some(handle), share: Some(share), stage }, true);
            self.waiting.push_back(token);
        }
    }

    /// Aborts what waits.
    pub fn forget(&mut self, now: Instant, board: &mut Board<Stage>) {
        for token in self.waiting.drain(..) {
            if let Some(line) = board.take(token) {
                if let Some(handle) = line.handle {
                    board.with(now, handle, |connection, cx| connection.abort(cx));
                }
                board.put(token, Line { stage: Stage::Over, ..line }, true);
            }
        }
    }

    fn connect(&mut self, now: Instant, board: &mut Board<Stage>, routes: &Routes) -> Option<(Handle, Part)> {
        let each = self.budget.offer()?;
        let share = self.budget.take(each)?;
        let paths = routes.fresh(self.server, None)?;
        let handle = board.connect(now, self.common.setup(each, paths)?);
        let hello = framed(&Ask::Hello { version: VERSION }).ok()?;
        board.with(now, handle, |connection, cx| connection.write(cx, hello.into()));
        Some((handle, share))
    }
}
