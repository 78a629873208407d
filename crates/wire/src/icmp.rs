//! The message of a router about a packet that was too large for its next link.

use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, icmpv4};

/// Time to live of the message.
const HOP_LIMIT: u8 = 64;
/// Most bytes of the packet that the message quotes: with its own headers it stays below 576 bytes (RFC 1812 §4.3.2.3), and below the
/// 1280 that RFC 4443 §3.2 allows.
const MOST_QUOTED: usize = 512;

/// The message as an IP packet, from the packet's destination to its source: ICMP "fragmentation needed" (RFC 1191 §4) or ICMPv6 "packet
/// too big" (RFC 4443 §3.2), which name an MTU in bytes. `None` if `packet` is no IP packet.
pub fn too_big(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let quoted = &packet[..packet.len().min(MOST_QUOTED)];
    let mut out = Vec::new();
    match packet.first()? >> 4 {
        4 => {
            let (source, destination) = (packet.get(12..16)?, packet.get(16..20)?);
            let unreachable =
                icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu.min(0xffff) as u16 };
            PacketBuilder::ipv4(destination.try_into().ok()?, source.try_into().ok()?, HOP_LIMIT)
                .icmpv4(Icmpv4Type::DestinationUnreachable(unreachable))
                .write(&mut out, quoted)
                .ok()?;
        }
        6 => {
            let (source, destination) = (packet.get(8..24)?, packet.get(24..40)?);
            PacketBuilder::ipv6(destination.try_into().ok()?, source.try_into().ok()?, HOP_LIMIT)
                .icmpv6(Icmpv6Type::PacketTooBig { mtu })
                .write(&mut out, quoted)
                .ok()?;
        }
        _ => return None,
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, Segment};
    use bytes::Bytes;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use etherparse::{SlicedPacket, TransportSlice};

    fn packet(src: IpAddr, dst: IpAddr) -> Vec<u8> {
        let segment =
            Segment { src_port: 1000, dst_port: 80, payload: Bytes::from(vec![7; 1400]), ..Segment::default() };
        Packet { src, dst, segment }.emit()
    }

    #[test]
    fn the_message_quotes_the_packet_and_names_the_mtu() {
        let large = packet(Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
        let message = too_big(&large, 1300).unwrap();
        let read = SlicedPacket::from_ip(&message).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = read.transport else { panic!("ICMP") };
        let needed = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1300 };
        assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(needed));
        assert_eq!(icmp.payload(), &large[..512]);
        assert!(message.len() <= 576);
        // A sum over the message with its checksum is zero.
        let sum = message[20..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        let sum: u32 = sum.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);

        let six = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
        let large = packet(six(1).into(), six(2).into());
        let message = too_big(&large, 1280).unwrap();
        let read = SlicedPacket::from_ip(&message).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = read.transport else { panic!("ICMPv6") };
        assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1280 });
        assert!(icmp.is_checksum_valid(six(2).octets(), six(1).octets()));
        assert_eq!(icmp.payload(), &large[..512]);
    }

    #[test]
    fn what_is_no_packet_has_no_message() {
        for bytes in [&[][..], &[0x45], &[0x60; 30], &[0x10; 60]] {
            assert_eq!(too_big(bytes, 1300), None);
        }
    }
}
