//! The engine's packets as the carrier takes them.

use anabranch_wire::Packet;
use bytes::Bytes;

/// Writes a packet into `bytes`, whose old content is lost. The tag of its datagram covers it, so its payload is not summed up: the field
/// of the TCP checksum has the sum of the pseudo-header, as in packets whose checksum Linux leaves to a device.
pub(crate) fn write(packet: &Packet, bytes: &mut Vec<u8>) {
    let payload = &packet.segment.payload;
    bytes.clear();
    packet.emit_headers_into(payload.len(), bytes);
    bytes.extend_from_slice(payload);
}

/// The packet that the carrier has authenticated, which is more than its checksum would say; `None` if it is no TCP segment.
pub(crate) fn read(bytes: &[u8]) -> Option<Packet> {
    Packet::parse_unverified(Bytes::copy_from_slice(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Segment;

    #[test]
    fn a_packet_comes_back_and_has_the_sum_of_its_pseudo_header() {
        let segment =
            Segment { src_port: 7, dst_port: 8, payload: Bytes::from_static(&[9; 1_000]), ..Segment::default() };
        let packet = Packet { src: [10, 1, 2, 1].into(), dst: [10, 1, 2, 129].into(), segment };
        let mut bytes = vec![1; 3];
        write(&packet, &mut bytes);
        assert_eq!(read(&bytes), Some(packet.clone()));
        // RFC 9293 §3.1: both addresses, the protocol, and the length of the segment, here of 1,020 bytes.
        let words = [0x0a01u32, 0x0201, 0x0a01, 0x0281, 6, 1_020];
        let sum: u32 = words.iter().sum();
        assert_eq!(u32::from(u16::from_be_bytes([bytes[36], bytes[37]])), sum);
        assert_eq!(bytes.len(), packet.emit().len());
        assert_eq!(read(&bytes[..30]), None);
    }
}
