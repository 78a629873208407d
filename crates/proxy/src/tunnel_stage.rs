//! Stages of a program's connection that a server carries on: at the client's end.

use crate::ingress::FlowStage;
use crate::message::MessageReader;
use crate::negotiation::Negotiation;
use crate::pending_request::PendingRequest;
use crate::relay::Relay;
use crate::target::Target;

/// How far a connection is.
#[derive(Debug)]
pub(crate) enum TunnelStage {
    /// The connection waits for a program; greeted or not.
    Warm(MessageReader, bool),
    /// The program says where it wants to go.
    Negotiating(Negotiation),
    /// The server was asked.
    Requesting(Box<PendingRequest>),
    /// The program and its target exchange bytes.
    Relaying(Relay, Target),
    /// The program gets its last bytes.
    Ending(Relay),
    /// Nothing more is read from it.
    Over,
}

impl FlowStage for TunnelStage {
    fn target(&self) -> Option<&Target> {
        match self {
            Self::Relaying(_, target) => Some(target),
            Self::Requesting(pending) => Some(&pending.request.target),
            _ => None,
        }
    }

    fn relay(&mut self) -> Option<&mut Relay> {
        match self {
            Self::Negotiating(negotiation) => Some(&mut negotiation.relay),
            Self::Requesting(pending) => Some(&mut pending.request.relay),
            Self::Relaying(relay, _) | Self::Ending(relay) => Some(relay),
            Self::Warm(..) | Self::Over => None,
        }
    }

    fn is_relaying(&self) -> bool {
        matches!(self, Self::Relaying(..))
    }
}
