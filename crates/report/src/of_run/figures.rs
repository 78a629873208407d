//! A chart per metric.

use super::cells::{self, SweptAxis};
use super::rows::{greatest, main_metric, metrics};
use crate::chart::{Axis, Bar, Bars, Chart, Line, Lines, Mean};
use crate::quantity::{Quantity, key_label};
use crate::value::Figure;
use anabranch_metrics::{MetricInfo, Prominence};
use anabranch_run::ResultRow;

/// Cells that bars are drawn of.
const GROUPS: usize = 24;

/// Cells that lines are drawn through, at most.
const POINTS: usize = 300;

/// A figure per metric of the connection that differs from zero somewhere: bars by cell, or lines over the swept key. The main
/// metric comes first, then those whose charts are open.
pub fn of_metrics(rows: &[ResultRow<'_>]) -> Vec<Figure> {
    let shown = metrics(rows).into_iter().filter(|name| greatest(rows, name) > 0.0);
    let mut shown: Vec<&MetricInfo> = shown.filter_map(MetricInfo::of_run).collect();
    let main = main_metric(rows);
    // Stable: each part keeps its order.
    shown.sort_by_key(|info| (info.name != main.name, is_folded(info)));
    let axis = SweptAxis::of(rows);
    shown.into_iter().map(|info| figure(rows, info, axis.as_ref())).collect()
}

fn is_folded(info: &MetricInfo) -> bool {
    info.prominence() < Prominence::Charted
}

fn figure(rows: &[ResultRow<'_>], info: &MetricInfo, axis: Option<&SweptAxis>) -> Figure {
    let metric = info.name;
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
    Figure { title: quantity.label, caption: format!("{metric}: {caption}"), folded: is_folded(info), chart }
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
