//! Parity as text and as Markdown.

use super::plain::{plain_table, print_table};
use crate::table::markdown_table;
use anabranch_metrics::{MetricInfo, MetricRef, Prominence, names};
use anabranch_run::RowKind;
use anabranch_studies::parity::{COMPARED, Estimate, MODES, Mode, Parity, ParityRow, REFERENCE};
use std::fmt::Write as _;

/// Shown beside the main metrics.
const BESIDE: [&str; 2] = [names::RETRANSMITTED, names::OFO_MEAN];

/// The entry and the heading of a row's metric, if it is shown; of the metrics of a path, only its share is.
fn shown(row: &ParityRow) -> Option<(&'static MetricInfo, String)> {
    let metric = MetricRef::parse(&row.metric);
    let info = metric.info()?;
    let Some(path) = metric.path else {
        let is_shown = info.prominence() == Prominence::Main || BESIDE.contains(&info.name);
        return is_shown.then(|| (info, info.label_in(info.scale)));
    };
    // The share of a path that runs alone is always the whole.
    let is_shown = info.name == names::SHARE && !RowKind::of(&row.scheduler).is_single();
    is_shown.then(|| (info, info.scale.after(&format!("{} of {path}", info.label))))
}

fn value(estimate: Option<&Estimate>, per: f64) -> String {
    let Some(estimate) = estimate else { return String::new() };
    let interval = estimate.half_width().map(|half| half / per);
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
    let line = |row: &ParityRow| {
        let (info, heading) = shown(row)?;
        let cell: String = row.cell.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let over = RowKind::of(&row.scheduler).path().unwrap_or("all");
        let mut line = vec![format!("{over}{cell}"), row.congestion.clone(), heading];
        line.extend(run(parity, &MODES).map(|mode| value(row.values.get(mode.name), info.scale.per)));
        let differences = run(parity, COMPARED);
        line.extend(differences.map(|mode| percent(row.difference.get(mode.name).copied())));
        Some(line)
    };
    parity.rows.iter().filter_map(line).collect()
}

/// How far a mode is from the reference in one row: as a part of the reference's mean.
struct Distance {
    difference: f64,
    /// Distance beyond the 95 % interval of that mean, if there is one.
    beyond: Option<f64>,
}

/// Distances in the main metrics in one mode: those of plain TCP, or those over all paths, ascending.
fn distances(all: &[Parity], mode: &str, single: bool) -> Vec<Distance> {
    let rows = all.iter().flat_map(|parity| &parity.rows);
    let counts = |row: &&ParityRow| {
        RowKind::of(&row.scheduler).is_single() == single
            && shown(row).is_some_and(|(info, _)| info.prominence() == Prominence::Main)
    };
    let distance = |row: &ParityRow| {
        let difference = row.difference.get(mode)?.abs();
        let reference = row.values.get(REFERENCE.name)?;
        let beyond = reference.half_width().map(|half| (difference - half / reference.mean).max(0.0));
        Some(Distance { difference, beyond })
    };
    let mut distances: Vec<Distance> = rows.filter(counts).filter_map(distance).collect();
    distances.sort_by(|a, b| a.difference.total_cmp(&b.difference));
    distances
}

/// One line per mode: the median and the worst difference.
fn verdict(all: &[Parity]) -> String {
    let mut text = String::new();
    for (single, what) in [(true, "plain TCP over one path"), (false, "Multipath TCP over all paths")] {
        for mode in COMPARED {
            let distances = distances(all, mode.name, single);
            let Some(worst) = distances.last() else { continue };
            let median = &distances[distances.len() / 2];
            let beyond = distances.iter().filter_map(|distance| distance.beyond).reduce(f64::max);
            let beyond = beyond.map(|part| format!(", {:.1} % beyond its interval", part * 100.0)).unwrap_or_default();
            let _ = writeln!(
                text,
                "- {what}, {} against {}: median difference {:.1} %, worst {:.1} %{beyond} ({} rows)",
                mode.name,
                REFERENCE.name,
                median.difference * 100.0,
                worst.difference * 100.0,
                distances.len()
            );
        }
    }
    let (live, inaccurate) = all.iter().fold((0, 0), |(a, b), p| (a + p.live_runs, b + p.inaccurate_runs));
    let late = all.iter().map(|parity| parity.late_p99_s).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "- {live} runs in real time, {inaccurate} of them not emulated accurately; of 99 of 100 packets, the greatest \
         lateness of any run was {:.2} ms",
        late * 1e3
    );
    text
}

/// Tables to read, one per scenario.
pub fn parity_text(all: &[Parity]) -> String {
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
pub fn parity_markdown(all: &[Parity]) -> String {
    let mut text = verdict(all);
    for parity in all {
        let columns = header(parity);
        let table = markdown_table(&columns, columns.len(), cells(parity).into_iter());
        let _ = write!(text, "\n### {}\n\n{table}", parity.scenario);
    }
    text
}
