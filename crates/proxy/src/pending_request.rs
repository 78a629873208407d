//! A program's request, until the server has answered it.

use crate::message::{ClientMessage, LONGEST, MessageReader, OpenRequest, Refusal, ServerMessage, framed};
use crate::negotiation::ProgramRequest;
use crate::relay::Relay;
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
pub(crate) struct PendingRequest {
    pub request: ProgramRequest,
    /// The connection had waited for a program.
    waited: bool,
    /// Connections that were begun for it.
    begun: u32,
    /// When it is given up.
    pub until: Instant,
    /// Where the request begins in the stream to the server.
    begins: u64,
    frames: MessageReader,
}

/// The server's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// None yet.
    Nothing,
    /// The target is connected; these are its first bytes.
    Opened(Vec<u8>),
    /// The server refused the request.
    Refused(Refusal),
    /// The server said nothing in time, or what is no answer.
    Nonsense(Refusal),
}

impl PendingRequest {
    /// The request of a program.
    pub fn new(request: ProgramRequest) -> Self {
        Self { request, waited: false, begun: 0, until: Instant::MAX, begins: 0, frames: MessageReader::default() }
    }

    /// Asks over a connection on which `frames` arrived. False if the request cannot be written.
    pub fn ask(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        cx: &mut Cx<'_>,
        frames: MessageReader,
        open: OpenRequest,
        waited: bool,
    ) -> bool {
        (self.frames, self.waited, self.until) = (frames, waited, now + PATIENCE);
        self.begun += u32::from(!waited);
        self.begins = connection.view().data_acked() + connection.unacknowledged();
        let Ok(frame) = framed(&ClientMessage::Open(open)) else { return false };
        // The least buffer has room for both.
        connection.write(cx, frame.into());
        connection.write(cx, self.request.early.clone());
        true
    }

    /// The target is connected, and these are its `first` bytes: the program learns of it.
    pub fn opened(self, first: Vec<u8>) -> (Relay, Target) {
        let (mut relay, target) = self.request.granted();
        relay.say(first);
        (relay, target)
    }

    /// Whether a request of which nothing is known to have arrived goes over another connection. One that had waited may have been lost
    /// long before. Over a new one the server may have dialled, and its acknowledgment be lost: so nothing of the program went with it.
    pub fn may_repeat(&self) -> bool {
        self.waited || (self.request.early.is_empty() && self.begun < MOST_BEGUN)
    }

    /// The server has got something of the request, so that it may have done what it says: it must not be repeated.
    pub fn has_arrived(&self, connection: &Connection) -> bool {
        connection.view().data_acked() > self.begins
    }

    /// Reads the answer.
    pub fn hear(&mut self, now: Instant, connection: &mut Connection, cx: &mut Cx<'_>) -> RequestOutcome {
        while self.frames.buffered() <= LONGEST
            && let Some(bytes) = connection.read(cx)
        {
            self.frames.push(&bytes);
        }
        loop {
            return match self.frames.next_message::<ServerMessage>() {
                // It had not arrived before the request.
                Ok(Some(ServerMessage::Welcome)) => continue,
                Ok(Some(ServerMessage::Opened)) => {
                    RequestOutcome::Opened(core::mem::take(&mut self.frames).into_rest())
                }
                Ok(Some(ServerMessage::Refused(why))) => RequestOutcome::Refused(why),
                Ok(None) if now >= self.until => RequestOutcome::Nonsense(Refusal::TimedOut),
                Ok(None) if !connection.read_finished() => RequestOutcome::Nothing,
                Ok(None) | Err(_) => RequestOutcome::Nonsense(Refusal::Unknown),
            };
        }
    }
}
