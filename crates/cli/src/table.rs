//! Results as tables to read: one a cell, one row a scheduler, baselines below.

use crate::plain_table::{plain_table, print_table};
use crate::preflight_table::preflight_table;
use anabranch_run::{AUTO_LIMIT, CellValues, Live, Results, Summary, main_metric};
use std::fmt::Write as _;

/// All cells, and what the figures mean.
pub fn results_table(results: &Results) -> String {
    let rows = Row::all(results);
    let mut text = format!("{}\n", results.scenario);
    let mut cells: Vec<&CellValues> = Vec::new();
    rows.iter().for_each(|row| {
        if !cells.contains(&row.cell) {
            cells.push(row.cell)
        }
    });
    for cell in cells {
        let rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.cell == cell).collect();
        let keys: Vec<String> = cell.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let _ = write!(text, "\n{}{}", keys.join(", "), if keys.is_empty() { "" } else { "\n" });
        text += &cell_table(results, &rows);
    }
    text.push('\n');
    text += &notes(&rows);
    text += &live_notes(results);
    text
}

/// How true the runs in real time were: the worst of them.
fn live_notes(results: &Results) -> String {
    let lives: Vec<&Live> = results.runs.iter().filter_map(|run| run.live.as_ref()).collect();
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

/// One row of the plan with its summaries.
struct Row<'a> {
    scheduler: &'a str,
    congestion: &'a str,
    cell: &'a CellValues,
    summaries: Vec<&'a Summary>,
}

impl<'a> Row<'a> {
    fn all(results: &'a Results) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for summary in &results.summary {
            let (scheduler, congestion, cell) = (&*summary.scheduler, &*summary.congestion, &summary.cell);
            let is_same = |row: &&mut Self| (row.scheduler, row.congestion, row.cell) == (scheduler, congestion, cell);
            match rows.iter_mut().find(is_same) {
                Some(row) => row.summaries.push(summary),
                None => rows.push(Self { scheduler, congestion, cell, summaries: vec![summary] }),
            }
        }
        rows
    }

    fn get(&self, metric: &str) -> Option<&'a Summary> {
        self.summaries.iter().find(|summary| summary.metric == metric).copied()
    }

    /// Most runs that any metric was seen in.
    fn n(&self) -> usize {
        self.summaries.iter().map(|summary| summary.n).max().unwrap_or(0)
    }

    fn is_baseline(&self) -> bool {
        self.scheduler.starts_with("single:")
    }

    /// With its congestion control and cell.
    fn full_name(&self) -> String {
        let cell: String = self.cell.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
        format!("{} ({}{cell})", self.scheduler, self.congestion)
    }

    /// The names of its paths, in the scenario's order.
    fn paths(&self) -> Vec<&'a str> {
        let name = |summary: &&'a Summary| summary.metric.strip_prefix("path.")?.strip_suffix(".share");
        self.summaries.iter().filter_map(name).collect()
    }
}

/// A column of the table: its header, and what it shows of a row.
struct Column<'a> {
    header: String,
    field: Field<'a>,
}

type Field<'a> = Box<dyn Fn(&Row<'_>) -> Option<String> + 'a>;

/// A mean in a unit of its own: `per` of the metric's unit make one.
fn mean<'a>(header: &str, metric: &'a str, per: f64, decimals: usize) -> Column<'a> {
    let field = move |row: &Row<'_>| row.get(metric).map(|s| format!("{:.decimals$}", s.mean / per));
    Column { header: header.into(), field: Box::new(field) }
}

/// A mean with the half-width of its interval.
fn interval<'a>(header: &str, metric: &'a str, per: f64) -> Column<'a> {
    let field = move |row: &Row<'_>| {
        let s = row.get(metric)?;
        let half = s.ci95_low.zip(s.ci95_high).map(|(low, high)| format!(" ± {:.3}", (high - low) / 2.0 / per));
        Some(format!("{:.3}{}", s.mean / per, half.unwrap_or_default()))
    };
    Column { header: header.into(), field: Box::new(field) }
}

/// Headers of the metric that says most, and how many of its unit make one of the header's.
const MAIN: [(&str, &str, f64); 4] = [
    ("app_delay_mean_s", "delay\nms", 1e-3),
    ("response_mean_s", "response\nms", 1e-3),
    ("flow_completion_mean_s", "flow\ncompletion s", 1.0),
    ("completion_s", "completion\ns", 1.0),
];
const GOODPUT: (&str, f64) = ("goodput\nMbit/s", 1e6);

/// Further metrics, with the decimals that are shown.
const OPTIONAL: [(&str, &str, f64, usize); 9] = [
    ("app_delay_p99_s", "p99\nms", 1e-3, 1),
    ("response_p99_s", "p99\nms", 1e-3, 1),
    ("flow_completion_p95_s", "p95\ns", 1.0, 3),
    ("flow_completion_max_s", "longest\ns", 1.0, 3),
    ("best_single_ratio", "× best\npath", 1.0, 3),
    ("aggregation_benefit", "benefit", 1.0, 3),
    ("oracle_ratio", "of\noracle", 1.0, 3),
    ("ofo_mean_bytes", "OFO mean\nKiB", 1024.0, 1),
    ("opportunistic_packets", "PR\npackets", 1.0, 1),
];

