//! One header for consecutive segments, as receive offload (GRO) makes it, and the reverse (GSO).

use crate::{Dss, Flags, Packet, Segment};

impl Segment {
    /// Makes `self` the header of a segment that carries also the payload of `next`, behind `len` bytes of its own,
    /// with one mapping over all of it (RFC 8684 §3.3: a mapping may span segments). False, with nothing changed, if
    /// one header cannot describe both. The caller merges the payload.
    pub fn absorb_header(&mut self, len: usize, next: &Self) -> bool {
        let follows = self.flags == Flags::ACK
            && (next.flags == Flags::ACK || next.flags == Flags::ACK | Flags::PSH)
            && (next.src_port, next.dst_port) == (self.src_port, self.dst_port)
            && next.ecn == self.ecn
            && next.seq == self.seq.at(len as u64)
            && (next.ack, next.window) == (self.ack, self.window)
            && self.options.absorb(len, &next.options, next.payload.len());
        if follows {
            self.flags = next.flags;
        }
        follows
    }
}

impl Packet {
    /// The packets into which segmentation offload cuts this one, with `size` bytes of payload each except the last.
    /// All repeat the options, so that a mapping spans them.
    pub fn cut(&self, size: u16) -> impl Iterator<Item = Self> {
        let (payload, size) = (&self.segment.payload, usize::from(size.max(1)));
        let parts = payload.len().div_ceil(size).max(1);
        (0..parts).map(move |part| {
            let from = part * size;
            let mut packet = self.clone();
            let segment = &mut packet.segment;
            segment.seq = segment.seq.at(from as u64);
            segment.payload = payload.slice(from..payload.len().min(from + size));
            if part > 0 {
                // RFC 3168 §6.1.2: one packet carries CWR.
                segment.flags = Flags(segment.flags.0 & !Flags::CWR.0);
            }
            if part + 1 < parts {
                segment.flags = Flags(segment.flags.0 & !(Flags::PSH | Flags::FIN).0);
            }
            packet
        })
    }
}

