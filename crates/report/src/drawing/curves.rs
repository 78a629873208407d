//! Curves: over a key, over time, of distributions; points with a model.

use super::axis::Scale;
use super::panel::{Frame, Panel, Sheet};
use super::{Looks, Mark, Pen, Point};
use crate::chart::{Axis, Distribution, Lines, Scatter, TimeSeries};
use indexmap::IndexSet;

/// Height of a panel by the width of a drawing, in points.
const HEIGHT: f64 = 120.0;
/// Curves that nowhere differ by more than this share of the axis coincide.
const NEAR: f64 = 0.005;

/// A curve of a panel.
struct Curve<'a> {
    name: &'a str,
    /// Parts without a gap.
    parts: Vec<Vec<Point>>,
    /// Upper and lower ends of intervals, at the same places.
    band: Vec<(f64, f64, f64)>,
    marked: bool,
    published: Vec<Point>,
}

impl<'a> Curve<'a> {
    fn whole(name: &'a str, points: Vec<Point>, marked: bool) -> Self {
        Self { name, parts: vec![points], band: Vec::new(), marked, published: Vec::new() }
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.parts.iter().flatten().copied()
    }

    /// True if `other` has the same places, and values within `near`.
    fn coincides(&self, other: &Self, near: f64) -> bool {
        let pairs = || self.points().zip(other.points());
        let (mine, others) = (self.points().count(), other.points().count());
        mine > 1 && mine == others && pairs().all(|(a, b)| a.0 == b.0 && libm::fabs(a.1 - b.1) <= near)
    }
}

pub fn lines(sheet: &mut Sheet, chart: &Lines, looks: &Looks) {
    let curves = chart.lines.iter().map(|line| Curve {
        band: line.points.iter().filter_map(|(x, mean)| Some((*x, mean.low?, mean.high?))).collect(),
        published: line.published.clone(),
        ..Curve::whole(&line.name, line.points.iter().map(|(x, mean)| (*x, mean.mean)).collect(), true)
    });
    let curves: Vec<Curve<'_>> = curves.collect();
    legend(sheet, &curves, looks);
    panel(sheet, &Sides::of((&chart.x, &chart.y), &curves, &[]), &curves, looks);
    if curves.iter().any(|curve| !curve.published.is_empty()) {
        sheet.remark("Diamonds: published.");
    }
}

pub fn distribution(sheet: &mut Sheet, chart: &Distribution, looks: &Looks) {
    let curves = chart.curves.iter().map(|curve| {
        let known = curve.shares.iter().filter(|(_, share)| *share > 0.0 || !chart.y.log);
        Curve::whole(&curve.name, known.map(|(x, share)| (*x as f64, *share)).collect(), false)
    });
    let curves: Vec<Curve<'_>> = curves.collect();
    legend(sheet, &curves, looks);
    panel(sheet, &Sides::of((&chart.x, &chart.y), &curves, &[]), &curves, looks);
}

/// The panels, or the one that is the `only`th, over one span of time.
pub fn time_series(sheet: &mut Sheet, chart: &TimeSeries, only: Option<usize>, looks: &Looks) {
    let time = Axis { signed: true, ..Axis::linear("time, s") };
    let panels = chart.panels.iter().map(|panel| (&panel.axis, panel.curves.iter().map(over_time).collect()));
    let panels: Vec<(&Axis, Vec<Curve<'_>>)> = panels.collect();
    let all = || panels.iter().flat_map(|(_, curves)| curves);
    let span = Scale::of(&time, all().flat_map(Curve::points).map(|(x, _)| x), 6.0, true);
    let shown = || panels.iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place));
    let mut seen = IndexSet::new();
    let first = shown().flat_map(|(_, (_, curves))| curves).filter(|curve| seen.insert(curve.name));
    let first: Vec<&Curve<'_>> = first.collect();
    if first.len() > 1 {
        sheet.legend(first.iter().map(|curve| entry(curve, looks)));
    }
    for (_, (axis, curves)) in shown() {
        let title = if only.is_none() && panels.len() > 1 { &*axis.label } else { "" };
        let frame = Sides { title, x: (span.clone(), &time.label), y: axis };
        panel(sheet, &frame, curves, looks);
    }
}

/// A curve with its gaps.
fn over_time(curve: &crate::chart::Curve) -> Curve<'_> {
    let at = |i: usize| curve.start_s + i as f64 * curve.step_s;
    let mut parts = vec![Vec::new()];
    for (i, value) in curve.mean.iter().enumerate() {
        match value {
            Some(value) => parts.last_mut().expect("it begins with one").push((at(i), *value)),
            None if parts.last().is_some_and(|part| !part.is_empty()) => parts.push(Vec::new()),
            None => {}
        }
    }
    let ends = curve.low.iter().zip(&curve.high).enumerate();
    let band = ends.filter_map(|(i, (low, high))| Some((at(i), (*low)?, (*high)?))).collect();
    Curve { name: &curve.name, parts, band, marked: false, published: Vec::new() }
}

