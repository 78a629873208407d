//! The 95 % interval of a mean.

use crate::statistics::{deviation, mean};
use crate::student::t95;
use libm::cbrt;

/// An interval takes this many runs that do not all share one value with others: see [`mean_interval`].
pub const LEAST_RUNS: usize = 10;

/// Values nearer to each other than this part of the largest are one value.
const ROUNDING: f64 = 1e-12;

/// The 95 % interval of the mean of a metric over runs: Student's interval and that of Hall's transformation together, the lower end
/// of both and the upper one. The latter follows the skewness of times, counts and shares.
///
/// `None` if fewer than [`LEAST_RUNS`] runs have another value than the most frequent one, or, where all values differ, if there are
/// fewer runs. So few runs have hardly met the rare ones that decide the mean, a timeout among them: no interval made of
/// them covers it 95 times in 100. docs/lab/validation.md has the coverage.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    if distinct_runs(values) < LEAST_RUNS {
        return None;
    }
    let sample = Sample::of(values)?;
    let (student, hall) = (sample.student(), sample.hall(skewness(values, sample.mean)));
    Some((student.0.min(hall.0), student.1.max(hall.1)))
}

/// The 95 % interval by Student's t, for values that are means of many, and so nearly normal; `None` for fewer than two.
pub fn student_interval(values: &[f64]) -> Option<(f64, f64)> {
    Sample::of(values).map(|sample| sample.student())
}

/// The parts of an interval.
struct Sample {
    n: f64,
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    /// Two-sided 95 % quantile of Student's distribution.
    quantile: f64,
}

impl Sample {
    /// `None` for fewer than two values: one has no error.
    fn of(values: &[f64]) -> Option<Self> {
        let (mean, n) = (mean(values)?, values.len() as f64);
        let error = deviation(values, mean)? / n.sqrt();
        Some(Self { n, mean, error, quantile: t95(values.len() - 1) })
    }

    fn student(&self) -> (f64, f64) {
        let half = self.quantile * self.error;
        (self.mean - half, self.mean + half)
    }

    /// Hall's cubic transformation removes the skewness of the t statistic (Hall 1992, J. R. Statist. Soc. B 54, 221-228, eq 2.5).
    /// Quantiles are those of Student's distribution, which few values need. There are at least three values, not all equal.
    fn hall(&self, skewness: f64) -> (f64, f64) {
        let step = skewness / (3.0 * self.n.sqrt());
        let shift = skewness / (6.0 * self.n.sqrt());
        // The inverse of T + step·T² + step²/3·T³ + shift.
        let inverse = |of: f64| match step {
            _ if step.abs() < 1e-9 => of,
            _ => (cbrt(1.0 + 3.0 * step * (of - shift)) - 1.0) / step,
        };
        (self.mean - self.error * inverse(self.quantile), self.mean - self.error * inverse(-self.quantile))
    }
}

/// The adjusted Fisher-Pearson coefficient G1 of at least three values that are not all equal.
fn skewness(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let moment = |power: i32| values.iter().map(|v| (0..power).fold(1.0, |p, _| p * (v - mean))).sum::<f64>() / n;
    let variance = moment(2);
    moment(3) / (variance * variance.sqrt()) * (n * (n - 1.0)).sqrt() / (n - 2.0)
}

