//! A sweep of many cells as one table: a line per cell.

use super::fields::{Differences, interval};
use super::plain::{heading, plain_table, print_table};
use crate::of_run::cells;
use crate::of_run::rows::Main;
use anabranch_metrics::Better;
use anabranch_run::{ResultRow, Results, RowKind};
use indexmap::IndexSet;
use std::fmt::Write as _;

/// Cells that it shows.
const LINES: usize = 50;

/// In the place of a value that there is not.
const NONE: &str = "–";

/// The main metric in each cell, if there are more cells than tables of their own can show.
pub(super) fn sweep_table(results: &Results, cells: &[&[ResultRow<'_>]], width: usize) -> Option<String> {
    if cells.len() <= cells::APART {
        return None;
    }
    let shown = &cells[..cells.len().min(LINES)];
    let main = Main::all(cells.iter().copied().flatten());
    let mut text: String = main.iter().map(|main| of_main(results, shown, width, main)).collect();
    if shown.len() < cells.len() {
        let _ = writeln!(text, "The first {LINES} of {} cells; the files that --out DIR writes have all.", cells.len());
    }
    Some(text)
}

/// One main metric in each cell.
fn of_main(results: &Results, shown: &[&[ResultRow<'_>]], width: usize, main: &Main) -> String {
    let unit = main.info.scale.unit;
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let text = format!("\n{}{unit}\n", main.label());
    let names: IndexSet<&str> = shown.iter().flat_map(|rows| rows.iter().map(|row| row.name.as_str())).collect();
    let reference = &shown[0][0];
    let sweep = Sweep { differences: Differences::new(results, &main.name, reference), main, names, reference };
    let tables = [Detail::Differences, Detail::Means, Detail::Best].map(|detail| sweep.table(shown, detail));
    let fits = |table: &&String| table.lines().all(|line| line.chars().count() <= width);
    text + tables.iter().find(fits).unwrap_or(&tables[2])
}

/// How much a line says.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    /// Every row's mean, and the schedulers' differences from the first.
    Differences,
    /// Every row's mean.
    Means,
    /// The first scheduler's mean, and the scheduler with the best one.
    Best,
}

/// The parts that all lines share. A cell may lack rows: runs were interrupted, or keys advance together with schedulers.
struct Sweep<'a> {
    differences: Differences<'a>,
    main: &'a Main,
    /// Names of all rows.
    names: IndexSet<&'a str>,
    /// In the first cell.
    reference: &'a ResultRow<'a>,
}

impl Sweep<'_> {
    fn table(&self, cells: &[&[ResultRow<'_>]], detail: Detail) -> String {
        let mut header: Vec<String> = self.reference.cell.keys().cloned().collect();
        header.push("n".to_owned());
        let against = format!("against\n{} %", self.reference.scheduler);
        if detail == Detail::Best {
            header.extend([self.reference.name.clone(), "best".to_owned(), String::new(), against]);
        } else {
            for name in &self.names {
                header.push(heading(name));
                header.extend(self.is_compared(name, detail).then(|| against.clone()));
            }
        }
        let mut table = plain_table(header);
        for rows in cells {
            table.add_row(self.line(rows, detail));
        }
        print_table(&table)
    }

    fn line(&self, rows: &[ResultRow<'_>], detail: Detail) -> Vec<String> {
        let value = |key| rows[0].cell.get(key).cloned().unwrap_or_default();
        let mut line: Vec<String> = self.reference.cell.keys().map(value).collect();
        let n = rows.iter().map(ResultRow::n).max().unwrap_or(0);
        line.push(n.to_string());
        let row = |name: &str| rows.iter().find(|row| row.name == name);
        let mean = |row: Option<&ResultRow<'_>>| row.map_or_else(|| NONE.to_owned(), |row| self.mean(row, n));
        let reference = row(&self.reference.name);
        let difference = |row: Option<&ResultRow<'_>>| {
            let pair = row.zip(reference).filter(|(row, reference)| row.name != reference.name);
            pair.and_then(|(row, reference)| self.differences.text(row, reference)).unwrap_or_default()
        };
        if detail == Detail::Best {
            let best = self.best(rows);
            let name = best.map_or_else(|| NONE.to_owned(), |row| row.name.clone());
            line.extend([mean(reference), name, mean(best), difference(best)]);
        } else {
            for name in &self.names {
                line.push(mean(row(name)));
                line.extend(self.is_compared(name, detail).then(|| difference(row(name))));
            }
        }
        line
    }

    /// The mean, with the number of runs that it is of, if that is not `n`.
    fn mean(&self, row: &ResultRow<'_>, n: usize) -> String {
        let Some(mean) = interval(row, self.main) else { return NONE.to_owned() };
        let own = row.get(&self.main.name).map_or(0, |summary| summary.n);
        if own == n { mean } else { format!("{mean}, n {own}") }
    }

    /// The row's difference from the reference has a column.
    fn is_compared(&self, name: &str, detail: Detail) -> bool {
        detail == Detail::Differences && name != self.reference.name && !RowKind::of(name).is_single()
    }

    /// The scheduler with the best mean.
    fn best<'r, 'b>(&self, rows: &'r [ResultRow<'b>]) -> Option<&'r ResultRow<'b>> {
        let schedulers = rows.iter().filter(|row| !row.kind().is_single());
        let known = schedulers.filter_map(|row| Some((row, row.get(&self.main.name)?.mean)));
        let is_better = |a: f64, b: f64| if self.main.info.better == Some(Better::Lower) { a < b } else { a > b };
        known.reduce(|a, b| if is_better(b.1, a.1) { b } else { a }).map(|(row, _)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::Summary;
    use serde_json::json;

    /// Cells of some schedulers: each has 1 Mbit/s more than the one before it. A path alone has no goodput in the last cell.
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
            "0ms           3  10.000 ± 0.050  11.000 ± 0.050   +10.0 *  2.000 ± 0.050",
            "1ms           3  10.000 ± 0.050  11.000 ± 0.050   +10.0 *  2.000 ± 0.050",
            "2ms           3  10.000 ± 0.050  11.000 ± 0.050   +10.0 *  2.000 ± 0.050",
            "3ms           3  10.000 ± 0.050  11.000 ± 0.050   +10.0 *  2.000 ± 0.050",
            "4ms           3  10.000 ± 0.050  11.000 ± 0.050   +10.0 *              –",
        ];
        assert_eq!(text(&results(&["minrtt", "blest"], 5)).unwrap().lines().collect::<Vec<_>>(), expected);
        assert_eq!(text(&results(&["minrtt", "blest"], 4)), None, "so few have tables of their own");
    }

    #[test]
    fn of_many_schedulers_the_best_is_named() {
        let text = text(&results(&["minrtt", "blest", "ecf", "daps", "stms", "otias", "cp"], 5)).unwrap();
        assert!(text.contains("path.b.delay  n          minrtt  best                   against\n"), "{text}");
        assert!(text.contains("\n4ms           3  10.000 ± 0.050    cp  16.000 ± 0.050   +60.0 *\n"), "{text}");
    }

    #[test]
    fn of_many_cells_the_first_are_shown() {
        let text = text(&results(&["minrtt"], 60)).unwrap();
        assert_eq!(text.lines().count(), 4 + LINES + 1, "{text}");
        assert!(text.ends_with("The first 50 of 60 cells; the files that --out DIR writes have all.\n"), "{text}");
    }

    #[test]
    fn rows_that_a_cell_lacks_leave_their_places_empty() {
        let mut results = results(&["minrtt", "blest"], 5);
        let of =
            |s: &Summary, scheduler: &str, delay: &str| &*s.scheduler == scheduler && s.cell["path.b.delay"] == delay;
        results.summary.retain(|s| !of(s, "minrtt", "1ms") && !of(s, "blest", "2ms"));
        results.summary.iter_mut().filter(|s| of(s, "blest", "3ms")).for_each(|s| s.n = 2);
        let text = text(&results).unwrap();
        let lines: Vec<&str> = text.lines().skip(6).take(3).map(str::trim_end).collect();
        let expected = [
            "1ms           3               –       11.000 ± 0.050            2.000 ± 0.050",
            "2ms           3  10.000 ± 0.050                    –            2.000 ± 0.050",
            "3ms           3  10.000 ± 0.050  11.000 ± 0.050, n 2   +10.0 *  2.000 ± 0.050",
        ];
        assert_eq!(lines, expected, "{text}");
    }
}
