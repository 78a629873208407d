//! From a subflow's sequence to the data sequence (RFC 8684 §3.3.1).

use crate::deadlines::NEVER;
use crate::pieces::{Pieces, is_room_for_another, kept, part as piece};
use anabranch_trace::Violation;
use anabranch_units::{Duration, Instant, Range};
use anabranch_wire::Mapping;
use bytes::Bytes;
use std::collections::VecDeque;

/// A mapping holds 32 bits of the offset within the subflow: the one nearest to what is expected next.
pub(crate) fn subflow_offset(low: u32, next: u64) -> Option<u64> {
    let ahead = low.wrapping_sub(next as u32) as i32;
    next.checked_add_signed(i64::from(ahead))
}

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

    /// RFC 8684 §3.3.1: mappings must not contradict each other. A checksum is one over a whole mapping; one that Linux
    /// repeats with a DATA_FIN added has another sum for another length.
    fn agrees(&self, other: &Self) -> bool {
        let place = |e: &Self| e.data.wrapping_sub(e.sub.start);
        let summed = match (self.checksum, other.checksum) {
            (None, None) => true,
            (Some((sum, len)), Some((another, length))) => self.sub == other.sub && (sum == another || len != length),
            _ => false,
        };
        place(self) == place(other) && summed
    }

    /// `next` maps the following bytes to the following bytes. A checksum keeps mappings apart.
    fn goes_on_with(&self, next: &Self) -> bool {
        let plain = self.checksum.is_none() && next.checksum.is_none();
        plain && self.sub.end == next.sub.start && self.data + self.sub.len() == next.data
    }
}

/// Mappings of bytes that have not been passed on, ascending.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    entries: VecDeque<Entry>,
}

impl Mappings {
    /// Adds a mapping. What is known already is nothing new: Linux repeats its mapping on every segment. There is always room for
    /// one that begins at `needed` or below; for others as for pieces beside `held` bytes out of order.
    pub fn add(&mut self, entry: Entry, needed: u64, held: u64) -> Result<(), Violation> {
        if self.entries.back() == Some(&entry) {
            return Ok(());
        }
        let at = match self.entries.back() {
            Some(last) if last.sub.end > entry.sub.start => {
                self.entries.partition_point(|e| e.sub.end <= entry.sub.start)
            }
            // Nearly always: the next bytes.
            _ => self.entries.len(),
        };
        let overlapping = self.entries.range(at..).take_while(|e| e.sub.start < entry.sub.end);
        let (mut count, mut whole) = (0, entry);
        for known in overlapping {
            if !known.agrees(&entry) {
                return Err(Violation::MappingConflict);
            }
            if known.sub == entry.sub {
                return Ok(());
            }
            if known.sub.start < whole.sub.start {
                whole = Entry { sub: Range::new(known.sub.start, whole.sub.end), ..*known };
            }
            whole.sub.end = whole.sub.end.max(known.sub.end);
            count += 1;
        }
        if count == 0 {
            return self.insert(at, whole, needed, held);
        }
        self.entries[at] = whole;
        if count > 1 {
            self.entries.drain(at + 1..at + count);
        }
        Ok(())
    }

    /// Adds a mapping that overlaps none and lies just below entry `at`. One that continues the mapping below extends that
    /// one, so that there are no more of them than there are holes.
    fn insert(&mut self, at: usize, entry: Entry, needed: u64, held: u64) -> Result<(), Violation> {
        if let Some(below) = self.entries.get_mut(at.wrapping_sub(1)).filter(|below| below.goes_on_with(&entry)) {
            below.sub.end = entry.sub.end;
            return Ok(());
        }
        if entry.sub.start > needed && !is_room_for_another(self.entries.len(), held) {
            return Err(Violation::TooMuch);
        }
        self.entries.insert(at, entry);
        Ok(())
    }

