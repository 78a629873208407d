//! Byte ranges as arrivals of packets.

use super::{Density, Extents, Reorder};
use anabranch_units::{Range, RangeSet};

/// Longest range that is looked at block by block, in blocks.
const MOST_BLOCKS: u64 = 1 << 16;

/// Follows the reordering of a byte stream. The stream is cut into blocks of one MSS, so that there are packets to
/// count however the bytes were sent: a block arrives when its last missing byte does, the first time.
#[derive(Clone, Debug)]
pub struct Arrivals {
    block: u64,
    /// Where the stream ends, if known: the last block may be short.
    end: u64,
    /// What arrived of blocks that are not complete.
    partial: RangeSet,
    reorder: Reorder,
    extents: Extents,
}

impl Arrivals {
    /// Blocks of `block` bytes (at least one); RD and RBD with the displacement threshold `threshold` (`None` =
    /// infinite).
    pub fn new(block: u32, threshold: Option<u64>) -> Self {
        Self {
            block: block.max(1) as u64,
            end: u64::MAX,
            partial: RangeSet::new(),
            reorder: Reorder::new(threshold),
            extents: Extents::default(),
        }
    }

    /// The stream ends at `end`.
    pub fn set_end(&mut self, end: u64) {
        self.end = end;
        // What came before may be the whole of a last, short block.
        if let Some(range) = end.checked_sub(1).and_then(|last| self.partial.range_at(last)) {
            self.arrive(range);
        }
    }

    /// `range` arrived.
    pub fn arrive(&mut self, range: Range) {
        let range = Range::new(range.start, range.end.min(self.end));
        if range.is_empty() || range.len() > MOST_BLOCKS * self.block {
            return;
        }
        let (first, last) = (range.start / self.block, (range.end - 1) / self.block);
        let mut from = first;
        while from <= last {
            if self.reorder.is_settled(from) {
                from += 1;
                continue;
            }
            let to = (from..=last).find(|number| self.reorder.is_settled(*number)).unwrap_or(last + 1);
            self.fill(from, to, range);
            from = to;
        }
    }

    /// Adds the part of `range` in the blocks `from..to`, of which none is settled.
    fn fill(&mut self, from: u64, to: u64, range: Range) {
        let blocks = Range::new(self.start_of(from), self.start_of(to));
        let mut whole = range.intersect(blocks);
        if !self.partial.is_empty() || whole != blocks {
            self.partial.insert(whole);
            whole = self.partial.range_at(whole.start).unwrap_or(whole);
        }
        let from = from + u64::from(whole.start > blocks.start);
        let to = if whole.end < blocks.end { to - 1 } else { to };
        if from >= to {
            return;
        }
        if !self.partial.is_empty() {
            self.partial.remove(Range::new(self.start_of(from), self.start_of(to)));
        }
        for number in from..to {
            let expected = self.reorder.expected();
            if self.reorder.arrive(number) {
                self.extents.arrive(number, expected);
            }
        }
    }

    /// Where a block begins; the end of the stream for those behind it.
    fn start_of(&self, number: u64) -> u64 {
        number.saturating_mul(self.block).min(self.end)
    }

    /// Forgets what was counted, not what arrived.
    pub fn restart(&mut self) {
        self.reorder.restart();
        self.extents.restart();
    }

    /// Nothing more will arrive: the distributions, and the extents.
    pub fn finish(self) -> (Density, Extents) {
        (self.reorder.finish(), self.extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(ranges: &[(u64, u64)], end: Option<u64>) -> (u64, Option<f64>) {
        let mut arrivals = Arrivals::new(1000, None);
        for (start, end) in ranges {
            arrivals.arrive(Range::new(*start, *end));
        }
        end.into_iter().for_each(|end| arrivals.set_end(end));
        let (density, _) = arrivals.finish();
        (density.packets(), density.mean_occupancy())
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
        let mut known = Arrivals::new(1000, None);
        known.set_end(1300);
        known.arrive(Range::new(1000, 1300));
        known.arrive(Range::new(0, 1000));
        let (density, extents) = known.finish();
        assert_eq!((density.packets(), density.mean_occupancy()), (2, Some(0.5)));
        assert_eq!((extents.arrivals(), extents.reordered()), (2, 1));
    }

    #[test]
    fn absurd_ranges_are_refused() {
        assert_eq!(occupancy(&[(0, u64::MAX), (u64::MAX - 10, u64::MAX), (5, 2)], None), (0, None));
    }
}
