//! From the runs of one cell to what each scheduler is worth there.

use super::{KIND, PART, PATHS, TRAFFIC};
use anabranch_metrics::{Difference, Paired, Verdict, mean, names, verdicts};
use anabranch_run::{CellValues, RowKind, RunRecord, knows_rates};
use serde::{Deserialize, Serialize};

/// The best path alone.
pub const BEST_SINGLE: &str = "single:best";
/// Less of a difference against the best path alone is no fault of a scheduler: Multipath TCP's options take 28 of the
/// 1,480 bytes of a full packet, 1.9 %, wherever the capacity is the limit.
pub const MARGIN: f64 = 0.025;
/// The tie rule: in a cell two schedulers tie unless their means differ by more than this part of the lesser, and the
/// paired t test over the seeds gives p < [`SIGNIFICANT`](anabranch_metrics::SIGNIFICANT) (without spread, or with one seed, the first alone decides).
pub const TIE: f64 = 0.005;

/// One path set with one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellScore {
    /// The path set's title.
    pub paths: String,
    /// Kind of the cell: `near/far`.
    pub kind: String,
    /// Which part of the grid it belongs to.
    pub part: String,
    /// The application.
    pub traffic: String,
    /// The path that does best alone.
    pub best_single: String,
    /// One entry per scheduler, then those that know the true rates; the last is the best path alone.
    pub entries: Vec<Entry>,
}

/// One scheduler in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Canonical name, or [`BEST_SINGLE`].
    pub scheduler: String,
    /// Ratio to the oracle with all paths, seed by seed. A transfer that was given up counts as 0.
    pub ratios: Vec<f64>,
    /// Place among the schedulers: 1 + those that beat it + half of those that tie with it, see [`TIE`]. 0 for what has no
    /// place: the best path alone, and what [`knows_rates`].
    pub rank: f64,
    /// 1 for the best and all that tie with it, 2 for the best of the others and all that tie with that, and so on. 0 for what
    /// has no place.
    pub tier: usize,
    /// The scheduler is the worst, or ties with it, while not all tie.
    pub last: bool,
    /// Speed ÷ speed of the best path alone, mean over the seeds; speed is goodput, for frames 1 ÷ mean delay.
    pub against_single: f64,
    /// The scheduler is slower than the best path alone, by more than [`MARGIN`] on average, and significantly (paired t test over the
    /// seeds, p < 0.05 after Holm's correction for the schedulers of the cell).
    pub slower: bool,
    /// Money spent in a run, mean over those that were finished; absent where nothing costs anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
}

impl Entry {
    /// Mean of the ratios.
    pub fn ratio(&self) -> f64 {
        mean(&self.ratios).unwrap_or(0.0)
    }

    /// Better than `other` by the tie rule.
    fn beats(&self, other: &Self) -> bool {
        let (own, its) = (self.ratio(), other.ratio());
        let pairs: Vec<(f64, f64)> = self.ratios.iter().copied().zip(other.ratios.iter().copied()).collect();
        own > its * (1.0 + TIE) && Paired::of(&pairs).is_some_and(|paired| paired.is_significant())
    }
}

impl CellScore {
    /// The entries of schedulers that have a place.
    pub fn schedulers(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.entries.iter().filter(|entry| entry.tier > 0)
    }

    /// Those of one tier, the best first.
    pub fn tier(&self, tier: usize) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.schedulers().filter(|entry| entry.tier == tier).collect();
        entries.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
        entries
    }

    /// The best and all others tie.
    pub fn all_alike(&self) -> bool {
        self.schedulers().all(|entry| entry.tier == 1)
    }

    /// The best scheduler's mean ratio to the oracle.
    pub fn best(&self) -> f64 {
        self.schedulers().map(Entry::ratio).fold(0.0, f64::max)
    }

    /// The loss of `entry` against the best scheduler, as a part of it; below zero for a path alone that is better still.
    pub fn loss(&self, entry: &Entry) -> f64 {
        let best = self.best();
        if best > 0.0 { 1.0 - entry.ratio() / best } else { 0.0 }
    }

    /// None of these schedulers beats another.
    pub fn tie(&self, schedulers: &[&str]) -> bool {
        let own: Vec<&Entry> = schedulers.iter().filter_map(|name| self.entry(name)).collect();
        own.iter().all(|a| own.iter().all(|b| !a.beats(b)))
    }

    /// Some path costs something.
    pub fn is_priced(&self) -> bool {
        self.entries.iter().any(|entry| entry.price.is_some_and(|price| price > 0.0))
    }

    /// The entry of `scheduler`.
    pub fn entry(&self, scheduler: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.scheduler == scheduler)
    }
}

