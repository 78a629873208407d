//! What may stand between a host and its network and change what passes: options stripped, payload rewritten.

use bytes::Bytes;
use std::fmt;

/// Which way a packet passes, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The host sent it.
    Out,
    /// It is for the host.
    In,
}

type Rewrite = dyn FnMut(Way, usize, Bytes) -> Option<Bytes> + Send;

/// Sees every IP packet that a host outside sends or gets.
pub struct Middlebox(Box<Rewrite>);

impl Middlebox {
    /// `rewrite` gets the way, the path's index and the packet, and gives what goes on instead; `None` drops it. Checksums
    /// are its business.
    pub fn new(rewrite: impl FnMut(Way, usize, Bytes) -> Option<Bytes> + Send + 'static) -> Self {
        Self(Box::new(rewrite))
    }

    /// A packet passes.
    pub fn pass(&mut self, way: Way, path: usize, packet: Bytes) -> Option<Bytes> {
        (self.0)(way, path, packet)
    }
}

impl fmt::Debug for Middlebox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Middlebox")
    }
}
