//! A paper's claims on a metric.

use crate::prediction::Prediction;
use anabranch_run::RowKind;

/// One statement of a paper that runs can confirm or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// In our words: `OTIAS's goodput is 6 % above minRTT's`.
    pub text: String,
    /// Place in the paper: `Figure 3 (a)`.
    pub place: String,
    /// Metric of results, `path.NAME.METRIC`, `CURVE[20s..40s]`, `rd[-2..2]`; or `A / B` of these, run by run.
    pub metric: String,
    /// Unit in which it is published.
    pub unit: Unit,
    /// The cells that it speaks of: those that have these values. Empty = all.
    pub at: Vec<(String, String)>,
    /// Form of the claim.
    pub kind: Kind,
    /// Standing of the claim before any run.
    pub standing: Standing,
    /// Among the few that the paper is read for.
    pub headline: bool,
    /// The half-width of the 95 % interval that is published of the value or change, in its unit.
    pub uncertainty: Option<f64>,
    /// Text for a claim that was written, or changed, when its outcome was known; it says how.
    pub post_hoc: Option<String>,
    /// Name of the finding that explains why our result differs.
    pub reason: Option<String>,
}

/// The standing of a claim before any run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Runs can confirm it or not.
    Testable,
    /// The paper leaves out what is needed, so that nothing can be judged: ours is shown beside it. Says what.
    Open(String),
    /// Another place of the paper contradicts it; the text says which.
    Contradicted(String),
    /// The claim holds with any scheduler; the text says why.
    Trivial(String),
    /// Another claim of the paper rests on the same datum. Says which.
    Duplicate(String),
}

impl Claim {
    /// The rows whose value it is, and what that is a multiple of.
    pub(crate) fn rows(&self) -> Vec<&str> {
        let mut rows = Vec::new();
        if let Kind::Value { of, .. } = &self.kind {
            let mut side = Some(of);
            while let Some(Side { row, per, .. }) = side {
                rows.push(row.as_str());
                side = per.as_deref();
            }
        }
        rows
    }

    /// The cells whose value it is, each by the values that it has.
    pub(crate) fn places(&self) -> Vec<Vec<(String, String)>> {
        let mut places = Vec::new();
        if let Kind::Value { of, .. } = &self.kind {
            let mut side = Some(of);
            while let Some(of) = side {
                places.push(of.place(&self.at));
                side = of.per.as_deref();
            }
        }
        places
    }

    /// Whether it compares schedulers, and is not a duplicate of another claim.
    pub fn is_contrast(&self) -> bool {
        let schedulers = match &self.kind {
            Kind::Change { of, against, .. } => {
                of.row != against.row && ![of, against].iter().any(|side| RowKind::of(&side.row).is_single())
            }
            Kind::Order { .. } => true,
            _ => false,
        };
        schedulers && self.standing == Standing::Testable
    }
}

/// A band of a sign alone: the paper does not wholly state the set-up.
pub(crate) fn is_sign_alone((low, high): (f64, f64)) -> bool {
    low == 0.0 && high == f64::INFINITY || low <= -100.0 && high == 0.0
}

/// A band around zero: the sides are about equal.
pub(crate) fn is_about_equal((low, high): (f64, f64)) -> bool {
    low < 0.0 && high > 0.0
}

/// Half to twice a published change: its size, where no band is given.
pub(crate) fn half_to_twice(published: f64) -> (f64, f64) {
    let (half, twice) = (published / 2.0, published * 2.0);
    (half.min(twice), half.max(twice))
}

/// The sign between two metrics of a ratio.
pub(crate) const RATIO: &str = " / ";

/// A row of the item, perhaps in a cell of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The scheduler as results print it, or `single:PATH`.
    pub row: String,
    /// The metric, where it is not the claim's.
    pub metric: Option<String>,
    /// Values of the sweep in place of the claim's.
    pub at: Vec<(String, String)>,
    /// The side that it is a multiple of, seed by seed: a gain is `fps-ocps` per `fps`.
    pub per: Option<Box<Side>>,
}

impl Side {
    /// The values of its cell: its own precede those of the claim.
    pub(crate) fn place(&self, at: &[(String, String)]) -> Vec<(String, String)> {
        let mut place = self.at.clone();
        place.extend(at.iter().filter(|(key, _)| !self.at.iter().any(|(own, _)| own == key)).cloned());
        place
    }
}

