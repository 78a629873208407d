//! `anabranch reproduce`: verdicts, and what is kept.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;

/// The output of the program: the runs are real.
fn output(arguments: &[&str]) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = command.args(arguments).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

#[test]
fn an_item_has_verdicts_and_a_second_call_makes_no_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let command = ["reproduce", "fdps", "a1", "--quick", "--format", "json", "--out", out];
    let first = output(&command);
    let document: Value = serde_json::from_str(&first).unwrap();
    let item = &document["papers"][0]["items"][0];
    assert_eq!((&document["papers"][0]["key"], &item["id"]), (&"fdps".into(), &"a1".into()));
    let verdicts = ["reproduces", "direction only", "differs", "not specified"];
    let claims = item["claims"].as_array().unwrap();
    assert!(!claims.is_empty());
    for claim in claims {
        assert!(verdicts.contains(&claim["verdict"].as_str().unwrap()), "{claim}");
        assert!(claim["verdict"] == "not specified" || claim["ours"].as_str().unwrap().contains("n = 3"), "{claim}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("reproduction.json")).unwrap(), first);
    assert!(fs::read_to_string(folder.path().join("runs/fdps-a1.csv")).unwrap().lines().count() > 3);
    let kept = folder.path().join("kept/virtual-time.jsonl");
    let lines = fs::read_to_string(&kept).unwrap().lines().count();
    assert_eq!(output(&command), first);
    assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), lines, "runs were made again");
}

/// The throughput of OCPS's figure 6 is of the runs of its figure 5.
#[test]
fn items_that_share_runs_make_them_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let mut lines = Vec::new();
    for figure in ["fig5", "fig6"] {
        output(&["reproduce", "ocps", figure, "--quick", "--repeat", "1", "--out", out]);
        lines.push(fs::read_to_string(folder.path().join("kept/virtual-time.jsonl")).unwrap().lines().count());
    }
    assert_eq!(lines[0], lines[1]);
}
