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
