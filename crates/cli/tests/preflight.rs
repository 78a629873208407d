//! Measuring paths before a run. Where this machine cannot (root, TUN and MPTCP are needed) a test says SKIPPED and passes.

use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
name = "one transfer"
[connection]
congestion = "reno"
[[path]]
name = "wlan"
rate = "20mbit"
delay = "5ms"
loss = "1%"
[[path]]
name = "lte"
rate = "10mbit"
delay = "15ms"
[[traffic]]
kind = "bulk"
size = "200KB"
"#;

fn run(options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let mut anabranch = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    anabranch.arg("run").arg(&file).args(["--no-baselines"]).args(options).output().unwrap()
}

fn results(options: &[&str]) -> Value {
    let Output { status, stdout, stderr } = run(&[options, &["--format", "json"]].concat());
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// Says so where no kernel can be a host.
fn cannot() -> bool {
    let tried = run(&["--receiver", "linux", "--no-preflight"]);
    let errors = String::from_utf8_lossy(&tried.stderr);
    let missing = !tried.status.success() && (errors.contains("needs root") || errors.contains("mptcp"));
    if missing {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Not by a macro: a test's captured output is shown only when it fails.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {errors}");
    }
    missing
}

#[test]
fn engines_do_not_notice_it() {
    let in_virtual_time = results(&[]);
    for options in [&["--realtime"][..], &["--realtime", "--preflight"], &["--realtime", "--no-preflight"]] {
        let by_the_clock = results(options);
        // Not the digest: the time at which departures are reported depends on when the loop ran.
        assert_eq!(by_the_clock["runs"][0]["metrics"], in_virtual_time["runs"][0]["metrics"], "{options:?}");
    }
}

#[test]
fn a_run_with_a_kernel_tells_what_was_measured_and_the_kernel_kept_nothing() {
    if cannot() {
        return;
    }
    let measured = results(&["--receiver", "linux", "--repeat", "2"]);
    let runs = measured["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    // One network is measured once.
    assert_eq!(runs[0]["live"]["preflight"], runs[1]["live"]["preflight"]);
    let ways = runs[0]["live"]["preflight"]["ways"].as_array().unwrap();
    let names: Vec<_> = ways.iter().map(|way| (way["path"].as_str(), way["direction"].as_str())).collect();
    let [wlan, lte] = [Some("wlan"), Some("lte")];
    assert_eq!(names, [(wlan, Some("down")), (wlan, Some("up")), (lte, Some("down")), (lte, Some("up"))]);
    assert!(ways.iter().all(|way| way["measured"]["delay_s"].as_f64() >= way["configured"]["delay_s"].as_f64()));
    // The probes are datagrams, and went between other kernels.
    let counters = runs[0]["live"]["counters"]["client"].as_object().unwrap();
    assert!(counters.keys().any(|name| name.starts_with("Tcp")), "{counters:?}");
    assert!(!counters.keys().any(|name| name.starts_with("Udp")), "{counters:?}");
    assert_eq!(results(&["--receiver", "linux", "--no-preflight"])["runs"][0]["live"]["preflight"], Value::Null);
}

#[test]
fn the_table_stands_below_the_results() {
    if cannot() {
        return;
    }
    let text = String::from_utf8(run(&["--receiver", "linux"]).stdout).unwrap();
    for word in ["minrtt", "Paths as measured", "wlan down", "lte up", "jitter"] {
        assert!(text.contains(word), "{text}");
    }
    let table = text.split_once("Paths as measured").unwrap().1;
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{text}");
}
