//! A timeline's `backup` with a kernel at either end: the kernel obeys the engine's MP_PRIO, or the engine's own choice holds.

use crate::common::alone;
use crate::runs::run;
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = r#"
name = "a backup from the beginning of the second second"
duration = "3s"
warmup = "0s"
[connection]
congestion = "cubic"
[[path]]
name = "near"
rate = "10mbit"
delay = "10ms"
[[path]]
name = "far"
rate = "10mbit"
delay = "20ms"
[[timeline]]
at = "1s"
set = "path.far.backup"
value = true
"#;

#[test]
fn a_path_that_becomes_a_backup_carries_no_more_data() {
    let Some(_alone) = alone() else { return };
    for (sender, receiver, scheduler) in [("engine", "linux", "minrtt"), ("linux", "engine", "linux-default")] {
        let share = |changes: &str| {
            let text = SCENARIO.replace("value = true", changes);
            let hosts = [("hosts.sender", sender), ("hosts.receiver", receiver)];
            let results = run(&RealTime, &Serial, &text, &hosts, &[scheduler], true);
            results.runs.to_vec()[0].paths["far"]["share"]
        };
        let (backup, as_before) = (share("value = true"), share("value = false"));
        // A third of the time instead of all of it.
        assert!(backup > 0.0 && backup < 0.7 * as_before, "{sender} to {receiver}: {backup} of {as_before}");
    }
}
