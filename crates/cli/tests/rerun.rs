//! Results that say what ran, and come out again.

#[allow(dead_code, reason = "other tests need the rest")]
mod common;

use anabranch_cli::Answer;
use common::{ask, output};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIO: &str = r#"
name = "a recorded path"
repeat = 2
duration = "1s"
[connection]
scheduler = { kind = "blest", delta = 0.5 }
congestion = "cubic(beta=0.5)"
[[path]]
name = "a"
trace = "a.trace"
delay = "10ms"
loss = "1%"
[[path]]
name = "b"
rate = "4mbit"
delay = "20ms"
"#;

/// The results of the scenario, which lie beside it.
struct Study {
    home: tempfile::TempDir,
}

impl Study {
    fn new(options: &[&str]) -> Self {
        let study = Self { home: tempfile::tempdir().unwrap() };
        fs::write(study.path("mine.toml"), SCENARIO).unwrap();
        fs::write(study.path("a.trace"), "1\n2\n3\n").unwrap();
        let (file, out) = (study.text("mine.toml"), study.text("results"));
        output(&[&["run", file.as_str(), "--out", &out], options].concat());
        study
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }

    /// Changes one document of the results.
    fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut document = self.json(name);
        change(&mut document);
        fs::write(self.path(name), serde_json::to_string_pretty(&document).unwrap() + "\n").unwrap();
    }

    fn rerun(&self) -> Answer {
        ask(&["rerun", &self.text("results")])
    }
}

#[test]
fn every_parameter_that_is_no_default_is_in_the_name() {
    let study = Study::new(&[]);
    let runs = study.json("results/results.json")["runs"].clone();
    assert_eq!(
        (&runs[0]["scheduler"], &runs[0]["congestion"]),
        (&json!("blest(delta=0.5)"), &json!("cubic(beta=0.5)"))
    );
    let alone = runs.as_array().unwrap().iter().find(|run| run["scheduler"] == "single:a").unwrap();
    assert_eq!(alone["congestion"], "cubic(beta=0.5)");
    // The default, written out, is no parameter.
    let schedulers = ["--scheduler", "blest(delta=0.001),minrtt", "--format", "csv"];
    let text = output(&[&["run", &study.text("mine.toml")][..], &schedulers].concat());
    assert!(text.contains("\nblest,") && !text.contains("delta"), "{text}");
}

#[test]
fn results_come_out_again_byte_for_byte() {
    let study = Study::new(&["--scheduler", "minrtt,daps(round=4)", "--sweep", "path.b.delay=10ms,20ms"]);
    let files = study.json("results/manifest.json")["scenario"]["files"].clone();
    assert_eq!(files["a.trace"], "14c5e74c4b96ccef41cd94db73a9ec3348038ac094feca4fd897cecffa07cdae");
    // Neither the scenario nor the trace is needed any more.
    fs::remove_file(study.path("mine.toml")).unwrap();
    fs::remove_file(study.path("a.trace")).unwrap();
    let Answer { output, errors, code } = study.rerun();
    assert_eq!((errors.as_str(), code), ("", 0));
    assert_eq!(output, "16 runs: results.json comes out again, byte for byte.\n");
    let again = study.text("again");
    assert_eq!(ask(&["rerun", &study.text("results"), "--out", &again]).code, 0);
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&study.path("again")), names(&study.path("results")));
    for name in ["results.json", "inputs.json", "runs.csv", "runs.parquet", "summary.csv", "comparisons.csv"] {
        let of = |folder: &str| fs::read(study.path(folder).join(name)).unwrap();
        assert!(of("again") == of("results"), "{name}");
    }
    // Of results that were made again, too.
    assert_eq!(ask(&["rerun", &again]).code, 0);
}

#[test]
fn what_differs_is_said() {
    let study = Study::new(&[]);
    fs::write(study.path("a.trace"), "1\n2\n4\n").unwrap();
    let Answer { output, code, .. } = study.rerun();
    assert!(output.starts_with("a.trace has changed: SHA-256 ") && output.contains("byte for byte"), "{output}");
    assert_eq!(code, 0);

    study.change("results/inputs.json", |inputs| inputs["program"] = json!("0.0.1 abc"));
    let Answer { output, code, .. } = study.rerun();
    assert!(output.contains("are of build 0.0.1 abc, these of build "), "{output}");
    assert_eq!(code, 0);

    study.change("results/results.json", |results| results["runs"][1]["digest"] = json!("f".repeat(32)));
    let Answer { output, errors, code } = study.rerun();
    let run = "Other events: 1 of 6 runs; the first is blest(delta=0.5), cubic(beta=0.5), seed 2.";
    assert!(output.contains(run) && errors.contains("do not come out again"), "{output}{errors}");
    assert_eq!(code, 1);

    // The texts that were kept are what runs.
    study.change("results/inputs.json", |inputs| inputs["whole"]["schedulers"] = json!(["minrtt"]));
    let Answer { output, .. } = study.rerun();
    assert!(
        output.contains("Not made again: 2 of 6 runs") && output.contains("Not in the earlier results: 2"),
        "{output}"
    );
}

#[test]
fn what_cannot_be_made_again_is_refused() {
    let study = Study::new(&[]);
    let refused = |study: &Study| {
        let Answer { output, errors, code } = study.rerun();
        assert_eq!((output.as_str(), code), ("", 2));
        errors.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
    };
    let object = json!([{"name": "Mine", "class": "Mine", "source": "class Mine: pass\n", "state": "{}"}]);
    study.change("results/inputs.json", |inputs| inputs["plug_ins"] = object);
    let said = refused(&study);
    assert!(said.contains("`Mine` of ") && said.contains("anabranch.rerun("), "{said}");
    study.change("results/inputs.json", |inputs| inputs["plug_ins"] = json!([]));
    study.change("results/inputs.json", |inputs| inputs["whole"]["schedulers"] = json!(["misses"]));
    assert!(refused(&study).contains("there is no scheduler \"misses\""));
    fs::remove_file(study.path("results/inputs.json")).unwrap();
    assert!(refused(&study).contains("inputs.json: no such file"));
    let live = Study::new(&["--realtime", "--scheduler", "minrtt"]);
    assert!(refused(&live).contains("followed the clock"));
}
