//! Messages between client and server about runs: docs/measure.md has the format.

use anabranch_link::{LinkError, frames};
use serde::{Deserialize, Serialize};

/// Version of this format, of the events' too.
pub(crate) const VERSION: u16 = 1;
/// Bytes of the longest message.
pub(crate) const LONGEST: usize = 1 << 17;

/// From the client. The order of variants and fields is the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClientMessage {
    /// The first message.
    Hello {
        /// [`VERSION`].
        version: u16,
    },
    /// Be ready for a run; one that is under way is given up.
    Run(RunRequest),
    /// The time of the run at the server.
    Time,
    /// The run is over: its events.
    End,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    /// The scenario in full, as TOML.
    pub scenario: String,
    /// The path that plain TCP uses; `None` = Multipath TCP over all.
    pub single: Option<u8>,
    /// Scheduler with parameters, as `--scheduler` takes it.
    pub scheduler: String,
    /// Congestion control with parameters, as `--congestion` takes it.
    pub congestion: String,
    /// Seed of the run.
    pub seed: u64,
}

/// From the server, one for each [`ClientMessage`], but for [`ServerMessage::Events`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ServerMessage {
    /// To a greeting.
    Welcome {
        /// The version of the server's program.
        program: String,
    },
    /// The request cannot be done.
    Refused {
        /// Why, in a sentence.
        why: String,
    },
    /// Ready for the run's connections.
    Ready {
        /// Where they are awaited.
        port: u16,
    },
    /// Nanoseconds since the run's beginning at the server.
    Time(u64),
    /// A part of the events of a run. More replies follow.
    Events(Vec<u8>),
    /// All events were sent.
    Done {
        /// How many they are.
        events: u64,
    },
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

    fn run() -> ClientMessage {
        ClientMessage::Run(RunRequest {
            scenario: "name = \"x\"".into(),
            single: Some(1),
            scheduler: "blest".into(),
            congestion: "lia".into(),
            seed: 300,
        })
    }

    /// docs/measure.md has these bytes.
    #[test]
    fn the_format_is_as_documented() {
        assert_eq!(framed(&ClientMessage::Hello { version: VERSION }).unwrap(), [2, 0, 0, 0, 0, 1]);
        assert_eq!(framed(&ClientMessage::Time).unwrap(), [1, 0, 0, 0, 2]);
        assert_eq!(framed(&ServerMessage::Ready { port: 5001 }).unwrap(), [3, 0, 0, 0, 2, 0x89, 0x27]);
        let text =
            [&[26, 0, 0, 0, 1, 10][..], b"name = \"x\"", &[1, 1, 5], b"blest", &[3], b"lia", &[0xac, 2]].concat();
        assert_eq!(framed(&run()).unwrap(), text);
    }

    #[test]
    fn messages_arrive_in_any_pieces() {
        let stream = [framed(&run()).unwrap(), framed(&ClientMessage::End).unwrap()].concat();
        for size in 1..stream.len() {
            let (mut frames, mut got) = (MessageReader::default(), Vec::new());
            for piece in stream.chunks(size) {
                frames.push(piece);
                while let Some(message) = frames.next_message::<ClientMessage>().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!((got, frames.buffered()), (vec![run(), ClientMessage::End], 0));
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let too_long = (LONGEST as u32 + 1).to_le_bytes();
        let unknown = [1, 0, 0, 0, 9];
        let too_short = [1, 0, 0, 0, 0];
        let rest = [2, 0, 0, 0, 2, 2];
        let no_text = [4, 0, 0, 0, 1, 1, 0xff, 0];
        for bytes in [&too_long[..], &unknown, &too_short, &rest, &no_text] {
            let mut frames = MessageReader::default();
            frames.push(bytes);
            assert!(frames.next_message::<ClientMessage>().is_err(), "{bytes:?}");
        }
        assert!(framed(&ServerMessage::Events(vec![0; LONGEST])).is_err(), "nobody could read it");
    }

    proptest::proptest! {
        /// Any bytes are messages, too few, or refused; they never make a panic.
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let mut frames = MessageReader::default();
            frames.push(&(bytes.len() as u32).to_le_bytes());
            frames.push(&bytes);
            let read = frames.next_message::<ClientMessage>();
            proptest::prop_assert!(!matches!(read, Ok(None)), "it is whole");
        }
    }
}
