//! Claims by readings as a picture: where each claim stands.

use crate::heat::escape;
use anabranch_reproduce::{ItemOutcome, Judged, ReadingOutcome, Stand};
use std::fmt::Write as _;

/// The claims of an item and where they stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Names of the readings, and whether claims are judged in them.
    pub columns: Vec<(String, bool)>,
    /// Of each claim: a label, its whole text, one stand a column.
    pub rows: Vec<(String, String, Vec<Stand>)>,
}

/// Longer texts are cut in the label; the whole is the cell's title.
const LABEL: usize = 62;
const CELL: usize = 15;
const MARGIN: usize = 400;
const PER_LETTER: usize = 6;
const LEGEND: usize = 36;

/// Of an item, the readings in which schedulers were run.
pub fn panel(item: &ItemOutcome) -> Panel {
    let run: Vec<&ReadingOutcome> = item.readings.iter().filter(|reading| !reading.claims.is_empty()).collect();
    let row = |(n, claim): (usize, &Judged)| {
        let stand = |reading: &&ReadingOutcome| reading.claims.get(n).map_or(Stand::NotTested, |tested| tested.stand);
        let whole = format!("{}. {}", n + 1, claim.text);
        let label = match whole.char_indices().nth(LABEL) {
            Some((end, _)) => format!("{}…", &whole[..end]),
            None => whole.clone(),
        };
        (label, whole, run.iter().map(stand).collect())
    };
    Panel {
        title: format!("{} ({})", item.title, item.place),
        columns: run.iter().map(|reading| (reading.name.clone(), reading.admissible)).collect(),
        rows: item.claims.iter().enumerate().map(row).collect(),
    }
}

/// All panels, one below the other, and what the signs mean.
pub fn svg(panels: &[Panel]) -> String {
    let columns = panels.iter().map(|panel| panel.columns.len()).max().unwrap_or(0);
    let (width, height) = (MARGIN + columns * CELL + 60, LEGEND + panels.iter().map(height).sum::<usize>());
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"10\" fill=\"#23272d\" role=\"img\" aria-label=\"Claims by readings\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut x = 8;
    for stand in [Stand::InSize, Stand::InDirection, Stand::No, Stand::NotTested] {
        cell(&mut text, (x, 10), stand, &stand.to_string());
        let _ = writeln!(text, "<text x=\"{}\" y=\"20\">{}</text>", x + CELL + 4, stand);
        x += 100;
    }
    let _ = writeln!(text, "<text x=\"{x}\" y=\"20\">▪ a reading in which claims are judged</text>");
    let mut top = LEGEND;
    for panel in panels {
        draw(&mut text, panel, top);
        top += self::height(panel);
    }
    text + "</svg>\n"
}

/// Room for the names of the columns, which stand upright.
fn header(panel: &Panel) -> usize {
    30 + panel.columns.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or(0) * PER_LETTER
}

fn height(panel: &Panel) -> usize {
    header(panel) + panel.rows.len() * CELL + 20
}

fn draw(text: &mut String, panel: &Panel, top: usize) {
    let head = top + 14;
    let _ = writeln!(
        text,
        "<text x=\"8\" y=\"{head}\" font-size=\"13\" font-weight=\"bold\">{}</text>",
        escape(&panel.title)
    );
    let first = top + header(panel);
    for (n, (name, admissible)) in panel.columns.iter().enumerate() {
        let (x, y) = (MARGIN + n * CELL + CELL / 2 + 3, first - 4);
        let (weight, mark) = if *admissible { ("bold", "▪ ") } else { ("normal", "") };
        let name = escape(name);
        let _ = writeln!(
            text,
            "<text transform=\"translate({x} {y}) rotate(-90)\" font-weight=\"{weight}\">{mark}{name}</text>"
        );
    }
    for (row, (label, whole, stands)) in panel.rows.iter().enumerate() {
        let y = first + row * CELL;
        let _ = writeln!(text, "<text x=\"8\" y=\"{}\">{}</text>", y + CELL - 4, escape(label));
        for (n, (stand, (name, _))) in stands.iter().zip(&panel.columns).enumerate() {
            let title = format!("{whole}; {name}: {}", stand);
            cell(text, (MARGIN + n * CELL, y), *stand, &title);
        }
    }
}

/// A colour and a sign, so that neither is needed alone.
fn cell(text: &mut String, (x, y): (usize, usize), stand: Stand, title: &str) {
    let (fill, ink, sign) = match stand {
        Stand::InSize => ("#0072b2", "#ffffff", "✓"),
        Stand::InDirection => ("#a9d6f0", "#23272d", "≈"),
        Stand::No => ("#f3c98b", "#23272d", "✗"),
        Stand::NotTested => ("#ffffff", "#23272d", "·"),
    };
    let side = CELL - 1;
    let _ = writeln!(
        text,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{fill}\"/>\
         <text x=\"{}\" y=\"{}\" fill=\"{ink}\" text-anchor=\"middle\">{sign}</text></g>",
        escape(title),
        x + side / 2,
        y + side - 3
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_a_sign_in_each_reading() {
        let row = |label: &str, stands: &[Stand]| (label.to_owned(), format!("{label}, in full"), stands.to_vec());
        let panel = Panel {
            title: "a < b".into(),
            columns: vec![("as written".into(), true), ("full & more".into(), false)],
            rows: vec![
                row("1. first", &[Stand::InSize, Stand::No]),
                row("2. second", &[Stand::InDirection, Stand::NotTested]),
            ],
        };
        let picture = svg(&[panel]);
        // One of each in the legend, one of each in the cells.
        assert_eq!(["✓", "≈", "✗", "·"].map(|sign| picture.matches(&format!(">{sign}<")).count()), [2, 2, 2, 2]);
        assert!(picture.contains("<title>1. first, in full; full &amp; more: no</title>"), "{picture}");
        assert!(picture.contains(">▪ as written<") && picture.contains(">full &amp; more<"), "{picture}");
        assert!(picture.contains("a &lt; b") && picture.ends_with("</svg>\n"));
    }
}
