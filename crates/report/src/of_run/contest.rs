//! The rows of one cell against each other in one metric, seed by seed.

use anabranch_metrics::{Difference, MetricInfo, Paired, Verdict, half_width, mean, verdicts};
use anabranch_run::{ResultRow, Results, RowKind};

/// A row with its value per seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// The row's.
    pub name: String,
    /// Path of a row of one path alone.
    pub path: Option<String>,
    /// Over the runs that have the metric.
    pub mean: f64,
    /// Their number.
    pub runs: usize,
    /// Nothing in its runs is random.
    pub deterministic: bool,
    values: Vec<(u64, f64)>,
}

impl Entrant {
    /// The row `name` with its values by seed, at least one.
    pub fn new(name: &str, values: Vec<(u64, f64)>, deterministic: bool) -> Self {
        let runs = values.len();
        let mean = mean(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>()).unwrap_or(0.0);
        let path = RowKind::of(name.split(',').next().unwrap_or(name)).path().map(str::to_owned);
        Self { name: name.to_owned(), path, mean, runs, deterministic, values }
    }

    /// All rows that have the metric.
    pub fn all(results: &Results, rows: &[ResultRow<'_>], info: &MetricInfo) -> Vec<Self> {
        let entrant = |row: &ResultRow<'_>| {
            let is_it = |run: &anabranch_run::RunRow<'_>| {
                (&**run.scheduler(), &**run.congestion()) == (row.scheduler, row.congestion)
                    && **run.cell() == *row.cell
            };
            let runs = results.runs.rows().find(is_it)?;
            let seeds = runs.seeds().into_iter().zip(runs.metric(info.name));
            let values: Vec<(u64, f64)> = seeds.filter_map(|(seed, value)| Some((seed, value?))).collect();
            (!values.is_empty()).then(|| Self::new(&row.name, values, row.deterministic()))
        };
        rows.iter().filter_map(entrant).collect()
    }

    /// The values of both in the seeds that both have; a run without randomness has one value, which counts for every seed.
    fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let of = |entrant: &Self, seed: u64| {
            let of_seed = entrant.values.iter().find(|(own, _)| *own == seed);
            of_seed.or_else(|| entrant.values.first().filter(|_| entrant.deterministic)).map(|(_, value)| *value)
        };
        let seeds = if self.deterministic { &other.values } else { &self.values };
        seeds.iter().filter_map(|(seed, _)| Some((of(self, *seed)?, of(other, *seed)?))).collect()
    }
}

/// The gain of one row against another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain<'a> {
    /// The row that gains.
    pub best: &'a Entrant,
    /// The row that it is compared with.
    pub other: &'a Entrant,
    /// Part of the other's mean; positive is better.
    pub share: f64,
    /// Half of its 95 % interval; absent where the differences do not vary, or are too few.
    half: Option<f64>,
    /// On the difference, among all that were tested together.
    pub verdict: Verdict,
}

impl Gain<'_> {
    /// `11 %`, without a sign.
    pub fn percent(&self) -> String {
        percent(self.share)
    }

    /// ` (± 4 %)`; empty without an interval.
    pub fn interval(&self) -> String {
        self.half.map(|half| format!(" (± {})", percent(half))).unwrap_or_default()
    }

    /// The runs show it.
    pub fn is_sure(&self) -> bool {
        self.verdict == Verdict::Differs
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share.abs();
    let decimals = usize::from((0.05..0.95).contains(&percent));
    format!("{percent:.decimals$} %")
}

/// `best` against each of `others`, in their order. Rows without a common seed are left out.
pub fn gains<'a>(best: &'a Entrant, others: &[&'a Entrant], is_higher_better: bool) -> Vec<Gain<'a>> {
    let sign = if is_higher_better { 1.0 } else { -1.0 };
    let paired = others.iter().filter_map(|other| Some((*other, Paired::of(&best.pairs(other))?)));
    let paired: Vec<(&Entrant, Paired)> = paired.collect();
    let difference =
        |(other, paired): &(&Entrant, Paired)| Difference::of(paired, best.deterministic && other.deterministic);
    let verdicts = verdicts(&paired.iter().map(difference).collect::<Vec<_>>());
    let gain = |((other, paired), verdict): ((&'a Entrant, Paired), Verdict)| {
        let base = other.mean.abs();
        let share = if base > 0.0 { sign * paired.mean_diff / base } else { 0.0 };
        let half = paired.ci95.map(|ends| half_width(paired.mean_diff, ends) / base).filter(|half| half.is_finite());
        Gain { best, other, share, half, verdict }
    };
    paired.into_iter().zip(verdicts).map(gain).collect()
}

/// One row against one other.
pub fn gain<'a>(row: &'a Entrant, other: &'a Entrant, is_higher_better: bool) -> Option<Gain<'a>> {
    gains(row, &[other], is_higher_better).pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_common_seeds_are_paired_and_what_is_fixed_pairs_with_all() {
        let a = Entrant::new("a", vec![(1, 10.0), (2, 12.0), (3, 14.0)], false);
        let b = Entrant::new("b", vec![(2, 6.0), (3, 6.0), (4, 9.0)], false);
        assert_eq!(a.pairs(&b), [(12.0, 6.0), (14.0, 6.0)]);
        let fixed = Entrant::new("single:3g", vec![(1, 5.0)], true);
        assert_eq!((fixed.path.as_deref(), a.pairs(&fixed).len(), fixed.pairs(&a).len()), (Some("3g"), 3, 3));
    }

    #[test]
    fn many_comparisons_need_more_than_each_alone() {
        // p = 0.025 alone; of three, 0.074.
        let best = Entrant::new(
            "best",
            [5.0, 6.0, 7.0, 8.0, 9.0].iter().enumerate().map(|(s, v)| (s as u64, *v)).collect(),
            false,
        );
        let near = |name: &str| {
            let values = [4.0, 5.7, 5.5, 7.7, 7.6];
            Entrant::new(name, values.iter().enumerate().map(|(s, v)| (s as u64, *v)).collect(), false)
        };
        let (b, c, d) = (near("b"), near("c"), near("d"));
        assert!(gains(&best, &[&b], true)[0].is_sure());
        assert!(gains(&best, &[&b, &c, &d], true).iter().all(|gain| !gain.is_sure()));
    }
}
