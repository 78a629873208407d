//! A round's commands as values, for schedulers that are written elsewhere.

use super::{Repeat, Round};
use anabranch_units::{PathId, Range};

/// A command of a round: the method of [`Round`] of the same name, with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// [`Round::send_next`].
    SendNext(PathId),
    /// [`Round::fill`].
    Fill(PathId),
    /// [`Round::send_ahead`], and the unassigned bytes that it skips.
    SendAhead(PathId, u64),
    /// [`Round::send`].
    Send(PathId, Range),
    /// [`Round::enqueue_next`].
    EnqueueNext(PathId),
    /// [`Round::repeat`].
    Repeat(PathId, Range, Repeat),
    /// [`Round::release`].
    Release(PathId, Range),
    /// [`Round::recall`].
    Recall(PathId),
    /// [`Round::penalise`].
    Penalise(PathId),
    /// [`Round::rescue_by_rtt`].
    RescueByRtt,
}

impl Round<'_> {
    /// Carries out a command. False if it was refused, and had no effect.
    pub fn carry_out(&mut self, command: Command) -> bool {
        match command {
            Command::SendNext(on) => return self.send_next(on),
            Command::Fill(on) => return self.fill(on),
            Command::SendAhead(on, skip) => return self.send_ahead(on, skip),
            Command::Send(on, range) => return self.send(on, range),
            Command::EnqueueNext(on) => return self.enqueue_next(on),
            Command::Repeat(on, range, why) => return self.repeat(on, range, why),
            Command::Release(on, range) => return self.release(on, range),
            Command::Recall(on) => self.recall(on),
            Command::Penalise(on) => self.penalise(on),
            Command::RescueByRtt => self.rescue_by_rtt(),
        }
        true
    }
}
