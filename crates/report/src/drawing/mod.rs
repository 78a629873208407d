//! Figures for papers, drawn without a browser: a chart's values become lines and texts, and these SVG or PDF.

mod axis;
mod bars;
mod curves;
mod font;
mod panel;
mod pdf;
mod svg;

use crate::FigureName;
use crate::chart::Chart;
use crate::style::{PALETTE, Style, styles};
use crate::value::Report;
use indexmap::IndexMap;
use panel::Sheet;

/// Width of a column of a two-column paper, in points (1/72 inch).
pub const COLUMN: f64 = 252.0;

/// A drawing: marks on white, in points from the top left corner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    width: f64,
    height: f64,
    marks: Vec<Mark>,
}

/// A point across and down.
type Point = (f64, f64);

/// One thing that is drawn.
#[derive(Clone, Debug, PartialEq)]
enum Mark {
    /// A line through points.
    Line { points: Vec<Point>, pen: Pen },
    /// An area within points, with a line around it.
    Area { points: Vec<Point>, fill: &'static str, opacity: f64, pen: Option<Pen> },
    /// A line of text; `turned` = from bottom to top.
    Text { at: Point, text: String, anchor: Anchor, turned: bool },
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pen {
    colour: &'static str,
    width: f64,
    /// As SVG's `stroke-dasharray`; empty for a whole line.
    dash: &'static str,
}

/// The part of a text that lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

const INK: &str = "#23272d";
const GRID: &str = "#e3e6ea";
const WHITE: &str = "#ffffff";
/// Opacity of what is hollow on a page, and of an interval's band.
const PALE: f64 = 0.3;
const FAINT: f64 = 0.16;

impl Pen {
    const fn plain(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dash: "" }
    }
}

/// The colours and dashes of the names of a report: those of its page.
struct Looks(IndexMap<String, Style>);

impl Looks {
    fn of(&self, name: &str) -> (&'static str, Style) {
        let style = self.0.get(name).copied().unwrap_or(crate::style::PLAIN);
        (PALETTE[style.colour % PALETTE.len()].0, style)
    }
}

/// A drawing of a report, `width` points wide; nothing if only a browser draws it.
pub fn draw(report: &Report, name: &FigureName, width: f64) -> Option<Drawing> {
    let figures = || report.sections.iter().flat_map(|section| &section.figures);
    let chart = &figures().nth(name.figure)?.chart;
    let looks = Looks(styles(&report.schedulers, figures().flat_map(|figure| figure.chart.names())));
    let mut sheet = Sheet::new(width);
    match (chart, name.panel) {
        (Chart::Bars(bars), panel) => bars::draw(&mut sheet, bars, panel, &looks),
        (Chart::TimeSeries(series), panel) => curves::time_series(&mut sheet, series, panel, &looks),
        (Chart::Lines(lines), _) => curves::lines(&mut sheet, lines, &looks),
        (Chart::Distribution(distribution), None) => curves::distribution(&mut sheet, distribution, &looks),
        (Chart::Scatter(scatter), _) => curves::scatter(&mut sheet, scatter, &looks),
        // A distribution's panels are windows of a browser; one drawing has all of it.
        (Chart::Distribution(_), Some(_)) | (Chart::Timeline(_), _) => return None,
    }
    Some(sheet.end())
}

impl Drawing {
    /// The drawing as SVG; its texts are texts, in the viewer's sans-serif if DejaVu Sans is missing.
    pub fn svg(&self) -> String {
        svg::svg(self)
    }

    /// The drawing as PDF 1.5, with its font embedded. The same drawing gives the same bytes.
    pub fn pdf(&self) -> Vec<u8> {
        pdf::pdf(self)
    }
}
