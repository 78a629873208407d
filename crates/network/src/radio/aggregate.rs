//! Aggregation: packets leave together, when the medium is theirs.

use anabranch_units::{Duration, Instant, Rng};

/// Releases at multiples of a time from a beginning that the seed draws. The wait of a packet that comes at any time is uniform
/// between zero and that time.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    every: Duration,
    /// The place of time zero between two releases, as a share.
    phase: f64,
}

impl Aggregate {
    pub fn new(every: Duration, mut luck: Rng) -> Self {
        Self { every, phase: luck.unit() }
    }

    pub fn set(&mut self, every: Duration) {
        self.every = every;
    }

    pub fn is_none(&self) -> bool {
        self.every.is_zero()
    }

    /// The first release at or after `at`.
    pub fn release(&self, at: Instant) -> Instant {
        let every = self.every.as_nanos();
        if every == 0 || at == Instant::MAX {
            return at;
        }
        let passed = (self.phase * every as f64) as u64;
        let waited = (at.as_nanos() % every + passed) % every;
        if waited == 0 { at } else { at + Duration::from_nanos(every - waited) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_released_together_at_a_fixed_distance() {
        for seed in 0..50 {
            let aggregate = Aggregate::new(Duration::from_millis(4), Rng::stream(seed, "a"));
            let mut releases: Vec<u64> =
                (0..20_000).map(|us| aggregate.release(Instant::from_nanos(us * 1000)).as_nanos()).collect();
            for (us, release) in releases.iter().enumerate() {
                let wait = release - us as u64 * 1000;
                assert!(wait < 4_000_000, "{wait}");
            }
            releases.dedup();
            assert!(releases.len() <= 6 && releases.windows(2).all(|two| two[1] - two[0] == 4_000_000));
        }
    }

    /// The closed form: a wait uniform in [0, T), with the mean T/2 and the variance T²/12.
    #[test]
    fn the_wait_is_uniform() {
        let aggregate = Aggregate::new(Duration::from_millis(4), Rng::stream(1, "a"));
        let mut luck = Rng::stream(2, "times");
        const N: usize = 100_000;
        let mut waits: Vec<f64> = (0..N)
            .map(|_| {
                let at = Instant::from_nanos(luck.below(60_000_000_000));
                aggregate.release(at).since(at).as_secs_f64() / 4e-3
            })
            .collect();
        waits.sort_unstable_by(f64::total_cmp);
        let distance = waits.iter().enumerate().map(|(n, wait)| (wait - n as f64 / N as f64).abs()).fold(0.0, f64::max);
        // Kolmogorov and Smirnov, at one in ten thousand.
        assert!(distance < 2.23 / (N as f64).sqrt(), "{distance}");
    }
}
