//! Mistakes in a scenario: the place, the reason, and the remedy.

use crate::text::{LONG_TOKEN, Text, clipped};
use miette::{LabeledSpan, SourceCode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::ops::Range;
use std::sync::Arc;

/// A kind of mistake. Stable: scripts and the Python exceptions are named after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// Not TOML.
    Syntax,
    /// A key that does not exist.
    UnknownKey,
    /// A required key is absent.
    MissingKey,
    /// A value of the wrong TOML type, such as a number in place of a string.
    WrongType,
    /// A quantity that is malformed, or has no unit, or one that does not exist or is ambiguous.
    WrongUnit,
    /// Negative, zero, too large, or otherwise impossible.
    ImpossibleValue,
    /// A word that is not among the choices.
    UnknownWord,
    /// A scheduler that does not exist.
    UnknownScheduler,
    /// A congestion control that does not exist.
    UnknownCongestion,
    /// A path or link that does not exist.
    UnknownName,
    /// Two paths or links with the same name.
    DuplicateName,
    /// Two keys that exclude each other.
    Conflict,
    /// Planned, but not in this version.
    NotAvailable,
    /// A file that cannot be read.
    UnreadableFile,
    /// A capacity trace that does not parse.
    BadTrace,
    /// There are more mistakes than the limit of messages. It comes last, without a place.
    MoreMistakes,
}

impl Code {
    /// All.
    pub const ALL: [Code; 16] = [
        Code::Syntax,
        Code::UnknownKey,
        Code::MissingKey,
        Code::WrongType,
        Code::WrongUnit,
        Code::ImpossibleValue,
        Code::UnknownWord,
        Code::UnknownScheduler,
        Code::UnknownCongestion,
        Code::UnknownName,
        Code::DuplicateName,
        Code::Conflict,
        Code::NotAvailable,
        Code::UnreadableFile,
        Code::BadTrace,
        Code::MoreMistakes,
    ];

    /// As users see it: `anabranch::scenario::unknown_key`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::Syntax => "anabranch::scenario::syntax",
            Code::UnknownKey => "anabranch::scenario::unknown_key",
            Code::MissingKey => "anabranch::scenario::missing_key",
            Code::WrongType => "anabranch::scenario::wrong_type",
            Code::WrongUnit => "anabranch::scenario::wrong_unit",
            Code::ImpossibleValue => "anabranch::scenario::impossible_value",
            Code::UnknownWord => "anabranch::scenario::unknown_word",
            Code::UnknownScheduler => "anabranch::scenario::unknown_scheduler",
            Code::UnknownCongestion => "anabranch::scenario::unknown_congestion",
            Code::UnknownName => "anabranch::scenario::unknown_name",
            Code::DuplicateName => "anabranch::scenario::duplicate_name",
            Code::Conflict => "anabranch::scenario::conflict",
            Code::NotAvailable => "anabranch::scenario::not_available",
            Code::UnreadableFile => "anabranch::scenario::unreadable_file",
            Code::BadTrace => "anabranch::scenario::bad_trace",
            Code::MoreMistakes => "anabranch::scenario::more_mistakes",
        }
    }
}

/// Most mistakes of one kind that are shown each; of more, the first is.
const ALIKE: usize = 20;

/// The first alone of each kind that has very many mistakes, and all others, in their order.
pub fn without_crowds<T, K: Ord>(mut all: Vec<T>, kind: impl Fn(&T) -> K) -> Vec<T> {
    let mut counts = BTreeMap::new();
    all.iter().for_each(|one| *counts.entry(kind(one)).or_insert(0) += 1);
    let mut seen = BTreeSet::new();
    all.retain(|one| counts[&kind(one)] <= ALIKE || seen.insert(kind(one)));
    all
}

/// The longest message or help text, in bytes.
const LONG_MESSAGE: usize = 300;
const LONG_HELP: usize = 1500;

/// One mistake in a scenario. A [`miette::Diagnostic`], so that any of miette's handlers prints it.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Kind of the mistake.
    pub code: Code,
    /// The mistake, in one line.
    pub message: String,
    /// The label at the underlined token.
    pub label: String,
    /// The remedy.
    pub help: Option<String>,
    /// The token, in bytes of its source.
    pub at: Range<usize>,
    source: Arc<Text>,
}

impl Diagnostic {
    pub(crate) fn new(code: Code, source: Arc<Text>, at: Range<usize>, message: String) -> Self {
        let message = clipped(message, LONG_MESSAGE);
        Self { code, message, label: "here".into(), help: None, at, source }
    }

    /// Sets the label at the token.
    pub(crate) fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = clipped(label.into(), LONG_MESSAGE);
        self
    }

    /// Sets the remedy.
    pub(crate) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(clipped(help.into(), LONG_HELP));
        self
    }

    /// The name of the file or option that contains the mistake.
    pub fn source_name(&self) -> &str {
        self.source.name()
    }
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.code.as_str()))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.code == Code::MoreMistakes {
            return None;
        }
        let end = self.at.end.min(self.source.text().ceil_char_boundary(self.at.start + LONG_TOKEN));
        let label = LabeledSpan::new_with_span(Some(self.label.clone()), self.at.start..end);
        Some(Box::new(std::iter::once(label)))
    }
}
