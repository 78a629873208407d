//! Packets as bytes, written and read independently of the engine's code, so that an error there cannot hide itself.

mod option;
pub mod proof;

pub use option::{Map, Opt, Sized64};

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP packet with a TCP segment, field by field as on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPacket {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// ECN field of the IP header, 0 to 3.
    pub ecn: u8,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits.
    pub flags: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Options in order; those that only pad are left out when read.
    pub options: Vec<Opt>,
    /// Payload.
    pub payload: Vec<u8>,
    /// Written with a wrong checksum, or read with one.
    pub bad_checksum: bool,
}

const TCP: u8 = 6;
const TCP_HEADER: usize = 20;

impl TcpPacket {
    /// The packet's bytes; `None` if its options take more than 40 bytes.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let options = option::emit(&self.options);
        if options.len() > 40 {
            return None;
        }
        let mut tcp = Vec::with_capacity(TCP_HEADER + options.len() + self.payload.len());
        tcp.extend(self.src_port.to_be_bytes());
        tcp.extend(self.dst_port.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.push((((TCP_HEADER + options.len()) / 4) << 4) as u8);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        let sum = !sum(&tcp, pseudo_header(self.src, self.dst, tcp.len()));
        let sum = if self.bad_checksum { sum ^ 0x0101 } else { sum };
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut bytes = ip_header(self.src, self.dst, self.ecn, tcp.len());
        bytes.extend(tcp);
        Some(bytes)
    }

    /// Reads a packet; `None` if it is no whole TCP segment over IPv4 or IPv6.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (src, dst, tcp): (IpAddr, IpAddr, &[u8]) = match bytes.first()? >> 4 {
            4 if bytes.len() >= 20 && bytes[9] == TCP => {
                let header = usize::from(bytes[0] & 15) * 4;
                let address = |at: usize| Ipv4Addr::from(number::<4>(bytes, at));
                let end = usize::from(u16::from_be_bytes(number(bytes, 2)));
                (address(12).into(), address(16).into(), bytes.get(header..end)?)
            }
            6 if bytes.len() >= 40 && bytes[6] == TCP => {
                let address = |at: usize| Ipv6Addr::from(number::<16>(bytes, at));
                let len = usize::from(u16::from_be_bytes(number(bytes, 4)));
                (address(8).into(), address(24).into(), bytes.get(40..40 + len)?)
            }
            _ => return None,
        };
        let ecn = if src.is_ipv4() { bytes[1] } else { bytes[1] >> 4 } & 3;
        let header = usize::from(*tcp.get(12)? >> 4) * 4;
        let options = tcp.get(TCP_HEADER..header)?;
        Some(Self {
            src,
            dst,
            ecn,
            src_port: u16::from_be_bytes(number(tcp, 0)),
            dst_port: u16::from_be_bytes(number(tcp, 2)),
            seq: u32::from_be_bytes(number(tcp, 4)),
            ack: u32::from_be_bytes(number(tcp, 8)),
            flags: tcp[13],
            window: u16::from_be_bytes(number(tcp, 14)),
            options: option::read(options),
            payload: tcp[header..].to_vec(),
            bad_checksum: sum(tcp, pseudo_header(src, dst, tcp.len())) != 0xffff,
        })
    }
}

/// `N` bytes at a place that is known to exist.
fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    core::array::from_fn(|i| bytes[at + i])
}

fn ip_header(src: IpAddr, dst: IpAddr, ecn: u8, len: usize) -> Vec<u8> {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = (20 + len) as u16;
            let mut header = vec![0x45, ecn];
            header.extend(total.to_be_bytes());
            // Don't fragment; 64 hops; the checksum follows.
            header.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
            header.extend(src.octets());
            header.extend(dst.octets());
            let checksum = !sum(&header, 0);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        }
        (src, dst) => {
            let wide = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            let mut header = vec![0x60, ecn << 4, 0, 0];
            header.extend((len as u16).to_be_bytes());
            header.extend([TCP, 64]);
            header.extend(wide(src).octets());
            header.extend(wide(dst).octets());
            header
        }
    }
}

/// RFC 9293 §3.1: the part of the checksum beside the segment.
fn pseudo_header(src: IpAddr, dst: IpAddr, len: usize) -> u16 {
    let mut bytes = Vec::new();
    for address in [src, dst] {
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    bytes.extend((len as u32).to_be_bytes());
    bytes.extend([0, TCP]);
    sum(&bytes, 0)
}

/// The ones' complement sum of 16-bit words (RFC 1071), from `start` on.
pub(crate) fn sum(bytes: &[u8], start: u16) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let mut total = words.fold(u32::from(start), |total, word| {
        let total = total + word;
        (total & 0xffff) + (total >> 16)
    });
    total = (total & 0xffff) + (total >> 16);
    total as u16
}

#[cfg(test)]
mod tests;
