//! An item's figures, in the form in which the paper draws them.

use crate::chart::{
    Axis, Bar, Bars, Chart, Curve, Density, Distribution, Line, Lines, Mean, Panel, Points, Scatter, TimeSeries,
};
use crate::quantity::{Quantity, key_in_words, key_label, positions};
use crate::value;
use anabranch_reproduce::{Figure, ItemOutcome, Judged, MeanCurve};
use anabranch_run::{CellValues, Estimate, Summary};

/// All of them; those that nothing was measured for are left out.
pub fn of(item: &ItemOutcome) -> Vec<value::Figure> {
    item.figures.iter().filter_map(|figure| draw(item, figure)).collect()
}

fn draw(item: &ItemOutcome, figure: &Figure) -> Option<value::Figure> {
    let what = figure.what();
    let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |a: f64, b| a.max(b.abs()));
    let quantity = match figure {
        Figure::Bars { metric } | Figure::Lines { metric, .. } | Figure::Scatter { metric, .. } => {
            Quantity::of(metric, greatest(&mut summaries(item, metric).map(|summary| summary.mean)))
        }
        Figure::Time { .. } | Figure::Distribution { .. } => {
            let values = curves(item, what).flat_map(|curve| curve.values.iter().flatten());
            Quantity::of(what, greatest(&mut values.map(|value| value.mean)))
        }
    };
    let chart = match figure {
        Figure::Bars { metric } => Chart::Bars(bars(item, metric, &quantity)),
        Figure::Lines { x, metric, log } => Chart::Lines(lines(item, (x, *log), metric, &quantity)),
        Figure::Scatter { x, metric, models } => {
            let across = Quantity::of(x, greatest(&mut summaries(item, x).map(|summary| summary.mean)));
            Chart::Scatter(scatter(item, [(x, &across), (metric, &quantity)], models))
        }
        Figure::Time { curve } => Chart::TimeSeries(over_time(item, curve, &quantity)),
        Figure::Distribution { curve } => Chart::Distribution(densities(item, curve)),
    };
    let is_empty = summaries(item, what).next().is_none() && curves(item, what).next().is_none();
    (!is_empty).then(|| value::Figure {
        title: match what {
            "rbd" => "Reorder-buffer occupancy density (RBD, RFC 5236)".into(),
            "rd" => "Reorder density (RD, RFC 5236)".into(),
            _ => quantity.label.clone(),
        },
        caption: format!("As in {}.", item.place),
        group: String::new(),
        folded: false,
        chart,
    })
}

fn summaries<'a>(item: &'a ItemOutcome, metric: &'a str) -> impl Iterator<Item = &'a Summary> {
    item.summary.iter().filter(move |summary| *summary.metric == *metric)
}

fn curves<'a>(item: &'a ItemOutcome, name: &'a str) -> impl Iterator<Item = &'a MeanCurve> {
    item.curves.iter().filter(move |curve| curve.name == name)
}

/// Values that were published of a metric, in its own unit: row, cell, value.
fn published<'a>(item: &'a ItemOutcome, metric: &'a str) -> impl Iterator<Item = (&'a str, &'a CellValues, f64)> {
    item.claims.iter().filter(move |claim| claim.metric == metric).filter_map(|claim: &Judged| {
        let (row, cell) = claim.of.as_ref()?;
        Some((row.as_str(), cell, claim.figure? * claim.scale))
    })
}

fn bars(item: &ItemOutcome, metric: &str, quantity: &Quantity) -> Bars {
    let bar = |summary: &Summary| {
        let mut marks = published(item, metric);
        let mark = marks.find(|(row, cell, _)| *row == &*summary.scheduler && **cell == *summary.cell);
        Bar {
            group: name(&summary.cell),
            row: summary.scheduler.to_string(),
            ours: Some(Mean::of(summary, quantity.per)),
            published: mark.map(|(.., value)| value / quantity.per),
        }
    };
    Bars { axis: quantity.axis(), bars: summaries(item, metric).map(bar).collect() }
}

