//! Scenarios, and runs of them.

#![allow(dead_code, reason = "each test file uses its own part")]
#![expect(clippy::disallowed_methods, reason = "reads the scenarios of the repository")]

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, NoFiles, PlugIn, Scenario, Source, read};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scenario files of the repository, in the order of their names, each as it is read.
pub fn scenarios() -> Vec<(PathBuf, Scenario)> {
    let mut files = below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"));
    files.retain(|file| file.extension().is_some_and(|ext| ext == "toml"));
    files.sort();
    let scenario = |file: PathBuf| {
        let source = Source { name: file.display().to_string(), text: fs::read_to_string(&file).unwrap() };
        (file, read(&source, &[], &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario)
    };
    files.into_iter().map(scenario).collect()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| if entry.is_dir() { below(&entry) } else { vec![entry] }).collect()
}

/// The scenario of a text without sweeps.
pub fn scenario(text: &str) -> Arc<Scenario> {
    Arc::new(Document::parse("test", text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).cells.remove(0).1)
}

/// All paths, with this scheduler.
pub fn multipath(scheduler: &str) -> Choice {
    Choice::Multipath(PlugIn { name: scheduler.into(), parameters: Vec::new() })
}

/// The outcome with seed 1.
pub fn run(text: &str, choice: Choice) -> RunOutcome {
    VirtualTime::default().run(&Job::of(scenario(text), choice, 1), &mut ()).unwrap()
}
