//! The limits of the runs: from the values that they measured, and from runs without one hindrance.

mod costs;
mod events;
mod hindrance;

pub(crate) use costs::Ask;
use costs::{better_path, costs};
use events::events;

use crate::job::Choice;
use crate::plan::{CellPlan, Plan, has_trace, link_has_trace};
use crate::record::CellValues;
use crate::recorded::short_trace;
use crate::runs::RunRow;
use crate::summary::baselines_of;
use anabranch_metrics::{MetricRef, names};
use anabranch_network::Bottleneck;
use anabranch_scenario::{Scenario, Traffic, TrafficKind};
use anabranch_units::{Direction, Duration};
use serde::{Deserialize, Serialize};

/// A finding about the rows of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The cell.
    pub cell: CellValues,
    /// Congestion control of the rows.
    pub congestion: String,
    /// The schedulers that it is about.
    pub schedulers: Vec<String>,
    /// The kind.
    pub kind: DiagnosisKind,
    /// In short, so that cells of a sweep can be counted: `limited by loss on wlan`.
    pub summary: String,
    /// In a sentence or two.
    pub text: String,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisKind {
    /// Recorded capacity that always begins at its beginning: one draw, however often it is run.
    OneDraw,
    /// Recorded capacity that is shorter than a run.
    ShortTrace,
    /// Recorded capacity of which the runs, whose seeds draw its beginning, share parts.
    Overlap,
    /// Schedulers did the same, event by event, in every run.
    Same,
    /// No data was sent at all.
    Connection,
    /// A path lost subflows, or none opened over it.
    Lost,
    /// A path alone is better than all of them.
    Path,
    /// The connection opens over a path, and would do better over another one.
    FirstPath,
    /// Data waited because the connection's window was full.
    Window,
    /// A path lost packets.
    Loss,
    /// Other flows took of a path or link.
    Cross,
}

/// A window that is full for less than this part of the time limits little.
const WINDOW: f64 = 0.05;
/// A path that is used more than this is full.
const FULL: f64 = 0.85;
/// Losses below this part of the packets are those of a full queue as well.
const LOSS: f64 = 0.001;
/// A path that carries more than so many times as much alone is held back by something else than its losses.
const MORE: f64 = 1.1;

