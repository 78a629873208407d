//! Statistics over repetitions: summaries, ratios against the baselines, paired comparisons.

use crate::job::Choice;
use crate::plan::{CellPlan, PlanRow, single_path_form};
use crate::record::RunRecord;
use crate::recorded::overlap;
use crate::results::{Comparison, Summary};
use crate::runs::RunRow;
use anabranch_metrics::{
    EffectSize, METRICS, MetricInfo, MetricRef, Paired, SampleStatistics, SignedRank, aggregation_benefit,
    best_single_ratio, main_metric, main_metrics, names,
};

/// Up to this number of schedulers every pair is compared; beyond it, each with the first alone.
const ALL_PAIRS: usize = 6;

/// True if all runs have one value, or the mean's 95 % interval, from end to end, is narrower than 2 % of the mean.
fn is_narrow_enough(mean: f64, sd: Option<f64>, ci95: Option<(f64, f64)>) -> bool {
    sd == Some(0.0) || ci95.is_some_and(|(low, high)| high - low <= 0.02 * mean.abs())
}

impl Summary {
    /// True if [`crate::Repeat::Auto`] needs no more seeds: all have one value, or the mean's interval, from end to end, is narrower than
    /// 2 % of it.
    pub fn is_narrow(&self) -> bool {
        is_narrow_enough(self.mean, self.sd, self.ci95_low.zip(self.ci95_high))
    }
}

/// The [`main_metric`] of a row.
pub(crate) fn main_metric_of(row: &RunRow<'_>) -> &'static MetricInfo {
    let names = row.names();
    main_metric(|name| names.contains(&MetricRef { path: None, name }))
}

/// True if the mean of each of the [`main_metrics`] is known well enough.
pub(crate) fn is_narrow(row: &RunRow<'_>) -> bool {
    let names = row.names();
    let main = main_metrics(names.iter().filter(|name| name.path.is_none()).map(|name| name.name));
    main.iter().all(|(name, _)| {
        let values: Vec<f64> = row.metric(name).into_iter().flatten().collect();
        SampleStatistics::of(&values).is_some_and(|s| is_narrow_enough(s.mean, s.sd, s.ci95))
    })
}

/// Adds `aggregation_benefit` and `best_single_ratio` to each multipath run: its goodput against those of the baselines
/// with the same seed and the single-path form of its congestion control.
pub(crate) fn fill_in_ratios(cell: &CellPlan, rows: &mut [Vec<RunRecord>]) {
    for (index, row) in cell.rows.iter().enumerate() {
        let baselines = baselines_of(cell, row);
        if baselines.is_empty() {
            continue;
        }
        for repetition in 0..rows[index].len() {
            let goodput =
                |row: usize| rows[row].get(repetition).and_then(|run| run.metrics.get(names::GOODPUT).copied());
            let singles: Option<Vec<f64>> = baselines.iter().map(|&row| goodput(row)).collect();
            let (Some(own), Some(singles)) = (goodput(index), singles) else { continue };
            let ratios = [
                (names::BENEFIT, aggregation_benefit(own, &singles)),
                (names::BEST_SINGLE_RATIO, best_single_ratio(own, &singles)),
            ];
            let metrics = &mut rows[index][repetition].metrics;
            for (name, value) in ratios.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                metrics.insert(name.to_owned(), value);
            }
            metrics.sort_by_key(position);
        }
    }
}

/// Where lists show a metric; those of applications and links come last, in the order of the run.
pub(crate) fn position(metric: &str) -> usize {
    METRICS.iter().position(|known| known.name == metric).unwrap_or(METRICS.len())
}

/// Indices of the rows that run each path alone beside `row`; none for a baseline itself.
pub(crate) fn baselines_of(cell: &CellPlan, row: &PlanRow) -> Vec<usize> {
    if matches!(row.choice, Choice::Single(_)) {
        return Vec::new();
    }
    let form = single_path_form(&row.congestion);
    let rows = cell.rows.iter().enumerate();
    rows.filter(|(_, other)| matches!(other.choice, Choice::Single(_)) && other.congestion == form)
        .map(|(index, _)| index)
        .collect()
}

