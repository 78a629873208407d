//! A disk that is full: results are printed first, then what could not be written, and the exit code is 1.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
name = "short"
repeat = 2
duration = "1s"
[[path]]
name = "a"
rate = "8mbit"
delay = "10ms"
loss = "0.5%"
[[path]]
name = "b"
rate = "4mbit"
delay = "20ms"
"#;

fn anabranch() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
}

/// The program in `folder`, where no file can grow beyond 4 KiB: what is longer fails as on a full disk.
fn confined(folder: &Path, arguments: &[&str]) -> Output {
    confined_to(8, folder, arguments)
}

/// The same with so many blocks of 512 bytes.
fn confined_to(blocks: u32, folder: &Path, arguments: &[&str]) -> Output {
    let program = assert_cmd::cargo::cargo_bin!("anabranch");
    // A limit's signal, if it is ignored, leaves the error to the program.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.current_dir(folder).args(["-c", &script]).arg(program).args(arguments);
    shell.output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
    folder
}

/// Standard output and standard error of a command that failed with 1.
#[track_caller]
fn failed(output: Output) -> (String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}\n{stderr}");
    (stdout, stderr)
}

#[test]
fn every_command_says_that_standard_output_is_full() {
    let folder = folder();
    let made = anabranch().current_dir(folder.path()).args(["run", "short.toml", "--out", "results"]).output().unwrap();
    assert!(made.status.success());
    for arguments in [
        &[][..],
        &["--help"],
        &["list", "schedulers"],
        &["explain", "blest"],
        &["check", "short.toml"],
        &["run", "short.toml"],
        &["demo", "--repeat", "1"],
        &["compare", "--grid", ".", "--scheduler", "minrtt", "--repeat", "1"],
        &["model"],
        &["model", "oracle", "short.toml"],
        &["report", "results"],
        &["reproduce", "fdps", "a1", "--quick", "--out", "reproduced"],
        &["completions", "bash"],
    ] {
        let full = File::create("/dev/full").unwrap();
        let ran = anabranch().current_dir(folder.path()).args(arguments).stdout(full).output().unwrap();
        let (_, errors) = failed(ran);
        assert!(errors.contains("cannot write standard output: No space left on device"), "{arguments:?}: {errors}");
    }
}

#[test]
fn what_is_wrong_on_both_streams_is_told_once_each() {
    let full = File::create("/dev/full").unwrap();
    let ran = anabranch().args(["run", "no-such-scenario"]).stdout(full).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    // Nothing was to be printed there.
    assert!(!String::from_utf8(ran.stderr).unwrap().contains("standard output"));
}

#[test]
fn a_run_prints_its_results_whatever_file_cannot_be_written() {
    let folder = folder();
    let ran = anabranch().current_dir(folder.path()).args(["run", "short.toml", "--events", "/dev/full"]).output();
    let (table, errors) = failed(ran.unwrap());
    assert!(table.contains("minrtt") && table.contains("single:b"), "{table}");
    assert!(errors.contains("cannot write /dev/full: No space left on device"), "{errors}");
    for (option, file) in [("--events", "events.jsonl"), ("--pcap", "captures/"), ("--out", "out/")] {
        let value = file.split('/').next().unwrap();
        let (table, errors) = failed(confined(folder.path(), &["run", "short.toml", option, value]));
        assert!(table.contains("minrtt") && table.contains("single:b"), "{option}: {table}");
        let words = errors.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(["cannot write", file, "File too large"].iter().all(|part| words.contains(part)), "{words}");
        assert!(!words.contains("unfinished"), "{words}");
    }
    // One that is full does not keep the others from being written.
    let arguments = ["run", "short.toml", "--events", "/dev/full", "--out", "whole"];
    let (table, _) = failed(anabranch().current_dir(folder.path()).args(arguments).output().unwrap());
    assert!(table.contains("minrtt"), "{table}");
    for file in ["results.json", "runs.csv", "manifest.json", "report.html"] {
        assert!(folder.path().join("whole").join(file).exists(), "{file}");
    }
}

#[test]
fn what_cannot_be_written_at_all_is_said_before_the_runs() {
    let folder = folder();
    fs::write(folder.path().join("long.toml"), SCENARIO.replace("1s", "20000s")).unwrap();
    let ran = anabranch().current_dir(folder.path()).args(["run", "long.toml", "--events", "nowhere/events"]).output();
    let (table, errors) = failed(ran.unwrap());
    assert!(table.is_empty() && errors.contains("cannot write nowhere/events"), "{errors}");
}

#[test]
fn earlier_results_stay_where_the_new_ones_have_no_room() {
    let folder = folder();
    let made = anabranch().current_dir(folder.path()).args(["run", "short.toml", "--out", "out"]).output().unwrap();
    assert!(made.status.success());
    let results = || fs::read_to_string(folder.path().join("out/results.json")).unwrap();
    let before = results();
    let (table, _) = failed(confined(folder.path(), &["run", "short.toml", "--seed", "77", "--out", "out"]));
    assert!(table.contains("minrtt"), "{table}");
    assert_eq!(results(), before);
    let names = fs::read_dir(folder.path().join("out")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_key_without_room_leaves_no_file_in_its_place() {
    let folder = folder();
    // Standard output is a pipe, which has no limit.
    let (_, errors) = failed(confined_to(0, folder.path(), &["key", "new", "client.key"]));
    assert!(errors.contains("client.key"), "{errors}");
    assert!(!folder.path().join("client.key").exists());
}

#[test]
fn a_report_without_room_leaves_the_earlier_one() {
    let folder = folder();
    let made = anabranch().current_dir(folder.path()).args(["run", "short.toml", "--out", "out"]).output().unwrap();
    assert!(made.status.success());
    let page = || fs::read(folder.path().join("out/report.html")).unwrap();
    let before = page();
    let (_, errors) = failed(confined(folder.path(), &["report", "out"]));
    assert!(errors.contains("report.html"), "{errors}");
    assert_eq!(page(), before);
}

#[test]
fn verdicts_and_rankings_are_printed_all_the_same() {
    let folder = folder();
    let arguments = ["reproduce", "fdps", "a1", "--quick", "--out", "reproduced"];
    let (verdicts, errors) = failed(confined(folder.path(), &arguments));
    assert!(verdicts.contains("differs") || verdicts.contains("reproduces"), "{verdicts}");
    assert!(errors.contains("cannot write"), "{errors}");

    let arguments = ["compare", "--grid", ".", "--scheduler", "all", "--repeat", "1", "--out", "compared"];
    let (ranking, errors) = failed(confined(folder.path(), &arguments));
    assert!(ranking.contains("single:best") && errors.contains("cannot write"), "{ranking}\n{errors}");

    let page = folder.path().join("page.md");
    fs::write(&page, "<!-- frontier -->\n<!-- /frontier -->\n").unwrap();
    let arguments = ["compare", "--grid", ".", "--scheduler", "all", "--repeat", "1", "--update", "page.md"];
    let (ranking, errors) = failed(confined(folder.path(), &arguments));
    assert!(ranking.contains("single:best") && errors.contains("cannot write page.md"), "{ranking}\n{errors}");
    assert_eq!(fs::read_to_string(&page).unwrap(), "<!-- frontier -->\n<!-- /frontier -->\n");
}
