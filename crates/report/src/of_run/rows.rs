//! The results' rows: scheduler × congestion control × cell.

use anabranch_run::{CellValues, Results, Summary};

/// One row with its summaries.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Canonical name with its suffix, or `single:PATH`.
    pub scheduler: &'a str,
    /// Canonical name.
    pub congestion: &'a str,
    /// The sweep's cell.
    pub cell: &'a CellValues,
    /// What the charts call it: with its congestion control where schedulers run with several.
    pub name: String,
    summaries: Vec<&'a Summary>,
}

/// All of them, in the order of the results.
pub fn all(results: &Results) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for summary in &results.summary {
        let (scheduler, congestion, cell) = (&*summary.scheduler, &*summary.congestion, &summary.cell);
        // A row's summaries stand together.
        match rows.last_mut() {
            Some(row) if (row.scheduler, row.congestion, row.cell) == (scheduler, congestion, cell) => {
                row.summaries.push(summary)
            }
            _ => {
                let name = scheduler.to_owned();
                rows.push(Row { scheduler, congestion, cell, name, summaries: vec![summary] });
            }
        }
    }
    let mut controls = rows.iter().filter(|row| !row.is_baseline()).map(|row| row.congestion);
    let first = controls.next();
    if controls.any(|control| Some(control) != first) {
        rows.iter_mut().for_each(|row| row.name = format!("{}, {}", row.scheduler, row.congestion));
    }
    rows
}

impl<'a> Row<'a> {
    /// A row that measured nothing.
    #[cfg(test)]
    pub fn bare(scheduler: &'a str, congestion: &'a str, cell: &'a CellValues) -> Self {
        Self { scheduler, congestion, cell, name: scheduler.to_owned(), summaries: Vec::new() }
    }

    /// The summary of a metric.
    pub fn get(&self, metric: &str) -> Option<&'a Summary> {
        self.summaries.iter().find(|summary| summary.metric == metric).copied()
    }

    /// The metrics that it has, in the order of the results.
    pub fn metrics(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.summaries.iter().map(|summary| summary.metric.as_str())
    }

    /// Most runs that any metric was seen in.
    pub fn n(&self) -> usize {
        self.summaries.iter().map(|summary| summary.n).max().unwrap_or(0)
    }

    /// True if one run says all.
    pub fn deterministic(&self) -> bool {
        self.summaries.iter().any(|summary| summary.deterministic)
    }

    /// Runs that did not finish their transfer.
    pub fn unfinished(&self) -> usize {
        self.summaries.iter().map(|summary| summary.unfinished).max().unwrap_or(0)
    }

    /// A single path.
    pub fn is_baseline(&self) -> bool {
        self.scheduler.starts_with("single:")
    }

    /// With its congestion control and cell.
    pub fn full_name(&self) -> String {
        let cell: String = self.cell.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
        format!("{} ({}{cell})", self.scheduler, self.congestion)
    }
}

/// The metrics that any of `rows` has, in the order in which they first appear.
pub fn metrics<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut all = Vec::new();
    for metric in rows.iter().flat_map(Row::metrics) {
        if !all.contains(&metric) {
            all.push(metric);
        }
    }
    all
}

/// The greatest absolute mean of a metric.
pub fn greatest(rows: &[Row<'_>], metric: &str) -> f64 {
    rows.iter().filter_map(|row| Some(row.get(metric)?.mean.abs())).fold(0.0, f64::max)
}
