//! `anabranch trace`

mod draw;
mod formats;

use crate::args::TraceAction;
use crate::failure::Failure;
use crate::input::{Limit, read_within, why};
use crate::outcome::Outcome;
use crate::output::Output;
use anabranch_network::{Recording, RecordingError};
use formats::recognise;
use std::path::Path;

/// Limit of one recording.
const RECORDING: Limit = Limit::of("a recording", 256);

/// Converts or draws a recording.
pub fn trace(action: &TraceAction) -> Result<Outcome, Failure> {
    match action {
        TraceAction::Convert { file, out } => {
            let output = out.as_deref().map(Output::claim).transpose()?;
            let (format, csv, recording) = load(file)?;
            let notes =
                format!("{}: {format}, {} lines{}\n", file.display(), csv.lines().count() - 1, doubts(&recording));
            let left = output.map_or(Ok(csv.clone()), |output| output.write(&csv).map(|()| String::new()))?;
            Ok(Outcome { output: left, notes, ..Outcome::default() })
        }
        TraceAction::Show { file, out } => {
            let output = out.as_deref().map(Output::claim).transpose()?;
            let (.., recording) = load(file)?;
            if let Some(output) = output {
                output.write(draw::svg(&recording))?;
            }
            Ok(Outcome { output: draw::terminal(&recording), notes: doubts(&recording), ..Outcome::default() })
        }
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    read_within(RECORDING, 0, file).map_err(|error| {
        let message = format!("cannot read {}: {}", file.display(), why(&error));
        Failure::unusable("anabranch::cli::unreadable", message, None)
    })
}

/// A recording in any format that is known, or a trace: the format, the trace in CSV, and its values.
fn load(file: &Path) -> Result<(&'static str, String, Recording), Failure> {
    let text = read(file)?;
    let (format, csv) = match recognise(&text) {
        Ok(recorded) => (recorded.format, recorded.csv()),
        Err(_) if text.lines().any(|line| line.starts_with("time_")) => ("a trace already", text),
        Err(seen) => return Err(unknown(file, &seen)),
    };
    let recording = Recording::parse(&csv).map_err(|wrong| unusable(file, &wrong))?;
    Ok((format, csv, recording))
}

fn unusable(file: &Path, wrong: &RecordingError) -> Failure {
    Failure::unusable("anabranch::trace", format!("{} is not a trace: {wrong}", file.display()), None)
}

fn unknown(file: &Path, seen: &str) -> Failure {
    let help = "name the columns time_s and any of rate_mbps, rtt_ms or delay_ms, loss, each with _down or _up if it is of one \
                direction; known are mahimahi, Pensieve, HSDPA logs, 5G drive tests, Starlink RTT, iperf3, irtt and ping";
    let message = format!("{} is in no format that is known: {seen}", file.display());
    Failure::unusable("anabranch::trace", message, Some(help.into()))
}

/// Values that a wrong unit would explain, to be asked about.
fn doubts(recording: &Recording) -> String {
    let mut text = String::new();
    for (name, mut values) in draw::curves(recording) {
        // The last one, once more.
        values.pop();
        let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).filter(|value| *value > 0.0).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (Some(median), Some(most)) = (sorted.get(sorted.len() / 2), sorted.last()) else { continue };
        let far = most / median >= 1000.0;
        let odd =
            name.starts_with("rate") && !(0.01..=1e5).contains(median) || name.starts_with("delay") && *median > 1e4;
        if far || odd {
            text += &format!("\n{name}: the median is {median:.3}, the most {most:.3}: is the unit right?");
        }
    }
    text
}
