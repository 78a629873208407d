//! The answer of a sweep in sentences: in how many cells each scheduler is better and worse than the first.

use super::answer::Words;
use super::rows::Main;
use anabranch_metrics::{Better, SIGNIFICANT, Verdict};
use anabranch_run::{Comparison, ResultRow, Results};
use indexmap::IndexMap;

/// Schedulers of a sweep that get a sentence of their own.
const COUNTED: usize = 6;

/// How often each scheduler is better and worse than the first.
pub fn of(results: &Results, rows: &[ResultRow<'_>], main: &Main, cells: usize) -> Vec<String> {
    let Some(reference) = rows.iter().find(|row| !row.kind().is_single()) else { return Vec::new() };
    // With several congestion controls, rows are named by both.
    let label = |c: &Comparison| match reference.name == reference.scheduler {
        true => c.a.to_string(),
        false => format!("{}, {}", c.a, c.congestion),
    };
    let is_higher_better = main.info.better != Some(Better::Lower);
    let mut found: IndexMap<String, Count> = IndexMap::new();
    for (comparison, verdict) in results.verdicts(&main.name, reference.scheduler) {
        let is_better = (comparison.mean_diff > 0.0) == is_higher_better;
        found.entry(label(comparison)).or_default().add(verdict, is_better);
    }
    if found.is_empty() {
        return vec![format!(
            "{cells} cells of {}; there is no other scheduler to compare it with.",
            reference.scheduler
        )];
    }
    let words = Words::of(main.info, &main.label());
    found.iter().take(COUNTED).map(|(name, count)| count.sentence(name, reference.scheduler, &words)).collect()
}

/// The cells of a sweep by the verdict on a scheduler against the reference.
#[derive(Default)]
struct Count {
    better: usize,
    worse: usize,
    equal: usize,
    /// Cells in which the seeds show no difference.
    open: usize,
    /// Better and worse in runs that cannot be tested: one random run each, or runs that overlap.
    untested: [usize; 2],
}

impl Count {
    fn add(&mut self, verdict: Verdict, is_better: bool) {
        *match (verdict, is_better) {
            (Verdict::Differs, true) => &mut self.better,
            (Verdict::Differs, false) => &mut self.worse,
            (Verdict::Equal, _) => &mut self.equal,
            (Verdict::Open, _) => &mut self.open,
            (Verdict::Untested, _) => &mut self.untested[usize::from(!is_better)],
        } += 1;
    }

    fn sentence(&self, name: &str, reference: &str, words: &Words) -> String {
        let &Self { better, worse, equal, open, untested: [above, below] } = self;
        let Words { label, better: more, worse: less, .. } = words;
        let article = words.article();
        let all = better + worse + equal + open + above + below;
        let most = format!("{article}{more} {label} than {reference}");
        if open == all {
            let test = "paired t test with Holm's correction";
            return format!(
                "Between {name} and {reference} the seeds show no difference in {label} in any of {all} cells ({test})."
            );
        }
        let untested = above + below;
        if untested == all {
            return format!(
                "In one run per cell, {name} has {most} in {above} of {all} cells, {less} in {below}. One seed shows no difference: \
                 repeat the runs."
            );
        }
        let mut text = format!("{name} has {most} in {better} of {all} cells, {less} in {worse}");
        if equal > 0 {
            text += &format!("; in {equal} both are equal in every run");
        }
        if open > 0 {
            let other = if untested > 0 { "" } else { "the other " };
            text += &format!(
                "; in {other}{open} the seeds show no difference (paired t test, p < {SIGNIFICANT} after Holm's correction)"
            );
        }
        if untested > 0 {
            text += &format!("; in {untested} no test is possible ({more} in {above}, {less} in {below})");
        }
        text + "."
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer;
    use super::*;
    use anabranch_metrics::names;

    #[test]
    fn a_sweep_counts_the_cells_in_which_the_seeds_decide() {
        let summary = |scheduler: &str, loss: &str| {
            serde_json::json!({ "scheduler": scheduler, "congestion": "lia", "cell": { "loss": loss }, "metric": names::GOODPUT,
                "n": 5, "mean": 1.0, "median": 1.0, "p95": 1.0 })
        };
        let comparison = |loss: &str, mean_diff: f64, p: f64| {
            serde_json::json!({ "a": "blest", "b": "minrtt", "congestion": "lia", "cell": { "loss": loss }, "metric": names::GOODPUT,
                "n": 5, "mean_diff": mean_diff, "p": p })
        };
        let losses = ["1%", "2%", "3%"];
        let summaries: Vec<_> =
            losses.iter().flat_map(|loss| ["minrtt", "blest"].map(|scheduler| summary(scheduler, loss))).collect();
        let said = |comparisons: serde_json::Value| {
            let document = serde_json::json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
                "summary": summaries, "comparisons": comparisons });
            let results: Results = serde_json::from_value(document).unwrap();
            answer::of(&results, &results.rows())
        };
        let mixed = [comparison("1%", 5.0, 0.01), comparison("2%", -5.0, 0.01), comparison("3%", 9.0, 0.2)];
        assert_eq!(
            said(mixed.to_vec().into()),
            [
                "blest has more goodput than minrtt in 1 of 3 cells, less in 1; in the other 1 the seeds show no difference \
              (paired t test, p < 0.05 after Holm's correction)."
            ]
        );
        let open = losses.map(|loss| comparison(loss, 1.0, 0.3));
        assert_eq!(
            said(open.to_vec().into()),
            [
                "Between blest and minrtt the seeds show no difference in goodput in any of 3 cells (paired t test with Holm's correction)."
            ]
        );
        // Each alone would be below 0.05.
        let many = losses.map(|loss| comparison(loss, 1.0, 0.03));
        assert!(said(many.to_vec().into())[0].starts_with("Between blest and minrtt the seeds show no difference"));
    }

    #[test]
    fn a_sweep_without_randomness_is_compared_exactly() {
        let said = |deterministic: [bool; 3], diffs: [f64; 3]| {
            let mut summary = Vec::new();
            let mut comparisons = Vec::new();
            for ((cell, diff), deterministic) in ["10ms", "20ms", "30ms"].into_iter().zip(diffs).zip(deterministic) {
                let cell = serde_json::json!({ "path.a.delay": cell });
                for (scheduler, mean) in [("minrtt", 18e6), ("blest", 18e6 + diff)] {
                    summary.push(serde_json::json!({ "scheduler": scheduler, "congestion": "lia", "cell": cell, "metric": names::GOODPUT,
                        "n": 1, "mean": mean, "median": mean, "p95": mean, "deterministic": deterministic }));
                }
                comparisons.push(serde_json::json!({ "a": "blest", "b": "minrtt", "congestion": "lia", "cell": cell,
                    "metric": names::GOODPUT, "n": 1, "mean_diff": diff, "p_wilcoxon": 1.0 }));
            }
            let document = serde_json::json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
                "summary": summary, "comparisons": comparisons });
            let results: Results = serde_json::from_value(document).unwrap();
            answer::of(&results, &results.rows()).concat()
        };
        assert_eq!(
            said([true; 3], [10.4e6, -1.0, 0.0]),
            "blest has more goodput than minrtt in 1 of 3 cells, less in 1; in 1 both are equal in every run."
        );
        assert_eq!(
            said([false; 3], [10.4e6, -1.0, 1.0]),
            "In one run per cell, blest has more goodput than minrtt in 2 of 3 cells, less in 1. One seed shows no difference: \
             repeat the runs."
        );
        // A difference that is exact stays shown beside cells of one random run.
        assert_eq!(
            said([true, false, true], [10.4e6, -1.0, 0.0]),
            "blest has more goodput than minrtt in 1 of 3 cells, less in 0; in 1 both are equal in every run; in 1 no test is \
             possible (more in 0, less in 1)."
        );
    }
}
