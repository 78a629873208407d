//! Frames and the grid in virtual time.

use anabranch_network::{Bottleneck, CapacitySpec};
use anabranch_run::{Choice, Driver, Job, RunOutcome, Serial, VirtualTime, with_known_rates};
use anabranch_scenario::{Document, Scenario};
use anabranch_studies::frontier::{APPLICATIONS, Grid, PathSet};
use anabranch_units::Rate;
use std::sync::Arc;

const SCENARIO: &str = r#"
name = "frames"
[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"
[[path]]
name = "far"
rate = "8mbit"
delay = "60ms"
"#;

fn scenario(traffic: &str) -> Scenario {
    Document::parse("frames", &format!("{SCENARIO}\n{traffic}")).unwrap().cells.remove(0).1
}

fn run(scenario: &Scenario, choice: Choice) -> RunOutcome {
    VirtualTime::default().run(&Job::of(Arc::new(scenario.clone()), choice, 1), &mut ()).unwrap()
}

#[test]
fn a_small_frame_takes_its_path_s_delay_and_transmission() {
    // 1000 bytes every 40 ms: a segment each, over the near path alone.
    let scenario = scenario("[[traffic]]\nkind = \"frames\"\nsize = 1000\ninterval = \"40ms\"\ncount = 100");
    let outcome = run(&scenario, Choice::Single(0));
    // 1052 bytes with headers at 8 Mbit/s, and 10 ms.
    let least = 0.010 + 1052.0 * 8.0 / 8e6;
    let [mean, max] = ["app_delay_mean_s", "app_delay_max_s"].map(|name| outcome.metrics[name]);
    assert!((mean - least).abs() < 1e-6 && (max - least).abs() < 1e-6, "{mean} {max}");
    assert!(outcome.finished && outcome.metrics["delivered_bytes"] == 100_000.0);
    // The oracle sends such a frame over the near path, too, with headers as of full segments.
    assert!((outcome.metrics["oracle_ratio"] - 1.0).abs() < 2e-3, "{:?}", outcome.metrics);
}

#[test]
fn frames_beyond_the_capacity_wait_ever_longer() {
    // 12 Mbit/s over 8 for 4 s: the last frame waits 2 s at least.
    let traffic = "[[traffic]]\nkind = \"frames\"\nsize = 60000\ninterval = \"40ms\"\ncount = 100";
    let scenario = scenario(&format!("{traffic}\n[connection]\nscheduler = \"minrtt\""));
    let outcome = run(&scenario, Choice::Single(0));
    assert!(outcome.metrics["app_delay_max_s"] > 2.0, "{:?}", outcome.metrics);
    // Both paths together carry it.
    let both = run(&scenario, Choice::Multipath(scenario.scheduler.clone()));
    assert!(both.metrics["app_delay_p95_s"] < 0.5, "{:?}", both.metrics);
}

#[test]
fn a_scheduler_with_the_true_rates_decides_by_them() {
    // The first window of each path leaves before an acknowledgment shows that the far one is slow.
    let mut paths = scenario("[[traffic]]\nkind = \"bulk\"\nsize = 256_000");
    let slow = || CapacitySpec::Fixed(Rate::from_bps(400_000));
    if let Bottleneck::Own(own) = &mut paths.topology.paths[1].down.bottleneck {
        own.capacity = slow();
    }
    let playahead = anabranch_scenario::scheduler("test", "playahead").unwrap();
    let known = with_known_rates(&playahead).unwrap();
    let [measured, known] = [playahead, known].map(|plug_in| run(&paths, Choice::Multipath(plug_in)));
    let [slower, faster] = [&measured, &known].map(|outcome| outcome.metrics["goodput_bps"]);
    // By the estimate, copies over the near path make up for what the far one got.
    assert!(known.digest != measured.digest && faster >= slower, "{faster} with the true rates, {slower} without");
    let copied = [&measured, &known].map(|outcome| outcome.metrics["copied_packets"]);
    assert!(copied[0] > copied[1], "{copied:?}");
}

#[test]
fn every_application_has_a_score_and_none_beats_the_oracle() {
    let mut paths = scenario("[[traffic]]\nkind = \"bulk\"\nsize = 1");
    paths.repeat = 2;
    paths.start_jitter = anabranch_units::Duration::from_millis(100);
    let plug_in = |name: &str| anabranch_scenario::scheduler("test", name).unwrap();
    let grid = Grid {
        path_sets: vec![PathSet { kind: "near/far".into(), part: "own".into(), scenario: paths.clone() }],
        traffic: APPLICATIONS.to_vec(),
        schedulers: vec![plug_in("minrtt"), plug_in("redundant")],
        congestions: ["cubic", "lia"].map(|name| anabranch_scenario::congestion("test", name).unwrap()).to_vec(),
    };
    let (comparison, ended) = grid.run(&VirtualTime::default(), &Serial, &());
    assert_eq!((comparison.missing, ended), (0, None));
    let congestions: Vec<&str> = comparison.frontiers.iter().map(|frontier| &frontier.congestion[..]).collect();
    assert_eq!(congestions, ["cubic", "lia"]);
    let frontier = &comparison.frontiers[0];
    assert_eq!(frontier.cells.iter().map(|cell| &cell.traffic[..]).collect::<Vec<_>>(), APPLICATIONS);
    for cell in &frontier.cells {
        assert_eq!((cell.entries.len(), &cell.best_single[..]), (3, "near"), "{cell:?}");
        for entry in &cell.entries {
            assert!(entry.ratios.iter().all(|ratio| (0.05..=1.0).contains(ratio)), "{}: {entry:?}", cell.traffic);
        }
    }
    // Redundant copies everything: it cannot carry bulk faster than the best path, minRTT can.
    let bulk = &frontier.cells[0].entries;
    assert!(bulk[0].against_single > 1.5 && (0.8..1.05).contains(&bulk[1].against_single), "{bulk:?}");
    assert_eq!(comparison, grid.run(&VirtualTime::default(), &Serial, &()).0);
}

#[test]
fn the_best_path_alone_has_one_ratio_whatever_it_is_compared_with() {
    // The near path slows down at the end, so the oracle's mean depends on how many of the last frames count.
    let rate =
        |at: &str, rate: &str| format!("[[timeline]]\nat = \"{at}\"\nset = \"path.near.rate\"\nvalue = \"{rate}\"\n");
    let slows = [rate("1500ms", "2mbit"), rate("1800ms", "1mbit")].concat();
    let mut paths = scenario(&format!("[[traffic]]\nkind = \"bulk\"\nsize = 1\n{slows}"));
    paths.repeat = 1;
    let plug_in = |name: &str| anabranch_scenario::scheduler("test", name).unwrap();
    let alone = |schedulers: &[&str]| {
        let grid = Grid {
            path_sets: vec![PathSet { kind: "varying".into(), part: "own".into(), scenario: paths.clone() }],
            traffic: vec!["frames"],
            schedulers: schedulers.iter().map(|name| plug_in(name)).collect(),
            congestions: vec![anabranch_scenario::congestion("test", "cubic").unwrap()],
        };
        let (comparison, _) = grid.run(&VirtualTime::default(), &Serial, &());
        comparison.frontiers[0].cells[0].entries.last().unwrap().ratios.clone()
    };
    let ratio = alone(&["minrtt"]);
    assert!((0.01..1.0).contains(&ratio[0]), "{ratio:?}");
    for schedulers in [&["redundant"][..], &["roundrobin"], &["minrtt", "redundant", "roundrobin"]] {
        assert_eq!(alone(schedulers), ratio, "{schedulers:?}");
    }
}
