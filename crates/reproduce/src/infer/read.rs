//! `unsaid.toml` of a paper, or a user's file: what is open, with priors, and what was measured.

use super::read_prior::{Stated, UnknownText};
use super::unknown::Unknown;
use crate::claim::{Claim, Kind, Side, Standing};
use crate::item_row::ItemRow;
use crate::paper::{Item, Paper};
use crate::read::{Mistake, Reader, Settings, SpannedText};
use anabranch_run::RowKind;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// How much is drawn, run and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The unknowns.
    pub unknowns: Vec<Unknown>,
    /// Items of the paper whose anchors do not count, and why: another item has the same data.
    left_out: IndexMap<SpannedText, String>,
    /// Schedulers that the paper proposes: none of their values may choose a testbed.
    proposed: Vec<SpannedText>,
    /// The measurements of a user's file.
    pub measured: Option<Measured>,
}

/// The measurements of a user's file.
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
    left_out: IndexMap<SpannedText, String>,
    /// Keys that the source states, with the place: no unknown may set them.
    #[serde(default)]
    stated: IndexMap<String, Stated>,
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
/// The most draws of a round: two rounds have half of the sequence's 2¹⁶ each.
pub const MOST_DRAWS: u32 = 1 << 15;
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

/// Reads a user's file, which names its scenario and has the measured values.
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
        reader.mistake(
            0..0,
            "nothing is unknown",
            Some("give one: [unsaid.NAME] with `key`, a prior and `why`".into()),
        );
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
    let (left_out, proposed) = (file.left_out, file.proposed);
    Ok((Unsaid { extent, unknowns, left_out, proposed, measured }, reader, own))
}

impl Unsaid {
    /// The items of a paper in virtual time, with the anchors that count.
    ///
    /// # Errors
    /// Names that the paper does not have, and anchors that are values of what it proposes.
    pub fn items(&self, paper: &Paper) -> Result<Vec<Item>, Vec<Mistake>> {
        let mut reader = Reader::default();
        let ids: Vec<&str> = paper.items.iter().map(|item| item.id.as_str()).collect();
        for id in self.left_out.keys().filter(|id| !ids.contains(&id.get_ref().as_str())) {
            reader.unknown(id.span(), "item of the paper", id.get_ref(), &ids);
        }
        let rows: Vec<&str> = paper.items.iter().flat_map(|item| &item.rows).map(|row| row.name.as_str()).collect();
        for word in &self.proposed {
            let anchored =
                |item: &&Item| item.anchors.iter().any(|anchor| anchor.rows().contains(&word.get_ref().as_str()));
            match paper.items.iter().find(anchored) {
                _ if !rows.contains(&word.get_ref().as_str()) => {
                    reader.unknown(word.span(), "scheduler of the paper", word.get_ref(), &rows);
                }
                None => {}
                Some(item) => {
                    let message =
                        format!("`{}` has an anchor of `{}`, which the paper proposes", item.id, word.get_ref());
                    let help = "the paper's own scheduler must not choose the testbeds that judge it".to_owned();
                    reader.mistake(word.span(), message, Some(help));
                }
            }
        }
        let counted = |item: &Item| {
            let left_out = self.left_out.keys().any(|id| *id.get_ref() == item.id);
            let anchors = if left_out { Vec::new() } else { item.anchors.clone() };
            Item { anchors, ..item.clone() }
        };
        reader.done(paper.items.iter().filter(|item| !item.live).map(counted).collect())
    }
}

impl Measured {
    /// The measurements as an item without claims.
    pub fn item(&self) -> Item {
        Item {
            id: "measured".into(),
            title: "Measured values".into(),
            place: String::new(),
            scenario: self.scenario.clone(),
            rows: self.rows.clone(),
            baselines: false,
            curves: None,
            live: false,
            variants: Vec::new(),
            quick: Vec::new(),
            packets: Vec::new(),
            figures: Vec::new(),
            anchors: self.anchors.clone(),
            claims: Vec::new(),
            readings: Vec::new(),
            findings: Vec::new(),
        }
    }
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
        let draws = number("draws", &file.draws, DRAWS, (1, MOST_DRAWS));
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
