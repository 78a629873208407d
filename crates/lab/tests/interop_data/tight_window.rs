//! A prediction of the simulator for two schedulers holds with a receiving kernel: docs/lab/tight-window.md.

use crate::common::alone;
use crate::runs::run;
use anabranch_lab::RealTime;
use anabranch_run::{Pool, Results, Serial, VirtualTime};

const SCENARIO: &str = include_str!("../../../../scenarios/tight-window.toml");
const SCHEDULERS: [&str; 2] = ["blest", "minrtt+pr"];
const PAIRS: usize = 3;
/// The least prediction, as a share of the goodput of `minrtt+pr`.
const PREDICTED: f64 = 0.10;

/// Two runs at a time: those of a pair, which share the machine's conditions.
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

/// Each pair's difference as a share of the goodput of `minrtt+pr`.
fn gains(results: &Results) -> Vec<f64> {
    let [blest, minrtt] = SCHEDULERS.map(|scheduler| {
        let of = results.runs.iter().filter(|run| run.scheduler == scheduler);
        of.map(|run| run.metrics["goodput_bps"]).collect::<Vec<f64>>()
    });
    assert_eq!((blest.len(), minrtt.len()), (PAIRS, PAIRS));
    blest.iter().zip(&minrtt).map(|(blest, minrtt)| blest / minrtt - 1.0).collect()
}

#[test]
fn blest_beats_minrtt_under_a_tight_window_by_both_clocks() {
    let Some(_alone) = alone() else { return };
    let pairs = PAIRS.to_string();
    let simulated = run(&VirtualTime::default(), &Serial, SCENARIO, &[("repeat", &pairs)], &SCHEDULERS, false);
    let predicted = gains(&simulated);
    assert!(predicted.iter().all(|gain| *gain >= PREDICTED), "{predicted:?}");
    let set = [("repeat", &*pairs), ("hosts.receiver", "linux")];
    let live = run(&RealTime, &TwoByTwo, SCENARIO, &set, &SCHEDULERS, true);
    let shown = gains(&live);
    // A busy machine can take one pair's lead.
    assert!(shown.iter().sum::<f64>() > 0.0, "predicted {predicted:?}, shown {shown:?}");
    for run in live.runs.iter() {
        let counters = &run.live.as_ref().expect("a real run").counters["client"];
        assert_eq!(counters["MPTcpExtMPJoinSynAckRx"], 1, "both paths were there: {counters:?}");
    }
}
