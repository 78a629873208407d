//! Sets of byte offsets, kept as sorted, disjoint, non-adjacent ranges.

use crate::row::Row;

/// Half-open range of stream offsets `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Range {
    /// First offset inside.
    pub start: u64,
    /// First offset after it.
    pub end: u64,
}

impl Range {
    /// `[start, end)`; empty if `end <= start`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }
    /// Bytes inside.
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
    /// True without any offset.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
    /// The part in both.
    pub fn intersect(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
    /// The range in parts of at most `most` bytes, above 0.
    pub fn parts(self, most: u64) -> impl Iterator<Item = Self> + Clone {
        let starts = (self.start..self.end).step_by(most as usize);
        starts.map(move |start| Self::new(start, self.end.min(start + most)))
    }
    /// True if every offset of `other` is inside.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A set of offsets. Work at the upper end and removal at the lower one are O(1), amortised; elsewhere O(log n) to find and O(n) to move, n = ranges
/// held. A range that is added at the lower end moves all others if none was removed there before.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: Row<Range>,
    bytes: u64,
    /// Index of a set of which something was to be taken behind its lowest range.
    index: Option<Box<Index>>,
}

/// How many offsets of the set lie before a range, as far as [`RangeSet::take`] ever came: a place is found by halving then.
#[derive(Clone, Debug, Default)]
struct Index {
    /// Offsets before each range but the first, in their order, and `gone`.
    before: Row<u64>,
    /// Offsets that were removed at the lower end: so that nothing else changes then.
    gone: u64,
    /// The range that was found last.
    near: usize,
    /// Comparisons and entries made.
    #[cfg(test)]
    steps: u32,
}

impl Index {
    /// The offsets before range `at`, and `gone`; `None` if no search came there yet.
    fn before(&self, at: usize) -> Option<u64> {
        if at == 0 { Some(self.gone) } else { self.before.get(at - 1).copied() }
    }

    /// The lowest range is gone, with its last `offsets`.
    fn without_first(&mut self, offsets: u64) {
        self.gone += offsets;
        self.before.pop_front();
        self.near = self.near.saturating_sub(1);
    }

    /// `offsets` of range `at` are gone.
    #[inline]
    fn less_in(&mut self, at: usize, offsets: u64) {
        if let Some(above) = self.before.get_mut(at..) {
            above.iter_mut().for_each(|before| *before -= offsets);
        }
    }

    /// Range `at` is two now, the first of which has `left` offsets.
    #[inline]
    fn split(&mut self, at: usize, left: u64) {
        if let Some(before) = self.before(at) {
            self.before.insert(at, before + left);
        }
    }

    /// Range `at`, not the lowest, is gone; it had no offsets left.
    fn without(&mut self, at: usize) {
        if at <= self.before.len() {
            self.before.remove(at - 1);
        }
    }

