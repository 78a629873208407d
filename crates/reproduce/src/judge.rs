//! Claims and runs → verdicts.

use crate::assessment::{Assessment, NoValue, decimals, interval, within};
use crate::claim::{Claim, Kind, Side, Standing, Unit, is_about_equal};
use crate::estimate::{Order, RelativeChange};
use crate::item_row::ItemRow;
use crate::outcome::{Class, Judged, Verdict};
use crate::pair::{Agreement, CONFIDENT, Pair};
use crate::samples::Samples;
use crate::theory;
use anabranch_metrics::{Better, SampleStatistics, quantile};
use anabranch_run::{CellValues, Estimate, RunRecord};

/// A difference is significant if chance alone gives one as large no more often than this.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// Compares each claim with the runs of an item. `rows` are the item's; those of `instead`, if there are any, take
/// their place.
pub fn judge(claims: &[Claim], runs: &[RunRecord], rows: &[ItemRow], instead: &[ItemRow]) -> Vec<Judged> {
    let samples = Samples::new(runs, rows, instead);
    claims.iter().map(|claim| judged(claim, &samples)).collect()
}

fn judged(claim: &Claim, samples: &Samples<'_>) -> Judged {
    let (found, figure, band) = match &claim.kind {
        Kind::Value { of, published, band } => (value(claim, of, *published, *band, samples), Some(*published), *band),
        Kind::Change { of, against, published, band, spread } => {
            (change(claim, (of, against), *band, *spread, samples), *published, Some(*band))
        }
        Kind::Model { by, published, band } => {
            (theory::model(claim, by, (*published, *band)), Some(*published), Some(*band))
        }
        Kind::Fit { of, to, points, measured, published, band } => {
            let found = theory::fit(claim, of, to, (points, measured), *band, samples);
            (found, Some(*published), Some(*band))
        }
        Kind::Cycle { of, statistic, published, band } => {
            (theory::cycle(claim, of, statistic, (*published, *band), samples), Some(*published), Some(*band))
        }
        Kind::Order { rows, more } => (order(claim, rows, *more, samples), None, None),
    };
    let mut found = found.unwrap_or_else(Assessment::nothing);
    if let Standing::Open(_) = &claim.standing {
        found.verdict = Verdict::NotSpecified;
    }
    Judged {
        text: claim.text.clone(),
        named: named(claim, samples),
        place: claim.place.clone(),
        metric: claim.metric.clone(),
        unit: unit_of(claim).into(),
        scale: claim.unit.scale,
        published: published(claim),
        figure,
        of: owner(claim, samples),
        ours: found.ours,
        estimate: found.estimate,
        p: found.p,
        scatter: found.scatter,
        pairs: found.pairs,
        band,
        verdict: found.verdict,
        contrast: claim.is_contrast(),
        headline: claim.headline,
        class: Class::NotRun,
        under: Vec::new(),
        post_hoc: claim.post_hoc.clone(),
        finding: claim.reason.clone(),
        reason: said(&claim.standing).or(found.reason),
    }
}

/// Why it is not to be tested.
fn said(standing: &Standing) -> Option<String> {
    match standing {
        Standing::Testable => None,
        Standing::Open(why) | Standing::Contradicted(why) | Standing::Trivial(why) => Some(why.clone()),
        Standing::Duplicate(of) => Some(format!("the same datum as: {of}")),
    }
}

/// Metric and rows: `goodput_bps of blest+or against minrtt+pr`.
fn named(claim: &Claim, samples: &Samples<'_>) -> String {
    let side = |side: &Side| {
        let at: Vec<&str> = claim.at.iter().chain(&side.at).map(|(_, value)| value.as_str()).collect();
        let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(", ")) };
        format!("{}{at}", samples.name(&side.row))
    };
    let metric = |side: &Side| side.metric.clone().unwrap_or_else(|| claim.metric.clone());
    match &claim.kind {
        Kind::Change { of, against, .. } => format!("{} of {} against {}", metric(of), side(of), side(against)),
        Kind::Value { of, .. } | Kind::Fit { of, .. } | Kind::Cycle { of, .. } => {
            format!("{} of {}", metric(of), side(of))
        }
        Kind::Order { rows, .. } => format!("{} of {}", claim.metric, rows.join(", ")),
        Kind::Model { by, .. } => by.to_string(),
    }
}

fn value(
    claim: &Claim,
    of: &Side,
    published: f64,
    band: Option<(f64, f64)>,
    samples: &Samples<'_>,
) -> Result<Assessment, NoValue> {
    let values = samples.of(of, &claim.metric, &claim.at)?;
    let values: Vec<f64> = values.iter().map(|(_, value)| value / claim.unit.scale).collect();
    let estimate = Estimate::of(&values).ok_or("there is no value")?;
    let verdict = match band {
        Some(band) => within(estimate.mean, band),
        // Without a band no deviation is defined as near.
        None => Verdict::NotSpecified,
    };
    let ours = interval(&estimate, decimals(published.abs().min(estimate.mean.abs())), claim.unit.name);
    Ok(Assessment::plain(ours, Some(estimate), verdict))
}

