//! Results as tables to read: one per cell, one row per scheduler, baselines below.

use super::fields::{Differences, interval};
use super::groups::groups_tables;
use super::plain::{heading, plain_table, print_table};
use super::preflight::preflight_table;
use super::sweep::sweep_table;
use crate::of_run::rows::{Main, main_metric};
use crate::of_run::{cells, findings, one_run_suffices, too_few, unfinished};
use anabranch_metrics::{MetricInfo, MetricRef, Prominence, SIGNIFICANT, Scale, names, shown_metrics};
use anabranch_run::{AUTO_LIMIT, DiagnosisKind, Incomplete, Live, ResultRow, Results};
use std::fmt::Write as _;

/// Characters per line.
const WIDTH: usize = 100;

const SCHEDULER: &str = "scheduler";
const CONGESTION: &str = "congestion";
const RUNS: &str = "n";
const AGAINST: &str = "against";
const SHARES: &str = "% on";

/// Headings and signs of tables of results that name no metric, each with its meaning.
pub const COLUMNS: [(&str, &str); 7] = [
    (SCHEDULER, "The scheduler of the row. `single:PATH` is plain TCP over that path alone."),
    (CONGESTION, "The congestion control of the row. A baseline has the form for a single path."),
    (
        RUNS,
        "The number of runs behind the mean, one per seed. `2 of 20`: the metric has a value in two of twenty runs.",
    ),
    (AGAINST, "The mean difference from the reference scheduler, seed by seed, in percent of the reference's mean."),
    (
        SHARES,
        "Each path's part of the payload, in percent, in the order of the names below the heading. Repetitions do not count.",
    ),
    ("±", "Half the width of the 95 % confidence interval over the seeds. Too few runs have none."),
    ("*", "The seeds show the difference: p is below 0.05 after Holm's correction for all comparisons of the table."),
];

/// All cells, and what the figures mean.
pub fn results_table(results: &Results) -> String {
    let rows = results.rows();
    let mut text = format!("{}\n", results.scenario);
    // The rows of a cell are next to each other.
    let by_cell: Vec<&[ResultRow<'_>]> = rows.chunk_by(|a, b| a.cell == b.cell).collect();
    text += &sweep_table(results, &by_cell, WIDTH).unwrap_or_else(|| cell_tables(results, &by_cell));
    if let [rows] = by_cell[..] {
        text += &groups_tables(results, rows);
    }
    text.push('\n');
    text += &notes(results, &rows);
    text += &live_notes(results);
    for finding in findings(results, &rows) {
        let _ = writeln!(text, "{}", textwrap::fill(&finding, WIDTH));
    }
    if let Some(Incomplete { finished, planned }) = results.incomplete {
        let _ = writeln!(text, "INCOMPLETE: {finished} of {planned} runs.");
    }
    text
}

/// A table per cell.
fn cell_tables(results: &Results, cells: &[&[ResultRow<'_>]]) -> String {
    let table = |rows: &&[ResultRow<'_>]| {
        let name = cells::name(rows[0].cell);
        format!(
            "\n{name}{}{}",
            if name.is_empty() { "" } else { "\n" },
            cell_table(results, &rows.iter().collect::<Vec<_>>())
        )
    };
    cells.iter().map(table).collect()
}

/// How true the runs in real time were: the worst of them.
fn live_notes(results: &Results) -> String {
    let lives: Vec<&Live> = results.runs.lives().collect();
    let Some(first) = lives.first() else { return String::new() };
    let late = lives.iter().map(|live| live.emulation.late_p99_s).fold(0.0, f64::max) * 1e3;
    let latest = lives.iter().map(|live| live.emulation.late_max_s).fold(0.0, f64::max) * 1e3;
    let drops: u64 = lives.iter().map(|live| live.emulation.device_drops).sum();
    let wrong = lives.iter().filter(|live| !live.emulation.accurate).count();
    let verdict = match wrong {
        0 => "accurate".to_owned(),
        _ => format!("NOT accurate in {wrong} of {} runs: use a quieter machine or lower rates", lives.len()),
    };
    let kernel = first.kernel.as_ref().map(|release| format!(", Linux {release}")).unwrap_or_default();
    let mut text = format!(
        "Real time{kernel}: 99 of 100 packets at most {late:.2} ms late, the latest {latest:.2} ms, {drops} dropped by \
         devices: {verdict}.\n"
    );
    let mut told: Vec<&String> = Vec::new();
    for what in lives.iter().flat_map(|live| &live.not_applied) {
        if !told.contains(&what) {
            let _ = writeln!(text, "Not applied: {what}.");
            told.push(what);
        }
    }
    let mut shown = Vec::new();
    for preflight in lives.iter().filter_map(|live| live.preflight.as_ref()) {
        if !shown.contains(&preflight) {
            text += &preflight_table(preflight);
            shown.push(preflight);
        }
    }
    text
}

/// A column of the table: its header, and what it shows of a row.
struct Column<'a> {
    header: String,
    field: Field<'a>,
}

type Field<'a> = Box<dyn Fn(&ResultRow<'_>) -> Option<String> + 'a>;

/// The mean of a metric in the unit in which it is shown.
fn mean<'a>(info: &'static MetricInfo) -> Column<'a> {
    let Scale { per, decimals, .. } = info.scale;
    let field = move |row: &ResultRow<'_>| row.get(info.name).map(|s| format!("{:.decimals$}", s.mean / per));
    Column { header: header(&info.into()), field: Box::new(field) }
}

