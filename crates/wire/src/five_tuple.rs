//! The 5-tuple of a packet, by which queues tell flows apart.

use crate::Packet;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use std::net::IpAddr;

/// TCP's protocol number.
const TCP: u8 = 6;

/// Addresses, protocol and ports of a packet. A packet without ports has zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol number.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: (u16, u16),
}

impl From<&Packet> for FiveTuple {
    fn from(packet: &Packet) -> Self {
        let Packet { src, dst, segment } = packet;
        Self { src: *src, dst: *dst, protocol: TCP, ports: (segment.src_port, segment.dst_port) }
    }
}

impl FiveTuple {
    /// 5-tuple of an IP packet of any protocol; `None` if it is malformed.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let packet = SlicedPacket::from_ip(bytes).ok()?;
        let (src, dst, protocol) = match packet.net? {
            NetSlice::Ipv4(ip) => {
                let header = ip.header();
                (header.source_addr().into(), header.destination_addr().into(), header.protocol().0)
            }
            NetSlice::Ipv6(ip) => {
                let header = ip.header();
                (header.source_addr().into(), header.destination_addr().into(), ip.payload().ip_number.0)
            }
            NetSlice::Arp(_) => return None,
        };
        let ports = match packet.transport {
            Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
            Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
            _ => (0, 0),
        };
        Some(Self { src, dst, protocol, ports })
    }

    /// A hash whose bits all depend on all of it; the same on every machine.
    pub fn hash(&self) -> u64 {
        let wide = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let (src, dst) = (wide(self.src), wide(self.dst));
        let ports = u64::from(self.ports.0) << 16 | u64::from(self.ports.1);
        let words =
            [src as u64, (src >> 64) as u64, dst as u64, (dst >> 64) as u64, ports << 8 | u64::from(self.protocol)];
        words.into_iter().fold(0, |hash, word| mix(hash ^ word))
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;

    #[test]
    fn bytes_have_the_five_tuple_of_their_packet() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let segment = Segment { src_port: 5001, dst_port: 443, ..Segment::default() };
            let packet = Packet { src: src.parse().unwrap(), dst: dst.parse().unwrap(), segment };
            let tuple = FiveTuple::from(&packet);
            assert_eq!(FiveTuple::of(&packet.emit()), Some(tuple));
            let other = FiveTuple { ports: (5002, 443), ..tuple };
            assert_ne!(tuple.hash(), other.hash());
        }
        assert_eq!(FiveTuple::of(&[0x45, 0, 0]), None);
    }

    /// Thousands of flows whose ports follow each other fill a thousand places evenly.
    #[test]
    fn neighbouring_ports_spread() {
        let (src, dst) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut places = [0u32; 64];
        for port in 0..6400 {
            places[(FiveTuple { src, dst, protocol: TCP, ports: (port, 80) }.hash() % 64) as usize] += 1;
        }
        assert!(places.iter().all(|count| (60..=140).contains(count)), "{places:?}");
    }
}
