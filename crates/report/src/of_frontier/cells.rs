//! Cell by cell.

use super::{percent, some};
use crate::table::{csv_lines, markdown_table};
use anabranch_studies::frontier::{CellScore, Comparison, Entry};

/// How many names a tier has room for.
const NAMES: usize = 3;

/// For each congestion control and cell the first three tiers, the last, and the best path alone.
pub fn cells(comparison: &Comparison) -> String {
    let header =
        ["paths", "kind", "application", "first", "second", "third", "last", "best path alone", "slower than that"]
            .map(str::to_owned);
    let tables = comparison.frontiers.iter().map(|frontier| {
        let table = markdown_table(&header, 8, frontier.cells.iter().map(line));
        format!("\n### With {}\n\n{table}", frontier.congestion)
    });
    tables.collect()
}

fn line(cell: &CellScore) -> Vec<String> {
    let mut line = vec![cell.paths.clone(), cell.kind.clone(), cell.traffic.clone()];
    let single = cell.entries.iter().find(|entry| entry.tier == 0);
    let best_single =
        format!("{} {}", cell.best_single, single.map(|entry| percent(entry.ratio())).unwrap_or_default());
    if cell.all_alike() {
        line.push(format!("all alike {}", percent(cell.best())));
        line.extend([const { String::new() }; 3]);
    } else {
        let last: Vec<&Entry> = cell.schedulers().filter(|entry| entry.last).collect();
        line.extend((1..=3).map(|tier| names(&cell.tier(tier))));
        line.push(names(&last));
    }
    let slower = cell.schedulers().filter(|entry| entry.slower).count();
    line.extend([best_single, format!("{slower} of {}", cell.schedulers().count())]);
    line
}

/// Those of one tier with the ratio of the first.
fn names(entries: &[&Entry]) -> String {
    let Some(first) = entries.first() else { return String::new() };
    let names: Vec<String> = entries.iter().map(|entry| entry.scheduler.clone()).collect();
    format!("{} {}", some(&names, NAMES), percent(first.ratio()))
}

/// One line per congestion control, cell and scheduler.
pub fn csv(comparison: &Comparison) -> String {
    let head = [
        "congestion",
        "paths",
        "kind",
        "part",
        "traffic",
        "scheduler",
        "n",
        "oracle_ratio",
        "lacks",
        "rank",
        "tier",
        "last",
        "against_single",
        "slower",
        "price",
    ];
    let mut records = vec![head.map(str::to_owned).to_vec()];
    for frontier in &comparison.frontiers {
        for cell in &frontier.cells {
            records.extend(cell.entries.iter().map(|entry| record(&frontier.congestion, cell, entry)));
        }
    }
    csv_lines(&records)
}

fn record(congestion: &str, cell: &CellScore, entry: &Entry) -> Vec<String> {
    let texts = [congestion, &cell.paths, &cell.kind, &cell.part, &cell.traffic, &entry.scheduler].map(str::to_owned);
    let mut record = texts.to_vec();
    record.push(entry.ratios.len().to_string());
    record.extend([entry.ratio(), cell.loss(entry), entry.rank].map(|value| value.to_string()));
    record.extend([entry.tier.to_string(), entry.last.to_string(), entry.against_single.to_string()]);
    record.extend([entry.slower.to_string(), entry.price.map(|price| price.to_string()).unwrap_or_default()]);
    record
}
