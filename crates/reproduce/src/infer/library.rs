//! Draws with what the baselines give in them, and how far each is from what was published.

use super::unknown::Position;
use anabranch_metrics::quantile;

/// Draws with what the baselines gave in each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    /// The draws.
    pub positions: Vec<Position>,
    /// Values by draw and anchor, in the anchor's unit; `None` where the run has no such value.
    pub ours: Vec<Vec<Option<f64>>>,
}

/// How far two sets of baseline values are apart.
///
/// The distance is the root mean square over the anchors of differences of logarithms, each in multiples of that anchor's spread
/// over the draws. Logarithms, because a factor means the same for seconds as for bytes. The spread, because an anchor that varies
/// a hundredfold would otherwise decide alone, and one that varies by a tenth never.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruler {
    /// Published values, each above zero.
    pub published: Vec<f64>,
    /// Spread of each anchor's logarithm; `None` if all draws have the same.
    pub spreads: Vec<Option<f64>>,
}

/// A value this much below the published one counts as this: the logarithm of zero would outweigh all others.
const LEAST: f64 = 0.01;

/// A median absolute deviation as a standard deviation, if values are normal.
const NORMAL: f64 = 1.4826;

impl Ruler {
    /// Spreads over the draws of a library.
    pub fn of(published: &[f64], library: &Library) -> Self {
        let spread = |(n, published): (usize, &f64)| {
            let logarithms: Vec<f64> =
                library.ours.iter().filter_map(|ours| Some(logarithm(ours[n]?, *published))).collect();
            spread(&logarithms)
        };
        Self { published: published.to_vec(), spreads: published.iter().enumerate().map(spread).collect() }
    }

    /// The distance of `ours` from `theirs`; `None` if a value is missing, or no anchor varies.
    pub fn distance(&self, ours: &[Option<f64>], theirs: &[f64]) -> Option<f64> {
        let (mut squares, mut anchors) = (0.0, 0);
        for (n, published) in self.published.iter().enumerate() {
            let apart = logarithm((*ours.get(n)?)?, *published) - logarithm(*theirs.get(n)?, *published);
            if let Some(spread) = self.spreads[n] {
                squares += (apart / spread) * (apart / spread);
                anchors += 1;
            }
        }
        (anchors > 0).then(|| (squares / f64::from(anchors)).sqrt())
    }

    /// The distances of all draws from the published values.
    pub fn distances(&self, library: &Library) -> Vec<Option<f64>> {
        library.ours.iter().map(|ours| self.distance(ours, &self.published)).collect()
    }

    /// The same for some anchors alone.
    #[must_use]
    pub fn part(&self, anchors: std::ops::Range<usize>) -> Self {
        Self { published: self.published[anchors.clone()].to_vec(), spreads: self.spreads[anchors].to_vec() }
    }
}

fn logarithm(value: f64, published: f64) -> f64 {
    libm::log(value.max(published * LEAST))
}

/// Median absolute deviation, or the standard deviation where more than half are equal; `None` if all are.
fn spread(values: &[f64]) -> Option<f64> {
    let median = quantile(values, 0.5)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    let robust = quantile(&deviations, 0.5).map(|mad| mad * NORMAL).filter(|mad| *mad > 0.0);
    let squares = || (deviations.iter().map(|d| d * d).sum::<f64>() / deviations.len() as f64).sqrt();
    robust.or_else(|| Some(squares())).filter(|spread| *spread > 0.0)
}

/// The draws that are nearest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Numbers of the draws, the nearest first.
    pub draws: Vec<usize>,
    /// Distance of the farthest of them.
    pub tolerance: f64,
}

/// Why no draw is nearer than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoneNearer {
    /// No draw has a value for every anchor.
    NoValues,
    /// No unknown moves a baseline.
    EquallyFar,
}

impl Kept {
    /// The `count` nearest, of equally far ones the first.
    ///
    /// # Errors
    /// No draw has a distance, or all that have one are equally far.
    pub fn nearest(distances: &[Option<f64>], count: usize) -> Result<Self, NoneNearer> {
        let mut draws: Vec<(f64, usize)> =
            distances.iter().enumerate().filter_map(|(n, distance)| Some(((*distance)?, n))).collect();
        draws.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (Some(first), Some(last)) = (draws.first(), draws.last()) else { return Err(NoneNearer::NoValues) };
        if first.0 == last.0 && draws.len() > 1 {
            return Err(NoneNearer::EquallyFar);
        }
        draws.truncate(count);
        let tolerance = draws.last().map_or(0.0, |(distance, _)| *distance);
        Ok(Self { draws: draws.into_iter().map(|(_, n)| n).collect(), tolerance })
    }
}

/// The interval that holds the middle 95 % of a distribution of which `values` are a sample: its ends are quantiles of type 6 of Hyndman
/// and Fan (1996), so that a further value lies in it with that probability. `None` of nothing.
pub fn central(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |p: f64| {
        let place = (p * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
        let (rank, part) = (place as usize, place - libm::floor(place));
        sorted[rank] + part * (sorted[(rank + 1).min(last)] - sorted[rank])
    };
    Some((at(TAIL), at(1.0 - TAIL)))
}

/// The share below a central interval, and above it.
const TAIL: f64 = 0.025;
