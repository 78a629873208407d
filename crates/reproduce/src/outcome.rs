//! What a reproduction found.

use crate::paper::{Figure, Paper};
use anabranch_run::{CellValues, Estimate, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Everything that one call of `anabranch reproduce` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Version of the program.
    pub anabranch: String,
    /// A quick look: few repetitions, perhaps shorter runs.
    pub quick: bool,
    /// The papers.
    pub papers: Vec<PaperOutcome>,
}

/// One paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperOutcome {
    /// Short name.
    pub key: String,
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: String,
    /// Where it appeared.
    pub venue: String,
    /// Its items.
    pub items: Vec<ItemOutcome>,
}

/// One table or figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemOutcome {
    /// Name on the command line.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where it stands in the paper.
    pub place: String,
    /// Kernels took part, by the clock.
    pub live: bool,
    /// Name and text of the scenario file.
    pub scenario: (String, String),
    /// Rows as results name them, the baselines behind the schedulers.
    pub rows: Vec<String>,
    /// Digest of the main runs.
    pub digest: String,
    /// Every metric of every row and cell.
    pub summary: Vec<Summary>,
    /// The curves that its figures draw.
    pub curves: Vec<MeanCurve>,
    /// How to draw it.
    pub figures: Vec<Figure>,
    /// The paper's claims, judged.
    pub claims: Vec<Judged>,
    /// The same claims under other assumptions.
    pub sensitivity: Vec<Sensitive>,
}

/// A curve's mean over the runs of a row, bin by bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanCurve {
    /// The row.
    pub row: String,
    /// The cell.
    pub cell: CellValues,
    /// Name of the curve.
    pub name: String,
    /// x of the first value.
    pub start: f64,
    /// Step of x.
    pub step: f64,
    /// Per bin: mean and its 95 % interval over the runs that have it.
    pub values: Vec<Option<Estimate>>,
}

/// A claim beside what we found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The claim, in our words.
    pub text: String,
    /// Where it stands in the paper.
    pub place: String,
    /// Metric that answers it.
    pub metric: String,
    /// Unit of the estimate.
    pub unit: String,
    /// How much of the metric's own unit it is.
    pub scale: f64,
    /// What was published: `+6 %`, `0.421 s`, `blest+or < otias`.
    pub published: String,
    /// The published figure, where there is one.
    pub figure: Option<f64>,
    /// Whose value it is, where it is one: row and cell.
    pub of: Option<(String, CellValues)>,
    /// Ours, likewise.
    pub ours: String,
    /// Mean and interval, in the unit.
    pub estimate: Option<Estimate>,
    /// That there is no difference, by the test: see `docs/reproduction.md`.
    pub p: Option<f64>,
    /// The band in which ours reproduces it, as it was written before the run. In JSON, an end at infinity is `null`.
    #[serde(with = "band")]
    pub band: Option<(f64, f64)>,
    /// What follows.
    pub verdict: Verdict,
    /// Why, where it is not plain.
    pub reason: Option<String>,
}

/// The claims under another assumption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitive {
    /// The assumption.
    pub name: String,
    /// Why somebody might make it.
    pub why: String,
    /// What it sets, `key = value`.
    pub set: Vec<String>,
    /// Ours and the verdict, in the order of the item's claims.
    pub claims: Vec<(String, Verdict)>,
}

/// What we found of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    /// Direction and, where the set-up is fully stated, magnitude.
    #[serde(rename = "reproduces")]
    Reproduces,
    /// The direction, but not the magnitude; of an order, its best and its worst.
    #[serde(rename = "direction only")]
    DirectionOnly,
    /// Neither.
    #[serde(rename = "differs")]
    Differs,
    /// The paper leaves out what is needed.
    #[serde(rename = "not specified")]
    NotSpecified,
    /// A quick look leaves it out.
    #[serde(rename = "not run")]
    NotRun,
}

/// Bands in JSON, which has no infinity.
mod band {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Ends = Option<(Option<f64>, Option<f64>)>;

    pub fn serialize<S: Serializer>(band: &Option<(f64, f64)>, to: S) -> Result<S::Ok, S::Error> {
        let finite = |end: f64| Some(end).filter(|end| end.is_finite());
        band.map(|(low, high)| (finite(low), finite(high))).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(f64, f64)>, D::Error> {
        let ends = Ends::deserialize(from)?;
        Ok(ends.map(|(low, high)| (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))))
    }
}

impl Judged {
    /// Whether the band asks for a sign alone, because the paper does not wholly state the set-up.
    pub fn asks_for_direction_alone(&self) -> bool {
        self.band.is_some_and(|(low, high)| low == 0.0 && high == f64::INFINITY || low <= -100.0 && high == 0.0)
    }
}

impl PaperOutcome {
    /// What came out of the items of `paper`.
    pub fn new(paper: &Paper, items: Vec<ItemOutcome>) -> Self {
        let Paper { key, title, authors, venue, .. } = paper.clone();
        Self { key, title, authors, venue, items }
    }

    /// The claims of all items.
    pub fn claims(&self) -> impl Iterator<Item = &Judged> {
        self.items.iter().flat_map(|item| &item.claims)
    }
}

impl Verdict {
    /// All, the best first.
    pub const ALL: [Verdict; 5] =
        [Verdict::Reproduces, Verdict::DirectionOnly, Verdict::Differs, Verdict::NotSpecified, Verdict::NotRun];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduces => "reproduces",
            Self::DirectionOnly => "direction only",
            Self::Differs => "differs",
            Self::NotSpecified => "not specified",
            Self::NotRun => "not run",
        })
    }
}
