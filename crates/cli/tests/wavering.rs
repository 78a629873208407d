//! The frontier's part *wavering*.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[test]
fn schedulers_are_compared_over_every_kind_of_wavering_paths() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["compare", "--wavering", "--quick", "--scheduler", "minrtt,blest", "--traffic", "256 KB", "--out", "out"];
    let run = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
        .current_dir(folder.path())
        .args(arguments)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(folder.path().join("out/frontier.json")).unwrap();
    let comparison: Value = serde_json::from_str(&text).unwrap();
    let frontier = &comparison["frontiers"][0];
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in frontier["cells"].as_array().unwrap() {
        *kinds.entry(cell["kind"].as_str().unwrap()).or_default() += 1;
        assert_eq!(cell["part"], "wavering");
    }
    assert_eq!(kinds, BTreeMap::from([("come and go", 6), ("jitter", 6), ("policed", 6), ("steps", 6)]));
    for standing in frontier["standings"].as_array().unwrap() {
        let ratio = standing["by_part"]["wavering"].as_f64().unwrap();
        assert!(ratio > 0.0 && ratio <= 1.0, "{standing}");
    }
}

#[test]
fn it_is_a_grid_of_its_own() {
    let arguments = ["compare", "--wavering", "--grid", "."];
    let run = Command::new(assert_cmd::cargo::cargo_bin!("anabranch")).args(arguments).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("--grid"));
}

#[test]
fn its_path_sets_are_those_that_the_seed_draws() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/wavering/waver.py");
    match Command::new("python3").arg("-B").arg(script).arg("--check").status() {
        Ok(status) => assert!(status.success(), "a file was changed by hand, or waver.py was not run"),
        Err(error) => eprintln!("SKIPPED: python3: {error}"),
    }
}