fn change(
    claim: &Claim,
    (of, against): (&Side, &Side),
    (low, high): (f64, f64),
    spread: bool,
    samples: &Samples<'_>,
) -> Result<Assessment, NoValue> {
    let values = |side| {
        let values = samples.of(side, &claim.metric, &claim.at)?;
        Ok::<_, NoValue>(if spread { deviations(values) } else { values })
    };
    let (a, b) = (values(of)?, values(against)?);
    let RelativeChange { percent, p } = RelativeChange::of(&a, &b).ok_or_else(|| undefined(&a, &b))?;
    let inside = (low..=high).contains(&percent.mean);
    let verdict = if is_about_equal((low, high)) {
        if inside { Verdict::Reproduces } else { Verdict::Differs }
    } else {
        let expected = if high > 0.0 { percent.mean > 0.0 } else { percent.mean < 0.0 };
        // One run of an item without randomness suffices. Ranks and mean may disagree: then
        // neither is certain.
        let certain = p.is_none_or(|p| p < SIGNIFICANT) && excludes_zero(&percent);
        match (expected && certain, inside) {
            (true, true) => Verdict::Reproduces,
            (true, false) => Verdict::DirectionOnly,
            (false, _) => Verdict::Differs,
        }
    };
    let scatter = scatter(&a, &b);
    let found = Assessment::plain(signed(&percent), Some(percent), verdict);
    Ok(Assessment { p, scatter, ..found })
}

/// Scatter of the quotient of two single runs that share nothing, in per cent of itself, to first order.
fn scatter(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<f64> {
    let of = |values: &[(u64, f64)]| {
        let values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        SampleStatistics::of(&values).and_then(|summary| Some((summary.mean, summary.sd?)))
    };
    let ((mean_a, a), (mean_b, b)) = (of(a)?, of(b)?);
    let (a, b) = (a / mean_a, b / mean_b);
    Some(100.0 * (a * a + b * b).sqrt()).filter(|scatter| scatter.is_finite())
}

/// Why there is no relative difference.
fn undefined(a: &[(u64, f64)], b: &[(u64, f64)]) -> NoValue {
    match b.iter().all(|(_, value)| *value == 0.0) {
        true if a.iter().all(|(_, value)| *value == 0.0) => "both are zero".into(),
        true => "it is held against zero".into(),
        false => "no seed has both".into(),
    }
}

/// How far each value is off the median. Off the mean, one value that changes would move the deviations of all.
fn deviations(mut values: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let median = quantile(&plain, 0.5).unwrap_or(0.0);
    values.iter_mut().for_each(|(_, value)| *value = (*value - median).abs());
    values
}

fn order(claim: &Claim, rows: &[String], more: bool, samples: &Samples<'_>) -> Result<Assessment, NoValue> {
    let scores = samples.scores(rows, &claim.metric, &claim.at)?;
    let better = if more { Better::Higher } else { Better::Lower };
    let order = Order::of(&scores, better).ok_or("there is nothing to put in order")?;
    let verdict = match (order.holds >= CONFIDENT, order.ends_hold) {
        (true, _) => Verdict::Reproduces,
        (false, true) => Verdict::DirectionOnly,
        (false, false) => Verdict::Differs,
    };
    let mut found = String::new();
    for (place, &row) in order.found.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| order.found[before]);
        found += match before {
            None => "",
            // Seed by seed the same: no order can hold between them.
            Some(before) if scores[before] == scores[row] => " = ",
            Some(_) => ", ",
        };
        found += &rows[row];
    }
    let pair = |&(a, b, share): &(usize, usize, f64)| Pair { better: rows[a].clone(), worse: rows[b].clone(), share };
    let pairs: Vec<Pair> = order.pairs.iter().map(pair).collect();
    let ours = format!(
        "{found} ({} pairs as published, the whole order in {:.0} % of resamples, n = {})",
        Agreement::of_pairs(&pairs),
        order.holds * 100.0,
        scores[0].len()
    );
    Ok(Assessment { pairs, ..Assessment::plain(ours, None, verdict) })
}

pub(crate) fn excludes_zero(percent: &Estimate) -> bool {
    percent.ci95_low.is_none_or(|low| low > 0.0) || percent.ci95_high.is_none_or(|high| high < 0.0)
}

/// The row and cell whose value is published, where that is one.
fn owner(claim: &Claim, samples: &Samples<'_>) -> Option<(String, CellValues)> {
    let Kind::Value { of, .. } = &claim.kind else { return None };
    let cells = samples.cells_of(of, &claim.at);
    Some((of.row.clone(), (*cells.first()?).clone()))
}

fn unit_of(claim: &Claim) -> &'static str {
    if matches!(claim.kind, Kind::Change { .. }) { "%" } else { claim.unit.name }
}

fn published(claim: &Claim) -> String {
    match &claim.kind {
        Kind::Value { published, .. }
        | Kind::Model { published, .. }
        | Kind::Fit { published, .. }
        | Kind::Cycle { published, .. } => with_unit(format!("{published}"), claim.unit),
        Kind::Change { published: Some(percent), .. } if *percent == 0.0 => "about equal".into(),
        Kind::Change { published: Some(percent), .. } => format!("{percent:+} %"),
        Kind::Change { band, .. } if is_about_equal(*band) => "about equal".into(),
        Kind::Change { band: (_, high), .. } => if *high > 0.0 { "more" } else { "less" }.into(),
        Kind::Order { rows, .. } => rows.join(", "),
    }
}

fn with_unit(text: String, unit: Unit) -> String {
    if unit.name.is_empty() { text } else { format!("{text} {}", unit.name) }
}

fn signed(percent: &Estimate) -> String {
    let spread = match (percent.ci95_low, percent.ci95_high) {
        (Some(low), Some(high)) => format!(" [{low:+.1}, {high:+.1}]"),
        _ => String::new(),
    };
    format!("{:+.1}{spread} %, n = {}", percent.mean, percent.n)
}
