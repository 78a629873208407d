//! Pairs of rows, of which orders and changes consist, and how many results agree with what is published.

use crate::claim::is_about_equal;
use crate::outcome::{Class, ItemOutcome, Judged, PaperOutcome};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Add;

/// A pair is as published if it is in this share of the resamples.
pub(crate) const CONFIDENT: f64 = 0.95;

/// Two rows of an order, of which the paper has one before the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The row that is better as published.
    pub better: String,
    /// The other row.
    pub worse: String,
    /// Share of resamples of the seeds in which it is.
    pub share: f64,
}

impl Pair {
    /// The rows are as published, as sure as the seeds say.
    pub fn agrees(&self) -> bool {
        self.share >= CONFIDENT
    }
}

/// How many of how many results agree with what is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Those that agree.
    pub agree: usize,
    /// All.
    pub of: usize,
}

impl Agreement {
    pub(crate) fn one(agrees: bool) -> Self {
        Self { agree: usize::from(agrees), of: 1 }
    }

    /// Agreement of the pairs of one order in one reading.
    pub fn of_pairs(pairs: &[Pair]) -> Self {
        Self { agree: pairs.iter().filter(|pair| pair.agrees()).count(), of: pairs.len() }
    }
}

impl Add for Agreement {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { agree: self.agree + other.agree, of: self.of + other.of }
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.agree, self.of)
    }
}

/// Claims that compare schedulers, and that runs were to confirm.
fn tested(claim: &Judged) -> bool {
    let decided = [Class::InSize, Class::Direction, Class::UnderSome, Class::UnderNone];
    claim.contrast && decided.contains(&claim.class)
}

/// The pairs of the `n`th claim: those of an order, or the one of a change in a direction.
fn pairs(item: &ItemOutcome, n: usize) -> Agreement {
    let claim = &item.claims[n];
    if claim.pairs.is_empty() {
        let directed = claim.band.is_some_and(|band| !is_about_equal(band));
        let agrees = matches!(claim.class, Class::InSize | Class::Direction);
        return if directed { Agreement::one(agrees) } else { Agreement::default() };
    }
    let admissible: Vec<&[Pair]> = item
        .judged_readings()
        .filter(|reading| reading.admissible)
        .map(|reading| reading.claims[n].pairs.as_slice())
        .collect();
    let agrees = |place: usize| admissible.iter().all(|pairs| pairs.get(place).is_some_and(Pair::agrees));
    (0..claim.pairs.len()).map(|place| Agreement::one(agrees(place))).fold(Agreement::default(), Agreement::add)
}

impl PaperOutcome {
    /// Pairs of rows in all claims on schedulers that were tested, an order of n rows being n(n−1)/2 of them: how many are as published
    /// under all admissible readings.
    pub fn pairs(&self) -> Agreement {
        let of = |item: &ItemOutcome| {
            let claims = (0..item.claims.len()).filter(|n| tested(&item.claims[*n]));
            claims.map(|n| pairs(item, n)).fold(Agreement::default(), Agreement::add)
        };
        self.items.iter().map(of).fold(Agreement::default(), Agreement::add)
    }

    /// Published sizes in all claims on schedulers that were tested: how many ours agrees with under all admissible readings.
    pub fn sizes(&self) -> Agreement {
        let sized = self.claims().filter(|claim| tested(claim) && claim.figure.is_some());
        sized.map(|claim| Agreement::one(claim.class == Class::InSize)).fold(Agreement::default(), Agreement::add)
    }
}
