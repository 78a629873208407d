//! The two ends of a TCP connection.

use core::net::SocketAddr;

/// The two ends of a subflow, as its own host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FourTuple {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}
