//! `anabranch trace`: files in, a trace or a drawing out.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files")]

use assert_cmd::Command;
use std::fs;
use tempfile::TempDir;

fn anabranch(folder: &TempDir, arguments: &[&str]) -> (String, String, i32) {
    let output = Command::cargo_bin("anabranch").unwrap().current_dir(folder.path()).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    folder
}

#[test]
fn a_recording_becomes_a_trace_that_a_scenario_plays() {
    let scenario = "duration = \"2s\"\n[[path]]\nname = \"a\"\nrate = \"5mbit\"\ntrace = \"ping.csv\"\n[[traffic]]\nkind = \"bulk\"\n";
    let ping = "64 bytes from a: icmp_seq=1 ttl=5 time=20 ms\n64 bytes from a: icmp_seq=2 ttl=5 time=60 ms\n";
    let folder = folder(&[("ping.txt", ping), ("drive.toml", scenario)]);
    let (output, notes, code) = anabranch(&folder, &["trace", "convert", "ping.txt", "--out", "ping.csv"]);
    assert_eq!((output.as_str(), notes.as_str(), code), ("", "ping.txt: ping, 2 lines\n", 0));
    assert_eq!(fs::read_to_string(folder.path().join("ping.csv")).unwrap(), "time_s,rtt_ms\n0,20\n1,60\n");
    // A trace is left as it is.
    assert_eq!(anabranch(&folder, &["trace", "convert", "ping.csv"]).0, "time_s,rtt_ms\n0,20\n1,60\n");
    let (checked, wrong, code) = anabranch(&folder, &["check", "drive.toml"]);
    assert!(code == 0 && checked.contains("trace = { down = \"ping.csv\", up = \"ping.csv\" }"), "{checked}{wrong}");
    let (_, wrong, code) = anabranch(&folder, &["run", "drive.toml"]);
    assert_eq!(code, 0, "{wrong}");
    let (drawn, _, code) = anabranch(&folder, &["trace", "show", "ping.csv", "--out", "ping.svg"]);
    assert!(code == 0 && drawn.starts_with("delay, ms: 10 to 30, 20 on average\n"), "{drawn}");
    assert!(fs::read_to_string(folder.path().join("ping.svg")).unwrap().starts_with("<svg "));
}

#[test]
fn what_is_no_recording_is_told_once() {
    let million = "time_s,rate_mbps\n".to_owned() + &"x,y\n".repeat(1_000_000);
    let far = "time_s,rate_mbps\n0,5\n1,6\n2,7000000\n";
    let folder =
        folder(&[("speed.csv", "when,speed\n1,2\n"), ("million.csv", &million), ("far.csv", far), ("empty", "")]);
    let said = |file| {
        let (output, said, code) = anabranch(&folder, &["trace", "convert", file]);
        assert_eq!((output.as_str(), code), ("", 2), "{said}");
        said
    };
    let speed = said("speed.csv");
    assert!(speed.contains("its columns are when,speed") && speed.contains("name the columns time_s"), "{speed}");
    let million = said("million.csv");
    assert!(
        million.contains("line 2: `x` is not a number in column time_s") && million.lines().count() < 9,
        "{million}"
    );
    assert!(said("empty").contains("the file is empty"));
    let (output, asked, code) = anabranch(&folder, &["trace", "convert", "far.csv"]);
    assert_eq!((output.as_str(), code), (far, 0));
    assert!(asked.contains("rate, Mbit/s: the median is 6.000, the most 7000000.000: is the unit right?"), "{asked}");
}
