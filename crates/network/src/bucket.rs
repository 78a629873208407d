//! Token buckets: the burst of a shaper, and the policer at the entrance of a bottleneck.

use crate::Capacity;
use anabranch_units::{Instant, Rate};

/// A token bucket, full at first: in any time t, at most `burst` + `rate` · t pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSpec {
    /// The rate at which it fills, above zero.
    pub rate: Rate,
    /// Size of the bucket in bytes.
    pub burst: u64,
}

/// A token bucket in use. Times are exact to the nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    spec: BucketSpec,
    /// When it was or will be empty, in nanoseconds: one that is full at time zero was empty before.
    empty: i128,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(spec: BucketSpec) -> Self {
        let mut bucket = Self { spec, empty: 0 };
        bucket.empty = -bucket.depth();
        bucket
    }

    /// A bucket that is empty at `at`.
    pub(crate) fn empty_at(at: Instant, spec: BucketSpec) -> Self {
        Self { spec, empty: at.as_nanos().into() }
    }

    /// The time in which it fills, rounded down.
    fn depth(&self) -> i128 {
        (i128::from(self.spec.burst) * 8_000_000_000) / i128::from(self.spec.rate.as_bps().max(1))
    }

    /// When it will be empty if `size` bytes are taken at `now`; later than `now` if it has not so many.
    fn without(&self, now: Instant, size: u32) -> i128 {
        let time = self.spec.rate.time_for(size.into()).as_nanos();
        self.empty.max(i128::from(now.as_nanos()) - self.depth()) + i128::from(time)
    }

    /// Takes a packet of `size` bytes, if there are so many.
    pub(crate) fn take(&mut self, now: Instant, size: u32) -> bool {
        let empty = self.without(now, size);
        let enough = empty <= i128::from(now.as_nanos());
        if enough {
            self.empty = empty;
        }
        enough
    }

    /// Fills at `rate` from `now` on, with the bytes that it has or lacks. Returns when it lacks none.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) -> Instant {
        let (old, new) = (i128::from(self.spec.rate.as_bps()), i128::from(rate.as_bps().max(1)));
        let now = i128::from(now.as_nanos());
        // A full bucket runs over at the old rate.
        let lacking = (self.empty.max(now - self.depth()) - now) * old;
        self.empty = now + lacking.div_euclid(new) + i128::from(lacking.rem_euclid(new) > 0);
        self.spec.rate = rate;
        instant(self.empty.max(now))
    }

    /// Sets its size; what it has beyond it is lost.
    pub(crate) fn set_burst(&mut self, burst: u64) {
        self.spec.burst = burst;
    }

    /// Sets the time at which the bucket is empty.
    pub(crate) fn set_empty(&mut self, at: Instant) {
        self.empty = at.as_nanos().into();
    }

    pub(crate) fn rate(&self) -> Rate {
        self.spec.rate
    }
}

fn instant(nanos: i128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

/// A shaper (tc-tbf(8)): a packet leaves at once, or when the bucket has as many bytes as the packet.
impl Capacity for Bucket {
    fn transmit(&mut self, now: Instant, size: u32, _idle: bool) -> Instant {
        self.empty = self.without(now, size);
        instant(self.empty).max(now)
    }

    fn set_rate(&mut self, now: Instant, rate: Rate, _departs: Instant) -> Instant {
        Self::set_rate(self, now, rate)
    }

    fn set_burst(&mut self, _now: Instant, burst: u64, _departs: Instant) -> Option<Box<dyn Capacity>> {
        Self::set_burst(self, burst);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    /// 8 Mbit/s: a byte per microsecond.
    fn bucket(burst: u64) -> Bucket {
        Bucket::new(BucketSpec { rate: Rate::from_bps(8_000_000), burst })
    }

    #[test]
    fn a_policer_passes_its_burst_and_then_its_rate() {
        let mut bucket = bucket(3000);
        let passed: Vec<bool> = (0..8).map(|n| bucket.take(us(500 * n), 1000)).collect();
        // 3000, 2500, 2000, 1500, 1000, 500, 1000, 500 bytes are there.
        assert_eq!(passed, [true, true, true, true, true, false, true, false]);
        assert!(!bucket.take(us(1_000_000), 3001) && bucket.take(us(1_000_000), 3000));
    }

    #[test]
    fn a_shaper_sends_its_burst_at_once() {
        let mut bucket = bucket(2500);
        let leaves: Vec<u64> = (0..4).map(|_| bucket.transmit(us(10), 1000, false).as_nanos() / 1000).collect();
        assert_eq!(leaves, [10, 10, 510, 1510]);
        // At half the rate, the 90 bytes that the last packet lacks take 180 µs.
        assert_eq!(bucket.set_rate(us(1420), Rate::from_bps(4_000_000)), us(1600));
        // Empty at 1600 µs, full at 6600 µs.
        assert_eq!(bucket.transmit(us(9_000), 2500, true), us(9_000));
        assert_eq!(bucket.transmit(us(9_000), 500, true), us(10_000));
    }

    #[test]
    fn a_full_bucket_stays_full_when_the_rate_changes() {
        let mut bucket = bucket(1000);
        assert_eq!(bucket.set_rate(us(50_000), Rate::from_bps(800_000)), us(50_000));
        assert_eq!(bucket.transmit(us(50_000), 1000, true), us(50_000));
        assert_eq!(bucket.transmit(us(50_000), 10, true), us(50_100));
    }

    proptest! {
        /// The closed form: in any interval, no more than the burst and the rate pass.
        #[test]
        fn no_interval_passes_more(
            bps in 1_000u64..2_000_000_000,
            burst in 1_500u64..200_000,
            packets in prop::collection::vec((0u64..20_000_000, 1u32..1_500), 1..120),
        ) {
            let spec = BucketSpec { rate: Rate::from_bps(bps), burst };
            let (mut police, mut shape) = (Bucket::new(spec), Bucket::new(spec));
            let (mut now, mut free) = (Instant::ZERO, Instant::ZERO);
            let (mut policed, mut shaped) = (vec![], vec![]);
            for (gap, size) in packets {
                now = Instant::from_nanos(now.as_nanos() + gap);
                if police.take(now, size) {
                    policed.push((now, size));
                }
                free = shape.transmit(now.max(free), size, false);
                shaped.push((free, size));
            }
            for passed in [policed, shaped] {
                for from in 0..passed.len() {
                    let mut bytes = 0;
                    for (at, size) in &passed[from..] {
                        bytes += u128::from(*size);
                        let nanos = u128::from(at.since(passed[from].0).as_nanos());
                        let most = u128::from(burst) * 8_000_000_000 + nanos * u128::from(bps);
                        prop_assert!(bytes * 8_000_000_000 <= most, "{bytes} bytes in {nanos} ns");
                    }
                }
            }
        }
    }
}
