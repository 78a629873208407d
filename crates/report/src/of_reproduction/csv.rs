//! Every claim in every reading, one line each.

use anabranch_reproduce::{Anchor, Class, ItemOutcome, Judged, PaperOutcome, ReadingOutcome, Reproduction, Tested};
use anabranch_run::Estimate;

/// The columns.
const HEAD: [&str; 20] = [
    "paper",
    "item",
    "claim",
    "text",
    "where",
    "named",
    "published",
    "unit",
    "class",
    "post_hoc",
    "reading",
    "admissible",
    "distance",
    "ours",
    "ci95_low",
    "ci95_high",
    "n",
    "p",
    "stand",
    "verdict",
];

/// Claims, and anchors with the class `anchor`.
pub fn claims_csv(reproduction: &Reproduction) -> String {
    let mut lines = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    // Into memory: neither can fail, and the text is UTF-8.
    let _ = lines.write_record(HEAD);
    for paper in &reproduction.papers {
        for item in &paper.items {
            for reading in &item.readings {
                let records = anchors(paper, item, reading).into_iter().chain(claims(paper, item, reading));
                records.for_each(|record| drop(lines.write_record(record)));
            }
        }
    }
    String::from_utf8(lines.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// The fields of a claim or an anchor itself.
struct Own<'a> {
    /// `3`, `anchor 1`.
    number: String,
    text: &'a str,
    place: &'a str,
    named: &'a str,
    published: String,
    unit: &'a str,
    class: String,
    post_hoc: Option<&'a String>,
    ours: String,
    estimate: Option<&'a Estimate>,
    p: Option<f64>,
    stand: String,
    verdict: String,
}

fn claims(paper: &PaperOutcome, item: &ItemOutcome, reading: &ReadingOutcome) -> Vec<[String; 20]> {
    let line = |(n, (claim, tested)): (usize, (&Judged, &Tested))| {
        let own = Own {
            number: (n + 1).to_string(),
            text: &claim.text,
            place: &claim.place,
            named: &claim.named,
            published: claim.published.clone(),
            unit: &claim.unit,
            class: claim.class.to_string(),
            post_hoc: claim.post_hoc.as_ref(),
            ours: tested.ours.clone(),
            estimate: tested.estimate.as_ref(),
            p: tested.p,
            stand: tested.stand.to_string(),
            verdict: tested.verdict.to_string(),
        };
        record(paper, item, reading, own)
    };
    item.claims.iter().zip(&reading.claims).enumerate().map(line).collect()
}

fn anchors(paper: &PaperOutcome, item: &ItemOutcome, reading: &ReadingOutcome) -> Vec<[String; 20]> {
    let line = |(n, (anchor, estimate)): (usize, (&Anchor, &Option<Estimate>))| {
        let own = Own {
            number: format!("anchor {}", n + 1),
            text: &anchor.text,
            place: &anchor.place,
            named: &anchor.metric,
            published: anchor.published.to_string(),
            unit: &anchor.unit,
            class: Class::Anchor.to_string(),
            post_hoc: None,
            ours: String::new(),
            estimate: estimate.as_ref(),
            p: None,
            stand: String::new(),
            verdict: String::new(),
        };
        record(paper, item, reading, own)
    };
    // Empty where the baselines were not run.
    item.anchors.iter().zip(&reading.anchors).enumerate().map(line).collect()
}

/// In the order of [`HEAD`].
fn record(paper: &PaperOutcome, item: &ItemOutcome, reading: &ReadingOutcome, own: Own<'_>) -> [String; 20] {
    let estimate = own.estimate;
    [
        paper.key.clone(),
        item.id.clone(),
        own.number,
        own.text.into(),
        own.place.into(),
        own.named.into(),
        own.published,
        own.unit.into(),
        own.class,
        own.post_hoc.or(reading.post_hoc.as_ref()).cloned().unwrap_or_default(),
        reading.name.clone(),
        reading.admissible.to_string(),
        number(reading.distance),
        // An order has no number.
        estimate.map_or(own.ours, |estimate| number(Some(estimate.mean))),
        number(estimate.and_then(|estimate| estimate.ci95_low)),
        number(estimate.and_then(|estimate| estimate.ci95_high)),
        estimate.map_or_else(String::new, |estimate| estimate.n.to_string()),
        number(own.p),
        own.stand,
        own.verdict,
    ]
}

/// Six figures; nothing of nothing.
fn number(value: Option<f64>) -> String {
    let rounded = |value: f64| format!("{value:.5e}").parse::<f64>().unwrap_or(value).to_string();
    value.map_or_else(String::new, rounded)
}
