//! Differences and orders, seed by seed.

use anabranch_metrics::{Better, Bootstrap, Paired, Ranking, SignedRank, student_interval};
use anabranch_run::Estimate;

/// From this number of pairs on, ranks can distinguish a difference from chance at the 5 % level.
const RANKS: usize = 6;

/// A relative difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RelativeChange {
    /// `(mean a / mean b − 1)`, in per cent, with its bootstrap interval.
    pub percent: Estimate,
    /// That there is no difference: Wilcoxon's signed ranks, of few pairs the paired t test; `None` if nothing varies.
    pub p: Option<f64>,
}

impl RelativeChange {
    /// Change of the seeds that both have; `None` without any, or if b is zero.
    pub fn of(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<Self> {
        let partner = |seed: u64| b.iter().find(|(s, _)| *s == seed).map(|(_, value)| *value);
        let pairs: Vec<(f64, f64)> = a.iter().filter_map(|(seed, a)| Some((*a, partner(*seed)?))).collect();
        let paired = Paired::of(&pairs)?;
        let base = pairs.iter().map(|(_, b)| b).sum::<f64>() / pairs.len() as f64;
        let by_ranks = pairs.len() >= RANKS;
        let interval = match by_ranks {
            true => Bootstrap::default().relative_change(&pairs),
            false => {
                let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
                // Differences that do not vary have none.
                student_interval(&differences)
                    .filter(|_| paired.p.is_some())
                    .map(|(low, high)| (low / base, high / base))
            }
        };
        let p = if by_ranks { SignedRank::of(&pairs).map(|test| test.p) } else { paired.p };
        (base != 0.0).then(|| {
            let percent = Estimate {
                n: paired.n,
                mean: paired.mean_diff / base * 100.0,
                ci95_low: interval.map(|(low, _)| low * 100.0),
                ci95_high: interval.map(|(_, high)| high * 100.0),
            };
            Self { percent, p }
        })
    }
}

/// Rows put in order by their means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    /// Indices of the rows, the best first.
    pub found: Vec<usize>,
    /// Share of resamples of the seeds in which the rows have the order given.
    pub holds: f64,
    /// Each two rows, the better one as published first, and the share of resamples in which it is.
    pub pairs: Vec<(usize, usize, f64)>,
    /// The first is the best and the last the worst, each in 95 of 100 resamples.
    pub ends_hold: bool,
}

impl Order {
    /// Order of `scores[row][seed]`, rows in the published order, the best first; `None` without rows or seeds.
    pub fn of(scores: &[Vec<f64>], better: Better) -> Option<Self> {
        let ranking = Ranking::of(scores, better, Bootstrap::default())?;
        let published: Vec<usize> = (0..scores.len()).collect();
        let ranks = ranking.rank_intervals();
        let (best, worst) = (1.0, scores.len() as f64);
        let ends_hold = ranks.first() == Some(&(best, best)) && ranks.last() == Some(&(worst, worst));
        let two = published.iter().flat_map(|&a| published[a + 1..].iter().map(move |&b| (a, b)));
        let pairs = two.map(|(a, b)| Some((a, b, ranking.claim(&[a, b])?.share))).collect::<Option<_>>()?;
        Some(Self { found: ranking.order(), holds: ranking.claim(&published)?.share, pairs, ends_hold })
    }
}
