//! Values to bytes.

use crate::{Packet, Segment, checksum, options_codec};
use bytes::BufMut;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use etherparse::{IpNumber, Ipv4Header, Ipv6Header};

/// Time to live of what we send (RFC 1700's recommendation, and Linux's).
const HOP_LIMIT: u8 = 64;

impl Segment {
    /// Appends the segment with its checksum, as it travels from `src` to `dst`.
    pub fn emit_into(&self, src: IpAddr, dst: IpAddr, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(self.src_port);
        out.put_u16(self.dst_port);
        out.put_u32(self.seq.0);
        out.put_u32(self.ack.0);
        out.put_u8((self.header_len() as u8 / 4) << 4);
        out.put_u8(self.flags.0);
        out.put_u16(self.window);
        out.put_u32(0); // checksum, filled in below, and urgent pointer
        options_codec::emit(&self.options, out);
        debug_assert_eq!(out.len() - start, self.header_len());
        out.put_slice(&self.payload);
        let checksum = checksum::tcp(src, dst, &out[start..]);
        out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
    }
}

impl Packet {
    /// The packet's bytes: IP header, TCP header, options, payload.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.emit_into(&mut out);
        out
    }

    /// Appends the packet's bytes. If the packet is longer than IP can say, the length field is zero, as Linux has it
    /// in packets that are still to be cut up.
    pub fn emit_into(&self, out: &mut Vec<u8>) {
        let (src, dst) = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                emit_ipv4(src, dst, self.len(), out);
                (src.into(), dst.into())
            }
            (src, dst) => {
                // One host of each family cannot meet but in the IPv6 form of both (RFC 4291 §2.5.5.2).
                let (src, dst) = (mapped(src), mapped(dst));
                emit_ipv6(src, dst, self.len() - Ipv6Header::LEN, out);
                (src.into(), dst.into())
            }
        };
        self.segment.emit_into(src, dst, out);
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn emit_ipv4(src: Ipv4Addr, dst: Ipv4Addr, len: usize, out: &mut Vec<u8>) {
    let mut header = Ipv4Header {
        total_len: len.try_into().unwrap_or(0),
        // Never fragmented, hence no identification (RFC 6864 §4.1).
        dont_fragment: true,
        time_to_live: HOP_LIMIT,
        protocol: IpNumber::TCP,
        source: src.octets(),
        destination: dst.octets(),
        ..Ipv4Header::default()
    };
    header.header_checksum = header.calc_header_checksum();
    out.put_slice(&header.to_bytes());
}

fn emit_ipv6(src: Ipv6Addr, dst: Ipv6Addr, payload_len: usize, out: &mut Vec<u8>) {
    let header = Ipv6Header {
        payload_length: payload_len.try_into().unwrap_or(0),
        next_header: IpNumber::TCP,
        hop_limit: HOP_LIMIT,
        source: src.octets(),
        destination: dst.octets(),
        ..Ipv6Header::default()
    };
    out.put_slice(&header.to_bytes());
}
