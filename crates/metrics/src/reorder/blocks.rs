//! Byte ranges as arrivals of packets.

use super::extent::Sequence;
use super::{Disorder, Reorder};
use anabranch_units::{Range, RangeSet};

/// Longest range that is looked at block by block, in blocks.
const MOST_BLOCKS: u64 = 1 << 16;

/// Follows the reordering of a byte stream and counts it in a [`Disorder`], which many streams may share. The stream is cut into blocks of one MSS, so that there are packets to
/// count however the bytes were sent: a block arrives when its last missing byte does, the first time.
#[derive(Clone, Debug)]
pub struct Arrivals {
    block: u64,
    /// Where the stream ends, if known: the last block may be short.
    end: u64,
    /// Everything below this arrived.
    next: u64,
    /// Blocks that arrived above it.
    ahead: RangeSet,
    reorder: Reorder,
    sequence: Sequence,
}

impl Arrivals {
    /// Blocks of `block` bytes (at least one); RD and RBD with the displacement threshold `threshold` (`None` =
    /// infinite).
    pub fn new(block: u32, threshold: Option<u64>) -> Self {
        Self {
            block: block.max(1) as u64,
            end: u64::MAX,
            next: 0,
            ahead: RangeSet::new(),
            reorder: Reorder::new(threshold),
            sequence: Sequence::default(),
        }
    }

    /// The stream ends at `end`.
    pub fn set_end(&mut self, end: u64, disorder: &mut Disorder) {
        self.end = end;
        // The bytes before may be the whole of a last, short block.
        let Some(last) = end.checked_sub(1) else { return };
        let run = if last < self.next { Some(Range::new(0, self.next)) } else { self.ahead.range_at(last) };
        if let Some(run) = run {
            self.complete(Range::new(last, end), run, disorder);
        }
    }

    /// `range` arrived.
    pub fn arrive(&mut self, range: Range, disorder: &mut Disorder) {
        if range.len() > MOST_BLOCKS * self.block {
            return;
        }
        let mut rest = Range::new(range.start.max(self.next), range.end.min(self.end));
        while let Some(fresh) = self.first_missing(rest) {
            let run = if fresh.start == self.next { self.advance(fresh.end) } else { self.ahead.unite(fresh) };
            self.complete(fresh, run, disorder);
            rest.start = run.end;
        }
    }

    /// The lowest part of `range` that has not arrived, if any.
    fn first_missing(&self, range: Range) -> Option<Range> {
        if range.is_empty() {
            return None;
        }
        // Nearly always it lies wholly above or below what is there.
        let above = self.ahead.last().is_none_or(|last| last.end <= range.start);
        let clear = above || self.ahead.first().is_none_or(|first| range.end <= first.start);
        if clear { Some(range) } else { self.ahead.gaps(range).next() }
    }

    /// The gap up to `to` is filled; returns all that has arrived without a gap.
    fn advance(&mut self, to: u64) -> Range {
        self.next = to;
        while let Some(first) = self.ahead.first().filter(|first| first.start <= self.next) {
            self.next = self.next.max(first.end);
            self.ahead.remove_below(self.next);
        }
        Range::new(0, self.next)
    }

    /// Counts the blocks that `range`, a part of `run`, completed: those that lie wholly in `run`.
    #[inline(always)]
    fn complete(&mut self, range: Range, run: Range, disorder: &mut Disorder) {
        let mut number = range.start / self.block;
        let mut block = Range::new(number * self.block, number * self.block);
        while block.start < range.end {
            block.end = block.start.saturating_add(self.block);
            if run.contains(Range::new(block.start, block.end.min(self.end))) {
                let expected = self.reorder.expected();
                if self.reorder.arrive(number, &mut disorder.density) {
                    self.sequence.arrive(number, expected, &mut disorder.extents);
                }
            }
            number += 1;
            block.start = block.end;
        }
    }

