//! A chart per metric.

use super::cells::{self, SweptAxis};
use super::rows::{greatest, has, metrics};
use crate::chart::{Axis, Bar, Bars, Chart, Line, Lines, Mean};
use crate::quantity::{Quantity, key_in_words};
use crate::value::Figure;
use anabranch_metrics::{MetricInfo, Prominence, main_metric};
use anabranch_run::ResultRow;

/// Cells that bars are drawn of.
const GROUPS: usize = 24;

/// A figure per metric of the connection that differs from zero somewhere: bars by cell, or lines over the swept key. The main
/// metric comes first, then those whose charts are open.
pub fn of_metrics(rows: &[ResultRow<'_>]) -> Vec<Figure> {
    let shown = metrics(rows).into_iter().filter(|name| greatest(rows, name) > 0.0);
    let mut shown: Vec<&MetricInfo> = shown.filter_map(MetricInfo::of_run).collect();
    let main = main_metric(|metric| has(rows, metric));
    // Stable: each part keeps its order.
    shown.sort_by_key(|info| (info.name != main.name, is_folded(info)));
    shown.into_iter().map(|info| figure(rows, info)).collect()
}

fn is_folded(info: &MetricInfo) -> bool {
    info.prominence() < Prominence::Charted
}

fn figure(rows: &[ResultRow<'_>], info: &MetricInfo) -> Figure {
    let metric = info.name;
    let quantity = Quantity::of(metric, greatest(rows, metric));
    let mut caption = info.about.to_owned();
    let chart = match SweptAxis::of(rows) {
        Some(axis) => Chart::Lines(lines(rows, metric, &quantity, &axis)),
        None => {
            let (chart, groups) = bars(rows, metric, &quantity);
            if groups > GROUPS {
                caption += &format!(" The first {GROUPS} of {groups} cells; all are in the table.");
            }
            Chart::Bars(chart)
        }
    };
    Figure { title: quantity.label, caption: format!("{metric}: {caption}"), folded: is_folded(info), chart }
}

/// The bars, and how many groups there were.
fn bars(rows: &[ResultRow<'_>], metric: &str, quantity: &Quantity) -> (Bars, usize) {
    let mut groups: Vec<String> = Vec::new();
    let mut bars = Vec::new();
    for row in rows {
        let group = cells::name(row.cell);
        if !groups.contains(&group) {
            groups.push(group.clone());
        }
        let Some(summary) = row.get(metric).filter(|_| groups.len() <= GROUPS) else { continue };
        let ours = Some(Mean::of(summary, quantity.per));
        bars.push(Bar { group, row: row.name.clone(), ours, published: None });
    }
    (Bars { axis: quantity.axis(), bars }, groups.len())
}

fn lines(rows: &[ResultRow<'_>], metric: &str, quantity: &Quantity, axis: &SweptAxis) -> Lines {
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
    let comma = if axis.unit.is_empty() { "" } else { ", " };
    let label = format!("{}{comma}{}", key_in_words(&axis.key), axis.unit);
    Lines { x: Axis { log: axis.is_log, ..Axis::linear(label) }, y: quantity.axis(), lines }
}
