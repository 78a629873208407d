//! Numbers about repeated runs. All values are taken to be finite.

use crate::inference::SIGNIFICANT;
use crate::{mean_interval, t_probability};

/// Statistics of a metric over repeated runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleStatistics {
    /// Runs.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n − 1; `None` for one run.
    pub sd: Option<f64>,
    /// 95 % confidence interval of the mean, if the runs can have one: see [`mean_interval`].
    pub ci95: Option<(f64, f64)>,
    /// Median.
    pub median: f64,
    /// 95th percentile, type 7.
    pub p95: f64,
}

impl SampleStatistics {
    /// Statistics of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let sd = deviation(values, mean);
        Some(Self {
            n: values.len(),
            mean,
            sd,
            ci95: mean_interval(values),
            median: quantile(values, 0.5)?,
            p95: quantile(values, 0.95)?,
        })
    }
}

/// The difference of two treatments under the same seeds, by the paired t test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Pairs.
    pub n: usize,
    /// Mean of a − b.
    pub mean_diff: f64,
    /// 95 % confidence interval of the mean difference, if the pairs can have one: see [`mean_interval`].
    pub ci95: Option<(f64, f64)>,
    /// Two-sided p value for "no difference"; `None` for one pair, or if all differences are equal.
    pub p: Option<f64>,
}

impl Paired {
    /// Statistics of pairs `(a, b)`, one per seed; `None` if there are none.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let n = pairs.len();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let mean_diff = mean(&differences)?;
        // Without spread the test has nothing to go by.
        let sd = deviation(&differences, mean_diff).filter(|sd| *sd > 0.0);
        let p = |sd: f64| t_probability(mean_diff.abs() / (sd / (n as f64).sqrt()), (n - 1) as f64);
        Some(Self { n, mean_diff, ci95: mean_interval(&differences), p: sd.map(p) })
    }

    /// Whether the difference has no spread, or a p below [`SIGNIFICANT`].
    pub fn is_significant(&self) -> bool {
        self.p.is_none_or(|p| p < SIGNIFICANT)
    }
}

/// The longer side of the interval `(low, high)` of `mean`, which stands behind ±.
pub fn half_width(mean: f64, (low, high): (f64, f64)) -> f64 {
    (high - mean).max(mean - low)
}

/// Arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    // Around the first value, so that equal values have exactly that mean.
    Some(first + values.iter().map(|v| v - first).sum::<f64>() / values.len() as f64)
}

/// The `p` quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan); `None` of nothing.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (rank, part) = type7_rank(sorted.len() as u64, p);
    let low = sorted[rank as usize];
    let high = sorted.get(rank as usize + 1).copied().unwrap_or(low);
    Some(low + part * (high - low))
}

/// Where the `p` quantile of `n` > 0 sorted values lies: after value `rank`, by this part of the way to the next.
pub(crate) fn type7_rank(n: u64, p: f64) -> (u64, f64) {
    let position = (n - 1) as f64 * p.clamp(0.0, 1.0);
    let rank = position as u64;
    (rank, position - rank as f64)
}

/// Standard deviation with n − 1; `None` for fewer than two.
pub(crate) fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::student_interval;

    /// Student's own example (1908): extra hours of sleep of ten patients under two drugs.
    pub(crate) const SLEEP: [(f64, f64); 10] = [
        (1.9, 0.7),
        (0.8, -1.6),
        (1.1, -0.2),
        (0.1, -1.2),
        (-0.1, -0.1),
        (4.4, 3.4),
        (5.5, 3.7),
        (1.6, 0.8),
        (4.6, 0.0),
        (3.4, 2.0),
    ];

    #[track_caller]
    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn a_summary_by_hand() {
        let s = SampleStatistics::of(&[2.0, 4.0, 4.0, 5.0, 10.0]).unwrap();
        assert_eq!((s.n, s.mean, s.sd, s.median, s.ci95), (5, 5.0, Some(3.0), 4.0, None));
        near(s.p95, 9.0);
    }

    #[test]
    fn one_run_has_no_spread() {
        let s = SampleStatistics::of(&[7.0]).unwrap();
        assert_eq!((s.n, s.mean, s.sd, s.ci95, s.median, s.p95), (1, 7.0, None, None, 7.0, 7.0));
        assert_eq!(SampleStatistics::of(&[]), None);
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        let s = SampleStatistics::of(&[0.1; 7]).unwrap();
        assert_eq!((s.mean, s.sd, s.ci95), (0.1, Some(0.0), None));
    }

    #[test]
    fn quantiles_are_type_7() {
        let values = [15.0, 20.0, 35.0, 40.0, 50.0];
        near(quantile(&values, 0.4).unwrap(), 29.0);
        near(quantile(&values, 0.95).unwrap(), 48.0);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (Some(15.0), Some(50.0)));
        assert_eq!(quantile(&[4.0, 1.0], 0.5), Some(2.5));
    }

    #[test]
    fn paired_differences_of_the_sleep_data() {
        // t = 4.0621, p = 0.002833.
        let paired = Paired::of(&SLEEP).unwrap();
        near(paired.mean_diff, 1.58);
        let differences: Vec<f64> = SLEEP.iter().map(|(a, b)| a - b).collect();
        let (low, high) = student_interval(&differences).unwrap();
        assert!((low - 0.700_114).abs() < 1e-6 && (high - 2.459_886).abs() < 1e-6, "{low} {high}");
        // 1.3 occurs twice.
        assert_eq!(paired.ci95, None);
        assert!((paired.p.unwrap() - 0.002_832_89).abs() < 1e-7, "{:?}", paired.p);
    }

    #[test]
    fn paired_without_spread() {
        assert_eq!(Paired::of(&[(3.0, 1.0)]), Some(Paired { n: 1, mean_diff: 2.0, ci95: None, p: None }));
        let same = Paired::of(&[(3.0, 1.0), (4.0, 2.0)]).unwrap();
        assert_eq!((same.mean_diff, same.ci95, same.p), (2.0, None, None));
        assert_eq!(Paired::of(&[]), None);
    }
}
