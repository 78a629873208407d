//! Wilcoxon's signed-rank test.

use super::normal::normal_probability;

/// Up to this number of differences, the distribution is exact, with ties as they are.
const EXACT: usize = 25;

/// Differences of this part of the largest value are rounding: they are zero, or tie.
const ROUNDING: f64 = 1e-12;

/// Wilcoxon's signed-rank test of pairs: no assumption on the distribution but symmetry under "no difference".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Pairs that differ; those that don't are dropped.
    pub n: usize,
    /// Sum of the ranks of the positive differences (R calls it V).
    pub positive: f64,
    /// Two-sided p value.
    pub p: f64,
    /// True if `p` is exact; false for the normal approximation with corrections for ties and continuity.
    pub exact: bool,
}

impl SignedRank {
    /// Signed-rank test of pairs `(a, b)`; `None` if no pair differs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let largest = pairs.iter().flat_map(|(a, b)| [a.abs(), b.abs()]).fold(0.0, f64::max);
        let tolerance = largest * ROUNDING;
        let mut differences: Vec<f64> =
            pairs.iter().map(|(a, b)| a - b).filter(|difference| difference.abs() > tolerance).collect();
        differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let n = differences.len();
        // Twice the ranks are whole: ties share the mean of their ranks.
        let (mut ranks, mut positive, mut tie_term) = (Vec::with_capacity(n), 0, 0.0);
        for group in differences.chunk_by(|a, b| b.abs() - a.abs() <= tolerance) {
            let shared = 2 * ranks.len() + group.len() + 1;
            positive += shared * group.iter().filter(|difference| **difference > 0.0).count();
            let size = group.len() as f64;
            tie_term += size * size * size - size;
            ranks.extend(group.iter().map(|_| shared));
        }
        let (exact, sum) = (n <= EXACT, positive as f64 / 2.0);
        let p = if exact { exact_probability(&ranks, positive) } else { approximate(n, sum, tie_term) };
        (n > 0).then_some(Self { n, positive: sum, p, exact })
    }
}

/// Two-sided: every choice of signs is equally likely. `ranks` and the sum of the `positive` ones are twice what they are.
fn exact_probability(ranks: &[usize], positive: usize) -> f64 {
    // How many choices of ranks have each sum.
    let mut sets = vec![0u64; ranks.iter().sum::<usize>() + 1];
    sets[0] = 1;
    for rank in ranks {
        for sum in (*rank..sets.len()).rev() {
            sets[sum] += sets[sum - rank];
        }
    }
    // The distribution is symmetric: the nearer end counts twice.
    let tail = positive.min(sets.len() - 1 - positive);
    let extreme: u64 = sets[..=tail].iter().sum();
    (2.0 * extreme as f64 / (1u64 << ranks.len()) as f64).min(1.0)
}

