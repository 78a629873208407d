//! Phrases that text and Markdown of a reproduction share.

use super::stands::{panel, svg};
use anabranch_reproduce::{Class, FindingOutcome, ItemOutcome, Judged, PaperOutcome, ReadingOutcome, Shown, decimals};

/// The file with every claim in every reading.
pub const CLAIMS_CSV: &str = "reproduction.csv";

/// The file with a paper's picture.
pub fn picture_name(paper: &PaperOutcome) -> String {
    format!("reproduction-{}.svg", paper.key)
}

/// Claims by readings, as SVG.
pub fn picture(paper: &PaperOutcome) -> String {
    svg(&paper.items.iter().map(panel).collect::<Vec<_>>())
}

/// How many claims are of each class, of those that any is of.
pub(super) fn classes(paper: &PaperOutcome) -> String {
    let count = |class: Class| (paper.count(class), class);
    let given = Class::ALL.map(count).into_iter().filter(|(count, _)| *count > 0);
    given.map(|(count, class)| format!("{count} {class}")).collect::<Vec<_>>().join(", ")
}

/// How many pairs of rows, and how many sizes, are as published under all admissible readings, in claims on schedulers.
pub(super) fn agreements(paper: &PaperOutcome) -> String {
    format!("{} pairs of rows and {} sizes as published", paper.pairs(), paper.sizes())
}

/// Ours of the `n`th claim in the nearest of the readings in which claims are judged, which is named if it is not the one as
/// written.
pub(super) fn ours(item: &ItemOutcome, n: usize) -> String {
    let as_written = item.readings.first().map(|reading| reading.name.as_str());
    match item.nearest().filter(|reading| Some(reading.name.as_str()) != as_written) {
        Some(reading) => format!("{} ({})", reading.claims[n].ours, reading.name),
        None => item.claims[n].ours.clone(),
    }
}

/// The claims for which the paper is read, with their items and places.
pub(super) fn headlines(paper: &PaperOutcome) -> Vec<(&ItemOutcome, usize)> {
    let of =
        |item: &'_ ItemOutcome| -> Vec<usize> { (0..item.claims.len()).filter(|n| item.claims[*n].headline).collect() };
    paper.items.iter().flat_map(|item| of(item).into_iter().map(move |n| (item, n))).collect()
}

/// More names than these are counted.
const NAMED: usize = 3;

/// `direction`, `under some readings: full buffers`, `under 5 of 9 readings`, `under none of 7 readings`.
pub(super) fn class_in_full(item: &ItemOutcome, claim: &Judged) -> String {
    let run = item.judged_readings().count();
    match claim.class {
        Class::UnderSome if claim.under.len() > NAMED => format!("under {} of {run} readings", claim.under.len()),
        Class::UnderSome => format!("{}: {}", claim.class, claim.under.join(", ")),
        Class::UnderNone => format!("{} of {run} readings", claim.class),
        class => class.to_string(),
    }
}

/// The readings whose anchors are shown: as written, and the admissible ones.
pub(super) fn shown_readings(item: &ItemOutcome) -> Vec<&ReadingOutcome> {
    let shown =
        |(n, reading): &(usize, &ReadingOutcome)| !reading.anchors.is_empty() && (*n == 0 || reading.admissible);
    item.readings.iter().enumerate().filter(shown).map(|(_, reading)| reading).collect()
}

/// `as written 0.31, full buffers 0.12 (admissible)`: how far each reading is from the published baselines.
pub(super) fn distances(item: &ItemOutcome) -> String {
    let one = |reading: &ReadingOutcome| {
        let post_hoc = if reading.post_hoc.is_some() { ", post hoc" } else { "" };
        let admissible = if reading.admissible { format!(" (admissible{post_hoc})") } else { String::new() };
        Some(format!("{} {:.3}{admissible}", reading.name, reading.distance?))
    };
    item.readings.iter().filter(|reading| reading.open).filter_map(one).collect::<Vec<_>>().join(", ")
}

/// `0.374 (0.89)`: ours of an anchor, and how many times the published value it is.
pub(super) fn beside(item: &ItemOutcome, reading: &ReadingOutcome, n: usize) -> String {
    let ours = reading.anchors.get(n).and_then(Option::as_ref);
    ours.map_or("—".into(), |ours| format!("{} ({:.2})", figures(ours.mean), ours.mean / item.anchors[n].published))
}

/// Three figures of a number.
fn figures(number: f64) -> String {
    format!("{number:.*}", decimals(number))
}

