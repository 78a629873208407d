//! Values to bytes.

use crate::{Ecn, Packet, Segment, VnetHeader, checksum, options_codec};
use bytes::BufMut;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header};

/// Time to live of emitted packets (RFC 1700's recommendation, and Linux's).
const HOP_LIMIT: u8 = 64;
/// The offset of the checksum in a TCP header.
const CHECKSUM: usize = 16;

impl Segment {
    /// Appends the segment with its checksum for `src` and `dst`.
    pub fn emit_into(&self, src: IpAddr, dst: IpAddr, out: &mut Vec<u8>) {
        let start = out.len();
        self.emit_header(out);
        out.put_slice(&self.payload);
        let checksum = checksum::tcp(src, dst, &out[start..]);
        out[start + CHECKSUM..start + CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Appends the header with its options; the checksum's field is zero.
    fn emit_header(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(self.src_port);
        out.put_u16(self.dst_port);
        out.put_u32(self.seq.0);
        out.put_u32(self.ack.0);
        out.put_u8((self.header_len() as u8 / 4) << 4);
        out.put_u8(self.flags.0);
        out.put_u16(self.window);
        out.put_u32(0); // checksum and urgent pointer
        options_codec::emit(&self.options, out);
        debug_assert_eq!(out.len() - start, self.header_len());
    }
}

impl Packet {
    /// The packet's bytes: IP header, TCP header, options, payload.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.emit_into(&mut out);
        out
    }

    /// Appends the packet's bytes. If the packet is longer than the length field's range, the field is zero, as in
    /// Linux for packets that are still to be cut up.
    pub fn emit_into(&self, out: &mut Vec<u8>) {
        let (src, dst) = self.emit_ip(self.segment.payload.len(), out);
        self.segment.emit_into(src, dst, out);
    }

    /// Appends the headers of a packet with `payload` bytes of payload, which are written separately. The checksum is
    /// left to a device, which adds the segment to the pseudo-header's sum in the field; returns the device's
    /// instructions.
    pub fn emit_headers_into(&self, payload: usize, out: &mut Vec<u8>) -> VnetHeader {
        let start = out.len();
        let (src, dst) = self.emit_ip(payload, out);
        let tcp = out.len();
        self.segment.emit_header(out);
        let pseudo = checksum::pseudo_header(src, dst, out.len() - tcp + payload);
        out[tcp + CHECKSUM..tcp + CHECKSUM + 2].copy_from_slice(&pseudo.to_be_bytes());
        VnetHeader { checksum: Some(((tcp - start) as u16, CHECKSUM as u16)), gso: None }
    }

    /// Appends the IP header of a packet with `payload` bytes of payload; returns its addresses.
    fn emit_ip(&self, payload: usize, out: &mut Vec<u8>) -> (IpAddr, IpAddr) {
        let len = self.segment.header_len() + payload;
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                emit_ipv4(src, dst, self.segment.ecn, Ipv4Header::MIN_LEN + len, out);
                (src.into(), dst.into())
            }
            (src, dst) => {
                // Addresses of different families can only be combined in IPv6 form (RFC 4291 §2.5.5.2).
                let (src, dst) = (mapped(src), mapped(dst));
                emit_ipv6(src, dst, self.segment.ecn, len, out);
                (src.into(), dst.into())
            }
        }
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn emit_ipv4(src: Ipv4Addr, dst: Ipv4Addr, ecn: Ecn, len: usize, out: &mut Vec<u8>) {
    let mut header = Ipv4Header {
        ecn: IpEcn::try_new(ecn.bits()).unwrap_or_default(),
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

fn emit_ipv6(src: Ipv6Addr, dst: Ipv6Addr, ecn: Ecn, payload_len: usize, out: &mut Vec<u8>) {
    let header = Ipv6Header {
        traffic_class: ecn.bits(),
        payload_length: payload_len.try_into().unwrap_or(0),
        next_header: IpNumber::TCP,
        hop_limit: HOP_LIMIT,
        source: src.octets(),
        destination: dst.octets(),
        ..Ipv6Header::default()
    };
    out.put_slice(&header.to_bytes());
}
