//! `anabranch measure --record`: a scenario of the measured paths, and how well the simulator predicts what was measured.

use super::links::CODE;
use super::measurement::{options, overrides, scenario_text};
use crate::args::MeasureArguments;
use crate::bar::Bar;
use anabranch_measure::{PathRecord, RealLinks, RecordedCapacity, is_recordable};
use anabranch_report::text::prediction_table;
use anabranch_run::{Driver, Options, Plan, Repeat, Results};
use anabranch_scenario::{Override, Source};
use anabranch_studies::Prediction;
use anabranch_units::Duration;
use anabranch_workbench::failure::{Failure, Salvage};
use anabranch_workbench::folder::Folder;
use anabranch_workbench::input::TRACES;
use anabranch_workbench::listed::Listed;
use anabranch_workbench::load::Loaded;
use anabranch_workbench::output::write;
use anabranch_workbench::stage::{Carried, Stage, carry_out};
use anabranch_workbench::watch::Wanted;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use toml_writer::ToTomlValue;

/// The file of predictions, in the directory of `--out`.
const PREDICTION: &str = "prediction.json";

/// Refuses a scenario or a trace of `paths` that is there or cannot be made, before anything is measured.
pub fn check_target(file: &Path, paths: &[String]) -> Result<(), Failure> {
    let refused = |message: String, help: &str| {
        let message = format!("--record: {message}");
        Err(Failure::unusable("anabranch::cli::usage", message, Some(help.to_owned())))
    };
    // The traces are named without the ending: two files of one folder never share them.
    let name = file.to_str().filter(|name| name.ends_with(".toml") && !name.contains(char::is_control));
    let Some(stem) = name.and_then(|_| file.file_stem()) else {
        let message = format!("{:?} is no name for a scenario", file.display().to_string());
        return refused(message, "end the name in .toml; UTF-8 without control characters");
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let traces = paths.iter().map(|path| folder.join(trace_name(&stem.to_string_lossy(), path)));
    for target in [file.to_owned()].into_iter().chain(traces) {
        if target.symlink_metadata().is_ok() {
            return refused(format!("{} exists", target.display()), "name a new file");
        }
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
        let out = Folder::make(out)?;
        Listed::add(&out, [PREDICTION.to_owned()])?;
        out.write(PREDICTION, json)?;
    }
    let table = prediction_table(&predictions);
    let is_fit = predictions.iter().any(|row| row.fitted);
    let fit = if is_fit { "fitted: the scenario was made of these runs, so they predict nothing.\n" } else { "" };
    Ok(format!("\nThe same in the simulator (`anabranch run {}`):\n\n{table}{fit}", in_shell(&file.to_string_lossy())))
}

/// Writes the scenario and its traces.
fn record(
    file: &Path,
    arguments: &MeasureArguments,
    overhead: u32,
    links: &RealLinks,
    measured: &Results,
) -> Result<(), Failure> {
    let seen = |(name, record): (String, Option<PathRecord>)| {
        let unseen = || Failure::failed(CODE, format!("--record: nothing was seen of {name}"));
        Ok((name.clone(), record.ok_or_else(unseen)?))
    };
    let records = links.records(TRACES.bytes()).into_iter().map(seen).collect::<Result<Vec<_>, Failure>>()?;
    let most = measured.summary.iter().map(|entry| entry.n).max().unwrap_or(1);
    let (text, traces) = scenario(file, arguments, overhead, &records, most)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    traces.iter().try_for_each(|(name, trace)| write(&folder.join(name), trace))?;
    write(file, text)
}

/// Names and texts of files.
type Files = Vec<(String, String)>;

/// The scenario `file`, and the traces beside it. Both have been read as `run` reads them.
fn scenario(
    file: &Path,
    arguments: &MeasureArguments,
    overhead: u32,
    records: &[(String, PathRecord)],
    repeat: usize,
) -> Result<(String, Files), Failure> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let (mut comments, mut paths, mut traces) = (heading(file, arguments), String::new(), Vec::new());
    for (name, record) in records {
        let trace = record.trace().map(|text| (trace_name(&stem, name), text));
        comments += &comment(name, record);
        paths += &path(name, record, overhead, trace.as_ref().map(|(trace, _)| trace.as_str()));
        traces.extend(trace);
    }
    let source = |text| Source { name: file.display().to_string(), text };
    let settings = settings(arguments, repeat)?;
    let loaded = Loaded::again(source(scenario_text(arguments, &paths)), settings, traces.clone())?;
    let text = format!("{comments}\n{}", loaded.document.resolved());
    Loaded::again(source(text.clone()), Vec::new(), traces.clone())?;
    Ok((text, traces))
}

