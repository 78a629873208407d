//! docs/results.schema.json is the schema of results.

#[allow(dead_code, reason = "other tests need the rest")]
mod common;
#[path = "../../scenario/tests/common/json_schema.rs"]
mod json_schema;

use anabranch_cli::{Answer, Drivers, answer};
use anabranch_run::VirtualTime;
use common::{FakeLab, output};
use json_schema::check;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/results.schema.json")).unwrap()
}

/// Every scenario file in these folders and those in them.
fn scenario_files(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(scenario_files(&[path])),
            false if path.extension().is_some_and(|e| e == "toml") && !is_of_paper(&path) => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}

/// A file that says something of a paper.
fn is_of_paper(path: &Path) -> bool {
    ["claims", "unsaid"].iter().any(|stem| path.file_stem().is_some_and(|found| found == *stem))
}

/// The results that the simulator gives.
fn results(arguments: &[&str]) -> Value {
    let words = ["anabranch", "run"].iter().chain(arguments).chain(&["--format", "json"]).map(|word| word.into());
    let drivers = Drivers {
        virtual_time: &VirtualTime::default(),
        real_time: &FakeLab,
        preflight: |_| Box::new(FakeLab),
        cache: None,
    };
    let Answer { output, errors, code } = answer(words, &drivers, false);
    assert_eq!((errors.as_str(), code), ("", 0), "{arguments:?}");
    serde_json::from_str(&output).unwrap()
}

#[test]
fn the_results_of_every_scenario_that_ships_are_as_the_schema_says() {
    let (schema, root) = (schema(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut checked = 0;
    for file in scenario_files(&[root.join("scenarios"), root.join("papers")]) {
        let name = file.to_str().unwrap();
        let text = output(&["check", name]);
        // The kernels of the others are a fake here; the next test has one.
        if ["sender", "receiver"].iter().any(|side| text.contains(&format!("{side} = \"linux\""))) {
            continue;
        }
        // A path must appear before the end.
        let mut paths = text.split("[[path]]").skip(1);
        let appears = paths.any(|path| path.lines().any(|line| line.starts_with("start ")));
        let duration = if appears { "5s" } else { "300ms" };
        let short = ["--repeat", "1", "--set", "warmup=0s", "--set", "start=0s", "--duration", duration];
        let results = results(&[&[name][..], &short].concat());
        check(&schema, &results, name).unwrap_or_else(|wrong| panic!("{wrong}"));
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn findings_sweeps_and_real_time_are_as_the_schema_says_too() {
    let schema = schema();
    for arguments in [
        &["wifi-lte", "--sweep", "path.lte.delay=10ms,20ms", "--repeat", "3", "--duration", "1s"][..],
        &["wifi-lte", "--scheduler", "minrtt,blest", "--repeat", "3", "--duration", "1s", "--set", "recv_buffer=30KB"],
    ] {
        check(&schema, &results(arguments), "").unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    let live: Value = serde_json::from_str(&output(&["run", "wifi-lte", "--realtime", "--format", "json"])).unwrap();
    assert!(live["runs"][0]["live"].is_object());
    check(&schema, &live, "").unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// A key that is missing, or that the schema does not know, is found.
#[test]
fn other_documents_are_not() {
    let schema = schema();
    let whole = results(&["wifi-lte", "--repeat", "1", "--duration", "500ms"]);
    assert_eq!(check(&schema, &whole, ""), Ok(()));
    assert_eq!(whole["diagnosis"], Value::Array(Vec::new()));
    for key in whole.as_object().unwrap().keys() {
        let mut part = whole.clone();
        part.as_object_mut().unwrap().remove(key);
        assert!(check(&schema, &part, "").is_err(), "{key}");
        let mut wrong = whole.clone();
        wrong[key] = Value::Bool(true);
        assert!(check(&schema, &wrong, "").is_err(), "{key}");
    }
    let mut more = whole.clone();
    more["runs"][0]["other"] = Value::Null;
    assert!(check(&schema, &more, "").is_err());
}
