//! Folders from strangers: whatever links and names they hold, nothing outside of them is written or removed.
#![cfg(unix)]

#[path = "common/pipe.rs"]
mod pipe;
#[path = "common/stranger.rs"]
mod stranger;

use pipe::read_pipe;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCENARIO: &str = r#"
name = "short"
repeat = 1
duration = "1s"
[[path]]
name = "a"
rate = "1mbit"
delay = "10ms"
"#;

/// A report with one table, whose files are `tables/a-b.csv` and `tables/a-b.tex`.
const REPORT: &str = r#"{"made_by": {"version": "0.1.0"}, "title": "t", "sections": [{"id": "a", "title": "s", "tables":
    [{"id": "b", "title": "t", "columns": [{"name": "x", "numeric": false}], "rows": [["echo taken"]]}]}]}"#;

/// The files of the user: none of them may change.
struct Home {
    home: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("mine/deep")).unwrap();
        for name in ["profile", "mine/a.csv", "mine/b.json", "mine/c.tex", "mine/deep/d.csv"] {
            fs::write(home.path().join(name), "mine\n").unwrap();
        }
        fs::write(home.path().join("short.toml"), SCENARIO).unwrap();
        fs::create_dir(home.path().join("theirs")).unwrap();
        Self { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A link in the stranger's folder to something of the user.
    fn link(&self, name: &str, target: &str) -> &Self {
        let link = self.path("theirs").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(self.path(target), link).unwrap();
        self
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        let file = self.path("theirs").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        program.current_dir(self.home.path()).args(arguments).output().unwrap()
    }

    /// Asks, and looks whether the user still has all that was there, and nothing else.
    #[track_caller]
    fn is_whole_after(&self, arguments: &[&str]) -> Output {
        let before = listed(self.home.path());
        let output = self.ask(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(listed(self.home.path()) == before, "{arguments:?}: {said}");
        assert!([0, 1, 2].contains(&output.status.code().unwrap_or(-1)), "{arguments:?}: {said}");
        output
    }
}

/// Names, contents and numbers of the files outside the stranger's folder and of those that commands are to make.
fn listed(home: &Path) -> Vec<(PathBuf, String, u64)> {
    let mut files = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() && !path.ends_with("theirs") => folders.push(path),
                kind if kind.is_file() => {
                    let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                    files.push((path, text, entry.metadata().unwrap().ino()));
                }
                _ => {}
            }
        }
    }
    files.sort();
    files
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_report_of_a_strangers_folder_overwrites_no_file_of_the_user() {
    for name in [
        "tables/a-b.part",
        "tables/a-b.csv",
        "tables/a-b.tex",
        "report.part",
        "report.html",
        "files.json",
        "files.part",
        ".unfinished-1",
    ] {
        let home = Home::new();
        home.file("report.json", REPORT).link(name, "profile");
        home.is_whole_after(&["report", "theirs"]);
    }
    let home = Home::new();
    home.file("report.json", REPORT).link("tables", "mine");
    let output = home.is_whole_after(&["report", "theirs"]);
    assert!(said(&output).contains("theirs/tables") && said(&output).contains("symbolic link"), "{}", said(&output));
}

