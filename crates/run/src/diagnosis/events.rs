//! Events in runs that explain more than any number: nothing was sent, or a path lost subflows.

use super::{Diagnosis, DiagnosisKind, finding, listed};
use crate::runs::RunRow;
use anabranch_engine::FirstPath;
use anabranch_metrics::MetricRef;
use anabranch_scenario::{PathOptions, Scenario};

/// The findings about the rows of one congestion control.
pub(super) fn events(scenario: &Scenario, rows: &[RunRow<'_>]) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let counts = |of: &dyn Fn(&RunRow<'_>) -> usize| -> Vec<(RunRow<'_>, usize)> {
        rows.iter().map(|row| (*row, of(row))).filter(|(_, count)| *count > 0).collect()
    };
    let silent = counts(&|row| in_silence(scenario, row));
    if !silent.is_empty() {
        let texts = no_connection(scenario, &silent);
        found.push(finding(DiagnosisKind::Connection, &only_rows(&silent), texts));
    }
    // The subflow of a path that goes is closed by its own host, and so are those of an application that is stopped.
    let none_stops = scenario.traffic.iter().all(|traffic| traffic.stop.is_none());
    let stays = |(path, options): (_, &PathOptions)| (options.presence.stop.is_none() && none_stops).then_some(path);
    let paths = scenario.topology.paths.iter().zip(&scenario.paths).filter_map(stays);
    for path in paths.map(|path| path.name.as_str()) {
        let lost = counts(&|row| row.values(MetricRef::of_path(path, "lost_subflows")).into_iter().flatten().count());
        if !lost.is_empty() {
            let text = format!("Subflows over {path} were reset, refused or not answered in {}.", shares(&lost));
            found.push(finding(DiagnosisKind::Lost, &only_rows(&lost), (format!("{path} lost subflows"), text)));
        }
    }
    found
}

fn only_rows<'a>(counted: &[(RunRow<'a>, usize)]) -> Vec<RunRow<'a>> {
    counted.iter().map(|(row, _)| *row).collect()
}

/// `3 of 5 runs of minrtt`.
fn shares(counted: &[(RunRow<'_>, usize)]) -> String {
    let each = counted.iter().map(|(row, count)| format!("{count} of {} runs of {}", row.len(), row.scheduler()));
    listed(each.collect::<Vec<_>>().iter().map(String::as_str))
}

/// How many runs sent nothing over any path.
fn in_silence(scenario: &Scenario, row: &RunRow<'_>) -> usize {
    let paths = scenario.topology.paths.iter();
    let sent: Vec<_> = paths.map(|path| row.values(MetricRef::of_path(&path.name, "sent_bytes"))).collect();
    (0..row.len()).filter(|&run| sent.iter().all(|path| path[run] == Some(0.0))).count()
}

/// In short, and whole.
fn no_connection(scenario: &Scenario, silent: &[(RunRow<'_>, usize)]) -> (String, String) {
    let paths = &scenario.topology.paths;
    let over = match scenario.settings.first_path {
        FirstPath::First => Some(0),
        FirstPath::On(path) => Some(path.index()),
        FirstPath::Race => None,
    };
    let mut text = format!("No data was sent in {}", shares(silent));
    match over.and_then(|path| paths.get(path)) {
        Some(path) => {
            text += &format!(": the connection opens over {}, and did not", path.name);
            if paths.len() > 1 {
                text += ". connection.first_path = \"race\" opens it over the path that answers first";
            }
        }
        None => text += ": the connection did not open over any path",
    }
    ("no data was sent".to_owned(), text + ".")
}