/// One summary per metric, in the order in which the runs of the row at `place` of the cell first show them.
pub(crate) fn summarise(cell: &CellPlan, place: usize, row: &RunRow<'_>) -> Vec<Summary> {
    let (deterministic, overlaps) = (!cell.random, overlap(cell, place, row));
    let unfinished = row.finished().into_iter().filter(|finished| !finished).count();
    let summary = |metric: MetricRef<'_>| {
        let values: Vec<f64> = row.values(metric).into_iter().flatten().collect();
        let s = SampleStatistics::of(&values)?;
        let ci95 = s.ci95.filter(|_| !overlaps);
        Some(Summary {
            scheduler: row.scheduler().clone(),
            congestion: row.congestion().clone(),
            cell: row.cell().clone(),
            metric: metric.to_string().into(),
            n: s.n,
            mean: s.mean,
            sd: s.sd,
            ci95_low: ci95.map(|(low, _)| low),
            ci95_high: ci95.map(|(_, high)| high),
            median: s.median,
            p95: s.p95,
            deterministic,
            unfinished,
        })
    };
    row.names().into_iter().filter_map(summary).collect()
}

/// Paired differences between the schedulers of each congestion control: of every two if there are at most
/// [`ALL_PAIRS`], else of each against the first. `b` is the one that was named first.
pub(crate) fn compare(cell: &CellPlan, rows: &[RunRow<'_>]) -> Vec<Comparison> {
    let multipath: Vec<usize> =
        (0..rows.len()).filter(|&i| matches!(cell.rows[i].choice, Choice::Multipath(_))).collect();
    let same = |i: usize, j: usize| cell.rows[i].congestion == cell.rows[j].congestion;
    let mut comparisons = Vec::new();
    for (position, &b) in multipath.iter().enumerate() {
        let is_first = !multipath[..position].iter().any(|&earlier| same(earlier, b));
        let peers = multipath.iter().filter(|&&other| same(other, b)).count();
        if peers > ALL_PAIRS && !is_first {
            continue;
        }
        for &a in multipath[position + 1..].iter().filter(|&&a| same(a, b)) {
            let overlaps = overlap(cell, a, &rows[a]);
            comparisons.extend(compare_rows(&rows[a], &rows[b], overlaps));
        }
    }
    comparisons
}

/// Without intervals and tests if the runs overlap.
fn compare_rows(a: &RunRow<'_>, b: &RunRow<'_>, overlaps: bool) -> Vec<Comparison> {
    let comparison = |metric: MetricRef<'_>| {
        let both = a.values(metric).into_iter().zip(b.values(metric)).filter_map(|(a, b)| Some((a?, b?)));
        let pairs: Vec<(f64, f64)> = both.collect();
        let paired = Paired::of(&pairs)?;
        let ci95 = paired.ci95.filter(|_| !overlaps);
        Some(Comparison {
            a: a.scheduler().clone(),
            b: b.scheduler().clone(),
            congestion: a.congestion().clone(),
            cell: a.cell().clone(),
            metric: metric.to_string().into(),
            n: paired.n,
            mean_diff: paired.mean_diff,
            ci95_low: ci95.map(|(low, _)| low),
            ci95_high: ci95.map(|(_, high)| high),
            p: paired.p.filter(|_| !overlaps),
            // One pair has no ranks.
            p_wilcoxon: SignedRank::of(&pairs).filter(|_| pairs.len() > 1 && !overlaps).map(|test| test.p),
            effect_size: EffectSize::of(&pairs).and_then(|effect| effect.corrected),
        })
    };
    a.names().into_iter().filter(|name| name.path.is_none()).filter_map(comparison).collect()
}
