//! A middlebox between a host and its network: it may strip options or rewrite payload.

use bytes::Bytes;
use std::fmt;

/// The direction of a packet, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InOut {
    /// The host sent it.
    Out,
    /// The packet is for the host.
    In,
}

type Rewrite = dyn FnMut(InOut, usize, Bytes) -> Option<Bytes> + Send;

/// Sees every IP packet that a host outside sends or receives.
pub struct Middlebox(Box<Rewrite>);

impl Middlebox {
    /// `rewrite` gets the direction, the path's index and the packet, and returns the packet to forward; `None` drops
    /// it. It also corrects checksums.
    pub fn new(rewrite: impl FnMut(InOut, usize, Bytes) -> Option<Bytes> + Send + 'static) -> Self {
        Self(Box::new(rewrite))
    }

    /// Passes a packet.
    pub fn pass(&mut self, way: InOut, path: usize, packet: Bytes) -> Option<Bytes> {
        (self.0)(way, path, packet)
    }
}

impl fmt::Debug for Middlebox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Middlebox")
    }
}
