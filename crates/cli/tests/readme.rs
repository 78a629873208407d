//! The examples of the README work as they stand.

use assert_cmd::Command;
use std::path::Path;

/// The commands in the README's ```console blocks, without the prompt.
fn examples() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).expect("the README is there");
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

#[test]
fn every_command_succeeds_and_prints() {
    let examples = examples();
    assert!(examples.len() >= 5, "found {examples:?}");
    for example in examples {
        let mut words = example.split_whitespace();
        assert_eq!(words.next(), Some("anabranch"), "{example}");
        let ran = Command::cargo_bin("anabranch").expect("the binary").args(words).assert().success();
        assert!(!ran.get_output().stdout.is_empty(), "{example}");
    }
}

#[test]
fn the_scenario_is_valid() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).expect("the README is there");
    let toml = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("readme.toml");
    std::fs::write(&file, toml).expect("it can be written");
    Command::cargo_bin("anabranch").expect("the binary").arg("check").arg(&file).assert().success();
}
