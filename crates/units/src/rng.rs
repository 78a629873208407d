//! Named random streams.

use rand_core::{Rng as _, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A random stream that belongs to one component of a run.
///
/// A stream is keyed by the run's seed and the component's name alone, so two components never share draws, and adding
/// one never changes another's. The sequence is the same on every machine and version.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// The stream of the component `name` (`"path.wifi.down.loss"`) in the run with `seed`.
    pub fn stream(seed: u64, name: &str) -> Self {
        let key = xxhash_rust::xxh3::xxh3_128_with_seed(name.as_bytes(), seed);
        Self(Pcg64Mcg::from_seed(key.to_le_bytes()))
    }

    /// A separate stream for `name`, derived from this one's next value without advancing it.
    pub fn fork(&self, name: &str) -> Self {
        Self::stream(self.clone().bits(), name)
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; zero if `bound` is zero. The bias is below `bound`·2⁻⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        // 1 − u is in (0, 1], so the logarithm is finite.
        -libm::log(1.0 - self.unit())
    }

    /// True with probability `p`. Draws once, whatever `p` is.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let take = |seed, name| {
            let mut rng = Rng::stream(seed, name);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(take(1, "path.wlan.down.loss"), take(1, "path.wlan.down.loss"));
        assert_ne!(take(1, "path.wlan.down.loss"), take(2, "path.wlan.down.loss"));
        assert_ne!(take(1, "path.wlan.down.loss"), take(1, "path.wlan.up.loss"));
    }

    #[test]
    fn a_fork_leaves_its_origin_as_it_is() {
        let mut rng = Rng::stream(3, "host");
        let (mut a, mut b) = (rng.fork("a"), rng.fork("b"));
        assert_eq!(rng.bits(), Rng::stream(3, "host").bits());
        assert!(a.bits() != b.bits() && rng.fork("a").bits() != a.bits());
        assert_eq!(Rng::stream(3, "host").fork("b").bits(), Rng::stream(3, "host").fork("b").bits());
    }

    #[test]
    fn draws_are_uniform() {
        let mut rng = Rng::stream(7, "test");
        let n = 100_000;
        let mean = (0..n).map(|_| rng.unit()).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let hits = (0..n).filter(|_| rng.chance(0.01)).count();
        assert!((850..1150).contains(&hits), "{hits}");
        let draws: Vec<f64> = (0..n).map(|_| rng.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let long = draws.iter().filter(|x| **x > 1.0).count() as f64 / n as f64;
        assert!((mean - 1.0).abs() < 0.01 && (long - 0.3679).abs() < 0.005, "{mean} {long}");
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert_eq!(rng.below(0), 0);
    }
}
