//! The causes that hold runs back, with their cost: each is a comparison of two runs.

use super::hindrance::Hindrance;
use super::{Diagnosis, DiagnosisKind, WINDOW, finding, listed, part_blocked};
use crate::job::{Choice, Job, RunOutcome};
use crate::plan::{CellPlan, Plan};
use crate::recorded::overlap;
use crate::runs::RunRow;
use crate::summary::{baselines_of, main_metric_of};
use anabranch_engine::FirstPath;
use anabranch_metrics::{Better, MetricInfo, Paired, Scale, mean};
use anabranch_scenario::Scenario;
use std::sync::Arc;

/// A gain of less than this part is no cause.
const LITTLE: f64 = 0.03;
/// A path that is better alone by this part may be worth opening over.
const BETTER: f64 = 0.05;
/// How many seeds are run once more.
const SEEDS: usize = 3;

/// Makes runs beside those of the plan; `None` of one that cannot be made, or was not wanted.
pub(crate) type Ask<'a> = &'a dyn Fn(&[Job]) -> Vec<Option<RunOutcome>>;

/// A finding, with the greatest gain that it promises.
pub(super) struct Cost {
    gain: f64,
    pub finding: Diagnosis,
}

/// A row, by its number in the cell, with what it had and what it would have.
struct Effect {
    row: usize,
    was: f64,
    would: f64,
}

