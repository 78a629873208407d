//! `anabranch archive`: one file from which a reader makes the runs again.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const SCENARIO: &str = "repeat = 2\nduration = \"2s\"\n[[path]]\nname = \"a\"\ntrace = \"link.csv\"\ndelay = \"5ms\"\n\
                        [[path]]\nname = \"b\"\nrate = \"2mbit\"\ndelay = \"20ms\"\n";

fn anabranch(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = program.current_dir(folder).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

fn unpack(archive: &Path, into: &Path) {
    let status = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into).status().unwrap();
    assert!(status.success());
}

#[test]
fn an_archive_is_made_again_by_a_reader() {
    let (author, reader) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let author = author.path();
    fs::write(author.join("mine.toml"), SCENARIO).unwrap();
    fs::write(author.join("link.csv"), "time_s,rate_bps\n0,4000000\n1,2000000\n").unwrap();
    let (code, text) = anabranch(author, &["run", "mine.toml", "--scheduler", "minrtt,blest", "--out", "results"]);
    assert_eq!(code, Some(0), "{text}");
    fs::write(author.join("results/own.txt"), "not of the program").unwrap();
    for file in ["one/artifact.tar.gz", "two/artifact.tar.gz"] {
        fs::create_dir(author.join(file).parent().unwrap()).unwrap();
        let (code, text) = anabranch(author, &["archive", "results", "--out", file]);
        assert_eq!(code, Some(0), "{text}");
    }
    let bytes = |file: &str| fs::read(author.join(file)).unwrap();
    assert!(bytes("one/artifact.tar.gz") == bytes("two/artifact.tar.gz"), "the same directory, the same bytes");

    let reader = reader.path();
    unpack(&author.join("one/artifact.tar.gz"), reader);
    let readme = fs::read_to_string(reader.join("artifact/README.md")).unwrap();
    assert!(readme.contains("anabranch rerun .") && readme.contains("link.csv`: SHA-256"), "{readme}");
    assert!(!reader.join("artifact/own.txt").exists(), "a file of the user's own stays out");
    let mut check = Command::new("sha256sum");
    let sums = File::open(reader.join("artifact/SHA256SUMS")).unwrap();
    check.current_dir(reader.join("artifact")).args(["--check", "--quiet"]).stdin(sums);
    assert!(check.status().unwrap().success());
    let (code, text) = anabranch(reader, &["rerun", "artifact"]);
    assert_eq!(code, Some(0), "{text}");

    // A result that was changed does not come out again.
    let results = reader.join("artifact/results.json");
    let changed = fs::read_to_string(&results).unwrap().replacen("\"seed\": 1", "\"seed\": 7", 1);
    fs::write(&results, changed).unwrap();
    assert_eq!(anabranch(reader, &["rerun", "artifact"]).0, Some(1));
}

#[test]
fn a_folder_without_results_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = anabranch(folder.path(), &["archive", "."]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("inputs.json") && !folder.path().join("artifact.tar.gz").exists(), "{text}");
}
