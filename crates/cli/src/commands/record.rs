//! `anabranch measure --record`: a scenario of the measured paths, and how well the simulator predicts what was measured.

use super::links::CODE;
use super::measure::{options, overrides, scenario_text};
use crate::args::MeasureArguments;
use crate::failure::{Failure, Salvage};
use crate::load::Loaded;
use crate::output::write;
use crate::stage::{Carried, Stage, carry_out};
use crate::watch::Wanted;
use anabranch_link::measure::{Capacity, PathRecord, RealLinks};
use anabranch_report::text::prediction_table;
use anabranch_run::{Driver, Options, Plan, Prediction, Repeat, Results};
use anabranch_scenario::{Override, Source};
use anabranch_units::Duration;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Refuses a file that is there or cannot be made, before anything is measured.
pub fn check_target(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        let message = format!("--record: {} exists", file.display());
        return Err(Failure::unusable("anabranch::cli::usage", message, Some("name a new file".to_owned())));
    }
    let made = File::create_new(file).and_then(|_| std::fs::remove_file(file));
    made.map_err(|error| Failure::unwritable(file, &error))
}

/// Writes what `--record` names, if anything; how well the simulator predicts the results, as a text. A part of the results has no
/// prediction.
///
/// # Errors
/// Nothing came through a path, a file cannot be written, or a signal came.
pub fn recorded(
    arguments: &MeasureArguments,
    overhead: u32,
    links: &RealLinks,
    measured: &Results,
    virtual_time: &dyn Driver,
) -> Result<String, Failure> {
    let Some(file) = &arguments.record else { return Ok(String::new()) };
    record(file, arguments, overhead, links, measured)?;
    if measured.incomplete.is_some() {
        return Ok(String::new());
    }
    let predictions = predict(file, arguments, measured, virtual_time)?;
    if let Some(out) = &arguments.output.out {
        let json = serde_json::to_string_pretty(&predictions).unwrap_or_default() + "\n";
        write(&out.join("prediction.json"), json)?;
    }
    let table = prediction_table(&predictions);
    Ok(format!("\nThe same in the simulator (`anabranch run {}`):\n\n{table}", file.display()))
}

/// Writes the scenario and its traces.
fn record(
    file: &Path,
    arguments: &MeasureArguments,
    overhead: u32,
    links: &RealLinks,
    measured: &Results,
) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let (mut comments, mut paths) = (heading(file, arguments), String::new());
    for (name, record) in links.records() {
        let unseen = || Failure::failed(CODE, format!("--record: nothing was seen of {name}"));
        let record = record.ok_or_else(unseen)?;
        let trace = record.trace().map(|text| (trace_name(file, &name), text));
        if let Some((trace, text)) = &trace {
            write(&folder.join(trace), text)?;
        }
        comments += &comment(&name, &record);
        paths += &path(&name, &record, overhead, trace.as_ref().map(|(trace, _)| trace.as_path()));
    }
    let source = Source { name: file.display().to_string(), text: scenario_text(arguments, &paths) };
    let loaded = Loaded::parse(source, folder, settings(arguments, measured)?)?;
    write(file, format!("{comments}\n{}", loaded.document.resolved()))
}

/// The rows of `measured` beside those of the recorded scenario.
fn predict(
    file: &Path,
    arguments: &MeasureArguments,
    measured: &Results,
    virtual_time: &dyn Driver,
) -> Result<Vec<Prediction>, Failure> {
    let loaded = Loaded::read(file, Vec::new())?;
    let options = Options { repeat: Repeat::AsWritten, real_time: false, ..options(arguments)? };
    let plan = Plan::new(&loaded.variants(), &options);
    let (name, kept) = ("prediction, ".to_owned(), Salvage::Printed);
    let jobs = arguments.output.jobs;
    let stage = Stage { plan, driver: virtual_time, real_time: false, jobs, name, kept, folder: None, order: None };
    let Carried { results, mut wrong, .. } = carry_out(&[stage], Wanted::default())?;
    match results.first() {
        Some(simulated) => Ok(Prediction::all(measured, simulated)),
        None => Err(wrong.remove(0)),
    }
}

