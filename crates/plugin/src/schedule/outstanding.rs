//! Which subflows carry which data that the peer has not acknowledged at connection level.

use anabranch_units::{At, Blocks};
use anabranch_units::{PathId, Range};

/// The subflows that carry a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The one that carried it first.
    pub first: PathId,
    /// All of them, as a set of [`PathId::bit`]s.
    pub paths: u32,
}

impl Copies {
    /// True if `id` carries it.
    pub const fn on(self, id: PathId) -> bool {
        self.paths & id.bit() != 0
    }
}

/// Data sent and not acknowledged, in runs of equal [`Copies`], ascending and disjoint.
///
/// Growing at the upper end and trimming at the lower are O(1); elsewhere O(log n) to find and about as much to change, up to some
/// 10⁵ runs.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    runs: Blocks<(Range, Copies)>,
    bytes: u64,
}

impl Outstanding {
    /// Bytes sent and not acknowledged, counted once.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
    /// True if everything sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    /// The lowest run.
    pub fn first(&self) -> Option<(Range, Copies)> {
        self.runs.front().copied()
    }
    /// All runs, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Range, Copies)> + '_ {
        self.runs.iter().copied()
    }
    /// The runs at or above `offset`; the first may begin below it.
    pub fn from(&self, offset: u64) -> impl Iterator<Item = (Range, Copies)> + '_ {
        self.runs.from(self.after(offset)).copied()
    }
    /// The run that holds `offset`.
    pub fn at(&self, offset: u64) -> Option<(Range, Copies)> {
        self.runs.get(self.after(offset)).copied().filter(|(r, _)| r.start <= offset)
    }

    /// The place of the first run that ends after `offset`.
    fn after(&self, offset: u64) -> At {
        match self.runs.back() {
            Some((last, _)) if last.end <= offset => self.runs.end(),
            Some((last, _)) if last.start <= offset => self.runs.last().unwrap_or(self.runs.end()),
            _ => self.runs.partition_point(|(r, _)| r.end <= offset),
        }
    }

    /// `path` sent `range`.
    #[inline(always)]
    pub fn sent(&mut self, path: PathId, range: Range) {
        let fresh = Copies { first: path, paths: path.bit() };
        match self.runs.back_mut() {
            // Nearly always it follows what this path sent just now.
            Some((last, copies)) if last.end == range.start && *copies == fresh => {
                last.end = range.end;
                self.bytes += range.len();
            }
            _ => self.sent_elsewhere(path, range, fresh),
        }
    }

    #[inline(never)]
    fn sent_elsewhere(&mut self, path: PathId, range: Range, fresh: Copies) {
        match self.runs.back() {
            Some((last, _)) if last.end > range.start => {}
            _ => {
                self.runs.push_back((range, fresh));
                self.bytes += range.len();
                return;
            }
        }
        // Somewhere inside: cut what is there, add the path to it, fill what was missing.
        let mut from = range.start;
        while from < range.end {
            let at = self.after(from);
            match self.runs.get(at).copied() {
                Some((r, copies)) if r.start <= from => {
                    let cut = r.intersect(Range::new(from, range.end));
                    self.replace(at, cut, Copies { paths: copies.paths | path.bit(), ..copies });
                    from = cut.end;
                }
                next => {
                    let end = next.map_or(range.end, |(r, _)| r.start.min(range.end));
                    let at = self.runs.insert(at, (Range::new(from, end), fresh));
                    self.bytes += end - from;
                    self.merge_around(at);
                    from = end;
                }
            }
        }
    }

    /// Nothing more is sent: gives back the memory of runs that are gone.
    pub(crate) fn give_back(&mut self) {
        self.runs.shrink_to_fit();
    }

    /// `path` does not carry `range` any more. True if it was said to carry some of it.
    pub fn released(&mut self, path: PathId, range: Range) -> bool {
        let mut any = false;
        let mut from = range.start;
        while let Some((r, copies)) = self.runs.get(self.after(from)).copied().filter(|(r, _)| r.start < range.end) {
            if copies.on(path) {
                any = true;
                let copies = Copies { paths: copies.paths & !path.bit(), ..copies };
                self.replace(self.after(from), r.intersect(range), copies);
            }
            from = r.end.min(range.end).max(from + 1);
        }
        any
    }

    /// Gives `cut`, a part of the run at `at`, other copies.
    fn replace(&mut self, at: At, cut: Range, copies: Copies) {
        let Some(run) = self.runs.get_mut(at) else { return };
        let (r, old) = core::mem::replace(run, (cut, copies));
        let mut here = at;
        if r.start < cut.start {
            here = self.runs.insert(here, (Range::new(r.start, cut.start), old));
            here = self.runs.after(here);
        }
        if cut.end < r.end {
            let next = self.runs.insert(self.runs.after(here), (Range::new(cut.end, r.end), old));
            here = self.runs.before(next).unwrap_or(next);
        }
        self.merge_around(here);
    }

    /// Joins the run at `at` with equal neighbours.
    fn merge_around(&mut self, at: At) {
        self.merge(at);
        if let Some(before) = self.runs.before(at) {
            self.merge(before);
        }
    }

    /// Joins the run at `at` with the next one if that continues it.
    fn merge(&mut self, at: At) {
        let next = self.runs.after(at);
        let Some((upper, others)) = self.runs.get(next).copied() else { return };
        if let Some((run, copies)) = self.runs.get_mut(at)
            && (run.end, *copies) == (upper.start, others)
        {
            run.end = upper.end;
            self.runs.remove(next);
        }
    }

    /// Everything below `offset` is acknowledged.
    pub fn acked(&mut self, offset: u64) {
        while let Some((r, _)) = self.runs.front_mut() {
            if r.end <= offset {
                self.bytes -= r.len();
                self.runs.pop_front();
            } else {
                if r.start < offset {
                    self.bytes -= offset - r.start;
                    r.start = offset;
                }
                break;
            }
        }
    }

    /// `path` no longer carries anything. Ranges that no path carries stay, with an empty set of paths.
    pub(super) fn forget(&mut self, path: PathId) {
        let runs = core::mem::take(&mut self.runs);
        for (r, mut copies) in runs.iter().copied() {
            copies.paths &= !path.bit();
            match self.runs.back_mut() {
                Some((last, c)) if last.end == r.start && *c == copies => last.end = r.end,
                _ => self.runs.push_back((r, copies)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_map_of_offsets(ops in prop::collection::vec((0u8..8, 0u8..3, 0u64..80, 1u64..12), 1..80)) {
            let mut out = Outstanding::default();
            let mut naive: BTreeMap<u64, Copies> = BTreeMap::new();
            let mut una = 0;
            for (op, path, start, len) in ops {
                let path = PathId(path);
                match op {
                    0 => {
                        una = una.max(start);
                        out.acked(una);
                        naive.retain(|x, _| *x >= una);
                    }
                    1 => {
                        out.forget(path);
                        naive.values_mut().for_each(|c| c.paths &= !path.bit());
                    }
                    _ => {
                        let range = Range::new(start.max(una), (start + len).max(una));
                        if range.is_empty() { continue; }
                        out.sent(path, range);
                        for x in range.start..range.end {
                            naive.entry(x).or_insert(Copies { first: path, paths: 0 }).paths |= path.bit();
                        }
                    }
                }
                prop_assert_eq!(out.bytes(), naive.len() as u64);
                let flat: Vec<_> = out.iter().flat_map(|(r, c)| (r.start..r.end).map(move |x| (x, c))).collect();
                let expect: Vec<_> = naive.iter().map(|(x, c)| (*x, *c)).collect();
                prop_assert_eq!(flat, expect);
                prop_assert!(out.iter().zip(out.iter().skip(1)).all(|(a, b)| a.0.end <= b.0.start));
            }
        }
    }

    #[test]
    fn what_a_path_has_delivered_may_be_given_to_it_again() {
        let mut sent = Outstanding::default();
        sent.sent(PathId(0), Range::new(0, 3000));
        sent.sent(PathId(1), Range::new(3000, 4000));
        assert!(sent.released(PathId(0), Range::new(1000, 3500)));
        assert!(!sent.released(PathId(0), Range::new(1000, 3500)), "it is said once");
        let on = |offset, path| sent.at(offset).is_some_and(|(_, copies)| copies.on(PathId(path)));
        assert_eq!([on(0, 0), on(1000, 0), on(2999, 0), on(3000, 0), on(3000, 1)], [true, false, false, false, true]);
        assert_eq!(sent.bytes(), 4000);
    }
}