fn cell_table(results: &Results, rows: &[&Row<'_>]) -> String {
    let has = |metric: &str| rows.iter().any(|row| row.get(metric).is_some());
    let mut columns = vec![Column { header: "scheduler".into(), field: Box::new(|row| Some(row.scheduler.into())) }];
    let multipath = rows.iter().filter(|row| !row.is_baseline());
    let several = multipath.clone().any(|row| row.congestion != rows[0].congestion);
    if several {
        columns.push(Column { header: "congestion".into(), field: Box::new(|row| Some(row.congestion.into())) });
    }
    let metric = main_metric(has);
    let (header, per) =
        MAIN.into_iter().find(|(main, ..)| *main == metric).map_or(GOODPUT, |(_, header, per)| (header, per));
    columns.push(interval(header, metric, per));
    columns.push(Column { header: "n".into(), field: Box::new(move |row| Some(seen_in(row, metric))) });
    let reference = rows[0];
    if !several && multipath.count() > 1 {
        let field = move |row: &Row<'_>| difference(results, row, reference, metric);
        columns.push(Column { header: format!("against\n{} %", reference.scheduler), field: Box::new(field) });
    }
    let optional = OPTIONAL.into_iter().filter(|(metric, ..)| has(metric));
    columns.extend(optional.map(|(metric, header, per, decimals)| mean(header, metric, per, decimals)));
    let paths = reference.paths();
    if paths.len() > 1 {
        let header = format!("% on\n{}", paths.join("/"));
        columns.push(Column { header, field: Box::new(move |row| shares(row, &paths)) });
    }
    let mut table = plain_table(columns.iter().map(|column| column.header.clone()).collect());
    for row in rows {
        table.add_row(columns.iter().map(|column| (column.field)(row).unwrap_or_default()));
    }
    print_table(&table)
}

/// In how many runs a metric was seen: `20`, or `2 of 20`.
fn seen_in(row: &Row<'_>, metric: &str) -> String {
    let (n, runs) = (row.get(metric).map_or(0, |summary| summary.n), row.n());
    if n == runs { runs.to_string() } else { format!("{n} of {runs}") }
}

/// The paired difference of `row` from `reference` in percent of the reference's mean, with its half-width.
fn difference(results: &Results, row: &Row<'_>, reference: &Row<'_>, metric: &str) -> Option<String> {
    let comparison = results.comparisons.iter().find(|c| {
        (&*c.a, &*c.b, &*c.congestion, &*c.metric) == (row.scheduler, reference.scheduler, row.congestion, metric)
            && c.cell == *row.cell
    })?;
    let percent = 100.0 / reference.get(metric)?.mean;
    if !percent.is_finite() {
        return None;
    }
    let half = comparison.ci95_low.zip(comparison.ci95_high).map(|(low, high)| (high - low) / 2.0 * percent);
    let half = half.map(|half| format!(" ± {half:.1}")).unwrap_or_default();
    Some(format!("{:+.1}{half}", comparison.mean_diff * percent))
}

/// `84/16`: the means of the paths' shares in percent.
fn shares(row: &Row<'_>, paths: &[&str]) -> Option<String> {
    if row.is_baseline() {
        return None;
    }
    let share = |path: &&str| Some(format!("{:.0}", 100.0 * row.get(&format!("path.{path}.share"))?.mean));
    Some(paths.iter().map(share).collect::<Option<Vec<_>>>()?.join("/"))
}

/// The rows of which [`Repeat::Auto`](anabranch_run::Repeat::Auto) did not come to know enough, a line each.
pub fn auto_notes(results: &Results) -> String {
    let line = |row: &Row<'_>| {
        let summary = row.get(main_metric(|metric| row.get(metric).is_some()))?;
        let half = summary.ci95_low.zip(summary.ci95_high).map(|(low, high)| 50.0 * (high - low) / summary.mean.abs());
        let reached = half.map(|half| format!(" (± {half:.1} %)")).unwrap_or_default();
        let open = row.n() >= AUTO_LIMIT as usize && !summary.is_narrow();
        let name = row.full_name();
        open.then(|| format!("{name}: {AUTO_LIMIT} seeds are not enough for an interval of ± 1 %{reached}.\n"))
    };
    Row::all(results).iter().filter_map(line).collect()
}

fn notes(rows: &[Row<'_>]) -> String {
    let first = |row: &Row<'_>| row.summaries.first().copied().cloned();
    let mut text = String::new();
    if rows.iter().any(|row| row.n() > 1) {
        text += "± is the half-width of the 95 % interval of the mean over n seeds.\n";
    }
    if rows.iter().filter_map(first).any(|summary| summary.deterministic) {
        text += "n = 1, deterministic: nothing in the scenario is random, so one run says all.\n";
    }
    for (row, summary) in rows.iter().filter_map(|row| Some((row, first(row)?))) {
        if summary.unfinished > 0 {
            let (name, unfinished, runs) = (row.full_name(), summary.unfinished, row.n());
            let _ = writeln!(text, "{name}: {unfinished} of {runs} transfers did not finish.");
        }
    }
    text
}
