//! The receiving side of a subflow: bytes back into sequence (RFC 9293 §3.10.7.4).

use crate::pieces::{is_room_for_another, kept, part, together};
use anabranch_units::Blocks;
use anabranch_units::{Range, RangeSet};
use bytes::Bytes;

/// Pieces for which a queue that is empty keeps room: small holes come again and again.
const ROOM: usize = 32;

/// The result of taking a segment's payload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Bytes that are next in sequence, with their offset.
    pub ready: Option<(u64, Bytes)>,
    /// A part that was there already, for DSACK (RFC 2883).
    pub duplicate: Option<Range>,
    /// The segment lies beyond a hole, fills one, or repeats: acknowledge at once (RFC 5681 §4.2).
    pub acknowledge_now: bool,
}

/// Reassembles the subflow's sequence. Offsets: 0 = SYN, 1 = first payload byte.
#[derive(Debug)]
pub(crate) struct Receiver {
    next: u64,
    /// Pieces held out of order with their offsets, ascending and disjoint: nearly always it comes at the end.
    pieces: Blocks<(u64, Bytes)>,
    held: RangeSet,
    /// Bytes of `held` at the last call of [`Self::held_change`].
    reported: u64,
    fin: Option<u64>,
    /// Starts of pieces lately received, newest first, for the order of SACK blocks.
    recent: [u64; 4],
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            next: 1,
            pieces: Blocks::default(),
            held: RangeSet::new(),
            reported: 0,
            fin: None,
            recent: [u64::MAX; 4],
        }
    }
}

impl Receiver {
    /// Next offset expected (`RCV.NXT`).
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The peer's FIN was reached.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Bytes held out of order.
    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// The end of what is held out of order.
    pub fn held_end(&self) -> Option<u64> {
        self.held.last().map(|range| range.end)
    }

    /// [`Self::held_bytes`], if that is another number than at the last call.
    pub fn held_change(&mut self) -> Option<u64> {
        let before = core::mem::replace(&mut self.reported, self.held.bytes());
        (self.reported != before).then_some(self.reported)
    }

    /// Payload there is next in sequence, and nothing is held out of order.
    pub fn is_next(&self, seq: u64, len: u64) -> bool {
        seq == self.next && self.held.is_empty() && self.fin.is_none_or(|fin| seq + len <= fin)
    }

    /// Takes payload if it [`Self::is_next`]; false if it is not.
    pub fn take_next(&mut self, seq: u64, len: u64) -> bool {
        let simple = self.is_next(seq, len);
        if simple {
            self.next = seq + len;
        }
        simple
    }

    /// Takes the payload of a segment; the caller checked that it is inside the window.
    pub fn accept(&mut self, seq: u64, payload: &Bytes) -> Arrival {
        let all = Range::new(seq, seq + payload.len() as u64);
        if self.take_next(seq, all.len()) {
            return Arrival { ready: Some((seq, payload.clone())), ..Arrival::default() };
        }
        let limit = self.fin.unwrap_or(u64::MAX);
        let fresh = Range::new(all.start.max(self.next), all.end.min(limit));
        if fresh.is_empty() {
            let duplicate = Some(all).filter(|r| !r.is_empty());
            return Arrival { duplicate, acknowledge_now: true, ready: None };
        }
        let duplicate = self.overlap(all);
        let bytes = payload.slice((fresh.start - seq) as usize..(fresh.end - seq) as usize);
        let whole = payload.len();
        if fresh.start > self.next {
            self.hold(fresh, &bytes, whole);
            return Arrival { ready: None, duplicate, acknowledge_now: true };
        }
        let until = self.held.first().map_or(fresh.end, |r| fresh.end.min(r.start));
        self.hold(Range::new(until, fresh.end), &bytes.slice((until - fresh.start) as usize..), whole);
        self.next = until;
        let ready = part(bytes.slice(..(until - fresh.start) as usize), whole);
        Arrival { ready: Some((fresh.start, ready)), duplicate, acknowledge_now: true }
    }

