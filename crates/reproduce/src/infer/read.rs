//! `unsaid.toml` of a paper, or a user's file: what is open, with priors, and what was measured.

use super::read_prior::UnknownText;
use super::unknown::Unknown;
use crate::claim::{Claim, Kind, Side, Standing};
use crate::item_row::ItemRow;
use crate::read::{Mistake, Reader, Settings, SpannedText};
use anabranch_run::RowKind;
use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;

/// How much is drawn, run and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Testbeds drawn in a round.
    pub draws: u32,
    /// Testbeds kept.
    pub keep: u32,
    /// Seeds of each baseline run.
    pub repeat: u32,
    /// Rounds: the second is drawn around what the first kept.
    pub rounds: u32,
    /// Seed of the draws.
    pub seed: u32,
}

/// A file of unknowns.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsaid {
    /// How much is drawn, run and kept.
    pub extent: Extent,
    /// What is open.
    pub unknowns: Vec<Unknown>,
    /// Items of the paper whose anchors do not count, and why: another item has the same data.
    pub left_out: IndexMap<String, String>,
    /// Schedulers that the paper proposes: none of their values may choose a testbed.
    pub proposed: Vec<String>,
    /// The measurements of a file that stands for itself.
    pub measured: Option<Measured>,
}

/// What was measured, in a file that stands for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The scenario: a file beside this one, or a built-in one.
    pub scenario: String,
    /// The schedulers that were measured.
    pub rows: Vec<ItemRow>,
    /// The measured values, each a [`Kind::Value`].
    pub anchors: Vec<Claim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnsaidText {
    scenario: Option<SpannedText>,
    draws: Option<Spanned<u32>>,
    keep: Option<Spanned<u32>>,
    repeat: Option<Spanned<u32>>,
    rounds: Option<Spanned<u32>>,
    seed: Option<u32>,
    #[serde(default)]
    proposed: Vec<SpannedText>,
    #[serde(default)]
    left_out: IndexMap<String, String>,
    /// What the source states, with the place: no unknown may set it.
    #[serde(default)]
    stated: IndexMap<String, String>,
    #[serde(default)]
    unsaid: IndexMap<Spanned<String>, UnknownText>,
    #[serde(default)]
    anchor: Vec<AnchorText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnchorText {
    text: Option<String>,
    metric: SpannedText,
    of: SpannedText,
    measured: Spanned<f64>,
    unit: Option<SpannedText>,
    #[serde(default)]
    at: Settings,
}

/// Testbeds drawn unless the file says otherwise.
const DRAWS: u32 = 1000;
/// Testbeds kept unless the file says otherwise.
const KEEP: u32 = 100;
/// Draws of the sequence: the crate has no more.
const MOST_DRAWS: u32 = 1 << 16;
/// Dimensions of the sequence.
const MOST_UNKNOWNS: usize = 256;

/// Reads the `unsaid.toml` of a paper.
///
/// # Errors
/// All that is wrong with it, or the first thing that keeps it from being read at all.
pub fn read_unsaid(text: &str) -> Result<Unsaid, Vec<Mistake>> {
    let (unsaid, mut reader, own) = read(text)?;
    if let Some(at) = own {
        reader.mistake(at, "a paper's scenarios and anchors stand in its claims.toml", None);
    }
    reader.done(unsaid)
}

/// Reads a file that stands for itself: it names its scenario and has the measured values.
///
/// # Errors
/// As [`read_unsaid`].
pub fn read_measured(text: &str) -> Result<Unsaid, Vec<Mistake>> {
    let (unsaid, mut reader, _) = read(text)?;
    match &unsaid.measured {
        None => reader.mistake(0..0, "`scenario` is missing", Some("name the file of a scenario".into())),
        Some(measured) if measured.anchors.is_empty() => {
            let help = "give one: [[anchor]] with `metric`, `of` and `measured`".to_owned();
            reader.mistake(0..0, "there is no anchor: nothing chooses among the draws", Some(help));
        }
        Some(_) => {}
    }
    reader.done(unsaid)
}

type Part = (Unsaid, Reader, Option<std::ops::Range<usize>>);

fn read(text: &str) -> Result<Part, Vec<Mistake>> {
    let file: UnsaidText = toml::from_str(text).map_err(|error| {
        vec![Mistake { at: error.span().unwrap_or(0..0), message: error.message().to_owned(), help: None }]
    })?;
    let mut reader = Reader::default();
    let extent = reader.extent(&file);
    let own = file.scenario.as_ref().map(Spanned::span).or(file.anchor.first().map(|anchor| anchor.metric.span()));
    if file.unsaid.is_empty() {
        reader.mistake(0..0, "nothing is unknown", Some("give one: [unsaid.NAME] with `key`, a prior and `why`".into()));
    }
    if let Some((name, _)) = file.unsaid.get_index(MOST_UNKNOWNS) {
        reader.mistake(name.span(), format!("there may be at most {MOST_UNKNOWNS} unknowns"), None);
    }
    let mut unknowns = Vec::new();
    for (name, text) in file.unsaid {
        let unknown = reader.unsaid(&name, text);
        unknown.iter().for_each(|unknown| reader.check_stated(unknown, &file.stated));
        unknowns.extend(unknown);
    }
    let measured = reader.measured(file.scenario, file.anchor);
    let proposed = file.proposed.into_iter().map(Spanned::into_inner).collect();
    Ok((Unsaid { extent, unknowns, left_out: file.left_out, proposed, measured }, reader, own))
}

impl Reader {
    fn done<T>(self, value: T) -> Result<T, Vec<Mistake>> {
        if self.mistakes.is_empty() { Ok(value) } else { Err(self.mistakes) }
    }

    fn extent(&mut self, file: &UnsaidText) -> Extent {
        let mut number = |word: &str, given: &Option<Spanned<u32>>, usual: u32, (least, most): (u32, u32)| {
            let Some(given) = given else { return usual };
            if !(least..=most).contains(given.get_ref()) {
                self.mistake(given.span(), format!("`{word}` is from {least} to {most}"), None);
            }
            *given.get_ref()
        };
        let draws = number("draws", &file.draws, DRAWS, (1, MOST_DRAWS / 2));
        Extent {
            draws,
            keep: number("keep", &file.keep, KEEP.min(draws), (1, draws)),
            repeat: number("repeat", &file.repeat, 1, (1, 100)),
            rounds: number("rounds", &file.rounds, 1, (1, 2)),
            seed: file.seed.unwrap_or(1),
        }
    }

    fn measured(&mut self, scenario: Option<SpannedText>, anchors: Vec<AnchorText>) -> Option<Measured> {
        let mut names: Vec<&SpannedText> = Vec::new();
        for anchor in &anchors {
            let is_row = !RowKind::of(anchor.of.get_ref()).is_single();
            if is_row && !names.iter().any(|name| name.get_ref() == anchor.of.get_ref()) {
                names.push(&anchor.of);
            }
        }
        let rows = self.rows(&names.into_iter().cloned().collect::<Vec<_>>());
        let anchors = anchors.into_iter().filter_map(|anchor| self.anchor_of(anchor)).collect();
        Some(Measured { scenario: scenario?.into_inner(), rows, anchors })
    }

    fn anchor_of(&mut self, text: AnchorText) -> Option<Claim> {
        let measured = *text.measured.get_ref();
        if !(measured > 0.0 && measured.is_finite()) {
            let help = "the distance is one of logarithms".to_owned();
            self.mistake(text.measured.span(), "a measured value is above zero", Some(help));
            return None;
        }
        let of = Side { row: text.of.get_ref().clone(), metric: None, at: Vec::new(), per: None };
        let metric = self.metric_or_ratio(text.metric.span(), text.metric.get_ref());
        Some(Claim {
            text: text.text.unwrap_or_else(|| format!("{metric} of {}", of.row)),
            place: String::new(),
            unit: self.unit(text.unit.as_ref()),
            metric,
            at: text.at.into_iter().collect(),
            kind: Kind::Value { of, published: measured, band: None },
            standing: Standing::Testable,
            headline: false,
            uncertainty: None,
            post_hoc: None,
            reason: None,
        })
    }
}
