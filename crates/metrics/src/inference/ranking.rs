//! Claims about the order of several treatments under the same seeds.

use super::bootstrap::{Bootstrap, mean_of};
use crate::statistics::quantile;

/// Which end of a metric is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As goodput.
    Higher,
    /// As delay.
    Lower,
}

/// The means of several rows, as observed and in bootstrap resamples of the seeds.
#[derive(Clone, Debug)]
pub struct Ranking {
    observed: Vec<f64>,
    /// One entry per resample: the mean of each row. Greater is better, here and above.
    resampled: Vec<Vec<f64>>,
}

/// How well a stated order stands. Rows whose means are equal are in no order.
#[derive(Clone, Debug, PartialEq)]
pub struct RankClaim {
    /// The observed means are in this order.
    pub observed: bool,
    /// Share of resamples in which the whole order holds.
    pub share: f64,
    /// Share in which each row is better than the next.
    pub adjacent: Vec<f64>,
}

impl Ranking {
    /// Ranking of `scores`: one entry per row, each with one value per seed, in the same order of seeds. `None` without rows or seeds, or if
    /// rows differ in length.
    pub fn of(scores: &[Vec<f64>], better: Better, bootstrap: Bootstrap) -> Option<Self> {
        let n = scores.first()?.len();
        if n == 0 || scores.iter().any(|row| row.len() != n) {
            return None;
        }
        let sign = if better == Better::Higher { 1.0 } else { -1.0 };
        let means = |seeds: &[usize]| scores.iter().map(|row| sign * mean_of(seeds, |i| row[i])).collect();
        let mut resampled = Vec::with_capacity(bootstrap.resamples as usize);
        bootstrap.resample(n, |seeds| resampled.push(means(seeds)));
        Some(Self { observed: means(&(0..n).collect::<Vec<_>>()), resampled })
    }

    /// The rows by their observed means, the best first; equal ones in the order given.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.observed.len()).collect();
        order.sort_by(|a, b| self.observed[*b].total_cmp(&self.observed[*a]));
        order
    }

    /// How well the claim stands that the rows of `order` (indices, the best first; not necessarily all) do better in this order.
    /// `None` if there is no such row.
    pub fn claim(&self, order: &[usize]) -> Option<RankClaim> {
        if order.iter().any(|row| *row >= self.observed.len()) {
            return None;
        }
        let holds = |means: &[f64], pair: &[usize]| means[pair[0]] > means[pair[1]];
        let all = |means: &[f64]| order.windows(2).all(|pair| holds(means, pair));
        Some(RankClaim {
            observed: all(&self.observed),
            share: self.share(all),
            adjacent: order.windows(2).map(|pair| self.share(|means| holds(means, pair))).collect(),
        })
    }

    /// The 95 % interval of each row's rank over the resamples; 1 is best, and rows of equal means share the mean of their ranks.
    pub fn rank_intervals(&self) -> Vec<(f64, f64)> {
        let interval = |row: usize| {
            let ranks: Vec<f64> = self.resampled.iter().map(|means| rank(means, row)).collect();
            let own = rank(&self.observed, row);
            (quantile(&ranks, 0.025).unwrap_or(own), quantile(&ranks, 0.975).unwrap_or(own))
        };
        (0..self.observed.len()).map(interval).collect()
    }

    fn share(&self, holds: impl Fn(&[f64]) -> bool) -> f64 {
        let holding = self.resampled.iter().filter(|means| holds(means)).count();
        holding as f64 / self.resampled.len().max(1) as f64
    }
}

fn rank(means: &[f64], row: usize) -> f64 {
    let before = means.iter().filter(|mean| **mean > means[row]).count() as f64;
    let ties = means.iter().filter(|mean| **mean == means[row]).count() as f64;
    before + (ties + 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(scores: &[Vec<f64>], better: Better) -> Ranking {
        Ranking::of(scores, better, Bootstrap::default()).unwrap()
    }

    /// A random part that all rows share, and a row's own advantage.
    fn shifted(advantages: &[f64]) -> Vec<Vec<f64>> {
        let luck = [3.0, 9.0, 4.0, 1.0, 7.0, 5.0, 2.0, 8.0, 6.0, 0.0];
        advantages.iter().map(|advantage| luck.iter().map(|luck| luck + advantage).collect()).collect()
    }

    #[test]
    fn what_holds_for_every_seed_holds_in_every_resample() {
        let higher = ranking(&shifted(&[0.1, 0.3, 0.2]), Better::Higher);
        assert_eq!(higher.order(), [1, 2, 0]);
        let claim = higher.claim(&[1, 2, 0]).unwrap();
        assert_eq!((claim.observed, claim.share, &claim.adjacent[..]), (true, 1.0, &[1.0, 1.0][..]));
        assert_eq!(higher.rank_intervals(), [(3.0, 3.0), (1.0, 1.0), (2.0, 2.0)]);
        let lower = ranking(&shifted(&[0.1, 0.3, 0.2]), Better::Lower);
        assert_eq!(lower.order(), [0, 2, 1]);
        let wrong = lower.claim(&[1, 0]).unwrap();
        assert_eq!((wrong.observed, wrong.share), (false, 0.0));
    }

    #[test]
    fn shares_by_hand() {
        // Two seeds; a − b is +3 and −1: a is better unless the second seed is drawn twice.
        let ranking = ranking(&[vec![3.0, 0.0], vec![0.0, 1.0]], Better::Higher);
        let claim = ranking.claim(&[0, 1]).unwrap();
        assert!(claim.observed && (claim.share - 0.75).abs() < 0.025, "{claim:?}");
        assert_eq!(claim.adjacent, [claim.share]);
        assert_eq!(ranking.rank_intervals(), [(1.0, 2.0), (1.0, 2.0)]);
    }

    #[test]
    fn equal_rows_are_in_no_order() {
        let ranking = ranking(&shifted(&[0.5, 0.5]), Better::Higher);
        assert_eq!(ranking.order(), [0, 1]);
        let claim = ranking.claim(&[0, 1]).unwrap();
        assert_eq!((claim.observed, claim.share), (false, 0.0));
        assert_eq!(ranking.rank_intervals(), [(1.5, 1.5), (1.5, 1.5)]);
    }

    #[test]
    fn nothing_to_rank() {
        let of = |scores: &[Vec<f64>]| Ranking::of(scores, Better::Higher, Bootstrap::default());
        assert!(of(&[]).is_none() && of(&[vec![]]).is_none());
        assert!(of(&[vec![1.0], vec![1.0, 2.0]]).is_none());
        let one = of(&[vec![1.0, 2.0]]).unwrap();
        assert_eq!(one.claim(&[0]), Some(RankClaim { observed: true, share: 1.0, adjacent: vec![] }));
        assert_eq!(one.claim(&[1]), None);
    }
}
