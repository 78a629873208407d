//! The engine's packets as the carrier takes them.

use anabranch_wire::{Ecn, Packet};
use bytes::Bytes;

/// Bytes of IPv4 and TCP with all its options at most (RFC 9293 §3.1): the rest of a packet is payload.
pub const HEADERS: u32 = 20 + 60;

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

/// Marks that datagrams brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnMarks {
    /// Packets that are marked now as their datagrams were.
    pub taken: u64,
    /// Packets that were dropped, because they are not ECN-capable.
    pub refused: u64,
}

impl EcnMarks {
    /// Gives a packet what the network made of its datagram's ECN field, `outer` (RFC 6040 §4.2). False if it is to be dropped.
    pub(crate) fn take(&mut self, outer: Ecn, packet: &mut [u8]) -> bool {
        let inner = match outer {
            // By far the most frequent.
            Ecn::NotEct | Ecn::Ect0 => return true,
            Ecn::Ect1 | Ecn::Ce => Ecn::of(packet).unwrap_or_default(),
        };
        match (inner, outer) {
            // A drop is the only sign of congestion that its sender understands.
            (Ecn::NotEct, Ecn::Ce) => {
                self.refused += 1;
                return false;
            }
            (_, Ecn::Ce) => {
                self.taken += 1;
                Ecn::Ce.set(packet);
            }
            (Ecn::Ect0, Ecn::Ect1) => Ecn::Ect1.set(packet),
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040 §4.2, figure 4. Rows: the packet's field; columns: the datagram's. Nothing: the packet is dropped.
    #[test]
    fn a_mark_of_a_datagram_is_one_of_its_packet() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        let all = [NotEct, Ect0, Ect1, Ce];
        let figure = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce); 4]),
        ];
        let mut marks = EcnMarks::default();
        for (inner, row) in figure {
            for (outer, expected) in all.into_iter().zip(row) {
                let packet = Packet { segment: Segment { ecn: inner, ..Segment::default() }, ..Packet::default() };
                let mut bytes = Vec::new();
                write(&packet, &mut bytes);
                let kept = marks.take(outer, &mut bytes);
                assert_eq!(kept.then(|| read(&bytes).unwrap().segment.ecn), expected, "{inner} in {outer}");
            }
        }
        assert_eq!(marks, EcnMarks { taken: 3, refused: 1 });
    }

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
