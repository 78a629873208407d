//! A set of numbers that slides upwards.

use std::collections::VecDeque;

/// Numbers this far above the lowest are refused: 2²⁶ bits are 8 MiB.
const SPAN: u64 = 1 << 26;

/// A set of numbers near each other, one bit each. Sliding and looking for neighbours take O(distance / 64).
#[derive(Clone, Debug, Default)]
pub struct SlidingBits {
    /// The number of the first word's lowest bit, a multiple of 64.
    base: u64,
    words: VecDeque<u64>,
}

impl SlidingBits {
    pub fn contains(&self, n: u64) -> bool {
        n >= self.base && self.word(n).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    /// True if `n` may be a member: not slid past, and within the span.
    pub fn accepts(&self, n: u64) -> bool {
        n >= self.base && n - self.base < SPAN
    }

    /// Adds a number; false if it is a member already or not accepted.
    #[inline]
    pub fn insert(&mut self, n: u64) -> bool {
        if !self.accepts(n) {
            return false;
        }
        let at = ((n - self.base) / 64) as usize;
        let bit = 1 << (n % 64);
        match self.words.get_mut(at) {
            Some(word) => {
                let new = *word & bit == 0;
                *word |= bit;
                new
            }
            None => self.insert_beyond(at, bit),
        }
    }

    /// The set grows up to its word `at`, which gets one member.
    #[cold]
    fn insert_beyond(&mut self, at: usize, bit: u64) -> bool {
        self.words.resize(at, 0);
        self.words.push_back(bit);
        true
    }

    pub fn remove(&mut self, n: u64) {
        if self.contains(n) {
            self.words[((n - self.base) / 64) as usize] &= !(1 << (n % 64));
        }
    }

    /// Forgets numbers below `n`, as far as whole words go.
    pub fn slide(&mut self, n: u64) {
        while n - n % 64 > self.base {
            if self.words.pop_front().is_none() {
                self.base = n - n % 64;
                return;
            }
            self.base += 64;
        }
    }

    /// The lowest number from `n` on that is not a member.
    pub fn first_missing(&self, n: u64) -> u64 {
        let mut n = n;
        while let Some(word) = self.word(n) {
            let run = (word >> (n % 64)).trailing_ones() as u64;
            if n % 64 + run < 64 {
                return n + run;
            }
            n += 64 - n % 64;
        }
        n
    }

    /// The lowest member from `n` on.
    pub fn first_member(&self, n: u64) -> Option<u64> {
        let mut n = n.max(self.base);
        loop {
            let rest = self.word(n)? >> (n % 64);
            if rest != 0 {
                return Some(n + rest.trailing_zeros() as u64);
            }
            n += 64 - n % 64;
        }
    }

    fn word(&self, n: u64) -> Option<u64> {
        self.words.get((n.checked_sub(self.base)? / 64) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Insert(u64),
        Remove(u64),
        Slide(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        (0..3u8, 0..400u64).prop_map(|(kind, n)| match kind {
            0 => Op::Insert(n),
            1 => Op::Remove(n),
            _ => Op::Slide(n / 2),
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(ops in prop::collection::vec(op(), 0..200), probe in 0..400u64) {
            let (mut bits, mut set, mut floor) = (SlidingBits::default(), BTreeSet::new(), 0);
            for op in ops {
                match op {
                    Op::Insert(n) if bits.accepts(n) => prop_assert_eq!(bits.insert(n), set.insert(n)),
                    Op::Insert(n) => prop_assert!(n < floor && !bits.insert(n)),
                    Op::Remove(n) => {
                        bits.remove(n);
                        set.remove(&n);
                    }
                    Op::Slide(n) => {
                        bits.slide(n);
                        floor = floor.max(n - n % 64);
                        set.retain(|&m| m >= floor);
                    }
                }
                let probe = probe.max(floor);
                prop_assert_eq!(bits.contains(probe), set.contains(&probe));
                prop_assert_eq!(bits.first_member(probe), set.range(probe..).next().copied());
                prop_assert_eq!(bits.first_missing(probe), (probe..).find(|n| !set.contains(n)).unwrap());
            }
        }
    }

    #[test]
    fn far_numbers_are_refused() {
        let mut bits = SlidingBits::default();
        assert!(!bits.insert(SPAN) && bits.words.is_empty());
        assert!(bits.accepts(SPAN - 1) && !bits.accepts(SPAN) && !bits.accepts(u64::MAX));
    }
}
