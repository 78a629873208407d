//! Whole testbeds, drawn from the priors.

use super::prior::Prior;
use super::unknown::{Position, Unknown};

/// The part of all values from which testbeds are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// For each unknown, the first position and the one behind the last.
    pub bounds: Vec<(f64, f64)>,
}

impl Region {
    /// All values of the priors.
    pub fn whole(unknowns: usize) -> Self {
        Self { bounds: vec![(0.0, 1.0); unknowns] }
    }

    /// The least region with these positions. Within it draws are as likely as by the priors, so that they need no weights:
    /// the nearest testbeds have to lie in it. A value of a list is in it wholly.
    pub fn around(unknowns: &[Unknown], positions: &[&Position]) -> Self {
        let bound = |(n, unknown): (usize, &Unknown)| {
            let all = positions.iter().map(|position| position[n]);
            let (low, high) = (all.clone().fold(1.0, f64::min), all.fold(0.0, f64::max));
            match &unknown.prior {
                Prior::Range(_) => (low, high.max(low)),
                prior @ Prior::List(_) => {
                    let cell = 1.0 / prior.cells() as f64;
                    (prior.cell(low) as f64 * cell, (prior.cell(high) + 1) as f64 * cell)
                }
            }
        };
        Self { bounds: unknowns.iter().enumerate().map(bound).collect() }
    }
}

/// `count` testbeds of the region, from number `from` of the sequence on: Sobol's (1967), scrambled by Owen's method (1995) with
/// `seed`. The sequence has 2¹⁶ draws of 256 unknowns.
pub fn draw(region: &Region, from: u32, count: u32, seed: u32) -> Vec<Position> {
    let one = |number: u32| {
        let at = |(dimension, (low, high)): (u32, &(f64, f64))| {
            low + f64::from(sobol_burley::sample(number, dimension, seed)) * (high - low)
        };
        (0..).zip(&region.bounds).map(at).collect()
    };
    (from..from + count).map(one).collect()
}