/// Extends the mapping of `ours`, of `len` bytes, by that of `next`, of `more`; false if it is not its continuation.
pub(crate) fn extend(ours: &mut Option<Dss>, len: usize, next: &Option<Dss>, more: usize) -> bool {
    let (ours, next) = match (ours, next) {
        (None, None) => return true,
        (Some(ours), Some(next)) if ours.ack == next.ack && !ours.data_fin && !next.data_fin => (ours, next),
        _ => return false,
    };
    let (Some(mapping), Some(next)) = (&mut ours.mapping, &next.mapping) else { return false };
    let mask = if mapping.wide { u64::MAX } else { u64::from(u32::MAX) };
    // A checksum covers its mapping unchanged; an empty mapping is an infinite one.
    let goes_on = mapping.checksum.is_none()
        && next.checksum.is_none()
        && mapping.wide == next.wide
        && (usize::from(mapping.len), usize::from(next.len)) == (len, more)
        && next.len > 0
        && next.subflow_seq == mapping.subflow_seq.wrapping_add(mapping.len.into())
        && next.data_seq == mapping.data_seq.wrapping_add(mapping.len.into()) & mask;
    match mapping.len.checked_add(next.len) {
        Some(both) if goes_on => {
            mapping.len = both;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataAck, Ecn, Mapping, Options, Timestamps};
    use anabranch_units::SeqNumber;
    use bytes::Bytes;

    fn segment(seq: u32, data_seq: u64, wide: bool, payload: &'static [u8]) -> Segment {
        let mut options = Options::new();
        options.set_timestamps(Timestamps { val: 7, ecr: 3 });
        let len = payload.len() as u16;
        let subflow_seq = seq.wrapping_sub(1_000);
        let mapping = Some(Mapping { data_seq, wide, subflow_seq, len, checksum: None });
        options.set_dss(Dss { ack: Some(DataAck::Long(9)), mapping, data_fin: false });
        let payload = Bytes::from_static(payload);
        Segment {
            seq: SeqNumber(seq),
            ack: SeqNumber(5),
            flags: Flags::ACK,
            window: 77,
            options,
            payload,
            ..Segment::default()
        }
    }

    #[test]
    fn a_run_of_segments_has_one_mapping() {
        let mut head = segment(u32::MAX - 2, u64::MAX, true, b"abcd");
        let mut last = segment(6, 8, true, b"ij");
        last.flags = Flags::ACK | Flags::PSH;
        assert!(head.absorb_header(4, &segment(1, 3, true, b"efghi")));
        assert!(head.absorb_header(9, &last));
        let mapping = head.options.dss().and_then(|dss| dss.mapping).expect("a mapping");
        assert_eq!(
            (mapping.data_seq, mapping.subflow_seq, mapping.len),
            (u64::MAX, (u32::MAX - 2).wrapping_sub(1_000), 11)
        );
        assert_eq!((head.seq, head.flags), (SeqNumber(u32::MAX - 2), last.flags));
        // PSH ends it.
        assert!(!head.absorb_header(11, &segment(8, 10, true, b"k")));
    }

    #[test]
    fn plain_tcp_needs_no_mapping() {
        let plain = |seq, payload| Segment { options: Options::new(), ..segment(seq, 0, true, payload) };
        let mut head = plain(1_001, b"abcd");
        assert!(head.absorb_header(4, &plain(1_005, b"efgh")));
        assert!(!head.absorb_header(8, &segment(1_009, 0, true, b"i")), "what is mapped does not join what is not");
        assert_eq!(head, plain(1_001, b"abcd"));
    }

    #[test]
    fn short_numbers_wrap() {
        let mut head = segment(1_001, 0xffff_fffe, false, b"abcd");
        assert!(head.absorb_header(4, &segment(1_005, 2, false, b"e")));
    }

    #[test]
    fn what_differs_stays_apart() {
        let head = segment(1_001, 50, true, b"abcd");
        let next = segment(1_005, 54, true, b"efgh");
        assert!(head.clone().absorb_header(4, &next));
        let with = |change: &dyn Fn(&mut Segment)| {
            let mut changed = next.clone();
            change(&mut changed);
            changed
        };
        let dss = |change: &dyn Fn(&mut Dss)| {
            let mut dss = *next.options.dss().expect("it has one");
            change(&mut dss);
            let mut options = Options::new();
            options.set_timestamps(next.options.timestamps().expect("it has them"));
            options.set_dss(dss);
            with(&|s| s.options = options.clone())
        };
        let others = [
            segment(1_006, 54, true, b"efgh"),
            segment(1_005, 55, true, b"efgh"),
            segment(1_005, 54, false, b"efgh"),
            with(&|s| s.flags = Flags::ACK | Flags::FIN),
            with(&|s| s.window = 78),
            with(&|s| s.ack = SeqNumber(6)),
            with(&|s| s.src_port = 1),
            with(&|s| s.options = Options::new()),
            dss(&|d| d.ack = Some(DataAck::Long(10))),
            // A mark belongs to one packet, and so does CWR.
            with(&|s| s.ecn = Ecn::Ce),
            with(&|s| s.flags = s.flags | Flags::CWR),
            dss(&|d| d.data_fin = true),
            dss(&|d| d.mapping = None),
            dss(&|d| d.mapping.as_mut().expect("it has one").checksum = Some(1)),
            dss(&|d| d.mapping.as_mut().expect("it has one").len = 5),
            dss(&|d| d.mapping.as_mut().expect("it has one").subflow_seq += 1),
        ];
        for other in others {
            let mut untouched = head.clone();
            assert!(!untouched.absorb_header(4, &other), "{other}");
            assert_eq!(untouched, head);
        }
    }

    #[test]
    fn what_is_cut_up_is_the_same_stream() {
        let mut segment = segment(2_000, 500, true, &[7; 2500]);
        segment.flags = Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR;
        let whole = Packet { segment: segment.clone(), ..Packet::default() };
        let parts: Vec<Segment> = whole.cut(1000).map(|packet| packet.segment).collect();
        let seen: Vec<_> = parts.iter().map(|s| (s.seq.0, s.payload.len(), s.flags)).collect();
        // Only the first has CWR; only the last has PSH and ends the stream.
        let (first, last) = (Flags::ACK | Flags::CWR, Flags::ACK | Flags::PSH | Flags::FIN);
        assert_eq!(seen, [(2_000, 1000, first), (3_000, 1000, Flags::ACK), (4_000, 500, last)]);
        assert!(parts.iter().all(|part| part.options == segment.options));
        assert_eq!(whole.cut(2500).collect::<Vec<_>>(), core::slice::from_ref(&whole));
        let empty = Packet::default();
        assert_eq!(empty.cut(0).collect::<Vec<_>>(), core::slice::from_ref(&empty));
    }
}