fn lines(item: &ItemOutcome, (key, log): (&str, bool), metric: &str, quantity: &Quantity) -> Lines {
    let own: Vec<&Summary> = summaries(item, metric).filter(|summary| summary.cell.contains_key(key)).collect();
    let texts: Vec<&str> = own.iter().map(|summary| summary.cell[key].as_str()).collect();
    let (unit, xs) = positions(key, &texts);
    let mut lines: Vec<Line> = Vec::new();
    for (summary, x) in own.iter().zip(&xs) {
        let point = (*x, Mean::of(summary, quantity.per));
        // Other keys of the sweep make lines of their own.
        let mut others = (*summary.cell).clone();
        others.shift_remove(key);
        let others = name(&others);
        let label =
            if others.is_empty() { summary.scheduler.to_string() } else { format!("{} ({others})", summary.scheduler) };
        match lines.iter_mut().find(|line| line.name == label) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: label, points: vec![point], published: Vec::new() }),
        }
    }
    for (row, cell, value) in published(item, metric) {
        let place = own.iter().position(|summary| *summary.cell == *cell);
        if let (Some(place), Some(line)) = (place, lines.iter_mut().find(|line| line.name == row)) {
            line.published.push((xs[place], value / quantity.per));
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    Lines { x: Axis { label: key_label(key, &unit), log, signed: true }, y: quantity.axis(), lines }
}

/// A point a cell, a set a row.
fn scatter(
    item: &ItemOutcome,
    [(x, across), (y, up)]: [(&str, &Quantity); 2],
    models: &[(String, Vec<(f64, f64)>)],
) -> Scatter {
    let scaled = |(x, y): (f64, f64)| (x / across.per, y / up.per);
    let mut sets: Vec<Points> = Vec::new();
    for own in summaries(item, y) {
        let same = |other: &&Summary| other.scheduler == own.scheduler && other.cell == own.cell;
        let Some(other) = summaries(item, x).find(same) else { continue };
        let point = scaled((other.mean, own.mean));
        match sets.iter_mut().find(|set| *set.name == *own.scheduler) {
            Some(set) => set.points.push(point),
            None => sets.push(Points { name: own.scheduler.to_string(), points: vec![point] }),
        }
    }
    let model = |(name, points): &(String, Vec<(f64, f64)>)| Points {
        name: name.clone(),
        points: points.iter().copied().map(scaled).collect(),
    };
    let models = models.iter().map(model).collect();
    Scatter { x: across.axis(), y: up.axis(), sets, models, r2: None }
}

/// One panel a cell.
fn over_time(item: &ItemOutcome, curve: &str, quantity: &Quantity) -> TimeSeries {
    let mut panels: Vec<(&CellValues, Panel)> = Vec::new();
    for curve in curves(item, curve) {
        let of = |value: fn(&Estimate) -> Option<f64>| -> Vec<Option<f64>> {
            curve.values.iter().map(|bin| bin.as_ref().and_then(value).map(|value| value / quantity.per)).collect()
        };
        let drawn = Curve {
            name: curve.row.clone(),
            start_s: curve.start,
            step_s: curve.step,
            mean: of(|bin| Some(bin.mean)),
            low: of(|bin| bin.ci95_low),
            high: of(|bin| bin.ci95_high),
        };
        match panels.iter_mut().find(|(cell, _)| **cell == curve.cell) {
            Some((_, panel)) => panel.curves.push(drawn),
            None => {
                let cell = name(&curve.cell);
                let comma = if cell.is_empty() { "" } else { "; " };
                let axis = Axis { label: format!("{}{comma}{cell}", quantity.label), ..quantity.axis() };
                panels.push((&curve.cell, Panel { axis, curves: vec![drawn] }));
            }
        }
    }
    TimeSeries { panels: panels.into_iter().map(|(_, panel)| panel).collect(), warmup_s: 0.0 }
}

fn densities(item: &ItemOutcome, name: &str) -> Distribution {
    let density = |curve: &MeanCurve| {
        let share = |(n, value): (usize, &Option<Estimate>)| {
            let x = curve.start + curve.step * n as f64;
            value.map(|value| (x.round() as i64, value.mean))
        };
        Density { name: curve.row.clone(), shares: curve.values.iter().enumerate().filter_map(share).collect() }
    };
    let x = match name {
        "rd" => "displacement, packets (negative: early)",
        _ => "reorder-buffer occupancy, packets",
    };
    let (x, y) = (Axis::linear(x), Axis::linear("share of packets"));
    Distribution { x, y, curves: curves(item, name).map(density).collect() }
}

/// The cell's values; the key of an item's variants goes without saying.
fn name(cell: &CellValues) -> String {
    let value = |(key, value): (&String, &String)| match key.as_str() {
        "variant" => value.clone(),
        key => format!("{} = {value}", key_in_words(key)),
    };
    cell.iter().map(value).collect::<Vec<_>>().join(", ")
}
