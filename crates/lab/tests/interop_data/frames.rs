//! Frames at a steady pace, with a kernel at either end.

use crate::common::alone;
use crate::runs::run;
use anabranch_lab::RealTime;
use anabranch_run::Serial;

/// 1000 bytes every 40 ms: with Nagle's algorithm, each would wait for the previous acknowledgment.
const SCENARIO: &str = r#"
name = "small frames"
[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"
[[path]]
name = "far"
rate = "8mbit"
delay = "30ms"
[[traffic]]
kind = "frames"
size = 1000
interval = "40ms"
count = 50
"#;

#[test]
fn frames_are_not_held_back_and_their_delays_are_measured() {
    let Some(_alone) = alone() else { return };
    for (sender, receiver, scheduler) in [("engine", "linux", "minrtt"), ("linux", "engine", "linux-default")] {
        let hosts = [("hosts.sender", sender), ("hosts.receiver", receiver)];
        let results = run(&RealTime, &Serial, SCENARIO, &hosts, &[scheduler], true);
        let run = &results.runs.to_vec()[0];
        assert!(run.finished, "{run:?}");
        // At least the near path's delay and a packet's time. The kernel may take the far path.
        let mean = run.metrics["app_delay_mean_s"];
        assert!((0.011..0.036).contains(&mean), "{sender} to {receiver}: {mean}");
        assert_eq!(run.metrics["delivered_bytes"], 50_000.0);
    }
}