pub fn scatter(sheet: &mut Sheet, chart: &Scatter, looks: &Looks) {
    // Points without a line: they are drawn below, and named in the legend.
    let sets = chart.sets.iter().map(|set| Curve { parts: Vec::new(), ..Curve::whole(&set.name, Vec::new(), true) });
    let models = chart.models.iter().map(|set| Curve::whole(&set.name, set.points.clone(), false));
    let curves: Vec<Curve<'_>> = sets.chain(models).collect();
    legend(sheet, &curves, looks);
    let points: Vec<Point> = chart.sets.iter().flat_map(|set| &set.points).copied().collect();
    let area = axes(sheet, &Sides::of((&chart.x, &chart.y), &curves, &points), &curves, &points);
    for set in &chart.sets {
        let (colour, style) = looks.of(&set.name);
        set.points.iter().for_each(|(x, y)| sheet.symbol(area.at(*x, *y), colour, style));
    }
    curves.iter().for_each(|curve| one(sheet, &area, curve, 0, looks));
    if let Some(r2) = chart.r2 {
        sheet.remark(&format!("R² = {r2:.3}"));
    }
}

fn entry<'a>(curve: &Curve<'a>, looks: &Looks) -> (&'a str, &'static str, crate::style::Style, bool) {
    let (colour, style) = looks.of(curve.name);
    (curve.name, colour, style, curve.marked)
}

fn legend(sheet: &mut Sheet, curves: &[Curve<'_>], looks: &Looks) {
    sheet.legend(curves.iter().map(|curve| entry(curve, looks)));
}

/// Title, scale and axis of a panel.
struct Sides<'a> {
    /// The panel's title, which says what its axis shows; empty for none.
    title: &'a str,
    x: (Scale, &'a str),
    y: &'a Axis,
}

impl<'a> Sides<'a> {
    /// Those of a panel that is alone.
    fn of((x, y): (&'a Axis, &'a Axis), curves: &[Curve<'_>], more: &[Point]) -> Self {
        let across = everything(curves, more).map(|(x, _)| x);
        Self { title: "", x: (Scale::of(x, across, 6.0, true), &x.label), y }
    }
}

fn everything<'a>(curves: &'a [Curve<'_>], more: &'a [Point]) -> impl Iterator<Item = Point> + 'a {
    curves.iter().flat_map(|curve| curve.points().chain(curve.published.iter().copied())).chain(more.iter().copied())
}

fn axes(sheet: &mut Sheet, sides: &Sides<'_>, curves: &[Curve<'_>], more: &[Point]) -> Panel {
    let Sides { title, x, y } = sides;
    let ends = curves.iter().flat_map(|curve| &curve.band);
    let ends = ends.flat_map(|(_, low, high)| [if y.signed || y.log { *low } else { low.max(0.0) }, *high]);
    let up = Scale::of(y, everything(curves, more).map(|(_, y)| y).chain(ends), 5.0, false);
    let label = if title.is_empty() { &*y.label } else { "" };
    sheet.panel(Frame { title, x: x.clone(), y: (up, label), height: HEIGHT })
}

/// A panel of curves. A curve below others that coincide with it is wider, and a remark names them.
fn panel(sheet: &mut Sheet, sides: &Sides<'_>, curves: &[Curve<'_>], looks: &Looks) {
    let area = axes(sheet, sides, curves, &[]);
    curves.iter().for_each(|curve| band(sheet, &area, curve, looks));
    let values = || curves.iter().flat_map(Curve::points).map(|(_, y)| y);
    let near = NEAR * (values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min));
    let mut named: IndexSet<&str> = IndexSet::new();
    let mut remarks = Vec::new();
    for (place, curve) in curves.iter().enumerate() {
        let above = curves[place + 1..].iter().filter(|other| curve.coincides(other, near));
        let above: Vec<&str> = above.map(|other| other.name).collect();
        one(sheet, &area, curve, above.len(), looks);
        if !above.is_empty() && !named.contains(curve.name) {
            remarks.push(format!("{} on {}, the wider line: they agree.", above.join(", "), curve.name));
        }
        named.extend(above);
    }
    remarks.iter().for_each(|remark| sheet.remark(remark));
}

/// The intervals of a curve.
fn band(sheet: &mut Sheet, area: &Panel, curve: &Curve<'_>, looks: &Looks) {
    let upper = curve.band.iter().map(|(x, _, high)| area.at(*x, *high));
    let lower = curve.band.iter().rev().map(|(x, low, _)| area.at(*x, *low));
    let points: Vec<Point> = upper.chain(lower).collect();
    if points.len() > 2 {
        let (fill, _) = looks.of(curve.name);
        sheet.add(Mark::Area { points, fill, opacity: super::FAINT, pen: None });
    }
}

fn one(sheet: &mut Sheet, area: &Panel, curve: &Curve<'_>, under: usize, looks: &Looks) {
    let (colour, style) = looks.of(curve.name);
    let pen = Pen { colour, width: 1.2 + 2.4 * under as f64, dash: style.dash };
    for part in curve.parts.iter().filter(|part| !part.is_empty()) {
        let points: Vec<Point> = part.iter().map(|(x, y)| area.at(*x, *y)).collect();
        if curve.marked {
            points.iter().for_each(|at| sheet.symbol(*at, colour, style));
        }
        sheet.add(Mark::Line { points, pen });
    }
    for (x, y) in &curve.published {
        sheet.published(area.at(*x, *y), colour);
    }
}
