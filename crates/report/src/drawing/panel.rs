//! A sheet that is filled from the top: legend, panels with axes, remarks.

use super::axis::Scale;
use super::font::{SIZE, fit, width};
use super::{Anchor, Drawing, GRID, INK, Mark, Pen, Point};
use crate::style::Style;

/// Between things, in points.
const GAP: f64 = 4.0;
/// From one line of text to the next.
const LINE: f64 = SIZE + 3.0;
/// Length of a legend's sample.
const SAMPLE: f64 = 16.0;

/// A drawing that grows downwards.
pub struct Sheet {
    drawing: Drawing,
    /// Where the next thing begins.
    down: f64,
}

/// The rectangle of a panel with its scales.
pub struct Panel {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Scale,
    y: Scale,
}

/// Title, scales and labels of a panel.
pub struct Frame<'a> {
    /// Above the panel; empty for nothing.
    pub title: &'a str,
    /// The scale across, with its label.
    pub x: (Scale, &'a str),
    /// The scale upwards, with its label.
    pub y: (Scale, &'a str),
    /// Height in points.
    pub height: f64,
}

impl Panel {
    pub fn at(&self, x: f64, y: f64) -> Point {
        (self.across(x), self.bottom - self.y.place(y) * (self.bottom - self.top))
    }

    pub fn across(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right - self.left)
    }
}

impl Sheet {
    pub fn new(width: f64) -> Self {
        Self { drawing: Drawing { width, ..Drawing::default() }, down: GAP }
    }

    pub fn end(mut self) -> Drawing {
        self.drawing.height = self.down + GAP;
        self.drawing
    }

    pub fn add(&mut self, mark: Mark) {
        self.drawing.marks.push(mark);
    }

    pub fn text(&mut self, at: Point, text: impl Into<String>, anchor: Anchor) {
        self.add(Mark::Text { at, text: text.into(), anchor, turned: false });
    }

