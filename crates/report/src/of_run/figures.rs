//! A chart per metric.

use super::cells::{self, SweptAxis};
use super::rows::{Main, greatest, metrics};
use crate::chart::{Axis, Bar, Bars, Chart, Line, Lines, Mean};
use crate::quantity::{Quantity, key_label};
use crate::value::Figure;
use anabranch_metrics::{MetricInfo, MetricRef, Prominence, names};
use anabranch_run::ResultRow;

/// Cells that bars are drawn of.
const GROUPS: usize = 24;

/// Cells that lines are drawn through, at most.
const POINTS: usize = 300;

/// The figures of a run's metrics by their place in the report.
pub struct Placed {
    /// The main metric's, then those of like prominence.
    pub main: Vec<Figure>,
    /// Causes.
    pub why: Vec<Figure>,
    /// The others, folded, by group.
    pub further: Vec<Figure>,
}

/// Groups of metrics in the order of the page, with beginnings of their names; the last has all others.
const GROUPS_OF_METRICS: [(&str, &[&str]); 4] = [
    ("Waiting and reordering", &["ofo_", "rbd_", "reorder", "window_blocked", "outage", "head_start"]),
    (
        "Sent more than once",
        &["opportunistic", "rescued", "copied", "reinjected", "duplicate", "retransmitted", "timeouts"],
    ),
    ("Opening, probing, restarting", &["syns_sent", "path_probes", "idle_restarts", "increment_efficiency"]),
    ("Outcome, cost and other traffic", &[]),
];

/// Metrics that say why a scheduler does well or badly.
const WHY: [&str; 4] = [names::OFO_MEAN, "window_blocked_s", names::RETRANSMITTED, "reinjected_packets"];

