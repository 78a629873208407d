//! Web pages, requests and many flows in real time, with a kernel at either end or none.

use crate::common::alone;
use crate::runs::run;
use anabranch_lab::RealTime;
use anabranch_run::{RunRecord, Serial};

const PATHS: &str = r#"
name = "a crowd"
[[path]]
name = "near"
rate = "20mbit"
delay = "5ms"
[[path]]
name = "far"
rate = "10mbit"
delay = "15ms"
"#;

/// Sender, receiver, and a scheduler of the sender.
const HOSTS: [(&str, &str, &str); 3] =
    [("engine", "linux", "minrtt"), ("linux", "engine", "linux-default"), ("engine", "engine", "minrtt")];

/// One run with each pair of hosts.
fn with_each_host(traffic: &str, check: impl Fn(&RunRecord)) {
    let Some(_alone) = alone() else { return };
    for (sender, receiver, scheduler) in HOSTS {
        let hosts = [("hosts.sender", sender), ("hosts.receiver", receiver)];
        let text = format!("{PATHS}[[traffic]]\n{traffic}");
        let results = run(&RealTime, &Serial, &text, &hosts, &[scheduler], true);
        let run = &results.runs.to_vec()[0];
        assert!(run.finished, "{sender} to {receiver}: {run:?}");
        assert!(run.metrics["oracle_ratio"] <= 1.0, "{sender} to {receiver}: {run:?}");
        check(run);
    }
}

#[test]
fn a_page_over_six_connections() {
    with_each_host("kind = \"web\"\nsize = \"300KiB\"\nobjects = 20\nsizes = \"lognormal\"", |run| {
        assert_eq!(run.metrics["delivered_bytes"], 307_200.0);
        // First transmissions of all six, as engine or observer saw them.
        let sent: f64 = ["near", "far"].iter().map(|path| run.paths[*path]["sent_bytes"]).sum();
        let again = run.metrics["retransmitted_packets"] + run.metrics["reinjected_packets"];
        assert!(sent >= 307_200.0 && sent <= 307_200.0 + again * 1400.0, "{run:?}");
    });
}

#[test]
fn twenty_downloads_at_once() {
    // A kernel whose application has finished writing rejects joins (MPTcpExtMPJoinRejected): hence more bytes than it
    // buffers at first.
    with_each_host("kind = \"bulk\"\nsize = \"250KB\"\nflows = 20", |run| {
        assert_eq!((run.metrics["delivered_bytes"], run.metrics["flows_finished"]), (5_000_000.0, 20.0));
        let [mean, max, all] =
            ["flow_completion_mean_s", "flow_completion_max_s", "completion_s"].map(|name| run.metrics[name]);
        assert!(0.0 < mean && mean <= max && max <= all, "{run:?}");
        // Joins were assigned to their connections: both paths carried data.
        assert!(["near", "far"].iter().all(|path| run.paths[*path]["share"] > 0.0), "{run:?}");
    });
}

#[test]
fn flows_that_arrive_at_random() {
    let traffic = "kind = \"bulk\"\nsize = \"20KB\"\nflows = 8\narrivals = { kind = \"poisson\", rate = 20.0 }";
    with_each_host(traffic, |run| {
        assert_eq!(run.metrics["flows_finished"], 8.0);
        // Alone on the paths, a flow ends long before the last one arrives.
        assert!(run.metrics["flow_completion_p50_s"] < run.metrics["completion_s"], "{run:?}");
    });
}

#[test]
fn requests_are_answered() {
    with_each_host("kind = \"request\"\nsize = \"8KB\"\ncount = 5\ninterval = \"20ms\"\nflows = 2", |run| {
        assert_eq!(run.metrics["delivered_bytes"], 80_000.0);
        // A round trip at least.
        assert!(run.metrics["response_mean_s"] > 0.010, "{run:?}");
        assert!(run.metrics["completion_s"] > 4.0 * 0.020 + 5.0 * 0.010, "{run:?}");
    });
}
