//! Published values beside ours, as tables to read.

use crate::plain_table::{plain_table, print_table};
use anabranch_reproduce::{ItemOutcome, Judged, PaperOutcome, Reproduction, Verdict};
use comfy_table::{CellAlignment, ContentArrangement};
use std::fmt::Write as _;
use textwrap::{Options as WrapOptions, fill};

const QUICK: &str = "A quick look: with three seeds, few differences can be told from luck; what moves the results, and why some \
                     differ, only runs at full length tell.";

/// All claims, item by item, and how many came out; no line is longer than `width`, as far as words allow it.
pub fn text(reproduction: &Reproduction, width: u16) -> String {
    let mut text = String::new();
    for paper in &reproduction.papers {
        let title = format!("{}: {}. {}, {}", paper.key, paper.title, paper.authors, paper.venue);
        let _ = writeln!(text, "{}", fill(&title, usize::from(width)));
        for item in &paper.items {
            let _ = writeln!(text, "\n{} · {} ({})", item.id, item.title, item.place);
            text += &claims_table(&item.claims, width);
            for (claims, reason) in reasons(&item.claims) {
                text += &paragraph(&format!("{claims}: {reason}"), "  ", width);
            }
            text += &sensitivity(item, width);
        }
        text.push('\n');
    }
    let counts = reproduction.papers.iter().map(|paper| format!("{}: {}", paper.key, counted(paper)));
    text += &counts.collect::<Vec<_>>().join("\n");
    text.push('\n');
    if reproduction.quick {
        text += &paragraph(QUICK, "", width);
    }
    text
}

/// The words with `indent` before them, and further lines two columns further in.
fn paragraph(words: &str, indent: &str, width: u16) -> String {
    let further = format!("{indent}  ");
    fill(words, WrapOptions::new(usize::from(width)).initial_indent(indent).subsequent_indent(&further)) + "\n"
}

fn claims_table(claims: &[Judged], width: u16) -> String {
    let mut table = plain_table(["", "claim", "published", "ours", "verdict"].map(str::to_owned).to_vec());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for (n, alignment) in [(0, CellAlignment::Right)].into_iter().chain((1..5).map(|n| (n, CellAlignment::Left))) {
        if let Some(column) = table.column_mut(n) {
            column.set_cell_alignment(alignment);
        }
    }
    for (n, claim) in (1..).zip(claims) {
        table.add_row([&n.to_string(), &claim.text, &claim.published, &claim.ours, &claim.verdict.to_string()]);
    }
    print_table(&table)
}

/// Why claims did not come out, once each: the numbers of the claims, and the reason.
fn reasons(claims: &[Judged]) -> Vec<(String, &str)> {
    let mut told: Vec<(Vec<usize>, &str)> = Vec::new();
    for (n, reason) in (1..).zip(claims).filter_map(|(n, claim)| Some((n, claim.reason.as_deref()?))) {
        match told.iter_mut().find(|(_, known)| *known == reason) {
            Some((numbers, _)) => numbers.push(n),
            None => told.push((vec![n], reason)),
        }
    }
    told.into_iter().map(|(numbers, reason)| (ranges(&numbers), reason)).collect()
}

/// `1, 3 to 6, 9` of ascending numbers.
fn ranges(numbers: &[usize]) -> String {
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] if range.len() > 2 => format!("{first} to {last}"),
        _ => range.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

fn sensitivity(item: &ItemOutcome, width: u16) -> String {
    let mut text = String::new();
    for assumption in &item.sensitivity {
        text += &paragraph(&format!("With {} ({}):", assumption.name, assumption.set.join(", ")), "  ", width);
        for (n, (claim, (ours, verdict))) in (1..).zip(item.claims.iter().zip(&assumption.claims)) {
            text += &paragraph(&format!("{n}: {}: {ours}: {verdict}", claim.text), "    ", width);
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
            text += "| | claim | published | band | ours | verdict |\n|--:|---|---|---|---|---|\n";
            for (n, claim) in (1..).zip(&item.claims) {
                let band = claim.band.map_or(String::new(), |(low, high)| format!("{low} to {high} {}", claim.unit));
                let cells = [&claim.text, &claim.published, &band, &claim.ours].map(|cell| escaped(cell));
                let _ = writeln!(text, "| {n} | {} | {} |", cells.join(" | "), claim.verdict);
            }
            let reasons = reasons(&item.claims);
            let lines = reasons.iter().map(|(claims, reason)| format!("\n- {claims}: {}", escaped(reason.trim())));
            text += &lines.collect::<String>();
            text += if reasons.is_empty() { "" } else { "\n" };
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
        "\nWhat moves it:\n\n| | claim | as above | {} |\n|--:|---|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for (n, claim) in (1..).zip(&item.claims) {
        let others = item.sensitivity.iter().filter_map(|s| s.claims.get(n - 1));
        let cells: Vec<String> = others.map(|(ours, verdict)| format!("{} ({verdict})", escaped(ours))).collect();
        let _ = writeln!(text, "| {n} | {} | {} | {} |", escaped(&claim.text), escaped(&claim.ours), cells.join(" | "));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str, reason: Option<&str>) -> Judged {
        Judged {
            text: text.into(),
            place: String::new(),
            metric: "goodput_bps".into(),
            unit: "%".into(),
            scale: 1.0,
            published: "+6 %".into(),
            figure: None,
            of: None,
            ours: "-1 %".into(),
            estimate: None,
            p: None,
            band: None,
            verdict: if reason.is_some() { Verdict::Differs } else { Verdict::Reproduces },
            reason: reason.map(str::to_owned),
        }
    }

    fn reproduction() -> Reproduction {
        let window = Some("the window does not bind, so that nothing waits: what would be late is not late");
        let claims =
            vec![claim("first", window), claim("second", None), claim("third", window), claim("fourth", window)];
        let claims = claims.into_iter().chain([claim("fifth", Some("a | b")), claim("sixth", window)]).collect();
        let item = ItemOutcome {
            id: "table1".into(),
            title: "Gains".into(),
            place: "Table I".into(),
            live: false,
            scenario: Default::default(),
            rows: Vec::new(),
            digest: String::new(),
            summary: Vec::new(),
            curves: Vec::new(),
            figures: Vec::new(),
            claims,
            sensitivity: Vec::new(),
        };
        let named = |name: &str| name.to_owned();
        let (key, title, authors, venue) = (named("p"), named("T"), named("A"), named("V"));
        let paper = PaperOutcome { key, title, authors, venue, items: vec![item] };
        Reproduction { anabranch: String::new(), quick: true, papers: vec![paper] }
    }

    #[test]
    fn reasons_name_the_claims_that_they_are_for_and_fit_the_terminal() {
        let text = text(&reproduction(), 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let reason = "  1, 3, 4, 6: the window does not bind, so that nothing\n    waits: what would be late is not late\n  5: a | b\n";
        assert!(text.contains(reason), "{text}");
        assert!(text.lines().any(|line| line.trim_start().starts_with("4  fourth")), "{text}");
        let markdown = claims_markdown(&reproduction());
        assert!(markdown.contains("\n| 4 | fourth | +6 % |  | -1 % | differs |\n"), "{markdown}");
        assert!(markdown.contains("late is not late\n- 5: a \\| b\n"), "{markdown}");
    }

    #[test]
    fn numbers_in_a_row_are_drawn_together() {
        assert_eq!(ranges(&[1, 3, 4, 5, 6, 9, 10]), "1, 3 to 6, 9, 10");
        assert_eq!(ranges(&[7]), "7");
    }
}
