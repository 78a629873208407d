//! What `anabranch reproduce` shows: text, Markdown, CSV, pictures.

mod csv;
mod markdown;
mod text;

pub use self::csv::claims_csv;
pub use markdown::{screens_markdown, summary_markdown};
pub use text::text;

use anabranch_report::of_reproduction::stands::{panel, svg};
use anabranch_reproduce::{Class, FindingOutcome, ItemOutcome, Judged, PaperOutcome, ReadingOutcome};

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
fn classes(paper: &PaperOutcome) -> String {
    let count = |class: Class| (paper.count(class), class);
    let given = Class::ALL.map(count).into_iter().filter(|(count, _)| *count > 0);
    given.map(|(count, class)| format!("{count} {class}")).collect::<Vec<_>>().join(", ")
}

/// The claims for which the paper is read, with their items.
fn headlines(paper: &PaperOutcome) -> Vec<(&ItemOutcome, &Judged)> {
    let of =
        |item: &'_ ItemOutcome| -> Vec<usize> { (0..item.claims.len()).filter(|n| item.claims[*n].headline).collect() };
    paper.items.iter().flat_map(|item| of(item).into_iter().map(move |n| (item, &item.claims[n]))).collect()
}

/// `direction`, `under some readings: full buffers`, `under none of 7 readings`.
fn class_in_full(item: &ItemOutcome, claim: &Judged) -> String {
    let run = item.readings.iter().filter(|reading| !reading.claims.is_empty()).count();
    match claim.class {
        Class::UnderSome => format!("{}: {}", claim.class, claim.under.join(", ")),
        Class::UnderNone => format!("{} of {run} readings", claim.class),
        class => class.to_string(),
    }
}

/// The readings whose anchors are shown: as written, and the admissible ones.
fn shown_readings(item: &ItemOutcome) -> Vec<&ReadingOutcome> {
    let shown =
        |(n, reading): &(usize, &ReadingOutcome)| !reading.anchors.is_empty() && (*n == 0 || reading.admissible);
    item.readings.iter().enumerate().filter(shown).map(|(_, reading)| reading).collect()
}

/// `as written 0.31, full buffers 0.12 (admissible)`: how far each reading is from the published baselines.
fn distances(item: &ItemOutcome) -> String {
    let one = |reading: &ReadingOutcome| {
        let post_hoc = if reading.post_hoc.is_some() { ", post hoc" } else { "" };
        let admissible = if reading.admissible { format!(" (admissible{post_hoc})") } else { String::new() };
        Some(format!("{} {:.3}{admissible}", reading.name, reading.distance?))
    };
    item.readings.iter().filter(|reading| reading.open).filter_map(one).collect::<Vec<_>>().join(", ")
}

/// `0.374 (0.89)`: ours of an anchor, and how many times the published value it is.
fn beside(item: &ItemOutcome, reading: &ReadingOutcome, n: usize) -> String {
    let ours = reading.anchors.get(n).and_then(Option::as_ref);
    ours.map_or("—".into(), |ours| format!("{} ({:.2})", figures(ours.mean), ours.mean / item.anchors[n].published))
}

/// Three figures of a number.
fn figures(number: f64) -> String {
    let whole = number.abs().max(1e-9).log10().floor() as i32 + 1;
    format!("{number:.*}", usize::try_from(3 - whole).unwrap_or(0))
}

/// The figures on which a finding rests, each with its reading.
fn evidence(finding: &FindingOutcome) -> String {
    let one = |shown: &anabranch_reproduce::Shown| {
        let reading = shown.reading.as_ref().map_or("as written".to_owned(), |reading| format!("with {reading}"));
        format!("{reading}, {}", shown.ours)
    };
    finding.shown.iter().map(one).collect::<Vec<_>>().join("; ")
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
fn told(item: &ItemOutcome) -> Vec<(String, &FindingOutcome)> {
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
