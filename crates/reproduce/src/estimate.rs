//! Differences and orders, seed by seed.

use crate::shim::Estimate;
use anabranch_metrics::Paired;
use anabranch_units::Rng;

/// A relative difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    /// `(mean a / mean b − 1)`, in per cent.
    pub percent: Estimate,
    /// That there is no difference; `None` if nothing varies, or there is one pair alone.
    pub p: Option<f64>,
}

impl Change {
    /// Of the seeds that both have; `None` without any, or if b is zero.
    pub fn of(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<Self> {
        let partner = |seed: u64| b.iter().find(|(s, _)| *s == seed).map(|(_, value)| *value);
        let pairs: Vec<(f64, f64)> = a.iter().filter_map(|(seed, a)| Some((*a, partner(*seed)?))).collect();
        let paired = Paired::of(&pairs)?;
        let base = pairs.iter().map(|(_, b)| b).sum::<f64>() / pairs.len() as f64;
        (base != 0.0).then(|| {
            let percent = |difference: f64| difference / base * 100.0;
            let percent = Estimate {
                n: paired.n,
                mean: percent(paired.mean_diff),
                ci95_low: paired.ci95.map(|(low, _)| percent(low)),
                ci95_high: paired.ci95.map(|(_, high)| percent(high)),
            };
            Self { percent, p: paired.p }
        })
    }
}

/// Rows put in order by their means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    /// Indices of the rows, the best first.
    pub found: Vec<usize>,
    /// Share of resamples of the seeds in which the rows stand in the order given.
    pub holds: f64,
    /// Share in which the first is the best, and the last the worst.
    pub ends_hold: f64,
}

/// Resamples; the error of a share is at most 0.011 (one standard deviation).
const RESAMPLES: u32 = 2000;

impl Order {
    /// Of `scores[seed][row]`, rows in the published order, the best first; `None` without seeds.
    pub fn of(scores: &[Vec<f64>], more: bool) -> Option<Self> {
        let rows = scores.first()?.len();
        let sign = if more { -1.0 } else { 1.0 };
        let sum = |sample: &mut dyn Iterator<Item = &Vec<f64>>| {
            let mut sums = vec![0.0; rows];
            sample.for_each(|scores| sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += sign * score));
            sums
        };
        let all = sum(&mut scores.iter());
        let mut found: Vec<usize> = (0..rows).collect();
        found.sort_by(|&a, &b| all[a].total_cmp(&all[b]));
        let mut rng = Rng::stream(0, "order");
        let (mut holds, mut ends_hold) = (0, 0);
        for _ in 0..RESAMPLES {
            let sums = sum(&mut (0..scores.len()).map(|_| &scores[rng.below(scores.len() as u64) as usize]));
            holds += u32::from(sums.windows(2).all(|pair| pair[0] < pair[1]));
            let (first, last) = (sums[0], sums[rows - 1]);
            let inner = &sums[1..rows.max(2) - 1];
            ends_hold += u32::from(first < last && inner.iter().all(|sum| first < *sum && *sum < last));
        }
        let share = |count: u32| f64::from(count) / f64::from(RESAMPLES);
        Some(Self { found, holds: share(holds), ends_hold: share(ends_hold) })
    }
}
