//! The tables of an inference.

use crate::table::{Column, Table, csv_lines};
use anabranch_reproduce::decimals;
use anabranch_reproduce::infer::{Inference, Posterior, Spread, Tally};

/// The unknowns, the most fixed first.
pub fn by_fixed(inference: &Inference) -> Vec<&Posterior> {
    let mut all: Vec<&Posterior> = inference.unknowns.iter().collect();
    all.sort_by(|a, b| b.fixed.total_cmp(&a.fixed));
    all
}

/// The table of the unknowns.
pub fn unknowns(inference: &Inference) -> Table {
    let row = |unknown: &&Posterior| {
        vec![
            name(unknown),
            prior(unknown),
            kept(unknown),
            format!("{:.0} %", unknown.fixed * 100.0),
            format!("{:.0} %", unknown.moves * 100.0),
            match &unknown.widened {
                Some(remark) => format!("{} Widened later: {remark}", unknown.why),
                None => unknown.why.clone(),
            },
        ]
    };
    let heads =
        [("unknown", false), ("before", false), ("kept", false), ("fixed", true), ("moves", true), ("why", false)];
    table("unknowns", "What is open", &heads, by_fixed(inference).iter().map(row).collect())
}

/// The name of an unknown, with a mark if its prior was widened later.
pub fn name(unknown: &Posterior) -> String {
    unknown.unknown.clone() + if unknown.widened.is_some() { " (widened)" } else { "" }
}

/// The values of an unknown before draws are kept.
pub fn prior(unknown: &Posterior) -> String {
    match (&unknown.values[..], unknown.is_list) {
        ([first, .., last], false) => format!("{first} to {last}"),
        (values, _) => values.join(", "),
    }
}

/// Shares of the values of a list; median and interval of a range.
pub fn kept(unknown: &Posterior) -> String {
    if !unknown.is_list {
        return format!("{} [{}, {}]", unknown.median, unknown.ci95.0, unknown.ci95.1);
    }
    let share = |(value, share): (&String, &f64)| format!("{value} {:.0} %", share * 100.0);
    unknown.values.iter().zip(&unknown.shares).map(share).collect::<Vec<_>>().join(", ")
}

/// The published baselines beside the draws.
pub fn anchors(inference: &Inference) -> Table {
    let rows = inference.anchors.iter().map(|anchor| {
        vec![
            anchor.item.clone(),
            anchor.text.clone(),
            with_unit(format!("{}", anchor.published), &anchor.unit),
            spread(anchor.all, ""),
            spread(anchor.kept, ""),
            if anchor.outside { "cannot be drawn".into() } else { String::new() },
        ]
    });
    let heads =
        [("item", false), ("baseline", false), ("published", true), ("all draws", true), ("kept", true), ("", false)];
    table("baselines", "The published baselines, and ours", &heads, rows.collect())
}

/// Named readings as points among the draws.
pub fn readings(inference: &Inference) -> Option<Table> {
    let rows = inference.readings.iter().map(|reading| {
        let distance = reading.distance.map_or_else(|| "no value".into(), |distance| format!("{distance:.2}"));
        vec![reading.item.clone(), reading.name.clone(), distance, reading.nearer.to_string()]
    });
    let heads = [("item", false), ("reading", false), ("distance", true), ("draws that are nearer", true)];
    (!inference.readings.is_empty()).then(|| {
        let note = "Distances over the baselines of the item alone.".to_owned();
        Table { note, ..table("readings", "Named readings", &heads, rows.collect()) }
    })
}

/// Whether the intervals hold what they promise.
pub fn calibration(inference: &Inference) -> Option<Table> {
    let calibration = inference.calibration.as_ref()?;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let all = vec!["all".to_owned(), percent(calibration.coverage), String::new()];
    let rows = calibration.by_unknown.iter().map(|unknown| {
        vec![unknown.unknown.clone(), percent(unknown.coverage), if unknown.moves { "yes" } else { "no" }.to_owned()]
    });
    let title = format!("Intervals that hold the truth, of {} draws taken as published", calibration.draws);
    let heads = [("unknown", false), ("coverage of 95 % intervals", true), ("moves a baseline", false)];
    Some(table("calibration", &title, &heads, std::iter::once(all).chain(rows).collect()))
}

/// The claims over the kept testbeds.
pub fn claims(inference: &Inference) -> Table {
    let rows = inference.claims.iter().map(|claim| claim_row(claim).to_vec());
    let heads =
        [("item", false), ("claim", false), ("published", true), ("ours", true), ("holds in", true), ("answer", false)];
    table("claims", "Claims", &heads, rows.collect())
}

/// Item, claim, published, ours, holds in, answer.
pub fn claim_row(claim: &Tally) -> [String; 6] {
    let few = if claim.too_few { " *" } else { "" };
    let toss_up = if claim.is_toss_up() { " ~" } else { "" };
    [
        claim.item.clone(),
        claim.claim.clone(),
        claim.published.clone(),
        spread(claim.ours, &claim.unit),
        format!("{} of {}", claim.holds, claim.of),
        format!("{}{toss_up}{few}", claim.answer.text()),
    ]
}

/// Every claim of every source, as CSV.
pub fn claims_csv(inferences: &[Inference]) -> String {
    let heads = [
        "source",
        "item",
        "claim",
        "place",
        "published",
        "figure",
        "unit",
        "median",
        "low",
        "high",
        "holds",
        "of",
        "answer",
        "too_few",
        "contrast",
        "reason",
    ];
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let row = |source: &str, claim: &Tally| {
        let ours = |end: fn(Spread) -> f64| number(claim.ours.map(end));
        let (too_few, contrast) = (claim.too_few.to_string(), claim.contrast.to_string());
        let words = [source, &claim.item, &claim.claim, &claim.place, &claim.published].map(str::to_owned);
        let figures = [number(claim.figure), claim.unit.clone(), ours(|s| s.median), ours(|s| s.low), ours(|s| s.high)];
        let counts = [claim.holds.to_string(), claim.of.to_string(), claim.answer.text().to_owned(), too_few, contrast];
        [&words[..], &figures, &counts, std::slice::from_ref(&claim.reason)].concat()
    };
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for inference in inferences {
        lines.extend(inference.claims.iter().map(|claim| row(&inference.source, claim)));
    }
    csv_lines(&lines)
}

/// `12.3 [10.1, 14.5] ms`
pub(super) fn spread(spread: Option<Spread>, unit: &str) -> String {
    let Some(Spread { median, low, high }) = spread else { return "—".into() };
    let places = decimals(median.abs());
    with_unit(format!("{median:.places$} [{low:.places$}, {high:.places$}]"), unit)
}

pub(super) fn with_unit(text: String, unit: &str) -> String {
    format!("{text} {unit}").trim_end().to_owned()
}

fn table(id: &str, title: &str, heads: &[(&str, bool)], rows: Vec<Vec<String>>) -> Table {
    let head = |(head, numeric): &(&str, bool)| Column { head: (*head).to_owned(), numeric: *numeric };
    Table {
        id: id.to_owned(),
        title: title.to_owned(),
        columns: heads.iter().map(head).collect(),
        rows,
        ..Table::default()
    }
}
