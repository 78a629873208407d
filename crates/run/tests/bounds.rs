//! The oracle's bounds, asked without a run.

use anabranch_run::{Bound, Options, Plan, Runner, Serial, Variant, VirtualTime, bounds};
use anabranch_scenario::{Source, read};
use std::sync::Arc;

const TWO: &str = r#"
name = "two paths"
[[path]]
name = "wlan"
rate = "20mbit"
delay = "10ms"
[[path]]
name = "lte"
rate = "10mbit"
delay = "20ms"
[[traffic]]
kind = "bulk"
"#;

fn plan(text: &str) -> Plan {
    let source = Source { name: "test.toml".into(), text: text.into() };
    let document = read(&source, &[], &anabranch_scenario::NoFiles).unwrap();
    let variant = |(cell, scenario): (_, _)| Variant { cell, scenario: Arc::new(scenario) };
    Plan::new(&document.cells.into_iter().map(variant).collect::<Vec<_>>(), &Options::default())
}

fn of(text: &str) -> Vec<Bound> {
    bounds(&plan(text)).unwrap()
}

#[test]
fn unlimited_data_is_bounded_by_the_rates() {
    let bounds = of(&format!("duration = \"10s\"\n{TWO}"));
    let named: Vec<_> = bounds.iter().map(|bound| (&*bound.paths, bound.metric)).collect();
    assert_eq!(named, [("all", "goodput_bps"), ("single:wlan", "goodput_bps"), ("single:lte", "goodput_bps")]);
    // 1400 of 1480 bytes with Multipath TCP's options, of 1452 with TCP's.
    let expected = [30e6 * 1400.0 / 1480.0, 20e6 * 1400.0 / 1452.0, 10e6 * 1400.0 / 1452.0];
    for (bound, expected) in bounds.iter().zip(expected) {
        assert!((bound.value.unwrap() / expected - 1.0).abs() < 1e-9, "{bound:?}");
    }
}

#[test]
fn ratios_of_runs_are_to_these_bounds() {
    let sized = TWO.replace("kind = \"bulk\"", "kind = \"bulk\"\nsize = \"1MiB\"");
    let frames = TWO.replace("kind = \"bulk\"", "kind = \"frames\"\nsize = \"5KiB\"\ninterval = \"20ms\"\ncount = 50");
    for (text, metric) in [(sized, "completion_s"), (frames, "app_delay_mean_s")] {
        let plan = plan(&text);
        let results = Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap();
        let bounds = bounds(&plan).unwrap();
        assert_eq!(bounds.len(), 3);
        for (bound, run) in bounds.iter().zip(results.runs.iter()) {
            assert_eq!(bound.metric, metric);
            let ratio = bound.value.unwrap() / run.metrics[metric];
            assert!(ratio > 0.3 && (ratio - run.metrics["oracle_ratio"]).abs() < 1e-12, "{bound:?} {run:?}");
        }
    }
}

#[test]
fn cells_have_bounds_of_their_own_and_schedulers_none() {
    let sweep = "[sweep]\nscheduler = [\"minrtt\", \"blest\"]\n\"path.wlan.rate\" = [\"20mbit\", \"40mbit\"]\n";
    let bounds = of(&format!("duration = \"10s\"\n{TWO}{sweep}"));
    assert_eq!(bounds.len(), 6);
    assert_eq!((&*bounds[0].cell["path.wlan.rate"], &*bounds[3].cell["path.wlan.rate"]), ("20mbit", "40mbit"));
    assert!(bounds[0].value < bounds[3].value);
}