/// Hollander and Wolfe, Nonparametric Statistical Methods, §3.1: large samples, ties. The continuity correction moves the sum
/// by half a rank towards its mean.
fn approximate(n: usize, positive: f64, tie_term: f64) -> f64 {
    let n = n as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_term / 48.0;
    let distance = ((positive - n * (n + 1.0) / 4.0).abs() - 0.5).max(0.0);
    (2.0 * normal_probability(-distance / variance.sqrt())).min(1.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::statistics::tests::SLEEP;

    /// Differences in height of Darwin's 15 pairs of maize, crossed − self-fertilised, in eighths of an inch (Fisher, The
    /// Design of Experiments, 1935, table 3).
    pub const MAIZE: [f64; 15] =
        [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];

    pub fn as_pairs(differences: &[f64]) -> Vec<(f64, f64)> {
        differences.iter().map(|difference| (*difference, 0.0)).collect()
    }

    #[test]
    fn the_example_of_r() {
        // Hollander and Wolfe 1973, p. 29; R's wilcox.test documentation: V = 40, one-sided p = 0.01953. In thousandths.
        let x = [1830.0, 500.0, 1620.0, 2480.0, 1680.0, 1880.0, 1550.0, 3060.0, 1300.0];
        let y = [878.0, 647.0, 598.0, 2050.0, 1060.0, 1290.0, 1060.0, 3140.0, 1290.0];
        let pairs: Vec<_> = x.into_iter().zip(y).collect();
        let test = SignedRank::of(&pairs).unwrap();
        assert_eq!((test.n, test.positive, test.p, test.exact), (9, 40.0, 20.0 / 512.0, true));
    }

    #[test]
    fn darwins_maize() {
        // SciPy's documentation of scipy.stats.wilcoxon: statistic 24 (the smaller sum), p = 0.041259765625.
        let test = SignedRank::of(&as_pairs(&MAIZE)).unwrap();
        assert_eq!((test.n, test.positive, test.p, test.exact), (15, 96.0, 0.041_259_765_625, true));
    }

    #[test]
    fn sleep_data_have_a_zero_and_a_tie() {
        // R: wilcox.test(extra ~ group, paired = TRUE) gives V = 0 (45 the other way round), and p = 0.009091 by the normal
        // approximation. All nine signs are equal: two of 2⁹ choices are as extreme.
        let test = SignedRank::of(&SLEEP).unwrap();
        assert_eq!((test.n, test.positive, test.p, test.exact), (9, 45.0, 2.0 / 512.0, true));
        assert!((approximate(9, 45.0, 6.0) - 0.009_091).abs() < 5e-7);
    }

    #[test]
    fn no_p_value_is_below_the_least_possible() {
        // Five equal differences: 2 of 2⁵ choices of signs.
        assert_eq!(SignedRank::of(&as_pairs(&[3.0; 5])).unwrap().p, 0.0625);
        // By hand: ranks 1, 2.5, 2.5, 4; sums of at most 1 or at least 9 are those of {} {1} and their complements.
        let test = SignedRank::of(&as_pairs(&[-1.0, 2.0, 2.0, 3.0])).unwrap();
        assert_eq!((test.positive, test.p), (9.0, 4.0 / 16.0));
    }

    #[test]
    fn critical_values_of_wilcoxons_table() {
        // The largest smaller sum with two-sided p ≤ 0.05 (Wilcoxon and Wilcox 1964; every textbook's table).
        for (n, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89)] {
            let ranks: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
            assert!(exact_probability(&ranks, 2 * critical) <= 0.05, "{n}");
            assert!(exact_probability(&ranks, 2 * critical + 2) > 0.05, "{n}");
        }
    }

    #[test]
    fn sign_and_size_of_the_unit_do_not_matter() {
        let pairs = as_pairs(&MAIZE);
        let turned: Vec<_> = pairs.iter().map(|(a, b)| (b * 3e7, a * 3e7)).collect();
        let (one, other) = (SignedRank::of(&pairs).unwrap(), SignedRank::of(&turned).unwrap());
        assert_eq!((one.p, one.positive + other.positive), (other.p, 120.0));
    }

    #[test]
    fn pairs_that_do_not_differ_say_nothing() {
        assert_eq!(SignedRank::of(&[]), None);
        assert_eq!(SignedRank::of(&[(3.0, 3.0), (0.1 + 0.2, 0.3)]), None);
        let one = SignedRank::of(&[(2.0, 1.0)]).unwrap();
        assert_eq!((one.n, one.p), (1, 1.0));
    }

    #[test]
    fn many_pairs_go_by_the_normal_distribution() {
        // 26 different positive differences: V = 351, z = (351 − 175.5 − 0.5)/√1550.25.
        let differences: Vec<f64> = (1..=26).map(f64::from).collect();
        let test = SignedRank::of(&as_pairs(&differences)).unwrap();
        assert!(!test.exact);
        let z = (351.0 - 175.5 - 0.5) / 1550.25f64.sqrt();
        assert!((test.p / (2.0 * normal_probability(-z)) - 1.0).abs() < 1e-12);
        // Where the exact distribution is known, the approximation is near it.
        let ranks: Vec<usize> = (1..=25).map(|rank| 2 * rank).collect();
        assert!((approximate(25, 100.0, 0.0) - exact_probability(&ranks, 200)).abs() < 0.003);
    }
}
