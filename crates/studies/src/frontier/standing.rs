//! From cells to the results of each scheduler over all of them.

use super::score::{CellScore, Entry};
use anabranch_metrics::{Bootstrap, mean, quantile};
use anabranch_run::Estimate;
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

/// A scheduler is near the best of a cell if its loss against the best is at most this part.
pub const NEAR: f64 = 0.02;

/// The results of one scheduler over the whole grid. Every mean over cells gives each the same weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Canonical name; `single:best`: in each cell the best path alone.
    pub scheduler: String,
    /// Mean over the cells of the ratio to the oracle; its interval is over the seeds.
    pub ratio: Estimate,
    /// Interval over path sets: 95 %, by the bootstrap that draws whole path sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_over_sets: Option<(f64, f64)>,
    /// The same for each part of the grid.
    pub by_part: IndexMap<String, f64>,
    /// The same for each application.
    pub by_traffic: IndexMap<String, f64>,
    /// Loss against the best scheduler of each cell.
    pub loss: Loss,
    /// Mean over the cells of its place among the schedulers; 1 is best, those that tie share their places. 0: it has none, see
    /// [`Entry::rank`].
    pub rank: f64,
    /// Cells in which it is the worst, or ties with it, while not all schedulers tie.
    pub last: usize,
    /// Cells in which it is slower than the best path alone: see [`Entry::slower`].
    pub slower: usize,
    /// The number of cells in which `slower` is counted.
    pub cells: usize,
}

/// The loss of a scheduler against the best one, cell by cell, as a part of the best one's ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Mean over the cells.
    pub mean: f64,
    /// Interval over path sets, as [`Standing::ratio_over_sets`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_sets: Option<(f64, f64)>,
    /// Median over the cells.
    pub median: f64,
    /// Share of the cells in which its loss is at most [`NEAR`].
    pub near: f64,
    /// The greatest.
    pub worst: f64,
    /// Path set and application of that.
    pub worst_in: String,
}

/// Standings of all schedulers in `cells`, the best mean ratio first.
pub(super) fn standings(cells: &[CellScore]) -> Vec<Standing> {
    let names: IndexSet<&str> = cells.iter().flat_map(|c| &c.entries).map(|e| e.scheduler.as_str()).collect();
    let mut standings: Vec<Standing> = names.into_iter().filter_map(|name| standing(name, cells)).collect();
    standings.sort_by(|a, b| b.ratio.mean.total_cmp(&a.ratio.mean));
    standings
}

impl Standing {
    /// The row has a place among the schedulers.
    pub fn is_placed(&self) -> bool {
        self.rank > 0.0
    }
}

type Own<'a> = [(&'a CellScore, &'a Entry)];

fn standing(name: &str, cells: &[CellScore]) -> Option<Standing> {
    let own: Vec<(&CellScore, &Entry)> = cells.iter().filter_map(|cell| Some((cell, cell.entry(name)?))).collect();
    let average = |value: fn(&CellScore, &Entry) -> f64| {
        mean(&own.iter().map(|(cell, entry)| value(cell, entry)).collect::<Vec<_>>())
    };
    let placed = |has: fn(&Entry) -> bool| own.iter().filter(|(_, entry)| has(entry)).count();
    Some(Standing {
        scheduler: name.to_owned(),
        ratio: over_seeds(&own)?,
        ratio_over_sets: over_sets(&own, |_, entry| entry.ratio()),
        by_part: by(&own, |cell| &cell.part),
        by_traffic: by(&own, |cell| &cell.traffic),
        loss: loss(&own)?,
        rank: average(|_, entry| entry.rank)?,
        last: placed(|entry| entry.last),
        slower: placed(|entry| entry.slower),
        cells: own.len(),
    })
}

fn over_seeds(own: &Own<'_>) -> Option<Estimate> {
    // Cells without randomness have one run, which represents every seed.
    let seeds = own.iter().map(|(_, entry)| entry.ratios.len()).max()?;
    let of_seed = |seed: usize| {
        let ratio = |(_, entry): &(&CellScore, &Entry)| entry.ratios.get(seed).or(entry.ratios.last()).copied();
        mean(&own.iter().filter_map(ratio).collect::<Vec<_>>())
    };
    Estimate::of_means(&(0..seeds).filter_map(of_seed).collect::<Vec<_>>())
}

/// The interval of the mean of `value` over cells, by resampling whole path sets, each with all of its cells.
fn over_sets(own: &Own<'_>, value: fn(&CellScore, &Entry) -> f64) -> Option<(f64, f64)> {
    let mut sets: IndexMap<&str, (f64, f64)> = IndexMap::new();
    for (cell, entry) in own {
        let (sum, count) = sets.entry(&cell.paths).or_default();
        (*sum, *count) = (*sum + value(cell, entry), *count + 1.0);
    }
    let sets: Vec<(f64, f64)> = sets.into_values().collect();
    let statistic = |drawn: &[usize]| {
        let total = |part: fn(&(f64, f64)) -> f64| drawn.iter().map(|i| part(&sets[*i])).sum::<f64>();
        total(|(sum, _)| *sum) / total(|(_, count)| *count)
    };
    Bootstrap::default().interval(sets.len(), statistic)
}

fn by(own: &Own<'_>, group: fn(&CellScore) -> &String) -> IndexMap<String, f64> {
    let mut groups: IndexMap<String, Vec<f64>> = IndexMap::new();
    for (cell, entry) in own {
        groups.entry(group(cell).clone()).or_default().push(entry.ratio());
    }
    groups.into_iter().filter_map(|(name, ratios)| Some((name, mean(&ratios)?))).collect()
}

fn loss(own: &Own<'_>) -> Option<Loss> {
    let losses: Vec<f64> = own.iter().map(|(cell, entry)| cell.loss(entry)).collect();
    let near = losses.iter().filter(|loss| **loss <= NEAR).count();
    let worst = own.iter().zip(&losses).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let ((cell, _), worst) = worst?;
    Some(Loss {
        mean: mean(&losses)?,
        over_sets: over_sets(own, |cell, entry| cell.loss(entry)),
        median: quantile(&losses, 0.5)?,
        near: near as f64 / losses.len() as f64,
        worst: *worst,
        worst_in: format!("{}, {}", cell.paths, cell.traffic),
    })
}
