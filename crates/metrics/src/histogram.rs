//! A distribution in bounded memory.

use crate::statistics::type7_rank;

/// Each power of two is cut into this many equal buckets.
const SUB_BITS: u32 = 10;
/// Values below this have a bucket of their own.
const EXACT: u64 = 2 << SUB_BITS;

/// A log-linear histogram of integers: mean and maximum are exact, quantiles are exact below 2048 and within 0.05 %
/// above. It holds at most 56 320 counters (440 KiB), however many values it is given.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    n: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Adds `value` `n` times.
    pub fn add(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += n;
        self.n += n;
        self.sum += value as u128 * n as u128;
        self.max = self.max.max(value);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.n += other.n;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Forgets every value.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// Greatest value; `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.n > 0).then_some(self.max)
    }

    /// The `p` quantile (type 7 of Hyndman and Fan); `None` without values.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        if self.n == 0 {
            return None;
        }
        let (rank, part) = type7_rank(self.n, p);
        let low = self.at_rank(rank);
        let high = if part > 0.0 { self.at_rank(rank + 1) } else { low };
        Some(low + part * (high - low))
    }

    /// The value with `rank` values before it, as far as its bucket tells.
    fn at_rank(&self, rank: u64) -> f64 {
        let mut before = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            before += count;
            if before > rank {
                return middle(bucket).min(self.max as f64);
            }
        }
        self.max as f64
    }
}

const fn bucket(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    // The leading SUB_BITS + 1 bits say which bucket; `shift` bits are dropped.
    let shift = value.ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

fn middle(bucket: usize) -> f64 {
    if (bucket as u64) < EXACT {
        return bucket as f64;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let leading = (bucket & ((1 << SUB_BITS) - 1)) as u64 + (1 << SUB_BITS);
    // The bucket holds `width` integers from `low` on.
    let (low, width) = ((leading << shift) as f64, (1u64 << shift) as f64);
    low + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::quantile;
    use anabranch_units::Rng;

    #[test]
    fn buckets_are_contiguous_and_their_middles_close() {
        assert_eq!(bucket(u64::MAX), 56_319);
        let mut last = 0;
        for value in (0..100_000).chain((17..64).flat_map(|b| [(1 << b) - 1, 1 << b, (1 << b) + 1])) {
            let at = bucket(value);
            if value < 100_000 {
                assert!(at == last || at == last + 1, "{value}");
                last = at;
            }
            let error = (middle(at) - value as f64).abs();
            assert!(error <= value as f64 * 0.0005, "{value} {error}");
            assert!(value >= EXACT || error == 0.0);
        }
    }

    #[test]
    fn quantiles_agree_with_sorting() {
        let mut rng = Rng::stream(5, "histogram");
        let mut draw = || rng.bits() >> (40 + rng.below(20));
        let values: Vec<u64> = (0..10_000).map(|_| draw()).collect();
        let mut histogram = Histogram::default();
        values.iter().for_each(|&v| histogram.add(v, 1));
        let reals: Vec<f64> = values.iter().map(|&v| v as f64).collect();
        for p in [0.0, 0.05, 0.5, 0.9, 0.95, 0.99, 1.0] {
            let (exact, ours) = (quantile(&reals, p).unwrap(), histogram.quantile(p).unwrap());
            assert!((exact - ours).abs() <= exact * 0.0005, "{p}: {exact} {ours}");
        }
        assert_eq!(histogram.max(), values.iter().max().copied());
        assert_eq!(histogram.mean(), Some(reals.iter().sum::<f64>() / 10_000.0));
    }

    #[test]
    fn merging_is_adding() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for (value, n) in [(0, 3), (7, 1), (1 << 40, 2)] {
            b.add(value, n);
            both.add(value, n);
        }
        a.add(5, 4);
        both.add(5, 4);
        a.merge(&b);
        assert_eq!((a.mean(), a.max(), a.quantile(0.5)), (both.mean(), both.max(), both.quantile(0.5)));
        assert_eq!(a.quantile(0.5), Some(5.0));
        a.clear();
        assert_eq!((a.mean(), a.max(), a.quantile(0.5)), (None, None, None));
    }
}