/// How many runs have another value than the most frequent one; all of them if no value occurs twice.
fn distinct_runs(values: &[f64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let groups = sorted.chunk_by(|a, b| b - a <= largest * ROUNDING);
    match groups.map(<[f64]>::len).max() {
        Some(most) if most > 1 => values.len() - most,
        _ => values.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rng;

    /// How often `interval` covers `truth` over 2000 samples of `n`, and how often there is one.
    fn coverage(
        n: usize,
        truth: f64,
        draw: impl Fn(&mut Rng) -> f64,
        interval: fn(&[f64]) -> Option<(f64, f64)>,
    ) -> [f64; 2] {
        let mut rng = Rng::stream(7, "coverage");
        let samples = (0..2000).map(|_| (0..n).map(|_| draw(&mut rng)).collect::<Vec<f64>>());
        let intervals: Vec<(f64, f64)> = samples.filter_map(|sample| interval(&sample)).collect();
        let covering = intervals.iter().filter(|(low, high)| (*low..=*high).contains(&truth)).count();
        [covering as f64 / intervals.len().max(1) as f64, intervals.len() as f64 / 2000.0]
    }

    fn exponential(rng: &mut Rng) -> f64 {
        -libm::log(1.0 - rng.unit())
    }

    #[test]
    fn without_skewness_it_is_students() {
        let values: Vec<f64> = (-6..=6).map(f64::from).collect();
        let (low, high) = mean_interval(&values).unwrap();
        // t(0.975, 12) = 2.178813; the variance of −6 … 6 is 182/12.
        let half = 2.178_813 * (182.0f64 / 12.0 / 13.0).sqrt();
        assert!((low + half).abs() < 1e-6 && (high - half).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn a_long_tail_moves_the_interval_towards_it() {
        // By hand: mean 2, deviation 3.162278, so an error of 1; G1 = √10 · … of nine ones and an eleven.
        let mut values = vec![1.0; 9];
        values.push(11.0);
        let sample = Sample::of(&values).unwrap();
        let (low, high) = sample.hall(skewness(&values, sample.mean));
        let student = student_interval(&values).unwrap();
        assert!((student.1 - 2.0 - 2.262_157).abs() < 1e-6, "{student:?}");
        let (skewness, root) = (10f64.sqrt(), 10f64.sqrt());
        assert!((super::skewness(&values, 2.0) - skewness).abs() < 1e-9);
        let (step, shift) = (skewness / (3.0 * root), skewness / (6.0 * root));
        let transformed = |t: f64| t + step * t * t + step * step / 3.0 * t * t * t + shift;
        for (end, quantile) in [(low, 2.262_157), (high, -2.262_157)] {
            assert!((transformed((2.0 - end) / 1.0) - quantile).abs() < 1e-5, "{end}");
        }
        assert!(low > student.0 && high > student.1);
    }

    #[test]
    fn few_runs_that_differ_have_none() {
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[4.0; 30]), None);
        let distinct = |n: u32| (0..n).map(|i| f64::from(i * i)).collect::<Vec<_>>();
        assert!(mean_interval(&distinct(9)).is_none() && mean_interval(&distinct(10)).is_some());
        // Nine of thirty differ, then ten.
        let lumped =
            |other: u32| distinct(30).iter().map(|v| v.max(f64::from((30 - other) * (30 - other)))).collect::<Vec<_>>();
        assert!(mean_interval(&lumped(10)).is_none() && mean_interval(&lumped(11)).is_some());
        // Rounding makes no other value.
        let rounded: Vec<f64> = (0..30).map(|i| if i % 2 == 0 { 0.3 } else { 0.1 + 0.2 }).collect();
        assert_eq!(mean_interval(&rounded), None);
    }

    #[test]
    fn it_covers_the_mean_of_normal_and_of_skewed_values() {
        let normal = |rng: &mut Rng| crate::normal_quantile(rng.unit().max(1e-12));
        // 2000 samples: a standard error of 0.5 %.
        let [of_normal, _] = coverage(10, 0.0, normal, mean_interval);
        assert!((0.945..0.985).contains(&of_normal), "{of_normal}");
        for n in [10, 20] {
            let [own, _] = coverage(n, 1.0, exponential, mean_interval);
            let [student, _] = coverage(n, 1.0, exponential, student_interval);
            assert!(own > 0.93 && student < 0.925, "{n}: {own} {student}");
        }
    }

    #[test]
    fn where_most_runs_are_alike_it_waits_for_the_others() {
        // Half of the transfers meet a loss; one in ten takes long.
        let transfer = |rng: &mut Rng| match rng.unit() {
            luck if luck < 0.5 => 1.0,
            luck if luck < 0.9 => 1.0 + luck,
            luck => 5.0 + 10.0 * luck,
        };
        let truth = 0.5 + 0.4 * (1.0 + 0.7) + 0.1 * (5.0 + 9.5);
        assert!(coverage(10, truth, transfer, mean_interval)[1] < 0.05);
        let [own, share] = coverage(20, truth, transfer, mean_interval);
        let [student, _] = coverage(20, truth, transfer, student_interval);
        assert!(own > 0.92 && (0.5..0.7).contains(&share) && student < 0.89, "{own} {share} {student}");
    }
}
