//! Bootstrap intervals: resampling the seeds.

use super::normal::{normal_probability, normal_quantile};
use crate::statistics::{mean, type7_rank};
use anabranch_units::Rng;

/// 95 % intervals by the bias-corrected and accelerated bootstrap (BCa). Seeds are drawn with replacement; a seed keeps its
/// values of both treatments together. For the mean of few values it is somewhat too narrow, as every bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many resamples, at least 1000 for quantiles that far out.
    pub resamples: u32,
    /// Seed of the stream `bootstrap`.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 4000, seed: 1 }
    }
}

impl Bootstrap {
    /// Interval of the mean of `values`; `None` for fewer than two.
    pub fn mean(&self, values: &[f64]) -> Option<(f64, f64)> {
        self.interval(values.len(), |seeds| mean_of(seeds, |i| values[i]))
    }

    /// Interval of the mean of a − b over pairs `(a, b)`; `None` for fewer than two.
    pub fn difference(&self, pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
        self.interval(pairs.len(), |seeds| mean_of(seeds, |i| pairs[i].0 - pairs[i].1))
    }

    /// Interval of the relative change of the means, mean a ÷ mean b − 1, over pairs `(a, b)`; `None` for fewer than two, or where the
    /// mean of b can be zero in a resample.
    pub fn relative_change(&self, pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
        self.interval(pairs.len(), |seeds| mean_of(seeds, |i| pairs[i].0) / mean_of(seeds, |i| pairs[i].1) - 1.0)
    }