    /// A sample and a name for each entry, in as many lines as they need.
    pub fn legend<'a>(&mut self, entries: impl Iterator<Item = (&'a str, &'static str, Style, bool)>) {
        let (mut across, mut any) = (GAP, false);
        for (name, colour, style, marked) in entries {
            let name = fit(name, self.drawing.width - SAMPLE - 4.0 * GAP);
            let room = SAMPLE + GAP + width(&name) + 2.0 * GAP;
            if across > GAP && across + room > self.drawing.width {
                (across, self.down) = (GAP, self.down + LINE);
            }
            let middle = self.down + SIZE / 2.0;
            let pen = Pen { colour, width: 1.2, dash: style.dash };
            self.add(Mark::Line { points: vec![(across, middle), (across + SAMPLE, middle)], pen });
            if marked {
                self.symbol((across + SAMPLE / 2.0, middle), colour, style);
            }
            self.text((across + SAMPLE + GAP, self.down + SIZE - 1.0), name, Anchor::Start);
            (across, any) = (across + room, true);
        }
        if any {
            self.down += LINE;
        }
    }

    /// A marker around a point.
    pub fn symbol(&mut self, (x, y): Point, colour: &'static str, style: Style) {
        let corners = match style.symbol {
            "square" => 4,
            "triangle" | "wye" => 3,
            "diamond" | "cross" => 4,
            "star" => 5,
            _ => 20,
        };
        let begin = if style.symbol == "square" { 0.125 } else { 0.0 };
        let corner = |n: usize| {
            let turn = (n as f64 / corners as f64 + begin) * core::f64::consts::TAU;
            (x + 2.4 * libm::sin(turn), y - 2.4 * libm::cos(turn))
        };
        let fill = if style.filled { colour } else { super::WHITE };
        let pen = Some(Pen::plain(colour, 0.8));
        self.add(Mark::Area { points: (0..corners).map(corner).collect(), fill, opacity: 1.0, pen });
    }

    /// The diamond of a published value.
    pub fn published(&mut self, (x, y): Point, fill: &'static str) {
        let points = vec![(x, y - 3.5), (x + 3.5, y), (x, y + 3.5), (x - 3.5, y)];
        self.add(Mark::Area { points, fill, opacity: 1.0, pen: Some(Pen::plain(INK, 1.0)) });
    }

    /// The axes of a panel.
    pub fn panel(&mut self, frame: Frame<'_>) -> Panel {
        let Frame { title, x: (x, x_label), y: (y, y_label), height } = frame;
        self.heading(title);
        let labels = y.ticks();
        let left = GAP + LINE + labels.iter().map(|(_, label)| width(label)).fold(0.0, f64::max) + GAP;
        let (top, right) = (self.down + GAP, self.drawing.width - 2.0 * GAP);
        let panel = Panel { left, top, right, bottom: top + height, x, y };
        for (value, label) in labels {
            let (_, down) = panel.at(panel.x.low(), value);
            self.add(Mark::Line { points: vec![(left, down), (right, down)], pen: Pen::plain(GRID, 0.5) });
            self.text((left - GAP, down + SIZE * 0.36), label, Anchor::End);
        }
        let at = (GAP + SIZE, top + height / 2.0);
        self.add(Mark::Text { at, text: fit(y_label, height + 2.0 * LINE), anchor: Anchor::Middle, turned: true });
        self.below(&panel, x_label);
        panel
    }

    /// A panel whose rows have names in place of a scale upwards: `rows` high, each `each` points.
    pub fn rows(&mut self, title: &str, (x, x_label): (Scale, &str), names: &[&str], each: f64) -> Panel {
        self.heading(title);
        let widest = names.iter().map(|name| width(name)).fold(0.0, f64::max);
        let room = widest.min(self.drawing.width * 0.4);
        let (left, top, right) = (GAP + room + GAP, self.down + GAP, self.drawing.width - 2.0 * GAP);
        let y = Scale::of(&crate::chart::Axis::default(), [1.0].into_iter(), 1.0, false);
        let panel = Panel { left, top, right, bottom: top + each * names.len() as f64, x, y };
        for (value, _) in panel.x.ticks() {
            let across = panel.across(value);
            self.add(Mark::Line { points: vec![(across, top), (across, panel.bottom)], pen: Pen::plain(GRID, 0.5) });
        }
        for (row, name) in names.iter().enumerate() {
            let down = top + (row as f64 + 0.5) * each;
            self.text((left - GAP, down + SIZE * 0.36), fit(name, room), Anchor::End);
        }
        self.below(&panel, x_label);
        panel
    }

    /// The top of row `row` of a panel of rows.
    pub fn row_top(panel: &Panel, row: usize, each: f64) -> f64 {
        panel.top + row as f64 * each
    }

    fn heading(&mut self, title: &str) {
        if !title.is_empty() {
            let room = self.drawing.width - 2.0 * GAP;
            self.text((GAP, self.down + SIZE), fit(title, room), Anchor::Start);
            self.down += LINE;
        }
    }

    /// The axis across, below a panel.
    fn below(&mut self, panel: &Panel, label: &str) {
        let Panel { left, right, bottom, .. } = *panel;
        self.add(Mark::Line { points: vec![(left, bottom), (right, bottom)], pen: Pen::plain(INK, 0.6) });
        let mut free = 0.0;
        for (value, text) in panel.x.ticks() {
            let (across, half) = (panel.across(value), width(&text) / 2.0);
            self.add(Mark::Line { points: vec![(across, bottom), (across, bottom + 2.0)], pen: Pen::plain(INK, 0.6) });
            // Labels that would lie on each other are left out.
            if across - half >= free {
                self.text((across, bottom + 3.0 + SIZE), text, Anchor::Middle);
                free = across + half + GAP;
            }
        }
        let at = ((left + right) / 2.0, bottom + 3.0 + SIZE + LINE);
        self.text(at, fit(label, right - left), Anchor::Middle);
        self.down = bottom + 3.0 + SIZE + LINE + GAP;
    }

    /// A sentence below the panels, in as many lines as it needs.
    pub fn remark(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if width(&longer) > self.drawing.width - 2.0 * GAP && !line.is_empty() {
                self.text((GAP, self.down + SIZE), core::mem::take(&mut line), Anchor::Start);
                self.down += LINE;
                line = word.to_owned();
            } else {
                line = longer;
            }
        }
        self.text((GAP, self.down + SIZE), line, Anchor::Start);
        self.down += LINE;
    }
}
