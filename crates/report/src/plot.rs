//! A picture of curves as SVG: panels with axes, side by side.

use crate::style::PALETTE;
use crate::svg::{CLOSE, escape, open};
use std::fmt::Write as _;

/// One panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below it, with the unit.
    pub x: String,
    /// Points of each curve by rising x, joined by lines.
    pub curves: Vec<Vec<(f64, f64)>>,
    /// Marks, of published values.
    pub marks: Vec<(f64, f64)>,
}

const SIZE: (f64, f64) = (250.0, 130.0);
/// Left of a panel, above it, right of it and below it.
const MARGIN: (f64, f64, f64, f64) = (44.0, 24.0, 14.0, 36.0);
/// Intervals along an axis, about.
const INTERVALS: f64 = 5.0;

/// The panels, row by row; `name` is read aloud.
pub fn svg(rows: &[Vec<Plot>], name: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = (MARGIN.0 + SIZE.0 + MARGIN.2, MARGIN.1 + SIZE.1 + MARGIN.3);
    let mut text = open((columns as f64 * cell.0) as usize, (rows.len() as f64 * cell.1) as usize, Some(name));
    for (row, panels) in rows.iter().enumerate() {
        for (column, plot) in panels.iter().enumerate() {
            draw(&mut text, plot, (column as f64 * cell.0 + MARGIN.0, row as f64 * cell.1 + MARGIN.1));
        }
    }
    text + CLOSE
}

/// An axis from zero to `most`, with a mark each `step`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    most: f64,
    step: f64,
}

impl Scale {
    /// For values up to `most`: steps of 1, 2 or 5 times a power of ten.
    fn of(most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let power = libm::pow(10.0, libm::floor(libm::log10(most / INTERVALS)));
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| most / step <= INTERVALS * 1.2).unwrap_or(10.0 * power);
        Self { most: step * libm::ceil(most / step - 1e-9), step }
    }

    fn ticks(self) -> impl Iterator<Item = (f64, String)> {
        let decimals = (-libm::floor(libm::log10(self.step))).max(0.0) as usize;
        let count = libm::round(self.most / self.step) as usize;
        (0..=count).map(move |n| (n as f64 * self.step, format!("{:.decimals$}", n as f64 * self.step)))
    }
}

fn draw(text: &mut String, plot: &Plot, (left, top): (f64, f64)) {
    let points = || plot.curves.iter().flatten().chain(&plot.marks);
    let x = Scale::of(points().map(|(x, _)| *x).fold(0.0, f64::max));
    let y = Scale::of(points().map(|(_, y)| *y).fold(0.0, f64::max));
    let across = |value: f64| left + value / x.most * SIZE.0;
    let up = |value: f64| top + SIZE.1 - value / y.most * SIZE.1;
    let (right, bottom) = (left + SIZE.0, top + SIZE.1);
    let _ =
        writeln!(text, "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}</text>", top - 9.0, escape(&plot.title));
    for (value, label) in y.ticks() {
        let at = up(value);
        let _ = writeln!(text, "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#e3e6ea\"/>");
        let _ = writeln!(text, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", left - 5.0, at + 3.5);
    }
    for (value, label) in x.ticks() {
        let at = across(value);
        let _ = writeln!(text, "<path d=\"M{at:.1} {bottom}v4\" stroke=\"#8a8f98\"/>");
        let _ = writeln!(text, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", bottom + 14.0);
    }
    let middle = left + SIZE.0 / 2.0;
    let _ = writeln!(
        text,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        bottom + 27.0,
        escape(&plot.x)
    );
    for (curve, (colour, _)) in plot.curves.iter().zip(PALETTE) {
        let path: Vec<String> = curve.iter().map(|(x, y)| format!("{:.1} {:.1}", across(*x), up(*y))).collect();
        let path = path.join("L");
        let _ = writeln!(text, "<path d=\"M{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\"/>");
    }
    for (x, y) in &plot.marks {
        let (x, y, colour) = (across(*x), up(*y), PALETTE[1].0);
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_a_round_value_beyond_the_greatest() {
        for (most, step, end) in
            [(0.0, 0.2, 1.0), (1.0, 0.2, 1.0), (7.3, 2.0, 8.0), (69.5, 20.0, 80.0), (1000.0, 200.0, 1000.0)]
        {
            let scale = Scale::of(most);
            assert!((scale.step - step).abs() < 1e-9 && (scale.most - end).abs() < 1e-9, "{most}: {scale:?}");
        }
        let labels: Vec<String> = Scale::of(0.3).ticks().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.00", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"]);
    }

    #[test]
    fn curves_and_marks_are_where_their_values_are() {
        let plot = Plot {
            title: "a < b".into(),
            x: "t".into(),
            curves: vec![vec![(0.0, 0.0), (10.0, 1.0)]],
            marks: vec![(5.0, 0.5)],
        };
        let picture = svg(&[vec![plot]], "one");
        assert!(picture.contains("a &lt; b") && picture.contains("M44.0 154.0L294.0 24.0"), "{picture}");
        assert!(picture.contains("cx=\"169.0\" cy=\"89.0\""), "{picture}");
    }
}
