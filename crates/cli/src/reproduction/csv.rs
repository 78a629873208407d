//! Every claim in every reading, one line each.

use anabranch_reproduce::{ItemOutcome, Judged, PaperOutcome, ReadingOutcome, Reproduction, Tested};

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

fn claims(paper: &PaperOutcome, item: &ItemOutcome, reading: &ReadingOutcome) -> Vec<[String; 20]> {
    let line = |(n, (claim, tested)): (usize, (&Judged, &Tested))| {
        let estimate = tested.estimate.as_ref();
        let post_hoc = claim.post_hoc.as_ref().or(reading.post_hoc.as_ref());
        [
            paper.key.clone(),
            item.id.clone(),
            (n + 1).to_string(),
            claim.text.clone(),
            claim.place.clone(),
            claim.named.clone(),
            claim.published.clone(),
            claim.unit.clone(),
            claim.class.to_string(),
            post_hoc.cloned().unwrap_or_default(),
            reading.name.clone(),
            reading.admissible.to_string(),
            number(reading.distance),
            // An order has no number.
            estimate.map_or_else(|| tested.ours.clone(), |estimate| number(Some(estimate.mean))),
            number(estimate.and_then(|estimate| estimate.ci95_low)),
            number(estimate.and_then(|estimate| estimate.ci95_high)),
            estimate.map_or_else(String::new, |estimate| estimate.n.to_string()),
            number(tested.p),
            word(&tested.stand),
            tested.verdict.to_string(),
        ]
    };
    item.claims.iter().zip(&reading.claims).enumerate().map(line).collect()
}

fn anchors(paper: &PaperOutcome, item: &ItemOutcome, reading: &ReadingOutcome) -> Vec<[String; 20]> {
    let line = |(n, anchor): (usize, &anabranch_reproduce::Anchor)| {
        let estimate = reading.anchors.get(n).and_then(Option::as_ref);
        [
            paper.key.clone(),
            item.id.clone(),
            format!("anchor {}", n + 1),
            anchor.text.clone(),
            anchor.place.clone(),
            anchor.metric.clone(),
            anchor.published.to_string(),
            anchor.unit.clone(),
            "anchor".into(),
            reading.post_hoc.clone().unwrap_or_default(),
            reading.name.clone(),
            reading.admissible.to_string(),
            number(reading.distance),
            number(estimate.map(|estimate| estimate.mean)),
            number(estimate.and_then(|estimate| estimate.ci95_low)),
            number(estimate.and_then(|estimate| estimate.ci95_high)),
            estimate.map_or_else(String::new, |estimate| estimate.n.to_string()),
            String::new(),
            String::new(),
            String::new(),
        ]
    };
    let run = !reading.anchors.is_empty();
    item.anchors.iter().enumerate().filter(|_| run).map(line).collect()
}

/// Six figures; nothing of nothing.
fn number(value: Option<f64>) -> String {
    let rounded = |value: f64| format!("{value:.5e}").parse::<f64>().unwrap_or(value).to_string();
    value.map_or_else(String::new, rounded)
}

/// As JSON says it.
fn word(stand: &anabranch_reproduce::Stand) -> String {
    serde_json::to_value(stand).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
