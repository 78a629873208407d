//! Times in a few hundred counters.

use anabranch_units::Duration;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bits of a value that a counter distinguishes: quantiles are exact to 0.8 %.
const BITS: u32 = 7;

/// A distribution of times: least and greatest are exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quantiles {
    /// Counts by the least value of each bucket, in nanoseconds.
    counts: BTreeMap<u64, u64>,
    n: u64,
    least: u64,
    most: u64,
}

/// A distribution of times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// The number of samples.
    pub samples: u64,
    /// The least.
    pub min_s: f64,
    /// The median, exact to 0.8 %.
    pub median_s: f64,
    /// The 95th percentile, exact to 0.8 %.
    pub p95_s: f64,
    /// The greatest.
    pub max_s: f64,
}

impl Quantiles {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        let nanos = time.as_nanos();
        let dropped = nanos.checked_ilog2().unwrap_or(0).saturating_sub(BITS);
        *self.counts.entry(nanos >> dropped << dropped).or_default() += 1;
        self.least = if self.n == 0 { nanos } else { self.least.min(nanos) };
        self.most = self.most.max(nanos);
        self.n += 1;
    }

    /// The greatest time; zero without any.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.most)
    }

    /// The distribution; `None` without samples.
    pub fn times(&self) -> Option<Times> {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        (self.n > 0).then(|| Times {
            samples: self.n,
            min_s: seconds(self.least),
            median_s: seconds(self.at(self.n / 2)),
            p95_s: seconds(self.at(self.n * 95 / 100)),
            max_s: seconds(self.most),
        })
    }

    /// The value with `rank` values before it.
    fn at(&self, rank: u64) -> u64 {
        let mut before = 0;
        let bucket = self.counts.iter().find(|(_, count)| {
            before += **count;
            before > rank
        });
        bucket.map_or(self.most, |(value, _)| (*value).max(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_and_ends_are_exact() {
        let mut q = Quantiles::default();
        assert!(q.times().is_none());
        (1..=1000).rev().for_each(|ms| q.add(Duration::from_millis(ms)));
        let times = q.times().expect("there are samples");
        assert_eq!((times.samples, times.min_s, times.max_s), (1000, 0.001, 1.0));
        assert!((times.median_s / 0.5 - 1.0).abs() < 0.01 && (times.p95_s / 0.95 - 1.0).abs() < 0.01, "{times:?}");
    }
}
