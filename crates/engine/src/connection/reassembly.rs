//! Bytes of all subflows back into the data sequence. What waits here for a hole to be filled is the OFO queue.

use anabranch_units::{Range, RangeSet};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// The connection's receive buffer.
#[derive(Debug)]
pub(crate) struct Reassembly {
    next: u64,
    read: u64,
    ready: VecDeque<Bytes>,
    pieces: BTreeMap<u64, Bytes>,
    held: RangeSet,
    max_pieces: usize,
}

impl Reassembly {
    /// For a window of `window` bytes. The number of separate pieces is bounded too: their bookkeeping is memory.
    pub fn new(window: u64) -> Self {
        Self {
            next: 0,
            read: 0,
            ready: VecDeque::new(),
            pieces: BTreeMap::new(),
            held: RangeSet::new(),
            max_pieces: (window / 64).clamp(1024, 1 << 20) as usize,
        }
    }

    /// Next data offset expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes read by the application.
    pub fn read_bytes(&self) -> u64 {
        self.read
    }

    /// Bytes held out of order.
    pub fn ofo_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Takes bytes that belong at `start`; returns how many of them are new.
    pub fn accept(&mut self, start: u64, bytes: Bytes) -> u64 {
        let all = Range::new(start, start + bytes.len() as u64);
        if start == self.next && self.held.is_empty() {
            self.pass_on(bytes);
            return all.len();
        }
        let fresh = Range::new(start.max(self.next), all.end);
        if fresh.is_empty() || self.pieces.len() >= self.max_pieces {
            return 0;
        }
        let gaps: Vec<Range> = self.held.gaps(fresh).collect();
        let mut new = 0;
        for gap in gaps {
            new += gap.len();
            self.held.insert(gap);
            self.pieces.insert(gap.start, bytes.slice((gap.start - start) as usize..(gap.end - start) as usize));
        }
        while let Some(entry) = self.pieces.first_entry().filter(|e| *e.key() == self.next) {
            let bytes = entry.remove();
            self.pass_on(bytes);
        }
        self.held.remove_below(self.next);
        new
    }

    /// The next bytes for the application.
    pub fn read(&mut self) -> Option<(Range, Bytes)> {
        let bytes = self.ready.pop_front()?;
        let range = Range::new(self.read, self.read + bytes.len() as u64);
        self.read = range.end;
        Some((range, bytes))
    }

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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_once_and_in_order(order in prop::collection::vec((0u64..60, 1u64..12), 1..60)) {
            let text = Bytes::from_static(b"the quick brown fox jumps over the lazy dog and then sleeps on.");
            let mut r = Reassembly::new(1 << 20);
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
