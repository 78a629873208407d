//! Bytes of all subflows back into the data sequence. What waits here for a hole to be filled is the OFO queue.
//!
//! Its separate runs are few in relation to their bytes: what would make one too many is dropped, although its subflow has
//! acknowledged it, and the peer sends it again (RFC 8684 §3.3.6). What fills the first hole is always taken.

use crate::pieces::{Pieces, is_room_for_another, part};
use anabranch_units::Range;
use bytes::Bytes;
use std::collections::VecDeque;

/// Contiguous bytes above a hole.
#[derive(Debug)]
struct Run {
    range: Range,
    pieces: Pieces,
}

/// Pieces for which a new run has room.
const FEW: usize = 4;

/// The connection's receive buffer.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    next: u64,
    read: u64,
    ready: Pieces,
    /// Data held out of order, ascending and disjoint. Two runs touch where a hole between them was filled.
    runs: VecDeque<Run>,
    /// Bytes in the runs.
    held: u64,
    /// An empty queue, whose memory the next run takes.
    spare: Pieces,
}

impl Reassembly {
    /// Next data offset expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// End of all that came, out of order too.
    pub fn end(&self) -> u64 {
        self.runs.back().map_or(self.next, |run| run.range.end)
    }

    /// Bytes read by the application.
    pub fn read_bytes(&self) -> u64 {
        self.read
    }

    /// Bytes held out of order.
    pub fn ofo_bytes(&self) -> u64 {
        self.held
    }

    /// Takes bytes that belong at `start`; returns how many of them are new.
    #[inline(always)]
    pub fn accept(&mut self, start: u64, bytes: Bytes) -> u64 {
        let all = Range::new(start, start + bytes.len() as u64);
        let above = self.runs.front().map_or(u64::MAX, |run| run.range.start);
        if start == self.next && all.end <= above {
            self.pass_on(bytes);
            if all.end == above {
                self.drain();
            }
            return all.len();
        }
        let before = self.held;
        if start > self.next
            && let Some((at, gap)) = self.first_gap(all)
            && gap == all
        {
            // Nearly always: above a hole, and nothing of it is there.
            self.hold(at, gap, bytes);
            return self.held - before;
        }
        self.accept_parts(all, &bytes)
    }

    /// Takes what is new of the bytes of `all`; returns how many that are.
    #[cold]
    #[inline(never)]
    fn accept_parts(&mut self, all: Range, bytes: &Bytes) -> u64 {
        let before = self.held;
        let mut fresh = Range::new(all.start.max(self.next), all.end);
        while let Some((at, gap)) = self.first_gap(fresh) {
            let new = bytes.slice((gap.start - all.start) as usize..(gap.end - all.start) as usize);
            self.hold(at, gap, part(new, bytes.len()));
            fresh.start = gap.end;
        }
        let new = self.held - before;
        self.drain();
        new
    }

    /// The lowest part of `within` that is not held, and the index of the first run above it.
    #[inline(always)]
    fn first_gap(&self, within: Range) -> Option<(usize, Range)> {
        let mut gap = within;
        let mut at = match self.runs.back() {
            Some(last) if last.range.end > gap.start => self.runs.partition_point(|run| run.range.end <= gap.start),
            _ => self.runs.len(),
        };
        while let Some(run) = self.runs.get(at).filter(|run| run.range.start <= gap.start) {
            gap.start = run.range.end;
            at += 1;
        }
        if let Some(run) = self.runs.get(at) {
            gap.end = gap.end.min(run.range.start);
        }
        (!gap.is_empty()).then_some((at, gap))
    }

    /// Holds the bytes of `range`, which belong just below run `at`, if there is room.
    #[inline(always)]
    fn hold(&mut self, at: usize, range: Range, piece: Bytes) {
        if let Some(below) = self.runs.get_mut(at.wrapping_sub(1)).filter(|run| run.range.end == range.start) {
            below.range.end = range.end;
            below.pieces.push_back(piece);
        } else if let Some(above) = self.runs.get_mut(at).filter(|run| run.range.start == range.end) {
            above.range.start = range.start;
            above.pieces.push_front(piece);
        } else if is_room_for_another(self.runs.len(), self.held) || range.start == self.next {
            let mut pieces = core::mem::take(&mut self.spare);
            pieces.wait(piece, FEW);
            self.runs.insert(at, Run { range, pieces });
        } else {
            return;
        }
        self.held += range.len();
    }

    /// Passes on the runs that no hole keeps back.
    fn drain(&mut self) {
        while let Some(mut run) = self.runs.pop_front_if(|run| run.range.start == self.next) {
            self.next = run.range.end;
            self.held -= run.range.len();
            self.ready.append(&mut run.pieces);
            run.pieces.become_spare(&mut self.spare);
        }
    }

    /// The next bytes for the application.
    pub fn read(&mut self) -> Option<(Range, Bytes)> {
        let Some(bytes) = self.ready.pop_front() else {
            self.ready.relax(&mut self.spare);
            return None;
        };
        let range = Range::new(self.read, self.read + bytes.len() as u64);
        self.read = range.end;
        Some((range, bytes))
    }

    /// Nothing comes any more, and all was read: gives back the memory.
    pub fn give_back(&mut self) {
        (self.ready, self.spare) = (Pieces::default(), Pieces::default());
        self.runs.shrink_to_fit();
    }

    #[inline(always)]
    fn pass_on(&mut self, bytes: Bytes) {
        self.next += bytes.len() as u64;
        if !bytes.is_empty() {
            self.ready.push_back(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::counted::payload;
    use anabranch_units::RangeSet;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A peer that repeats much for a little that is new does not make us hold what it repeats.
    #[test]
    fn what_is_new_of_a_packet_does_not_keep_the_rest() {
        let (live, mut r, new) = (Arc::new(AtomicUsize::new(0)), Reassembly::default(), 600);
        for n in 0..200 {
            assert!(r.accept(1 + n * new, payload(60_000, &live)) >= new);
        }
        let held = r.ofo_bytes() as usize;
        assert_eq!(held, 60_000 + 199 * 600);
        assert!(live.load(Ordering::Relaxed) <= held, "{} bytes of packets for {held}", live.load(Ordering::Relaxed));
    }

    proptest! {
        #[test]
        fn every_byte_once_and_in_order(order in prop::collection::vec((0u64..60, 1u64..12), 1..60)) {
            let text = Bytes::from_static(b"the quick brown fox jumps over the lazy dog and then sleeps on.");
            let mut r = Reassembly::default();
            let mut seen = RangeSet::new();
            let mut got = Vec::new();
            for (start, len) in order {
                let end = (start + len).min(text.len() as u64);
                let new = r.accept(start, text.slice(start as usize..end as usize));
                prop_assert_eq!(new, seen.insert(Range::new(start, end)));
                while let Some((range, bytes)) = r.read() {
                    prop_assert_eq!(range.start, got.len() as u64);
                    got.extend_from_slice(&bytes);
                }
                let whole = seen.first().filter(|r| r.start == 0).map_or(0, |r| r.end);
                prop_assert_eq!(r.next(), whole);
                prop_assert_eq!(r.ofo_bytes(), seen.bytes() - whole);
            }
            prop_assert_eq!(&got[..], &text[..got.len()]);
        }
    }
}
