//! Results as consumers read them: rows, each with its kind and its summaries.

use crate::diagnosis::DiagnosisKind;
use crate::estimate::Estimate;
use crate::record::CellValues;
use crate::results::{Comparison, Results, Summary};
use crate::row_kind::RowKind;
use anabranch_metrics::{Difference, MetricRef, Verdict, half_width, names, verdicts};

/// A row of results: scheduler × congestion control × cell.
#[derive(Clone, Debug)]
pub struct ResultRow<'a> {
    /// Canonical name with its suffix, or `single:PATH`.
    pub scheduler: &'a str,
    /// Canonical name.
    pub congestion: &'a str,
    /// The sweep's cell.
    pub cell: &'a CellValues,
    /// The scheduler's name; with that of the congestion control where schedulers run with several.
    pub name: String,
    summaries: Vec<&'a Summary>,
}

impl Results {
    /// All rows, in the order of the results.
    pub fn rows(&self) -> Vec<ResultRow<'_>> {
        let mut rows: Vec<ResultRow<'_>> = Vec::new();
        for summary in &self.summary {
            let (scheduler, congestion, cell) = (&*summary.scheduler, &*summary.congestion, &summary.cell);
            // The summaries of a row are next to each other.
            match rows.last_mut() {
                Some(row) if (row.scheduler, row.congestion, row.cell) == (scheduler, congestion, cell) => {
                    row.summaries.push(summary)
                }
                _ => {
                    rows.push(ResultRow { summaries: vec![summary], ..ResultRow::bare(scheduler, congestion, cell) });
                }
            }
        }
        let mut controls = rows.iter().filter(|row| !row.kind().is_single()).map(|row| row.congestion);
        let first = controls.next();
        if controls.any(|control| Some(control) != first) {
            rows.iter_mut().for_each(|row| row.name = format!("{}, {}", row.scheduler, row.congestion));
        }
        rows
    }

    /// The runs of the cell share parts of a recording, so no test decides about them.
    pub fn overlap(&self, cell: &CellValues) -> bool {
        self.diagnosis.iter().any(|one| one.kind == DiagnosisKind::Overlap && one.cell == *cell)
    }

    /// The verdict on each difference from `reference`, a scheduler, in `metric`: all are tested together, over all cells and
    /// congestion controls.
    pub fn verdicts(&self, metric: &str, reference: &str) -> Vec<(&Comparison, Verdict)> {
        // Both lists have the cells in one order.
        let mut cells = self.summary.iter().filter(|summary| *summary.metric == *metric).peekable();
        let mut difference = |c: &Comparison| {
            while cells.next_if(|summary| summary.cell != c.cell).is_some() {}
            let deterministic = cells.peek().is_some_and(|summary| summary.deterministic);
            let ci95 = c.ci95_low.zip(c.ci95_high);
            Difference { mean: c.mean_diff, n: c.n, p: c.p, ci95, deterministic, overlaps: self.overlap(&c.cell) }
        };
        let of = |c: &&Comparison| *c.metric == *metric && *c.b == *reference;
        let comparisons: Vec<&Comparison> = self.comparisons.iter().filter(of).collect();
        let differences: Vec<Difference> = comparisons.iter().map(|c| difference(c)).collect();
        comparisons.into_iter().zip(verdicts(&differences)).collect()
    }
}

impl<'a> ResultRow<'a> {
    /// A row that measured nothing.
    pub fn bare(scheduler: &'a str, congestion: &'a str, cell: &'a CellValues) -> Self {
        Self { scheduler, congestion, cell, name: scheduler.to_owned(), summaries: Vec::new() }
    }

    /// Kind of the row.
    pub fn kind(&self) -> RowKind<'a> {
        RowKind::of(self.scheduler)
    }

    /// The summary of a metric, by its name in results.
    pub fn get(&self, metric: &str) -> Option<&'a Summary> {
        self.summaries.iter().find(|summary| *summary.metric == *metric).copied()
    }

    /// The metrics that it has, in the order of the results.
    pub fn metrics(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.summaries.iter().map(|summary| &*summary.metric)
    }

    /// The names of its paths, in the scenario's order.
    pub fn paths(&self) -> Vec<&'a str> {
        let metrics = self.metrics().map(MetricRef::parse).filter(|metric| metric.name == names::SHARE);
        metrics.filter_map(|metric| metric.path).collect()
    }

    /// Most runs that any metric was measured in.
    pub fn n(&self) -> usize {
        self.summaries.iter().map(|summary| summary.n).max().unwrap_or(0)
    }

    /// One run suffices: the row has no randomness.
    pub fn deterministic(&self) -> bool {
        self.summaries.iter().any(|summary| summary.deterministic)
    }

    /// Runs that did not finish their transfer.
    pub fn unfinished(&self) -> usize {
        self.summaries.iter().map(|summary| summary.unfinished).max().unwrap_or(0)
    }

    /// Name with congestion control and cell.
    pub fn full_name(&self) -> String {
        let cell: String = self.cell.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
        format!("{} ({}{cell})", self.scheduler, self.congestion)
    }
}

fn half(mean: f64, low: Option<f64>, high: Option<f64>) -> Option<f64> {
    low.zip(high).map(|ends| half_width(mean, ends))
}

impl Summary {
    /// The longer side of the 95 % interval; absent without one.
    pub fn half_width(&self) -> Option<f64> {
        half(self.mean, self.ci95_low, self.ci95_high)
    }
}

impl Comparison {
    /// The longer side of the 95 % interval; absent without one.
    pub fn half_width(&self) -> Option<f64> {
        half(self.mean_diff, self.ci95_low, self.ci95_high)
    }
}

impl Estimate {
    /// The longer side of the 95 % interval; absent without one.
    pub fn half_width(&self) -> Option<f64> {
        half(self.mean, self.ci95_low, self.ci95_high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results(rows: &[(&str, &str, &str, f64)]) -> Results {
        let summary = |(scheduler, congestion, metric, mean): &(&str, &str, &str, f64)| {
            json!({ "scheduler": scheduler, "congestion": congestion, "cell": {}, "metric": metric, "n": 3, "mean": mean,
                "median": mean, "p95": mean, "ci95_low": mean - 1.0, "ci95_high": mean + 1.0 })
        };
        let summaries: Vec<_> = rows.iter().map(summary).collect();
        let document = json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
            "summary": summaries, "comparisons": [] });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_row_has_its_summaries_and_paths() {
        let results = results(&[
            ("minrtt", "lia", "goodput_bps", 2.0),
            ("minrtt", "lia", "path.a.b.share", 0.5),
            ("minrtt", "lia", "path.a.b.sent_bytes", 7.0),
            ("single:c", "reno", "goodput_bps", 4.0),
        ]);
        let rows = results.rows();
        let of = |row: &ResultRow<'_>| (row.name.clone(), row.kind().is_single(), row.paths().join(" "));
        assert_eq!(
            [of(&rows[0]), of(&rows[1])],
            [("minrtt".into(), false, "a.b".into()), ("single:c".into(), true, "".into())]
        );
        let goodput = rows[1].get("goodput_bps").unwrap();
        assert_eq!((goodput.mean, goodput.half_width(), rows[0].n()), (4.0, Some(1.0), 3));
    }

    #[test]
    fn names_have_the_congestion_control_where_schedulers_run_with_several() {
        let results = results(&[
            ("minrtt", "lia", "price", 2.0),
            ("minrtt", "olia", "price", 2.0),
            ("single:c", "reno", "price", 4.0),
        ]);
        let names: Vec<String> = results.rows().into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["minrtt, lia", "minrtt, olia", "single:c, reno"]);
    }
}
