//! How far arrivals were out of order: RD and RBD of RFC 5236, extents of RFC 4737.

mod bits;
mod blocks;
mod extent;

pub use blocks::Arrivals;
pub use extent::Extents;

use bits::SlidingBits;
use std::collections::VecDeque;

/// Displacements and occupancies from here on share one counter.
const MOST: usize = 1 << 20;

/// How often each small number came.
#[derive(Clone, Debug, Default)]
struct Counts(Vec<u64>);

impl Counts {
    #[inline]
    fn add(&mut self, value: u64) {
        match self.0.get_mut(value as usize) {
            Some(count) => *count += 1,
            None => self.add_greater(value),
        }
    }
    #[cold]
    fn add_greater(&mut self, value: u64) {
        let at = value.min(MOST as u64) as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += 1;
    }
    fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// Values that came, with how often.
    fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().enumerate().filter(|(_, n)| **n > 0).map(|(value, n)| (value as u64, *n))
    }
    fn mean(&self) -> Option<f64> {
        let total = self.total();
        let sum: u128 = self.iter().map(|(value, n)| value as u128 * n as u128).sum();
        (total > 0).then(|| sum as f64 / total as f64)
    }
}

/// The distributions of displacement (RD) and reorder-buffer occupancy (RBD): RFC 5236.
#[derive(Clone, Debug, Default)]
pub struct Density {
    early: Counts,
    late: Counts,
    occupancy: Counts,
}

impl Density {
    /// Packets counted: arrived, neither duplicates nor given up.
    pub fn packets(&self) -> u64 {
        self.occupancy.total()
    }

    /// RD: the share of packets with each displacement, ascending; negative = early, positive = late.
    pub fn displacements(&self) -> Vec<(i64, f64)> {
        let total = self.packets() as f64;
        let early = self.early.iter().rev().map(|(d, n)| (-(d as i64), n));
        let late = self.late.iter().map(|(d, n)| (d as i64, n));
        early.chain(late).map(|(d, n)| (d, n as f64 / total)).collect()
    }

    /// RBD: the share of arrivals that left each number of packets in the reorder buffer, ascending.
    pub fn occupancies(&self) -> Vec<(u64, f64)> {
        let total = self.packets() as f64;
        self.occupancy.iter().map(|(packets, n)| (packets, n as f64 / total)).collect()
    }

    /// Mean of RBD in packets; `None` without packets.
    pub fn mean_occupancy(&self) -> Option<f64> {
        self.occupancy.mean()
    }
}

/// Counts of all streams together.
#[derive(Clone, Debug, Default)]
pub struct Disorder {
    /// RD and RBD.
    pub density: Density,
    /// Late packets.
    pub extents: Extents,
}

/// Follows arrivals of numbered packets (0, 1, 2, … in the order of sending) and counts them in a [`Density`], which many
/// streams may share. O(1) amortised per arrival; memory grows with the displacement threshold and the greatest distance of
/// an arrival from the lowest missing number, not with time.
#[derive(Clone, Debug, Default)]
pub struct Reorder {
    /// DT; `None` = infinite: nothing is ever given up.
    threshold: Option<u64>,
    /// The DT + 1 newest arrivals, not yet counted, with a threshold. What is missing from them is lost.
    window: VecDeque<u64>,
    /// Numbers in the reorder buffer, all above `expected`.
    stored: SlidingBits,
    /// Numbers from `expected` on that are in the reorder buffer or in the window, with a threshold.
    arrived: SlidingBits,
    occupancy: u64,
    /// E: the number that the buffer waits for.
    expected: u64,
    /// RI: the next receive index.
    index: u64,
}

impl Reorder {
    /// A meter with a displacement threshold DT: a packet later than that is lost. `None` = infinite.
    pub fn new(threshold: Option<u64>) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// True if `number` arrived already, or was given up.
    pub fn is_settled(&self, number: u64) -> bool {
        match self.threshold {
            None => number < self.expected || self.stored.contains(number),
            // Every receive index that was passed is either in or lost.
            Some(_) => number < self.index || self.arrived.contains(number),
        }
    }

