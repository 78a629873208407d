//! A parameter that a paper or a testbed leaves open.

use super::prior::Prior;
use crate::item_row::{ItemRow, row_and_parameter};
use crate::read::Mistake;
use anabranch_scenario::{Code, Diagnostic, Override};
use std::ops::Range;

/// A parameter that is left open.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// A few words: `background`.
    pub name: String,
    /// The values that may be, and how likely they are.
    pub prior: Prior,
    /// Why it may be so, in a sentence.
    pub why: String,
    /// The items that it concerns; empty = all whose scenario has the key.
    pub items: Vec<String>,
    /// Text for a prior that was made wider when draws were known; it says which outcome led to it.
    pub widened: Option<String>,
    /// Where its prior stands in the file, in bytes.
    pub at: Range<usize>,
}

/// One draw: a position for each unknown, from 0 to below 1.
pub type Position = Vec<f64>;

/// Reads a scenario with some keys set, to see whether it can be.
pub type Try<'a> = dyn Fn(&[Override]) -> Result<(), Vec<Diagnostic>> + 'a;

/// An item in which unknowns are looked up.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The item's name.
    pub item: &'a str,
    /// Schedulers of the item.
    pub rows: &'a [ItemRow],
    /// Reads its scenario.
    pub read: &'a Try<'a>,
}

/// Why settings cannot be.
struct Refused {
    /// There is no such key, path, entry or row: the item is not concerned.
    absent: bool,
    message: String,
    help: Option<String>,
}

impl Subject<'_> {
    fn check(&self, set: &[Override]) -> Result<(), Refused> {
        let (rows, keys): (Vec<_>, Vec<_>) =
            set.iter().cloned().partition(|change| row_and_parameter(&change.key).is_some());
        for (name, _) in rows.iter().filter_map(|change| row_and_parameter(&change.key)) {
            if !self.rows.iter().any(|row| row.name == name) {
                let names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
                let help = (!names.is_empty()).then(|| format!("`{}` has {}", self.item, names.join(", ")));
                return Err(Refused { absent: true, message: format!("`{name}` is no row"), help });
            }
        }
        let refused = |wrong: Vec<Diagnostic>, absent: bool| {
            let first = wrong.into_iter().next();
            let (message, help) = first.map(|why| (why.message, why.help)).unwrap_or_default();
            Refused { absent, message, help }
        };
        for row in self.rows {
            row.with(&rows).map_err(|wrong| refused(wrong, false))?;
        }
        (self.read)(&keys).map_err(|wrong| {
            let absent = wrong.iter().all(is_absent);
            refused(wrong, absent)
        })
    }
}

/// The unknowns in one item: for each, the keys that its scenario has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// The item's name.
    pub item: String,
    keys: Vec<Vec<String>>,
}

impl Fitted {
    /// The settings of a draw in this scenario.
    pub fn settings(&self, unknowns: &[Unknown], position: &[f64]) -> Vec<Override> {
        let of = |((unknown, keys), position): ((&Unknown, &Vec<String>), &f64)| {
            let mut set = unknown.prior.set(*position);
            set.retain(|change| keys.contains(&change.key));
            set
        };
        unknowns.iter().zip(&self.keys).zip(position).flat_map(of).collect()
    }
}

/// Finds out which keys the scenario of each item has, and whether all values of the priors are possible in it.
///
/// # Errors
/// Every key that is in no scenario, and every value that a scenario refuses.
pub fn fit(unknowns: &[Unknown], items: &[Subject<'_>]) -> Result<Vec<Fitted>, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let mut fitted: Vec<Fitted> =
        items.iter().map(|subject| Fitted { item: subject.item.to_owned(), keys: Vec::new() }).collect();
    for unknown in unknowns {
        let wanted = |name: &str| unknown.items.is_empty() || unknown.items.iter().any(|own| own == name);
        let mut absent: Vec<(String, Refused)> = Vec::new();
        let mut found: Vec<String> = Vec::new();
        for (subject, fitted) in items.iter().zip(&mut fitted) {
            let keys =
                if wanted(subject.item) { keys_in(unknown, subject, &mut absent, &mut mistakes) } else { Vec::new() };
            found.extend(keys.iter().cloned());
            fitted.keys.push(keys);
        }
        absent.retain(|(key, _)| !found.contains(key));
        absent.dedup_by(|a, b| a.0 == b.0);
        mistakes.extend(absent.into_iter().map(|(key, why)| Mistake {
            at: unknown.at.clone(),
            message: format!("`{}`: no scenario has the key `{key}`: {}", unknown.name, why.message),
            help: why.help,
        }));
        if let Some(other) = unknown.items.iter().find(|own| !items.iter().any(|subject| *own == subject.item)) {
            let names: Vec<&str> = items.iter().map(|subject| subject.item).collect();
            mistakes.push(Mistake {
                at: unknown.at.clone(),
                message: format!("`{}`: there is no item `{other}`", unknown.name),
                help: Some(format!("there are {}", names.join(", "))),
            });
        }
    }
    if mistakes.is_empty() { Ok(fitted) } else { Err(mistakes) }
}

/// The keys of an unknown that a scenario has.
fn keys_in(
    unknown: &Unknown,
    subject: &Subject<'_>,
    absent: &mut Vec<(String, Refused)>,
    mistakes: &mut Vec<Mistake>,
) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for position in unknown.prior.extremes() {
        let set = unknown.prior.set(position);
        let mut own = Vec::new();
        for change in set {
            match subject.check(std::slice::from_ref(&change)) {
                Err(why) if why.absent => absent.push((change.key, why)),
                _ => own.push(change),
            }
        }
        // Together, as some keys need others.
        let said = |mistakes: &[Mistake], why: &str| {
            mistakes.iter().any(|other| other.at == unknown.at && other.message.ends_with(why))
        };
        if let Err(why) = subject.check(&own)
            && !said(mistakes, &why.message)
        {
            let text = unknown.prior.text(position);
            mistakes.push(Mistake {
                at: unknown.at.clone(),
                message: format!("`{}`: {text} cannot be: {}", unknown.name, why.message),
                help: why.help,
            });
        }
        own.retain(|change| !keys.contains(&change.key));
        keys.extend(own.into_iter().map(|change| change.key));
    }
    keys
}

/// A scenario without such a key, path or entry is not concerned.
fn is_absent(why: &Diagnostic) -> bool {
    matches!(why.code, Code::UnknownKey | Code::UnknownName)
}
