//! Hosts that run ahead of each other have the outcome of a run whose events are handled one by one.

#![expect(clippy::disallowed_methods, reason = "reads the scenarios of the repository")]

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{NoFiles, PlugIn, Source, read};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Duration, Instant};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Needs both hosts' events in one order.
struct InOrder;

impl Recorder for InOrder {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}
}

/// Every scenario file of the repository.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|entry| if entry.is_dir() { files(&entry) } else { vec![entry] }).collect();
    files.retain(|file| file.extension().is_some_and(|ext| ext == "toml"));
    files.sort();
    files
}

fn outcomes(job: &Job) -> [RunOutcome; 2] {
    let mut recorders: [&mut dyn Recorder; 2] = [&mut (), &mut InOrder];
    recorders.each_mut().map(|recorder| VirtualTime::default().run(job, *recorder).unwrap())
}

#[test]
fn every_scenario_has_the_same_outcome() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = files(&root.join("scenarios"));
    assert!(files.len() > 150, "{} files", files.len());
    for ((n, file), scheduler) in (0..).zip(&files).zip(anabranch_schedulers::all().iter().cycle()) {
        let source = Source { name: file.display().to_string(), text: fs::read_to_string(file).unwrap() };
        let mut scenario = read(&source, &[], &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario;
        let most = Duration::from_secs(4);
        scenario.duration = Some(scenario.duration.unwrap_or(most).min(most));
        scenario.warmup = scenario.warmup.min(Duration::from_secs(1));
        let choice = Choice::Multipath(PlugIn { name: scheduler.name.into(), parameters: Vec::new() });
        let [ahead, in_order] = outcomes(&Job::of(Arc::new(scenario), choice, n));
        assert_eq!(ahead, in_order, "{} with {}", file.display(), scheduler.name);
    }
}
