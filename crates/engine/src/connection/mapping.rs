//! From a subflow's sequence to the data sequence (RFC 8684 §3.3.1).

use anabranch_trace::Violation;
use anabranch_units::Range;
use std::collections::VecDeque;

/// Most mappings held for one subflow.
const MAX_MAPPINGS: usize = 16_384;

/// Bytes `sub` of the subflow are bytes `data..` of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Subflow offsets.
    pub sub: Range,
    /// Data offset of `sub.start`.
    pub data: u64,
    /// Checksum over the whole mapping, if in use, with the length as sent (DATA_FIN counted).
    pub checksum: Option<(u16, u16)>,
}

impl Entry {
    /// The data range of a part of the mapping.
    pub fn translate(&self, part: Range) -> Range {
        let start = self.data + (part.start - self.sub.start);
        Range::new(start, start + part.len())
    }
}

/// Mappings of bytes that have not been passed on, ascending.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    entries: VecDeque<Entry>,
}

impl Mappings {
    /// Adds a mapping. A repeat of one that is known is nothing new (Linux repeats its mapping on every segment).
    pub fn add(&mut self, entry: Entry) -> Result<(), Violation> {
        if self.entries.back().is_none_or(|last| last.sub.end <= entry.sub.start) && self.entries.len() < MAX_MAPPINGS {
            // Nearly always: the next bytes.
            self.entries.push_back(entry);
            return Ok(());
        }
        let at = self.entries.partition_point(|e| e.sub.end <= entry.sub.start);
        match self.entries.get(at) {
            Some(known) if known.sub.start < entry.sub.end => {
                // RFC 8684 §3.3.1: mappings must not contradict each other.
                let same = known.data.wrapping_sub(known.sub.start) == entry.data.wrapping_sub(entry.sub.start);
                if !same || known.checksum != entry.checksum {
                    return Err(Violation::MappingConflict);
                }
                // What reaches beyond the known one is a mapping of its own.
                let rest = Range::new(known.sub.end, entry.sub.end);
                if rest.is_empty() || entry.checksum.is_some() {
                    return Ok(());
                }
                let data = entry.data + rest.start.saturating_sub(entry.sub.start);
                self.add(Entry { sub: rest, data, checksum: None })
            }
            _ if self.entries.len() >= MAX_MAPPINGS => Err(Violation::TooMuch),
            _ => {
                self.entries.insert(at, entry);
                Ok(())
            }
        }
    }

    /// The mapping that holds the subflow offset `seq`.
    pub fn find(&self, seq: u64) -> Option<&Entry> {
        let first = self.entries.front().filter(|e| seq < e.sub.end);
        let entry = first.or_else(|| self.entries.get(self.entries.partition_point(|e| e.sub.end <= seq)));
        entry.filter(|e| e.sub.start <= seq)
    }

    /// Everything below `seq` was passed on.
    pub fn forget_below(&mut self, seq: u64) {
        while self.entries.front().is_some_and(|e| e.sub.end <= seq) {
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: u64, end: u64, data: u64) -> Entry {
        Entry { sub: Range::new(start, end), data, checksum: None }
    }

    #[test]
    fn repeats_are_accepted_and_conflicts_refused() {
        let mut m = Mappings::default();
        assert_eq!(m.add(entry(100, 200, 5_000)), Ok(()));
        assert_eq!(m.add(entry(100, 200, 5_000)), Ok(()));
        assert_eq!(m.add(entry(150, 250, 5_050)), Ok(()));
        assert_eq!(m.add(entry(150, 160, 5_000)), Err(Violation::MappingConflict));
        let found = m.find(210).expect("mapped");
        assert_eq!(found.translate(Range::new(210, 220)), Range::new(5_110, 5_120));
        assert!(m.find(99).is_none() && m.find(250).is_none());
        m.forget_below(200);
        assert!(m.find(150).is_none() && m.find(200).is_some());
    }
}
