//! A TCP segment (RFC 9293 §3.1).

use crate::{Ecn, Options};
use anabranch_units::SeqNumber;
use bytes::Bytes;
use core::ops::BitOr;

/// Control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// Urgent pointer is significant; never sent, ignored.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// True if every bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One TCP segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Number of the first byte (of the SYN, if set).
    pub seq: SeqNumber,
    /// Next number expected; significant with [`Flags::ACK`], zero otherwise.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of the IP header that carries it: the one part of that header which TCP reads and sets (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// Window field as sent: not yet scaled.
    pub window: u16,
    /// Options, at most 40 bytes.
    pub options: Options,
    /// Payload.
    pub payload: Bytes,
}

impl Segment {
    /// Sequence numbers that the segment occupies: payload, SYN and FIN (`SEG.LEN`).
    pub fn seq_len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }

    /// Bytes of the TCP header with its options.
    pub fn header_len(&self) -> usize {
        20 + self.options.encoded_len()
    }
}
