//! From a subflow's sequence to the data sequence (RFC 8684 §3.3.1), in either direction.

use crate::MAX_PIECES;
use anabranch_units::Range;
use std::collections::VecDeque;

/// Bytes `sub` of the subflow are bytes `data..` of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Subflow offsets.
    pub sub: Range,
    /// Data offset of `sub.start`.
    pub data: u64,
    /// The mapping applies only once it is complete, because its checksum covers all of it.
    pub whole: bool,
}

/// Why a mapping is not noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The mapping disagrees with another one on a byte.
    Conflict,
    /// There are too many.
    NoRoom,
}

impl Entry {
    /// The data range of a part of the mapping.
    pub fn translate(&self, part: Range) -> Range {
        let start = self.data + (part.start - self.sub.start);
        Range::new(start, start + part.len())
    }

    /// Both map each byte that they share, or would share if they were longer, to the same place.
    fn agrees(&self, other: &Self) -> bool {
        self.data.wrapping_sub(self.sub.start) == other.data.wrapping_sub(other.sub.start)
    }
}

/// Mappings, ascending and disjoint; adjacent ones that continue each other are merged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    entries: VecDeque<Entry>,
}

impl Mappings {
    /// Adds a mapping; its known part is ignored (Linux repeats a mapping on each of its segments). A mapping that
    /// contradicts a known one is refused entirely.
    pub fn add(&mut self, mut entry: Entry) -> Result<(), Refused> {
        let mut at = self.entries.partition_point(|e| e.sub.end <= entry.sub.start);
        let shared = self.entries.range(at..).take_while(|known| known.sub.start < entry.sub.end);
        if shared.into_iter().any(|known| !known.agrees(&entry) || known.whole != entry.whole) {
            return Err(Refused::Conflict);
        }
        while let Some(known) = self.entries.get(at).map(|e| e.sub).filter(|known| known.start < entry.sub.end) {
            let before = Range::new(entry.sub.start, known.start);
            if !before.is_empty() {
                self.place(at, Entry { sub: before, ..entry })?;
            }
            let rest = Range::new(known.end, entry.sub.end);
            if rest.is_empty() {
                return Ok(());
            }
            entry = Entry { sub: rest, data: entry.translate(rest).start, whole: entry.whole };
            at = self.entries.partition_point(|e| e.sub.end <= entry.sub.start);
        }
        self.place(at, entry)
    }

    /// Inserts an entry without overlap before the entry `at`.
    fn place(&mut self, at: usize, entry: Entry) -> Result<(), Refused> {
        if let Some(below) = at.checked_sub(1).and_then(|below| self.entries.get_mut(below))
            && below.sub.end == entry.sub.start
            && !(below.whole || entry.whole)
            && below.agrees(&entry)
        {
            below.sub.end = entry.sub.end;
            return Ok(());
        }
        if self.entries.len() >= MAX_PIECES {
            return Err(Refused::NoRoom);
        }
        self.entries.insert(at, entry);
        Ok(())
    }

    /// The mapping that holds the subflow offset `seq`.
    pub fn find(&self, seq: u64) -> Option<Entry> {
        let at = self.entries.partition_point(|e| e.sub.end <= seq);
        self.entries.get(at).copied().filter(|e| e.sub.start <= seq)
    }

    /// Where the first mapping above the subflow offset `seq` begins.
    pub fn next_after(&self, seq: u64) -> Option<u64> {
        self.entries.get(self.entries.partition_point(|e| e.sub.start <= seq)).map(|e| e.sub.start)
    }

    /// The data offset after the highest mapped byte.
    pub fn end(&self) -> Option<u64> {
        self.entries.back().map(|e| e.translate(e.sub).end)
    }

    /// Drops mappings below `seq`.
    pub fn forget_below(&mut self, seq: u64) {
        while self.entries.front().is_some_and(|e| e.sub.end <= seq) {
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(start: u64, end: u64, data: u64) -> Entry {
        Entry { sub: Range::new(start, end), data, whole: false }
    }

    #[test]
    fn what_continues_is_one_and_what_contradicts_is_refused() {
        let mut m = Mappings::default();
        assert_eq!(m.add(entry(1, 100, 0)), Ok(()));
        assert_eq!(m.add(entry(100, 200, 99)), Ok(()));
        assert_eq!(m.add(entry(300, 400, 299)), Ok(()));
        assert_eq!(m.entries.len(), 2);
        // Repeated, with a hole filled and more bytes behind it.
        assert_eq!(m.add(entry(50, 500, 49)), Ok(()));
        assert_eq!(m.end(), Some(499));
        assert_eq!(m.add(entry(499, 600, 0)), Err(Refused::Conflict));
        m.forget_below(450);
        assert_eq!(m.find(460).map(|e| e.translate(Range::new(460, 470))), Some(Range::new(459, 469)));
    }

    #[test]
    fn a_whole_mapping_stays_apart() {
        let mut m = Mappings::default();
        let whole = |start, end| Entry { whole: true, ..entry(start, end, start - 1) };
        assert_eq!((m.add(whole(1, 100)), m.add(whole(100, 200))), (Ok(()), Ok(())));
        assert_eq!(m.find(150), Some(whole(100, 200)));
        assert_eq!(m.add(entry(150, 160, 149)), Err(Refused::Conflict));
    }

    proptest! {
        #[test]
        fn every_byte_keeps_the_place_it_got_first(
            adds in prop::collection::vec((0u64..60, 1u64..20, 0u64..2), 1..40),
        ) {
            let mut m = Mappings::default();
            let mut naive = [None; 80];
            for (start, len, shift) in adds {
                let entry = entry(start, start + len, start + shift);
                let known = &naive[start as usize..(start + len) as usize];
                let agrees = known.iter().flatten().all(|s| *s == shift);
                prop_assert_eq!(m.add(entry).is_ok(), agrees);
                if agrees {
                    naive[start as usize..(start + len) as usize].fill(Some(shift));
                }
                for (seq, shift) in naive.iter().enumerate() {
                    let found = m.find(seq as u64).map(|e| e.data - e.sub.start);
                    prop_assert_eq!(found, *shift, "{}", seq);
                }
            }
        }
    }
}
