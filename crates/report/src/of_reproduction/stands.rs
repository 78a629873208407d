//! Claims by readings as a picture: the readings in which each claim holds.

use crate::svg::{CLOSE, escape, open};
use anabranch_reproduce::{ItemOutcome, Judged, ReadingOutcome, Stand};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The claims of an item and the readings in which they hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// From the left.
    pub readings: Vec<PanelReading>,
    /// From the top.
    pub claims: Vec<PanelClaim>,
}

/// A column of a panel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PanelReading {
    /// Name of the reading.
    pub name: String,
    /// Claims are judged in it.
    pub admissible: bool,
}

/// A row of a panel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PanelClaim {
    /// As much of the text as there is room for.
    pub label: String,
    /// The whole text.
    pub text: String,
    /// One per reading.
    pub stands: Vec<Stand>,
}

/// Longer texts are cut in the label; the whole is the cell's title.
const LABEL: usize = 62;
const CELL: usize = 15;
const MARGIN: usize = 400;
const PER_LETTER: usize = 6;
const LEGEND: usize = 36;

/// The readings of an item in which schedulers were run.
pub fn panel(item: &ItemOutcome) -> Panel {
    let run: Vec<&ReadingOutcome> = item.judged_readings().collect();
    let row = |(n, claim): (usize, &Judged)| {
        let stand = |reading: &&ReadingOutcome| reading.claims.get(n).map_or(Stand::NotTested, |tested| tested.stand);
        let whole = format!("{}. {}", n + 1, claim.text);
        let label = match whole.char_indices().nth(LABEL) {
            Some((end, _)) => format!("{}…", &whole[..end]),
            None => whole.clone(),
        };
        PanelClaim { label, text: whole, stands: run.iter().map(stand).collect() }
    };
    let column =
        |reading: &&ReadingOutcome| PanelReading { name: reading.name.clone(), admissible: reading.admissible };
    Panel {
        title: format!("{} ({})", item.title, item.place),
        readings: run.iter().map(column).collect(),
        claims: item.claims.iter().enumerate().map(row).collect(),
    }
}

/// All panels, one below the other, and what the signs mean.
pub fn svg(panels: &[Panel]) -> String {
    let columns = panels.iter().map(|panel| panel.readings.len()).max().unwrap_or(0);
    let (width, height) = (MARGIN + columns * CELL + 60, LEGEND + panels.iter().map(height).sum::<usize>());
    let mut text = open(width, height, Some("Claims by readings"));
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
    text + CLOSE
}

/// Room for the names of the columns, which are vertical.
fn header(panel: &Panel) -> usize {
    30 + panel.readings.iter().map(|reading| reading.name.chars().count() + 2).max().unwrap_or(0) * PER_LETTER
}

fn height(panel: &Panel) -> usize {
    header(panel) + panel.claims.len() * CELL + 20
}

fn draw(text: &mut String, panel: &Panel, top: usize) {
    let head = top + 14;
    let _ = writeln!(
        text,
        "<text x=\"8\" y=\"{head}\" font-size=\"13\" font-weight=\"bold\">{}</text>",
        escape(&panel.title)
    );
    let first = top + header(panel);
    for (n, PanelReading { name, admissible }) in panel.readings.iter().enumerate() {
        let (x, y) = (MARGIN + n * CELL + CELL / 2 + 3, first - 4);
        let (weight, mark) = if *admissible { ("bold", "▪ ") } else { ("normal", "") };
        let name = escape(name);
        let _ = writeln!(
            text,
            "<text transform=\"translate({x} {y}) rotate(-90)\" font-weight=\"{weight}\">{mark}{name}</text>"
        );
    }
    for (row, PanelClaim { label, text: whole, stands }) in panel.claims.iter().enumerate() {
        let y = first + row * CELL;
        let _ = writeln!(text, "<text x=\"8\" y=\"{}\">{}</text>", y + CELL - 4, escape(label));
        for (n, (stand, reading)) in stands.iter().zip(&panel.readings).enumerate() {
            let title = format!("{whole}; {}: {stand}", reading.name);
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
        let row = |label: &str, stands: &[Stand]| PanelClaim {
            label: label.to_owned(),
            text: format!("{label}, in full"),
            stands: stands.to_vec(),
        };
        let column = |name: &str, admissible| PanelReading { name: name.into(), admissible };
        let panel = Panel {
            title: "a < b".into(),
            readings: vec![column("as written", true), column("full & more", false)],
            claims: vec![
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