    /// No mapping is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The mapping that holds the subflow offset `seq`.
    pub fn find(&self, seq: u64) -> Option<&Entry> {
        let first = self.entries.front().filter(|e| seq < e.sub.end);
        let entry = first.or_else(|| self.entries.get(self.entries.partition_point(|e| e.sub.end <= seq)));
        entry.filter(|e| e.sub.start <= seq)
    }

    /// Where the first mapping above `seq` begins.
    pub fn next_after(&self, seq: u64) -> Option<u64> {
        self.entries.get(self.entries.partition_point(|e| e.sub.start <= seq)).map(|e| e.sub.start)
    }

    /// Everything below `seq` was passed on.
    pub fn forget_below(&mut self, seq: u64) {
        while self.entries.front().is_some_and(|e| e.sub.end <= seq) {
            self.entries.pop_front();
        }
    }
}

/// Most pieces held that wait for their mapping.
const MAX_UNMAPPED: usize = 1024;
/// How long they wait if no mapping comes at all, and how many may come in a row without any DSS: something on the way
/// may have begun to take options off, and what is acknowledged then is taken for delivered.
const PATIENCE: Duration = Duration::from_secs(2);
const MAX_BARE: u32 = 2;

/// Bytes that came into the subflow's sequence before their mapping (RFC 8684 §3.3.1), ascending.
#[derive(Debug)]
pub(crate) struct Unmapped {
    pieces: VecDeque<(u64, Bytes)>,
    /// When the subflow is given up unless a mapping has come.
    pub deadline: Instant,
    /// How many came in a row without DSS.
    bare: u32,
}

impl Default for Unmapped {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), deadline: NEVER, bare: 0 }
    }
}

impl Unmapped {
    /// The first offset that waits.
    pub fn first(&self) -> Option<u64> {
        self.pieces.front().map(|(seq, _)| *seq)
    }

    /// Holds the bytes at `seq`, above all that are held; `bare`: their segment had no DSS. False if a mapping has not come
    /// within `window` bytes of its data, or there are too many pieces.
    pub fn hold(&mut self, now: Instant, seq: u64, bytes: Bytes, window: u64, bare: bool) -> bool {
        let end = seq + bytes.len() as u64;
        self.bare = if bare { self.bare + 1 } else { 0 };
        let near = end - self.first().unwrap_or(seq) <= window;
        let patient = near && self.pieces.len() < MAX_UNMAPPED && self.bare <= MAX_BARE;
        if patient {
            self.pieces.push_back((seq, kept(bytes)));
            self.deadline = self.deadline.min(now + PATIENCE);
        }
        patient
    }

    /// Holds a piece above all that are held until it is decided what becomes of the subflow.
    pub fn put_back(&mut self, piece: (u64, Bytes)) {
        self.pieces.push_back(piece);
    }

    /// Everything held, to be looked at again because a mapping came.
    pub fn take(&mut self) -> VecDeque<(u64, Bytes)> {
        self.deadline = NEVER;
        self.bare = 0;
        core::mem::take(&mut self.pieces)
    }
}

/// The place of bytes that are next in the subflow's sequence.
#[derive(Debug)]
pub(crate) enum Placed {
    /// They belong at this offset of the data sequence.
    Data { start: u64, bytes: Bytes },
    /// They wait for the rest of their mapping, whose checksum covers all of it.
    Collected,
    /// They complete a mapping with a checksum: all of its bytes.
    Whole { entry: Entry, bytes: Bytes },
    /// No mapping is known for them.
    Unmapped { seq: u64, bytes: Bytes },
}

/// A reason to give up mappings: the connection falls back to plain TCP, or, where that is not safe, the subflow does not continue
/// (RFC 8684 §3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The checksum of the mapping of the data at this offset is wrong.
    Corrupt(u64),
    /// The mapping of data does not come. `at_start`: the very first data, whose segment has no DSS.
    Unmapped { at_start: bool },
    /// Our first data is acknowledged without a DATA_ACK: the peer's options do not come. MP_CAPABLE mapped so many bytes of the
    /// peer's: if a DSS has mapped more, the peer is sure of MPTCP, and may repeat data with other numbers.
    Unanswered(u64),
    /// The peer could not verify our data from this number on.
    Failed(u64),
    /// The peer maps no more.
    Infinite(Mapping),
}

