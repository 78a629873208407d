//! A sweep of many cells as one table: a line per cell.

use super::plain::{heading, plain_table, print_table};
use super::results::{difference, interval, measured_in};
use anabranch_metrics::{Better, MetricInfo, main_metric};
use anabranch_run::{ResultRow, Results};
use std::fmt::Write as _;

/// A table for each cell up to this number; sweeps with more cells are one table.
const APART: usize = 4;
/// Cells that it shows.
const LINES: usize = 50;

/// The rows of one cell.
type CellRows<'a> = [ResultRow<'a>];

/// The main metric in each cell, if there are more cells than tables of their own can show.
pub(super) fn sweep_table(results: &Results, cells: &[&CellRows<'_>], width: usize) -> Option<String> {
    if cells.len() <= APART {
        return None;
    }
    let main = main_metric(|metric| cells.iter().any(|rows| rows.iter().any(|row| row.get(metric).is_some())));
    let shown = &cells[..cells.len().min(LINES)];
    let unit = if main.scale.unit.is_empty() { String::new() } else { format!(", {}", main.scale.unit) };
    let mut text = format!("\n{}{unit}\n", main.label);
    let tables = [Detail::Differences, Detail::Means, Detail::Best].map(|detail| table(results, shown, main, detail));
    let fits = |table: &&String| table.lines().all(|line| line.chars().count() <= width);
    text += tables.iter().find(fits).unwrap_or(&tables[2]);
    if shown.len() < cells.len() {
        let _ = writeln!(text, "… and {} more cells; --out DIR writes all of them.", cells.len() - shown.len());
    }
    Some(text)
}

/// How much a line says.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    /// Every row's mean, and the schedulers' differences from the first.
    Differences,
    /// Every row's mean.
    Means,
    /// The first scheduler's mean, and the scheduler that differs most to the good.
    Best,
}

