//! The files of `--out`: results, and how they came about.

use crate::digest::sha256;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::inputs::{INPUTS, Inputs, Whole};
use crate::load::Loaded;
use crate::runs_csv::write_runs_csv;
use crate::runs_parquet::write_runs_parquet;
use crate::tidy_csv::{comparisons_csv, summary_csv};
use anabranch_report::of_run::Network;
use anabranch_run::{Options, Results};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How results came about. Wall time and machine stand here, never in the results.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Number of the format.
    schema: u32,
    /// Version of the program.
    pub anabranch: String,
    /// Absent in a build outside a git repository.
    pub git_commit: Option<String>,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The scenario as it was given.
    pub scenario: ScenarioText,
    /// The network of the scenario; that of a sweep is without the sweep.
    #[serde(default)]
    pub network: Network,
    /// Seeds of the repetitions.
    seeds: Vec<u64>,
    /// Hash over the runs' digests in order, in hexadecimal.
    digest: String,
    /// Begin of the command, in seconds since 1970 (UTC).
    started_unix_s: u64,
    /// Duration of the command, in seconds.
    pub wall_time_s: f64,
    /// Where it ran.
    pub machine: Machine,
    /// Facts about runs in real time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub real_time: Option<RealTime>,
}

/// The kernels and their settings in the first run; each run of the results has its own.
#[derive(Debug, Serialize, Deserialize)]
pub struct RealTime {
    /// Release of the kernel.
    pub kernel: Option<String>,
    settings: IndexMap<String, IndexMap<String, String>>,
    /// Settings that the kernel lacks.
    pub not_applied: Vec<String>,
    /// Runs whose paths were emulated as described.
    pub accurate_runs: usize,
    /// Runs in real time.
    pub runs: usize,
}

impl RealTime {
    fn of(results: &Results) -> Option<Self> {
        let lives = || results.runs.lives();
        lives().next().map(|first| Self {
            kernel: first.kernel.clone(),
            settings: first.settings.clone(),
            not_applied: first.not_applied.clone(),
            accurate_runs: lives().filter(|live| live.emulation.accurate).count(),
            runs: lives().count(),
        })
    }
}

/// A scenario as it was given, with what was set from outside.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ScenarioText {
    /// File or name.
    pub source: String,
    /// The whole file.
    pub text: String,
    /// Settings of the command line, each as `KEY=VALUE`.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The files that it names, with the SHA-256 of their texts, which `inputs.json` has.
    #[serde(default)]
    pub files: IndexMap<String, String>,
}

/// The words of the command line; bytes that are not UTF-8 become U+FFFD.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Where the program runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system.
    os: String,
    /// Architecture of the processor, such as `x86_64`.
    architecture: String,
    /// Threads that can run at once.
    cores: usize,
    /// Model of the processor.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cpu: Option<String>,
    /// Release of the kernel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    kernel: Option<String>,
}

impl Machine {
    /// The machine of this process.
    pub fn here() -> Self {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: model.map(|(_, name)| name.trim().to_owned()),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { os, architecture, cores, cpu, kernel } = self;
        write!(f, "{os} {} on {architecture}, {cores} cores", kernel.as_deref().unwrap_or_default())?;
        cpu.as_ref().map_or(Ok(()), |cpu| write!(f, ", {cpu}"))
    }
}

impl ScenarioText {
    /// The scenario `loaded`.
    pub fn of(loaded: &Loaded) -> Self {
        Self {
            source: loaded.source.name.clone(),
            text: loaded.source.text.clone(),
            overrides: loaded.overrides.iter().map(ToString::to_string).collect(),
            files: loaded.files.iter().map(|(name, text)| (name.clone(), sha256(text))).collect(),
        }
    }
}

impl Manifest {
    /// That of `results` of a scenario, which are made here and now by `command`.
    pub fn new(results: &Results, scenario: ScenarioText, network: Network, command: Vec<String>) -> Self {
        Self {
            schema: results.schema,
            anabranch: env!("CARGO_PKG_VERSION").to_owned(),
            git_commit: option_env!("ANABRANCH_COMMIT").map(str::to_owned),
            command,
            scenario,
            network,
            seeds: results.runs.seeds(),
            digest: results.digest.clone(),
            started_unix_s: seconds_since_1970(),
            wall_time_s: 0.0,
            machine: Machine::here(),
            real_time: RealTime::of(results),
        }
    }

    /// The same of work that took so long, and ended now.
    #[must_use]
    pub fn after(self, wall_time: Duration) -> Self {
        let started_unix_s = seconds_since_1970().saturating_sub(wall_time.as_secs());
        Self { started_unix_s, wall_time_s: wall_time.as_secs_f64(), ..self }
    }

    /// Writes `manifest.json` into `folder`.
    pub fn write(&self, folder: &Folder) -> Result<(), Failure> {
        // Strings and finite numbers only: this cannot fail.
        folder.write("manifest.json", serde_json::to_string_pretty(self).unwrap_or_default() + "\n")
    }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Writes the results into `folder`, as [`write_results`], then `inputs.json`, and last `manifest.json`. The work took `wall_time`.
pub fn write(
    folder: &Folder,
    (loaded, options): (&Loaded, &Options),
    results: &Results,
    wall_time: Duration,
) -> Result<(), Failure> {
    let network = Network::of(&loaded.document.scenario);
    let manifest = Manifest::new(results, ScenarioText::of(loaded), network, command_line()).after(wall_time);
    write_results(folder, results)?;
    folder.write(INPUTS, Inputs::new(Whole::of(loaded, options), Vec::new()).to_json())?;
    manifest.write(folder)
}

/// Writes `results.json`, `runs.csv`, `runs.parquet`, `summary.csv` and `comparisons.csv` into `folder`, each whole or not at all.
pub fn write_results(folder: &Folder, results: &Results) -> Result<(), Failure> {
    folder.write_with("results.json", |sink| results.write_json(sink))?;
    folder.write_with("runs.csv", |sink| write_runs_csv(results, sink))?;
    folder.write_with("runs.parquet", |sink| write_runs_parquet(results, sink))?;
    folder.write_with("summary.csv", |sink| summary_csv(results, sink))?;
    folder.write_with("comparisons.csv", |sink| comparisons_csv(results, sink))?;
    // Values that could not be read again are zeros in these files.
    results.runs.check().map_err(|error| Failure::unwritable(folder.path(), &error))
}
