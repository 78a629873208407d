//! Bytes to values.

use crate::{Ecn, Flags, Packet, Segment, checksum, options_codec};
use anabranch_units::SeqNumber;
use bytes::Bytes;
use core::fmt;
use core::net::IpAddr;
use etherparse::{IpNumber, IpSlice, TcpHeaderSlice};

/// Why bytes are not an acceptable TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The IP header or an extension header is cut off or malformed, or states more bytes than there are.
    IpHeader,
    /// The IPv4 header's checksum does not match.
    IpChecksum,
    /// A fragment: the segment is incomplete.
    Fragment,
    /// Another protocol, with this number.
    NotTcp(u8),
    /// The TCP header is cut off, or its data offset is below 5 or past the end.
    TcpHeader,
    /// The TCP checksum does not match.
    TcpChecksum,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IpHeader => f.write_str("malformed IP header"),
            Self::IpChecksum => f.write_str("wrong IPv4 header checksum"),
            Self::Fragment => f.write_str("IP fragment"),
            Self::NotTcp(protocol) => write!(f, "IP protocol {protocol}, not TCP"),
            Self::TcpHeader => f.write_str("malformed TCP header"),
            Self::TcpChecksum => f.write_str("wrong TCP checksum"),
        }
    }
}

impl core::error::Error for ParseError {}

impl Packet {
    /// Reads an IPv4 or IPv6 packet; the payload shares the memory of `bytes`. IPv4 options, IPv6 extension headers and
    /// bytes beyond the packet's end are skipped. Reading the bytes of [`Packet::emit`] gives an equal value.
    pub fn parse(bytes: Bytes) -> Result<Self, ParseError> {
        Self::read(bytes, true)
    }

    /// As [`Self::parse`], but the TCP checksum may be anything: for packets that never were on a wire, whose sender
    /// left it to a device to fill in ([`crate::VnetHeader::checksum`]), and for those that were authenticated.
    pub fn parse_unverified(bytes: Bytes) -> Result<Self, ParseError> {
        Self::read(bytes, false)
    }

    fn read(bytes: Bytes, verified: bool) -> Result<Self, ParseError> {
        let ip = IpSlice::from_slice(&bytes).map_err(|_| ParseError::IpHeader)?;
        if let IpSlice::Ipv4(ip) = &ip
            && checksum::internet(ip.header().slice()) != 0
        {
            return Err(ParseError::IpChecksum);
        }
        let payload = ip.payload();
        if payload.fragmented {
            return Err(ParseError::Fragment);
        }
        if payload.ip_number != IpNumber::TCP {
            return Err(ParseError::NotTcp(payload.ip_number.0));
        }
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        let tcp = bytes.slice_ref(payload.payload);
        let mut segment = if verified { Segment::parse(tcp, src, dst) } else { Segment::read(tcp) }?;
        segment.ecn = Ecn::of(&bytes).unwrap_or_default();
        Ok(Self { src, dst, segment })
    }
}

impl Segment {
    /// Reads a segment that came from `src` to `dst`; the payload shares the memory of `bytes`. Parts that the value
    /// cannot hold are dropped: reserved bits, the urgent pointer, an acknowledgment number without [`Flags::ACK`], and
    /// options that are unknown or malformed. Its ECN field is that of an IP header, which is not read here.
    pub fn parse(bytes: Bytes, src: IpAddr, dst: IpAddr) -> Result<Self, ParseError> {
        let segment = Self::read(bytes.clone())?;
        if checksum::tcp(src, dst, &bytes) != 0 {
            return Err(ParseError::TcpChecksum);
        }
        Ok(segment)
    }

    /// Reads a segment whatever its checksum.
    fn read(bytes: Bytes) -> Result<Self, ParseError> {
        let (segment, header) = Self::parse_header(&bytes)?;
        Ok(Self { payload: bytes.slice(header..), ..segment })
    }

    /// Reads the TCP header at the beginning of `bytes`, whatever its checksum, and returns its length in bytes. The payload is
    /// empty: captures often keep no more than headers.
    ///
    /// # Errors
    /// The header is cut off, or its data offset is below 5.
    pub fn parse_header(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        let tcp = TcpHeaderSlice::from_slice(bytes).map_err(|_| ParseError::TcpHeader)?;
        let flags = Flags(tcp.slice()[13]);
        let ack = if flags.has(Flags::ACK) { tcp.acknowledgment_number() } else { 0 };
        let segment = Self {
            src_port: tcp.source_port(),
            dst_port: tcp.destination_port(),
            seq: SeqNumber(tcp.sequence_number()),
            ack: SeqNumber(ack),
            flags,
            ecn: Ecn::NotEct,
            window: tcp.window_size(),
            options: options_codec::parse(tcp.options()),
            payload: Bytes::new(),
        };
        Ok((segment, tcp.slice().len()))
    }
}