    /// Nothing more will arrive: counts what the threshold kept back.
    pub fn finish(self, disorder: &mut Disorder) {
        self.reorder.finish(&mut disorder.density);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn occupancy(ranges: &[(u64, u64)], end: Option<u64>) -> (u64, Option<f64>) {
        let (mut arrivals, mut disorder) = (Arrivals::new(1000, None), Disorder::default());
        for (start, end) in ranges {
            arrivals.arrive(Range::new(*start, *end), &mut disorder);
        }
        end.into_iter().for_each(|end| arrivals.set_end(end, &mut disorder));
        arrivals.finish(&mut disorder);
        (disorder.density.packets(), disorder.density.mean_occupancy())
    }

    #[test]
    fn blocks_count_when_complete() {
        // Block 1 whole, block 0 in two halves: one packet early, one late.
        assert_eq!(occupancy(&[(0, 400), (1000, 2000), (400, 1000)], None), (2, Some(0.5)));
        // One range may complete several.
        assert_eq!(occupancy(&[(0, 3000)], None), (3, Some(0.0)));
        // Halves across a border: the first range completes nothing, the second completes both.
        assert_eq!(occupancy(&[(500, 1500), (0, 500), (1500, 2000)], None), (2, Some(0.0)));
    }

    #[test]
    fn copies_do_not_count() {
        assert_eq!(occupancy(&[(0, 1000), (0, 1000), (200, 700), (1000, 2000), (0, 2000)], None), (2, Some(0.0)));
    }

    #[test]
    fn the_last_block_may_be_short() {
        assert_eq!(occupancy(&[(0, 1000), (1000, 1300)], None).0, 1);
        assert_eq!(occupancy(&[(0, 1000), (1000, 1300)], Some(1300)).0, 2);
        let (mut known, mut disorder) = (Arrivals::new(1000, None), Disorder::default());
        known.set_end(1300, &mut disorder);
        known.arrive(Range::new(1000, 1300), &mut disorder);
        known.arrive(Range::new(0, 1000), &mut disorder);
        known.finish(&mut disorder);
        let Disorder { density, extents } = disorder;
        assert_eq!((density.packets(), density.mean_occupancy()), (2, Some(0.5)));
        assert_eq!((extents.arrivals(), extents.reordered()), (2, 1));
    }

    proptest! {
        #[test]
        fn blocks_are_counted_as_bytes_complete_them(
            ranges in prop::collection::vec((0u64..120, 0u64..40), 1..60),
            block in 1u32..12,
            threshold in prop::option::of(1u64..8),
            end in prop::option::of(1u64..150),
        ) {
            let (mut arrivals, mut had, mut whole) = (Arrivals::new(block, threshold), BTreeSet::new(), BTreeSet::new());
            let (mut reorder, mut sequence) = (Reorder::new(threshold), Sequence::default());
            let (mut ours, mut theirs) = (Disorder::default(), Disorder::default());
            let last = end.unwrap_or(u64::MAX);
            if end.is_some() {
                arrivals.set_end(last, &mut ours);
            }
            for (start, len) in ranges {
                arrivals.arrive(Range::new(start, start + len), &mut ours);
                had.extend((start..start + len).filter(|byte| *byte < last));
                for number in 0..160 / u64::from(block) {
                    let from = number * u64::from(block);
                    let mut bytes = from..(from + u64::from(block)).min(last);
                    let complete = !bytes.is_empty() && bytes.all(|byte| had.contains(&byte));
                    let expected = reorder.expected();
                    if complete && whole.insert(number) && reorder.arrive(number, &mut theirs.density) {
                        sequence.arrive(number, expected, &mut theirs.extents);
                    }
                }
            }
            arrivals.finish(&mut ours);
            reorder.finish(&mut theirs.density);
            prop_assert_eq!(ours.density.displacements(), theirs.density.displacements());
            prop_assert_eq!(ours.density.occupancies(), theirs.density.occupancies());
            let late = |disorder: &Disorder| (disorder.extents.arrivals(), disorder.extents.extents());
            prop_assert_eq!(late(&ours), late(&theirs));
        }
    }

    #[test]
    fn absurd_ranges_are_refused() {
        assert_eq!(occupancy(&[(0, u64::MAX), (u64::MAX - 10, u64::MAX), (5, 2)], None), (0, None));
    }
}
