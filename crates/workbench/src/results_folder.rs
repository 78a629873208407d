//! A results directory: read for its report, which is written into it.

use crate::artifacts::Manifest;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::{RESULTS, SERIES, why};
use crate::listed::Listed;
use crate::progress::Progress;
use crate::watch::file_stem;
use anabranch_recorders::Timeline;
use anabranch_report::of_run::{self, OfRow, RunFolder, Series, cell_name};
use anabranch_report::{MadeBy, Report, files, html};
use anabranch_run::{Results, RunRow};
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the page.
pub const PAGE: &str = "report.html";

/// A page with more bytes is slow to open.
const LARGE: usize = 10_000_000;

/// Writes [`PAGE`] and `tables/` into `folder`, from what is there; `packets` = how many of each timeline the page shows, if not as usual.
pub fn make_report(folder: &Path, packets: Option<usize>, progress: &dyn Progress) -> Result<(), Failure> {
    let reader = Reader::open(folder)?;
    let report = reader.report()?;
    write_report(&reader.folder, &Report { packets: packets.or(report.packets), ..report }, progress)
}

/// The report of `folder`, which is not written.
pub fn report_of(folder: &Path) -> Result<Report, Failure> {
    Reader::open(folder)?.report()
}

/// The same of a run's results, which stand there already.
pub fn make_run_report(
    folder: &Path,
    results: &Results,
    packets: Option<usize>,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let reader = Reader::open(folder)?;
    let report = reader.of_run(results, reader.timelines()?)?;
    write_report(&reader.folder, &Report { packets, ..report }, progress)
}

fn write_report(folder: &Folder, report: &Report, progress: &dyn Progress) -> Result<(), Failure> {
    let page = html(report);
    if page.len() > LARGE {
        let megabytes = page.len().div_ceil(1_000_000);
        // Before it is written: the disk may be small.
        progress.warn(&format!("{PAGE} has {megabytes} MB"));
    }
    let files = files(report);
    let names = files.iter().map(|(name, _)| format!("tables/{name}"));
    Listed::add(folder, names.chain([PAGE.to_owned()]))?;
    folder.write(PAGE, page)?;
    let tables = folder.make_inner("tables")?;
    files.iter().try_for_each(|(name, text)| tables.write(name, text))
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

/// Reads the files of a results directory, which may be a stranger's.
struct Reader {
    folder: Folder,
    /// Bytes that were read so far.
    used: Cell<u64>,
}

impl Reader {
    fn open(folder: &Path) -> Result<Self, Failure> {
        let opened = Folder::open(folder)
            .map_err(|error| unusable(&folder.join("results.json"), &why(&error), Some(HELP.into())))?;
        Ok(Self { folder: opened, used: Cell::new(0) })
    }

    /// A whole report, or the results of a run; with the packet timelines beside them.
    fn report(&self) -> Result<Report, Failure> {
        let timelines = self.timelines()?;
        if self.folder.kind("report.json").is_some() {
            let mut report: Report = self.document("report.json")?;
            report.sections.extend(of_run::timelines(of_rows(&IndexMap::new(), timelines)));
            return Ok(report);
        }
        self.of_run(&self.document("results.json")?, timelines)
    }

    /// The packet timelines, by name.
    fn timelines(&self) -> Result<Vec<(String, Timeline)>, Failure> {
        self.each("timeline", "json", |folder, name| self.json(folder, name, None))
    }

    /// The report of a run: its results, with the other files of its folder.
    fn of_run(&self, results: &Results, timelines: Vec<(String, Timeline)>) -> Result<Report, Failure> {
        let manifest: Manifest = self.document("manifest.json")?;
        let series = self.each("series", "csv", |folder, name| {
            let file = folder.path().join(name);
            let text = folder.read_within(SERIES, 0, name).map_err(|error| unusable(&file, &why(&error), None))?;
            Series::parse(&text).map_err(|why| unusable(&file, &why, None))
        })?;
        let stems = if series.is_empty() && timelines.is_empty() { IndexMap::new() } else { stems(results) };
        let (series, timelines) = (of_rows(&stems, series), of_rows(&stems, timelines));
        Ok(of_run::report(results, run_folder(manifest, series, timelines)))
    }

    fn document<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        self.json(&self.folder, Path::new(name), Some(HELP.into()))
    }

    fn json<T: DeserializeOwned>(&self, folder: &Folder, name: &Path, help: Option<String>) -> Result<T, Failure> {
        let path = folder.path().join(name);
        let text = folder.read_within(RESULTS, self.used.get(), name);
        let text = text.map_err(|error| unusable(&path, &why(&error), help))?;
        self.used.set(self.used.get() + text.len() as u64);
        // Says line and column.
        serde_json::from_str(&text).map_err(|error| unusable(&path, &error.to_string(), None))
    }

    /// The files in the directory `name` with this ending, by name, each read by `read`; none without the directory.
    fn each<T>(
        &self,
        name: &str,
        ending: &str,
        read: impl Fn(&Folder, &Path) -> Result<T, Failure>,
    ) -> Result<Vec<(String, T)>, Failure> {
        if self.folder.kind(name).is_none() {
            return Ok(Vec::new());
        }
        let unreadable = |error: io::Error| unusable(&self.folder.path().join(name), &why(&error), None);
        let folder = self.folder.inner(name).map_err(unreadable)?;
        let mut names = folder.names().map_err(unreadable)?;
        names.retain(|file| file.extension().is_some_and(|e| e == ending));
        let named = |file: PathBuf| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, read(&folder, &file)?))
        };
        names.into_iter().map(named).collect()
    }
}

const HELP: &str = "give a directory that `--out` wrote";

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
    for (name, sha256) in &manifest.scenario.files {
        add(name, format!("SHA-256 {sha256}"));
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

fn unusable(file: &Path, why: &str, help: Option<String>) -> Failure {
    Failure::unusable("anabranch::report::unreadable", format!("cannot read {}: {why}", file.display()), help)
}
