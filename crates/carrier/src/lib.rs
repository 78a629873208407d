#![doc = include_str!("../README.md")]

mod client;
mod counters;
pub mod files;
mod format;
mod inner;
mod keypair;
mod keys;
mod load;
mod macs;
pub mod mtu;
mod noise;
mod path;
mod peer;
mod pieces;
mod replay;
mod route;
mod server;
mod time;

pub use client::{Client, ClientSettings};
pub use counters::Counters;
pub use format::OVERHEAD;
pub use inner::Addresses;
pub use keys::{KEY_LEN, NoKey, PublicKey, Secret, StaticKey};
pub use load::Limits;
pub use noise::PROLOGUE;
pub use path::PathStatus;
pub use server::{Arrival, PeerEvent, PeerId, Server, ServerSettings};
pub use time::Timestamp;

use core::fmt;

/// Most paths of a session: a path's id has four bits.
pub const MAX_PATHS: usize = 16;

/// The largest UDP payload that a probe has: Ethernet's 1,500 bytes without the headers of IPv4 and UDP.
pub const MAX_DATAGRAM: usize = 1_472;

/// Bytes of the largest packet that any path carries whole.
pub const MAX_PACKET: usize = MAX_DATAGRAM - OVERHEAD;

/// Why a packet was not sent. The engine retransmits it, as after any loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// There is no session yet, or none any more.
    NoSession,
    /// The session has no such path.
    NoPath,
    /// The path's address has to answer a challenge first.
    HeldBack,
    /// Two datagrams of the path do not carry it.
    TooLarge,
    /// The packet's addresses are not those of the session and the path.
    Foreign,
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSession => "there is no session",
            Self::NoPath => "there is no such path",
            Self::HeldBack => "the path's new address has not answered",
            Self::TooLarge => "the packet is too large for the path",
            Self::Foreign => "the packet's addresses are not those of its path",
        })
    }
}

impl core::error::Error for Unsent {}
