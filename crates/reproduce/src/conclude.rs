//! An item and its results → what came out of it.

use crate::curves::mean_curves;
use crate::judge::judge;
use crate::outcome::{ItemOutcome, Sensitive};
use crate::paper::{Item, Sensitivity};
use crate::plan::Part;
use anabranch_run::Results;

/// Judges an item by what its parts gave, the main one first. Reasons that were found at full length are left out of a
/// `quick` look, whose numbers are others.
pub fn conclude(item: &Item, scenario: &str, parts: &[Part<'_>], results: &[Results], quick: bool) -> ItemOutcome {
    let main = &results[0];
    let mut claims = item.claims.clone();
    if quick {
        claims.iter_mut().for_each(|claim| claim.reason = None);
    }
    let mut rows: Vec<String> = Vec::new();
    for run in &main.runs {
        if !rows.contains(&run.scheduler) {
            rows.push(run.scheduler.clone());
        }
    }
    let assumptions = parts.iter().zip(results).filter_map(|(part, results)| Some((part.sensitivity?, results)));
    let sensitive = |(sensitivity, results): (&Sensitivity, &Results)| Sensitive {
        name: sensitivity.name.clone(),
        why: sensitivity.why.clone(),
        set: sensitivity.changes(),
        claims: judge(&claims, &results.runs, &item.rows, &sensitivity.rows)
            .into_iter()
            .map(|judged| (judged.ours, judged.verdict))
            .collect(),
    };
    ItemOutcome {
        id: item.id.clone(),
        title: item.title.clone(),
        place: item.place.clone(),
        live: item.live,
        scenario: (item.scenario.clone(), scenario.to_owned()),
        rows,
        digest: main.digest.clone(),
        curves: mean_curves(&item.figures, &main.runs),
        summary: main.summary.clone(),
        figures: item.figures.clone(),
        claims: judge(&claims, &main.runs, &item.rows, &[]),
        sensitivity: assumptions.map(sensitive).collect(),
    }
}
