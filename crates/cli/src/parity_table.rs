//! Parity as text and as Markdown.

use crate::plain_table::{plain_table, print_table};
use anabranch_run::parity::{COMPARED, Estimate, MODES, Mode, Parity, REFERENCE, Row};
use std::fmt::Write as _;

/// A metric of the table: its name, its heading, and how many of its unit make one of the heading's.
struct Shown {
    metric: &'static str,
    heading: &'static str,
    per: f64,
    /// It says how fast: its differences make the verdict.
    main: bool,
}

const SHOWN: [Shown; 5] = [
    Shown { metric: "goodput_bps", heading: "goodput Mbit/s", per: 1e6, main: true },
    Shown { metric: "completion_s", heading: "completion s", per: 1.0, main: true },
    Shown { metric: ".share", heading: "share %", per: 0.01, main: false },
    Shown { metric: "retransmitted_packets", heading: "retransmitted", per: 1.0, main: false },
    Shown { metric: "ofo_mean_bytes", heading: "OFO mean KiB", per: 1024.0, main: false },
];

/// How a row's metric is shown, if it is; a path's metrics but its share are not.
fn shown(row: &Row) -> Option<(&'static Shown, String)> {
    if let Some(path) = row.metric.strip_prefix("path.") {
        let (path, metric) = path.rsplit_once('.')?;
        let shown = SHOWN.iter().find(|shown| shown.metric.strip_prefix('.') == Some(metric))?;
        // One path alone always has everything.
        return (!row.scheduler.starts_with("single:")).then(|| (shown, format!("{} {}", shown.heading, path)));
    }
    let shown = SHOWN.iter().find(|shown| shown.metric == row.metric)?;
    Some((shown, shown.heading.to_owned()))
}

fn value(estimate: Option<&Estimate>, per: f64) -> String {
    let Some(estimate) = estimate else { return String::new() };
    let interval = estimate.ci95_low.zip(estimate.ci95_high).map(|(low, high)| (high - low) / 2.0 / per);
    let digits = |value: f64| {
        if value.abs() >= 100.0 {
            0
        } else if value.abs() >= 10.0 {
            1
        } else {
            2
        }
    };
    let mean = estimate.mean / per;
    let decimals = digits(mean);
    match interval {
        Some(half) if half > 0.0 => format!("{mean:.decimals$} ± {half:.decimals$}"),
        _ => format!("{mean:.decimals$}"),
    }
}

fn percent(difference: Option<f64>) -> String {
    difference.map(|difference| format!("{:+.1}", difference * 100.0)).unwrap_or_default()
}

/// Those of `modes` that were run.
fn run<'a>(parity: &'a Parity, modes: &'a [Mode]) -> impl Iterator<Item = &'a Mode> {
    modes.iter().filter(|mode| parity.rows.iter().any(|row| row.values.contains_key(mode.name)))
}

fn header(parity: &Parity) -> Vec<String> {
    let modes = run(parity, &MODES).map(|mode| mode.name.to_owned());
    let differences = run(parity, COMPARED).map(|mode| format!("{} Δ%", mode.name));
    ["over", "congestion", "metric"].map(str::to_owned).into_iter().chain(modes).chain(differences).collect()
}

/// The shown rows: what fills the columns of [`header`].
fn cells(parity: &Parity) -> Vec<Vec<String>> {
    let line = |row: &Row| {
        let (shown, heading) = shown(row)?;
        let cell: String = row.cell.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let over = row.scheduler.strip_prefix("single:").unwrap_or("all");
        let mut line = vec![format!("{over}{cell}"), row.congestion.clone(), heading];
        line.extend(run(parity, &MODES).map(|mode| value(row.values.get(mode.name), shown.per)));
        let differences = run(parity, COMPARED);
        line.extend(differences.map(|mode| percent(row.difference.get(mode.name).copied())));
        Some(line)
    };
    parity.rows.iter().filter_map(line).collect()
}

/// Absolute differences of goodput and completion in one mode: those of plain TCP, or those over all paths, ascending. Beside
/// each by how much it is beyond the 95 % interval of the reference's mean.
fn differences(all: &[Parity], mode: &str, single: bool) -> Vec<(f64, f64)> {
    let rows = all.iter().flat_map(|parity| &parity.rows);
    let counts =
        |row: &&Row| row.scheduler.starts_with("single:") == single && shown(row).is_some_and(|(shown, _)| shown.main);
    let beyond = |row: &Row| {
        let difference = row.difference.get(mode)?.abs();
        let reference = row.values.get(REFERENCE.name)?;
        let half = reference.ci95_low.zip(reference.ci95_high).map_or(0.0, |(low, high)| (high - low) / 2.0);
        Some((difference, (difference - half / reference.mean).max(0.0)))
    };
    let mut differences: Vec<(f64, f64)> = rows.filter(counts).filter_map(beyond).collect();
    differences.sort_by(|a, b| a.0.total_cmp(&b.0));
    differences
}

/// One line a mode: the median and the worst difference.
fn verdict(all: &[Parity]) -> String {
    let mut text = String::new();
    for (single, what) in [(true, "plain TCP over one path"), (false, "Multipath TCP over all paths")] {
        for mode in COMPARED {
            let differences = differences(all, mode.name, single);
            let Some((worst, _)) = differences.last() else { continue };
            let (median, _) = differences[differences.len() / 2];
            let beyond = differences.iter().map(|(_, beyond)| *beyond).fold(0.0, f64::max);
            let _ = writeln!(
                text,
                "- {what}, {} against {}: median difference {:.1} %, worst {:.1} %, {:.1} % beyond its interval ({} rows)",
                mode.name,
                REFERENCE.name,
                median * 100.0,
                worst * 100.0,
                beyond * 100.0,
                differences.len()
            );
        }
    }
    let (live, inaccurate) = all.iter().fold((0, 0), |(a, b), p| (a + p.live_runs, b + p.inaccurate_runs));
    let late = all.iter().map(|parity| parity.late_p99_s).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "- {live} runs by the clock, {inaccurate} of them not emulated accurately; of 99 of 100 packets, the greatest \
         lateness of any run was {:.2} ms",
        late * 1e3
    );
    text
}

/// Tables to read, one a scenario.
pub fn text(all: &[Parity]) -> String {
    let mut text = String::new();
    for parity in all {
        let mut table = plain_table(header(parity));
        for line in cells(parity) {
            table.add_row(line);
        }
        let _ = writeln!(text, "{}\n\n{}", parity.scenario, print_table(&table));
    }
    text + &verdict(all)
}

/// The same as Markdown, the verdict first.
pub fn markdown(all: &[Parity]) -> String {
    let mut text = verdict(all);
    for parity in all {
        let columns = header(parity);
        let _ = writeln!(text, "\n### {}\n\n| {} |", parity.scenario, columns.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(columns.len()));
        for line in cells(parity) {
            let _ = writeln!(text, "| {} |", line.join(" | "));
        }
    }
    text
}
