//! A results directory: read for its report, which is written into it.

use crate::artifacts::Manifest;
use crate::failure::Failure;
use crate::input::{read_regular, why};
use crate::output::{create, write};
use crate::watch::file_stem;
use anabranch_report::of_run::{self, OfRow, RunFolder, Series, cell_name};
use anabranch_report::{MadeBy, Report, files, html};
use anabranch_run::{Results, RunRow};
use anabranch_trace::Timeline;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the page.
pub const PAGE: &str = "report.html";

/// A page with more bytes is slow to open.
const LARGE: usize = 10_000_000;

/// Writes [`PAGE`] and `tables/` into `folder`, from what is there; `packets` = how many of each timeline the page shows, if not as usual.
pub fn make_report(folder: &Path, packets: Option<usize>) -> Result<(), Failure> {
    let report = read(folder)?;
    write_report(folder, &Report { packets: packets.or(report.packets), ..report })
}

/// The same of a run's results, which stand there already.
pub fn make_run_report(folder: &Path, results: &Results, packets: Option<usize>) -> Result<(), Failure> {
    let report = run_report(folder, results, timelines(folder)?)?;
    write_report(folder, &Report { packets, ..report })
}

fn write_report(folder: &Path, report: &Report) -> Result<(), Failure> {
    let page = html(report);
    if page.len() > LARGE {
        let megabytes = page.len().div_ceil(1_000_000);
        // Before it is written: the disk may be small.
        let _ = writeln!(io::stderr(), "{PAGE} has {megabytes} MB");
    }
    write(&folder.join(PAGE), page)?;
    let tables = folder.join("tables");
    create(&tables)?;
    for (name, text) in files(report) {
        write(&tables.join(name), &text)?;
    }
    Ok(())
}

/// This program.
pub fn made_by() -> MadeBy {
    let git_commit = option_env!("ANABRANCH_COMMIT").map(str::to_owned);
    MadeBy { version: env!("CARGO_PKG_VERSION").into(), git_commit }
}

/// In the order of the registry, which gives each its style.
pub fn scheduler_names() -> Vec<String> {
    anabranch_schedulers::all().iter().map(|entry| entry.name.to_owned()).collect()
}

/// A whole report, or the results of a run; with the packet timelines beside them.
fn read(folder: &Path) -> Result<Report, Failure> {
    let timelines = timelines(folder)?;
    let whole = folder.join("report.json");
    if whole.exists() {
        let mut report: Report = read_json(&whole)?;
        report.sections.extend(of_run::timelines(of_rows(&IndexMap::new(), timelines)));
        return Ok(report);
    }
    run_report(folder, &read_json(&folder.join("results.json"))?, timelines)
}

/// The packet timelines in a folder, by name.
fn timelines(folder: &Path) -> Result<Vec<(String, Timeline)>, Failure> {
    each(folder, "timeline", "json", |text| serde_json::from_str(text).map_err(|e| e.to_string()))
}

/// Of a run: its results, with the other files of its folder.
fn run_report(folder: &Path, results: &Results, timelines: Vec<(String, Timeline)>) -> Result<Report, Failure> {
    let manifest: Manifest = read_json(&folder.join("manifest.json"))?;
    let series = each(folder, "series", "csv", Series::parse)?;
    let stems = if series.is_empty() && timelines.is_empty() { IndexMap::new() } else { stems(results) };
    let (series, timelines) = (of_rows(&stems, series), of_rows(&stems, timelines));
    Ok(of_run::report(results, run_folder(manifest, series, timelines)))
}

/// The names of the rows' files, which are of each row's first run, with that run.
fn stems(results: &Results) -> IndexMap<String, OfRow<()>> {
    let rows = results.rows();
    let entry = |row: RunRow<'_>| {
        let seed = row.seeds().first().copied();
        let stem = file_stem(row.scheduler(), row.congestion(), seed.unwrap_or_default(), row.cell().iter());
        let known = rows.iter().find(|known| {
            (known.scheduler, known.congestion) == (&**row.scheduler(), &**row.congestion())
                && *known.cell == **row.cell()
        });
        let name = known.map_or_else(|| row.scheduler().to_string(), |known| known.name.clone());
        (stem, OfRow { row: name, cell: cell_name(&**row.cell()), seed, record: () })
    };
    results.runs.rows().map(entry).collect()
}

/// In the order of the rows; files that the user put beside them follow under their own names.
fn of_rows<T>(stems: &IndexMap<String, OfRow<()>>, mut files: Vec<(String, T)>) -> Vec<OfRow<T>> {
    files.sort_by_key(|(name, _)| stems.get_index_of(name).unwrap_or(stems.len()));
    let of_row = |(name, record)| match stems.get(&name) {
        Some(OfRow { row, cell, seed, .. }) => OfRow { row: row.clone(), cell: cell.clone(), seed: *seed, record },
        None => OfRow { row: name, cell: String::new(), seed: None, record },
    };
    files.into_iter().map(of_row).collect()
}

fn run_folder(manifest: Manifest, series: Vec<OfRow<Series>>, timelines: Vec<OfRow<Timeline>>) -> RunFolder {
    let mut settings = vec![("command".to_owned(), manifest.command.join(" "))];
    let mut add = |key: &str, value: String| settings.push((key.to_owned(), value));
    if !manifest.scenario.overrides.is_empty() {
        add("set from outside", manifest.scenario.overrides.join(", "));
    }
    add("wall time", format!("{:.1} s", manifest.wall_time_s));
    add("machine", manifest.machine.to_string());
    if let Some(live) = &manifest.real_time {
        let kernel = live.kernel.as_ref().map(|release| format!(", Linux {release}")).unwrap_or_default();
        add("real time", format!("accurate in {} of {} runs{kernel}", live.accurate_runs, live.runs));
        live.not_applied.iter().for_each(|what| add("not applied", what.clone()));
    }
    RunFolder {
        made_by: MadeBy { version: manifest.anabranch, git_commit: manifest.git_commit },
        settings,
        scenario: (manifest.scenario.source, manifest.scenario.text),
        schedulers: scheduler_names(),
        network: manifest.network,
        series,
        timelines,
        packets: None,
    }
}

fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let help = "give a directory that `--out` wrote".to_owned();
    let text = read_regular(file).map_err(|error| unusable(file, &why(&error), Some(help)))?;
    // Says line and column.
    serde_json::from_str(&text).map_err(|error| unusable(file, &error.to_string(), None))
}

/// The files of `folder/NAME` with this ending, by name, each read by `parse`; none without the directory.
fn each<T>(
    folder: &Path,
    name: &str,
    ending: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(String, T)>, Failure> {
    let entries = fs::read_dir(folder.join(name)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = read_regular(&path).map_err(|error| unusable(&path, &why(&error), None))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let value = parse(&text).map_err(|why| unusable(&path, &why, None))?;
        Ok((name, value))
    };
    paths.into_iter().map(read).collect()
}

fn unusable(file: &Path, why: &str, help: Option<String>) -> Failure {
    Failure::unusable("anabranch::report::unreadable", format!("cannot read {}: {why}", file.display()), help)
}
