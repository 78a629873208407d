//! The scheduling frontier as text, as Markdown and as CSV.

use crate::plain_table::{plain_table, print_table};
use anabranch_run::frontier::{Frontier, Standing};
use std::fmt::Write as _;

const NOTES: &str = "\
Ratio: mean over all cells (path set × application) of what was reached ÷ the oracle's bound, in percent, ± its 95 %
interval over the seeds; then by application. Rank: mean place among the schedulers. Worst: cells in which none is further
from the oracle. Slower: cells in which the best path alone is faster by more than 1 % (and paired t test, p < 0.05).
single:best is that path.";

fn header(frontier: &Frontier) -> Vec<String> {
    let traffic = frontier.standings.first().into_iter().flat_map(|s| s.by_traffic.keys().cloned());
    let mut header = vec!["scheduler".to_owned(), "ratio %".to_owned()];
    header.extend(traffic);
    header.extend(["rank", "worst", "slower"].map(str::to_owned));
    header
}

fn line(standing: &Standing) -> Vec<String> {
    let mean = standing.ratio.mean * 100.0;
    let half = standing.ratio.ci95_low.zip(standing.ratio.ci95_high).map(|(low, high)| (high - low) * 50.0);
    let mut line = vec![standing.scheduler.clone()];
    line.push(half.map_or(format!("{mean:.1}"), |half| format!("{mean:.1} ± {half:.1}")));
    line.extend(standing.by_traffic.values().map(|ratio| format!("{:.1}", ratio * 100.0)));
    // The best path alone is no scheduler: it has no place among them.
    let ranked = |text: String| if standing.rank > 0.0 { text } else { String::new() };
    line.push(ranked(format!("{:.1}", standing.rank)));
    line.push(ranked(standing.worst.to_string()));
    line.push(ranked(standing.slower.to_string()));
    line
}

fn extent(frontier: &Frontier) -> String {
    let schedulers = frontier.standings.iter().filter(|s| s.rank > 0.0).count();
    let seeds = frontier.standings.iter().map(|s| s.ratio.n).max().unwrap_or(0);
    let cells = frontier.cells.len();
    let missing = match frontier.missing {
        0 => String::new(),
        missing => format!("; INCOMPLETE: {missing} cells are missing"),
    };
    format!("{schedulers} schedulers, {cells} cells, {seeds} seeds, {}{missing}", frontier.congestion)
}

/// The standings to read.
pub fn text(frontier: &Frontier) -> String {
    let mut table = plain_table(header(frontier));
    frontier.standings.iter().for_each(|standing| {
        table.add_row(line(standing));
    });
    format!("{}\n\n{}\n{NOTES}\n", extent(frontier), print_table(&table))
}

fn markdown_table(header: &[String], lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|---|{}\n", header.join(" | "), "---:|".repeat(header.len().saturating_sub(1)));
    lines.for_each(|line| text += &format!("| {} |\n", line.join(" | ")));
    text
}

/// The standings, and of each cell the best three, the worst, and the best path alone.
pub fn markdown(frontier: &Frontier) -> String {
    let mut text = format!("{}\n\n", extent(frontier));
    text += &markdown_table(&header(frontier), frontier.standings.iter().map(line));
    let _ = write!(text, "\n{NOTES}\n\n### By cell\n\n");
    let columns = ["paths", "traffic", "first", "second", "third", "last", "best path alone", "slower than that"];
    let lines = frontier.cells.iter().map(|cell| {
        let mut ranked: Vec<_> = cell.entries.iter().filter(|entry| entry.rank > 0.0).collect();
        ranked.sort_by(|a, b| a.rank.total_cmp(&b.rank));
        let shown = |n: Option<usize>| {
            let entry = n.and_then(|n| ranked.get(n));
            entry.map(|e| format!("{} {:.1}", e.scheduler, e.ratio() * 100.0)).unwrap_or_default()
        };
        let single = cell.entries.iter().find(|entry| entry.rank == 0.0).map_or(0.0, |entry| entry.ratio());
        let slower = ranked.iter().filter(|entry| entry.slower).count();
        let mut line = vec![cell.paths.clone(), cell.traffic.clone()];
        line.extend([Some(0), Some(1), Some(2), ranked.len().checked_sub(1)].map(shown));
        line.push(format!("{} {:.1}", cell.best_single, single * 100.0));
        line.push(format!("{slower} of {}", ranked.len()));
        line
    });
    text + &markdown_table(&columns.map(str::to_owned), lines)
}

/// One line a cell and scheduler.
pub fn csv(frontier: &Frontier) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let head = ["paths", "traffic", "scheduler", "n", "oracle_ratio", "rank", "against_single", "slower"];
    let mut records = vec![head.map(str::to_owned)];
    for cell in &frontier.cells {
        records.extend(cell.entries.iter().map(|entry| {
            let [paths, traffic, scheduler] = [&cell.paths, &cell.traffic, &entry.scheduler].map(Clone::clone);
            let (n, slower) = (entry.ratios.len().to_string(), entry.slower.to_string());
            let [ratio, rank, single] =
                [entry.ratio(), entry.rank, entry.against_single].map(|value| value.to_string());
            [paths, traffic, scheduler, n, ratio, rank, single, slower]
        }));
    }
    for record in &records {
        // Records of one length into memory: nothing can fail.
        let _ = table.write_record(record);
    }
    String::from_utf8_lossy(&table.into_inner().unwrap_or_default()).into_owned()
}