/// The options of the measurement, as keys of the scenario.
fn settings(arguments: &MeasureArguments, measured: &Results) -> Result<Vec<Override>, Failure> {
    let mut settings = overrides(arguments);
    let chosen = options(arguments)?;
    let most = measured.summary.iter().map(|entry| entry.n).max().unwrap_or(1);
    let first = [
        ("repeat", Some(most.to_string())),
        ("connection.scheduler", chosen.schedulers.first().map(|first| first.with_parameters())),
        ("connection.congestion", chosen.congestions.first().map(|first| first.with_parameters())),
    ];
    for (key, value) in first {
        if let Some(value) = value.filter(|_| settings.iter().all(|set| set.key != key)) {
            settings.push(Override::new("--record", key, value));
        }
    }
    Ok(settings)
}

fn heading(file: &Path, arguments: &MeasureArguments) -> String {
    let MeasureArguments { server, scheduler, congestion, .. } = arguments;
    let bare = if arguments.no_baselines { " --no-baselines" } else { "" };
    format!(
        "# The paths to {} as `anabranch measure --record` saw them; docs/measure.md says from what.\n\
         # The measured rows: anabranch run {} --scheduler '{}' --congestion '{}'{bare}\n",
        server,
        file.display(),
        scheduler.join(","),
        congestion.join(",")
    )
}

/// `links.wlan0.trace` beside `links.toml`.
fn trace_name(file: &Path, path: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}.{path}.trace"))
}

/// The record of a path, for a reader.
fn comment(name: &str, record: &PathRecord) -> String {
    let mut text = format!("# {name}: ");
    let mbit = |rate: f64| rate / 1e6;
    let seen = record.seen.as_secs_f64();
    let _ = match &record.capacity {
        Capacity::Constant(rate) => {
            write!(text, "{:.3} Mbit/s, constant in the {seen:.1} s in which data waited for it", mbit(*rate))
        }
        Capacity::AtLeast(rate) => write!(text, "at least {:.3} Mbit/s, for data never waited for it", mbit(*rate)),
        Capacity::Varying { step, rates } => {
            let least = rates.iter().copied().fold(f64::MAX, f64::min);
            let most = rates.iter().copied().fold(0.0, f64::max);
            let step = step.as_millis();
            write!(
                text,
                "a trace of {seen:.1} s in which data waited for it, {:.3} to {:.3} Mbit/s in steps of {step} ms",
                mbit(least),
                mbit(most)
            )
        }
    };
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let mut idle = record.idle.clone();
    idle.sort_unstable();
    let (least, median, most) = (ms(idle.first()), ms(idle.get(idle.len() / 2)), ms(idle.last()));
    let _ =
        write!(text, "; idle RTT {least:.2} ms at least, median {median:.2}, greatest {most:.2} (n = {})", idle.len());
    let full = if record.is_full { "packets were lost there" } else { "it was never seen full" };
    let _ = write!(text, "; queue {} bytes: {full}", record.queue);
    let _ = writeln!(text, "; {} of {} packets lost at a shorter queue", record.lost, record.light);
    text
}

/// A path's section.
fn path(name: &str, record: &PathRecord, overhead: u32, trace: Option<&Path>) -> String {
    let rate = format!("{:.0}bit", record.mean_rate());
    let capacity = match trace {
        // The direction to the server was not seen.
        Some(trace) => {
            let trace = trace.display().to_string();
            format!("rate = {{ up = {rate:?} }}\ntrace = {{ down = {trace:?} }}\ntrace_start = \"seed\"\n")
        }
        None => format!("rate = {rate:?}\n"),
    };
    let delay = record.delay().as_nanos() / 1_000;
    let is_known = !matches!(record.capacity, Capacity::AtLeast(_)) && record.queue > 0;
    let queue = if is_known { format!("queue = \"{}B\"\n", record.queue) } else { String::new() };
    let loss = match record.loss() {
        loss if loss > 0.0 => format!("loss = {{ down = \"{:.4}%\" }}\n", loss * 100.0),
        _ => String::new(),
    };
    format!("[[path]]\nname = {name:?}\n{capacity}delay = \"{delay}us\"\noverhead = {overhead}\n{queue}{loss}\n")
}
