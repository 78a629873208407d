//! Recorded capacity that is too short for what the runs take of it.

use crate::diagnosis::{Diagnosis, DiagnosisKind, finding, listed};
use crate::job::Choice;
use crate::plan::CellPlan;
use crate::runs::RunRow;
use anabranch_metrics::names;
use anabranch_network::{BottleneckSpec, CapacitySpec, Topology};
use anabranch_scenario::{Scenario, TraceStart};
use anabranch_units::Duration;

/// The traces of one path or link.
struct Recorded<'a> {
    name: &'a str,
    /// Period of the shortest trace.
    period: Duration,
    /// They begin where the seed says.
    drawn: bool,
}

/// All that a run of `choice` can meet.
fn recorded<'a>(scenario: &'a Scenario, choice: &Choice) -> Vec<Recorded<'a>> {
    let Topology { paths, links } = &scenario.topology;
    let own = |way: &'a anabranch_network::WaySpec| way.bottleneck.own();
    let of_paths = (0..paths.len()).filter(|path| choice.uses(*path)).filter_map(|index| {
        let path = &paths[index];
        let period = shortest([own(&path.down), own(&path.up)].into_iter().flatten())?;
        Some(Recorded { name: &path.name, period, drawn: scenario.paths[index].trace_start == TraceStart::Seed })
    });
    let of_links = links.iter().filter_map(|link| {
        Some(Recorded { name: &link.name, period: shortest([&link.down, &link.up].into_iter())?, drawn: false })
    });
    of_paths.chain(of_links).collect()
}

fn shortest<'a>(bottlenecks: impl Iterator<Item = &'a BottleneckSpec>) -> Option<Duration> {
    let period = |bottleneck: &BottleneckSpec| match &bottleneck.capacity {
        CapacitySpec::Trace(trace) => Some(Duration::from_millis(trace.period_millis())),
        // A trace that is held at its end is not repeated.
        CapacitySpec::Steps(steps) => Some(steps.steps().duration()).filter(|_| !steps.steps().holds()),
        CapacitySpec::Fixed(_) | CapacitySpec::Bucket(_) => None,
    };
    bottlenecks.filter_map(period).min().filter(|period| !period.is_zero())
}

/// How much of a trace a run of the row takes: warm-up and duration, else the longest transfer.
fn taken(scenario: &Scenario, row: &RunRow<'_>) -> Option<Duration> {
    let longest = || row.metric(names::COMPLETION).into_iter().flatten().fold(0.0, f64::max);
    let taken = scenario.duration.unwrap_or_else(|| Duration::from_millis((1e3 * longest()).ceil() as u64));
    (!taken.is_zero()).then(|| scenario.warmup + taken)
}

/// The runs of the row take more of a trace than there is, although the seed draws where each begins: they share parts of it, and are
/// not independent.
pub(crate) fn overlap(cell: &CellPlan, place: usize, row: &RunRow<'_>) -> bool {
    let drawn = recorded(&cell.scenario, &cell.rows[place].choice).into_iter().filter(|of| of.drawn);
    let Some(shortest) = drawn.map(|of| of.period).min().filter(|_| row.len() > 1) else { return false };
    taken(&cell.scenario, row).is_some_and(|taken| taken * row.len() as u64 > shortest)
}

/// The finding about the traces of a cell, if one is too short. `rows` are those of Multipath TCP.
pub(crate) fn short_trace(cell: &CellPlan, rows: &[(usize, RunRow<'_>)]) -> Option<Diagnosis> {
    let (place, row) = rows.iter().max_by_key(|(_, row)| taken(&cell.scenario, row))?;
    let taken = taken(&cell.scenario, row)?;
    let all = recorded(&cell.scenario, &cell.rows[*place].choice);
    let names = |list: Vec<&Recorded<'_>>| listed(list.into_iter().map(|of| of.name));
    let repeated: Vec<&Recorded<'_>> = all.iter().filter(|of| of.period < taken).collect();
    let mut text = String::new();
    if let Some(period) = repeated.iter().map(|of| of.period).min() {
        text += &format!("The trace of {} lasts {period}, and a run of {taken} repeats it.", names(repeated.clone()));
    }
    let overlaps = overlap(cell, *place, row);
    if overlaps {
        let drawn: Vec<&Recorded<'_>> = all.iter().filter(|of| of.drawn).collect();
        let shortest = drawn.iter().map(|of| of.period).min().unwrap_or_default();
        let space = if text.is_empty() { "" } else { " " };
        text += &format!(
            "{space}{} runs of {taken} overlap in the {shortest} of the trace of {}: they are not independent, so there is no interval (±), and no test.",
            row.len(),
            names(drawn)
        );
    }
    let rows: Vec<RunRow<'_>> = rows.iter().map(|(_, row)| *row).collect();
    let kind = if overlaps { DiagnosisKind::Overlap } else { DiagnosisKind::ShortTrace };
    let summary = "a trace is too short for the runs".to_owned();
    (!text.is_empty()).then(|| finding(kind, &rows, (summary, text)))
}
