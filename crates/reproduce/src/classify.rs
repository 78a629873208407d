//! Claims in all their readings → one class each.

use crate::claim::{Claim, Kind, Standing, half_to_twice, is_about_equal, is_sign_alone};
use crate::judge::{SIGNIFICANT, excludes_zero};
use crate::outcome::{Class, ItemOutcome, Judged, PaperOutcome, Stand, Tested, Verdict};
use crate::paper::{Item, Paper};
use anabranch_run::Estimate;

/// The number of standard errors that a difference must have to be found in 80 of 100 experiments at the 5 % level:
/// 1.96 + 0.84.
const RESOLVED: f64 = 2.8;
/// Half-width of a 95 % interval, in standard errors.
const HALF_WIDTH: f64 = 1.96;
/// How near a value must be where the claims commit to no band.
const NEAR: f64 = 0.25;

/// Gives every claim of the items that were run its class.
pub(crate) fn classify(paper: &Paper, outcome: &mut PaperOutcome) {
    let of = |item: &ItemOutcome| paper.items.iter().find(|known| known.id == item.id);
    let mut ps: Vec<f64> = Vec::new();
    for item in &outcome.items {
        let Some(known) = of(item) else { continue };
        let contrasts = known.claims.iter().enumerate().filter(|(_, claim)| claim.is_contrast());
        ps.extend(contrasts.filter_map(|(n, _)| worst(item, n)));
    }
    outcome.p_limit = limit(ps, paper.contrasts());
    for item in &mut outcome.items {
        if let Some(known) = of(item) {
            item_classes(known, item, outcome.p_limit, paper.repetitions);
        }
    }
}

/// The greatest p of a claim over the admissible readings: it is significant under all if that is.
fn worst(item: &ItemOutcome, n: usize) -> Option<f64> {
    let admissible = item.readings.iter().filter(|reading| reading.admissible);
    admissible.filter_map(|reading| reading.claims.get(n)?.p).reduce(f64::max)
}

/// The greatest p that is significant among `tests`, of which those not run have none (Benjamini and Hochberg 1995). Where
/// none of them is, one that is as small as the least would have to be.
fn limit(mut ps: Vec<f64>, tests: usize) -> f64 {
    ps.sort_by(f64::total_cmp);
    let share = |n: usize| SIGNIFICANT * (n + 1) as f64 / tests.max(1) as f64;
    ps.iter().enumerate().rev().find(|(n, p)| **p <= share(*n)).map_or(share(0), |(_, p)| *p)
}

fn item_classes(item: &Item, outcome: &mut ItemOutcome, p_limit: f64, repetitions: Option<u32>) {
    for reading in &mut outcome.readings {
        for (claim, tested) in item.claims.iter().zip(&mut reading.claims) {
            tested.stand = stand(claim, tested, p_limit);
        }
    }
    let scatters: Vec<Option<f64>> =
        outcome.nearest().map_or_else(Vec::new, |reading| reading.claims.iter().map(|tested| tested.scatter).collect());
    for (n, claim) in item.claims.iter().enumerate() {
        let stands = || outcome.readings.iter().filter_map(|r| Some((r, r.claims.get(n)?.stand)));
        let under = stands().filter(|(_, stand)| *stand <= Stand::InDirection).map(|(reading, _)| reading.name.clone());
        let under: Vec<String> = under.collect();
        let headline: Vec<Stand> = stands().filter(|(reading, _)| reading.admissible).map(|(_, stand)| stand).collect();
        let scatter = scatters.get(n).copied().flatten();
        let judged = &mut outcome.claims[n];
        judged.class = class(claim, judged, &headline, under.is_empty(), (scatter, repetitions));
        judged.under = under;
        if matches!(judged.class, Class::Direction | Class::UnderSome | Class::UnderNone) && judged.reason.is_none() {
            let shown = outcome.findings.iter().find(|finding| Some(&finding.id) == claim.reason.as_ref());
            judged.reason = shown.filter(|finding| finding.holds()).map(|finding| finding.text.clone());
        }
    }
}

/// The decision table: the first row that applies.
fn class(
    claim: &Claim,
    judged: &Judged,
    headline: &[Stand],
    nowhere: bool,
    (scatter, repetitions): (Option<f64>, Option<u32>),
) -> Class {
    match claim.standing {
        Standing::Open(_) => return Class::Open,
        Standing::Contradicted(_) => return Class::Contradicted,
        Standing::Trivial(_) | Standing::Duplicate(_) => return Class::Trivial,
        Standing::Testable => {}
    }
    if judged.verdict == Verdict::NotRun {
        return Class::NotRun;
    }
    if is_below_resolution(claim, scatter, repetitions) {
        return Class::BelowResolution;
    }
    match headline.iter().max() {
        Some(Stand::InSize) => Class::InSize,
        Some(Stand::InDirection) => Class::Direction,
        _ if nowhere => Class::UnderNone,
        _ => Class::UnderSome,
    }
}

