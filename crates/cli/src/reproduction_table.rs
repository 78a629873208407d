//! Published values beside ours, as tables to read.

use crate::plain_table::{plain_table, print_table};
use anabranch_reproduce::{ItemOutcome, Judged, PaperOutcome, Reproduction, Verdict};
use comfy_table::{CellAlignment, ContentArrangement};
use std::fmt::Write as _;

/// Widest line on a terminal.
const WIDTH: u16 = 118;

/// All claims, item by item, and how many came out.
pub fn text(reproduction: &Reproduction) -> String {
    let mut text = String::new();
    for paper in &reproduction.papers {
        let _ = writeln!(text, "{}: {}. {}, {}", paper.key, paper.title, paper.authors, paper.venue);
        for item in &paper.items {
            let _ = writeln!(text, "\n{} · {} ({})", item.id, item.title, item.place);
            text += &claims_table(&item.claims);
            text += &reasons(&item.claims);
            text += &sensitivity(item);
        }
        text.push('\n');
    }
    let counts = reproduction.papers.iter().map(|paper| format!("{}: {}", paper.key, counted(paper)));
    text += &counts.collect::<Vec<_>>().join("\n");
    text.push('\n');
    if reproduction.quick {
        text += "A quick look: with three seeds, few differences can be told from luck; what moves the results, and why some differ, \
                 only runs at full length tell.\n";
    }
    text
}

fn claims_table(claims: &[Judged]) -> String {
    let mut table = plain_table(["claim", "published", "ours", "verdict"].map(str::to_owned).to_vec());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    (0..4).filter_map(|n| Some(n).filter(|n| *n != 0)).for_each(|n| {
        if let Some(column) = table.column_mut(n) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    });
    for claim in claims {
        table.add_row([&claim.text, &claim.published, &claim.ours, &claim.verdict.to_string()]);
    }
    print_table(&table)
}

/// Why claims did not come out, once each.
fn reasons(claims: &[Judged]) -> String {
    let mut told: Vec<&String> = Vec::new();
    for reason in claims.iter().filter_map(|claim| claim.reason.as_ref()) {
        if !told.contains(&reason) {
            told.push(reason);
        }
    }
    told.into_iter().map(|reason| format!("  {reason}\n")).collect()
}

fn sensitivity(item: &ItemOutcome) -> String {
    let mut text = String::new();
    for assumption in &item.sensitivity {
        let _ = writeln!(text, "  With {} ({}):", assumption.name, assumption.set.join(", "));
        for (claim, (ours, verdict)) in item.claims.iter().zip(&assumption.claims) {
            let _ = writeln!(text, "    {}: {ours}: {verdict}", claim.text);
        }
    }
    text
}

