//! Messages at the beginning of a proxied connection: docs/proxy.md has the format.

use crate::target::Target;
use anabranch_link::{LinkError, frames};
use serde::{Deserialize, Serialize};

/// Version of this format.
pub(crate) const VERSION: u16 = 1;
/// Bytes of the longest message.
pub(crate) const LONGEST: usize = 2_048;
/// The server's port for proxied connections.
pub(crate) const PORT: u16 = 2;

/// From the client, in this order; then come the bytes for the target. The order of variants and fields is the format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ClientMessage {
    /// The first message. The connection may wait with the next one.
    Hello {
        /// [`VERSION`].
        version: u16,
    },
    /// Join the connection with a target.
    Open(OpenRequest),
}

/// A target, and how its data is sent back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenRequest {
    /// The target.
    pub target: Target,
    /// Scheduler with parameters, as `--scheduler` takes it.
    pub scheduler: String,
    /// Policies of the paths with another one than the default.
    pub policies: Vec<PolicyMessage>,
}

/// The operator's policy for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PolicyMessage {
    /// Number of the path.
    pub path: u8,
    /// Per byte, finite and not negative.
    pub price: f64,
    /// In bytes.
    pub cap: Option<u64>,
    /// Above zero and finite.
    pub weight: Option<f64>,
}

/// From the server, one for each [`ClientMessage`]; after [`ServerMessage::Opened`] come the bytes of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ServerMessage {
    /// To a greeting.
    Welcome,
    /// The target is connected.
    Opened,
    /// The connection is refused; nothing follows.
    Refused(Refusal),
}

/// Why a target is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Refusal {
    /// The server speaks another version of the format, or does not understand the request.
    Unknown,
    /// The server dials no such address: its owner has to allow it.
    NotAllowed,
    /// The name is not known.
    NoSuchName,
    /// The network cannot be reached.
    NetworkUnreachable,
    /// The host cannot be reached.
    HostUnreachable,
    /// The host refuses the connection.
    Refused,
    /// The host does not answer.
    TimedOut,
    /// The client has too many connections.
    TooMany,
}

/// A message as it is sent.
///
/// # Errors
/// It is longer than [`LONGEST`].
pub(crate) fn framed<M: Serialize>(message: &M) -> Result<Vec<u8>, LinkError> {
    frames::framed(message, LONGEST)
}

/// Bytes of a stream, until a message is whole.
pub(crate) type MessageReader = frames::FrameReader<LONGEST>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// docs/proxy.md has these bytes.
    #[test]
    fn the_format_is_as_documented() {
        assert_eq!(framed(&ClientMessage::Hello { version: VERSION }).unwrap(), [2, 0, 0, 0, 0, 1]);
        assert_eq!(framed(&ServerMessage::Welcome).unwrap(), [1, 0, 0, 0, 0]);
        assert_eq!(framed(&ServerMessage::Refused(Refusal::NotAllowed)).unwrap(), [2, 0, 0, 0, 2, 1]);
        let policy = PolicyMessage { path: 1, price: 2.0, cap: Some(300), weight: None };
        let open = |target: &str| {
            let target = Target::parse(target).unwrap();
            framed(&ClientMessage::Open(OpenRequest { target, scheduler: "blest".into(), policies: vec![policy] }))
                .unwrap()
        };
        let end = [&[5][..], b"blest", &[1, 1], &2.0_f64.to_le_bytes(), &[1, 0xac, 2, 0]].concat();
        let name = [&[31, 0, 0, 0, 1, 1, 7][..], b"a.net.b", &[80], &end].concat();
        assert_eq!(open("a.net.b:80"), name);
        let address = [&[29, 0, 0, 0, 1, 0, 0, 192, 0, 2, 1, 0xbb, 3][..], &end].concat();
        assert_eq!(open("192.0.2.1:443"), address);
    }

    proptest! {
        /// Any bytes are messages, too few, or refused; they never make a panic.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = MessageReader::default();
            frames.push(&(bytes.len() as u32).to_le_bytes());
            frames.push(&bytes);
            prop_assert!(!matches!(frames.next_message::<ClientMessage>(), Ok(None)), "it is whole");
        }
    }
}
