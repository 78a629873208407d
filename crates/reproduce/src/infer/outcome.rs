//! The outcome of an inference.

use super::calibrate::{Calibration, calibrate};
use super::posterior::{Posterior, posteriors};
use super::read::{Extent, Unsaid};
use super::search::{Drawn, Search};
use super::tally::{Answer, Tally};
use crate::pair::Agreement;
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// The parameters that one paper, or one file, leaves open, as far as its baselines tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inference {
    /// Short name of the paper, or the file.
    pub source: String,
    /// How much was drawn and kept.
    pub extent: Extent,
    /// Draws whose runs lack a value of an anchor: they are never kept.
    pub without_value: usize,
    /// Runs that failed, with the reason of each: they have no values.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failed: Vec<String>,
    /// Distance of the scenarios as written; `None` without anchors.
    pub as_written: Option<f64>,
    /// Distance of the nearest draw.
    pub nearest: f64,
    /// After each round, the distance of the farthest draw that is kept.
    pub tolerances: Vec<f64>,
    /// The published baselines beside the draws.
    pub anchors: Vec<Drawn>,
    /// The unknowns, before and after.
    pub unknowns: Vec<Posterior>,
    /// Draws taken as published; `None` without anchors.
    pub calibration: Option<Calibration>,
    /// Named readings beside the draws.
    pub readings: Vec<NamedReading>,
    /// The claims over the kept testbeds.
    pub claims: Vec<Tally>,
}

/// A reading of an item, as a point among the draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedReading {
    /// The item.
    pub item: String,
    /// The reading.
    pub name: String,
    /// Ours of each of the item's anchors.
    pub ours: Vec<Option<f64>>,
    /// Distance over the item's anchors alone.
    pub distance: Option<f64>,
    /// Draws that are nearer over these anchors.
    pub nearer: usize,
}

/// Draws taken as published.
const CALIBRATED: usize = 200;

impl Inference {
    /// The findings of a search, without claims and readings.
    pub fn of(source: &str, unsaid: &Unsaid, search: &Search, anchors: Vec<Drawn>) -> Self {
        let unknowns = posteriors(&unsaid.unknowns, &search.library, search.first(), search.kept());
        let distances = search.ruler.distances(&search.library);
        let keep = search.extent.keep as usize;
        let calibration =
            (!anchors.is_empty()).then(|| calibrate(&search.ruler, &search.library, &unknowns, keep, CALIBRATED));
        Self {
            source: source.to_owned(),
            extent: search.extent,
            without_value: if anchors.is_empty() { 0 } else { distances.iter().filter(|d| d.is_none()).count() },
            failed: Vec::new(),
            as_written: None,
            nearest: distances.iter().flatten().copied().reduce(f64::min).unwrap_or(0.0),
            tolerances: search.rounds.iter().map(|kept| kept.tolerance).collect(),
            anchors,
            unknowns,
            calibration,
            readings: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// How many claims have this answer.
    pub fn count(&self, answer: Answer) -> usize {
        self.claims.iter().filter(|claim| claim.answer == answer).count()
    }

    /// The claims that count.
    pub fn counted(&self) -> impl Iterator<Item = &Tally> {
        let counts = |answer| !matches!(answer, Answer::NotCounted | Answer::Contradicted | Answer::NotRun);
        self.claims.iter().filter(move |claim| counts(claim.answer))
    }

    /// Published sizes in the claims that compare schedulers: how many agree. One of zero has no size.
    pub fn sizes(&self) -> Agreement {
        let sized = |claim: &&Tally| claim.contrast && claim.figure.is_some_and(|figure| figure != 0.0);
        let sizes = self.counted().filter(sized).map(|claim| claim.answer == Answer::Agrees);
        sizes.map(Agreement::one).fold(Agreement::default(), Add::add)
    }

    /// Pairs of schedulers in the claims that compare them: how many are as published in at least half of the kept testbeds. Those of
    /// a claim that cannot be drawn do not agree.
    pub fn pairs(&self) -> Agreement {
        let of = |claim: &Tally| {
            let drawn = claim.answer != Answer::CannotBeDrawn;
            claim.pairs.iter().map(move |pair| drawn && pair.agrees()).map(Agreement::one).collect::<Vec<_>>()
        };
        let all = self.counted().filter(|claim| claim.contrast).flat_map(of);
        all.fold(Agreement::default(), Add::add)
    }
}
