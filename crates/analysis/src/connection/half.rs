//! One direction of a subflow, from its headers alone.

use anabranch_units::{Range, RangeSet, SeqNumber};
use anabranch_wire::{Flags, Segment};

/// Most separate ranges of sequence numbers that are held.
const MOST_RANGES: usize = 1 << 16;
/// The offset of a sequence whose beginning was not captured: older numbers may still come.
const MIDDLE: u64 = 1 << 32;

/// Counts of segments and bytes that one host sent on a subflow, as seen at one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    isn: Option<SeqNumber>,
    /// First offset that was not seen yet.
    pub nxt: u64,
    /// Offsets below were acknowledged, or seen.
    floor: u64,
    /// Seen, above `floor`.
    seen: RangeSet,
    pub packets: u64,
    pub data_packets: u64,
    /// Payload bytes, all copies.
    pub bytes: u64,
    /// Packets whose payload had all been seen before, and the bytes of payload that had been.
    pub again_packets: u64,
    pub again_bytes: u64,
    /// Packets with new payload below a number that was seen: lost and retransmitted, or reordered.
    pub late_packets: u64,
    pub syns: u64,
    pub scale: Option<u8>,
    pub fin: bool,
    pub reset: bool,
    pub zero_windows: u64,
    /// A DSS came.
    pub dss: bool,
    pub largest: u64,
}

/// The place of a segment in its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Offsets of the payload.
    pub payload: Range,
    /// No byte of the payload is new.
    pub again: bool,
}

impl Half {
    /// Adds a segment.
    pub fn add(&mut self, segment: &Segment) -> Seen {
        let flags = segment.flags;
        self.packets += 1;
        self.syns += u64::from(flags.has(Flags::SYN));
        self.fin |= flags.has(Flags::FIN);
        self.reset |= flags.has(Flags::RST);
        self.dss |= segment.options.dss().is_some();
        if flags.has(Flags::SYN) {
            self.scale = segment.options.window_scale();
        } else {
            self.zero_windows += u64::from(segment.window == 0 && !flags.has(Flags::RST));
        }
        let none = Seen { payload: Range::new(self.nxt, self.nxt), again: false };
        let Some(seq) = self.offset(segment.seq, flags) else { return none };
        let start = seq + u64::from(flags.has(Flags::SYN));
        let payload = Range::new(start, start + segment.payload.len() as u64);
        let again = !payload.is_empty() && self.count(payload);
        if flags.has(Flags::SYN) {
            self.nxt = self.nxt.max(1);
            self.floor = self.floor.max(1);
        }
        Seen { payload, again }
    }

    /// The offset of a sequence number: 0 is the SYN, 1 the first byte.
    fn offset(&mut self, seq: SeqNumber, flags: Flags) -> Option<u64> {
        let Some(isn) = self.isn else {
            if flags.has(Flags::RST) {
                return None;
            }
            let syn = flags.has(Flags::SYN);
            self.isn = Some(if syn { seq } else { SeqNumber(seq.0.wrapping_sub(1)) });
            (self.nxt, self.floor) = if syn { (0, 0) } else { (MIDDLE + 1, MIDDLE + 1) };
            return Some(self.nxt);
        };
        seq.offset_from(isn, self.nxt)
    }

    /// The number of its SYN; where that was not seen, the one before its first byte.
    pub fn isn(&self) -> Option<SeqNumber> {
        self.isn
    }

    /// The offset that an acknowledgment of the other host names.
    pub fn acked(&mut self, ack: SeqNumber) -> Option<u64> {
        let offset = ack.offset_from(self.isn?, self.nxt)?;
        // An acknowledgment of what this capture did not see: a hole of the capture.
        let upto = offset.min(self.nxt);
        if upto > self.floor {
            self.floor = upto;
            self.seen.remove_below(upto);
        }
        Some(offset)
    }

    /// Counts payload; true if all of it was seen before.
    fn count(&mut self, payload: Range) -> bool {
        self.data_packets += 1;
        self.bytes += payload.len();
        self.largest = self.largest.max(payload.len());
        let fresh = Range::new(payload.start.max(self.floor), payload.end);
        let new = self.seen.insert(fresh);
        self.again_bytes += payload.len() - new;
        let again = new == 0;
        self.again_packets += u64::from(again);
        self.late_packets += u64::from(!again && payload.start < self.nxt);
        self.nxt = self.nxt.max(payload.end);
        if self.seen.count() > MOST_RANGES
            && let Some(lowest) = self.seen.first()
        {
            self.floor = lowest.end;
            self.seen.remove_below(lowest.end);
        }
        again
    }

    /// Bytes of the window field of a segment, by the scales of both SYNs (RFC 7323 §2.2, §2.3).
    pub fn window(&self, other: &Self, segment: &Segment) -> u64 {
        let scaled = self.scale.filter(|_| other.scale.is_some() && !segment.flags.has(Flags::SYN));
        u64::from(segment.window) << scaled.unwrap_or(0).min(14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn segment(seq: u32, len: usize, flags: Flags) -> Segment {
        Segment { seq: SeqNumber(seq), flags, payload: Bytes::from(vec![0; len]), ..Segment::default() }
    }

    #[test]
    fn copies_and_late_segments_are_told_apart() {
        let mut half = Half::default();
        half.add(&segment(u32::MAX, 0, Flags::SYN));
        for (seq, len) in [(0, 100), (200, 100), (100, 100), (50, 100), (250, 100)] {
            half.add(&segment(seq, len, Flags::ACK));
        }
        assert_eq!((half.data_packets, half.bytes), (5, 500));
        assert_eq!((half.again_packets, half.again_bytes), (1, 150), "50..150, and half of 250..350");
        assert_eq!(half.late_packets, 2, "100..200 and 250..350");
        assert_eq!(half.acked(SeqNumber(300)), Some(301));
        assert!(half.add(&segment(120, 10, Flags::ACK)).again);
    }

    #[test]
    fn a_missing_beginning_leaves_room_for_older_numbers() {
        let mut half = Half::default();
        half.add(&segment(5000, 100, Flags::ACK));
        let older = half.add(&segment(4000, 100, Flags::ACK));
        assert_eq!((older.again, half.bytes), (true, 200));
    }
}
