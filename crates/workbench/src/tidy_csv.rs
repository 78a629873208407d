//! Summaries and comparisons as CSV with one number per column, for data frames.

use anabranch_report::csv_lines;
use anabranch_run::{CellValues, Results};
use std::io::{self, Write};

/// Writes one line per row and metric.
pub fn summary_csv(results: &Results, sink: &mut dyn Write) -> io::Result<()> {
    let columns = ["metric", "n", "mean", "sd", "ci95_low", "ci95_high", "median", "p95", "unfinished"];
    let lines = results.summary.iter().map(|s| {
        let own = [
            s.metric.to_string(),
            s.n.to_string(),
            s.mean.to_string(),
            optional(s.sd),
            optional(s.ci95_low),
            optional(s.ci95_high),
            s.median.to_string(),
            s.p95.to_string(),
            s.unfinished.to_string(),
        ];
        (vec![s.scheduler.to_string(), s.congestion.to_string()], &*s.cell, own.to_vec())
    });
    tidy(results, &["scheduler", "congestion"], &columns, lines, sink)
}

/// Writes one line per pair of schedulers and metric: `a` less `b`, run by run.
pub fn comparisons_csv(results: &Results, sink: &mut dyn Write) -> io::Result<()> {
    let columns = ["metric", "n", "mean_diff", "ci95_low", "ci95_high", "p", "p_wilcoxon", "effect_size"];
    let lines = results.comparisons.iter().map(|c| {
        let own = [
            c.metric.to_string(),
            c.n.to_string(),
            c.mean_diff.to_string(),
            optional(c.ci95_low),
            optional(c.ci95_high),
            optional(c.p),
            optional(c.p_wilcoxon),
            optional(c.effect_size),
        ];
        (vec![c.a.to_string(), c.b.to_string(), c.congestion.to_string()], &*c.cell, own.to_vec())
    });
    tidy(results, &["a", "b", "congestion"], &columns, lines, sink)
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Names, then the swept keys as in `runs.csv`, then the values.
fn tidy<'r>(
    results: &Results,
    names: &[&str],
    columns: &[&str],
    lines: impl Iterator<Item = (Vec<String>, &'r CellValues, Vec<String>)>,
    sink: &mut dyn Write,
) -> io::Result<()> {
    let keys: Vec<String> = results.summary.first().map(|row| row.cell.keys().cloned().collect()).unwrap_or_default();
    let mut header: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    for key in &keys {
        header.push(format!("cell.{key}"));
        header.extend(results.sweep.contains_key(key).then(|| key.clone()));
    }
    header.extend(columns.iter().map(|name| (*name).to_owned()));
    let line = |(mut line, cell, values): (Vec<String>, &CellValues, Vec<String>)| {
        for key in &keys {
            let text = cell.get(key).cloned().unwrap_or_default();
            let number = results.sweep.get(key).map(|swept| optional(swept.values.get(&text).copied()));
            line.push(text);
            line.extend(number);
        }
        line.extend(values);
        line
    };
    std::iter::once(header).chain(lines.map(line)).try_for_each(|line| sink.write_all(csv_lines(&[line]).as_bytes()))
}
