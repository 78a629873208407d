//! An entry of `[unsaid]` → an unknown with its prior.

use super::prior::{Choice, ORIGIN, Prior, Range, Spacing};
use super::unknown::Unknown;
use crate::read::{Reader, Settings, SpannedText};
use anabranch_scenario::Override;
use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnknownText {
    why: String,
    key: Option<Keys>,
    list: Option<Spanned<Vec<Scalar>>>,
    choices: Option<Spanned<IndexMap<String, Settings>>>,
    range: Option<Spanned<[Scalar; 2]>>,
    scale: Option<SpannedText>,
    #[serde(default)]
    items: Vec<String>,
    widened: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Keys {
    One(String),
    Several(Vec<String>),
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Whole(i64),
    Real(f64),
    Truth(bool),
    Text(String),
}

/// The place where the source states a key, perhaps for some items alone.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Stated {
    Everywhere(String),
    In { place: String, items: Vec<String> },
}

impl Stated {
    fn parts(&self) -> (&str, &[String]) {
        match self {
            Self::Everywhere(place) => (place, &[]),
            Self::In { place, items } => (place, items),
        }
    }
}

/// How a prior is written.
const PRIORS: &str = "give `key` with `list = [A, B]`, or with `range = [A, B]` and `scale`; or `choices`";

impl Reader {
    pub(super) fn unsaid(&mut self, name: &SpannedText, text: UnknownText) -> Option<Unknown> {
        let mut refuse = |why: &str| {
            self.mistake(name.span(), format!("`{}` {why}", name.get_ref()), Some(PRIORS.to_owned()));
            None
        };
        if text.why.trim().is_empty() {
            return refuse("does not say why: `why` is empty");
        }
        let keys = match text.key {
            Some(Keys::One(key)) => vec![key],
            Some(Keys::Several(keys)) => keys,
            None => Vec::new(),
        };
        if text.scale.is_some() && text.range.is_none() {
            return refuse("has a scale, but no range");
        }
        let (prior, at) = match (text.list, text.range, text.choices, keys.is_empty()) {
            (Some(list), None, None, false) => (self.list(&list, &keys), list.span()),
            (None, Some(range), None, false) => (self.range(&range, keys, text.scale.as_ref()), range.span()),
            (None, None, Some(choices), true) => (self.choices(&choices), choices.span()),
            _ => return refuse("needs one prior"),
        };
        let (items, widened) = (text.items, text.widened);
        Some(Unknown { name: name.get_ref().clone(), prior: prior?, why: text.why, items, widened, at })
    }

    fn list(&mut self, list: &Spanned<Vec<Scalar>>, keys: &[String]) -> Option<Prior> {
        let of = |value: &Scalar| {
            let name = value.text();
            Choice { set: keys.iter().map(|key| Override::new(ORIGIN, key, &name)).collect(), name }
        };
        self.choice(list.get_ref().iter().map(of).collect(), list.span())
    }

    fn choices(&mut self, choices: &Spanned<IndexMap<String, Settings>>) -> Option<Prior> {
        let of = |(name, set): (&String, &Settings)| Choice {
            name: name.clone(),
            set: set.iter().map(|(key, value)| Override::new(ORIGIN, key, value)).collect(),
        };
        self.choice(choices.get_ref().iter().map(of).collect(), choices.span())
    }

    fn choice(&mut self, choices: Vec<Choice>, at: std::ops::Range<usize>) -> Option<Prior> {
        if choices.len() < 2 {
            self.mistake(at, "one value leaves nothing open", Some("give at least two".into()));
            return None;
        }
        Some(Prior::List(choices))
    }

    fn range(&mut self, range: &Spanned<[Scalar; 2]>, keys: Vec<String>, scale: Option<&SpannedText>) -> Option<Prior> {
        let spacing = match scale.map(|word| (word, word.get_ref().as_str())) {
            None | Some((_, "linear")) => Spacing::Linear,
            Some((_, "log")) => Spacing::Log,
            Some((word, other)) => {
                self.unknown(word.span(), "scale", other, &["linear", "log"]);
                return None;
            }
        };
        let [low, high] = range.get_ref().each_ref().map(Scalar::number);
        let why = match (&low, &high) {
            (Some((low, unit, _)), Some((high, its, _))) if unit == its => match (low < high, *low > 0.0) {
                (false, _) => "the first end of a range is below the second",
                (true, false) if spacing == Spacing::Log => "a logarithmic scale begins above zero",
                _ => "",
            },
            _ => "the ends of a range are two numbers with the same unit",
        };
        if !why.is_empty() {
            self.mistake(range.span(), why, Some("as in range = [\"5ms\", \"80ms\"]".into()));
            return None;
        }
        let ((low, unit, whole), (high, _, both)) = (low?, high?);
        Some(Prior::Range(Range { keys, low, high, unit, whole: whole && both, spacing }))
    }

    /// Refuses an unknown that sets what the source states.
    pub(super) fn check_stated(&mut self, unknown: &Unknown, stated: &IndexMap<String, Stated>) {
        let extremes = unknown.prior.extremes();
        let set: Vec<Override> = extremes.into_iter().flat_map(|position| unknown.prior.set(position)).collect();
        let concerns = |items: &[String]| {
            items.is_empty() || unknown.items.is_empty() || items.iter().any(|item| unknown.items.contains(item))
        };
        for (key, (place, items)) in stated.iter().map(|(key, stated)| (key, stated.parts())) {
            let within = |own: &str| {
                own.strip_prefix(key.as_str()).is_some_and(|rest| matches!(rest.chars().next(), None | Some('.')))
            };
            if let Some(own) = set.iter().find(|change| within(&change.key)).filter(|_| concerns(items)) {
                let message = format!("`{}` contradicts the source, which states `{key}`: {place}", own.key);
                let help = "what is stated is no unknown: leave it out, or correct [stated]".to_owned();
                self.mistake(unknown.at.clone(), message, Some(help));
            }
        }
    }
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Number, unit, and whether only whole numbers are meant: counts, bytes and packets have no parts.
    fn number(&self) -> Option<(f64, String, bool)> {
        let text = match self {
            Self::Whole(number) => return Some((*number as f64, String::new(), true)),
            Self::Real(number) => return number.is_finite().then(|| (*number, String::new(), false)),
            Self::Truth(_) => return None,
            Self::Text(text) => text.trim(),
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        Some((number.parse().ok()?, unit.to_owned(), matches!(unit, "B" | "KB" | "KiB" | "p")))
    }
}