    /// The next piece that has come into sequence, if any.
    pub fn pop(&mut self) -> Option<(u64, Bytes)> {
        self.pieces.front().filter(|(seq, _)| *seq == self.next)?;
        let (seq, bytes) = self.pieces.pop_front()?;
        let range = Range::new(seq, seq + bytes.len() as u64);
        self.held.remove(range);
        self.next = range.end;
        if self.pieces.is_empty() && self.pieces.room() > ROOM {
            // Nothing is missing any more: what a large hole took is given back.
            self.pieces = Blocks::default();
        }
        Some((seq, bytes))
    }

    /// Notes the peer's FIN at `offset`; `false` if that contradicts what is known (the FIN is then ignored).
    pub fn note_fin(&mut self, offset: u64) -> bool {
        let beyond = self.held.last().is_some_and(|r| r.end > offset);
        if self.fin.is_some_and(|fin| fin != offset) || beyond || (self.fin.is_none() && offset < self.next) {
            return false;
        }
        self.fin = Some(offset);
        true
    }

    /// Steps over the peer's FIN if everything before it has come; true when it does so.
    #[inline(always)]
    pub fn take_fin(&mut self) -> bool {
        let reached = self.fin == Some(self.next);
        if reached {
            self.step_over_fin();
        }
        reached
    }

    #[cold]
    fn step_over_fin(&mut self) {
        self.next += 1;
        // Nothing is held below it, and nothing comes above it: gives back the memory.
        self.pieces = Blocks::default();
        self.held = RangeSet::new();
    }

