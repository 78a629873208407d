//! The active path goes silent and returns: docs/lab/failover.md.

use crate::common::beside;
use crate::runs::run;
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = include_str!("../../../../scenarios/silence.toml");

/// The faster path of an engine that sends to a kernel is silent for four seconds. Bounds are ten times the usual
/// values, because the machine is busy.
#[test]
fn a_silence_of_four_seconds_is_bridged_and_forgotten() {
    let Some(_beside) = beside() else { return };
    let set =
        [("hosts.receiver", "linux"), ("repeat", "1"), ("duration", "10s"), ("path.fast.outage", r#"[["2s", "6s"]]"#)];
    let results = run(&RealTime, &Serial, SCENARIO, &set, &["minrtt"], true);
    let run = &results.runs.to_vec()[0];
    let (metrics, fast) = (&run.metrics, &run.paths["fast"]);
    assert!(metrics["outage_s"] < 2.0, "nothing arrived for {} s", metrics["outage_s"]);
    assert!(fast["return_s"] < 3.0, "the path came back unused for {} s", fast["return_s"]);
    // One queue of data was stranded, and retransmitted once; the path was probed with small segments.
    assert!((10_000.0..1e6).contains(&metrics["rescued_bytes"]), "{metrics:?}");
    assert!(metrics["duplicate_bytes"] < 1e6, "{metrics:?}");
    assert!((2.0..=12.0).contains(&metrics["path_probes"]), "{metrics:?}");
    // The other path alone carries 10 Mbit/s; with the first path in four of ten seconds, the goodput is higher.
    assert!(metrics["goodput_bps"] > 10e6 && fast["share"] > 0.2, "{metrics:?} {fast:?}");
    assert_eq!(run.live.as_ref().expect("a real run").counters["client"]["MPTcpExtMPJoinSynAckRx"], 1);
}