/// The score of a cell with these rows; `None` without a single path.
pub(super) fn cell(rows: &[Vec<RunRecord>], random: bool) -> Option<CellScore> {
    let rows = rows.iter().filter_map(|row| Some((row.first()?.scheduler.as_str(), &row[..])));
    let (singles, schedulers): (Vec<_>, Vec<_>) = rows.partition(|(name, _)| RowKind::of(name).is_single());
    let (best_single, single) =
        singles.into_iter().max_by(|(_, a), (_, b)| mean_of(a, speed).total_cmp(&mean_of(b, speed)))?;
    let (known, schedulers): (Vec<_>, Vec<_>) = schedulers.into_iter().partition(|(name, _)| knows_rates(name));
    let of = |(name, row): &(&str, &[RunRecord])| entry(name, row, single, row.iter().map(ratio).collect());
    let all = |rows: &[(&str, &[RunRecord])]| {
        let mut entries: Vec<Entry> = rows.iter().map(of).collect();
        find_slower(&mut entries, rows, single, random);
        entries
    };
    let mut entries = all(&schedulers);
    place(&mut entries);
    entries.extend(all(&known));
    entries.push(entry(BEST_SINGLE, single, single, single.iter().map(ratio_of_all).collect()));
    let values: &CellValues = &single.first()?.cell;
    let value = |key| values.get(key).cloned().unwrap_or_default();
    let best_single = RowKind::of(best_single).path().unwrap_or_default().to_owned();
    let [paths, kind, part, traffic] = [PATHS, KIND, PART, TRAFFIC].map(value);
    Some(CellScore { paths, kind, part, traffic, best_single, entries })
}

/// Greater is better.
fn speed(run: &RunRecord) -> f64 {
    match run.metrics.get(names::FRAME_DELAY) {
        Some(delay) if *delay > 0.0 => 1.0 / delay,
        Some(_) => 0.0,
        None => run.metrics.get(names::GOODPUT).copied().unwrap_or(0.0),
    }
}

/// Mean of `value` over the seeds.
pub(super) fn mean_of(row: &[RunRecord], value: fn(&RunRecord) -> f64) -> f64 {
    mean(&row.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// The result ÷ the oracle's; 0 if the transfer did not finish.
pub(super) fn ratio(run: &RunRecord) -> f64 {
    finished(run, names::ORACLE_RATIO)
}

/// The same of a path alone, whose own oracle is that of the path: against the oracle of all paths.
fn ratio_of_all(run: &RunRecord) -> f64 {
    finished(run, names::ORACLE_RATIO_OF_ALL)
}

fn finished(run: &RunRecord, ratio: &str) -> f64 {
    run.metrics.get(ratio).copied().filter(|_| run.finished).unwrap_or(0.0)
}

/// Speeds with the same seed.
fn speeds(row: &[RunRecord], single: &[RunRecord]) -> Vec<(f64, f64)> {
    row.iter().zip(single).map(|(a, b)| (speed(a), speed(b))).collect()
}

/// Finds which of `entries`, whose runs `rows` has, are slower than the best path alone.
fn find_slower(entries: &mut [Entry], rows: &[(&str, &[RunRecord])], single: &[RunRecord], random: bool) {
    let paired = rows.iter().filter_map(|(_, row)| Paired::of(&speeds(row, single)));
    let differences: Vec<Difference> = paired.map(|paired| Difference::of(&paired, !random)).collect();
    for (entry, (difference, verdict)) in entries.iter_mut().zip(differences.iter().zip(verdicts(&differences))) {
        let is_below = difference.mean < 0.0 && entry.against_single < 1.0 - MARGIN;
        entry.slower = is_below && verdict == Verdict::Differs;
    }
}

fn entry(name: &str, row: &[RunRecord], single: &[RunRecord], ratios: Vec<f64>) -> Entry {
    let pairs = speeds(row, single);
    let relative: Vec<f64> = pairs.iter().filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b).collect();
    let against_single = mean(&relative).unwrap_or(0.0);
    Entry {
        scheduler: name.to_owned(),
        ratios,
        rank: 0.0,
        tier: 0,
        last: false,
        against_single,
        slower: false,
        price: price(row),
    }
}

/// Money spent; `None` where nothing costs anything.
fn price(row: &[RunRecord]) -> Option<f64> {
    let of = |run: &RunRecord| run.metrics.get(names::PRICE).copied().filter(|_| run.finished);
    mean(&row.iter().filter_map(of).collect::<Vec<_>>())
}

/// Ranks, tiers and the schedulers that are last.
fn place(entries: &mut [Entry]) {
    let ranks: Vec<f64> = entries.iter().map(|entry| rank(entry, entries)).collect();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| entries[*b].ratio().total_cmp(&entries[*a].ratio()));
    let mut tiers = vec![0; entries.len()];
    let (mut tier, mut rest) = (0, order.clone());
    while let Some(leader) = rest.first().copied() {
        tier += 1;
        let (tied, beaten): (Vec<_>, Vec<_>) =
            rest.iter().partition(|i| !entries[leader].beats(&entries[**i]) || **i == leader);
        tied.iter().for_each(|i: &usize| tiers[*i] = tier);
        rest = beaten;
    }
    let worst = order.last().map(|i| entries[*i].clone());
    for ((entry, rank), own) in entries.iter_mut().zip(ranks).zip(tiers) {
        entry.last = tier > 1 && worst.as_ref().is_some_and(|worst| !entry.beats(worst));
        (entry.rank, entry.tier) = (rank, own);
    }
}

fn rank(entry: &Entry, all: &[Entry]) -> f64 {
    let others = all.iter().filter(|other| other.scheduler != entry.scheduler);
    let place = |other: &Entry| match (other.beats(entry), entry.beats(other)) {
        (true, _) => 1.0,
        (_, true) => 0.0,
        (false, false) => 0.5,
    };
    1.0 + others.map(place).sum::<f64>()
}