/// `12 reproduced, 3 direction only, 1 differs`.
fn counted(paper: &PaperOutcome) -> String {
    let count = |verdict| paper.claims().filter(|claim| claim.verdict == verdict).count();
    let parts = Verdict::ALL.iter().map(|verdict| (count(*verdict), verdict)).filter(|(n, _)| *n > 0);
    parts.map(|(n, verdict)| format!("{n} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// Markdown: one line a paper, then a sentence on each claim that differs.
pub fn summary_markdown(reproduction: &Reproduction) -> String {
    let given =
        |verdict: &Verdict| reproduction.papers.iter().flat_map(PaperOutcome::claims).any(|c| c.verdict == *verdict);
    let shown: Vec<Verdict> = Verdict::ALL.into_iter().filter(|v| *v != Verdict::NotRun || given(v)).collect();
    let mut text = String::from("\n| paper | claims |");
    shown.iter().for_each(|verdict| text += &format!(" {verdict} |"));
    text += &format!("\n|---|--:|{}\n", "--:|".repeat(shown.len()));
    for paper in &reproduction.papers {
        let _ = write!(text, "| `{}` {} | {} |", paper.key, venue(paper), paper.claims().count());
        shown.iter().for_each(|verdict| text += &format!(" {} |", tally(paper, *verdict)));
        text.push('\n');
    }
    text +=
        "\nIn brackets: claims whose sign alone was asked for, because the paper does not wholly state the set-up.\n";
    let differing: Vec<String> = reproduction.papers.iter().flat_map(differences).collect();
    if !differing.is_empty() {
        text += "\n<details>\n<summary>What differs, and why as far as we found out</summary>\n\n";
        text += &differing.concat();
        text += "\n</details>\n";
    }
    text
}

/// `42 (31)`: how many claims, and how many of them were asked for their direction alone.
fn tally(paper: &PaperOutcome, verdict: Verdict) -> String {
    let claims = || paper.claims().filter(|claim| claim.verdict == verdict);
    let (all, signs) = (claims().count(), claims().filter(|claim| claim.asks_for_direction_alone()).count());
    if verdict == Verdict::Reproduces && signs > 0 { format!("{all} ({signs})") } else { all.to_string() }
}

/// One line for each reason why claims of a paper differ: whose items they are, how many, and the reason.
fn differences(paper: &PaperOutcome) -> Vec<String> {
    let mut reasons: Vec<(Option<&str>, Vec<&str>, usize)> = Vec::new();
    for item in &paper.items {
        for claim in item.claims.iter().filter(|claim| claim.verdict == Verdict::Differs) {
            let reason = claim.reason.as_deref();
            let place = reasons.iter().position(|(known, ..)| *known == reason).unwrap_or(reasons.len());
            if place == reasons.len() {
                reasons.push((reason, Vec::new(), 0));
            }
            let (_, items, count) = &mut reasons[place];
            *count += 1;
            if !items.contains(&item.id.as_str()) {
                items.push(&item.id);
            }
        }
    }
    let line = |(reason, items, count): (Option<&str>, Vec<&str>, usize)| {
        let claims = if count == 1 { "claim" } else { "claims" };
        let reason = escaped(reason.unwrap_or("The reason is not found."));
        let items = items.join("`, `");
        format!("- `{}` (`{items}`, {count} {claims}): {reason}\n", paper.key)
    };
    reasons.into_iter().map(line).collect()
}

fn venue(paper: &PaperOutcome) -> String {
    format!("({})", escaped(&paper.authors))
}

/// Markdown: every claim of every item, with the sensitivity tables.
pub fn claims_markdown(reproduction: &Reproduction) -> String {
    let mut text = String::new();
    for paper in &reproduction.papers {
        let _ = writeln!(
            text,
            "\n## {}\n\n{}: *{}*, {}. {}.",
            paper.key,
            paper.authors,
            paper.title,
            paper.venue,
            counted(paper)
        );
        for item in &paper.items {
            let _ = writeln!(text, "\n### {} `{}`\n\n{}.\n", item.place, item.id, item.title);
            text += "| claim | published | band | ours | verdict |\n|---|---|---|---|---|\n";
            for claim in &item.claims {
                let band = claim.band.map_or(String::new(), |(low, high)| format!("{low} to {high} {}", claim.unit));
                let cells = [&claim.text, &claim.published, &band, &claim.ours].map(|cell| escaped(cell));
                let _ = writeln!(text, "| {} | {} |", cells.join(" | "), claim.verdict);
            }
            let notes = reasons(&item.claims);
            if !notes.is_empty() {
                text.push('\n');
                notes.lines().for_each(|line| {
                    let _ = writeln!(text, "- {}", escaped(line.trim()));
                });
            }
            text += &sensitivity_markdown(item);
        }
    }
    text
}

/// One column an assumption: which of them moves what.
fn sensitivity_markdown(item: &ItemOutcome) -> String {
    if item.sensitivity.is_empty() {
        return String::new();
    }
    let names: Vec<String> = item.sensitivity.iter().map(|s| escaped(&s.name)).collect();
    let mut text = format!(
        "\nWhat moves it:\n\n| claim | as above | {} |\n|---|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for (n, claim) in item.claims.iter().enumerate() {
        let others = item.sensitivity.iter().filter_map(|s| s.claims.get(n));
        let cells: Vec<String> = others.map(|(ours, verdict)| format!("{} ({verdict})", escaped(ours))).collect();
        let _ = writeln!(text, "| {} | {} | {} |", escaped(&claim.text), escaped(&claim.ours), cells.join(" | "));
    }
    text.push('\n');
    for assumption in &item.sensitivity {
        let _ =
            writeln!(text, "- *{}*: {} (`{}`)", assumption.name, escaped(&assumption.why), assumption.set.join("`, `"));
    }
    text
}

/// A bar would end the table's cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
