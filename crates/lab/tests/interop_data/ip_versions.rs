//! Paths of IPv4 and IPv6 in one connection, with a kernel at one end or at both.

use crate::common::alone;
use crate::runs::{WITH_A_KERNEL, run};
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = r#"
name = "paths of both IP versions"
duration = "1s"
[connection]
congestion = "cubic"
[[path]]
name = "a"
rate = "10mbit"
delay = "10ms"
[[path]]
name = "b"
rate = "10mbit"
delay = "20ms"
ip = 4
[[path]]
name = "c"
rate = "10mbit"
delay = "15ms"
ip = 6
"#;

/// The share of each path in the data.
fn shares(set: &[(&str, &str)], (sender, receiver, scheduler): (&str, &str, &str)) -> [f64; 3] {
    let set: Vec<_> = [("hosts.sender", sender), ("hosts.receiver", receiver)].iter().chain(set).copied().collect();
    let results = run(&RealTime, &Serial, SCENARIO, &set, &[scheduler], true);
    let run = &results.runs.to_vec()[0];
    ["a", "b", "c"].map(|path| run.paths.get(path).map_or(0.0, |values| values["share"]))
}

#[test]
fn every_path_carries_data_whatever_its_ip_version() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        for (ip, first) in [("4", "a"), ("6", "a"), ("4", "c")] {
            // Opened over a, of the hosts' version, or over c, of IPv6: one or two paths are of the other version.
            let shares = shares(&[("hosts.ip", ip), ("connection.first_path", first)], hosts);
            assert!(shares.iter().all(|share| *share > 0.1), "{hosts:?}, IPv{ip}, first {first}: {shares:?}");
        }
    }
}

#[test]
fn a_path_of_the_other_version_comes_goes_and_may_be_a_backup() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        let rest = ("duration", "3s");
        let [_, _, late] = shares(&[("path.b.ip", "6"), ("path.c.start", "2s"), rest], hosts);
        assert!(late > 0.02 && late < 0.25, "{hosts:?}: {late}");
        let [_, _, gone] = shares(&[("path.c.stop", "1s"), rest], hosts);
        assert!(gone > 0.02 && gone < 0.25, "{hosts:?}: {gone}");
        let [_, _, backup] = shares(&[("path.c.backup", "true")], hosts);
        assert!(backup < 0.02, "{hosts:?}: {backup}");
    }
}
