//! The outcome of a reproduction.

use crate::figure::Figure;
use crate::pair::Pair;
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
    /// The outcome, in a sentence.
    pub in_short: String,
    /// The conclusion from its data and ours.
    pub conclusion: String,
    /// Digest of the claims by which this was judged.
    pub claims_digest: String,
    /// A contrast of schedulers is significant up to this p: so at most 5 % of those found are expected to be chance
    /// (Benjamini and Hochberg 1995).
    pub p_limit: f64,
    /// Items of the paper.
    pub items: Vec<ItemOutcome>,
}

/// One table or figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemOutcome {
    /// Name on the command line.
    pub id: String,
    /// Contents of the item.
    pub title: String,
    /// Place in the paper.
    pub place: String,
    /// Kernels took part, in real time.
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
    /// Published values of baseline rows.
    pub anchors: Vec<Anchor>,
    /// The paper's claims, judged.
    pub claims: Vec<Judged>,
    /// The same claims in each reading; the first is the one as written.
    pub readings: Vec<ReadingOutcome>,
    /// Why results differ from claims.
    pub findings: Vec<FindingOutcome>,
}

/// A published value of a baseline row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// In our words.
    pub text: String,
    /// Place in the paper.
    pub place: String,
    /// Metric that answers it.
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
    /// How much of the metric's own unit it is.
    pub scale: f64,
    /// Row and cell, where there is one.
    pub of: Option<(String, CellValues)>,
    /// The value.
    pub published: f64,
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
    /// Metric and rows: `goodput_bps of blest+or against minrtt+pr`.
    pub named: String,
    /// Place in the paper.
    pub place: String,
    /// Metric that answers it.
    pub metric: String,
    /// Unit of the estimate.
    pub unit: String,
    /// How much of the metric's own unit it is.
    pub scale: f64,
    /// The published value: `+6 %`, `0.421 s`, `blest+or < otias`.
    pub published: String,
    /// The published figure, where there is one.
    pub figure: Option<f64>,
    /// The row and cell of the value, where the claim is one.
    pub of: Option<(String, CellValues)>,
    /// Our value, in the same form.
    pub ours: String,
    /// Mean and interval, in the unit.
    pub estimate: Option<Estimate>,
    /// That there is no difference, by the test: see `docs/lab/readings.md`.
    pub p: Option<f64>,
    /// Scatter of a change: how much the quotient of two single runs varies that share nothing, in per cent of itself (one
    /// standard deviation).
    pub scatter: Option<f64>,
    /// The pairs of an order.
    #[serde(default)]
    pub pairs: Vec<Pair>,
    /// The band in which ours reproduces it, as it was written before the run. In JSON, an end at infinity is `null`.
    #[serde(with = "band")]
    pub band: Option<(f64, f64)>,
    /// The claim compares schedulers, and is not a duplicate of another claim.
    pub contrast: bool,
    /// Among the few that the paper is read for.
    pub headline: bool,
    /// The verdict of the runs as written.
    pub verdict: Verdict,
    /// The class under all readings.
    pub class: Class,
    /// The readings in which it holds, by their names.
    pub under: Vec<String>,
    /// Text for a claim that was written, or changed, when its outcome was known.
    pub post_hoc: Option<String>,
    /// Name of the finding that explains why the result differs.
    pub finding: Option<String>,
    /// Why, where it is not plain.
    pub reason: Option<String>,
}

/// The claims in one reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadingOutcome {
    /// Name of the reading.
    pub name: String,
    /// Why the paper may be read so.
    pub why: String,
    /// The keys that it sets, `key = value`.
    pub set: Vec<String>,
    /// The paper leaves it open; otherwise it changes what the paper states.
    pub open: bool,
    /// Text for a reading that was thought of when outcomes of schedulers were known.
    pub post_hoc: Option<String>,
    /// Ours of each anchor, in its unit; empty if the baselines were not run.
    pub anchors: Vec<Option<Estimate>>,
    /// Root mean square of the logarithms of ours over the published, over all anchors.
    pub distance: Option<f64>,
    /// The reading's baselines are as near to the published ones as any reading's, so that claims are judged in it.
    pub admissible: bool,
    /// In the order of the item's claims; empty if schedulers were not run in it.
    pub claims: Vec<Tested>,
}