    /// The number that the reorder buffer waits for.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// `number` arrived, to be counted in `density`. Duplicates, packets that were given up, and numbers absurdly far ahead do not count; true if it
    /// was none of these.
    #[inline(always)]
    pub fn arrive(&mut self, number: u64, density: &mut Density) -> bool {
        let Some(threshold) = self.threshold else {
            // The one that is waited for is never settled and never absurd.
            let fresh = number == self.expected || number > self.expected && self.stored.insert(number);
            if fresh {
                self.count(number, density);
            }
            return fresh;
        };
        // A number in the window may enter the buffer later: both sets must take it.
        if self.is_settled(number) || !self.stored.accepts(number) || !self.arrived.accepts(number) {
            return false;
        }
        self.arrived.insert(number);
        self.window.push_back(number);
        // RFC 5236: the window looks DT arrivals ahead of the one that is counted.
        if self.window.len() as u64 > threshold {
            self.count_first(threshold, density);
        }
        true
    }

    /// Nothing more will arrive: counts what the window holds.
    pub fn finish(mut self, density: &mut Density) {
        while let (Some(threshold), false) = (self.threshold, self.window.is_empty()) {
            self.count_first(threshold, density);
        }
    }

    fn count_first(&mut self, threshold: u64, density: &mut Density) {
        let Some(number) = self.window.pop_front() else { return };
        // RFC 5236: a receive index that neither the window nor the buffer holds belongs to a lost packet.
        self.index = self.arrived.first_member(self.index).unwrap_or(self.index);
        if self.index.abs_diff(number) > threshold {
            // RFC 5236: beyond the threshold, as if it had not come.
            self.arrived.remove(number);
            return;
        }
        if !self.arrived.contains(self.expected) {
            self.expected = self.arrived.first_member(self.expected).unwrap_or(self.expected);
            self.deliver_stored();
        }
        if number != self.expected {
            self.stored.insert(number);
        }
        self.count(number, density);
    }

    /// Counts a number that is the expected one or was stored just now.
    #[inline(always)]
    fn count(&mut self, number: u64, density: &mut Density) {
        // RFC 5236: D = RI − S.
        if self.index >= number {
            density.late.add(self.index - number);
        } else {
            density.early.add(number - self.index);
        }
        self.index += 1;
        if number == self.expected {
            self.expected += 1;
            self.deliver_stored();
        } else {
            self.occupancy += 1;
        }
        density.occupancy.add(self.occupancy);
    }

