//! A reproduction for the terminal: a screen per paper, then its items.

use super::words::{
    agreements, beside, class_in_full, classes, distances, evidence, headlines, ours, shown_readings, told,
};
use crate::text::{plain_table, print_table};
use anabranch_reproduce::{ItemOutcome, Judged, PaperOutcome, Reproduction};
use comfy_table::{CellAlignment, ContentArrangement};
use std::fmt::Write as _;
use textwrap::{Options as WrapOptions, fill};

const QUICK: &str = "A quick look: with three seeds, few differences are significant; only runs at full length \
                     show the readings, and why some claims do not reproduce.";

/// All papers; no line is longer than `width`, as far as words allow it.
pub fn text(reproduction: &Reproduction, width: u16) -> String {
    let mut text = String::new();
    for paper in &reproduction.papers {
        text += &screen(paper, width);
        for item in &paper.items {
            let _ = writeln!(text, "\n{} · {} ({})", item.id, item.title, item.place);
            text += &claims(item, width);
            for (claims, finding) in told(item) {
                text +=
                    &paragraph(&format!("{claims}: {} ({})", finding.text, evidence(finding, usize::MAX)), "  ", width);
            }
        }
        text.push('\n');
    }
    let counts = reproduction.papers.iter().map(|paper| {
        let words = format!("{}: {}. On schedulers {}", paper.key, classes(paper), agreements(paper));
        paragraph(&words, "", width)
    });
    text += &counts.collect::<String>();
    if reproduction.quick {
        text += &paragraph(QUICK, "", width);
    }
    text
}

/// The conclusion, the baselines, the headline claims.
fn screen(paper: &PaperOutcome, width: u16) -> String {
    let title = format!("{}: {}. {}, {}", paper.key, paper.title, paper.authors, paper.venue);
    let mut text = fill(&title, usize::from(width)) + "\n";
    for words in [&paper.in_short, &paper.conclusion].into_iter().filter(|words| !words.is_empty()) {
        text += &format!("\n{}", paragraph(words.trim(), "", width));
    }
    for item in paper.items.iter().filter(|item| !item.anchors.is_empty()) {
        let _ =
            write!(text, "\n{} · baselines, published and ours (ours / published)\n{}", item.id, anchors(item, width));
        text += &paragraph(&format!("Distances: {}.", distances(item)), "  ", width);
    }
    let headlines = headlines(paper);
    if !headlines.is_empty() {
        let rows = headlines.into_iter().map(|(item, n)| {
            let claim = &item.claims[n];
            [claim.text.clone(), claim.published.clone(), ours(item, n), class_in_full(item, claim)].to_vec()
        });
        text += &format!("\n{}", table(&["headline claim", "published", "ours", "class"], rows.collect(), 0, width));
    }
    text
}

fn anchors(item: &ItemOutcome, width: u16) -> String {
    let shown = shown_readings(item);
    let heads: Vec<&str> =
        ["anchor", "published"].into_iter().chain(shown.iter().map(|reading| reading.name.as_str())).collect();
    let rows = item.anchors.iter().enumerate().map(|(n, anchor)| {
        let published = format!("{} {}", anchor.published, anchor.unit).trim_end().to_owned();
        let ours = shown.iter().map(|reading| beside(item, reading, n));
        [anchor.text.clone(), published].into_iter().chain(ours).collect()
    });
    table(&heads, rows.collect(), 0, width)
}

fn claims(item: &ItemOutcome, width: u16) -> String {
    let row = |(n, claim): (usize, &Judged)| {
        let class = class_in_full(item, claim);
        [(n + 1).to_string(), claim.text.clone(), claim.published.clone(), ours(item, n), class].to_vec()
    };
    let rows = item.claims.iter().enumerate().map(row).collect();
    table(&["", "claim", "published", "ours", "class"], rows, 1, width)
}

/// The first columns may hold numbers.
fn table(heads: &[&str], rows: Vec<Vec<String>>, numbers: usize, width: u16) -> String {
    let mut table = plain_table(heads.iter().map(|head| (*head).to_owned()).collect());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for n in 0..heads.len() {
        if let Some(column) = table.column_mut(n) {
            column.set_cell_alignment(if n < numbers { CellAlignment::Right } else { CellAlignment::Left });
        }
    }
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    print_table(&table)
}

/// The words with `indent` before them, and further lines two columns further in.
fn paragraph(words: &str, indent: &str, width: u16) -> String {
    let further = format!("{indent}  ");
    fill(words, WrapOptions::new(usize::from(width)).initial_indent(indent).subsequent_indent(&further)) + "\n"
}
