//! A seed is left out of a run's identity only where it decides nothing.

#![expect(clippy::disallowed_methods, reason = "reads the scenarios of the repository")]

use anabranch_run::{Choice, Driver, Job, VirtualTime};
use anabranch_scenario::{Document, NoFiles, Scenario, Source, read};
use anabranch_units::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every scenario file of the repository.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|entry| if entry.is_dir() { files(&entry) } else { vec![entry] }).collect();
    files.retain(|file| file.extension().is_some_and(|ext| ext == "toml"));
    files.sort();
    files
}

/// Digests of the path alone with three seeds, and whether the identity has a seed.
fn alone(scenario: &Arc<Scenario>, path: usize) -> ([String; 3], bool) {
    let jobs = [1, 2, 3].map(|seed| Job::of(scenario.clone(), Choice::Single(path), seed));
    let digests = jobs.each_ref().map(|job| VirtualTime::default().run(job, &mut ()).unwrap().digest);
    (digests, jobs[0].identity().seed.is_some())
}

#[test]
fn a_path_alone_that_is_said_to_draw_nothing_has_one_digest() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut decided = 0;
    for file in files(&root.join("scenarios")) {
        let source = Source { name: file.display().to_string(), text: fs::read_to_string(&file).unwrap() };
        let mut scenario = read(&source, &[], &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario;
        let most = Duration::from_secs(2);
        scenario.duration = Some(scenario.duration.unwrap_or(most).min(most));
        scenario.warmup = Duration::ZERO;
        if !scenario.groups.is_empty() {
            continue;
        }
        let scenario = Arc::new(scenario);
        for path in 0..scenario.topology.paths.len() {
            let (digests, has_seed) = alone(&scenario, path);
            let are_equal = digests.iter().all(|digest| *digest == digests[0]);
            assert!(has_seed || are_equal, "path {path} of {} differs by seed: {digests:?}", file.display());
            decided += usize::from(!has_seed);
        }
    }
    assert!(decided > 50, "{decided} rows");
}

/// Each kind of traffic, with the answer: a kind that draws is random, and one that does not is not.
#[test]
fn traffic_is_random_where_it_draws() {
    for (traffic, draws) in [
        ("kind = 'bulk'\nsize = '200KB'", false),
        ("kind = 'bulk'\nsize = '50KB'\nflows = 3\narrivals = { kind = 'poisson', rate = 5 }", true),
        ("kind = 'frames'\nsize = '4KB'\ninterval = '20ms'", false),
        ("kind = 'call'", false),
        ("kind = 'call'\nvideo = '500kbit'", true),
        ("kind = 'request'\nsize = '8KB'\ninterval = '100ms'", false),
        ("kind = 'web'\nsize = '200KB'\nobjects = 8", false),
        ("kind = 'web'\nsize = '200KB'\nobjects = 8\nsizes = 'lognormal'", true),
    ] {
        let text =
            format!("duration = '3s'\n[[path]]\nname = 'a'\nrate = '10mbit'\ndelay = '20ms'\n[[traffic]]\n{traffic}\n");
        let parsed = Document::parse("traffic", &text).unwrap_or_else(|error| panic!("{traffic}: {error:?}"));
        let (digests, has_seed) = alone(&Arc::new(parsed.cells.into_iter().next().unwrap().1), 0);
        let differ = digests.iter().any(|digest| *digest != digests[0]);
        assert_eq!((has_seed, differ), (draws, draws), "{traffic}: {digests:?}");
    }
}

/// The seed draws the pairs on a fabric, and their ways through it.
#[test]
fn pairs_on_a_fabric_are_random() {
    let text = "duration = '20ms'\n[[fabric]]\nname = 'dc'\nkind = 'fat-tree'\nk = 2\nrate = '100mbit'\ndelay = '20us'\n\
        [[path]]\nname = 'way'\nfabric = 'dc'\n[[group]]\nname = 'hosts'\ncount = 2\n[[traffic]]\nkind = 'bulk'\n";
    let parsed = Document::parse("fabric", text).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(anabranch_run::is_random(&parsed.cells[0].1));
}