/// The figures on which a finding rests, each with its reading; `most` of them, the others counted.
pub(super) fn evidence(finding: &FindingOutcome, most: usize) -> String {
    let one = |shown: &Shown| {
        let reading = shown.reading.as_ref().map_or("as written".to_owned(), |reading| format!("with {reading}"));
        format!("{reading}, {}", shown.ours)
    };
    let shown = finding.shown.iter().take(most).map(one).collect::<Vec<_>>().join("; ");
    match finding.shown.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// `1, 3 to 6, 9` of ascending numbers.
fn ranges(numbers: &[usize]) -> String {
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] if range.len() > 2 => format!("{first} to {last}"),
        _ => range.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

/// The findings that runs show, with the numbers of the claims that they are for.
pub(super) fn told(item: &ItemOutcome) -> Vec<(String, &FindingOutcome)> {
    let shown = item.findings.iter().filter(|finding| finding.holds());
    let of = |finding: &FindingOutcome| {
        let named = (1..).zip(&item.claims).filter(|(_, claim)| claim.finding.as_ref() == Some(&finding.id));
        ranges(&named.map(|(n, _)| n).collect::<Vec<_>>())
    };
    shown.map(|finding| (of(finding), finding)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of_reproduction::{claims_csv, screens_markdown, summary_markdown, text};
    use anabranch_reproduce::Reproduction;
    use serde_json::{Value, json};

    fn claim(text: &str, class: &str, contrast: bool, under: &[&str], finding: Option<&str>) -> Value {
        json!({ "text": text, "named": "goodput_bps of blest", "place": "Table I", "metric": "goodput_bps", "unit": "%",
            "scale": 1.0, "published": "+6 %", "figure": 6.0, "of": null, "ours": "-1 %, n = 5", "estimate": null, "p": 0.5,
            "scatter": null, "band": null, "contrast": contrast, "headline": contrast, "verdict": "differs",
            "class": class, "under": under, "post_hoc": null, "finding": finding, "reason": null })
    }

    fn reading(name: &str, distance: f64, admissible: bool, claims: usize) -> Value {
        let estimate = json!({ "n": 5, "mean": 0.374, "ci95_low": 0.36, "ci95_high": 0.39 });
        let tested = json!({ "ours": "-1 %, n = 5", "estimate": estimate, "p": 0.5, "scatter": null, "verdict": "differs",
            "stand": "no" });
        json!({ "name": name, "why": "it is not said", "set": [], "open": true, "post_hoc": null, "anchors": [estimate],
            "distance": distance, "admissible": admissible, "claims": vec![tested; claims] })
    }

    fn reproduction() -> Reproduction {
        let shown = |holds| json!([{ "reading": "full buffers", "ours": "goodput_bps of blest 1.2", "holds": holds }]);
        let item = json!({ "id": "table1", "title": "Gains", "place": "Table I", "live": false, "scenario": ["s", ""],
            "rows": [], "digest": "", "summary": [], "curves": [], "figures": [],
            "anchors": [{ "text": "minRTT, a | b", "place": "Table I", "metric": "goodput_bps", "unit": "s", "scale": 1.0,
                "of": null, "published": 0.421 }],
            "claims": [
                claim("first", "direction", true, &["as written"], None),
                claim("second", "under some readings", true, &["full buffers"], Some("binds")),
                claim("third", "trivial or duplicate", false, &[], Some("binds")),
                claim("fourth", "under none", true, &[], Some("guess")),
            ],
            "readings": [reading("as written", 0.118, true, 4), reading("full buffers", 0.5, false, 0)],
            "findings": [
                { "id": "binds", "text": "The window binds.", "shown": shown(true) },
                { "id": "guess", "text": "It may be the weather.", "shown": shown(false) },
            ] });
        let paper = json!({ "key": "p", "title": "T", "authors": "A", "venue": "V", "in_short": "It holds.",
            "conclusion": "", "claims_digest": "", "p_limit": 0.05, "items": [item] });
        let document = json!({ "anabranch": "", "quick": true, "papers": [paper] });
        serde_json::from_value(document).expect("it is a reproduction")
    }

    #[test]
    fn a_screen_has_baselines_headlines_and_what_is_shown() {
        let markdown = screens_markdown(&reproduction());
        assert!(markdown.contains("| minRTT, a \\| b | 0.421 s | 0.374 (0.89) |"), "{markdown}");
        assert!(markdown.contains("Distances: as written 0.118 (admissible), full buffers 0.500."), "{markdown}");
        assert!(markdown.contains("| second | +6 % | -1 %, n = 5 | under some readings: full buffers |"), "{markdown}");
        assert!(markdown.contains("| fourth | +6 % | -1 %, n = 5 | under none of 1 readings |"), "{markdown}");
        assert!(markdown.contains("- `table1` 2, 3: The window binds. (with full buffers, goodput_bps of blest 1.2)"));
        assert!(!markdown.contains("weather"), "a finding that no run shows: {markdown}");
        let text = text(&reproduction(), 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.starts_with("p: T. A, V\n\nIt holds.\n"), "{text}");
        assert!(!text.contains("weather"), "{text}");
    }

    #[test]
    fn the_summary_counts_claims_on_schedulers_first() {
        let markdown = summary_markdown(&reproduction());
        // In size, direction, under some, under none, below resolution; then the trivial claim and the anchor.
        assert!(markdown.contains("| `p` (A) | 3 | 0 | 1 | 1 | 1 | 0 | 2 |\n"), "{markdown}");
        assert!(markdown.ends_with("\n- `p`: It holds.\n"), "{markdown}");
    }

    #[test]
    fn every_claim_and_anchor_has_a_line_per_reading() {
        let csv = claims_csv(&reproduction());
        // One anchor in two readings, four claims in the one in which schedulers were run.
        assert_eq!(csv.lines().count(), 1 + 2 + 4, "{csv}");
        let first = csv.lines().nth(2).unwrap();
        assert_eq!(first.split(',').count(), csv.lines().next().unwrap().split(',').count(), "{first}");
        assert!(first.starts_with("p,table1,1,first,Table I,"), "{first}");
    }

    #[test]
    fn numbers_in_a_row_are_drawn_together() {
        assert_eq!(ranges(&[1, 3, 4, 5, 6, 9, 10]), "1, 3 to 6, 9, 10");
        assert_eq!(ranges(&[7]), "7");
    }

    #[test]
    fn three_figures_of_small_and_large_numbers() {
        assert_eq!(
            [0.0374, 0.421, 1.6, 68.25, 843.7, 16822.0].map(figures),
            ["0.0374", "0.421", "1.60", "68.2", "844", "16822"]
        );
    }
}