/// Whether a published difference is too small for its own experiment. The standard error is that of the paper's interval, or else
/// follows from how ours varies, for as many repetitions as theirs without common seeds.
pub(crate) fn is_below_resolution(claim: &Claim, scatter: Option<f64>, repetitions: Option<u32>) -> bool {
    let Kind::Change { published: Some(published), .. } = claim.kind else { return false };
    // Of a quotient as great as the published one: where ours is far from it, its own error would hide a miss.
    let ours = || Some((1.0 + published / 100.0) * scatter? / f64::from(repetitions?).sqrt());
    let error = claim.uncertainty.map(|half| half / HALF_WIDTH).or_else(ours);
    published != 0.0 && error.is_some_and(|error| published.abs() < RESOLVED * error)
}

/// Whether a claim holds in a reading.
pub(crate) fn stand(claim: &Claim, tested: &Tested, p_limit: f64) -> Stand {
    if claim.standing != Standing::Testable || tested.verdict == Verdict::NotRun {
        return Stand::NotTested;
    }
    match &claim.kind {
        Kind::Order { .. } if tested.verdict == Verdict::Reproduces => Stand::InDirection,
        Kind::Order { .. } => Stand::No,
        Kind::Change { published, band, .. } => match &tested.estimate {
            Some(estimate) => change(claim, tested.p, p_limit, (*published, *band, estimate)),
            None => Stand::No,
        },
        Kind::Value { published, band, .. } => {
            let near = (published - published.abs() * NEAR, published + published.abs() * NEAR);
            sized(claim, *published, band.unwrap_or(near), tested)
        }
        Kind::Model { published, band, .. }
        | Kind::Fit { published, band, .. }
        | Kind::Cycle { published, band, .. } => sized(claim, *published, *band, tested),
    }
}

fn sized(claim: &Claim, published: f64, band: (f64, f64), tested: &Tested) -> Stand {
    let near = tested.estimate.as_ref().is_some_and(|estimate| meets(claim, published, band, estimate));
    if near { Stand::InSize } else { Stand::No }
}

fn change(
    claim: &Claim,
    p: Option<f64>,
    p_limit: f64,
    (published, (low, high), estimate): (Option<f64>, (f64, f64), &Estimate),
) -> Stand {
    if is_about_equal((low, high)) {
        // The whole interval lies within the margin (two one-sided tests, Schuirmann 1987).
        let (from, to) = ends(estimate);
        return if from >= low && to <= high { Stand::InSize } else { Stand::No };
    }
    let expected = if high > 0.0 { estimate.mean > 0.0 } else { estimate.mean < 0.0 };
    let limit = if claim.is_contrast() { p_limit } else { SIGNIFICANT };
    if !expected || p.is_some_and(|p| p > limit) || !excludes_zero(estimate) {
        return Stand::No;
    }
    let band = match published {
        Some(published) if is_sign_alone((low, high)) => half_to_twice(published),
        _ => (low, high),
    };
    match published {
        Some(published) if meets(claim, published, band, estimate) => Stand::InSize,
        _ => Stand::InDirection,
    }
}

/// Ours meets what is published and its uncertainty; where none is published, our mean lies in the band.
fn meets(claim: &Claim, published: f64, (low, high): (f64, f64), estimate: &Estimate) -> bool {
    match claim.uncertainty {
        Some(half) => {
            let (from, to) = ends(estimate);
            from <= published + half && to >= published - half
        }
        None => (low..=high).contains(&estimate.mean),
    }
}

/// The interval, or the mean alone where nothing varies.
fn ends(estimate: &Estimate) -> (f64, f64) {
    (estimate.ci95_low.unwrap_or(estimate.mean), estimate.ci95_high.unwrap_or(estimate.mean))
}

impl PaperOutcome {
    /// The outcomes of the items of `paper`.
    pub fn new(paper: &Paper, items: Vec<ItemOutcome>) -> Self {
        let Paper { key, title, authors, venue, in_short, conclusion, claims_digest, .. } = paper.clone();
        let mut outcome = Self { key, title, authors, venue, in_short, conclusion, claims_digest, p_limit: 0.0, items };
        classify(paper, &mut outcome);
        outcome
    }
}