    /// Interval of any `statistic` of the seeds 0 … `n` − 1, given as a list of their indices; `None` for fewer than two, or where the
    /// statistic is not finite for a resample.
    pub fn interval(&self, n: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<(f64, f64)> {
        self.outside(0.05, n, statistic)
    }

    /// The interval that misses with probability `alpha`.
    fn outside(&self, alpha: f64, n: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<(f64, f64)> {
        if n < 2 || self.resamples == 0 {
            return None;
        }
        let all: Vec<usize> = (0..n).collect();
        let observed = statistic(&all);
        let mut values: Vec<f64> = Vec::with_capacity(self.resamples as usize);
        self.resample(n, |seeds| values.push(statistic(seeds)));
        values.sort_by(f64::total_cmp);
        if !observed.is_finite() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let (bias, acceleration) = (bias(&values, observed), acceleration(&all, statistic)?);
        let quantile = |level| {
            let (rank, part) = type7_rank(values.len() as u64, adjusted(level, bias, acceleration));
            let low = values[rank as usize];
            low + part * (values.get(rank as usize + 1).copied().unwrap_or(low) - low)
        };
        Some((quantile(alpha / 2.0), quantile(1.0 - alpha / 2.0)))
    }

    /// Gives each resample of the seeds 0 … `n` − 1 to `each`.
    pub(super) fn resample(&self, n: usize, mut each: impl FnMut(&[usize])) {
        let mut rng = Rng::stream(self.seed, "bootstrap");
        let mut seeds = vec![0; n];
        for _ in 0..self.resamples {
            seeds.iter_mut().for_each(|seed| *seed = rng.below(n as u64) as usize);
            each(&seeds);
        }
    }
}

/// The mean of `value` over `seeds`, of which there are some.
pub(super) fn mean_of(seeds: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    seeds.iter().map(|i| value(*i)).sum::<f64>() / seeds.len() as f64
}

/// z0: how far the estimate lies from the median of the resamples (Efron and Tibshirani 1993, eq 14.14). Those equal to the
/// estimate count half.
fn bias(sorted: &[f64], observed: f64) -> f64 {
    let below = sorted.partition_point(|value| *value < observed) as f64;
    let equal = sorted.partition_point(|value| *value <= observed) as f64 - below;
    let n = sorted.len() as f64;
    // An estimate outside of all resamples would have an infinite bias.
    normal_quantile(((below + equal / 2.0) / n).clamp(0.5 / n, 1.0 - 0.5 / n))
}

/// a: the skewness of the estimate, by the jackknife (eq 14.15).
fn acceleration(all: &[usize], statistic: impl Fn(&[usize]) -> f64) -> Option<f64> {
    let without = |left_out: usize| {
        let rest: Vec<usize> = all.iter().copied().filter(|i| *i != left_out).collect();
        statistic(&rest)
    };
    let estimates: Vec<f64> = all.iter().map(|i| without(*i)).collect();
    let centre = mean(&estimates).filter(|centre| centre.is_finite())?;
    let power = |n: i32| estimates.iter().map(|e| (0..n).fold(1.0, |product, _| product * (centre - e))).sum::<f64>();
    let squares = power(2);
    Some(if squares > 0.0 { power(3) / (6.0 * squares * squares.sqrt()) } else { 0.0 })
}

/// The share of resamples below the end of the interval that a normal estimate would have at `level` (eq 14.10).
fn adjusted(level: f64, bias: f64, acceleration: f64) -> f64 {
    let z = bias + normal_quantile(level);
    normal_probability(bias + z / (1.0 - acceleration * z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::SLEEP;

    /// Efron and Tibshirani's mouse data: survival in days after surgery, treatment group (table 2.1).
    const MICE: [f64; 7] = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];

    #[test]
    fn the_variance_of_the_spatial_test_data() {
        // Efron and Tibshirani 1993, table 14.1 and §14.3: variance of 26 values; acceleration 0.061.
        let a = [
            48.0, 36.0, 20.0, 29.0, 42.0, 42.0, 20.0, 42.0, 22.0, 41.0, 45.0, 14.0, 6.0, 0.0, 33.0, 28.0, 34.0, 4.0,
            32.0, 24.0, 47.0, 41.0, 24.0, 26.0, 30.0, 41.0,
        ];
        let variance = |seeds: &[usize]| {
            let m = mean_of(seeds, |i| a[i]);
            mean_of(seeds, |i| (a[i] - m) * (a[i] - m))
        };
        let all: Vec<usize> = (0..a.len()).collect();
        assert!((variance(&all) - 171.5).abs() < 0.05);
        assert!((acceleration(&all, variance).unwrap() - 0.061).abs() < 5e-4);
        // Their BCa interval of 90 % is (115.8, 259.6), from 2000 resamples.
        let (low, high) = Bootstrap::default().outside(0.1, a.len(), variance).unwrap();
        assert!((low - 115.8).abs() < 4.0 && (high - 259.6).abs() < 6.0, "{low} {high}");
    }

    #[test]
    fn the_standard_error_of_the_mice() {
        // Table 2.1: mean 86.86, standard error 25.24 by the formula, 23.36 for the bootstrap with n in place of n − 1.
        let mut means = Vec::new();
        Bootstrap::default().resample(MICE.len(), |seeds| means.push(mean_of(seeds, |i| MICE[i])));
        let summary = crate::SampleStatistics::of(&means).unwrap();
        assert!((summary.mean - 86.86).abs() < 1.2, "{summary:?}");
        assert!((summary.sd.unwrap() - 23.36).abs() < 0.8, "{summary:?}");
    }

    #[test]
    fn pairs_stay_together() {
        let bootstrap = Bootstrap::default();
        // a is always 10 % above b, whatever b is.
        let pairs: Vec<(f64, f64)> = (1..=20).map(|i| (1.1 * f64::from(i), f64::from(i))).collect();
        let (low, high) = bootstrap.relative_change(&pairs).unwrap();
        assert!((low - 0.1).abs() < 1e-12 && (high - 0.1).abs() < 1e-12, "{low} {high}");
        let (low, high) = bootstrap.difference(&SLEEP).unwrap();
        // The t interval is 0.70 to 2.46; that of the bootstrap is somewhat narrower and skewed to the right.
        assert!((0.7..1.1).contains(&low) && (2.1..2.8).contains(&high), "{low} {high}");
    }

    #[test]
    fn what_has_no_interval() {
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.mean(&[1.0]), None);
        assert_eq!(bootstrap.mean(&[]), None);
        assert_eq!(bootstrap.mean(&[2.5; 5]), Some((2.5, 2.5)));
        assert_eq!(bootstrap.relative_change(&[(1.0, 0.0), (1.0, 0.0)]), None);
        assert_eq!(Bootstrap { resamples: 0, ..bootstrap }.mean(&[1.0, 2.0]), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let interval = |seed| Bootstrap { seed, ..Bootstrap::default() }.mean(&MICE);
        assert_eq!(interval(1), interval(1));
        assert_ne!(interval(1), interval(2));
    }

    /// How often the interval of the mean of `n` draws covers `truth`.
    fn coverage(n: usize, truth: f64, draw: impl Fn(&mut Rng) -> f64) -> f64 {
        let mut rng = Rng::stream(3, "coverage");
        let covers = (0..1000).filter(|trial| {
            let values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
            let interval = Bootstrap { resamples: 1000, seed: *trial }.mean(&values).unwrap();
            interval.0 <= truth && truth <= interval.1
        });
        covers.count() as f64 / 1000.0
    }

    #[test]
    fn intervals_cover_the_truth_about_as_often_as_they_say() {
        // 1000 trials: a standard error of 0.7 %. Few and skewed values are covered less often than 95 %.
        let normal = coverage(30, 0.0, |rng| normal_quantile(rng.unit().max(1e-12)));
        assert!((0.92..0.965).contains(&normal), "{normal}");
        let skewed = coverage(30, 1.0, |rng| -libm::log(1.0 - rng.unit()));
        assert!((0.90..0.96).contains(&skewed), "{skewed}");
    }
}
