//! Results folders of strangers, made from bytes: names, kinds, links, sizes and contents. Commands use them, and what lies outside
//! stays as it was. For tests, and for the fuzz target `folders`.

use anabranch_cli::{Drivers, answer};
use anabranch_run::{Driver, Job, RunError, RunOutcome};
use anabranch_trace::Recorder;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Runs that take no time.
struct Instantly;

impl Driver for Instantly {
    fn run(&self, job: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let metrics = [("goodput_bps".to_owned(), 1e6 + job.seed as f64)].into_iter().collect();
        Ok(RunOutcome { metrics, finished: true, digest: format!("{:032x}", job.seed), ..RunOutcome::default() })
    }
}

const SCENARIO: &str =
    "name = \"x\"\nrepeat = 1\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
const REPORT: &str = r#"{"made_by": {"version": "0.1.0"}, "title": "t", "sections": [{"id": "a", "title": "s",
    "pictures": [{"kind": "network", "warmup_s": 0, "paths": [{"name": "a", "rate_bps": 1e6, "delay_s": 0.1, "loss": 0.1, "queue_bytes": 1e5}]},
    {"kind": "gain", "down": {"key": "k", "values": ["1"]}, "across": {"key": "l", "values": ["2"]}, "maps": [{"title": "t", "cells": [[[1.5, true]]]}], "lower_is_better": false}],
    "tables": [{"id": "b", "title": "t", "columns": [{"head": "x", "numeric": false}], "rows": [["y"]]}]}]}"#;
const LIST: &str = r#"{"anabranch": "0.1.0", "files": ["results.json", "series/a.csv", "../mine/a.csv", "tables/../../mine/a.csv", "runs/a.csv"]}"#;
const TIMELINE: &str = r#"{"paths":["a"],"duration_s":0.025,"packets":[]}"#;

/// The names that commands read, write or remove, and some that they do not.
const NAMES: [&str; 31] = [
    "report.json",
    "results.json",
    "manifest.json",
    "inputs.json",
    "files.json",
    "report.html",
    "runs.csv",
    "runs.parquet",
    "summary.csv",
    "prediction.json",
    "report.part",
    "series",
    "series/a.csv",
    "series/minrtt-cubic-seed1.csv",
    "timeline",
    "timeline/a.json",
    "timeline/minrtt-cubic-seed1.json",
    "tables",
    "tables/a-b.csv",
    "tables/a-b.tex",
    "tables/a-b.part",
    "runs",
    "runs/a.csv",
    "kept",
    "kept/virtual-time.jsonl",
    "kept/virtual-time.part",
    "shard.json",
    "frontier.json",
    "frontier.part",
    "first-path.json",
    ".unfinished-0",
];

/// Bytes in turn; zeros after the last.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn choose<'c, T>(&mut self, list: &'c [T]) -> &'c T {
        &list[self.next() % list.len()]
    }
}

/// The answer's errors, of `anabranch ARGUMENTS`.
fn ask(arguments: &[&str]) -> String {
    let words = std::iter::once(&"anabranch").chain(arguments).map(OsString::from);
    let preflight = |_| -> Box<dyn Driver> { Box::new(Instantly) };
    answer(words, &Drivers { virtual_time: &Instantly, real_time: &Instantly, preflight, cache: None }, false).errors
}

/// Names and contents of what whole results, a shard and its journal have.
fn whole() -> &'static [(String, Vec<u8>)] {
    static WHOLE: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let (file, out) = (home.path().join("x.toml"), home.path().join("out"));
        fs::write(&file, SCENARIO).unwrap();
        let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
        assert_eq!(ask(&["run", file, "--out", out]), "");
        assert_eq!(ask(&["run", file, "--out", &format!("{out}/shard"), "--shard", "1/1"]), "");
        let places = [
            "results.json",
            "manifest.json",
            "inputs.json",
            "files.json",
            "shard/shard.json",
            "shard/kept/virtual-time.jsonl",
        ];
        let read = |name: &str| (name.replace("shard/", ""), fs::read(Path::new(out).join(name)).unwrap());
        let others = [("report.json", REPORT), ("files.json", LIST), ("timeline/a.json", TIMELINE)];
        let others = others.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        places.map(read).into_iter().chain(others).collect()
    })
}