/// The causes that hold the rows `of` back, the most expensive first.
pub(super) fn costs(plan: &Plan, cell: &CellPlan, rows: &[RunRow<'_>], of: &[usize], ask: Ask<'_>) -> Vec<Cost> {
    let Some(metric) = of.first().map(|row| main_metric_of(&rows[*row])) else { return Vec::new() };
    let mut costs: Vec<Cost> = other_paths(cell, rows, of, metric).into_iter().collect();
    costs.extend(hindrances(plan, cell, rows, of, (metric, ask)));
    // Stable: equal ones stay in the order of the scenario.
    costs.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    costs
}

/// The path that is better alone than the rows `of`, which needs no more runs.
pub(super) fn better_path(cell: &CellPlan, rows: &[RunRow<'_>], of: &[usize]) -> Option<Diagnosis> {
    let metric = main_metric_of(&rows[*of.first()?]);
    other_paths(cell, rows, of, metric).map(|cost| cost.finding)
}

/// The part by which `would` is better than `was`; below zero if it is worse.
fn gain(metric: &MetricInfo, was: f64, would: f64) -> f64 {
    let (more, less) = if metric.better == Some(Better::Lower) { (was, would) } else { (would, was) };
    if more < 0.0 || less < 0.0 {
        // A score may be below zero, where a ratio says nothing.
        return (more - less) / was.abs();
    }
    if less > 0.0 {
        more / less - 1.0
    } else if more > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

/// Hindrances without which the first seeds do better.
fn hindrances(
    plan: &Plan,
    cell: &CellPlan,
    rows: &[RunRow<'_>],
    of: &[usize],
    (metric, ask): (&'static MetricInfo, Ask<'_>),
) -> Vec<Cost> {
    let scenario = &cell.scenario;
    let blocked: Vec<usize> = of.iter().copied().filter(|row| part_blocked(scenario, &rows[*row]) >= WINDOW).collect();
    let mut asked: Vec<(Hindrance, usize)> = blocked.into_iter().map(|row| (Hindrance::Window, row)).collect();
    asked.extend(of.iter().filter_map(|row| Some((other_first(cell, rows, *row, metric)?, *row))));
    asked.extend(Hindrance::of(scenario).into_iter().flat_map(|one| of.iter().map(move |row| (one, *row))));
    let seeds = of.iter().map(|row| rows[*row].len().min(SEEDS)).min().unwrap_or_default();
    let jobs = |(hindrance, row): &(Hindrance, usize)| {
        let scenario = Arc::new(hindrance.without(scenario));
        let job = |repetition| Job {
            scenario: scenario.clone(),
            curves: None,
            ..plan.job(cell, &cell.rows[*row], repetition as u32)
        };
        (0..seeds).map(job).collect::<Vec<_>>()
    };
    let answers = ask(&asked.iter().flat_map(jobs).collect::<Vec<_>>());
    let mut effects: Vec<(Hindrance, Vec<Effect>)> = Vec::new();
    for ((hindrance, row), outcomes) in asked.into_iter().zip(answers.chunks(seeds.max(1))) {
        let was = mean_of_all(rows[row].metric(metric.name).into_iter().take(seeds));
        let value = |outcome: &Option<RunOutcome>| outcome.as_ref()?.metrics.get(metric.name).copied();
        let Some((was, would)) = was.zip(mean_of_all(outcomes.iter().map(value))) else { continue };
        if gain(metric, was, would) < LITTLE {
            continue;
        }
        let effect = Effect { row, was, would };
        match effects.iter_mut().find(|(one, _)| *one == hindrance) {
            Some((_, all)) => all.push(effect),
            None => effects.push((hindrance, vec![effect])),
        }
    }
    let cost = |(hindrance, effects): (Hindrance, Vec<Effect>)| {
        let texts = limit((scenario, hindrance, seeds), metric, rows, &effects);
        cost(rows, metric, hindrance.kind(), &effects, texts)
    };
    effects.into_iter().map(cost).collect()
}

/// The path that the connection opens over, if another one is better alone.
fn other_first(cell: &CellPlan, rows: &[RunRow<'_>], row: usize, metric: &MetricInfo) -> Option<Hindrance> {
    let opens = match cell.scenario.settings.first_path {
        FirstPath::First => 0,
        FirstPath::On(path) => path.index(),
        FirstPath::Race => return None,
    };
    let alone = |single: &usize| {
        let Choice::Single(path) = cell.rows[*single].choice else { return None };
        let is_there = cell.scenario.paths[path].presence.start.is_none();
        Some((path, mean_of_all(rows[*single].metric(metric.name).into_iter())?)).filter(|_| is_there)
    };
    let alone: Vec<(usize, f64)> = baselines_of(cell, &cell.rows[row]).iter().filter_map(alone).collect();
    let (_, own) = *alone.iter().find(|(path, _)| *path == opens)?;
    // Over a path that carries nothing no connection opens: another finding says so.
    let is_better = |value: f64| (BETTER..f64::INFINITY).contains(&gain(metric, own, value));
    let (best, _) = alone
        .into_iter()
        .filter(|(path, value)| *path != opens && is_better(*value))
        .max_by(|(_, a), (_, b)| gain(metric, own, *a).total_cmp(&gain(metric, own, *b)))?;
    Some(Hindrance::FirstPath(best))
}

/// The mean, if all values are there and there is one.
fn mean_of_all(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    mean(&values.collect::<Option<Vec<f64>>>()?)
}

/// The scale for all figures of the effects.
fn scale_of(metric: &MetricInfo, effects: &[Effect]) -> Scale {
    metric.scale.fitted(effects.iter().map(|one| one.was.max(one.would)).fold(0.0, f64::max))
}

fn cost(
    rows: &[RunRow<'_>],
    metric: &MetricInfo,
    kind: DiagnosisKind,
    effects: &[Effect],
    texts: (String, String),
) -> Cost {
    let gain = effects.iter().map(|one| gain(metric, one.was, one.would)).fold(0.0, f64::max);
    let about: Vec<RunRow<'_>> = effects.iter().map(|one| rows[one.row]).collect();
    Cost { gain, finding: finding(kind, &about, texts) }
}

/// In short, and whole.
fn limit(
    (scenario, hindrance, seeds): (&Scenario, Hindrance, usize),
    metric: &MetricInfo,
    rows: &[RunRow<'_>],
    effects: &[Effect],
) -> (String, String) {
    let name = hindrance.name(scenario);
    let scale = scale_of(metric, effects);
    let figure = |value: f64| short(value / scale.per);
    let each = |one: &Effect| {
        format!("{} has {} instead of {}", rows[one.row].scheduler(), figure(one.would), figure(one.was))
    };
    let all: Vec<String> = effects.iter().map(each).collect();
    let over = match &rows[effects[0].row].seeds()[..seeds] {
        [first, .., last] => format!("mean of the seeds {first} to {last}"),
        one => format!("seed {}", one[0]),
    };
    let text = format!(
        "Limited by {name}: {}, {} ({}, {over}).",
        hindrance.remedy(scenario),
        listed(all.iter().map(String::as_str)),
        scale.after(metric.label)
    );
    (format!("limited by {name}"), text)
}

/// A path that is better alone, over all seeds.
fn other_paths(cell: &CellPlan, rows: &[RunRow<'_>], of: &[usize], metric: &'static MetricInfo) -> Option<Cost> {
    let mut best: Option<(usize, Vec<Effect>)> = None;
    for &row in of.iter().filter(|row| !overlap(cell, **row, &rows[**row])) {
        let own = rows[row].metric(metric.name);
        let beats = |single: &usize| {
            let both = rows[*single].metric(metric.name).into_iter().zip(&own);
            let pairs: Vec<(f64, f64)> = both.filter_map(|(single, own)| single.zip(*own)).collect();
            let paired = Paired::of(&pairs)?;
            // Few seeds have no interval: the test alone decides then.
            let certain = paired.is_significant() && paired.ci95.is_none_or(|(low, high)| low > 0.0 || high < 0.0);
            let (would, was): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (would, was) = (mean(&would)?, mean(&was)?);
            (certain && gain(metric, was, would) >= LITTLE).then_some((*single, Effect { row, was, would }))
        };
        let single = baselines_of(cell, &cell.rows[row])
            .iter()
            .filter(|single| !rows[**single].is_empty())
            .filter_map(beats)
            .max_by(|(_, a), (_, b)| gain(metric, a.was, a.would).total_cmp(&gain(metric, b.was, b.would)));
        if let Some((single, effect)) = single {
            match &mut best {
                Some((known, effects)) if *known == single => effects.push(effect),
                Some(_) => {}
                None => best = Some((single, vec![effect])),
            }
        }
    }
    let (single, effects) = best?;
    let Choice::Single(path) = cell.rows[single].choice else { return None };
    let name = &cell.scenario.topology.paths[path].name;
    let scale = scale_of(metric, &effects);
    let each = |one: &Effect| format!("{} over all paths {}", rows[one.row].scheduler(), short(one.was / scale.per));
    let all: Vec<String> = effects.iter().map(each).collect();
    let text = format!(
        "{name} alone is better: plain TCP has {}, {} ({}).",
        short(effects[0].would / scale.per),
        listed(all.iter().map(String::as_str)),
        scale.after(metric.label)
    );
    Some(cost(rows, metric, DiagnosisKind::Path, &effects, (format!("{name} alone is better"), text)))
}

/// Three digits, or all before the point.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}