fn table(results: &Results, cells: &[&CellRows<'_>], main: &'static MetricInfo, detail: Detail) -> String {
    let keys: Vec<&String> = cells[0][0].cell.keys().collect();
    let reference = &cells[0][0];
    let mut header: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    header.push("n".to_owned());
    match detail {
        Detail::Best => header.extend([reference.name.clone(), "best".to_owned(), against(reference)]),
        _ => {
            for row in cells[0] {
                header.push(heading(&row.name));
                header.extend(is_compared(row, reference, detail).then(|| against(reference)));
            }
        }
    }
    let mut table = plain_table(header);
    for rows in cells {
        let mut line: Vec<String> =
            keys.iter().map(|key| rows[0].cell.get(*key).cloned().unwrap_or_default()).collect();
        line.push(measured_in(&rows[0], main.name));
        let mean = |row: &ResultRow<'_>| interval(row, main).unwrap_or_else(|| "–".to_owned());
        let difference = |row: &ResultRow<'_>| difference(results, row, &rows[0], main.name).unwrap_or_default();
        match detail {
            Detail::Best => {
                line.push(mean(&rows[0]));
                let best = best(rows, main);
                line.extend([
                    best.map_or_else(String::new, |row| row.name.clone()),
                    best.map_or_else(String::new, difference),
                ]);
            }
            _ => {
                for row in *rows {
                    line.push(mean(row));
                    line.extend(is_compared(row, reference, detail).then(|| difference(row)));
                }
            }
        }
        table.add_row(line);
    }
    print_table(&table)
}

fn against(reference: &ResultRow<'_>) -> String {
    format!("against\n{} %", reference.scheduler)
}

/// Its difference from the reference has a column.
fn is_compared(row: &ResultRow<'_>, reference: &ResultRow<'_>, detail: Detail) -> bool {
    let is_other = row.scheduler != reference.scheduler && row.congestion == reference.congestion;
    detail == Detail::Differences && is_other && !row.kind().is_single()
}

/// The scheduler with the best mean; `None` if that is the first.
fn best<'a, 'r>(rows: &'a CellRows<'r>, main: &MetricInfo) -> Option<&'a ResultRow<'r>> {
    let mean = |row: &ResultRow<'_>| row.get(main.name).map(|summary| summary.mean);
    let same = rows.iter().filter(|row| !row.kind().is_single() && row.congestion == rows[0].congestion);
    let known = same.filter_map(|row| Some((row, mean(row)?)));
    let is_better = |a: f64, b: f64| if main.better == Some(Better::Lower) { a < b } else { a > b };
    let (best, _) = known.reduce(|a, b| if is_better(b.1, a.1) { b } else { a })?;
    (best.scheduler != rows[0].scheduler).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Five cells of some schedulers, each a Mbit/s better than the one before it, and a path alone without a value in the
    /// last cell.
    fn results(schedulers: &[&str], cells: usize) -> Results {
        let (mut summary, mut comparisons) = (Vec::new(), Vec::new());
        for n in 0..cells {
            let cell = json!({ "path.b.delay": format!("{n}ms") });
            let entry = |scheduler: &str, metric: &str, mean: f64| {
                json!({ "scheduler": scheduler, "congestion": "cubic", "cell": cell, "metric": metric, "n": 3, "mean": mean,
                    "median": mean, "p95": mean, "ci95_low": mean - 5e4, "ci95_high": mean + 5e4 })
            };
            for (place, scheduler) in schedulers.iter().enumerate() {
                summary.push(entry(scheduler, "goodput_bps", 1e7 + 1e6 * place as f64));
                if place > 0 {
                    comparisons.push(json!({ "a": scheduler, "b": schedulers[0], "congestion": "cubic", "cell": cell,
                        "metric": "goodput_bps", "n": 3, "mean_diff": 1e6 * place as f64 }));
                }
            }
            summary.push(if n + 1 < cells {
                entry("single:b", "goodput_bps", 2e6)
            } else {
                entry("single:b", "events", 7.0)
            });
        }
        let document = json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
            "summary": summary, "comparisons": comparisons });
        serde_json::from_value(document).unwrap()
    }

    fn text(results: &Results) -> Option<String> {
        let rows = results.rows();
        sweep_table(results, &rows.chunk_by(|a, b| a.cell == b.cell).collect::<Vec<_>>(), 100)
    }

    #[test]
    fn a_cell_is_a_line() {
        let expected = [
            "",
            "goodput, Mbit/s",
            "path.b.delay  n          minrtt           blest   against       single:b",
            "                                                 minrtt %",
            "────────────────────────────────────────────────────────────────────────",
            "0ms           3  10.000 ± 0.050  11.000 ± 0.050     +10.0  2.000 ± 0.050",
            "1ms           3  10.000 ± 0.050  11.000 ± 0.050     +10.0  2.000 ± 0.050",
            "2ms           3  10.000 ± 0.050  11.000 ± 0.050     +10.0  2.000 ± 0.050",
            "3ms           3  10.000 ± 0.050  11.000 ± 0.050     +10.0  2.000 ± 0.050",
            "4ms           3  10.000 ± 0.050  11.000 ± 0.050     +10.0              –",
        ];
        assert_eq!(text(&results(&["minrtt", "blest"], 5)).unwrap().lines().collect::<Vec<_>>(), expected);
        assert_eq!(text(&results(&["minrtt", "blest"], 4)), None, "so few have tables of their own");
    }

    #[test]
    fn of_many_schedulers_the_best_is_named() {
        let text = text(&results(&["minrtt", "blest", "ecf", "daps", "stms", "otias", "cp"], 5)).unwrap();
        assert!(text.contains("path.b.delay  n          minrtt  best   against\n"), "{text}");
        assert!(text.contains("\n4ms           3  10.000 ± 0.050    cp     +60.0\n"), "{text}");
    }

    #[test]
    fn of_many_cells_the_first_are_shown() {
        let text = text(&results(&["minrtt"], 60)).unwrap();
        assert_eq!(text.lines().count(), 4 + LINES + 1, "{text}");
        assert!(text.ends_with("… and 10 more cells; --out DIR writes all of them.\n"), "{text}");
    }
}
