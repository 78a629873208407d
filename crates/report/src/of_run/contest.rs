//! The rows of one cell against each other in one metric, seed by seed.

use anabranch_metrics::{Difference, Paired, Verdict, half_width, mean, verdicts};
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
    /// Runs that share parts of a recording: no test decides about them.
    pub overlaps: bool,
    values: Vec<(u64, f64)>,
}

impl Entrant {
    /// The row `name` with its values by seed, at least one.
    pub fn new(name: &str, values: Vec<(u64, f64)>, deterministic: bool) -> Self {
        let runs = values.len();
        let mean = mean(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>()).unwrap_or(0.0);
        let path = RowKind::of(name.split(',').next().unwrap_or(name)).path().map(str::to_owned);
        Self { name: name.to_owned(), path, mean, runs, deterministic, overlaps: false, values }
    }

    /// The same, of runs that share parts of a recording.
    pub fn overlapping(self) -> Self {
        Self { overlaps: true, ..self }
    }

    /// All rows that have the metric.
    pub fn all(results: &Results, rows: &[ResultRow<'_>], metric: &str) -> Vec<Self> {
        let entrant = |row: &ResultRow<'_>| {
            let is_it = |run: &anabranch_run::RunRow<'_>| {
                (&**run.scheduler(), &**run.congestion()) == (row.scheduler, row.congestion)
                    && **run.cell() == *row.cell
            };
            let runs = results.runs.rows().find(is_it)?;
            let seeds = runs.seeds().into_iter().zip(runs.metric(metric));
            let values: Vec<(u64, f64)> = seeds.filter_map(|(seed, value)| Some((seed, value?))).collect();
            let entrant = (!values.is_empty()).then(|| Self::new(&row.name, values, row.deterministic()))?;
            Some(if results.overlap(row.cell) { entrant.overlapping() } else { entrant })
        };
        rows.iter().filter_map(entrant).collect()
    }

    /// The values of both in the seeds that both have; a run without randomness has one value, which applies to every seed.
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
    /// 95 % interval of the share; absent where the differences do not vary, or are too few.
    ci95: Option<(f64, f64)>,
    /// On the difference, among all that were tested together.
    pub verdict: Verdict,
}

impl Gain<'_> {
    /// `11 %`, without a sign; none against nothing.
    pub fn percent(&self) -> Option<String> {
        self.share.is_finite().then(|| percent(self.share))
    }

    /// ` (± 4 %)`; ` (0.2 % to 4 %)` where that would seem to reach across zero; empty without an interval.
    pub fn interval(&self) -> String {
        let Some((low, high)) = self.ci95 else { return String::new() };
        let half = half_width(self.share, (low, high));
        match low > 0.0 || high < 0.0 {
            true if half >= self.share.abs() => {
                format!(" ({} to {})", percent(low.abs().min(high.abs())), percent(low.abs().max(high.abs())))
            }
            _ => format!(" (± {})", percent(half)),
        }
    }

    /// The runs show it.
    pub fn is_sure(&self) -> bool {
        self.verdict == Verdict::Differs
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share.abs();
    let decimals = match percent {
        0.0 | 0.95.. => 0,
        0.05.. => 1,
        0.005.. => 2,
        _ => return "under 0.01 %".to_owned(),
    };
    format!("{percent:.decimals$} %")
}

/// `best` against each of `others`, in their order. Rows without a common seed are left out.
pub fn gains<'a>(best: &'a Entrant, others: &[&'a Entrant], is_higher_better: bool) -> Vec<Gain<'a>> {
    let sign = if is_higher_better { 1.0 } else { -1.0 };
    let paired = others.iter().filter_map(|other| Some((*other, Paired::of(&best.pairs(other))?)));
    let paired: Vec<(&Entrant, Paired)> = paired.collect();
    let difference = |(other, paired): &(&Entrant, Paired)| Difference {
        overlaps: best.overlaps || other.overlaps,
        ..Difference::of(paired, best.deterministic && other.deterministic)
    };
    let differences: Vec<Difference> = paired.iter().map(difference).collect();
    let verdicts = verdicts(&differences);
    let gain = |(((other, paired), difference), verdict): (((&'a Entrant, Paired), &Difference), Verdict)| {
        let of_base = |value: f64| if value == 0.0 { 0.0 } else { sign * value / other.mean.abs() };
        let ends = |(low, high)| (of_base(low).min(of_base(high)), of_base(low).max(of_base(high)));
        let ci95 = difference.ci95.filter(|_| other.mean != 0.0 && !difference.overlaps).map(ends);
        Gain { best, other, share: of_base(paired.mean_diff), ci95, verdict }
    };
    paired.into_iter().zip(&differences).zip(verdicts).map(gain).collect()
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
