//! A program's request, until the server has answered it.

use crate::joint::Joint;
use crate::message::{Answer, Ask, Frames, LONGEST, Open, Refusal, framed};
use crate::talking::Wish;
use crate::target::Target;
use anabranch_engine::Cx;
use anabranch_engine::connection::Connection;
use anabranch_units::{Duration, Instant};

/// How long a server has: longer than it tries to dial.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most connections that are begun for one request: each may meet an interface that goes down.
const MOST_BEGUN: u32 = 3;

/// A request.
#[derive(Debug)]
pub(crate) struct Asking {
    pub wish: Wish,
    /// The connection had waited for a program.
    waited: bool,
    /// Connections that were begun for it.
    begun: u32,
    /// When it is given up.
    pub until: Instant,
    /// Where the request begins in the stream to the server.
    begins: u64,
    frames: Frames,
}

/// The server's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// None yet.
    Nothing,
    /// The target is connected; these are its first bytes.
    Opened(Vec<u8>),
    /// The server refused the request.
    Refused(Refusal),
    /// The server said nothing in time, or what is no answer.
    Nonsense(Refusal),
}

impl Asking {
    /// The request of a program.
    pub fn new(wish: Wish) -> Self {
        Self { wish, waited: false, begun: 0, until: Instant::MAX, begins: 0, frames: Frames::default() }
    }

    /// Asks over a connection on which `frames` arrived. False if the request cannot be written.
    pub fn ask(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        cx: &mut Cx<'_>,
        frames: Frames,
        open: Open,
        waited: bool,
    ) -> bool {
        (self.frames, self.waited, self.until) = (frames, waited, now + PATIENCE);
        self.begun += u32::from(!waited);
        self.begins = connection.view().data_acked() + connection.unacknowledged();
        let Ok(frame) = framed(&Ask::Open(open)) else { return false };
        // The least buffer has room for both.
        connection.write(cx, frame.into());
        connection.write(cx, self.wish.early.clone());
        true
    }

    /// The target is connected, and these are its `first` bytes: the program learns of it.
    pub fn opened(self, first: Vec<u8>) -> (Joint, Target) {
        let (mut joint, target) = self.wish.granted();
        joint.say(first);
        (joint, target)
    }

    /// Whether a request of which nothing is known to have arrived goes over another connection. One that had waited may have been lost
    /// long before. Over a new one the server may have dialled, and its acknowledgment be lost: so nothing of the program went with it.
    pub fn may_repeat(&self) -> bool {
        self.waited || (self.wish.early.is_empty() && self.begun < MOST_BEGUN)
    }

    /// The server has got something of the request, so that it may have done what it says: it must not be repeated.
    pub fn has_arrived(&self, connection: &Connection) -> bool {
        connection.view().data_acked() > self.begins
    }

    /// Reads the answer.
    pub fn hear(&mut self, now: Instant, connection: &mut Connection, cx: &mut Cx<'_>) -> Heard {
        while self.frames.buffered() <= LONGEST
            && let Some(bytes) = connection.read(cx)
        {
            self.frames.push(&bytes);
        }
        loop {
            return match self.frames.next_message::<Answer>() {
                // It had not arrived before the request.
                Ok(Some(Answer::Welcome)) => continue,
                Ok(Some(Answer::Opened)) => Heard::Opened(core::mem::take(&mut self.frames).into_rest()),
                Ok(Some(Answer::Refused(why))) => Heard::Refused(why),
                Ok(None) if now >= self.until => Heard::Nonsense(Refusal::TimedOut),
                Ok(None) if !connection.read_finished() => Heard::Nothing,
                Ok(None) | Err(_) => Heard::Nonsense(Refusal::Unknown),
            };
        }
    }
}