/// The rows of `measured` beside those of the recorded scenario; those of which it was made are marked.
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
    let Carried { results, mut wrong, .. } = carry_out(&[stage], Wanted::default(), &Bar::new())?;
    match results.first() {
        Some(simulated) => {
            let shown = is_recordable(&loaded.document.scenario);
            Ok(Prediction::all(measured, simulated, |row| shown && row.starts_with("single:")))
        }
        None => Err(wrong.remove(0)),
    }
}

/// The options of the measurement, as keys of the scenario.
fn settings(arguments: &MeasureArguments, repeat: usize) -> Result<Vec<Override>, Failure> {
    let mut settings = overrides(arguments);
    let chosen = options(arguments)?;
    let first = [
        ("repeat", Some(repeat.to_string())),
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
         # The measured rows: anabranch run {} --scheduler {} --congestion {}{bare}\n",
        in_shell(server),
        in_shell(&file.to_string_lossy()),
        in_shell(&scheduler.join(",")),
        in_shell(&congestion.join(","))
    )
}

/// A word as a shell takes it. Without control characters, which no comment may have.
fn in_shell(word: &str) -> String {
    let word: String = word.chars().filter(|c| !c.is_control()).collect();
    shlex::try_quote(&word).map_or_else(|_| word.clone(), |quoted| quoted.into_owned())
}

/// `links.wlan0.csv` beside `links.toml`.
fn trace_name(stem: &str, path: &str) -> String {
    format!("{stem}.{path}.csv")
}

/// The record of a path, for a reader.
fn comment(name: &str, record: &PathRecord) -> String {
    let mut text = format!("# {name}: ");
    let mbit = |rate: f64| rate / 1e6;
    let seen = record.seen.as_secs_f64();
    let _ = match &record.capacity {
        RecordedCapacity::Constant(rate) => {
            write!(text, "{:.3} Mbit/s, constant in the {seen:.1} s in which data waited for it", mbit(*rate))
        }
        RecordedCapacity::AtLeast(rate) => {
            write!(text, "at least {:.3} Mbit/s, for data seldom waited for it: {seen:.1} s in all", mbit(*rate))
        }
        RecordedCapacity::Varying { step, rates, left_out } => {
            let least = rates.iter().copied().fold(f64::MAX, f64::min);
            let most = rates.iter().copied().fold(0.0, f64::max);
            let step = step.as_millis();
            write!(
                text,
                "a trace of {seen:.1} s in which data waited for it, {:.3} to {:.3} Mbit/s in steps of {step} ms",
                mbit(least),
                mbit(most)
            )
            .and_then(|()| match left_out {
                0 => Ok(()),
                more => write!(
                    text,
                    " ({more} steps after them were left out: all traces have {} bytes at most)",
                    TRACES.bytes()
                ),
            })
        }
    };
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let mut idle: Vec<Duration> = record.idle.iter().map(|one| one.rtt).collect();
    idle.sort_unstable();
    let (least, median, most) = (ms(idle.first()), ms(idle.get(idle.len() / 2)), ms(idle.last()));
    let _ =
        write!(text, "; idle RTT {least:.2} ms at least, median {median:.2}, greatest {most:.2} (n = {})", idle.len());
    let kept = if record.delay_varies() { "varies: in the trace" } else { "steady" };
    let _ = write!(text, ", {kept}; packets of {} bytes travel whole", record.largest_packet);
    let full = if record.is_full { "packets were lost there" } else { "it was never seen full" };
    let _ = write!(text, "; queue {} bytes: {full}", record.queue);
    let _ = writeln!(text, "; {} of {} packets lost at a shorter queue", record.lost, record.light);
    text
}

