//! Late packets: RFC 4737.

use super::Counts;
use std::collections::VecDeque;

/// Reordered packets and their extents (RFC 4737 §3.3, §4.2).
#[derive(Clone, Debug, Default)]
pub struct Extents {
    counted: u64,
    extents: Counts,
}

/// Finds the extents of a stream's packets. O(1) amortised for an arrival in order, O(log window) for a reordered one; memory
/// grows with the distance of arrivals from the lowest missing number, not with time.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// Arrivals so far.
    seen: u64,
    /// Those that were the greatest so far, ascending.
    greatest: VecDeque<Run>,
}

/// Successive numbers in successive arrivals.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    last: u64,
    /// The first one's arrival.
    arrival: u64,
}

impl Sequence {
    /// `number` arrived, for the first time; every number below `missing` had arrived before (or never will).
    #[inline(always)]
    pub fn arrive(&mut self, number: u64, missing: u64, extents: &mut Extents) {
        let now = self.seen;
        self.seen += 1;
        extents.counted += 1;
        // Nothing below `missing` arrives again, so these are never looked up.
        while self.greatest.front().is_some_and(|run| run.last < missing) {
            self.greatest.pop_front();
        }
        match self.greatest.back_mut() {
            Some(run) if number < run.last => {
                // RFC 4737 §4.2.1: the extent is i − j, with j the earliest arrival of a greater number.
                let earliest = match self.greatest.front() {
                    // Nearly always: the missing number, and every run is above it.
                    Some(run) if run.last > number => 0,
                    _ => self.greatest.partition_point(|run| run.last < number),
                };
                extents.extents.add(now - self.greatest[earliest].arrival);
            }
            Some(run) if number == run.last + 1 && now - run.arrival == number - run.first => run.last = number,
            _ if number > missing => self.greatest.push_back(Run { first: number, last: number, arrival: now }),
            _ => {}
        }
    }
}

impl Extents {
    /// Packets counted.
    pub fn arrivals(&self) -> u64 {
        self.counted
    }

    /// Reordered packets: a greater number had come before (RFC 4737 §3.3).
    pub fn reordered(&self) -> u64 {
        self.extents.total()
    }

    /// Reordered ÷ all (RFC 4737 §4.1); `None` without packets.
    pub fn ratio(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.reordered() as f64 / self.counted as f64)
    }

    /// Mean extent of reordered packets; `None` without any.
    pub fn mean_extent(&self) -> Option<f64> {
        self.extents.mean()
    }

    /// Extents that came, ascending, with how often.
    pub fn extents(&self) -> Vec<(u64, u64)> {
        self.extents.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn follow(arrivals: &[u64]) -> Extents {
        let (mut sequence, mut extents, mut had) = (Sequence::default(), Extents::default(), BTreeSet::new());
        for &n in arrivals {
            let missing = (0..).find(|n| !had.contains(n)).unwrap();
            sequence.arrive(n, missing, &mut extents);
            had.insert(n);
        }
        extents
    }

    #[test]
    fn worked_examples() {
        let example = follow(&[1, 2, 3, 7, 4, 5, 8, 6].map(|n| n - 1));
        assert_eq!((example.reordered(), example.ratio()), (3, Some(3.0 / 8.0)));
        assert_eq!(example.extents(), [(1, 1), (2, 1), (4, 1)]);

        let one_late = follow(&[2, 3, 4, 5, 1].map(|n| n - 1));
        assert_eq!((one_late.extents(), one_late.mean_extent()), (vec![(4, 1)], Some(4.0)));

        assert_eq!(follow(&[0, 1, 2]).ratio(), Some(0.0));
        assert_eq!(follow(&[0, 1, 2]).mean_extent(), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(order in Just((0..60u64).collect::<Vec<_>>()).prop_shuffle()) {
            let mut extents = Counts::default();
            for (i, n) in order.iter().enumerate() {
                if let Some(j) = order[..i].iter().position(|m| m > n) {
                    extents.add((i - j) as u64);
                }
            }
            let ours = follow(&order);
            prop_assert_eq!(ours.extents(), extents.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn memory_stays_small_in_order() {
        let (mut sequence, mut extents) = (Sequence::default(), Extents::default());
        (0..10_000).for_each(|n| sequence.arrive(n, n, &mut extents));
        assert!(sequence.greatest.len() <= 1);
    }
}
