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

#[test]
fn a_trace_from_a_spreadsheet_is_a_trace() {
    let plain = "time_s,rate_mbps,rtt_ms\n0,20,50\n1,10,60\n";
    let quoted = "\"time_s\",\"rate_mbps\",\"rtt_ms\"\n\"0\",\"20\",\"50\"\n\"1\",\"10\",\"60\"\n";
    let forms = [
        plain.to_owned(),
        format!("\u{feff}{plain}"),
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        quoted.to_owned(),
        format!(" {}", plain.replace(',', " , ")),
    ];
    let scenario =
        "[[path]]\nname = \"a\"\ntrace = \"x.csv\"\njitter = \"5ms\"\n[[traffic]]\nkind = \"bulk\"\nsize = 1000\n";
    let drawn = |form: &str| {
        let folder = folder(&[("x.csv", form), ("x.toml", scenario)]);
        let (_, wrong, code) = anabranch(&folder, &["check", "x.toml"]);
        assert_eq!(code, 0, "{form:?}: {wrong}");
        let (_, notes, code) = anabranch(&folder, &["trace", "convert", "x.csv"]);
        assert_eq!((notes.as_str(), code), ("x.csv: a trace already, 2 lines\n", 0), "{form:?}");
        anabranch(&folder, &["trace", "show", "x.csv"]).0
    };
    let first = drawn(plain);
    assert!(first.starts_with("rate, Mbit/s: 10 to 20, 15 on average\n"), "{first}");
    forms.iter().for_each(|form| assert_eq!(drawn(form), first, "{form:?}"));
}

#[test]
fn what_is_wrong_in_a_recording_is_told_as_it_stands() {
    let folder = folder(&[
        ("semicolons.csv", "time_s;rate_mbps\n0;20,5\n"),
        ("descending.txt", "5 1\n6 1\n4.5 1\n"),
        (
            "drive.csv",
            "Timestamp,DL_bitrate,UL_bitrate\n2020.02.29_00.00.01,900,30\nnever,1,2\n2020.02.29_00.00.03,nan,1\n",
        ),
    ]);
    let said = |file| {
        let (output, said, code) = anabranch(&folder, &["trace", "convert", file, "--out", "out.csv"]);
        assert_eq!(output, "");
        assert_eq!(folder.path().join("out.csv").exists(), code == 0, "{said}");
        said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
    };
    let semicolons = "line 1: its columns are separated by semicolons; a trace has commas, and points in numbers";
    assert!(said("semicolons.csv").contains(semicolons));
    let descending = "descending.txt is not a trace: 4.5 s in row 3 of its values is before 6 s in the row before";
    assert!(said("descending.txt").contains(descending));
    let drive = said("drive.csv");
    assert!(drive.ends_with("2 lines left out, for they cannot be read: 2 of its lines and values"), "{drive}");
}
