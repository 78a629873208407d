//! Each unknown over the kept draws.

use super::library::{Library, central};
use super::prior::Prior;
use super::unknown::Unknown;
use anabranch_metrics::{mean, quantile};
use serde::{Deserialize, Serialize};

/// An unknown before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Posterior {
    /// The unknown's name.
    pub unknown: String,
    /// Why it is open.
    pub why: String,
    /// A remark if the prior was made wider later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widened: Option<String>,
    /// The values of a list; the bounds of the tenths of a range, eleven of them.
    pub values: Vec<String>,
    /// True if it is a list.
    pub is_list: bool,
    /// Share of the kept draws in each cell: those of a list's values, or tenths of a range.
    pub shares: Vec<f64>,
    /// Median of the kept, as a value.
    pub median: String,
    /// Ends of the central 95 % of the kept, as values.
    pub ci95: (String, String),
    /// How much the baselines fix it: 0 as spread as before, 1 a single value.
    pub fixed: f64,
    /// The greatest share of an anchor's variance over the draws that goes with this unknown alone.
    pub moves: f64,
}

/// An unknown moves a baseline if at least this share of the baseline's variance goes with it.
pub const MOVES: f64 = 0.05;

/// Says for each unknown where the kept draws are.
pub fn posteriors(unknowns: &[Unknown], library: &Library, first: usize, kept: &[usize]) -> Vec<Posterior> {
    let of = |(n, unknown): (usize, &Unknown)| {
        let prior = &unknown.prior;
        let positions: Vec<f64> = kept.iter().map(|&draw| library.positions[draw][n]).collect();
        let shares = shares(prior, &positions);
        let text = |position: Option<f64>| position.map_or_else(String::new, |position| prior.text(position));
        let ends = central(&positions);
        Posterior {
            unknown: unknown.name.clone(),
            why: unknown.why.clone(),
            widened: unknown.widened.clone(),
            values: values(prior),
            is_list: matches!(prior, Prior::List(_)),
            median: text(quantile(&positions, 0.5)),
            ci95: (text(ends.map(|(low, _)| low)), text(ends.map(|(_, high)| high))),
            fixed: fixed(&shares, positions.len()),
            shares,
            moves: moves(prior, n, library, first),
        }
    };
    unknowns.iter().enumerate().map(of).collect()
}

fn values(prior: &Prior) -> Vec<String> {
    match prior {
        Prior::List(choices) => choices.iter().map(|choice| choice.name.clone()).collect(),
        Prior::Range(_) => (0..=prior.cells()).map(|n| prior.text(n as f64 / prior.cells() as f64)).collect(),
    }
}

fn shares(prior: &Prior, positions: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; prior.cells()];
    positions.iter().for_each(|position| shares[prior.cell(*position)] += 1.0 / positions.len() as f64);
    shares
}

/// How much of the prior's spread is gone: 1 − (e^H − 1) / (m − 1). H is the entropy of the `m` shares of `n` draws, with the
/// correction for a sample by Miller (1955); e^H is the number of equally likely cells that have it.
pub fn fixed(shares: &[f64], n: usize) -> f64 {
    let used = shares.iter().filter(|share| **share > 0.0);
    let entropy: f64 = used.clone().map(|share| -share * libm::log(*share)).sum();
    let missing = used.count().saturating_sub(1) as f64 / (2 * n.max(1)) as f64;
    let cells = shares.len() as f64;
    (1.0 - (libm::exp(entropy + missing) - 1.0) / (cells - 1.0)).clamp(0.0, 1.0)
}

/// The greatest correlation ratio of an anchor's value, by its rank, on the unknown's cells, over the first draws: the later ones are
/// drawn from a part of the prior.
fn moves(prior: &Prior, unknown: usize, library: &Library, first: usize) -> f64 {
    let first = first.min(library.positions.len());
    let anchors = library.ours.first().map_or(0, Vec::len);
    let of = |anchor: usize| {
        let pairs = (0..first).filter_map(|draw| Some((library.positions[draw][unknown], library.ours[draw][anchor]?)));
        let (positions, values): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let cells: Vec<usize> = positions.iter().map(|position| prior.cell(*position)).collect();
        correlation_ratio(&cells, prior.cells(), &ranks(&values))
    };
    (0..anchors).map(of).fold(0.0, f64::max)
}

/// The share of the variance that is between the cells, less what chance gives (ε² of Kelley 1935).
fn correlation_ratio(cells: &[usize], count: usize, values: &[f64]) -> f64 {
    let Some(middle) = mean(values) else { return 0.0 };
    let square = |x: f64| x * x;
    let total: f64 = values.iter().map(|value| square(value - middle)).sum();
    let mut within = 0.0;
    for cell in 0..count {
        let own: Vec<f64> =
            cells.iter().zip(values).filter(|(own, _)| **own == cell).map(|(_, value)| *value).collect();
        within += mean(&own).map_or(0.0, |mean| own.iter().map(|value| square(value - mean)).sum());
    }
    let (n, groups) = (values.len() as f64, count as f64);
    if total == 0.0 || n <= groups { 0.0 } else { (1.0 - within / total * (n - 1.0) / (n - groups)).max(0.0) }
}

/// The place of each value in order; equal values share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        (below + sorted.partition_point(|other| other <= value)) as f64 / 2.0
    };
    values.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_is_fixed_and_equal_shares_are_not() {
        assert_eq!(fixed(&[0.0, 1.0, 0.0], 100), 1.0);
        assert!(fixed(&[0.25; 4], 100) < 1e-9);
        let half = fixed(&[0.5, 0.5, 0.0], 1_000_000);
        assert!((half - 0.5).abs() < 1e-3, "{half}");
    }

    #[test]
    fn a_ratio_of_one_is_a_function_and_of_noise_zero() {
        let cells: Vec<usize> = (0..300).map(|n| n % 3).collect();
        let own: Vec<f64> = cells.iter().map(|cell| [5.0, 1.0, 5.0][*cell]).collect();
        assert!((correlation_ratio(&cells, 3, &ranks(&own)) - 1.0).abs() < 1e-12);
        let other: Vec<f64> = (0..300).map(|n| f64::from(n / 3)).collect();
        assert_eq!(correlation_ratio(&cells, 3, &ranks(&other)), 0.0);
    }
}