    /// Empties the buffer as far as it is contiguous.
    #[inline(always)]
    fn deliver_stored(&mut self) {
        if self.occupancy > 0 {
            let end = self.stored.first_missing(self.expected);
            self.occupancy -= end - self.expected;
            self.expected = end;
        }
        // The numbers that they accept are counted from there.
        self.stored.slide(self.expected);
        if self.threshold.is_some() {
            self.arrived.slide(self.expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts arrivals numbered from 1.
    fn density(threshold: Option<u64>, arrivals: &[u64]) -> Density {
        let (mut reorder, mut density) = (Reorder::new(threshold), Density::default());
        for n in arrivals {
            reorder.arrive(n - 1, &mut density);
        }
        reorder.finish(&mut density);
        density
    }

    fn eighths(shares: &[(i64, f64)], of: f64) -> Vec<(i64, f64)> {
        shares.iter().map(|(d, share)| (*d, share * of)).collect()
    }

    /// The same with no threshold and with one that nothing exceeds: `(displacement, packets)`, `(occupancy, packets)`.
    fn check(arrivals: &[u64], rd: &[(i64, f64)], rbd: &[(u64, f64)], mean: f64) {
        for threshold in [None, Some(1000), Some(5)] {
            let density = density(threshold, arrivals);
            let of = arrivals.len() as f64;
            assert_eq!(eighths(&density.displacements(), of), rd, "{threshold:?}");
            let occupancies: Vec<_> = density.occupancies().iter().map(|(n, share)| (*n, share * of)).collect();
            assert_eq!(occupancies, rbd, "{threshold:?}");
            assert_eq!(density.mean_occupancy(), Some(mean));
        }
    }

    #[test]
    fn worked_examples() {
        check(
            &[1, 2, 3, 7, 4, 5, 8, 6],
            &[(-3, 1.0), (-1, 1.0), (0, 3.0), (1, 2.0), (2, 1.0)],
            &[(0, 4.0), (1, 3.0), (2, 1.0)],
            0.625,
        );
        check(&[1, 2, 4, 3, 5, 6], &[(-1, 1.0), (0, 4.0), (1, 1.0)], &[(0, 5.0), (1, 1.0)], 1.0 / 6.0);
        check(
            &[1, 3, 5, 2, 4, 6, 7, 9, 8, 10],
            &[(-2, 1.0), (-1, 2.0), (0, 4.0), (1, 2.0), (2, 1.0)],
            &[(0, 6.0), (1, 3.0), (2, 1.0)],
            0.5,
        );
        check(&[2, 3, 4, 5, 1], &[(-1, 4.0), (4, 1.0)], &[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)], 2.0);
    }

    #[test]
    fn a_lost_packet_is_skipped_within_the_threshold() {
        for threshold in [1, 3, 1000] {
            let density = density(Some(threshold), &[1, 2, 4, 5, 6]);
            assert_eq!(density.displacements(), [(0, 1.0)], "{threshold}");
            assert_eq!(density.occupancies(), [(0, 1.0)], "{threshold}");
        }
        // Without a threshold the buffer waits for it.
        let density = density(None, &[1, 2, 4, 5, 6]);
        assert_eq!(density.displacements(), [(-1, 3.0 / 5.0), (0, 2.0 / 5.0)]);
        assert_eq!(density.occupancies(), [(0, 2.0 / 5.0), (1, 0.2), (2, 0.2), (3, 0.2)]);
    }

    #[test]
    fn what_comes_after_the_threshold_is_lost() {
        // 1 is not among the first DT + 1 = 4 arrivals.
        let late = density(Some(3), &[2, 3, 4, 5, 1, 6]);
        assert_eq!((late.packets(), late.displacements()), (5, vec![(0, 1.0)]));
        assert_eq!(late.mean_occupancy(), Some(0.0));
        // Here it is: late by 3.
        let in_time = density(Some(3), &[2, 3, 4, 1, 5, 6]);
        assert_eq!(in_time.displacements(), [(-1, 3.0 / 6.0), (0, 2.0 / 6.0), (3, 1.0 / 6.0)]);
        assert_eq!(in_time.mean_occupancy(), Some((1.0 + 2.0 + 3.0) / 6.0));
    }

    #[test]
    fn early_beyond_the_threshold_does_not_count() {
        // 9 is early by 7 while 2 is there to be waited for: discarded, so that 9 itself is lost later.
        let density = density(Some(2), &[1, 9, 2, 3, 4, 5]);
        assert_eq!((density.packets(), density.displacements()), (5, vec![(0, 1.0)]));
        assert_eq!(density.occupancies(), [(0, 1.0)]);
    }

    #[test]
    fn duplicates_do_not_count() {
        for threshold in [None, Some(4)] {
            let density = density(threshold, &[1, 1, 3, 3, 2, 2, 1, 4]);
            assert_eq!((density.packets(), density.mean_occupancy()), (4, Some(0.25)), "{threshold:?}");
        }
    }

    #[test]
    fn what_is_counted_anew_follows_the_same_stream() {
        let (mut reorder, mut before, mut density) = (Reorder::new(None), Density::default(), Density::default());
        assert_eq!([0, 2, 3].map(|n| reorder.arrive(n, &mut before)), [true; 3]);
        assert_eq!([4, 1].map(|n| reorder.arrive(n, &mut density)), [true; 2]);
        reorder.finish(&mut density);
        assert_eq!(density.displacements(), [(-1, 0.5), (3, 0.5)]);
        assert_eq!(density.occupancies(), [(0, 0.5), (3, 0.5)]);
    }

    #[test]
    fn absurd_numbers_are_refused() {
        let (mut reorder, mut density) = (Reorder::new(None), Density::default());
        assert!(!reorder.arrive(u64::MAX, &mut density));
        assert!(reorder.arrive(0, &mut density));
        reorder.finish(&mut density);
        assert_eq!(density.packets(), 1);
    }

    #[test]
    fn displacements_sum_to_zero_without_loss() {
        let mut rng = anabranch_units::Rng::stream(3, "reorder");
        let mut order: Vec<u64> = (1..=2000).collect();
        for i in 0..order.len() - 8 {
            order.swap(i, i + rng.below(8) as usize);
        }
        let unlimited = density(None, &order);
        let limited = density(Some(2000), &order);
        let sum: f64 = unlimited.displacements().iter().map(|(d, share)| *d as f64 * share).sum();
        assert!(sum.abs() < 1e-9, "{sum}");
        assert_eq!(unlimited.displacements(), limited.displacements());
        assert_eq!(unlimited.occupancies(), limited.occupancies());
    }
}
