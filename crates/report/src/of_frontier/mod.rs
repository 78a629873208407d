//! The answers of `anabranch compare`: text, Markdown, CSV, a picture.

mod cells;
mod choice;
mod first_path;
mod markdown;
mod picture;
mod room;
mod table;

pub use cells::{cells, csv};
pub use first_path::first_path;
pub use markdown::standings;
pub use picture::picture;
pub use room::{room, room_csv};
pub use table::text;

use anabranch_studies::frontier::{Comparison, Frontier, Standing};
use indexmap::IndexSet;

/// A value as per cent with one digit.
fn percent(value: f64) -> String {
    format!("{:.1}", value * 100.0)
}

/// An interval as per cent.
fn interval(interval: Option<(f64, f64)>) -> String {
    interval.map(|(low, high)| format!("{:.1}–{:.1}", low * 100.0, high * 100.0)).unwrap_or_default()
}

/// The first names of a list, and how many more there are.
fn some(names: &[String], count: usize) -> String {
    let more = names.len().saturating_sub(count);
    let shown = names[..names.len().min(count)].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Schedulers of a portfolio, each with the loss of the best of those up to it.
fn members(team: &[(String, f64)]) -> String {
    team.iter().map(|(name, lack)| format!("{name} ({})", percent(*lack))).collect::<Vec<_>>().join(", ")
}

/// A place among the schedulers: the best path alone has none, nor does what knows the true rates.
fn placed(standing: &Standing, place: String) -> String {
    if standing.is_placed() { place } else { String::new() }
}

/// Standings by their loss against the best of each cell, the best first.
fn by_loss(frontier: &Frontier) -> Vec<&Standing> {
    let mut order: Vec<&Standing> = frontier.standings.iter().collect();
    order.sort_by(|a, b| a.loss.mean.total_cmp(&b.loss.mean));
    order
}

/// How much was run.
fn extent(frontier: &Frontier, comparison: &Comparison) -> String {
    let schedulers = frontier.cells.first().map_or(0, |cell| cell.schedulers().count());
    let seeds = frontier.standings.iter().map(|s| s.ratio.n).max().unwrap_or(0);
    let sets: IndexSet<&str> = frontier.cells.iter().map(|cell| cell.paths.as_str()).collect();
    let missing = match comparison.missing {
        0 => String::new(),
        missing => format!("; INCOMPLETE: {missing} cells are missing"),
    };
    let (cells, sets) = (frontier.cells.len(), sets.len());
    format!(
        "{}: {schedulers} schedulers, {cells} cells of {sets} path sets, {seeds} seeds{missing}",
        frontier.congestion
    )
}