    /// Everything from range `at` on may have changed; `count` ranges are left.
    fn forget_from(&mut self, at: usize, count: usize) {
        self.before.truncate(at.min(count.saturating_sub(1)));
    }
}

impl PartialEq for RangeSet {
    fn eq(&self, other: &Self) -> bool {
        *self.ranges == *other.ranges
    }
}

impl Eq for RangeSet {}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Row::new(), bytes: 0, index: None }
    }

    /// Offsets inside.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of separate ranges.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range> {
        self.ranges.first().copied()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range> {
        self.ranges.last().copied()
    }

    /// All ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + ExactSizeIterator + '_ {
        self.ranges.iter().copied()
    }

    /// Index of the first range that ends after `offset`.
    fn after(&self, offset: u64) -> usize {
        if let Some(near) = self.index.as_ref().map(|index| index.near)
            && self.ranges.get(near).is_some_and(|r| r.start <= offset && offset < r.end)
        {
            return near;
        }
        let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) else { return 0 };
        if offset < first.end {
            0
        } else if last.start <= offset {
            self.ranges.len() - usize::from(offset < last.end)
        } else {
            self.ranges.partition_point(|r| r.end <= offset)
        }
    }

    /// Takes out the range that [`Self::after_skipping`] finds, if `admits` says so of it; `len` is above zero. To find it takes O(log n)
    /// steps, n = ranges held, and once O(1) for each range that no such search has come to yet.
    #[inline]
    pub fn take(&mut self, skip: u64, len: u64, admits: impl FnOnce(Range) -> bool) -> Option<Range> {
        let first = *self.ranges.first()?;
        if skip >= first.len() {
            return self.take_behind_first(skip, len, admits);
        }
        let start = first.start + skip;
        let found = Range::new(start, first.end.min(start + len));
        admits(found).then(|| self.remove_of(0, first, found))
    }

    #[inline(never)]
    fn take_behind_first(&mut self, skip: u64, len: u64, admits: impl FnOnce(Range) -> bool) -> Option<Range> {
        let (at, start) = self.place_behind_first(skip)?;
        let whole = self.ranges[at];
        let found = Range::new(start, whole.end.min(start + len));
        admits(found).then(|| self.remove_of(at, whole, found))
    }

    /// The offset of this set with `skip` others below it, and the range, not the lowest, in which it is.
    #[inline]
    fn place_behind_first(&mut self, skip: u64) -> Option<(usize, u64)> {
        if skip >= self.bytes {
            return None;
        }
        let index = self.index.get_or_insert_default();
        let target = index.gone + skip;
        let mut last = index.before.last().copied().unwrap_or(index.gone);
        while last <= target && index.before.len() + 1 < self.ranges.len() {
            last += self.ranges[index.before.len()].len();
            index.before.push_back(last);
            #[cfg(test)]
            (index.steps += 1);
        }
        // Nearly always it is the last place, or the one after it.
        let before = &index.before[..];
        let begins = |at: usize| before.get(at.wrapping_sub(1)).is_some_and(|before| *before <= target);
        let ends = |at: usize| before.get(at).is_none_or(|next| *next > target);
        let near = index.near;
        let at = if begins(near) && ends(near) {
            near
        } else if begins(near + 1) && ends(near + 1) {
            near + 1
        } else {
            before.partition_point(|before| {
                #[cfg(test)]
                (index.steps += 1);
                *before <= target
            })
        };
        let start = self.ranges[at].start + (target - before[at - 1]);
        index.near = at;
        Some((at, start))
    }

    /// The range that holds `offset`.
    pub fn range_at(&self, offset: u64) -> Option<Range> {
        self.ranges.get(self.after(offset)).copied().filter(|r| r.start <= offset)
    }

    /// True if `offset` is inside.
    pub fn contains(&self, offset: u64) -> bool {
        self.range_at(offset).is_some()
    }

    /// True if all of `range` is inside.
    pub fn covers(&self, range: Range) -> bool {
        range.is_empty() || self.range_at(range.start).is_some_and(|r| r.end >= range.end)
    }

    /// The parts of this set inside `within`, ascending.
    pub fn within(&self, within: Range) -> impl Iterator<Item = Range> + '_ {
        self.ranges[self.after(within.start)..]
            .iter()
            .take_while(move |r| r.start < within.end)
            .map(move |r| r.intersect(within))
            .filter(|r| !r.is_empty())
    }

    /// The parts of `within` that are *not* in this set, ascending.
    pub fn gaps(&self, within: Range) -> impl Iterator<Item = Range> + '_ {
        let mut from = within.start;
        let mut inside = self.within(within);
        let mut done = within.is_empty();
        core::iter::from_fn(move || {
            while !done {
                let gap = match inside.next() {
                    Some(r) => {
                        let gap = Range::new(from, r.start);
                        from = r.end;
                        gap
                    }
                    None => {
                        done = true;
                        Range::new(from, within.end)
                    }
                };
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Adds `range`; returns how many offsets were new.
    pub fn insert(&mut self, range: Range) -> u64 {
        let before = self.bytes;
        self.unite(range);
        self.bytes - before
    }

    /// Adds `range`; returns the range that it is part of now, or `range` itself if it is empty.
    #[inline]
    pub fn unite(&mut self, range: Range) -> Range {
        if range.is_empty() {
            return range;
        }
        // The common cases: growing at the end, or a new last range.
        match self.ranges.last_mut() {
            Some(last) if range.start == last.end => {
                last.end = range.end;
                self.bytes += range.len();
                *last
            }
            Some(last) if range.start < last.end => self.unite_inside(range),
            _ => {
                self.ranges.push_back(range);
                self.bytes += range.len();
                range
            }
        }
    }

    fn unite_inside(&mut self, range: Range) -> Range {
        // Merge with every range that overlaps or touches.
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let mut to = from;
        let mut merged = range;
        let mut had = 0;
        while let Some(r) = self.ranges.get(to).filter(|r| r.start <= merged.end) {
            merged = Range::new(merged.start.min(r.start), merged.end.max(r.end));
            had += r.len();
            to += 1;
        }
        if from == to {
            self.ranges.insert(from, merged);
        } else {
            self.ranges[from] = merged;
            self.ranges.cut(from + 1, to);
        }
        self.forget_from(from);
        self.bytes += merged.len() - had;
        merged
    }

    /// Removes `range`; returns how many offsets were inside.
    #[inline]
    pub fn remove(&mut self, range: Range) -> u64 {
        match self.ranges.first_mut() {
            // The common case: the beginning of the lowest range.
            Some(first) if range.start == first.start && range.end < first.end && !range.is_empty() => {
                first.start = range.end;
                self.bytes -= range.len();
                if let Some(index) = &mut self.index {
                    index.gone += range.len();
                }
                range.len()
            }
            _ => self.remove_inside(range),
        }
    }

    #[inline(never)]
    fn remove_inside(&mut self, range: Range) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let at = self.after(range.start);
        match self.ranges.get(at).copied() {
            Some(whole) if whole.contains(range) => self.remove_of(at, whole, range).len(),
            _ => self.remove_across(at, range),
        }
    }

    /// Removes `range` from range `at`, which is `whole` and contains it; returns it.
    #[inline]
    fn remove_of(&mut self, at: usize, whole: Range, range: Range) -> Range {
        self.bytes -= range.len();
        if whole.start == range.start && at == 0 {
            let last = range.end == whole.end;
            match &mut self.index {
                Some(index) if last => index.without_first(range.len()),
                Some(index) => index.gone += range.len(),
                None => {}
            }
            if last {
                self.ranges.pop_front();
            } else {
                self.ranges[0].start = range.end;
            }
        } else {
            self.remove_behind(at, whole, range);
        }
        range
    }

    /// As [`Self::remove_of`], but for the beginning of the lowest range.
    #[inline(never)]
    fn remove_behind(&mut self, at: usize, whole: Range, range: Range) {
        let (begins, ends) = (whole.start == range.start, whole.end == range.end);
        match (begins, ends) {
            (true, true) => self.ranges.remove(at),
            (true, false) => self.ranges[at].start = range.end,
            (false, true) => self.ranges[at].end = range.start,
            (false, false) => {
                self.ranges[at].end = range.start;
                self.ranges.insert(at + 1, Range::new(range.end, whole.end));
            }
        }
        let Some(index) = &mut self.index else { return };
        index.less_in(at, range.len());
        match (begins, ends) {
            (true, true) => index.without(at),
            (false, false) => index.split(at, range.start - whole.start),
            _ => {}
        }
    }

    /// Removes `range`, which touches no range below `at`.
    fn remove_across(&mut self, mut at: usize, range: Range) -> u64 {
        let (from, mut removed) = (at, 0);
        while let Some(r) = self.ranges.get(at).copied().filter(|r| r.start < range.end) {
            let cut = r.intersect(range);
            removed += cut.len();
            match (r.start < cut.start, cut.end < r.end) {
                (false, false) => {
                    self.ranges.remove(at);
                }
                (true, _) => {
                    self.ranges[at].end = cut.start;
                    at += 1;
                }
                (false, true) => {
                    self.ranges[at].start = cut.end;
                    break;
                }
            }
        }
        self.forget_from(from);
        self.bytes -= removed;
        removed
    }

    /// Everything from range `at` on may have changed.
    fn forget_from(&mut self, at: usize) {
        let count = self.ranges.len();
        self.index.iter_mut().for_each(|index| index.forget_from(at, count));
    }

    /// Removes everything below `offset`; returns the number of removed offsets.
    #[inline]
    pub fn remove_below(&mut self, offset: u64) -> u64 {
        match self.ranges.first() {
            Some(first) if first.start < offset => self.remove_first_below(offset),
            _ => 0,
        }
    }

    #[inline(never)]
    fn remove_first_below(&mut self, offset: u64) -> u64 {
        let mut removed = 0;
        while let Some(first) = self.ranges.first_mut().filter(|first| first.start < offset) {
            if first.end <= offset {
                let gone = first.len();
                removed += gone;
                self.index.iter_mut().for_each(|index| index.without_first(gone));
                self.ranges.pop_front();
            } else {
                let gone = offset - first.start;
                removed += gone;
                self.index.iter_mut().for_each(|index| index.gone += gone);
                first.start = offset;
            }
        }
        self.bytes -= removed;
        removed
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
        self.forget_from(0);
    }

    /// The range that starts after skipping `skip` offsets *of this set*, at most `len` long and never across a gap.
    #[inline]
    pub fn after_skipping(&self, skip: u64, len: u64) -> Option<Range> {
        match self.ranges.first()? {
            first if skip < first.len() => {
                let start = first.start + skip;
                Some(Range::new(start, first.end.min(start + len)))
            }
            _ => self.after_first(skip, len),
        }
    }

    /// As [`Self::after_skipping`], behind the lowest range.
    #[inline(never)]
    fn after_first(&self, skip: u64, len: u64) -> Option<Range> {
        let start = self.nth(skip)?;
        Some(Range::new(start, self.range_at(start)?.end.min(start + len)))
    }

    /// The offset of this set with `skip` others below it. The search runs from both ends, because schedulers skip to
    /// offsets near one of them.
    fn nth(&self, mut skip: u64) -> Option<u64> {
        // Offsets from the target to the end.
        let mut rest = self.bytes.checked_sub(skip).filter(|rest| *rest > 0)?;
        for (low, high) in self.ranges.iter().zip(self.ranges.iter().rev()) {
            if rest <= high.len() {
                return Some(high.end - rest);
            }
            if skip < low.len() {
                return Some(low.start + skip);
            }
            rest -= high.len();
            skip -= low.len();
        }
        None
    }
}

impl FromIterator<Range> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range>>(ranges: I) -> Self {
        let mut set = Self::new();
        for r in ranges {
            set.insert(r);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn r(start: u64, end: u64) -> Range {
        Range::new(start, end)
    }

    #[test]
    fn skipping_counts_members_only() {
        let set: RangeSet = [r(10, 20), r(30, 40)].into_iter().collect();
        assert_eq!(set.after_skipping(0, 4), Some(r(10, 14)));
        assert_eq!(set.after_skipping(8, 4), Some(r(18, 20)));
        assert_eq!(set.after_skipping(10, 4), Some(r(30, 34)));
        assert_eq!(set.after_skipping(20, 4), None);
    }

    /// Where [`RangeSet::take`] would begin; it takes nothing.
    fn place(set: &mut RangeSet, skip: u64) -> Option<u64> {
        let mut found = None;
        let taken = set.take(skip, 2, |range| {
            found = Some(range.start);
            false
        });
        assert_eq!(taken, None);
        found
    }

    /// The promise of [`RangeSet::take`], however far a place is from the one before.
    #[test]
    fn a_place_is_found_by_halving() {
        const RANGES: u64 = 1000;
        let mut set: RangeSet = (0..RANGES).map(|n| r(n * 10, n * 10 + 7)).collect();
        let steps_of = |set: &mut RangeSet, skip: u64| {
            let steps = |set: &RangeSet| set.index.as_ref().map_or(0, |index| index.steps);
            let before = steps(set);
            let found = place(set, skip);
            assert_eq!(found, set.after_skipping(skip, 2).map(|found| found.start));
            steps(set) - before
        };
        // ⌈log₂ n⌉, and one more for each half of the ring in which the entries are.
        let most = RANGES.ilog2() + 3;
        assert!(steps_of(&mut set, RANGES * 7 - 1) as u64 <= RANGES + u64::from(most), "each range is come to once");
        for n in 1..RANGES * 7 {
            // Each time far from the place before.
            let skip = n * 2_503 % (RANGES * 7);
            assert!(steps_of(&mut set, skip) <= most);
            assert_eq!(place(&mut set, skip), Some(skip / 7 * 10 + skip % 7));
        }
        // The rest stays known when something is removed somewhere or in front of all, or added at the end.
        for n in 0..200 {
            set.remove(set.after_skipping(n * 311 % set.bytes(), 2).unwrap());
            let first = set.first().unwrap();
            set.remove(r(first.start, first.end.min(first.start + 1 + n % 7)));
            set.insert(r(20_000 + n * 10, 20_002 + n * 10));
            let last = set.bytes() - 1;
            assert!(steps_of(&mut set, last) <= most + 2);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_offsets(ops in prop::collection::vec((0u8..5, 0u64..60, 0u64..20), 1..60)) {
            let mut set = RangeSet::new();
            let mut naive = BTreeSet::new();
            for (op, start, len) in ops {
                let range = r(start, start + len);
                let before = naive.len() as u64;
                match op {
                    0 => {
                        let new = set.insert(range);
                        naive.extend(range.start..range.end);
                        prop_assert_eq!(new, naive.len() as u64 - before);
                    }
                    1 => {
                        let whole = set.unite(range);
                        naive.extend(range.start..range.end);
                        let part_of = set.range_at(start).filter(|_| len > 0);
                        prop_assert_eq!(part_of.unwrap_or(range), whole);
                    }
                    2 => {
                        let gone = set.remove(range);
                        naive.retain(|x| !(range.start..range.end).contains(x));
                        prop_assert_eq!(gone, before - naive.len() as u64);
                    }
                    3 => {
                        let (found, admitted) = (set.after_skipping(start, len + 1), len % 3 > 0);
                        let taken = set.take(start, len + 1, |range| Some(range) == found && admitted);
                        prop_assert_eq!(taken, found.filter(|_| admitted));
                        naive.retain(|x| !taken.is_some_and(|taken| taken.start <= *x && *x < taken.end));
                    }
                    _ => {
                        let gone = set.remove_below(start);
                        naive.retain(|x| *x >= start);
                        prop_assert_eq!(gone, before - naive.len() as u64);
                    }
                }
                prop_assert_eq!(set.bytes(), naive.len() as u64);
                if let Some(index) = &set.index {
                    let sums = set.iter().scan(index.gone, |sum, r| { *sum += r.len(); Some(*sum) });
                    prop_assert!(index.before.len() <= set.count().saturating_sub(1));
                    prop_assert!(sums.zip(index.before.iter()).all(|(sum, before)| sum == *before));
                }
                let flat: Vec<u64> = set.iter().flat_map(|r| r.start..r.end).collect();
                prop_assert!(flat.iter().eq(naive.iter()));
                prop_assert!(set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start));
                let inside: Vec<u64> = set.within(r(10, 50)).flat_map(|r| r.start..r.end).collect();
                let outside: Vec<u64> = set.gaps(r(10, 50)).flat_map(|r| r.start..r.end).collect();
                prop_assert!(inside.iter().eq(naive.range(10..50)));
                prop_assert!(outside.into_iter().eq((10..50).filter(|x| !naive.contains(x))));
                let members: Vec<u64> = naive.iter().copied().collect();
                for skip in 0..=members.len() {
                    let next = set.after_skipping(skip as u64, 3);
                    prop_assert_eq!(next.map(|r| r.start), members.get(skip).copied());
                    let run = next.map_or(0, |r| (r.start..).take(3).take_while(|x| naive.contains(x)).count());
                    prop_assert_eq!(next.map_or(0, Range::len), run as u64);
                }
                prop_assert_eq!(set.contains(start), naive.contains(&start));
                prop_assert_eq!(set.covers(range), (range.start..range.end).all(|x| naive.contains(&x)));
            }
        }
    }
}
