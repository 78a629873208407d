//! The values of a model's parameters by `--set` and `--sweep`.

use crate::failure::{Failure, word_report};
use anabranch_models::{Model, Parameter, Range, Unit, Values};
use anabranch_scenario::{Form, listed, nearest, si_number};
use miette::Report;
use std::ops::Range as Bytes;

/// The greatest number of rows: more than a plot needs.
pub const MOST: usize = 10_000;

/// The values of a model's parameters to answer for, one after the other.
pub struct Questions<'m> {
    /// The parameters that vary.
    pub swept: Vec<&'m Parameter>,
    /// At least one.
    pub values: Vec<Values<'m>>,
}

impl<'m> Questions<'m> {
    /// All errors are reported at once.
    pub fn read(model: &'m Model, set: &[String], sweep: &[String]) -> Result<Self, Failure> {
        let mut wrong = Vec::new();
        let mut swept: Vec<(&Parameter, Vec<f64>)> = Vec::new();
        let mut fixed = Values::new(model.parameters);
        for text in set {
            match assignment(model, text).and_then(|(p, at)| Ok((p, value(p, &text[at.clone()], text, at)?))) {
                Ok((parameter, value)) => drop(fixed.set(parameter.name, value)),
                Err(report) => wrong.push(report),
            }
        }
        for text in sweep {
            match assignment(model, text).and_then(|(parameter, at)| Ok((parameter, several(parameter, text, at)?))) {
                Ok((parameter, _)) if swept.iter().any(|(known, _)| known.name == parameter.name) => {
                    wrong.push(word_report(text, 0..parameter.name.len(), "is swept twice", "one --sweep a parameter"));
                }
                Ok(given) => swept.push(given),
                Err(report) => wrong.push(report),
            }
        }
        let rows = swept.iter().fold(1usize, |rows, (_, values)| rows.saturating_mul(values.len()));
        if rows > MOST {
            return Err(too_many());
        }
        if wrong.is_empty() { Ok(Self::product(fixed, &swept)) } else { Err(Failure::Unusable(wrong)) }
    }

    /// Every combination, the last parameter varying fastest.
    fn product(fixed: Values<'m>, swept: &[(&'m Parameter, Vec<f64>)]) -> Self {
        let mut all = vec![fixed];
        for (parameter, values) in swept {
            let with = |base: &Values<'m>, value: f64| {
                let mut values = base.clone();
                // It was checked above.
                let _ = values.set(parameter.name, value);
                values
            };
            all = all.iter().flat_map(|base| values.iter().map(move |value| with(base, *value))).collect();
        }
        Self { swept: swept.iter().map(|(parameter, _)| *parameter).collect(), values: all }
    }
}

/// The error of more than [`MOST`] rows.
pub fn too_many() -> Failure {
    let help = Some("give a larger STEP, or fewer sweeps".into());
    Failure::unusable("anabranch::cli::too_many", format!("more than {MOST} rows"), help)
}

/// The parameter that `KEY=…` names, and where its value stands.
fn assignment<'m>(model: &'m Model, text: &str) -> Result<(&'m Parameter, Bytes<usize>), Report> {
    let (key, _) = text.split_once('=').unwrap_or((text, ""));
    let found = model.parameters.iter().find(|parameter| parameter.name == key.trim());
    let Some(parameter) = found else {
        let names = model.parameters.iter().map(|parameter| parameter.name);
        let help = match nearest(key.trim(), names.clone()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("choose from {}", names.collect::<Vec<_>>().join(", ")),
        };
        return Err(word_report(text, 0..key.len(), &format!("is no parameter of `{}`", model.name), &help));
    };
    if key.len() == text.len() {
        return Err(word_report(text, 0..key.len(), "has no value", &format!("write {}=VALUE", parameter.name)));
    }
    Ok((parameter, key.len() + 1..text.len()))
}

/// The value `word`, in range; it stands at `at` in `text`.
fn value(parameter: &Parameter, word: &str, text: &str, at: Bytes<usize>) -> Result<f64, Report> {
    let through = if text[at.clone()] == *word { String::new() } else { format!("leads to {word}, which ") };
    let refuse = |label: &str, help: &str| Err(word_report(text, at.clone(), &(through.clone() + label), help));
    let value = match parameter.range {
        Range::Words(words) => match words.iter().position(|known| *known == word.trim()) {
            Some(index) => index as f64,
            None => {
                let help = nearest(word.trim(), words.iter().copied());
                let help = help.map_or(format!("choose from {}", words.join(", ")), |w| format!("did you mean `{w}`?"));
                return refuse("is unknown", &help);
            }
        },
        _ => match number(parameter.unit, word) {
            Ok(value) => value,
            Err(help) => return refuse("cannot be read", &help),
        },
    };
    match parameter.accepts(value) {
        true => Ok(value),
        false => refuse("is out of range", &format!("expected {}", parameter.expected())),
    }
}

/// A number in SI units, written as in scenario files.
fn number(unit: Unit, word: &str) -> Result<f64, String> {
    let word = word.trim();
    let without = |suffix: &str| si_number(&Form::Real { above: 0.0 }, word.strip_suffix(suffix).unwrap_or(word));
    match unit {
        Unit::Rate => si_number(&Form::Rate, word),
        Unit::Time => si_number(&Form::Duration { positive: false }, word),
        Unit::Probability => si_number(&Form::Probability, word),
        Unit::Packets => without("p"),
        Unit::Bytes => without("B"),
        Unit::Bdp => without("bdp"),
        Unit::None | Unit::Rounds => without(""),
    }
}

/// The values of a list or range at `at` in `text`.
fn several(parameter: &Parameter, text: &str, at: Bytes<usize>) -> Result<Vec<f64>, Report> {
    let inside = |place: Bytes<usize>| at.start + place.start..at.start + place.end;
    let values =
        listed(&text[at.clone()]).map_err(|fault| word_report(text, inside(fault.at), &fault.label, &fault.help))?;
    values.into_iter().map(|(place, word)| value(parameter, &word, text, inside(place))).collect()
}
