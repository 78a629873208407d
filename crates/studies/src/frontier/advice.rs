//! Which scheduler for which kind of paths and which application.

use super::score::CellScore;
use anabranch_metrics::mean;
use anabranch_run::knows_rates;
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

/// A scheduler is as good a choice as the best if its mean loss is no more than this above the least: half a part in a
/// hundred.
pub const AS_GOOD: f64 = 0.005;

/// The best choices for one kind of paths and one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Kind of path sets.
    pub kind: String,
    /// The application.
    pub traffic: String,
    /// Path sets.
    pub sets: usize,
    /// Mean over them of the relative loss of each scheduler, and of the best path alone, against the cell's best scheduler.
    pub losses: IndexMap<String, f64>,
    /// The schedulers with the least loss, see [`AS_GOOD`], the best first.
    pub best: Vec<String>,
}

impl Advice {
    /// All of them do equally well.
    pub fn all_alike(&self) -> bool {
        self.best.len() + 1 >= self.losses.len()
    }
}

/// For each kind of `cells` and each application, in the order in which they come.
pub fn advice(cells: &[CellScore]) -> Vec<Advice> {
    let kinds: IndexSet<&str> = cells.iter().map(|cell| cell.kind.as_str()).collect();
    let traffic: IndexSet<&str> = cells.iter().map(|cell| cell.traffic.as_str()).collect();
    let pairs = kinds.iter().flat_map(|kind| traffic.iter().map(move |traffic| (*kind, *traffic)));
    pairs.filter_map(|(kind, traffic)| of(cells, kind, traffic)).collect()
}

fn of(cells: &[CellScore], kind: &str, traffic: &str) -> Option<Advice> {
    let own: Vec<&CellScore> = cells.iter().filter(|cell| cell.kind == kind && cell.traffic == traffic).collect();
    let mut losses: IndexMap<String, Vec<f64>> = IndexMap::new();
    for cell in &own {
        for entry in cell.entries.iter().filter(|entry| !knows_rates(&entry.scheduler)) {
            losses.entry(entry.scheduler.clone()).or_default().push(cell.loss(entry));
        }
    }
    let losses: IndexMap<String, f64> =
        losses.into_iter().filter_map(|(name, losses)| Some((name, mean(&losses)?))).collect();
    let is_scheduler = |name: &str| own.iter().any(|cell| cell.schedulers().any(|entry| entry.scheduler == name));
    let mut best: Vec<(&String, f64)> =
        losses.iter().filter(|(name, _)| is_scheduler(name)).map(|(name, loss)| (name, *loss)).collect();
    best.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let least = best.first()?.1;
    let best = best.iter().filter(|(_, loss)| *loss <= least + AS_GOOD).map(|(name, _)| (*name).clone()).collect();
    Some(Advice { kind: kind.to_owned(), traffic: traffic.to_owned(), sets: own.len(), losses, best })
}

/// The `count` schedulers of which the best in each cell comes nearest to the best of all, chosen one after the other;
/// with the mean over the cells of the loss of the best of those chosen so far.
pub fn portfolio(cells: &[CellScore], count: usize) -> Vec<(String, f64)> {
    let names: IndexSet<&str> =
        cells.iter().flat_map(CellScore::schedulers).map(|entry| entry.scheduler.as_str()).collect();
    let mut chosen: Vec<(String, f64)> = Vec::new();
    while chosen.len() < count.min(names.len()) {
        let lacks = |name: &str| {
            let team = || chosen.iter().map(|(name, _)| name.as_str()).chain([name]);
            let of = |cell: &CellScore| {
                let best = team().filter_map(|name| cell.entry(name)).map(|entry| cell.loss(entry));
                best.fold(1.0, f64::min)
            };
            mean(&cells.iter().map(of).collect::<Vec<_>>()).unwrap_or(1.0)
        };
        let candidates = names.iter().filter(|name| chosen.iter().all(|(known, _)| known != *name));
        let rated = candidates.map(|name| (*name, lacks(name)));
        let Some((name, lack)) = rated.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { break };
        chosen.push((name.to_owned(), lack));
    }
    chosen
}