/// A content: whole, cut, with other bytes, or of bytes alone.
fn content(bytes: &mut Bytes<'_>, name: &str) -> Vec<u8> {
    let known: Vec<&Vec<u8>> = whole().iter().filter(|(known, _)| known == name).map(|(_, text)| text).collect();
    let mut text = if known.is_empty() { b"time_s\n0.1\n".to_vec() } else { (*bytes.choose(&known)).clone() };
    match bytes.next() % 4 {
        0 | 1 => {}
        2 => text.truncate(bytes.next() * text.len() / 256),
        _ => {
            for _ in 0..bytes.next() % 8 {
                let at = (bytes.next() * 256 + bytes.next()) % text.len();
                text[at] = bytes.next() as u8;
            }
        }
    }
    text
}

/// Puts one name into `theirs`; a name that cannot be made there is left out.
fn put(bytes: &mut Bytes<'_>, theirs: &Path, mine: &Path) {
    let name = *bytes.choose(&NAMES);
    let place = theirs.join(name);
    if place.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|folder| !folder.starts_with(theirs)) {
        return;
    }
    let _ = fs::create_dir_all(place.parent().unwrap());
    let _ = match bytes.next() % 10 {
        0 => symlink(mine.join("a.csv"), place),
        1 => symlink(mine, place),
        2 => symlink("../mine/b.json", place),
        3 => fs::hard_link(mine.join("c.tex"), place),
        4 => fs::create_dir(place),
        5 => nix::unistd::mkfifo(&place, nix::sys::stat::Mode::S_IRWXU).map_err(Into::into),
        6 => File::create_new(place).and_then(|file| file.set_len(1 << 40)),
        _ => File::create_new(&place).and_then(|_| fs::write(place, content(bytes, name))),
    };
}

/// Everything in `folder`, with its content and permissions.
fn listed(folder: &Path) -> Vec<(PathBuf, String, u32)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let found = path.symlink_metadata().unwrap();
            if found.is_dir() {
                folders.push(path.clone());
            }
            all.push((path.clone(), fs::read_to_string(&path).unwrap_or_default(), found.permissions().mode()));
        }
    }
    all.sort();
    all
}

/// Makes a folder from `bytes` and lets commands use it; what lies outside stays as it was.
///
/// # Panics
/// It does not.
pub fn play(bytes: &[u8]) {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let (theirs, mine, file) = (home.join("theirs"), home.join("mine"), home.join("x.toml"));
    fs::create_dir(&theirs).unwrap();
    fs::create_dir_all(mine.join("deep")).unwrap();
    for name in ["a.csv", "b.json", "c.tex", "deep/d.csv"] {
        fs::write(mine.join(name), "mine").unwrap();
    }
    fs::write(&file, SCENARIO).unwrap();
    let before = listed(&mine);
    let mut bytes = Bytes(bytes);
    for _ in 0..bytes.next() % 24 {
        put(&mut bytes, &theirs, &mine);
    }
    let (out, scenario) = (theirs.to_str().unwrap(), file.to_str().unwrap());
    for _ in 0..1 + bytes.next() % 3 {
        match bytes.next() % 5 {
            0 => ask(&["report", out]),
            1 => ask(&["run", scenario, "--out", out]),
            4 => ask(&["rerun", out]),
            2 => ask(&["run", scenario, "--out", out, "--shard", "1/1"]),
            _ => ask(&["merge", out, "--out", out]),
        };
        assert_eq!(listed(&mine), before);
    }
    let mut names: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["mine", "theirs", "x.toml"]);
}