/// The findings about a cell: events first, then causes, the most expensive first. `ask` makes more runs. Without it, as in real time
/// and in a sweep, the paths alone are compared, and measured losses and waits replace the other causes.
pub(crate) fn diagnose(plan: &Plan, cell: &CellPlan, rows: &[RunRow<'_>], ask: Option<Ask<'_>>) -> Vec<Diagnosis> {
    let multipath = (0..rows.len()).filter(|&row| matches!(cell.rows[row].choice, Choice::Multipath(_)));
    let mut controls: Vec<Vec<usize>> = Vec::new();
    for row in multipath.filter(|&row| !rows[row].is_empty()) {
        match controls.iter_mut().find(|control| rows[control[0]].congestion() == rows[row].congestion()) {
            Some(control) => control.push(row),
            None => controls.push(vec![row]),
        }
    }
    let of = |numbers: &[usize]| numbers.iter().map(|&row| rows[row]).collect::<Vec<_>>();
    let mut found: Vec<Diagnosis> =
        controls.first().and_then(|control| one_draw(cell, &of(control))).into_iter().collect();
    let multipath: Vec<(usize, RunRow<'_>)> = controls.iter().flatten().map(|&row| (row, rows[row])).collect();
    found.extend(short_trace(cell, &multipath));
    for control in &controls {
        let own = of(control);
        found.extend(events(&cell.scenario, &own));
        let groups = groups(rows, control);
        // One of those that did the same represents all.
        let first: Vec<usize> = groups.iter().map(|group| group[0]).collect();
        match ask {
            Some(ask) => found.extend(costs(plan, cell, rows, &first, ask).into_iter().map(|cost| cost.finding)),
            None => {
                found.extend(better_path(cell, rows, &first));
                found.extend(measured(cell, rows, control));
            }
        }
        let same_rows = groups.iter().filter(|group| group.len() > 1).map(|group| of(group));
        found.extend(same_rows.map(|group| finding(DiagnosisKind::Same, &group, same(&cell.scenario, &group))));
    }
    found
}

/// The rows `of`, those that did the same together.
fn groups(rows: &[RunRow<'_>], of: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &row in of {
        match groups.iter_mut().find(|group| is_same(&rows[group[0]], &rows[row])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// A finding about at least one row. The two texts are its short form and its long one.
pub(crate) fn finding(kind: DiagnosisKind, rows: &[RunRow<'_>], (summary, text): (String, String)) -> Diagnosis {
    Diagnosis {
        cell: (**rows[0].cell()).clone(),
        congestion: rows[0].congestion().to_string(),
        schedulers: rows.iter().map(|row| row.scheduler().to_string()).collect(),
        kind,
        summary,
        text,
    }
}

/// The traces of a cell without randomness.
fn one_draw(cell: &CellPlan, rows: &[RunRow<'_>]) -> Option<Diagnosis> {
    let topology = &cell.scenario.topology;
    let mut traced: Vec<&str> =
        topology.paths.iter().filter(|path| has_trace(path)).map(|path| path.name.as_str()).collect();
    let keys: Vec<String> = traced.iter().map(|path| format!("--set path.{path}.trace_start=seed")).collect();
    traced.extend(topology.links.iter().filter(|link| link_has_trace(link)).map(|link| link.name.as_str()));
    let summary = format!("one draw of the trace of {}", listed(traced.iter().copied()));
    let mut text = format!(
        "This is one draw: the trace of {} begins at its beginning in every run.",
        listed(traced.iter().copied())
    );
    if !keys.is_empty() {
        text += &format!(" {} with --repeat draws others.", keys.join(" "));
    }
    (!cell.random && !traced.is_empty()).then(|| finding(DiagnosisKind::OneDraw, rows, (summary, text)))
}

/// The measured limits of the rows `of`, which have one congestion control, where no more runs can be made.
fn measured(cell: &CellPlan, rows: &[RunRow<'_>], of: &[usize]) -> Vec<Diagnosis> {
    let scenario = &cell.scenario;
    let own: Vec<RunRow<'_>> = of.iter().map(|&row| rows[row]).collect();
    let mut found = Vec::new();
    let blocked: Vec<RunRow<'_>> = own.iter().copied().filter(|row| part_blocked(scenario, row) >= WINDOW).collect();
    if !blocked.is_empty() {
        found.push(finding(DiagnosisKind::Window, &blocked, window(scenario, &blocked)));
    }
    let is_bulk = scenario.traffic.iter().all(|traffic| matches!(traffic.kind, TrafficKind::Bulk { size: None }));
    let may_be_loss = is_bulk && blocked.len() < own.len();
    for single in baselines_of(cell, &cell.rows[of[0]]).into_iter().filter(|_| may_be_loss) {
        let Choice::Single(path) = cell.rows[single].choice else { continue };
        let path = &scenario.topology.paths[path].name;
        let held = |row: &RunRow<'_>| is_held_by_loss(row, path, &rows[single]);
        let lossy: Vec<RunRow<'_>> = own.iter().copied().filter(held).collect();
        if !lossy.is_empty() {
            found.push(finding(DiagnosisKind::Loss, &lossy, loss(&lossy, path)));
        }
    }
    found
}

/// Every run had the same values. Events may differ in what a scheduler makes known of itself, such as BLEST its λ.
fn is_same(a: &RunRow<'_>, b: &RunRow<'_>) -> bool {
    let names = a.names();
    a.seeds() == b.seeds() && names == b.names() && names.into_iter().all(|name| a.values(name) == b.values(name))
}

/// In short, and whole.
fn same(scenario: &Scenario, rows: &[RunRow<'_>]) -> (String, String) {
    let n = rows[0].len();
    let others = listed(rows[1..].iter().map(|row| &**row.scheduler()));
    let equal = rows[1..].iter().all(|row| row.digests() == rows[0].digests());
    let equal = if equal { "equal digests: event by event" } else { "every value is equal" };
    let summary = format!("{others} did the same as {}", rows[0].scheduler());
    let runs = if n == 1 { "the only run".to_owned() } else { format!("all {n} runs") };
    let mut text = format!("{summary} in {runs} ({equal})");
    if rows.iter().all(|row| part_blocked(scenario, row) == 0.0) {
        text += ". The receive window never held data back";
        if let Some(less) = narrower(scenario) {
            let has = size(scenario.settings.recv_buffer);
            text += &format!(": with recv_buffer = {} instead of {has} they may differ", size(less));
        }
    }
    (summary, text + ".")
}

fn window(scenario: &Scenario, rows: &[RunRow<'_>]) -> (String, String) {
    let parts = rows.iter().map(|row| format!("{} {:.0} %", row.scheduler(), 100.0 * part_blocked(scenario, row)));
    let parts = listed(parts.collect::<Vec<_>>().iter().map(String::as_str));
    let settings = &scenario.settings;
    let mut text = format!("The receive window was full for part of the time: {parts}");
    if let Some(needed) = product(scenario).filter(|needed| *needed > settings.recv_buffer) {
        let (has, needed) = (size(settings.recv_buffer), size(needed.next_multiple_of(1 << 10)));
        text += &format!(". recv_buffer is {has}; the rates of all paths × the longest round trip are {needed}");
    }
    ("the window was full for part of the time".to_owned(), text + ".")
}

fn loss(rows: &[RunRow<'_>], path: &str) -> (String, String) {
    let of = |metric| 100.0 * mean_of_path(rows, path, metric).unwrap_or(0.0);
    let names = listed(rows.iter().map(|row| &**row.scheduler()));
    let (lost, used) = (of("loss_ratio"), of("utilisation"));
    let summary = format!("loss on {path}");
    let text =
        format!("Loss on {path}: {names} lost {lost:.1} % there and used {used:.0} % of its capacity on average.");
    (summary, text)
}

/// The mean part of the measured time in which data waited for the window alone.
fn part_blocked(scenario: &Scenario, row: &RunRow<'_>) -> f64 {
    // The metric is the sum over the connections.
    let connections: u32 = scenario.traffic.iter().map(Traffic::connections).sum();
    let duration = scenario.duration.map(Duration::as_secs_f64);
    let part = |(blocked, completion): (Option<f64>, Option<f64>)| {
        let time = completion.or(duration).filter(|time| *time > 0.0)?;
        Some(blocked? / (time * f64::from(connections.max(1))))
    };
    let values = row.metric("window_blocked_s").into_iter().zip(row.metric(names::COMPLETION));
    mean(values.filter_map(part)).unwrap_or(0.0)
}

fn mean_of_path(rows: &[RunRow<'_>], path: &str, metric: &str) -> Option<f64> {
    mean(rows.iter().flat_map(|row| row.values(MetricRef::of_path(path, metric))).flatten())
}

/// `None` of no values.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The path lost packets, was not full, and the run of it alone, which meets the same losses, hardly used more of it.
fn is_held_by_loss(row: &RunRow<'_>, path: &str, alone: &RunRow<'_>) -> bool {
    let of = |row: &RunRow<'_>, metric| mean_of_path(std::slice::from_ref(row), path, metric);
    let used = of(row, "utilisation").zip(of(alone, "utilisation"));
    of(row, "loss_ratio")
        .zip(used)
        .is_some_and(|(lost, (used, alone))| lost >= LOSS && used < FULL && alone <= used * MORE)
}

/// The sum of the paths' rates times the longest round trip, without queues, in bytes, in the direction of the data that has more;
/// `None` where paths share links.
fn product(scenario: &Scenario) -> Option<u64> {
    let rate = |way: &Bottleneck| Some(way.own()?.capacity.initial_rate().as_bps() as f64);
    let paths = &scenario.topology.paths;
    let rates = |way: &Direction| paths.iter().map(|path| rate(&path.way(*way).bottleneck)).sum::<Option<f64>>();
    let rates = scenario.direction().ways().iter().map(rates).collect::<Option<Vec<f64>>>()?;
    let rates = rates.into_iter().fold(0.0, f64::max);
    let longest = paths.iter().map(|path| path.down.delay + path.up.delay).max()?;
    Some((rates / 8.0 * longest.as_secs_f64()) as u64)
}

/// A window in which data is likely to wait: half of what the paths need, if that is less than it has.
fn narrower(scenario: &Scenario) -> Option<u64> {
    let half = product(scenario)?.next_power_of_two() / 2;
    (half >= 16 << 10 && half < scenario.settings.recv_buffer).then_some(half)
}

/// `512KiB`, as scenario files have it.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

/// `a, b and c`.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}
