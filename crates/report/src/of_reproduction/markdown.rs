//! A reproduction as Markdown: a line per paper for the README, a screen per paper for its page.

use super::words::{
    beside, class_in_full, classes, distances, evidence, headlines, ours, picture_name, shown_readings, told,
};
use anabranch_reproduce::{Class, ItemOutcome, PaperOutcome, Reproduction};
use std::fmt::Write as _;

/// The classes of claims on schedulers, which are counted first.
const COUNTED: [Class; 5] =
    [Class::InSize, Class::Direction, Class::UnderSome, Class::UnderNone, Class::BelowResolution];

/// Figures of a finding that the page shows, which may take 60,000 bytes; `reproduce` prints all.
const FIGURES: usize = 1;

/// One line a paper, one for all, and a sentence on each.
pub fn summary_markdown(reproduction: &Reproduction) -> String {
    let mut text = String::from("\n| paper | claims on schedulers |");
    COUNTED.iter().for_each(|class| text += &format!(" {class} |"));
    text += &format!(" other claims |\n|---|--:|{}--:|\n", "--:|".repeat(COUNTED.len()));
    let papers: Vec<&PaperOutcome> = reproduction.papers.iter().collect();
    for paper in &papers {
        line(&mut text, &format!("`{}` ({})", paper.key, escaped(&paper.authors)), &[*paper]);
    }
    if papers.len() > 1 {
        line(&mut text, "all", &papers);
    }
    text.push('\n');
    for paper in papers.iter().filter(|paper| !paper.in_short.is_empty()) {
        let _ = writeln!(text, "- `{}`: {}", paper.key, escaped(&paper.in_short));
    }
    text
}

fn line(text: &mut String, name: &str, papers: &[&PaperOutcome]) {
    let claims = || papers.iter().flat_map(|paper| paper.claims());
    let on_schedulers = || claims().filter(|claim| claim.contrast);
    let anchors: usize = papers.iter().map(|paper| paper.count(Class::Anchor)).sum();
    let _ = write!(text, "| {name} | {} |", on_schedulers().count());
    for class in COUNTED {
        let _ = write!(text, " {} |", on_schedulers().filter(|claim| claim.class == class).count());
    }
    let _ = writeln!(text, " {} |", claims().filter(|claim| !claim.contrast).count() + anchors);
}

/// The screens of all papers: the conclusion, anchors, headlines, the picture, findings, classes.
pub fn screens_markdown(reproduction: &Reproduction) -> String {
    reproduction.papers.iter().map(screen).collect()
}

fn screen(paper: &PaperOutcome) -> String {
    let mut text = format!("\n## {}\n\n{}: *{}*, {}.\n", paper.key, paper.authors, paper.title, paper.venue);
    for words in [&paper.in_short, &paper.conclusion].into_iter().filter(|words| !words.is_empty()) {
        let _ = write!(text, "\n{}\n", words.trim());
    }
    let _ = write!(text, "\nClasses: {}.\n", classes(paper));
    let anchored: Vec<&ItemOutcome> = paper.items.iter().filter(|item| !item.anchors.is_empty()).collect();
    if !anchored.is_empty() {
        text += "\n**Baselines**, published and ours (ours / published):\n";
        anchored.iter().for_each(|item| text += &anchors(item));
    }
    let headlines = headlines(paper);
    if !headlines.is_empty() {
        text += "\n| headline claim | published | ours | class |\n|---|---|---|---|\n";
        for (item, n) in headlines {
            let claim = &item.claims[n];
            let cells = [&claim.text, &claim.published, &ours(item, n), &class_in_full(item, claim)];
            let cells = cells.map(|cell| escaped(cell));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    let _ = write!(text, "\n![Claims of {0} by readings]({1})\n", paper.key, picture_name(paper));
    let findings: String = paper.items.iter().map(findings).collect();
    if !findings.is_empty() {
        let _ = write!(text, "\nWhy, each with the runs that show it:\n\n{findings}");
    }
    text
}

fn anchors(item: &ItemOutcome) -> String {
    let shown = shown_readings(item);
    let heads: Vec<String> = shown.iter().map(|reading| escaped(&reading.name)).collect();
    let mut text =
        format!("\n| `{}` | published | {} |\n|---|--:|{}\n", item.id, heads.join(" | "), "--:|".repeat(heads.len()));
    for (n, anchor) in item.anchors.iter().enumerate() {
        let ours: Vec<String> = shown.iter().map(|reading| beside(item, reading, n)).collect();
        let unit = if anchor.unit.is_empty() { String::new() } else { format!(" {}", anchor.unit) };
        let _ = writeln!(text, "| {} | {}{unit} | {} |", escaped(&anchor.text), anchor.published, ours.join(" | "));
    }
    let _ = write!(text, "\nDistances: {}.\n", escaped(&distances(item)));
    text
}

fn findings(item: &ItemOutcome) -> String {
    let line = |(claims, finding): (String, &anabranch_reproduce::FindingOutcome)| {
        let of = if claims.is_empty() { String::new() } else { format!(" {claims}") };
        format!("- `{}`{of}: {} ({})\n", item.id, escaped(finding.text.trim()), escaped(&evidence(finding, FIGURES)))
    };
    told(item).into_iter().map(line).collect()
}

/// A bar would end the table's cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
