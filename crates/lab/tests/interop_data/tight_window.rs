//! What the simulator predicts of two schedulers, a kernel that receives shows too: docs/tight-window.md.

use crate::common::alone;
use anabranch_lab::RealTime;
use anabranch_run::{Driver, Options, Plan, Pool, Results, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{NoFiles, Override, Source, read, scheduler};
use std::sync::Arc;

const SCENARIO: &str = include_str!("../../../../scenarios/tight-window.toml");
const PAIRS: usize = 3;
/// What the simulator must predict at least, as a part of the goodput of `minrtt+pr`.
const PREDICTED: f64 = 0.10;

/// Two runs at a time: those of a pair, which so meet the same machine.
struct TwoByTwo;

impl Pool for TwoByTwo {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        for first in 0..count / 2 {
            std::thread::scope(|scope| {
                scope.spawn(move || task(first));
                task(first + count / 2);
            });
        }
    }
}

fn plan(receiver: &str, real_time: bool) -> Plan {
    let set = |key, value: &str| Override::new("the test", key, value);
    let overrides = [set("hosts.receiver", receiver), set("repeat", &PAIRS.to_string())];
    let source = Source { name: "tight-window".into(), text: SCENARIO.into() };
    let document = read(&source, &overrides, &NoFiles).expect("a valid scenario");
    let cells = document.cells.into_iter();
    let variants: Vec<Variant> = cells.map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect();
    let schedulers = ["blest", "minrtt+pr"].map(|name| scheduler("the test", name).expect("a scheduler"));
    let options = Options { schedulers: schedulers.into(), baselines: false, real_time, ..Options::default() };
    Plan::new(&variants, &options)
}

fn goodputs(results: &Results, scheduler: &str) -> Vec<f64> {
    let of = results.runs.iter().filter(|run| run.scheduler == scheduler);
    of.map(|run| run.metrics["goodput_bps"]).collect()
}

/// Each pair's difference as a part of the goodput of `minrtt+pr`.
fn gains(results: &Results) -> Vec<f64> {
    let (blest, minrtt) = (goodputs(results, "blest"), goodputs(results, "minrtt+pr"));
    assert_eq!((blest.len(), minrtt.len()), (PAIRS, PAIRS));
    blest.iter().zip(&minrtt).map(|(blest, minrtt)| blest / minrtt - 1.0).collect()
}

fn run(driver: &dyn Driver, pool: &dyn Pool, plan: &Plan) -> Results {
    driver.prepare(plan).expect("this machine can");
    Runner { driver, pool, observer: &() }.run(plan).expect("runs that end in order")
}

#[test]
fn blest_beats_minrtt_under_a_tight_window_by_both_clocks() {
    let Some(_alone) = alone() else { return };
    let simulated = run(&VirtualTime::default(), &Serial, &plan("engine", false));
    let predicted = gains(&simulated);
    assert!(predicted.iter().all(|gain| *gain >= PREDICTED), "{predicted:?}");
    let live = run(&RealTime, &TwoByTwo, &plan("linux", true));
    let shown = gains(&live);
    assert!(shown.iter().all(|gain| *gain > 0.0), "predicted {predicted:?}, shown {shown:?}");
    for run in &live.runs {
        let counters = &run.live.as_ref().expect("a real run").counters["client"];
        assert_eq!(counters["MPTcpExtMPJoinSynAckRx"], 1, "both paths were there: {counters:?}");
    }
}
