//! The report of `anabranch infer`.

mod charts;
mod page;
mod tables;
mod text;

pub use page::{picture, picture_name, screen, summary};
pub use tables::claims_csv;
pub use text::text;

use crate::of_reproduction::Around;
use crate::value::{Report, Section};
use anabranch_reproduce::infer::{Answer, Inference};

/// The report of inferences, each a paper or a file.
pub fn report(inferences: &[Inference], around: Around) -> Report {
    let sources: Vec<&str> = inferences.iter().map(|inference| inference.source.as_str()).collect();
    Report {
        title: format!("Inferred: {}", sources.join(", ")),
        answer: inferences.iter().map(in_short).collect(),
        made_by: around.made_by,
        settings: around.settings,
        seeds: around.seeds,
        schedulers: around.schedulers,
        sections: inferences.iter().flat_map(sections).collect(),
        ..Report::default()
    }
}

/// The result in a sentence or two.
fn in_short(inference: &Inference) -> String {
    let Inference { source, extent, unknowns, .. } = inference;
    let mut found: Vec<&str> =
        unknowns.iter().filter(|unknown| unknown.fixed >= FIXED).map(|unknown| unknown.unknown.as_str()).collect();
    if found.is_empty() {
        found.push("none");
    }
    let fixed = format!("The baselines fix {} of {} unknowns", found.join(", "), unknowns.len());
    let kept = match inference.tolerances.last().filter(|_| !inference.anchors.is_empty()) {
        Some(tolerance) => format!(
            "{} of {} testbeds are kept, up to a distance of {tolerance:.2}; as written it is {}",
            extent.keep,
            extent.draws as usize * inference.tolerances.len(),
            inference.as_written.map_or_else(|| "unknown".into(), |distance| format!("{distance:.2}")),
        ),
        None => {
            return format!(
                "{source}: no baseline is published, so that nothing chooses among the draws{}.{}",
                claims(inference),
                failed(inference)
            );
        }
    };
    format!("{source}: {kept}. {fixed}{}.{}", claims(inference), failed(inference))
}

/// The runs that failed, and the draws that have no value.
fn failed(inference: &Inference) -> String {
    let Some(first) = inference.failed.first() else { return String::new() };
    let (runs, draws) = (inference.failed.len(), inference.without_value);
    format!(" Runs that failed: {runs}, of which {first}. Draws without a value, which are never kept: {draws}.")
}

/// An unknown of which less than this share of the spread is gone is as open as before.
const FIXED: f64 = 0.25;

fn claims(inference: &Inference) -> String {
    if inference.claims.is_empty() {
        return String::new();
    }
    let out = inference.count(Answer::CannotBeDrawn);
    let out = if out == 0 { String::new() } else { format!("; {out} cannot be drawn") };
    let (sizes, pairs) = (inference.sizes(), inference.pairs());
    format!("; {sizes} published sizes and {pairs} pairs of schedulers agree{out}")
}

fn sections(inference: &Inference) -> Vec<Section> {
    let id = |part: &str| {
        let name: String = inference.source.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("{name}-{part}")
    };
    let mut sections = vec![Section {
        id: id("unknowns"),
        title: format!("{}: what is open", inference.source),
        about: vec![in_short(inference), ABOUT.to_owned()],
        figures: charts::posterior(inference).into_iter().chain(charts::map(inference)).collect(),
        tables: vec![tables::unknowns(inference), tables::anchors(inference)],
        ..Section::default()
    }];
    sections[0].tables.extend(tables::readings(inference));
    sections[0].tables.extend(tables::calibration(inference));
    if !inference.claims.is_empty() {
        sections.push(Section {
            id: id("claims"),
            title: format!("{}: claims in the kept testbeds", inference.source),
            about: vec![CLAIMS.to_owned()],
            tables: vec![tables::claims(inference)],
            ..Section::default()
        });
    }
    sections
}

const ABOUT: &str = "Testbeds are drawn from the priors, the baselines run in each, and the nearest are kept. The distance is the root mean \
    square over the baselines of ln(ours / published), each in multiples of its spread over the draws. Fixed: 0 % is as open as \
    before, 100 % a single value. Moves: the greatest share of a baseline's variance that goes with the unknown alone.";
const CLAIMS: &str = "Ours is the median over the kept testbeds, with the central 95 %. A claim agrees if it holds in at least half of \
    them, and the published figure lies in that interval. It cannot be drawn if a baseline of its item was published outside the \
    central 95 % of all draws: then the model of the network or of the stack is wrong, not the choice. ~ marks a toss-up: \
    the claim holds in a quarter to three quarters of them. * marks a difference that the paper's own repetitions are too few to show.";
