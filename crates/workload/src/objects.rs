//! The objects of a web page, or of a series of requests.

use anabranch_units::Rng;
use std::sync::Arc;

/// Sizes in bytes, by number from 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// All of one size.
    Same {
        /// Bytes of each.
        size: u64,
        /// Their number; `None` = without end.
        count: Option<u64>,
    },
    /// Each with its own size.
    Each(Arc<[u64]>),
    /// Segments of a video, each in several sizes: object `segment × sizes + place`.
    Segments {
        /// Bytes at each place of the ladder; at least one.
        sizes: Arc<[u64]>,
        /// The number of segments; `None` = without end.
        count: Option<u64>,
    },
}

/// Standard deviation of the sizes' logarithm: that of the body of file sizes on web servers in Barford and Crovella,
/// Generating Representative Web Workloads (SIGMETRICS 1998), Table 1. Their Pareto tail is left out: it would make one
/// object most of a page.
const SIGMA: f64 = 1.318;

impl Objects {
    /// Bytes of object `number`; `None` if there is no such object.
    pub fn size(&self, number: u64) -> Option<u64> {
        match self {
            Self::Same { size, count } => count.is_none_or(|count| number < count).then_some(*size),
            Self::Each(sizes) => sizes.get(usize::try_from(number).ok()?).copied(),
            Self::Segments { sizes, count } => {
                let places = sizes.len().max(1) as u64;
                let exists = count.is_none_or(|count| number / places < count);
                sizes.get((number % places) as usize).copied().filter(|_| exists)
            }
        }
    }

    /// `count` objects (at least 1) of `total` bytes together, as equal as possible.
    pub fn equal(total: u64, count: u32) -> Self {
        let rest = u128::from(total.saturating_sub(count.into()));
        Self::between((1..=u128::from(count)).map(|n| (rest * n / u128::from(count)) as u64))
    }

    /// `count` objects (at least 1) with lognormal sizes, scaled to `total` bytes together.
    pub fn lognormal(total: u64, count: u32, rng: &mut Rng) -> Self {
        let rest = total.saturating_sub(count.into());
        let weights: Vec<f64> = (0..count.max(1)).map(|_| libm::exp(SIGMA * normal(rng))).collect();
        let all: f64 = weights.iter().sum();
        // Each object begins where the previous one ends, so that rounding errors never add up; the last ends at the
        // total.
        let sums = weights[1..].iter().scan(weights[0], |sum, weight| Some(core::mem::replace(sum, *sum + weight)));
        let bounds = sums.map(|sum| ((rest as f64 * (sum / all)) as u64).min(rest));
        Self::between(bounds.chain([rest]))
    }

    /// Objects of one byte plus the distance between two bounds, from zero on.
    fn between(bounds: impl Iterator<Item = u64>) -> Self {
        let mut before = 0;
        Self::Each(bounds.map(|bound| 1 + bound - core::mem::replace(&mut before, bound)).collect())
    }
}

/// A standard normal deviate (Box and Muller 1958).
fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - rng.unit(), rng.unit());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(core::f64::consts::TAU * angle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn sizes(objects: &Objects) -> Vec<u64> {
        (0..).map_while(|n| objects.size(n)).collect()
    }

    proptest! {
        #[test]
        fn sizes_add_up_to_the_page(count in 1u32..300, more in 0u64..1 << 50, seed in 0u64..1000) {
            let total = u64::from(count) + more;
            let equal = sizes(&Objects::equal(total, count));
            let drawn = sizes(&Objects::lognormal(total, count, &mut Rng::stream(seed, "web.sizes")));
            for all in [&equal, &drawn] {
                prop_assert_eq!(all.len(), count as usize);
                prop_assert_eq!(all.iter().sum::<u64>(), total);
                prop_assert!(all.iter().all(|size| *size > 0));
            }
            prop_assert!(equal.iter().max().unwrap() - equal.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn lognormal_sizes_have_the_stated_spread() {
        let all = sizes(&Objects::lognormal(1 << 40, 20_000, &mut Rng::stream(1, "web.sizes")));
        let logs: Vec<f64> = all.iter().map(|size| libm::log(*size as f64)).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (logs.len() - 1) as f64;
        assert!((libm::sqrt(variance) - SIGMA).abs() < 0.02, "{variance}");
        // Of a lognormal, the mean is exp(σ²/2) times the median.
        let ratio = (1u64 << 40) as f64 / 20_000.0 / libm::exp(mean);
        assert!((ratio / libm::exp(SIGMA * SIGMA / 2.0) - 1.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn seeds_make_the_sizes() {
        let of = |seed| sizes(&Objects::lognormal(100_000, 15, &mut Rng::stream(seed, "web.sizes")));
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }

    #[test]
    fn segments_have_a_size_per_place() {
        let of = |count| Objects::Segments { sizes: [10, 20, 30].into(), count };
        assert_eq!(sizes(&of(Some(2))), [10, 20, 30, 10, 20, 30]);
        assert_eq!(of(None).size(3_000_001), Some(20));
    }

    #[test]
    fn equal_objects_without_end_go_on() {
        let endless = Objects::Same { size: 9, count: None };
        assert_eq!(endless.size(u64::MAX - 1), Some(9));
        assert_eq!(sizes(&Objects::Same { size: 9, count: Some(2) }), [9, 9]);
    }
}
