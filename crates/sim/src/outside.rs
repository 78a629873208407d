//! The world's border: hosts outside it, and their packets.

use crate::host::Host;
use anabranch_units::{Instant, Side};
use anabranch_wire::{Ecn, Packet, ParseError, VnetHeader};
use bytes::{Bytes, BytesMut};

/// An IP packet of any protocol, as a host outside sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raw {
    /// The packet.
    pub bytes: Bytes,
    /// Work left to the device of the receiving host.
    pub left: VnetHeader,
}

impl From<Bytes> for Raw {
    /// A complete packet.
    fn from(bytes: Bytes) -> Self {
        Self { bytes, left: VnetHeader::default() }
    }
}

impl Raw {
    /// The TCP segment in the packet. A checksum that is not filled in yet counts as correct.
    ///
    /// # Errors
    /// It has no segment, or a damaged one.
    pub fn parse(&self) -> Result<Packet, ParseError> {
        let parse = if self.left.checksum.is_some() { Packet::parse_unverified } else { Packet::parse };
        parse(self.bytes.clone())
    }
}

impl Raw {
    /// Sets its ECN field to CE. A packet that is still to be cut up is marked as a whole: each of its parts is.
    pub(crate) fn mark(&mut self) {
        let mut bytes = BytesMut::from(core::mem::take(&mut self.bytes));
        Ecn::Ce.set(&mut bytes);
        self.bytes = bytes.freeze();
    }
}

/// The content of a packet that reached a host outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A segment of an engine.
    Segment(Packet),
    /// A packet of another host outside, or a damaged one.
    Raw(Raw),
}

impl Content {
    /// As an IP packet.
    pub fn into_raw(self) -> Raw {
        match self {
            Self::Segment(packet) => Bytes::from(packet.emit()).into(),
            Self::Raw(raw) => raw,
        }
    }
}

/// A packet that reached a host outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// The index of the flow.
    pub flow: usize,
    /// The end of the flow.
    pub side: Side,
    /// The network path.
    pub path: usize,
    /// When it entered the network.
    pub sent: Instant,
    /// When it was due at the host.
    pub at: Instant,
    /// The packet. One that was corrupted in transit, and recorded as dropped, has a wrong bit, which the host's
    /// checksum must detect.
    pub content: Content,
}

/// A bit of the last byte is wrong, which is never part of the IP header.
pub(crate) fn damaged(bytes: &[u8]) -> Raw {
    let mut copy = bytes.to_vec();
    if let Some(last) = copy.last_mut() {
        *last ^= 1;
    }
    Bytes::from(copy).into()
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) enum Place {
    Engine(Box<Host>),
    /// Outside; `true` once it has reported that it is done.
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

    pub fn is_done(&mut self) -> bool {
        match self {
            Self::Engine(host) => host.is_done(),
            Self::Outside(done) => *done,
        }
    }
}
