//! Uploads, and data both ways at once, with a kernel at either end or at both: the sender is at the client's.

use crate::common::alone;
use crate::runs::{WITH_A_KERNEL, run};
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = r#"
name = "either way"
[[path]]
name = "wifi"
rate = { down = "40mbit", up = "20mbit" }
delay = "5ms"
[[path]]
name = "lte"
rate = { down = "20mbit", up = "10mbit" }
delay = "15ms"
[[traffic]]
kind = "bulk"
size = "2MB"
"#;

#[test]
fn every_byte_of_an_upload_and_of_both_directions_arrives() {
    let Some(_alone) = alone() else { return };
    for (direction, bytes) in [("up", 2e6), ("both", 4e6)] {
        for (sender, receiver, scheduler) in WITH_A_KERNEL {
            let set = [("hosts.sender", sender), ("hosts.receiver", receiver), ("traffic.direction", direction)];
            let what = format!("{direction}, {sender} to {receiver}");
            // Where both send, a kernel at either end has its own scheduler.
            let scheduler = if direction == "both" { "linux-default" } else { scheduler };
            let results = run(&RealTime, &Serial, SCENARIO, &set, &[scheduler], true);
            let run = &results.runs.to_vec()[0];
            assert!(run.finished, "{what}: {run:?}");
            assert_eq!(run.metrics["delivered_bytes"], bytes, "{what}");
            // Every sender's events are there: its data over each path, and its windows.
            assert!(
                run.paths.values().all(|path| path["sent_bytes"] > 0.0 && path["cwnd_mean_packets"] > 0.0),
                "{what}"
            );
            let live = run.live.as_ref().expect("a real run");
            // In an upload the kernel that sends is the client's.
            let place = |host: &str| live.counters.contains_key(host);
            let client = if direction == "up" { sender } else { receiver };
            let server = if direction == "up" { receiver } else { sender };
            assert_eq!((place("client"), place("server")), (client == "linux", server == "linux"), "{what}");
            let each = ["goodput_down_bps", "goodput_up_bps"].map(|name| run.metrics.contains_key(name));
            assert_eq!(each, [direction == "both"; 2], "{what}");
        }
    }
}
