//! The world's border: hosts that it does not know, and their packets.

use crate::host::Host;
use anabranch_units::{Instant, Side};
use bytes::Bytes;

/// A packet that reached a host outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// Which flow, by its place.
    pub flow: usize,
    /// Which end of it.
    pub side: Side,
    /// Over which network path.
    pub path: usize,
    /// When it entered the network.
    pub sent: Instant,
    /// When it was due there.
    pub at: Instant,
    /// The IP packet. One that was corrupted on the way, and recorded as dropped, has a wrong bit: the host's own checksum
    /// must find it.
    pub bytes: Bytes,
}

/// A bit of the last byte is wrong, which is never part of the IP header.
pub(crate) fn damaged(bytes: &Bytes) -> Bytes {
    let mut copy = bytes.to_vec();
    if let Some(last) = copy.last_mut() {
        *last ^= 1;
    }
    copy.into()
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) enum Place {
    Engine(Box<Host>),
    /// Outside; `true` when it has said that it is done.
    Outside(bool),
}

impl Place {
    pub fn engine(&self) -> Option<&Host> {
        match self {
            Self::Engine(host) => Some(host),
            Self::Outside(_) => None,
        }
    }

    pub fn engine_mut(&mut self) -> Option<&mut Host> {
        match self {
            Self::Engine(host) => Some(host),
            Self::Outside(_) => None,
        }
    }

    pub fn is_done(&self) -> bool {
        match self {
            Self::Engine(host) => host.is_done(),
            Self::Outside(done) => *done,
        }
    }
}
