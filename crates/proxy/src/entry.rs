//! The client's end: programs connect to it, and it hands their connections to the server.

use crate::asking::{Asking, Heard};
use crate::board::{FIRST_LINE, Line, News};
use crate::front::Lobby;
use crate::hall::{Hall, reason};
use crate::listeners::Listeners;
use crate::message::{Answer, Frames, Refusal};
use crate::pool::Pool;
use crate::routes::Routes;
use crate::rules::Rules;
use crate::stage::Stage;
use crate::talking::Talked;
use anabranch_engine::endpoint::Handle;
use anabranch_link::LinkError;
use anabranch_trace::CloseReason;
use anabranch_units::{Instant, PathId};
use std::net::SocketAddr;

/// The proxy's station.
#[derive(Debug)]
pub(crate) struct Entry {
    hall: Hall<Stage>,
    pool: Pool,
}

impl Entry {
    /// For programs at `listeners`; `pool` has the connections to `server`.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(
        listeners: Listeners,
        rules: Rules,
        routes: Routes,
        server: SocketAddr,
        pool: Pool,
    ) -> Result<Self, LinkError> {
        Ok(Self { hall: Hall::new(listeners, rules, routes, Some(server))?, pool })
    }

    /// The server's first answer: it serves proxies, or why it does not.
    pub fn answer_of_server(&self) -> Option<Result<(), Refusal>> {
        self.pool.answer()
    }

    /// Accepts programs at a listener.
    fn accept(&mut self, now: Instant, place: u64) {
        while let Some((token, talked)) = self.hall.accept(now, place) {
            let line = self.talked(now, token, talked);
            self.hall.board.put(token, line, true);
        }
    }

    /// A program without a connection.
    fn talked(&mut self, now: Instant, token: u64, talked: Talked) -> Line<Stage> {
        let stage = match talked {
            Talked::Wants(wish) => return self.ask(now, token, Asking::new(wish)),
            Talked::Waits(talk) => Stage::Talking(talk),
            Talked::Refused(joint) => Stage::Ending(joint),
            Talked::Gone => Stage::Over,
        };
        Line { handle: None, share: None, stage }
    }

    /// Takes the next step of a line.
    fn step(&mut self, now: Instant, token: u64) {
        let Some(Line { handle, share, stage }) = self.hall.board.take(token) else { return };
        let forgotten = handle.filter(|handle| self.hall.board.is_forgotten(*handle));
        if let Some(handle) = forgotten {
            // The server began again, or gave it up. So it may be with the others that wait.
            self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
            self.pool.forget(now, &mut self.hall.board);
        }
        let news = handle.map(|handle| self.hall.board.with(now, handle, |connection, _| News::of(connection)));
        if let (Some(Some(News { established: true, .. })), Some(handle)) = (news, handle) {
            // The race is over. The others are joined from ports of our choice, as soon as the server has said something.
            self.hall.follow(now, handle, &stage);
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
                    self.hall.count_cut(why);
                }
                if matches!(stage, Stage::Warm(..)) {
                    self.pool.fail(now);
                }
                let stage = match stage {
                    Stage::Joined(joint, _) => Stage::Ending(self.hall.farewell(now, token, handle, joint, why)),
                    _ => Stage::Over,
                };
                Line { handle: None, share, stage }
            }
            (_, _, Stage::Talking(talk)) => {
                let talked = self.hall.talk(now, token, talk);
                self.talked(now, token, talked)
            }
            (_, _, stage) => Line { handle: None, share, stage },
        };
        if line.handle.is_some() || is_open(&mut line.stage, now) {
            self.hall.board.put(token, line, false);
        }
    }

    /// Carries on a line with a connection that has not ended.
    fn advance(&mut self, now: Instant, token: u64, handle: Handle, line: Line<Stage>, stage: Stage) -> Line<Stage> {
        let stage = match stage {
            Stage::Warm(frames, greeted) => self.warm(now, handle, frames, greeted),
            Stage::Asking(asking) => return self.answer(now, token, handle, line, *asking),
            Stage::Joined(mut joint, target) => {
                let Hall { board, buffer, .. } = &mut self.hall;
                let goes_on = board.exchange(now, token, handle, &mut joint, buffer);
                if goes_on { Stage::Joined(joint, target) } else { Stage::Over }
            }
            Stage::Over => {
                self.hall.board.with(now, handle, |connection, cx| while connection.read(cx).is_some() {});
                Stage::Over
            }
            stage => stage,
        };
        Line { stage, ..line }
    }

    /// A connection that waits receives the greeting, and nothing else.
    fn warm(&mut self, now: Instant, handle: Handle, mut frames: Frames, mut greeted: bool) -> Stage {
        let ended = self.hall.board.with(now, handle, |connection, cx| {
            while let Some(bytes) = connection.read(cx) {
                frames.push(&bytes);
            }
            connection.read_finished()
        });
        let fits = match frames.next_message::<Answer>() {
            Ok(Some(Answer::Welcome)) => {
                self.pool.welcome();
                !core::mem::replace(&mut greeted, true)
            }
            Ok(Some(Answer::Refused(why))) => {
                self.pool.refused = Some(why);
                false
            }
            Ok(None) => frames.buffered() == 0 || !greeted,
            _ => false,
        };
        if !fits || ended == Some(true) {
            self.pool.fail(now);
            self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
            return Stage::Over;
        }
        Stage::Warm(frames, greeted)
    }

    /// Asks the server for a target, over a connection that waits if there is one.
    fn ask(&mut self, now: Instant, token: u64, mut asking: Asking) -> Line<Stage> {
        let Hall { board, rules, routes, .. } = &mut self.hall;
        let Some(warm) = self.pool.draw(now, board, routes) else {
            let why = if routes.any() { Refusal::TooMany } else { Refusal::NetworkUnreachable };
            return self.fail(asking, why);
        };
        let treatment = rules.of(&asking.wish.target);
        let server = self.pool.server();
        let asked = board.with(now, warm.handle, |connection, cx| {
            routes.treat(connection, cx, treatment, server);
            let open = routes.open(&asking.wish.target, treatment);
            asking.ask(now, connection, cx, warm.frames, open, warm.waited)
        });
        if asked != Some(true) {
            return self.fail(asking, Refusal::Unknown);
        }
        board.alarm(asking.until, token);
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
            .hall
            .board
            .with(now, handle, |connection, cx| (asking.hear(now, connection, cx), asking.has_arrived(connection)));
        match read {
            Some((Heard::Opened(rest), _)) => {
                let (joint, _) = asking.opened(rest);
                let stage = Stage::Ending(self.hall.farewell(now, token, handle, joint, why));
                Line { handle: None, share: None, stage }
            }
            Some((Heard::Refused(why), _)) => self.fail(asking, why),
            Some((_, false)) if asking.may_repeat() => self.ask(now, token, asking),
            _ => self.fail(asking, Refusal::HostUnreachable),
        }
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
        if asking.wish.joint.is_over() {
            self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
            return line;
        }
        let heard = self.hall.board.with(now, handle, |connection, cx| asking.hear(now, connection, cx));
        match heard {
            Some(Heard::Nothing) => Line { stage: Stage::Asking(Box::new(asking)), ..line },
            Some(Heard::Opened(rest)) => {
                let (joint, target) = asking.opened(rest);
                self.hall.board.wake(token);
                Line { stage: Stage::Joined(joint, target), ..line }
            }
            Some(Heard::Refused(why)) => {
                self.hall.board.with(now, handle, |connection, cx| connection.finish(cx));
                self.hall.leave(line);
                self.fail(asking, why)
            }
            // The server must not begin it any more.
            heard => {
                self.hall.board.with(now, handle, |connection, cx| connection.abort(cx));
                self.hall.leave(line);
                self.fail(asking, if let Some(Heard::Nonsense(why)) = heard { why } else { Refusal::TimedOut })
            }
        }
    }

    /// Nothing came of a request.
    fn fail(&mut self, asking: Asking, why: Refusal) -> Line<Stage> {
        Line { handle: None, share: None, stage: Stage::Ending(self.hall.refuse(asking.wish, why)) }
    }
}

/// A line without a connection has still something to do.
fn is_open(stage: &mut Stage, now: Instant) -> bool {
    match stage {
        Stage::Talking(_) => true,
        Stage::Ending(joint) => joint.is_ending(now),
        _ => false,
    }
}

impl Lobby for Entry {
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
            match *token < FIRST_LINE {
                true => self.accept(now, *token),
                false => self.step(now, *token),
            }
        }
        let Hall { board, routes, .. } = &mut self.hall;
        self.pool.refill(now, board, routes);
        !due.is_empty()
    }

    fn set_max_packet(&mut self, now: Instant, path: PathId, bytes: usize) {
        let mss = self.hall.routes.set_max_packet(path, bytes);
        self.hall.board.set_mss(now, path, mss);
    }
}
