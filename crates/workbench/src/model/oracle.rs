//! The best possible result in a scenario.

use super::Question;
use crate::failure::Failure;
use crate::load::{Loaded, set_overrides};
use anabranch_metrics::{Better, MetricInfo, Scale};
use anabranch_report::text::{plain_table, print_table};
use anabranch_run::{Bound, Options, Plan, bounds};

/// The one model that takes a scenario.
pub const NAME: &str = "oracle";
/// One line.
pub const ABOUT: &str = "the best that any scheduler with any congestion control could reach in a scenario";

/// Where it comes from.
pub const SOURCE: &str = "what `oracle_ratio` is measured by";

/// The bounds of a scenario's traffic, over all paths and over each alone.
pub fn bounds_of(question: &Question<'_>) -> Result<Vec<Bound>, Failure> {
    if let Some(sweep) = question.sweep.first() {
        let message = format!("`oracle` takes no --sweep, as in `{sweep}`");
        let help = Some("a scenario has a [sweep] of its own".into());
        return Err(Failure::unusable("anabranch::cli::no_sweep", message, help));
    }
    let Some(scenario) = question.scenario else {
        let help = Some("anabranch model oracle SCENARIO".into());
        return Err(Failure::unusable("anabranch::cli::no_scenario", "`oracle` needs a scenario", help));
    };
    let loaded = Loaded::read(scenario, set_overrides(question.set))?;
    bounds(&Plan::new(&loaded.variants(), &Options::default()))
        .map_err(|error| Failure::failed("anabranch::run::failed", error.to_string()))
}

/// The keys of the sweep's cells.
fn keys(bounds: &[Bound]) -> Vec<&str> {
    bounds.first().map(|bound| bound.cell.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// The bounds as a table.
pub fn table(bounds: &[Bound]) -> String {
    let mut header = vec!["paths".to_owned()];
    header.extend(keys(bounds).into_iter().map(str::to_owned));
    header.push("best possible".into());
    let mut table = plain_table(header);
    for bound in bounds {
        let Scale { unit, per, .. } = MetricInfo::of_run(bound.metric).map_or(Scale::PLAIN, |info| info.scale);
        let best = match bound.value {
            None => "nothing can arrive".into(),
            Some(value) => format!("{:.3} {unit}", value / per),
        };
        table.add_row([bound.paths.clone()].into_iter().chain(bound.cell.values().cloned()).chain([best]));
    }
    let metric = bounds.first().and_then(|bound| MetricInfo::of_run(bound.metric));
    let what = metric.map_or(String::new(), |info| match info.better {
        Some(Better::Lower) => format!("least {}", info.label),
        _ => format!("best {}", info.label),
    });
    format!("{NAME}: {ABOUT}\n{what}; {SOURCE}\n\n{}", print_table(&table))
}

/// The bounds as CSV.
pub fn csv(bounds: &[Bound]) -> String {
    let keys = keys(bounds);
    let mut records = vec![vec!["paths".to_owned()]];
    records[0].extend(keys.iter().map(|key| format!("cell.{key}")));
    records[0].extend(["metric", "value"].map(str::to_owned));
    records.extend(bounds.iter().map(|bound| {
        let mut record = vec![bound.paths.clone()];
        record.extend(bound.cell.values().cloned());
        record.extend([bound.metric.to_owned(), bound.value.map(|value| value.to_string()).unwrap_or_default()]);
        record
    }));
    anabranch_report::csv_lines(&records)
}
