//! Segments that leave as one packet, which the kernel cuts up (Generic Segmentation Offload).

use anabranch_wire::{Gso, GsoKind, Packet, VnetHeader};
use bytes::Bytes;

/// Consecutive segments of one subflow. Their payload is never copied together.
#[derive(Debug, Default)]
pub(crate) struct Train {
    /// The common header.
    head: Packet,
    /// Their payload.
    parts: Vec<Bytes>,
    /// Length in bytes.
    len: usize,
}

/// Most payload, so that the packet's length fits its field: 65535 less the longest headers, IPv6 and TCP with options.
const MOST: usize = 65_535 - 40 - 60;
/// Most segments: not more than the kernel takes pieces (`MAX_SKB_FRAGS` pages and more), and below `IOV_MAX`.
const SEGMENTS: usize = 64;

impl Train {
    /// A train of one segment.
    pub fn of(mut packet: Packet) -> Self {
        let payload = core::mem::take(&mut packet.segment.payload);
        Self { head: packet, len: payload.len(), parts: vec![payload] }
    }

    /// The train has no segment.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a segment that follows the last; returns one that cannot join the others.
    pub fn couple(&mut self, mut packet: Packet) -> Option<Packet> {
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else { return Some(packet) };
        let more = packet.segment.payload.len();
        // All segments have the first one's length; the last may be shorter.
        let fits = last.len() == first.len()
            && (1..=first.len()).contains(&more)
            && self.len + more <= MOST
            && self.parts.len() < SEGMENTS
            && (packet.src, packet.dst) == (self.head.src, self.head.dst)
            && self.head.segment.absorb_header(self.len, &packet.segment);
        if !fits {
            return Some(packet);
        }
        self.len += more;
        self.parts.push(core::mem::take(&mut packet.segment.payload));
        None
    }

    /// Appends the headers; returns the device's instructions.
    pub fn emit_headers_into(&self, out: &mut Vec<u8>) -> VnetHeader {
        let start = out.len();
        let left = self.head.emit_headers_into(self.len, out);
        let kind = if self.head.src.is_ipv4() { GsoKind::TCP_V4 } else { GsoKind::TCP_V6 };
        let size = self.parts.first().map_or(0, Bytes::len) as u16;
        let gso = Gso { kind, header_len: (out.len() - start) as u16, size };
        VnetHeader { gso: (self.parts.len() > 1).then_some(gso), ..left }
    }

    /// The payload, in pieces.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| &part[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SeqNumber;
    use anabranch_wire::{Flags, Segment};

    fn packet(seq: u32, len: usize) -> Packet {
        let payload = Bytes::from(vec![seq as u8; len]);
        Packet {
            segment: Segment { seq: SeqNumber(seq), flags: Flags::ACK, payload, ..Segment::default() },
            ..Packet::default()
        }
    }

    #[test]
    fn segments_that_follow_each_other_are_one_packet() {
        let mut train = Train::of(packet(1, 1000));
        assert!(train.couple(packet(1001, 1000)).is_none());
        assert!(train.couple(packet(3001, 1000)).is_some(), "a hole");
        assert!(train.couple(packet(2001, 1001)).is_some(), "longer than the first");
        assert!(train.couple(packet(2001, 0)).is_some(), "an acknowledgment");
        assert!(train.couple(packet(2001, 7)).is_none());
        assert!(train.couple(packet(2008, 7)).is_some(), "behind a short one");
        let mut bytes = Vec::new();
        let left = train.emit_headers_into(&mut bytes);
        let gso = Gso { kind: GsoKind::TCP_V4, header_len: 40, size: 1000 };
        assert_eq!(left, VnetHeader { checksum: Some((20, 16)), gso: Some(gso) });
        train.parts().for_each(|part| bytes.extend_from_slice(part));
        let read = Packet::parse_unverified(bytes.into()).expect("a packet");
        assert_eq!((read.segment.seq, read.segment.payload.len()), (SeqNumber(1), 2007));
    }

    #[test]
    fn a_train_is_no_longer_than_ip_can_say() {
        for len in [100, 1448, 9000] {
            let mut train = Train::of(packet(0, len));
            let mut next = len;
            while train.couple(packet(next as u32, len)).is_none() {
                next += len;
            }
            assert!(next <= MOST && (next + len > MOST || next / len == SEGMENTS), "{len}: {next}");
        }
    }

    #[test]
    fn one_segment_is_not_cut_up() {
        let mut bytes = Vec::new();
        let left = Train::of(packet(1, 1000)).emit_headers_into(&mut bytes);
        assert_eq!(left, VnetHeader { checksum: Some((20, 16)), gso: None });
        assert!(Train::default().couple(packet(1, 5)).is_some() && Train::default().is_empty());
    }
}
