//! The receive side of a subflow: segments back into the subflow's sequence (RFC 9293 §3.10.7.4), as ranges.

use crate::MAX_PIECES;
use crate::mappings::Mappings;
use anabranch_units::{Duration, Instant, Range, RangeSet, SeqNumber};
use anabranch_wire::Timestamps;
use std::collections::BTreeMap;

/// Most pieces that wait for their mapping.
const MAX_UNMAPPED: usize = 1024;
/// Time after which an idle peer's timestamp is invalid (RFC 7323 §5.5).
const STALE: Duration = Duration::from_secs(24 * 86_400);

/// Offsets: 0 = SYN, 1 = first payload byte.
#[derive(Clone, Debug)]
pub(crate) struct Receiving {
    /// The peer's initial sequence number.
    pub isn: SeqNumber,
    pub mappings: Mappings,
    /// The latest acknowledgment that the host sent.
    pub acked: u64,
    next: u64,
    /// Out-of-order pieces by their start, not merged: arrivals are recorded segment by segment.
    pieces: BTreeMap<u64, u64>,
    held: RangeSet,
    /// Bytes of `held` at the last call of [`Self::held_change`].
    reported: u64,
    /// In sequence, without a mapping so far.
    unmapped: Vec<Range>,
    fin: Option<u64>,
    finished: bool,
    /// `TS.Recent` and when it was taken (RFC 7323 §4.3).
    recent: Option<(u32, Instant)>,
}

impl Receiving {
    pub fn new(isn: SeqNumber) -> Self {
        Self {
            isn,
            mappings: Mappings::default(),
            acked: 1,
            next: 1,
            pieces: BTreeMap::new(),
            held: RangeSet::new(),
            reported: 0,
            unmapped: Vec::new(),
            fin: None,
            finished: false,
            recent: None,
        }
    }

    /// Next offset expected (`RCV.NXT`).
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The peer's FIN was reached.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// True if a segment at `seq` that occupies `len` numbers is at most `limit` ahead and not all old.
    pub fn accepts(&self, seq: u64, len: u64, limit: u64) -> bool {
        seq <= self.next + limit && (seq + len > self.next || (len == 0 && seq == self.next))
    }

    /// PAWS: true if the segment is old (RFC 7323 §5.3 R1).
    pub fn is_old(&self, stamps: Timestamps, now: Instant) -> bool {
        self.recent.is_some_and(|(val, at)| (stamps.val.wrapping_sub(val) as i32) < 0 && now.since(at) < STALE)
    }

    /// Keeps the timestamp of a segment at `seq` if it covers the last acknowledged number (RFC 7323 §4.3).
    pub fn keep(&mut self, stamps: Timestamps, seq: u64, now: Instant) {
        if !self.is_old(stamps, now) && seq <= self.next && self.acked >= self.next {
            self.recent = Some((stamps.val, now));
        }
    }

    /// Keeps the timestamp of a copy of the peer's last segment: the host's acknowledgment was lost, and the next one
    /// echoes this copy.
    pub fn renew(&mut self, stamps: Timestamps, now: Instant) {
        if !self.is_old(stamps, now) {
            self.recent = Some((stamps.val, now));
        }
    }

    /// Takes the payload of a segment; returns its part that is next in sequence. [`Self::pop`] returns the pieces that
    /// follow. `Err` if there is no room for another piece.
    pub fn accept(&mut self, all: Range) -> Result<Option<Range>, ()> {
        let limit = self.fin.unwrap_or(u64::MAX);
        let fresh = Range::new(all.start.max(self.next), all.end.min(limit));
        if fresh.is_empty() {
            return Ok(None);
        }
        if fresh.start > self.next {
            return self.hold(fresh).map(|()| None);
        }
        let until = self.held.first().map_or(fresh.end, |r| fresh.end.min(r.start));
        let held = self.hold(Range::new(until, fresh.end));
        self.next = until;
        held.map(|()| Some(Range::new(fresh.start, until)))
    }

    /// The next piece that has come into sequence, if any.
    pub fn pop(&mut self) -> Option<Range> {
        let entry = self.pieces.first_entry().filter(|e| *e.key() == self.next)?;
        let (start, end) = entry.remove_entry();
        self.held.remove(Range::new(start, end));
        self.next = end;
        Some(Range::new(start, end))
    }