/// A figure per metric of the connection that differs from zero somewhere: bars by cell, or lines over the swept key. Of a
/// quantity that is counted in packets and in bytes, the packets.
pub fn of_metrics(rows: &[ResultRow<'_>]) -> Placed {
    let all = metrics(rows);
    let is_twin = |name: &str| {
        name.strip_suffix("_bytes").is_some_and(|stem| all.iter().any(|other| *other == format!("{stem}_packets")))
    };
    let shown = all.iter().filter(|name| greatest(rows, name) > 0.0 && !is_twin(name));
    let of_run = |name: &&'_ str| MetricRef::parse(name).path.is_none();
    let shown = shown.copied().filter(of_run);
    let mut shown: Vec<(&str, &MetricInfo)> =
        shown.filter_map(|name| Some((name, MetricRef::parse(name).info()?))).collect();
    let main = Main::all(rows);
    let place = |name: &str| main.iter().position(|main| main.name == name);
    // Stable: each part keeps its order.
    shown.sort_by_key(|(name, _)| {
        (place(name).is_none(), place(name), WHY.iter().position(|why| why == name), group(name))
    });
    let axis = SweptAxis::of(rows);
    let mut placed = Placed { main: Vec::new(), why: Vec::new(), further: Vec::new() };
    for (name, info) in shown {
        let mut figure = figure(rows, (name, info), axis.as_ref());
        let application = MetricRef::parse(name).application();
        if WHY.contains(&name) {
            placed.why.push(figure);
        } else if place(name).is_some() || application.is_none() && is_open(info) {
            placed.main.push(figure);
        } else {
            figure.folded = true;
            figure.group = match application {
                Some((application, _)) => format!("Application {application}"),
                None => GROUPS_OF_METRICS[group(name)].0.into(),
            };
            placed.further.push(figure);
        }
    }
    placed.why.splice(0..0, shares(rows));
    placed
}

/// Place of the metric's group.
fn group(name: &str) -> usize {
    let is_in = |(_, begins): &(&str, &[&str])| begins.iter().any(|begin| name.starts_with(begin));
    GROUPS_OF_METRICS.iter().position(is_in).unwrap_or(GROUPS_OF_METRICS.len() - 1)
}

/// The benefit says again what the head says.
fn is_open(info: &MetricInfo) -> bool {
    info.prominence() >= Prominence::Charted && info.name != names::BENEFIT
}

/// Each path's part of the data, of Multipath TCP without a sweep.
fn shares(rows: &[ResultRow<'_>]) -> Option<Figure> {
    let rows: Vec<&ResultRow<'_>> = rows.iter().filter(|row| !row.kind().is_single()).collect();
    let paths = rows.first().filter(|_| rows.iter().all(|row| row.cell == rows[0].cell))?.paths();
    let metric = |path: &str| MetricRef::of_path(path, names::SHARE).to_string();
    let quantity = Quantity::of_any_path(names::SHARE, 1.0);
    let bar = |path: &&str, row: &&ResultRow<'_>| {
        let ours = Some(Mean::of(row.get(&metric(path))?, quantity.per));
        Some(Bar { group: (*path).to_owned(), row: row.name.clone(), ours, published: None })
    };
    let bars: Vec<Bar> =
        paths.iter().flat_map(|path| rows.iter().filter_map(|row| bar(path, row)).collect::<Vec<_>>()).collect();
    let about = MetricInfo::of_path(names::SHARE).map_or("", |info| info.about);
    (paths.len() > 1 && !bars.is_empty()).then(|| Figure {
        title: "Where the data went".into(),
        caption: format!("path.NAME.share: {about}"),
        group: String::new(),
        folded: false,
        chart: Chart::Bars(Bars { axis: quantity.axis(), bars }),
    })
}

fn figure(rows: &[ResultRow<'_>], (metric, info): (&str, &MetricInfo), axis: Option<&SweptAxis>) -> Figure {
    let quantity = Quantity::of(metric, greatest(rows, metric));
    let mut caption = info.about.to_owned();
    let chart = match axis {
        Some(axis) => {
            let cells = rows.chunk_by(|a, b| a.cell == b.cell);
            let step = cells.clone().count().div_ceil(POINTS);
            if step > 1 {
                caption += &format!(" One cell of {step}; summary.csv has all.");
            }
            Chart::Lines(lines(cells.step_by(step.max(1)).flatten(), metric, &quantity, axis))
        }
        None => {
            let (chart, groups) = bars(rows, metric, &quantity);
            if groups > GROUPS {
                caption += &format!(" The first {GROUPS} of {groups} cells; summary.csv has all.");
            }
            Chart::Bars(chart)
        }
    };
    Figure {
        title: quantity.label,
        caption: format!("{metric}: {caption}"),
        group: String::new(),
        folded: false,
        chart,
    }
}

/// The bars, and how many groups there were.
fn bars(rows: &[ResultRow<'_>], metric: &str, quantity: &Quantity) -> (Bars, usize) {
    let cells = rows.chunk_by(|a, b| a.cell == b.cell);
    let bar = |row: &ResultRow<'_>| {
        let ours = Some(Mean::of(row.get(metric)?, quantity.per));
        Some(Bar { group: cells::name(row.cell), row: row.name.clone(), ours, published: None })
    };
    let bars = cells.clone().take(GROUPS).flatten().filter_map(bar).collect();
    (Bars { axis: quantity.axis(), bars }, cells.count())
}

fn lines<'r>(
    rows: impl Iterator<Item = &'r ResultRow<'r>>,
    metric: &str,
    quantity: &Quantity,
    axis: &SweptAxis,
) -> Lines {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let (Some(summary), Some(x)) = (row.get(metric), axis.position(row)) else { continue };
        let point = (x, Mean::of(summary, quantity.per));
        match lines.iter_mut().find(|line| line.name == row.name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: row.name.clone(), points: vec![point], published: Vec::new() }),
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    Lines { x: Axis { log: axis.is_log, ..Axis::linear(key_label(&axis.key, &axis.unit)) }, y: quantity.axis(), lines }
}