/// The place of a subflow's bytes in the data sequence.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    mappings: Mappings,
    unmapped: Unmapped,
    /// Data with a mapping came behind what waits for its own.
    passed: bool,
    /// A mapping whose bytes are collected until its checksum can be verified (RFC 8684 §3.3).
    collecting: Option<(Entry, Pieces)>,
}

impl Placement {
    /// Notes a mapping: see [`Mappings::add`].
    ///
    /// # Errors
    /// It contradicts one that is known, or there are too many.
    pub fn add(&mut self, entry: Entry, needed: u64, held: u64) -> Result<(), Violation> {
        self.mappings.add(entry, needed, held)
    }

    /// The offset `seq` is not mapped, and there is no room for its mapping: see [`Mappings::add`].
    pub fn lacks(&self, seq: u64, held: u64) -> bool {
        !is_room_for_another(self.mappings.entries.len(), held) && self.mappings.find(seq).is_none()
    }

    /// No mapping is held, and nothing waits for one.
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty() && self.unmapped.first().is_none()
    }

    /// The first offset in the subflow's sequence that waits for its mapping.
    pub fn first_unmapped(&self) -> Option<u64> {
        self.unmapped.first()
    }

    /// Data that waits for its mapping has no place: data with a mapping came behind it, which may be its repetition.
    pub fn is_passed(&self) -> bool {
        self.passed
    }

    /// When the subflow is given up unless a mapping has come.
    pub fn deadline(&self) -> Instant {
        self.unmapped.deadline
    }

    /// Finds the place of the bytes at `seq`, which are of `whole` in one memory; also returns what of them is to be placed next.
    pub fn place(&mut self, seq: u64, mut bytes: Bytes, whole: usize) -> (Placed, Option<(u64, Bytes)>) {
        let waits = self.unmapped.first().is_some();
        let Some(entry) = self.mappings.find(seq) else {
            let rest = match self.mappings.next_after(seq) {
                Some(start) if start < seq + bytes.len() as u64 => {
                    Some((start, bytes.split_off((start - seq) as usize)))
                }
                _ => None,
            };
            return (Placed::Unmapped { seq, bytes: piece(bytes, whole) }, rest);
        };
        self.passed |= waits;
        let part = Range::new(seq, entry.sub.end.min(seq + bytes.len() as u64));
        let start = entry.translate(part).start;
        if part.len() == bytes.len() as u64 && entry.checksum.is_none() {
            // Nearly always: a mapping for each segment.
            return (Placed::Data { start, bytes: piece(bytes, whole) }, None);
        }
        let entry = *entry;
        let rest = bytes.split_off(part.len() as usize);
        let bytes = piece(bytes, whole);
        let rest = (!rest.is_empty()).then_some((part.end, rest));
        if entry.checksum.is_none() {
            return (Placed::Data { start, bytes }, rest);
        }
        (self.collect(entry, part, bytes), rest)
    }

    fn collect(&mut self, entry: Entry, part: Range, bytes: Bytes) -> Placed {
        let begun = self.collecting.take().filter(|(begun, _)| begun.sub == entry.sub);
        let (entry, mut pieces) = begun.unwrap_or_else(|| (entry, Pieces::default()));
        pieces.push_back(bytes);
        if part.end < entry.sub.end {
            self.collecting = Some((entry, pieces));
            return Placed::Collected;
        }
        Placed::Whole { entry, bytes: pieces.whole() }
    }

    /// The mapping that is being collected.
    pub fn collecting(&self) -> Option<&Entry> {
        self.collecting.as_ref().map(|(entry, _)| entry)
    }

    /// The checksum of a mapping failed: its bytes are kept for what follows.
    pub fn keep(&mut self, entry: Entry, bytes: Bytes) {
        self.collecting = Some((entry, Pieces::from(bytes)));
    }

    /// The mapping that is being collected, with the bytes that came; it is collected no further.
    pub fn take_collected(&mut self) -> Option<(Entry, Bytes)> {
        self.collecting.take().map(|(entry, pieces)| (entry, pieces.whole()))
    }

    /// See [`Unmapped::hold`].
    pub fn hold(&mut self, now: Instant, seq: u64, bytes: Bytes, window: u64, bare: bool) -> bool {
        self.unmapped.hold(now, seq, bytes, window, bare)
    }

    /// See [`Unmapped::put_back`].
    pub fn put_back(&mut self, piece: (u64, Bytes)) {
        self.unmapped.put_back(piece);
    }

    /// See [`Unmapped::take`].
    pub fn take_unmapped(&mut self) -> VecDeque<(u64, Bytes)> {
        self.passed = false;
        self.unmapped.take()
    }

    /// Everything below `next` was passed on, but for what waits for its mapping.
    pub fn forget_below(&mut self, next: u64) {
        self.mappings.forget_below(self.unmapped.first().unwrap_or(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::counted::payload;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Bytes held out of order, as many as a window of 64 MB has.
    const HELD: u64 = 64_000_000;

    fn entry(start: u64, end: u64, data: u64) -> Entry {
        Entry { sub: Range::new(start, end), data, checksum: None }
    }

    #[test]
    fn repeats_are_accepted_and_conflicts_refused() {
        let mut m = Mappings::default();
        assert_eq!(m.add(entry(100, 200, 5_000), 0, HELD), Ok(()));
        assert_eq!(m.add(entry(100, 200, 5_000), 0, HELD), Ok(()));
        assert_eq!(m.add(entry(150, 250, 5_050), 0, HELD), Ok(()));
        assert_eq!(m.add(entry(150, 160, 5_000), 0, HELD), Err(Violation::MappingConflict));
        let found = m.find(210).expect("mapped");
        assert_eq!(found.translate(Range::new(210, 220)), Range::new(5_110, 5_120));
        assert!(m.find(99).is_none() && m.find(250).is_none());
        m.forget_below(249);
        assert!(m.find(249).is_some());
        m.forget_below(250);
        assert!(m.find(249).is_none());
    }

    #[test]
    fn a_part_with_a_mapping_of_its_own_does_not_keep_the_rest() {
        let (live, mut placement) = (Arc::new(AtomicUsize::new(0)), Placement::default());
        // The data of two that follow each other does not: they are no one mapping.
        (0..100).for_each(|n| assert_eq!(placement.add(entry(1 + 600 * n, 601 + 600 * n, 1_200 * n), 0, HELD), Ok(())));
        let (mut rest, mut parts) = (Some((1, payload(60_000, &live))), Vec::new());
        while let Some((seq, bytes)) = rest.take() {
            let (placed, next) = placement.place(seq, bytes, 60_000);
            parts.extend(match placed {
                Placed::Data { bytes, .. } => Some(bytes),
                _ => None,
            });
            rest = next;
        }
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [600; 100]);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn overlaps_become_one_mapping() {
        let mut m = Mappings::default();
        for (start, end) in [(100, 200), (300, 400), (500, 600)] {
            assert_eq!(m.add(entry(start, end, 5_000 + start), 0, HELD), Ok(()));
        }
        // It begins before the first, fills a hole, and ends within the second.
        assert_eq!(m.add(entry(50, 350, 5_050), 0, HELD), Ok(()));
        assert_eq!(m.entries, [entry(50, 400, 5_050), entry(500, 600, 5_500)]);
        assert_eq!(m.add(entry(0, 1_000, 5_000), 0, HELD), Ok(()));
        assert_eq!(m.entries, [entry(0, 1_000, 5_000)]);
        assert_eq!(m.add(entry(999, 1_001, 7_000), 0, HELD), Err(Violation::MappingConflict));
        // A checksum covers one mapping as it was sent.
        let summed = |start, end| Entry { checksum: Some((7, 100)), ..entry(start, end, 5_000 + start) };
        assert_eq!((m.add(summed(2_000, 2_100), 0, HELD), m.add(summed(2_000, 2_100), 0, HELD)), (Ok(()), Ok(())));
        assert_eq!(m.add(summed(2_050, 2_150), 0, HELD), Err(Violation::MappingConflict));
        // Linux repeats a mapping with a DATA_FIN added, which counts.
        let other = |sum, len| Entry { checksum: Some((sum, len)), ..summed(2_000, 2_100) };
        assert_eq!(m.add(other(3, 101), 0, HELD), Ok(()));
        assert_eq!(m.add(other(3, 100), 0, HELD), Err(Violation::MappingConflict));
        assert_eq!(m.find(2_050).and_then(|e| e.checksum), Some((7, 100)));
    }

    #[test]
    fn what_follows_is_one_mapping() {
        let mut m = Mappings::default();
        // A window of 400 MB without its first segment.
        for n in 1..300_000 {
            assert_eq!(m.add(entry(n * 1400, n * 1400 + 1400, n * 1400 - 1), 0, HELD), Ok(()));
        }
        assert_eq!(m.entries, [entry(1400, 420_000_000, 1399)]);
        assert_eq!(m.add(entry(2800, 4200, 2800), 0, HELD), Err(Violation::MappingConflict));
        // Elsewhere in the stream, or with a checksum, it stays apart.
        assert_eq!(m.add(entry(420_000_000, 420_000_100, 5), 0, HELD), Ok(()));
        let summed = Entry { checksum: Some((7, 100)), ..entry(420_000_100, 420_000_200, 105) };
        assert_eq!((m.add(summed, 0, HELD), m.entries.len()), (Ok(()), 3));
    }

    /// Half of a window of 512 MiB in segments of 1400 bytes, each second one lost, and of 64 MiB in segments of 100.
    #[test]
    fn there_is_room_for_a_mapping_of_each_piece_that_is_held() {
        for (mss, holes) in [(1400, 190_000), (100, 1_600)] {
            let mut m = Mappings::default();
            for n in 0..holes {
                let start = 1 + mss + 2 * n * mss;
                assert_eq!(m.add(entry(start, start + mss, start - 1), 1, n * mss), Ok(()), "hole {n}");
            }
            assert_eq!(m.entries.len() as u64, holes);
        }
    }

    /// Mappings of bytes that do not come; the next byte's finds room all the same.
    #[test]
    fn mappings_without_payload_are_few() {
        let mut m = Mappings::default();
        let mut add = |n: u64| m.add(entry(10 + n * 10, 15 + n * 10, n * 10), 10, 0);
        assert_eq!((1..2000).filter(|n| add(*n).is_ok()).count(), 1024);
        assert_eq!((add(2000), add(0)), (Err(Violation::TooMuch), Ok(())));
    }

    #[test]
    fn unmapped_bytes_are_held_for_a_window() {
        let mut held = Unmapped::default();
        let piece = Bytes::from_static(&[0; 100]);
        let at = Instant::from_millis;
        assert!(held.hold(at(1), 1, piece.clone(), 250, true) && held.hold(at(5), 151, piece.clone(), 250, false));
        assert!(!held.hold(at(5), 152, piece.clone(), 250, false));
        assert_eq!((held.first(), held.deadline), (Some(1), at(2001)));
        assert_eq!((held.take().len(), held.first(), held.deadline), (2, None, NEVER));
        let mut hold = |n: u64, bare| held.hold(at(9), n, Bytes::from_static(b"x"), 1 << 20, bare);
        assert!((0..1024).all(|n| hold(n, n % 3 > 0)));
        assert!(!hold(1024, false));
        held.take();
        let mut hold = |n: u64, bare| held.hold(at(9), n, Bytes::from_static(b"x"), 1 << 20, bare);
        assert!(hold(1, true) && hold(2, true) && !hold(3, true));
    }
}