#[test]
fn a_hard_link_is_replaced_and_never_written_through() {
    for name in ["report.part", "report.html", "tables/a-b.part", "tables/a-b.csv"] {
        let home = Home::new();
        home.file("report.json", REPORT).file("tables/x.csv", "");
        fs::hard_link(home.path("profile"), home.path("theirs").join(name)).unwrap();
        let output = home.is_whole_after(&["report", "theirs"]);
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
}

#[test]
fn runs_remove_and_write_nothing_behind_a_link_in_their_folder() {
    for (name, target) in [
        ("series", "mine"),
        ("timeline", "mine"),
        ("tables", "mine"),
        ("kept", "mine"),
        ("kept/virtual-time.jsonl", "profile"),
        ("kept/virtual-time.part", "profile"),
        ("results.part", "profile"),
        ("runs.csv", "profile"),
        ("report.html", "profile"),
    ] {
        for documents in [false, true] {
            let home = Home::new();
            home.link(name, target);
            if documents {
                let named = r#"{"anabranch": "0.1.0", "files": ["series/a.csv", "tables/c.tex", "../profile", "../mine/a.csv", "/etc/x.csv"]}"#;
                home.file("results.json", r#"{"anabranch": "0.1.0"}"#).file("files.json", named);
            }
            home.is_whole_after(&["run", "short.toml", "--out", "theirs"]);
        }
    }
}

#[test]
fn a_journal_that_is_a_link_is_not_appended_to() {
    for hard in [false, true] {
        let home = Home::new();
        home.file("kept/x", "");
        let place = home.path("theirs/kept/virtual-time.jsonl");
        match hard {
            true => fs::hard_link(home.path("profile"), place).unwrap(),
            false => symlink(home.path("profile"), place).unwrap(),
        }
        for arguments in [
            &["run", "short.toml", "--out", "theirs"][..],
            &["run", "short.toml", "--out", "theirs", "--shard", "1/1"],
            &["compare", "--grid", ".", "--scheduler", "minrtt", "--repeat", "1", "--out", "theirs"],
        ] {
            let output = home.is_whole_after(arguments);
            assert!(!output.status.success() && said(&output).contains("virtual-time.jsonl"), "{}", said(&output));
        }
    }
}

#[test]
fn shards_of_strangers_are_read_and_nothing_else() {
    let home = Home::new();
    assert!(home.ask(&["run", "short.toml", "--out", "theirs", "--shard", "1/1"]).status.success());
    fs::rename(home.path("theirs"), home.path("shard")).unwrap();
    fs::create_dir(home.path("theirs")).unwrap();
    home.link("kept", "mine");
    let output = home.is_whole_after(&["merge", "shard", "--out", "theirs"]);
    assert!(said(&output).contains("symbolic link"), "{}", said(&output));
    // A journal that never ends.
    fs::remove_file(home.path("shard/kept/virtual-time.jsonl")).unwrap();
    nix::unistd::mkfifo(&home.path("shard/kept/virtual-time.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::remove_file(home.path("theirs/kept")).unwrap();
    let output = home.is_whole_after(&["merge", "shard", "--out", "theirs"]);
    assert!(said(&output).contains("not a regular file"), "{}", said(&output));
}

#[test]
fn comparisons_traces_and_captures_are_written_through_no_link() {
    for name in ["frontier.part", "frontier.json", "frontier.md", "kept"] {
        let home = Home::new();
        home.link(name, "profile");
        home.is_whole_after(&["compare", "--grid", ".", "--scheduler", "minrtt", "--repeat", "1", "--out", "theirs"]);
    }
    for (name, arguments) in [
        ("events", &["--events", "theirs/events"][..]),
        ("minrtt-lia-seed1.client.pcapng", &["--pcap", "theirs"]),
        ("minrtt-cubic-seed1.client.pcapng", &["--pcap", "theirs"]),
    ] {
        let home = Home::new();
        home.link(name, "profile");
        home.is_whole_after(&[&["run", "short.toml"][..], arguments].concat());
    }
}

#[test]
fn a_users_own_files_stay_beside_results() {
    let home = Home::new();
    let run = ["run", "short.toml", "--out", "theirs"];
    assert!(home.ask(&run).status.success());
    home.file("tables/mine.tex", "mine").file("tables/mine.csv", "mine").file("notes.csv", "mine");
    assert!(home.ask(&run).status.success());
    for name in ["tables/mine.tex", "tables/mine.csv", "notes.csv"] {
        assert_eq!(fs::read_to_string(home.path("theirs").join(name)).unwrap(), "mine", "{name}");
    }
}

/// A listed name that cannot be removed would stop the next command when the other files are gone.
#[test]
fn a_list_that_names_a_directory_loses_no_results() {
    let home = Home::new();
    let run = ["run", "short.toml", "--out", "theirs"];
    assert!(home.ask(&run).status.success());
    fs::create_dir_all(home.path("theirs/zzz.csv/x")).unwrap();
    let list = home.path("theirs/files.json");
    let mut document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&list).unwrap()).unwrap();
    let names = document["files"].as_array_mut().unwrap();
    names.extend(["zzz.csv".into(), format!("{}.csv", "z".repeat(300)).into()]);
    fs::write(&list, document.to_string()).unwrap();
    let output = home.ask(&run);
    assert!(output.status.success(), "{}", said(&output));
    assert!(home.path("theirs/results.json").exists() && home.path("theirs/zzz.csv/x").exists());
}

#[test]
fn a_device_is_written_to_and_never_replaced() {
    let home = Home::new();
    let fifo = home.path("pipe");
    let reader = read_pipe(&fifo);
    let arguments = ["compare", "--grid", ".", "--scheduler", "minrtt", "--repeat", "1", "--picture", "pipe"];
    let output = home.ask(&arguments);
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
    assert!(reader.join().unwrap().starts_with(b"<svg"));
}

/// The fuzz target `folders` without a fuzzer.
#[test]
fn folders_made_at_random_change_nothing_outside() {
    let mut state = 1_u64;
    for _ in 0..400 {
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                // Knuth's constants (MMIX).
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        stranger::play(&bytes);
    }
}