/// A claim in one reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// Ours.
    pub ours: String,
    /// Mean and interval, in the claim's unit.
    pub estimate: Option<Estimate>,
    /// That there is no difference.
    pub p: Option<f64>,
    /// See [`Judged::scatter`].
    pub scatter: Option<f64>,
    /// The pairs of an order.
    #[serde(default)]
    pub pairs: Vec<Pair>,
    /// Verdict by the runs of this reading alone.
    pub verdict: Verdict,
    /// Whether the claim holds in it.
    pub stand: Stand,
}

/// Whether a claim holds in a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stand {
    /// In sign and size; what has no size never does.
    #[serde(rename = "in size")]
    InSize,
    /// In sign or order, significantly.
    #[serde(rename = "in direction")]
    InDirection,
    /// The finding does not hold.
    #[serde(rename = "no")]
    No,
    /// Nothing was run, or nothing is to be tested.
    #[serde(rename = "not tested")]
    NotTested,
}

/// A finding, and whether runs show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingOutcome {
    /// Name of the finding.
    pub id: String,
    /// Sentence of the finding.
    pub text: String,
    /// The figures that show it.
    pub shown: Vec<Shown>,
}

impl FindingOutcome {
    /// Every figure was run and lies in its band.
    pub fn holds(&self) -> bool {
        !self.shown.is_empty() && self.shown.iter().all(|shown| shown.holds == Some(true))
    }
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The reading whose runs give it; `None` = as written.
    pub reading: Option<String>,
    /// Name of the figure, and its value.
    pub ours: String,
    /// Whether it is as the finding needs it; `None` = not run.
    pub holds: Option<bool>,
}

/// The class of a claim, by the first row of the decision table that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// The paper leaves out what is needed.
    #[serde(rename = "open")]
    Open,
    /// Another place of the paper contradicts it.
    #[serde(rename = "the paper contradicts itself")]
    Contradicted,
    /// The claim holds with any scheduler, or rests on another claim's datum.
    #[serde(rename = "trivial or duplicate")]
    Trivial,
    /// A published value of a baseline, by which readings were chosen.
    #[serde(rename = "anchor")]
    Anchor,
    /// The published difference is smaller than the paper's own repetitions can distinguish from chance.
    #[serde(rename = "below resolution")]
    BelowResolution,
    /// In sign and size under all admissible readings.
    #[serde(rename = "reproduces in size")]
    InSize,
    /// In sign or order under all admissible readings.
    #[serde(rename = "direction")]
    Direction,
    /// Under some readings.
    #[serde(rename = "under some readings")]
    UnderSome,
    /// Under none.
    #[serde(rename = "under none")]
    UnderNone,
    /// A quick look leaves it out.
    #[serde(rename = "not run")]
    NotRun,
}

/// The measurement of a claim.
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

impl ItemOutcome {
    /// The readings in which schedulers were run, and claims are judged.
    pub fn judged_readings(&self) -> impl Iterator<Item = &ReadingOutcome> {
        self.readings.iter().filter(|reading| !reading.claims.is_empty())
    }

    /// Nearest of the admissible judged readings, by its baselines' distance from the published ones; without
    /// anchors the one as written.
    pub fn nearest(&self) -> Option<&ReadingOutcome> {
        let admissible = self.judged_readings().filter(|reading| reading.admissible);
        let distance = |reading: &ReadingOutcome| reading.distance.unwrap_or(0.0);
        admissible.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }
}

impl PaperOutcome {
    /// How many claims and anchors are of a class.
    pub fn count(&self, class: Class) -> usize {
        match class {
            Class::Anchor => self.items.iter().map(|item| item.anchors.len()).sum(),
            _ => self.claims().filter(|claim| claim.class == class).count(),
        }
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

impl Class {
    /// All, in the order of the decision table.
    pub const ALL: [Class; 10] = [
        Class::Open,
        Class::Contradicted,
        Class::Trivial,
        Class::Anchor,
        Class::BelowResolution,
        Class::InSize,
        Class::Direction,
        Class::UnderSome,
        Class::UnderNone,
        Class::NotRun,
    ];
}

impl fmt::Display for Stand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InSize => "in size",
            Self::InDirection => "in direction",
            Self::No => "no",
            Self::NotTested => "not tested",
        })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Contradicted => "the paper contradicts itself",
            Self::Trivial => "trivial or duplicate",
            Self::Anchor => "anchor",
            Self::BelowResolution => "below resolution",
            Self::InSize => "reproduces in size",
            Self::Direction => "direction",
            Self::UnderSome => "under some readings",
            Self::UnderNone => "under none",
            Self::NotRun => "not run",
        })
    }
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
