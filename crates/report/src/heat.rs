//! A picture of many values as SVG: rows by columns, the deeper the colour the greater the value.

use crate::svg::{CLOSE, escape, open};
use std::fmt::Write as _;

/// One panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Above it.
    pub title: String,
    /// Names, written upright above the columns.
    pub columns: Vec<String>,
    /// From the top.
    pub rows: Vec<HeatRow>,
}

/// One row of a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatRow {
    /// Rows that follow each other with the same group share its name and one block.
    pub group: String,
    /// Label of the row itself.
    pub label: String,
    /// One per column; `None` is left white with a dot.
    pub values: Vec<Option<f64>>,
}

/// The meaning of the colours.
#[derive(Clone, Debug, PartialEq)]
pub struct ColourScale {
    /// In words, with the unit: `lacks of the best, %`.
    pub label: String,
    /// The value of the deepest colour, above zero; greater ones have it too, ones below zero the palest.
    pub most: f64,
}

const CELL: (usize, usize) = (17, 13);
/// Left of the cells: groups, then labels.
const LEFT: (usize, usize) = (8, 128);
const MARGIN: usize = 190;
const GAP: usize = 5;
const HEADER: usize = 120;
const LEGEND: usize = 54;
const STEPS: usize = 6;

/// Pale and deep: vermillion of the palette, as red, green, blue.
const COLOURS: ([f64; 3], [f64; 3]) = ([250.0, 246.0, 240.0], [150.0, 40.0, 0.0]);

/// All panels, one below the other, and the scale.
pub fn svg(panels: &[Heat], scale: &ColourScale) -> String {
    let columns = panels.iter().map(|panel| panel.columns.len()).max().unwrap_or(0);
    let width = MARGIN + columns * CELL.0 + 40;
    let height = LEGEND + panels.iter().map(height).sum::<usize>();
    let mut text = open(width, height, None);
    legend(&mut text, scale);
    let mut top = LEGEND;
    for panel in panels {
        draw(&mut text, panel, scale, top);
        top += self::height(panel);
    }
    text + CLOSE
}

fn height(panel: &Heat) -> usize {
    HEADER + panel.rows.len() * CELL.1 + gaps(panel) * GAP + 20
}

/// How often the group changes.
fn gaps(panel: &Heat) -> usize {
    panel.rows.windows(2).filter(|pair| pair[0].group != pair[1].group).count()
}

fn colour(value: f64, scale: &ColourScale) -> String {
    let depth = (value / scale.most).clamp(0.0, 1.0).sqrt();
    let mix = |n: usize| (COLOURS.0[n] + depth * (COLOURS.1[n] - COLOURS.0[n])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

fn legend(text: &mut String, scale: &ColourScale) {
    let _ = writeln!(text, "<text x=\"{}\" y=\"18\">{}</text>", LEFT.0, escape(&scale.label));
    for step in 0..STEPS {
        // Even in colour, hence quadratic in the value.
        let part = step as f64 / (STEPS - 1) as f64;
        let value = part * part * scale.most;
        let x = MARGIN + step * 40;
        let more = if step + 1 == STEPS { " or more" } else { "" };
        let _ =
            writeln!(text, "<rect x=\"{x}\" y=\"26\" width=\"38\" height=\"10\" fill=\"{}\"/>", colour(value, scale));
        let _ = writeln!(text, "<text x=\"{x}\" y=\"48\">{value:.0}{more}</text>");
    }
}

fn draw(text: &mut String, panel: &Heat, scale: &ColourScale, top: usize) {
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" font-size=\"13\" font-weight=\"bold\">{}</text>",
        LEFT.0,
        top + 16,
        escape(&panel.title)
    );
    for (n, name) in panel.columns.iter().enumerate() {
        let (x, y) = (MARGIN + n * CELL.0 + CELL.0 / 2 + 4, top + HEADER - 5);
        let _ = writeln!(text, "<text transform=\"translate({x} {y}) rotate(-90)\">{}</text>", escape(name));
    }
    let mut y = top + HEADER;
    let mut group: Option<&str> = None;
    for row in &panel.rows {
        if group != Some(&row.group) {
            y += if group.is_some() { GAP } else { 0 };
            group = Some(&row.group);
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>",
                LEFT.0,
                y + CELL.1 - 3,
                escape(&row.group)
            );
        }
        cells(text, (panel, row), scale, y);
        y += CELL.1;
    }
}

fn cells(text: &mut String, (panel, row): (&Heat, &HeatRow), scale: &ColourScale, y: usize) {
    let _ = writeln!(text, "<text x=\"{}\" y=\"{}\">{}</text>", LEFT.1, y + CELL.1 - 3, escape(&row.label));
    for (n, (name, value)) in panel.columns.iter().zip(&row.values).enumerate() {
        let x = MARGIN + n * CELL.0;
        let _ = match value {
            Some(value) => writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{}, {}, {}: {value:.1}</title></rect>",
                CELL.0 - 1,
                CELL.1 - 1,
                colour(*value, scale),
                escape(name),
                escape(&row.group),
                escape(&row.label)
            ),
            None => writeln!(text, "<text x=\"{}\" y=\"{}\">·</text>", x + 6, y + CELL.1 - 3),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat() -> Heat {
        let row = |group: &str, label: &str, values: &[Option<f64>]| HeatRow {
            group: group.into(),
            label: label.into(),
            values: values.to_vec(),
        };
        Heat {
            title: "a < b".into(),
            columns: vec!["x".into(), "y & z".into()],
            rows: vec![
                row("near", "bulk", &[Some(0.0), Some(25.0)]),
                row("near", "web", &[Some(-3.0), None]),
                row("far", "bulk", &[Some(100.0), Some(400.0)]),
            ],
        }
    }

    #[test]
    fn a_picture_by_hand() {
        let scale = ColourScale { label: "lacks, %".into(), most: 100.0 };
        let picture = svg(&[heat()], &scale);
        // Three rows, one gap, two columns.
        assert!(picture.contains(&format!("height=\"{}\"", 54 + 120 + 3 * 13 + 5 + 20)), "{picture}");
        assert!(picture.contains("a &lt; b") && picture.contains("y &amp; z") && !picture.contains("y & z"));
        // Below zero as zero; a quarter of the most has half of the depth; what exceeds the most, its colour.
        assert_eq!(
            ["-3", "0", "25", "100", "400"].map(|v| colour(v.parse().unwrap(), &scale)),
            ["#faf6f0", "#faf6f0", "#c88f78", "#962800", "#962800"]
        );
        assert!(picture.contains("<title>y &amp; z, near, bulk: 25.0</title>"));
        assert_eq!(picture.matches("font-weight=\"bold\">near<").count(), 1);
        assert_eq!(picture.matches(">·<").count(), 1);
        assert!(picture.ends_with("</svg>\n"));
    }
}
