//! Curves of runs in virtual time.

use anabranch_run::{Curves, Options, Plan, Results, RunRecord, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{Document, PlugIn};
use anabranch_units::Duration;
use std::sync::Arc;

const SCENARIO: &str = r#"
name = "two paths"
duration = "4s"
warmup = "1s"

[connection]
congestion = "lia"

[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"

[[path]]
name = "far"
rate = "4mbit"
delay = "60ms"
queue = "60p"

[[traffic]]
kind = "bulk"
"#;

fn run(schedulers: &[&str], curves: Option<Duration>) -> Results {
    let cells = Document::parse("two.toml", SCENARIO).unwrap().cells;
    let variants: Vec<Variant> =
        cells.into_iter().map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect();
    let plug_in = |name: &&str| PlugIn { name: (*name).to_owned(), parameters: Vec::new() };
    let options = Options { schedulers: schedulers.iter().map(plug_in).collect(), curves, ..Options::default() };
    let plan = Plan::new(&variants, &options);
    Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap()
}

#[test]
fn curves_change_nothing_else_and_are_empty_unless_requested() {
    let plain = run(&["minrtt"], None);
    assert!(plain.runs.iter().all(|run| run.curves.is_empty()));
    let mut drawn = run(&["minrtt"], Some(Duration::from_millis(100)));
    assert_eq!(serde_json::from_str::<Results>(&drawn.to_json()).unwrap(), drawn, "they are read back as they were");
    drawn.runs = drawn.runs.iter().map(|run| RunRecord { curves: Curves::default(), ..run }).collect();
    assert_eq!(drawn, plain);
}

#[test]
fn a_multipath_run_has_every_curve_and_a_single_path_its_own() {
    let results = run(&["blest"], Some(Duration::from_millis(100)));
    let runs = results.runs.to_vec();
    let names = |run: usize| runs[run].curves.keys().map(String::as_str).collect::<Vec<_>>();
    let of_paths =
        |path: &str| ["cwnd_packets", "srtt_s", "queue_packets", "goodput_bps"].map(|v| format!("path.{path}.{v}"));
    let mut expected: Vec<String> =
        ["goodput_bps", "ofo_packets", "ofo_bytes", "lambda", "increment_efficiency"].map(String::from).into();
    expected.extend(["near", "far"].into_iter().flat_map(of_paths));
    expected.extend(["rbd", "rd"].map(String::from));
    assert_eq!(names(0), expected);
    let mut single: Vec<String> = ["goodput_bps", "ofo_packets", "ofo_bytes"].map(String::from).into();
    single.extend(of_paths("far"));
    single.extend(["rbd", "rd"].map(String::from));
    assert_eq!((runs[2].scheduler.as_str(), names(2)), ("single:far", single.iter().map(String::as_str).collect()));
}

#[test]
fn curves_agree_with_the_metrics() {
    let results = run(&["minrtt"], Some(Duration::from_millis(100)));
    let run = &results.runs.to_vec()[0];
    let near = |name: &str, value: f64, tolerance: f64| {
        let ours = run.value(name).unwrap_or_else(|| panic!("{name}"));
        assert!((ours / value - 1.0).abs() < tolerance, "{name}: {ours} instead of {value}");
    };
    let curve = &run.curves["goodput_bps"];
    assert_eq!((curve.start, curve.step, curve.values.len()), (0.0, 0.1, 50), "the warm-up is there too");
    near("goodput_bps[1s..5s]", run.metrics["goodput_bps"], 1e-9);
    for path in ["near", "far"] {
        near(&format!("path.{path}.cwnd_packets[1s..5s]"), run.paths[path]["cwnd_mean_packets"], 1e-9);
        near(&format!("path.{path}.srtt_s[1s..5s]"), run.paths[path]["srtt_mean_s"], 1e-9);
    }
    near("increment_efficiency[1s..5s]", run.metrics["increment_efficiency_mean"], 1e-9);
    // Delivered data arrived first over one of the paths, but for data that is held at the ends.
    let arrived =
        run.value("path.near.goodput_bps[1s..5s]").unwrap() + run.value("path.far.goodput_bps[1s..5s]").unwrap();
    near("goodput_bps[1s..5s]", arrived, 0.02);
    // Every packet that is held is at most a segment.
    let held = run.value("ofo_packets[1s..5s]").unwrap();
    near("ofo_bytes[1s..5s]", held * 1400.0, 0.05);
    let sums = |name: &str| {
        let curve = &run.curves[name];
        let numbers = (0..).map(|n| curve.start + f64::from(n) * curve.step);
        let shares = || curve.values.iter().copied().flatten();
        (shares().sum::<f64>(), numbers.zip(shares()).map(|(number, share)| number * share).sum::<f64>())
    };
    let (shares, mean) = sums("rbd");
    assert!((shares - 1.0).abs() < 1e-5 && (mean / run.metrics["rbd_mean_packets"] - 1.0).abs() < 1e-3, "{mean}");
    assert!((sums("rd").0 - 1.0).abs() < 1e-5 && run.curves["rd"].start < 0.0);
}

#[test]
fn the_head_start_of_the_first_path() {
    let results = run(&["minrtt"], None);
    let metrics = &results.runs.to_vec()[0].metrics;
    // The far path joins after a round trip of the near one, takes one and a half of its own, and a half for the data.
    let (least, most) = (0.2 * 8e6 / 8.0 / 1500.0 * 0.5, 0.6 * 8e6 / 8.0 / 1400.0);
    let packets = metrics["head_start_packets"];
    assert!(packets > least && packets < most, "{packets}");
    // Both are longer than without queues, by no more than a full queue of the near path.
    let ratio = metrics["head_start_rtt_ratio"];
    assert!(ratio > 1.5 && ratio < 7.0, "{ratio}");
    assert!(!results.runs.to_vec()[1].metrics.contains_key("head_start_packets"), "a single path has none");
    for (path, least) in [("near", 0.020), ("far", 0.120)] {
        let mean = results.runs.to_vec()[0].paths[path]["rtt_mean_s"];
        assert!(mean >= least && mean < least + 0.3, "{path}: {mean}");
    }
}
