//! The examples of the README and of the guide work as they stand.

use assert_cmd::Command;
use std::path::Path;

/// A page of the repository.
fn page(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The commands in a page's ```console blocks, without the prompt.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).collect()
}

#[test]
fn every_command_succeeds_and_prints() {
    for (name, least) in [("README.md", 5), ("docs/guide.md", 3)] {
        let page = page(name);
        let examples = examples(&page);
        assert!(examples.len() >= least, "{name}: {examples:?}");
        for example in examples {
            let mut words = example.split_whitespace();
            assert_eq!(words.next(), Some("anabranch"), "{example}");
            let ran = Command::cargo_bin("anabranch").expect("the binary").args(words).assert().success();
            assert!(!ran.get_output().stdout.is_empty(), "{example}");
        }
    }
}

/// Readers give a README some minutes: 12,000 characters.
#[test]
fn the_readme_is_short() {
    let length = page("README.md").chars().count();
    assert!(length <= 12_000, "README.md has {length} characters");
}

#[test]
fn the_scenario_is_valid() {
    let text = page("README.md");
    let toml = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("readme.toml");
    std::fs::write(&file, toml).expect("it can be written");
    Command::cargo_bin("anabranch").expect("the binary").arg("check").arg(&file).assert().success();
}
