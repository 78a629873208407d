//! Whether intervals hold what they promise: draws taken as published.

use super::library::{Kept, Library, Ruler, central};
use super::posterior::MOVES;
use super::posterior::Posterior;
use serde::{Deserialize, Serialize};

/// How often the 95 % intervals hold the truth where it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Draws that were taken as published.
    pub draws: usize,
    /// Share of all intervals that hold the truth.
    pub coverage: f64,
    /// The same by unknown.
    pub by_unknown: Vec<Coverage>,
}

/// The intervals of one unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// The unknown's name.
    pub unknown: String,
    /// Share of its intervals that hold the truth.
    pub coverage: f64,
    /// The unknown moves a baseline.
    pub moves: bool,
}

/// Leaves each of `times` draws out in turn, takes it as published, keeps the `count` nearest of the others, and sees whether its own
/// position lies in the central 95 % of theirs. Positions, not values: within a value of a list they are random, so that the interval
/// of a list is as wide as that of a range.
pub fn calibrate(
    ruler: &Ruler,
    library: &Library,
    posteriors: &[Posterior],
    count: usize,
    times: usize,
) -> Calibration {
    let all = library.positions.len();
    let mut hits = vec![0usize; posteriors.len()];
    let mut draws = 0;
    for truth in (0..times.min(all)).map(|n| n * all / times.min(all)) {
        let Some(theirs) = library.ours[truth].iter().copied().collect::<Option<Vec<f64>>>() else { continue };
        let apart = |(n, ours): (usize, &Vec<Option<f64>>)| ruler.distance(ours, &theirs).filter(|_| n != truth);
        let distances: Vec<Option<f64>> = library.ours.iter().enumerate().map(apart).collect();
        let Ok(kept) = Kept::nearest(&distances, count) else { continue };
        draws += 1;
        for (unknown, hits) in hits.iter_mut().enumerate() {
            let positions: Vec<f64> = kept.draws.iter().map(|&draw| library.positions[draw][unknown]).collect();
            let own = library.positions[truth][unknown];
            *hits += usize::from(central(&positions).is_some_and(|(low, high)| (low..=high).contains(&own)));
        }
    }
    let share = |hits: usize, of: usize| if of == 0 { 0.0 } else { hits as f64 / of as f64 };
    let by = |(posterior, hits): (&Posterior, &usize)| Coverage {
        unknown: posterior.unknown.clone(),
        coverage: share(*hits, draws),
        moves: posterior.moves >= MOVES,
    };
    Calibration {
        draws,
        coverage: share(hits.iter().sum(), draws * posteriors.len()),
        by_unknown: posteriors.iter().zip(&hits).map(by).collect(),
    }
}