/// A path's section.
fn path(name: &str, record: &PathRecord, overhead: u32, trace: Option<&str>) -> String {
    let rate = format!("\"{:.0}bit\"", record.mean_rate());
    let varies = trace.is_some() && matches!(record.capacity, RecordedCapacity::Varying { .. });
    // The direction to the server was not seen.
    let capacity = if varies { format!("rate = {{ up = {rate} }}\n") } else { format!("rate = {rate}\n") };
    let delay = match record.delay_varies() {
        true => String::new(),
        false => format!("delay = \"{}us\"\n", record.delay().as_nanos() / 1_000),
    };
    let trace =
        trace.map_or(String::new(), |file| format!("trace = {}\ntrace_start = \"seed\"\n", file.to_toml_value()));
    let mtu = record.largest_packet;
    // A queue that was never full may be longer than it was seen.
    let is_known = record.is_full && record.queue > 0;
    let queue = if is_known { format!("queue = \"{}B\"\n", record.queue) } else { String::new() };
    let loss = match record.loss() {
        loss if loss > 0.0 => format!("loss = {{ down = \"{:.4}%\" }}\n", loss * 100.0),
        _ => String::new(),
    };
    let name = name.to_toml_value();
    format!("[[path]]\nname = {name}\n{capacity}{delay}{trace}overhead = {overhead}\nmtu = {mtu}\n{queue}{loss}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use anabranch_measure::IdleRtt;
    use anabranch_units::Instant;
    use clap::Parser;

    fn arguments(more: &[&str]) -> MeasureArguments {
        let first = ["anabranch", "measure", "example.net", "--via", "wlan0", "--server-key", "KEY", "--repeat", "3"];
        match Arguments::try_parse_from(first.iter().chain(more)).unwrap().command {
            Some(Command::Measure(arguments)) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    fn record(capacity: RecordedCapacity) -> PathRecord {
        let (seen, largest_packet) = (Duration::from_secs(2), 1_440);
        let idle = challenges(&[31, 30]);
        PathRecord { capacity, seen, queue: 90_000, is_full: true, light: 1_000, lost: 0, idle, largest_packet }
    }

    /// Challenges of an idle path, 50 ms apart, with these round trips in ms.
    fn challenges(rtts_ms: &[u64]) -> Vec<IdleRtt> {
        let one = |(n, ms): (u64, &u64)| IdleRtt { at: Instant::from_millis(50 * n), rtt: Duration::from_millis(*ms) };
        (0..).zip(rtts_ms).map(one).collect()
    }

    /// The file's text, and what `run` makes of it.
    fn loaded(name: &str, overhead: u32, record: PathRecord) -> (String, Loaded) {
        let records = [("wlan0".to_owned(), record)];
        let (text, traces) = scenario(Path::new(name), &arguments(&[]), overhead, &records, 3).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, &text).unwrap();
        traces.iter().for_each(|(name, trace)| std::fs::write(folder.path().join(name), trace).unwrap());
        (text, Loaded::read(&file, Vec::new()).unwrap())
    }

    /// The path's section, as `check` prints it.
    fn section(loaded: &Loaded) -> String {
        let text = loaded.document.resolved();
        text[text.find("[[path]]").unwrap()..].split("\n\n").next().unwrap().to_owned()
    }

    #[test]
    fn every_kind_of_record_is_a_scenario() {
        let (text, constant) = loaded("a.toml", 60, record(RecordedCapacity::Constant(20e6)));
        assert!(
            text.contains("20.000 Mbit/s, constant in the 2.0 s") && text.contains("packets were lost there"),
            "{text}"
        );
        let wlan0 = section(&constant);
        for (key, value) in [
            ("rate", "\"20mbit\""),
            ("delay", "\"15ms\""),
            ("overhead", "60"),
            ("queue", "\"90000B\""),
            ("mtu", "1440"),
        ] {
            let line = format!("{key} = {{ down = {value}, up = {value} }}");
            assert!(wlan0.contains(&line), "{line}: {wlan0}");
        }

        let least = PathRecord { is_full: false, lost: 10, ..record(RecordedCapacity::AtLeast(7e6)) };
        let (text, least) = loaded("b.toml", 80, least);
        assert!(text.contains("at least 7.000 Mbit/s, for data seldom waited for it: 2.0 s in all"), "{text}");
        let wlan0 = section(&least);
        assert!(
            wlan0.contains("overhead = { down = 80, up = 80 }") && !wlan0.contains("90000B"),
            "a queue that was never full: {wlan0}"
        );
        assert!(wlan0.contains("loss = { down = \"1%\", up = \"0%\" }"), "{wlan0}");

        let rates = [vec![20e6; 10], vec![0.0; 5], vec![5e6; 10]].concat();
        let varying = RecordedCapacity::Varying { step: Duration::from_millis(100), rates, left_out: 4 };
        let (text, varying) = loaded("c.toml", 60, record(varying));
        assert!(text.contains("0.000 to 20.000 Mbit/s in steps of 100 ms (4 steps after them were left out"), "{text}");
        assert!(section(&varying).contains("c.wlan0.csv") && section(&varying).contains("delay ="), "{text}");
        assert_eq!(varying.files.len(), 1);

        let wavers = PathRecord { idle: challenges(&[30, 80, 35, 60]), ..record(RecordedCapacity::Constant(20e6)) };
        let (text, wavers) = loaded("d.toml", 60, wavers);
        assert!(text.contains("varies: in the trace; packets of 1440 bytes travel whole"), "{text}");
        let wlan0 = section(&wavers);
        assert!(wlan0.contains("d.wlan0.csv") && wlan0.contains("\"20mbit\"") && !wlan0.contains("delay ="), "{wlan0}");
        assert_eq!(wavers.files[0].1.lines().count(), 5, "{:?}", wavers.files);
    }

    #[test]
    fn any_name_without_control_characters_can_be_read_back() {
        for name in ["วัด.toml", "me\u{301}sure.toml", "❤\u{fe0f} a\u{a0}b.toml", "it's \"one\" \\ two.toml"] {
            let rates = [vec![20e6; 10], vec![5e6; 10]].concat();
            let varying = RecordedCapacity::Varying { step: Duration::from_millis(100), rates, left_out: 0 };
            let (text, loaded) = loaded(name, 60, record(varying));
            assert_eq!(loaded.files[0].0, format!("{}.wlan0.csv", name.strip_suffix(".toml").unwrap()));
            let line = text.lines().nth(1).unwrap().split_once("anabranch ").unwrap().1;
            assert_eq!(shlex::split(line).unwrap()[1], name, "{line}");
        }
    }

    #[test]
    fn nothing_that_is_there_is_replaced_and_no_name_is_refused_late() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["wlan0".to_owned(), "usb0".to_owned()];
        let said =
            |name: &str| check_target(&folder.path().join(name), &paths).err().map(|failure| failure.render(false));
        assert_eq!(said("site.toml"), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for name in ["site", "site.a", "a\nb.toml", ".toml/"] {
            assert!(said(name).unwrap().contains(".toml"), "{name:?}");
        }
        std::fs::write(folder.path().join("site.usb0.csv"), "1\n").unwrap();
        assert!(said("site.toml").unwrap().contains("site.usb0.csv exists"));
        assert_eq!(said("other.toml"), None);
        std::fs::write(folder.path().join("other.toml"), "").unwrap();
        assert!(said("other.toml").unwrap().contains("other.toml exists"));
        assert!(said("none/new.toml").is_some());
    }
}
