//! Verdicts on differences.

use super::holm::holm;
use crate::Paired;

/// A difference counts below this p value.
pub const SIGNIFICANT: f64 = 0.05;

/// A verdict on the difference of two treatments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is none in any run.
    Equal,
    /// There is one: nothing is random, every seed shows the same one, or test and interval say so.
    Differs,
    /// Test or interval shows none.
    Open,
    /// One random run each shows nothing, and runs that overlap cannot be tested.
    Untested,
}

/// A mean difference over pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the difference.
    pub mean: f64,
    /// Pairs.
    pub n: usize,
    /// Two-sided p value; `None` if the differences do not vary.
    pub p: Option<f64>,
    /// 95 % interval of the mean, if there is one.
    pub ci95: Option<(f64, f64)>,
    /// Nothing in the runs is random.
    pub deterministic: bool,
    /// The runs share parts of a recording: they are not independent.
    pub overlaps: bool,
}

impl Difference {
    /// Difference of pairs.
    pub fn of(paired: &Paired, deterministic: bool) -> Self {
        Self { mean: paired.mean_diff, n: paired.n, p: paired.p, ci95: paired.ci95, deterministic, overlaps: false }
    }
}

/// The verdict on each of several differences, which are tested together (Holm), below [`SIGNIFICANT`]. An interval, where there is one,
/// must not contain zero either: of skewed differences it is the wider of the two. What does not vary is compared exactly, and not
/// tested.
pub fn verdicts(differences: &[Difference]) -> Vec<Verdict> {
    let tested = |one: &Difference| one.p.filter(|_| !one.overlaps);
    let mut adjusted = holm(&differences.iter().filter_map(tested).collect::<Vec<_>>()).into_iter();
    let verdict = |one: &Difference| match tested(one).and_then(|_| adjusted.next()) {
        Some(p) if p < SIGNIFICANT && one.ci95.is_none_or(|(low, high)| low > 0.0 || high < 0.0) => Verdict::Differs,
        Some(_) => Verdict::Open,
        None if one.mean == 0.0 && one.p.is_none() => Verdict::Equal,
        None if one.deterministic || one.n > 1 && !one.overlaps => Verdict::Differs,
        None => Verdict::Untested,
    };
    differences.iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(mean: f64, n: usize, p: Option<f64>) -> Difference {
        Difference { mean, n, p, ci95: None, deterministic: false, overlaps: false }
    }

    #[test]
    fn what_varies_is_tested_together() {
        // Holm: 0.02 · 3, then 0.03 · 2.
        let three = [0.03, 0.04, 0.02].map(|p| difference(1.0, 5, Some(p)));
        assert_eq!(verdicts(&three), [Verdict::Open; 3]);
        assert_eq!(verdicts(&three[..1]), [Verdict::Differs]);
        let with_fixed = [three[0], difference(1.0, 5, None)];
        assert_eq!(verdicts(&with_fixed), [Verdict::Differs; 2], "what does not vary takes nothing from the others");
    }

    #[test]
    fn an_interval_with_zero_in_it_shows_nothing() {
        let of = |ci95| verdicts(&[Difference { ci95: Some(ci95), ..difference(1.0, 12, Some(0.01)) }]);
        assert_eq!((of((-0.1, 2.0)), of((0.1, 2.0))), (vec![Verdict::Open], vec![Verdict::Differs]));
        assert_eq!(of((-2.0, -0.1)), [Verdict::Differs]);
    }

    #[test]
    fn what_does_not_vary_is_compared_exactly() {
        let fixed = |mean| Difference { deterministic: true, ..difference(mean, 1, None) };
        let all = [fixed(-1e-9), fixed(0.0), difference(2.0, 3, None), difference(0.0, 3, None)];
        assert_eq!(verdicts(&all), [Verdict::Differs, Verdict::Equal, Verdict::Differs, Verdict::Equal]);
        assert_eq!(verdicts(&[difference(2.0, 1, None)]), [Verdict::Untested]);
        let overlap = |mean, p| Difference { overlaps: true, ..difference(mean, 12, p) };
        let all = [overlap(2.0, Some(0.001)), overlap(2.0, None), overlap(0.0, None), difference(1.0, 12, Some(0.04))];
        assert_eq!(verdicts(&all), [Verdict::Untested, Verdict::Untested, Verdict::Equal, Verdict::Differs]);
        // Equal is what one seed can show of no difference.
        assert_eq!(verdicts(&[difference(0.0, 1, None)]), [Verdict::Equal]);
    }
}