/// Forms of claims.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A value.
    Value {
        /// The row and cell whose value it is.
        of: Side,
        /// In the claim's unit.
        published: f64,
        /// Ours reproduces it in here.
        band: Option<(f64, f64)>,
    },
    /// The relative difference `of / against − 1`, in per cent.
    Change {
        /// The row and cell of the numerator.
        of: Side,
        /// The row and cell of the denominator.
        against: Side,
        /// In per cent; zero: they are about equal. `None` = the paper states the sign alone, which is that of the band.
        published: Option<f64>,
        /// Ours reproduces it in here, in per cent. Where the paper does not state its set-up wholly, only the
        /// direction can be tested: the band begins or ends at zero.
        band: (f64, f64),
        /// Not of the values but of how they vary: what each is off the median is compared (Brown and Forsythe 1974).
        spread: bool,
    },
    /// Rows in order, the best first.
    Order {
        /// The rows.
        rows: Vec<String>,
        /// More is better; otherwise less is.
        more: bool,
    },
    /// A value that the paper's own equations give.
    Model {
        /// Which equation, with which parameters.
        by: Prediction,
        /// In the claim's unit.
        published: f64,
        /// Ours reproduces it in here.
        band: (f64, f64),
    },
    /// R² of the means of some cells on what a model gives for them.
    Fit {
        /// The row that has the means.
        of: Side,
        /// The model.
        to: Prediction,
        /// The cells, at least three.
        points: Vec<Point>,
        /// Parameters that are the mean of a metric in the cell, with the metric.
        measured: Vec<(String, String)>,
        /// R².
        published: f64,
        /// Ours reproduces it in here.
        band: (f64, f64),
    },
    /// Something of the cycles in which a curve rises and falls; the claim's metric is the curve's name.
    Cycle {
        /// The row and cell that have the curve.
        of: Side,
        /// The statistic of the cycles.
        statistic: Statistic,
        /// In the claim's unit.
        published: f64,
        /// Ours reproduces it in here.
        band: (f64, f64),
    },
}

/// A cell for which a model gives a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Values of the sweep.
    pub at: Vec<(String, String)>,
    /// The model's parameters there.
    pub set: Vec<(String, f64)>,
}

/// A statistic of a curve's cycles, each the mean over them.
#[derive(Clone, Debug, PartialEq)]
pub enum Statistic {
    /// From peak to peak, in the unit of the curve's x.
    Length,
    /// The trough as a share of the peak before it.
    Fall,
    /// R² of the rise on this model, whose rows are `time_s` and the column, from the trough on.
    Fit(Prediction),
}

/// A unit of published values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// As written: `ms`.
    pub name: &'static str,
    /// How much of the metric's unit it is: 0.001.
    pub scale: f64,
}

impl Unit {
    /// The metric's own.
    pub const NONE: Unit = Unit { name: "", scale: 1.0 };

    /// All that a claim may name.
    pub const ALL: [Unit; 12] = [
        Unit::NONE,
        Unit { name: "s", scale: 1.0 },
        Unit { name: "ms", scale: 1e-3 },
        Unit { name: "bit/s", scale: 1.0 },
        Unit { name: "kbit/s", scale: 1e3 },
        Unit { name: "Mbit/s", scale: 1e6 },
        Unit { name: "byte", scale: 1.0 },
        Unit { name: "KiB", scale: 1024.0 },
        Unit { name: "MiB", scale: 1_048_576.0 },
        Unit { name: "packets", scale: 1.0 },
        Unit { name: "%", scale: 0.01 },
        Unit { name: "times", scale: 1.0 },
    ];

    /// The unit of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_with_an_open_end_ask_for_a_sign_alone() {
        let inf = f64::INFINITY;
        assert!(is_sign_alone((0.0, inf)) && is_sign_alone((-100.0, 0.0)));
        assert!(!is_sign_alone((0.0, 20.0)) && !is_sign_alone((-5.0, 5.0)));
    }

    #[test]
    fn half_to_twice_of_a_fall_is_a_band_too() {
        assert_eq!([half_to_twice(12.0), half_to_twice(-12.0)], [(6.0, 24.0), (-24.0, -6.0)]);
    }
}
