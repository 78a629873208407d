//! Messages name a thing that is missing or in the way together with its remedy.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = "duration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";

fn anabranch(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    for variable in ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "SUDO_UID"] {
        program.env_remove(variable);
    }
    program.current_dir(folder).args(arguments).output().unwrap()
}

/// The message of a command that ends with `code`, in one line.
#[track_caller]
fn said(folder: &Path, arguments: &[&str], code: i32) -> String {
    let Output { status, stderr, .. } = anabranch(folder, arguments);
    let text = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{arguments:?}: {text}");
    text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_key_that_is_missing_is_made_by_the_command_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = said(folder.path(), &["serve", "--measure"], 1);
    assert!(text.contains("there is no key server.key") && text.contains("`anabranch key new server.key`"), "{text}");
    let key = anabranch(folder.path(), &["key", "new", "other.key"]).stdout;
    let key = String::from_utf8(key).unwrap();
    for command in ["measure", "proxy"] {
        let text = said(folder.path(), &[command, "127.0.0.1", "--via", "lo", "--server-key", key.trim()], 1);
        assert!(text.contains("`anabranch key new client.key`"), "{text}");
    }
    assert!(anabranch(folder.path(), &["key", "new", "server.key"]).status.success());
    let text = said(folder.path(), &["serve", "--measure"], 1);
    assert!(text.contains("no list of authorised keys authorized") && text.contains("--authorize NAME"), "{text}");
}

#[test]
fn status_without_a_socket_says_where_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let text = said(folder.path(), &["status"], 1);
    assert!(text.contains("/run/user/") && text.contains("anabranch.sock or /run/anabranch/status.sock"), "{text}");
    assert!(text.contains("--socket FILE"), "{text}");
}

#[test]
fn another_scenarios_results_are_named_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rate) in [("a.toml", "1mbit"), ("b.toml", "2mbit")] {
        fs::write(folder.path().join(name), SCENARIO.replace("1mbit", rate)).unwrap();
    }
    let results = || fs::read(folder.path().join("out/results.json")).unwrap();
    assert!(anabranch(folder.path(), &["run", "a.toml", "--out", "out"]).status.success());
    let first = results();
    let text = said(folder.path(), &["run", "b.toml", "--out", "out"], 2);
    assert!(text.contains("out has the results of the scenario a.toml") && text.contains("--force"), "{text}");
    assert!(said(folder.path(), &["reproduce", "fdps", "--out", "out"], 2).contains("the scenario a.toml"));
    assert!(results() == first);
    // The same scenario, edited, needs no word.
    fs::write(folder.path().join("a.toml"), SCENARIO.replace("1mbit", "3mbit")).unwrap();
    assert!(anabranch(folder.path(), &["run", "a.toml", "--out", "out"]).status.success());
    let edited = results();
    assert!(edited != first);
    assert!(anabranch(folder.path(), &["run", "b.toml", "--out", "out", "--force"]).status.success());
    assert!(results() != edited);
}

#[test]
fn more_paths_than_a_kernel_uses_are_refused_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |n| format!("[[path]]\nname = \"p{n}\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n");
    let text = |paths| "duration = \"1s\"\n".to_owned() + &(0..paths).map(path).collect::<String>();
    fs::write(folder.path().join("nine.toml"), text(9)).unwrap();
    fs::write(folder.path().join("ten.toml"), text(10)).unwrap();
    if !anabranch_lab::kernel::facts::has_mptcp() {
        return eprintln!("SKIPPED: this kernel has no MPTCP");
    }
    let linux = ["--scheduler", "linux-default", "--congestion", "reno"];
    for (file, side, most) in
        [("nine.toml", "--receiver", "uses 8 at most"), ("ten.toml", "--sender", "uses 9 at most")]
    {
        let text = said(folder.path(), &[&["run", file, side, "linux"][..], &linux].concat(), 1);
        assert!(text.contains(most) && text.contains("leave paths out until"), "{text}");
    }
}

#[test]
fn a_buffer_below_any_segment_is_out_of_its_range() {
    let folder = tempfile::tempdir().unwrap();
    for key in ["recv_buffer", "send_buffer"] {
        let explained = String::from_utf8(anabranch(folder.path(), &["explain", key]).stdout).unwrap();
        assert!(explained.contains("64 to ") && explained.contains("at least mss"), "{explained}");
        let text = said(folder.path(), &["check", "wifi-lte", "--set", &format!("{key}=63")], 2);
        assert!(text.contains("64 to ") || text.contains("smaller than one segment"), "{text}");
    }
}
