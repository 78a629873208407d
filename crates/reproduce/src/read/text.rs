//! `claims.toml` as it is written.

use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;

pub type SpannedText = Spanned<String>;
pub type Settings = IndexMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperText {
    pub key: String,
    pub title: String,
    pub authors: String,
    pub venue: String,
    pub repetitions: Option<u32>,
    #[serde(default)]
    pub headline: String,
    #[serde(default)]
    pub in_short: String,
    #[serde(default)]
    pub conclusion: String,
    pub item: Vec<ItemText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemText {
    pub id: SpannedText,
    pub title: String,
    #[serde(rename = "where")]
    pub place: String,
    pub scenario: String,
    pub rows: Vec<SpannedText>,
    #[serde(default = "yes")]
    pub baselines: bool,
    /// Seconds.
    pub curves: Option<f64>,
    #[serde(default)]
    pub live: bool,
    #[serde(default)]
    pub variants: IndexMap<String, Settings>,
    #[serde(default)]
    pub quick: Settings,
    #[serde(default)]
    pub packets: Vec<SpannedText>,
    #[serde(default)]
    pub figure: Vec<FigureText>,
    #[serde(default)]
    pub anchor: Vec<ClaimText>,
    #[serde(default)]
    pub claim: Vec<ClaimText>,
    #[serde(default)]
    pub reading: Vec<ReadingText>,
    #[serde(default)]
    pub sensitivity: Vec<ReadingText>,
    #[serde(default)]
    pub finding: Vec<FindingText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingText {
    pub name: SpannedText,
    pub why: String,
    #[serde(default)]
    pub set: Settings,
    #[serde(default)]
    pub rows: Vec<SpannedText>,
    pub post_hoc: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingText {
    pub id: SpannedText,
    pub text: String,
    #[serde(default)]
    pub shown: Vec<ShownText>,
}

/// A figure of a run: `{ reading = "full buffers", metric = …, of = …, band = […] }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownText {
    pub reading: Option<SpannedText>,
    pub metric: SpannedText,
    pub unit: Option<SpannedText>,
    #[serde(default)]
    pub at: Settings,
    pub of: Spanned<SideText>,
    pub against: Option<Spanned<SideText>>,
    pub band: [f64; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureText {
    pub kind: SpannedText,
    pub metric: Option<SpannedText>,
    pub x: Option<String>,
    #[serde(default)]
    pub models: Vec<Spanned<ModelText>>,
    /// Parameter of the models that is across.
    pub over: Option<SpannedText>,
    /// Range of the models.
    #[serde(default)]
    pub range: [f64; 2],
    pub curve: Option<String>,
    #[serde(default)]
    pub log: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimText {
    pub text: SpannedText,
    #[serde(rename = "where")]
    pub place: Option<String>,
    pub metric: SpannedText,
    pub unit: Option<SpannedText>,
    #[serde(default)]
    pub at: Settings,
    pub value: Option<Spanned<SideText>>,
    pub of: Option<Spanned<SideText>>,
    pub against: Option<Spanned<SideText>>,
    pub order: Option<Vec<SpannedText>>,
    pub best: Option<SpannedText>,
    pub published: Option<f64>,
    pub band: Option<[f64; 2]>,
    #[serde(default)]
    pub spread: bool,
    pub model: Option<Spanned<ModelText>>,
    pub fit: Option<Spanned<SideText>>,
    #[serde(default)]
    pub points: Vec<PointText>,
    #[serde(default)]
    pub measured: Settings,
    pub cycle: Option<Spanned<SideText>>,
    pub statistic: Option<SpannedText>,
    #[serde(default)]
    pub headline: bool,
    pub uncertainty: Option<f64>,
    pub open: Option<String>,
    pub contradicted: Option<String>,
    pub trivial: Option<String>,
    pub duplicate: Option<String>,
    pub post_hoc: Option<String>,
    pub reason: Option<SpannedText>,
}

/// `"otias"`, or `{ row = "otias", at = { … }, metric = …, per = … }`.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum SideText {
    Row(String),
    Full {
        row: String,
        #[serde(default)]
        at: Settings,
        metric: Option<String>,
        per: Option<Box<SideText>>,
    },
}

fn yes() -> bool {
    true
}

/// `{ name = "delayed-start", set = { gamma = 3.9 }, column = "expected_packets" }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelText {
    pub name: String,
    #[serde(default)]
    pub set: IndexMap<String, f64>,
    pub column: String,
}

/// `{ at = { "path.cell.delay" = "30ms" }, set = { buffer = 8 } }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointText {
    #[serde(default)]
    pub at: Settings,
    #[serde(default)]
    pub set: IndexMap<String, f64>,
}
