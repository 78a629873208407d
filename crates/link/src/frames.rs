//! Messages on a stream: a length in four bytes, little-endian, and so many bytes in postcard's format.

use crate::LinkError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of a message's length.
const HEAD: usize = 4;

/// A message as it is sent, of at most `longest` bytes.
///
/// # Errors
/// It is longer.
pub fn framed<M: Serialize>(message: &M, longest: usize) -> Result<Vec<u8>, LinkError> {
    let frame = postcard::to_extend(message, vec![0; HEAD]);
    let mut frame = frame.map_err(|_| malformed("a message that cannot be written"))?;
    let len = frame.len() - HEAD;
    if len > longest {
        return Err(malformed(format!("a message of {len} bytes; at most {longest} can be sent")));
    }
    frame[..HEAD].copy_from_slice(&(len as u32).to_le_bytes());
    Ok(frame)
}

fn malformed(what: impl Into<String>) -> LinkError {
    LinkError::Malformed { what: what.into() }
}

/// Bytes of a stream, until a message of at most `LONGEST` bytes is whole.
#[derive(Debug, Default)]
pub struct FrameReader<const LONGEST: usize> {
    bytes: Vec<u8>,
}

impl<const LONGEST: usize> FrameReader<LONGEST> {
    /// Adds bytes that came. What the stream's window admits is kept at most.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that are kept.
    pub fn buffered(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes behind the last message: the stream has no other messages.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }

    /// The next message, if it is whole.
    ///
    /// # Errors
    /// The peer does not keep to the format; the stream is of no further use.
    pub fn next_message<M: DeserializeOwned>(&mut self) -> Result<Option<M>, LinkError> {
        let Some(head) = self.bytes.first_chunk::<HEAD>() else { return Ok(None) };
        let len = u32::from_le_bytes(*head) as usize;
        if len > LONGEST {
            return Err(malformed(format!("a message of {len} bytes came; at most {LONGEST} are allowed")));
        }
        let Some(body) = self.bytes.get(HEAD..HEAD + len) else { return Ok(None) };
        let message = match postcard::take_from_bytes::<M>(body) {
            Ok((message, [])) => message,
            _ => return Err(malformed("a message came that does not keep to the format")),
        };
        self.bytes.drain(..HEAD + len);
        Ok(Some(message))
    }
}
