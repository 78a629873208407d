//! Paths that come and go, and backups that change, with a kernel at one end or at both.

use crate::common::alone;
use crate::runs::{WITH_A_KERNEL, run};
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = r#"
name = "paths that come and go"
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
"#;

/// The shares of both paths in the data.
fn shares(near: &str, far: &str, rest: &str, (sender, receiver, scheduler): (&str, &str, &str)) -> [f64; 2] {
    let text = SCENARIO.replace("\"10ms\"\n", &format!("\"10ms\"\n{near}\n")) + far + "\n" + rest;
    let hosts = [("hosts.sender", sender), ("hosts.receiver", receiver)];
    let results = run(&RealTime, &Serial, &text, &hosts, &[scheduler], true);
    let run = &results.runs.to_vec()[0];
    ["near", "far"].map(|path| run.paths.get(path).map_or(0.0, |values| values["share"]))
}

#[test]
fn a_path_that_appears_later_carries_data_from_then_on() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        let [_, late] = shares("", "start = '2s'", "", hosts);
        // A third of the time at half of the rate.
        assert!(late > 0.02 && late < 0.3, "{hosts:?}: {late}");
    }
}

#[test]
fn a_path_that_goes_leaves_the_data_to_the_others() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        // The path of the first subflow goes.
        let [near, far] = shares("stop = '1s'", "", "", hosts);
        assert!(near > 0.02 && near < 0.4 && far > 0.6, "{hosts:?}: {near} and {far}");
    }
}

#[test]
fn a_connection_opens_over_the_path_that_is_there_or_appears_first() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        let [near, far] = shares("start = '1s'", "", "", hosts);
        assert!(far > 0.5 && near > 0.02, "{hosts:?}: {near} and {far}");
        let [near, far] = shares("start = '2s'", "start = '1s'", "", hosts);
        assert!(far > 0.5 && near > 0.02, "{hosts:?}: {near} and {far}");
    }
}

#[test]
fn a_path_that_becomes_a_backup_carries_no_more_data() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        let share = |value: &str| {
            let change = format!("[[timeline]]\nat = '1s'\nset = 'path.far.backup'\nvalue = {value}\n");
            shares("", "", &change, hosts)[1]
        };
        let (backup, as_before) = (share("true"), share("false"));
        // A third of the time instead of all of it.
        assert!(backup > 0.0 && backup < 0.7 * as_before, "{hosts:?}: {backup} of {as_before}");
    }
}
