//! A race of many schedulers over few draws: those that cannot win leave early.
//!
//! Rounds halve the field (successive halving: Karnin, Koren, Somekh, ICML 2013), and a scheduler whose paired difference from the
//! leader is surely below zero leaves at once (F-Race: Birattari and others, GECCO 2002). All meet the same draws.

use anabranch_metrics::{mean, student_interval};
use std::ops::Range;

/// The rounds: draws that are done at the end of each, and the most schedulers that stay.
pub(super) const ROUNDS: [(u32, usize); 4] = [(4, 16), (8, 8), (16, 5), (24, 5)];

/// Draws of a whole race.
pub(super) const DRAWS: u32 = ROUNDS[ROUNDS.len() - 1].0;

/// Schedulers whose means differ by no more than this part of the best single line's result do the same.
pub(super) const SAME: f64 = 0.01;

/// The difference of two rows over the draws that both have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lead {
    pub mean: f64,
    /// Ends of the 95 % interval: of differences that are means of many packets, so Student's; the mean itself for one draw.
    pub ends: (f64, f64),
}

impl Lead {
    /// `a` − `b`, draw by draw.
    pub fn of(a: &[f64], b: &[f64]) -> Self {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        let mean = mean(&differences).unwrap_or(0.0);
        Self { mean, ends: student_interval(&differences).unwrap_or((mean, mean)) }
    }

    /// No difference that counts, or none that the draws can show.
    pub fn is_same(&self) -> bool {
        self.mean.abs() <= SAME || (self.ends.0 <= 0.0 && 0.0 <= self.ends.1)
    }
}

/// One of those that race.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Racer {
    /// Number of the scheduler.
    pub number: usize,
    /// Preferred among equals.
    pub preferred: bool,
    /// Values so far: greater is better.
    pub values: Vec<f64>,
    /// Whether it is in the race.
    pub runs: bool,
}

impl Racer {
    pub fn new(number: usize, preferred: bool) -> Self {
        Self { number, preferred, values: Vec::new(), runs: true }
    }

    pub fn mean(&self) -> f64 {
        mean(&self.values).unwrap_or(0.0)
    }

    /// Mean by which the field is halved.
    fn standing(&self) -> f64 {
        self.mean() + if self.preferred { SAME } else { 0.0 }
    }
}

/// Races until the last round. `ask` gives the values of the racers with these numbers in these draws, in that order.
pub(super) fn race<E>(
    racers: &mut [Racer],
    mut ask: impl FnMut(&[usize], Range<u32>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<(), E> {
    let mut done = 0;
    for (until, most) in ROUNDS {
        let running: Vec<usize> = racers.iter().filter(|racer| racer.runs).map(|racer| racer.number).collect();
        let values = ask(&running, done..until)?;
        for (racer, more) in racers.iter_mut().filter(|racer| racer.runs).zip(values) {
            racer.values.extend(more);
        }
        done = until;
        thin(racers, most);
    }
    Ok(())
}

/// Ends the race of those that cannot win, and of all but the best `most`.
fn thin(racers: &mut [Racer], most: usize) {
    let mut order: Vec<usize> = (0..racers.len()).filter(|at| racers[*at].runs).collect();
    order.sort_by(|a, b| racers[*b].standing().total_cmp(&racers[*a].standing()));
    let Some(best) = order.iter().copied().max_by(|a, b| racers[*a].mean().total_cmp(&racers[*b].mean())) else {
        return;
    };
    let leader = racers[best].values.clone();
    for (place, at) in order.into_iter().enumerate() {
        let lead = Lead::of(&racers[at].values, &leader);
        let is_beaten = lead.ends.1 < 0.0 && lead.mean < -SAME;
        racers[at].runs = at == best || (place < most && !is_beaten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rng;
    use core::convert::Infallible;

    /// Racers whose values have these means, with noise that all share and noise of their own.
    fn raced(means: &[f64], preferred: &[usize], seed: u64) -> (Vec<Racer>, usize) {
        let mut racers: Vec<Racer> =
            (0..means.len()).map(|number| Racer::new(number, preferred.contains(&number))).collect();
        let mut asked = 0;
        let value = |number: usize, draw: u32| {
            let common = Rng::stream(seed, &format!("draw {draw}")).unit();
            let own = Rng::stream(seed, &format!("{number} {draw}")).unit() - 0.5;
            means[number] + common + 0.02 * own
        };
        race(&mut racers, |numbers, draws| {
            asked += numbers.len() * draws.len();
            Ok::<_, Infallible>(numbers.iter().map(|n| draws.clone().map(|draw| value(*n, draw)).collect()).collect())
        })
        .unwrap();
        (racers, asked)
    }

    #[test]
    fn the_best_wins_a_race_that_costs_a_fraction() {
        for seed in 0..50 {
            let means: Vec<f64> = (0..40).map(|n| if n == 17 { 2.05 } else { 2.0 - 0.02 * f64::from(n % 7) }).collect();
            let (racers, asked) = raced(&means, &[], seed);
            let left: Vec<usize> = racers.iter().filter(|racer| racer.runs).map(|racer| racer.number).collect();
            assert_eq!(left, [17], "seed {seed}");
            assert!(asked < 40 * 24 / 3, "{asked}");
        }
    }

    #[test]
    fn the_preferred_one_stays_among_equals() {
        let (racers, _) = raced(&[1.0; 30], &[29], 1);
        assert!(racers[29].runs && racers[29].values.len() == 24);
        let others: Vec<&Racer> = racers.iter().filter(|racer| racer.runs).collect();
        assert!(others.len() > 1 && others.iter().all(|a| Lead::of(&a.values, &racers[29].values).is_same()));
        let (racers, _) = raced(&[1.0, 1.1, 1.1, 1.1], &[0], 1);
        assert!(!racers[0].runs, "ten per cent are no tie");
    }
}
