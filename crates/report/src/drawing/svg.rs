//! A drawing as SVG.

use super::font::SIZE;
use super::{Anchor, Drawing, INK, Mark, Pen, Point, WHITE};
use crate::svg::{CLOSE, escape};
use std::fmt::Write as _;

pub fn svg(drawing: &Drawing) -> String {
    let Drawing { width, height, marks } = drawing;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height:.1}pt\" viewBox=\"0 0 {width} {height:.1}\" \
         font-family=\"DejaVu Sans, sans-serif\" font-size=\"{SIZE}\" fill=\"{INK}\">\n\
         <rect width=\"{width}\" height=\"{height:.1}\" fill=\"{WHITE}\"/>\n"
    );
    marks.iter().for_each(|mark| one(&mut text, mark));
    text + CLOSE
}

fn one(text: &mut String, mark: &Mark) {
    // Writing into a string cannot fail.
    let _ = match mark {
        Mark::Line { points, pen } => writeln!(text, "<path d=\"M{}\" fill=\"none\"{}/>", path(points), stroke(pen)),
        Mark::Area { points, fill, opacity, pen } => {
            let stroke = pen.as_ref().map(stroke).unwrap_or_default();
            let opacity = if *opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
            writeln!(text, "<path d=\"M{}Z\" fill=\"{fill}\"{opacity}{stroke}/>", path(points))
        }
        Mark::Text { at: (x, y), text: words, anchor, turned } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let turn = if *turned { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
            writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}{turn}>{}</text>", escape(words))
        }
    };
}

fn path(points: &[Point]) -> String {
    points.iter().map(|(x, y)| format!("{x:.2} {y:.2}")).collect::<Vec<_>>().join("L")
}

fn stroke(Pen { colour, width, dash }: &Pen) -> String {
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!(" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}")
}