    /// The bytes held out of order, if they are another number than at the last call.
    pub fn held_change(&mut self) -> Option<u64> {
        let before = core::mem::replace(&mut self.reported, self.held.bytes());
        (self.reported != before).then_some(self.reported)
    }

    /// Keeps a piece until its mapping comes; `false` if there is no room for it.
    pub fn hold_unmapped(&mut self, piece: Range) -> bool {
        let room = self.unmapped.len() < MAX_UNMAPPED;
        if room {
            self.unmapped.push(piece);
        }
        room
    }

    /// The pieces that wait for their mapping, in order.
    pub fn take_unmapped(&mut self) -> Vec<Range> {
        core::mem::take(&mut self.unmapped)
    }

    /// Bytes that wait for their mapping.
    pub fn unmapped_bytes(&self) -> u64 {
        self.unmapped.iter().map(|piece| piece.len()).sum()
    }

    /// The first offset whose mapping is still needed.
    pub fn unplaced(&self) -> u64 {
        self.unmapped.first().map_or(self.next, |piece| piece.start)
    }

    /// The lowest missing part below `seq`. Nothing is missing behind the FIN.
    pub fn first_gap(&self, seq: u64) -> Option<Range> {
        let limit = self.fin.unwrap_or(u64::MAX).min(seq);
        let end = self.held.first().map_or(limit, |r| r.start.min(limit));
        Some(Range::new(self.next, end)).filter(|gap| !gap.is_empty())
    }

    /// Records the peer's FIN at `offset`, unless it contradicts earlier data, and passes it once it is reached.
    pub fn note_fin(&mut self, offset: u64) {
        let beyond = self.held.last().is_some_and(|r| r.end > offset);
        if self.fin.is_none() && !beyond && offset >= self.next {
            self.fin = Some(offset);
        }
    }

    /// Passes the peer's FIN if everything before it has come.
    pub fn take_fin(&mut self) {
        if self.fin == Some(self.next) {
            self.next += 1;
            self.finished = true;
        }
    }

    fn hold(&mut self, range: Range) -> Result<(), ()> {
        if range.is_empty() || self.held.covers(range) {
            return Ok(());
        }
        if self.pieces.len() >= MAX_PIECES {
            return Err(());
        }
        self.pieces.extend(self.held.gaps(range).map(|gap| (gap.start, gap.end)));
        self.held.insert(range);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_once_and_in_order(order in prop::collection::vec((1u64..60, 1u64..9), 1..80)) {
            let mut r = Receiving::new(SeqNumber(7));
            let mut seen = RangeSet::new();
            let mut got = 1;
            for (start, len) in order {
                let all = Range::new(start, start + len);
                seen.insert(all);
                let ready = r.accept(all).expect("there is room");
                for piece in ready.into_iter().chain(std::iter::from_fn(|| r.pop())) {
                    prop_assert_eq!(piece.start, got);
                    got = piece.end;
                }
                let whole = seen.first().filter(|r| r.start == 1).map_or(1, |r| r.end);
                prop_assert_eq!((r.next(), got), (whole, whole));
                prop_assert_eq!(r.first_gap(70), seen.gaps(Range::new(1, 70)).next());
            }
        }
    }

    #[test]
    fn pieces_are_bounded_and_a_fin_ends_the_sequence() {
        let mut r = Receiving::new(SeqNumber(0));
        let piece = |n: u64| Range::new(10 * n, 10 * n + 5);
        assert!((1..=MAX_PIECES as u64).all(|n| r.accept(piece(n)).is_ok()));
        assert_eq!(r.accept(piece(MAX_PIECES as u64 + 1)), Err(()));
        let mut r = Receiving::new(SeqNumber(0));
        r.note_fin(4);
        r.take_fin();
        assert!(!r.is_finished());
        assert_eq!(r.accept(Range::new(1, 9)), Ok(Some(Range::new(1, 4))));
        r.take_fin();
        assert_eq!((r.is_finished(), r.next()), (true, 5));
        // For any acknowledgment, nothing is missing behind the FIN.
        assert_eq!(r.first_gap(100), None);
    }
}
