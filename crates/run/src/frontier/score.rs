//! From runs to standings.

use super::{PATHS, TRAFFIC};
use crate::estimate::Estimate;
use crate::results::{CellValues, RunRecord};
use anabranch_metrics::{Paired, mean};
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

const RATIO: &str = "oracle_ratio";
const SINGLE: &str = "single:";
/// Less of a difference matters to nobody: Multipath TCP's options alone cost a part in a thousand.
const MARGIN: f64 = 0.01;

/// All schedulers over the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frontier {
    /// Version of the program that made it.
    pub anabranch: String,
    /// Congestion control of all of them.
    pub congestion: String,
    /// One entry a scheduler and single-path baseline (`single:best`), the best first.
    pub standings: Vec<Standing>,
    /// One entry a path set and application.
    pub cells: Vec<CellScore>,
    /// Path sets with an application that were not finished: more than none if the grid's runs ended early.
    #[serde(default, skip_serializing_if = "is_none")]
    pub missing: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// How one scheduler does over the whole grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Canonical name; `single:best`: in each cell the best path alone.
    pub scheduler: String,
    /// Mean over the cells of the ratio to the oracle; its interval is over the seeds.
    pub ratio: Estimate,
    /// The same for each application.
    pub by_traffic: IndexMap<String, f64>,
    /// Mean over the cells of its place among the schedulers; 1 is best.
    pub rank: f64,
    /// Cells in which no scheduler is further from the oracle, and some are nearer.
    pub worst: usize,
    /// Cells in which it is slower than the best path alone: see [`Entry::slower`].
    pub slower: usize,
}

/// One path set with one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellScore {
    /// The path set's title.
    pub paths: String,
    /// The application.
    pub traffic: String,
    /// The path that does best alone.
    pub best_single: String,
    /// One entry a scheduler; the last is the best path alone.
    pub entries: Vec<Entry>,
}

/// One scheduler in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Canonical name, or `single:best`.
    pub scheduler: String,
    /// Ratio to the oracle with all paths, seed by seed. A transfer that was given up counts as 0.
    pub ratios: Vec<f64>,
    /// Place among the schedulers by the mean of `ratios`; those that tie share the mean of their places. 0 for the best
    /// path alone.
    pub rank: f64,
    /// Speed ÷ speed of the best path alone, mean over the seeds; speed is goodput, for frames 1 ÷ mean delay.
    pub against_single: f64,
    /// It is slower than the best path alone, by more than 1 % on average, and not by luck (paired t test over the seeds,
    /// p < 0.05).
    pub slower: bool,
}

impl Entry {
    /// Mean of the ratios.
    pub fn ratio(&self) -> f64 {
        mean(&self.ratios).unwrap_or(0.0)
    }
}

/// The score of a cell with these rows; `None` without a single path, or without a scheduler that says what the oracle is.
pub(super) fn cell(rows: &[Vec<RunRecord>]) -> Option<CellScore> {
    let rows = rows.iter().filter_map(|row| Some((row.first()?.scheduler.as_str(), &row[..])));
    let (singles, schedulers): (Vec<_>, Vec<_>) = rows.partition(|(name, _)| name.starts_with(SINGLE));
    let (best_single, single) = singles.into_iter().max_by(|(_, a), (_, b)| mean_speed(a).total_cmp(&mean_speed(b)))?;
    let ratio = |run: &RunRecord| run.metrics.get(RATIO).copied().filter(|_| run.finished).unwrap_or(0.0);
    let mut entries: Vec<Entry> = schedulers.iter().map(|(name, row)| entry(name, row, single, ratio)).collect();
    rank(&mut entries);
    // The path's own ratio is to a bound of that path alone. A ratio is a speed ÷ the oracle's, so any run tells the latter.
    let oracle = 1.0 / mean(&schedulers.iter().flat_map(|(_, row)| *row).filter_map(inverse).collect::<Vec<_>>())?;
    entries.push(entry("single:best", single, single, |run| speed(run) / oracle));
    let values: &CellValues = &single.first()?.cell;
    let value = |key| values.get(key).cloned().unwrap_or_default();
    let best_single = best_single.trim_start_matches(SINGLE).to_owned();
    Some(CellScore { paths: value(PATHS), traffic: value(TRAFFIC), best_single, entries })
}

