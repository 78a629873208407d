//! A seed is left out of a run's identity only where it decides nothing.

mod common;

use anabranch_run::{Choice, Driver, Job, VirtualTime};
use anabranch_scenario::Scenario;
use anabranch_units::Duration;
use common::{scenario, scenarios};
use std::sync::Arc;

/// Digests of the path alone with three seeds, and whether the identity has a seed.
fn alone(scenario: &Arc<Scenario>, path: usize) -> ([String; 3], bool) {
    let jobs = [1, 2, 3].map(|seed| Job::of(scenario.clone(), Choice::Single(path), seed));
    let digests = jobs.each_ref().map(|job| VirtualTime::default().run(job, &mut ()).unwrap().digest);
    (digests, jobs[0].identity().seed.is_some())
}

#[test]
fn a_path_alone_that_is_said_to_draw_nothing_has_one_digest() {
    let mut decided = 0;
    for (file, mut scenario) in scenarios() {
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
        ("kind = 'video'", false),
        ("kind = 'request'\nsize = '8KB'\ninterval = '100ms'", false),
        ("kind = 'web'\nsize = '200KB'\nobjects = 8", false),
        ("kind = 'web'\nsize = '200KB'\nobjects = 8\nsizes = 'lognormal'", true),
    ] {
        let text =
            format!("duration = '3s'\n[[path]]\nname = 'a'\nrate = '10mbit'\ndelay = '20ms'\n[[traffic]]\n{traffic}\n");
        let (digests, has_seed) = alone(&scenario(&text), 0);
        let differ = digests.iter().any(|digest| *digest != digests[0]);
        assert_eq!((has_seed, differ), (draws, draws), "{traffic}: {digests:?}");
    }
}

/// The seed draws the pairs on a fabric, and their ways through it.
#[test]
fn pairs_on_a_fabric_are_random() {
    let text = "duration = '20ms'\n[[fabric]]\nname = 'dc'\nkind = 'fat-tree'\nk = 2\nrate = '100mbit'\ndelay = '20us'\n\
        [[path]]\nname = 'way'\nfabric = 'dc'\n[[group]]\nname = 'hosts'\ncount = 2\n[[traffic]]\nkind = 'bulk'\n";
    assert!(anabranch_run::is_random(&scenario(text)));
}
