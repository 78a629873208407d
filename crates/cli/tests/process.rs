//! The program as a process.

use assert_cmd::Command;
use std::io::Read;
use std::process::Stdio;

fn anabranch() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
}

#[test]
fn exit_codes_and_streams() {
    anabranch().assert().success().stderr("");
    anabranch().arg("--version").assert().success().stdout(format!("anabranch {}\n", env!("CARGO_PKG_VERSION")));
    anabranch().arg("nonsense").assert().code(2).stdout("");
    anabranch().args(["explain", "nonsense"]).assert().code(2).stdout("");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closing the pipe unread makes the child's write fail.
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(errors, "");
}

const SCENARIO: &str = r#"
name = "short"
repeat = 2
[[path]]
name = "a"
rate = "8mbit"
delay = "10ms"
loss = "0.5%"
[[path]]
name = "b"
rate = "4mbit"
delay = "20ms"
[[traffic]]
kind = "bulk"
size = "512KiB"
"#;

#[test]
fn the_same_version_and_seed_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let run = |jobs: &str| {
        let mut command = anabranch();
        command.arg("run").arg(&file).args(["--scheduler", "minrtt+pr,blest", "--format", "json", "--jobs", jobs]);
        command.assert().success().stderr("").get_output().stdout.clone()
    };
    let text = run("1");
    assert!(text == run("2"));
    let results: anabranch_run::Results = serde_json::from_slice(&text).unwrap();
    assert_eq!(results.runs.len(), 2 * 4);
    for run in &results.runs {
        assert!(run.finished && run.metrics["completion_s"] > 0.0, "{run:?}");
        let shares: f64 = run.paths.values().map(|values| values["share"]).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{run:?}");
    }
}