/// Greater is better.
fn speed(run: &RunRecord) -> f64 {
    match run.metrics.get("app_delay_mean_s") {
        Some(delay) if *delay > 0.0 => 1.0 / delay,
        Some(_) => 0.0,
        None => run.metrics.get("goodput_bps").copied().unwrap_or(0.0),
    }
}

fn mean_speed(row: &[RunRecord]) -> f64 {
    mean(&row.iter().map(speed).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// 1 ÷ the oracle's speed, as this run tells it.
fn inverse(run: &RunRecord) -> Option<f64> {
    let inverse = run.metrics.get(RATIO).filter(|ratio| **ratio < 1.0)? / speed(run);
    inverse.is_finite().then_some(inverse)
}

fn entry(name: &str, row: &[RunRecord], single: &[RunRecord], ratio: impl Fn(&RunRecord) -> f64) -> Entry {
    let pairs: Vec<(f64, f64)> = row.iter().zip(single).map(|(a, b)| (speed(a), speed(b))).collect();
    let relative: Vec<f64> = pairs.iter().filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b).collect();
    let against_single = mean(&relative).unwrap_or(0.0);
    let significant = Paired::of(&pairs).is_some_and(|p| p.mean_diff < 0.0 && p.p.is_none_or(|p| p < 0.05));
    Entry {
        scheduler: name.to_owned(),
        ratios: row.iter().map(ratio).collect(),
        rank: 0.0,
        against_single,
        slower: significant && against_single < 1.0 - MARGIN,
    }
}

fn rank(entries: &mut [Entry]) {
    let means: Vec<f64> = entries.iter().map(Entry::ratio).collect();
    for (entry, own) in entries.iter_mut().zip(&means) {
        let before = means.iter().filter(|other| *other > own).count() as f64;
        let ties = means.iter().filter(|other| *other == own).count() as f64;
        entry.rank = before + (ties + 1.0) / 2.0;
    }
}

impl Frontier {
    pub(super) fn new(congestion: &str, cells: Vec<CellScore>, missing: usize) -> Self {
        let names: IndexSet<&str> = cells.iter().flat_map(|c| &c.entries).map(|e| e.scheduler.as_str()).collect();
        let mut standings: Vec<Standing> = names.into_iter().filter_map(|name| standing(name, &cells)).collect();
        standings.sort_by(|a, b| b.ratio.mean.total_cmp(&a.ratio.mean));
        let anabranch = env!("CARGO_PKG_VERSION").to_owned();
        Self { anabranch, congestion: congestion.to_owned(), standings, cells, missing }
    }
}

fn standing(name: &str, cells: &[CellScore]) -> Option<Standing> {
    let own: Vec<(&CellScore, &Entry)> = cells
        .iter()
        .filter_map(|cell| Some((cell, cell.entries.iter().find(|entry| entry.scheduler == name)?)))
        .collect();
    let mut by_traffic: IndexMap<String, Vec<f64>> = IndexMap::new();
    for (cell, entry) in &own {
        by_traffic.entry(cell.traffic.clone()).or_default().push(entry.ratio());
    }
    // Cells without randomness have one run, which stands for every seed.
    let seeds = own.iter().map(|(_, entry)| entry.ratios.len()).max()?;
    let of_seed = |seed: usize| {
        let ratios: Vec<f64> =
            own.iter().filter_map(|(_, e)| e.ratios.get(seed).or(e.ratios.last())).copied().collect();
        mean(&ratios)
    };
    let ratio = Estimate::of(&(0..seeds).filter_map(of_seed).collect::<Vec<_>>())?;
    let is_worst = |(cell, entry): &&(&CellScore, &Entry)| {
        let others = || cell.entries.iter().filter(|other| other.rank > 0.0).map(Entry::ratio);
        let own = entry.ratio();
        entry.rank > 0.0 && others().all(|other| own <= other) && others().any(|other| own < other)
    };
    Some(Standing {
        scheduler: name.to_owned(),
        ratio,
        by_traffic: by_traffic.into_iter().map(|(traffic, r)| (traffic, mean(&r).unwrap_or(0.0))).collect(),
        rank: mean(&own.iter().map(|(_, entry)| entry.rank).collect::<Vec<_>>())?,
        worst: own.iter().filter(is_worst).count(),
        slower: own.iter().filter(|(_, entry)| entry.slower).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Values;

    /// A run of a transfer: goodput in Mbit/s; the oracle of all paths has 20, of path a 10, of b 10.
    fn run(scheduler: &str, seed: u64, mbit: f64) -> RunRecord {
        let bound = if scheduler.starts_with(SINGLE) { 10.0 } else { 20.0 };
        let metrics: Values = [("goodput_bps".to_owned(), mbit * 1e6), (RATIO.to_owned(), mbit / bound)].into();
        let outcome = crate::RunOutcome { metrics, finished: true, ..Default::default() };
        let cell = [(PATHS.to_owned(), "two".to_owned()), (TRAFFIC.to_owned(), "bulk".to_owned())].into();
        RunRecord::new(scheduler, "cubic", seed, cell, outcome)
    }

    fn frontier(rows: &[(&str, [f64; 3])]) -> Frontier {
        let row = |(name, speeds): &(&str, [f64; 3])| {
            (1..).zip(speeds).map(|(seed, mbit)| run(name, seed, *mbit)).collect::<Vec<_>>()
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        Frontier::new("cubic", cell(&rows).into_iter().collect(), 0)
    }

    const ROWS: [(&str, [f64; 3]); 5] = [
        ("good", [16.0, 17.0, 18.0]),
        ("same", [16.0, 17.0, 18.0]),
        ("bad", [4.0, 5.0, 5.9]),
        ("single:a", [6.0, 7.0, 8.0]),
        ("single:b", [5.0, 9.0, 4.0]),
    ];

    #[test]
    fn standings_by_hand() {
        let frontier = frontier(&ROWS);
        let of = |name: &str| frontier.standings.iter().find(|s| s.scheduler == name).unwrap();
        let order: Vec<&str> = frontier.standings.iter().map(|s| s.scheduler.as_str()).collect();
        assert_eq!(order, ["good", "same", "single:best", "bad"]);
        let good = of("good");
        assert!((good.ratio.mean - 0.85).abs() < 1e-12 && good.ratio.n == 3);
        // t(0.975, 2) = 4.302653 with a deviation of 0.05.
        let half = 4.302_653 * 0.05 / 3f64.sqrt();
        assert!((good.ratio.ci95_high.unwrap() - 0.85 - half).abs() < 1e-6);
        // The two that tie share the first two places.
        assert_eq!((good.rank, of("same").rank, of("bad").rank, of("single:best").rank), (1.5, 1.5, 3.0, 0.0));
        assert_eq!((good.worst, of("bad").worst, of("single:best").worst), (0, 1, 0));
        // Slower than path a by 2, 2 and 2.1 Mbit/s.
        assert_eq!((good.slower, of("bad").slower), (0, 1));
        // The best path alone, against the oracle of both paths.
        assert!((of("single:best").ratio.mean - 0.35).abs() < 1e-12);
        assert_eq!((frontier.cells[0].best_single.as_str(), &frontier.cells[0].paths[..]), ("a", "two"));
        assert!(
            (frontier.cells[0].entries[0].against_single - (16.0 / 6.0 + 17.0 / 7.0 + 18.0 / 8.0) / 3.0).abs() < 1e-12
        );
    }

    #[test]
    fn what_costs_less_than_a_hundredth_is_not_slower() {
        let rows = |of: f64| [("near", [6.0, 7.0, 8.0].map(|mbit| mbit * of)), ROWS[3]];
        let slower = |of| frontier(&rows(of)).standings.iter().map(|standing| standing.slower).sum::<usize>();
        assert_eq!((slower(0.995), slower(0.98)), (0, 1));
    }

    #[test]
    fn where_all_are_alike_none_is_worst() {
        let frontier = frontier(&[ROWS[0], ROWS[1], ROWS[3]]);
        assert!(frontier.standings.iter().all(|standing| standing.worst == 0));
    }
}