/// Label and unit; before an application's metric its name.
fn header(main: &Main) -> String {
    let text = heading(format!("{} {}", main.info.label, main.info.scale.unit).trim_end());
    main.application().map(|application| format!("{application}\n")).unwrap_or_default() + &text
}

fn text_column<'a>(header: &str, field: impl Fn(&ResultRow<'_>) -> Option<String> + 'a) -> Column<'a> {
    Column { header: header.into(), field: Box::new(field) }
}

fn cell_table(results: &Results, rows: &[&ResultRow<'_>]) -> String {
    let has = |metric: &str| rows.iter().any(|row| row.get(metric).is_some());
    let mut columns = vec![text_column(SCHEDULER, |row| Some(row.scheduler.into()))];
    let multipath = rows.iter().filter(|row| !row.kind().is_single());
    let several = multipath.clone().any(|row| row.congestion != rows[0].congestion);
    if several {
        columns.push(text_column(CONGESTION, |row| Some(row.congestion.into())));
    }
    let all = Main::all(rows.iter().copied());
    let reference = rows[0];
    let is_compared = !several && multipath.count() > 1;
    let mut runs = Some(text_column(RUNS, {
        let main = all.first().map(|main| main.name.clone()).unwrap_or_default();
        move |row| Some(measured_in(row, &main))
    }));
    for main in all.clone() {
        let against = is_compared.then(|| Differences::new(results, &main.name, reference));
        columns.push(text_column(&header(&main), move |row| interval(row, &main)));
        columns.extend(runs.take());
        columns.extend(against.map(|differences| {
            let header = format!("{AGAINST}\n{} %", reference.scheduler);
            text_column(&header, move |row| differences.text(row, reference))
        }));
    }
    // Beside the main metrics of several applications there is no room for others.
    let further = shown_metrics(Prominence::Tabled).filter(|info| info.prominence() < Prominence::Main);
    let further = further.filter(|info| all.len() == 1 && has(info.name));
    columns.extend(further.map(mean));
    let paths = reference.paths();
    if paths.len() > 1 {
        let header = format!("{SHARES}\n{}", paths.join("/"));
        columns.push(text_column(&header, move |row| shares(row, &paths)));
    }
    let mut table = plain_table(columns.iter().map(|column| column.header.clone()).collect());
    for row in rows {
        table.add_row(columns.iter().map(|column| (column.field)(row).unwrap_or_default()));
    }
    print_table(&table)
}

/// In how many runs a metric was measured: `20`, or `2 of 20`.
fn measured_in(row: &ResultRow<'_>, metric: &str) -> String {
    let (n, runs) = (row.get(metric).map_or(0, |summary| summary.n), row.n());
    if n == runs { runs.to_string() } else { format!("{n} of {runs}") }
}

/// `84/16`: the means of the paths' shares in percent.
fn shares(row: &ResultRow<'_>, paths: &[&str]) -> Option<String> {
    if row.kind().is_single() {
        return None;
    }
    let share = |path: &&str| {
        Some(format!("{:.0}", 100.0 * row.get(&MetricRef::of_path(path, names::SHARE).to_string())?.mean))
    };
    Some(paths.iter().map(share).collect::<Option<Vec<_>>>()?.join("/"))
}

/// The rows of which [`Repeat::Auto`](anabranch_run::Repeat::Auto) has too few seeds, one line per row.
pub fn auto_notes(results: &Results) -> String {
    let line = |row: &ResultRow<'_>| {
        let summary = row.get(main_metric([row]).name)?;
        let half = summary.half_width().map(|half| 100.0 * half / summary.mean.abs());
        let reached = half.map(|half| format!(" (± {half:.1} %)")).unwrap_or_default();
        let open = row.n() >= AUTO_LIMIT as usize && !summary.is_narrow();
        let name = row.full_name();
        open.then(|| format!("{name}: {AUTO_LIMIT} seeds are not enough for an interval of ± 1 %{reached}.\n"))
    };
    results.rows().iter().filter_map(line).collect()
}

/// True if the row's main metric is random, measured more than once, and without an interval.
fn lacks_interval(row: &ResultRow<'_>) -> bool {
    row.get(main_metric([row]).name).is_some_and(|one| one.n > 1 && !one.deterministic && one.ci95_low.is_none())
}

fn notes(results: &Results, rows: &[ResultRow<'_>]) -> String {
    let mut text = String::new();
    if rows.iter().any(|row| row.n() > 1) {
        text += "± is the longer side of the 95 % interval of the mean over n seeds.\n";
    }
    if rows.iter().any(|row| lacks_interval(row))
        && !results.diagnosis.iter().any(|one| one.kind == DiagnosisKind::Overlap)
    {
        text += &format!("{}\n", textwrap::fill(&too_few(), WIDTH));
    }
    if results.comparisons.iter().any(|comparison| comparison.n > 1 && !results.overlap(&comparison.cell)) {
        text += &format!(
            "* shown by the seeds: p < {SIGNIFICANT} (paired t test, Holm's correction), 0 outside the interval.\n"
        );
    }
    one_run_suffices(rows).into_iter().chain(unfinished(rows)).fold(text, |text, line| text + &line + "\n")
}
