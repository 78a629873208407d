//! A report as values. Every type can be read from JSON, so that a results directory may hold a whole report.

use crate::chart::Chart;
use crate::picture::Picture;
use crate::table::Table;
use anabranch_reproduce::Class;
use serde::{Deserialize, Serialize};

/// A report: the verdicts first, then sections, then where it all came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// A line below it.
    pub subtitle: String,
    /// The answer in sentences, the first the most important; drawn large, before all else.
    pub answer: Vec<String>,
    /// The program.
    pub made_by: MadeBy,
    /// `(key, value)`: how the figures came about.
    pub settings: Vec<(String, String)>,
    /// Seeds of all runs.
    pub seeds: Vec<u64>,
    /// `(name, text)` of each scenario.
    pub scenario_texts: Vec<(String, String)>,
    /// Every scheduler's name in the order of the registry, from which each gets the style that it has in all reports.
    pub schedulers: Vec<String>,
    /// Claims and what became of them.
    pub verdicts: Vec<Verdict>,
    /// The body.
    pub sections: Vec<Section>,
    /// Packets of each timeline that the page shows; unless given, as many as a browser draws fluently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<usize>,
}

/// Which program made the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MadeBy {
    /// Version of the program.
    pub version: String,
    /// The git commit it was built from, if known.
    pub git_commit: Option<String>,
}

/// One published claim beside what we measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the item, unique in a report.
    pub item: String,
    /// The claim.
    pub claim: String,
    /// Where: `Table III`.
    pub place: String,
    /// The published value.
    pub published: String,
    /// Ours, with interval and number of runs.
    pub ours: String,
    /// Class of the verdict.
    pub class: Class,
    /// Why, above all where they differ.
    pub reason: String,
}

/// A part of the body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Section {
    /// Letters, digits and `-`: names the section in links and its tables' files.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Paragraphs.
    pub about: Vec<String>,
    /// Charts.
    pub figures: Vec<Figure>,
    /// Drawn beforehand.
    pub pictures: Vec<Picture>,
    /// Tables.
    pub tables: Vec<Table>,
    /// [`Verdict::item`] of the verdicts that are shown here, not with the others at the top.
    pub verdicts: Vec<String>,
}

/// A chart with its title and caption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// A description, in a sentence or two.
    #[serde(default)]
    pub caption: String,
    /// Heading of the figures from this one on, until another one has another; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Shown only on request: for charts that are rarely read.
    #[serde(default)]
    pub folded: bool,
    /// The drawing.
    pub chart: Chart,
}
