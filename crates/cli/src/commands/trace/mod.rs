//! `anabranch trace`

mod draw;
mod formats;

use crate::args::TraceAction;
use crate::outcome::Outcome;
use anabranch_network::Recording;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::input::{Limit, read_within, why};
use anabranch_workbench::output::Output;
use formats::recognise;
use std::path::Path;

/// Limit of one recording.
const RECORDING: Limit = Limit::of("a recording", 256);

/// Converts or draws a recording.
pub fn trace(action: &TraceAction) -> Result<Outcome, Failure> {
    match action {
        TraceAction::Convert { file, out } => {
            let output = out.as_deref().map(Output::claim).transpose()?;
            let loaded = load(file)?;
            let (csv, doubts) = (&loaded.csv, loaded.doubts());
            let notes = format!("{}: {}, {} lines{doubts}\n", file.display(), loaded.format, csv.lines().count() - 1);
            let left = output.map_or(Ok(csv.clone()), |output| output.write(csv).map(|()| String::new()))?;
            Ok(Outcome { output: left, notes, ..Outcome::default() })
        }
        TraceAction::Show { file, out } => {
            let output = out.as_deref().map(Output::claim).transpose()?;
            let loaded = load(file)?;
            if let Some(output) = output {
                output.write(draw::svg(&loaded.recording))?;
            }
            let drawn = draw::terminal(&loaded.recording);
            Ok(Outcome { output: drawn, notes: loaded.doubts(), ..Outcome::default() })
        }
    }
}

/// A file in a format that is known, or a trace.
struct Loaded {
    format: &'static str,
    /// Lines and values of the file that cannot be read.
    left_out: usize,
    /// The trace.
    csv: String,
    recording: Recording,
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = read_within(RECORDING, 0, file).map_err(|error| {
        let message = format!("cannot read {}: {}", file.display(), why(&error));
        Failure::unusable("anabranch::cli::unreadable", message, None)
    })?;
    let text = text.trim_start_matches('\u{feff}');
    // Lines may all end in a carriage return.
    Ok(if text.contains('\n') { text.to_owned() } else { text.replace('\r', "\n") })
}

fn load(file: &Path) -> Result<Loaded, Failure> {
    let text = read(file)?;
    let names_time = |line: &str| line.trim_start_matches([' ', '"']).starts_with("time_");
    let (format, left_out, csv) = match recognise(&text) {
        Ok(recorded) => {
            if let Some(descent) = recorded.descent() {
                return Err(unusable(file, &descent));
            }
            (recorded.format, recorded.left_out, recorded.csv())
        }
        Err(_) if text.lines().any(names_time) => ("a trace already", 0, text),
        Err(seen) => return Err(unknown(file, &seen)),
    };
    let recording = Recording::parse(&csv).map_err(|wrong| unusable(file, &wrong.to_string()))?;
    Ok(Loaded { format, left_out, csv, recording })
}

fn unusable(file: &Path, wrong: &str) -> Failure {
    Failure::unusable("anabranch::trace", format!("{} is not a trace: {wrong}", file.display()), None)
}

fn unknown(file: &Path, seen: &str) -> Failure {
    let help = "name the columns time_s and any of rate_mbps, rtt_ms or delay_ms, loss, each with _down or _up if it is of one \
                direction; known are mahimahi, Pensieve, HSDPA logs, 5G drive tests, Starlink RTT, iperf3, irtt and ping";
    let message = format!("{} is in no format that is known: {seen}", file.display());
    Failure::unusable("anabranch::trace", message, Some(help.into()))
}

impl Loaded {
    /// Text about lines that are left out, and about values that a wrong unit would explain.
    fn doubts(&self) -> String {
        let mut text = match self.left_out {
            0 => String::new(),
            left_out => format!("\nleft out, for they cannot be read: {left_out} of its lines and values"),
        };
        for (name, mut values) in draw::curves(&self.recording) {
            // The last one, once more.
            values.pop();
            let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).filter(|value| *value > 0.0).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let (Some(median), Some(most)) = (sorted.get(sorted.len() / 2), sorted.last()) else { continue };
            let far = most / median >= 1000.0;
            let odd = name.starts_with("rate") && !(0.01..=1e5).contains(median)
                || name.starts_with("delay") && *median > 1e4;
            if far || odd {
                text += &format!("\n{name}: the median is {median:.3}, the most {most:.3}: is the unit right?");
            }
        }
        text
    }
}