    /// SACK blocks, newest first (RFC 2018 §4); at most four.
    pub fn sack_blocks(&self) -> impl Iterator<Item = Range> + '_ {
        let mut seen = [u64::MAX; 4];
        let recent = self.recent.iter().take_while(|start| **start != u64::MAX);
        let recent = recent.filter_map(|start| self.held.range_at(*start));
        recent.chain(self.held.iter().take(4)).filter(move |r| {
            let new = !seen.contains(&r.start);
            if new && let Some(free) = seen.iter_mut().find(|s| **s == u64::MAX) {
                *free = r.start;
                return true;
            }
            false
        })
    }

    /// The lowest part of `all` that is here already.
    fn overlap(&self, all: Range) -> Option<Range> {
        let below = Range::new(all.start, all.end.min(self.next));
        if !below.is_empty() {
            return Some(below);
        }
        self.held.within(all).next()
    }

    /// The lowest part of `range` that is not held.
    fn first_gap(&self, range: Range) -> Option<Range> {
        self.held.gaps(range).next()
    }

    /// Holds the bytes of `range`, a part of a segment's `whole` payload.
    fn hold(&mut self, range: Range, bytes: &Bytes, whole: usize) {
        if range.is_empty() {
            return;
        }
        // RFC 2018 §4, RFC 2883 §4.2: the block that holds the newest segment comes first, be it a duplicate.
        self.recent.rotate_right(1);
        self.recent[0] = range.start;
        let mut rest = range;
        while let Some(gap) = self.first_gap(rest) {
            let new = bytes.slice((gap.start - range.start) as usize..(gap.end - range.start) as usize);
            self.hold_in(gap, part(new, whole));
            rest.start = gap.end;
        }
    }

    /// Holds the bytes of `gap`, unless there are too many pieces: then it drops them, as TCP may (they were never
    /// acknowledged).
    fn hold_in(&mut self, gap: Range, bytes: Bytes) {
        let at = match self.pieces.back() {
            Some((last, _)) if *last > gap.start => self.pieces.partition_point(|(seq, _)| *seq < gap.start),
            _ => self.pieces.end(),
        };
        if let Some((seq, below)) = self.pieces.before(at).and_then(|below| self.pieces.get_mut(below))
            && *seq + below.len() as u64 == gap.start
            && let Some(both) = together(below, &bytes)
        {
            *below = both;
        } else if let Some((seq, above)) = self.pieces.get_mut(at)
            && *seq == gap.end
            && let Some(both) = together(&bytes, above)
        {
            (*seq, *above) = (gap.start, both);
        } else if is_room_for_another(self.pieces.len(), self.held.bytes()) {
            self.pieces.insert(at, (gap.start, kept(bytes)));
        } else {
            return;
        }
        self.held.insert(gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::counted::payload;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn text() -> Bytes {
        Bytes::from_static(b"abcdefghijklmnopqrstuvwxyz")
    }

    fn piece(start: u64, end: u64) -> Bytes {
        text().slice(start as usize - 1..end as usize - 1)
    }

    #[test]
    fn a_hole_is_reported_and_filled() {
        let mut r = Receiver::default();
        assert_eq!(r.accept(1, &piece(1, 4)).ready, Some((1, piece(1, 4))));
        let beyond = r.accept(7, &piece(7, 10));
        assert!(beyond.ready.is_none() && beyond.acknowledge_now);
        r.accept(12, &piece(12, 13));
        // RFC 2018 §4: the block with the newest segment first.
        assert_eq!(r.sack_blocks().collect::<Vec<_>>(), [Range::new(12, 13), Range::new(7, 10)]);
        let filled = r.accept(4, &piece(4, 8));
        assert_eq!(filled.ready, Some((4, piece(4, 7))));
        assert_eq!(filled.duplicate, Some(Range::new(7, 8)));
        assert_eq!(r.pop(), Some((7, piece(7, 10))));
        assert_eq!(r.pop(), None);
        assert_eq!(r.next(), 10);
    }

    #[test]
    fn a_wide_window_is_held_whole_and_crumbs_are_not() {
        let mut r = Receiver::default();
        let payload = Bytes::from(vec![7; 1400]);
        for n in 1..100_000 {
            r.accept(1 + 1400 * n, &payload);
        }
        assert_eq!((r.held_bytes(), r.pieces.len()), (139_998_600, 99_999));
        let mut r = Receiver::default();
        for n in 1..100_000 {
            r.accept(1 + 2 * n, &payload.slice(..1));
        }
        assert!((1024..1030).contains(&r.pieces.len()), "{}", r.pieces.len());
        assert_eq!(r.held_bytes(), r.pieces.len() as u64);
        // The first hole is filled all the same, and data that begins where a piece ends is kept.
        assert_eq!(r.accept(1, &payload.slice(..2)).ready.map(|(seq, bytes)| (seq, bytes.len())), Some((1, 2)));
        assert!(r.pop().is_some() && r.pop().is_none());
        let before = r.held_bytes();
        r.accept(6, &payload.slice(..1));
        assert_eq!(r.held_bytes(), before + 1);
    }

    #[test]
    fn what_is_new_of_a_packet_does_not_keep_the_rest() {
        let live = Arc::new(AtomicUsize::new(0));
        let mut r = Receiver::default();
        for n in 0..200 {
            assert!(r.accept(2 + 600 * n, &payload(60_000, &live)).ready.is_none());
        }
        assert_eq!(r.held_bytes(), 60_000 + 199 * 600);
        assert_eq!(live.load(Ordering::Relaxed), 60_000, "the first packet alone is held whole");
        let (live, mut r) = (Arc::new(AtomicUsize::new(0)), Receiver::default());
        r.accept(1, &payload(60_000, &live));
        let ready: Vec<_> = (1..200).map(|n| r.accept(1 + 600 * n, &payload(60_000, &live)).ready).collect();
        assert!(ready.iter().all(|ready| ready.as_ref().is_some_and(|(_, bytes)| bytes.len() == 600)));
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_fin_is_taken_in_sequence_only() {
        let mut r = Receiver::default();
        assert!(r.note_fin(4));
        assert!(!r.take_fin());
        assert!(!r.note_fin(9));
        r.accept(1, &piece(1, 4));
        assert!(r.take_fin());
        assert!(r.is_finished());
        assert_eq!(r.next(), 5);
        // Data behind the FIN is not data.
        assert!(r.accept(5, &piece(5, 8)).ready.is_none());
    }

    proptest! {
        #[test]
        fn every_byte_once_and_in_order(order in prop::collection::vec((1u64..26, 1u64..9), 1..80)) {
            let mut r = Receiver::default();
            let mut got = Vec::new();
            for (start, len) in order {
                let end = (start + len).min(27);
                let arrival = r.accept(start, &piece(start, end));
                for (seq, bytes) in arrival.ready.into_iter().chain(std::iter::from_fn(|| r.pop())) {
                    prop_assert_eq!(seq, got.len() as u64 + 1);
                    got.extend_from_slice(&bytes);
                }
            }
            prop_assert_eq!(&got[..], &text()[..got.len()]);
            prop_assert_eq!(r.next(), got.len() as u64 + 1);
            prop_assert!(r.held.first().is_none_or(|h| h.start > r.next()));
        }
    }
}
