//! `docs/lab/promises.md`: each promise has a test that exists, and each test of what strangers send stands beside a promise.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of the tests in a file.
fn tests_in(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let is_python = file.extension().is_some_and(|extension| extension == "py");
    let (mark, word) = if is_python { ("\n\n\n", "def ") } else { ("#[test]", "fn ") };
    let bodies = text.split(mark).skip(1);
    let name = |body: &str| Some(body.split_once(word)?.1.split_once('(')?.0.to_owned());
    bodies.filter_map(name).filter(|name| !is_python || name.starts_with("test_")).collect()
}

/// The rows `promise | test` of the page: the promise, and each file with a test.
fn promises(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let tables = page.split("| promise | test |\n|---|---|\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [promise, tests] = cells[..] else { panic!("no two cells: {line}") };
        let words: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(words.len().is_multiple_of(2), "a file and a test, each in backticks: {line}");
        let pairs = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()));
        (promise.trim().to_owned(), pairs.collect())
    };
    rows.map(row).collect()
}

#[test]
fn every_promise_has_a_test_and_every_test_of_strangers_a_promise() {
    let page = fs::read_to_string(root().join("docs/lab/promises.md")).unwrap();
    let promises = promises(&page);
    assert!(promises.len() > 10, "{} promises were read", promises.len());
    let mut named = BTreeSet::new();
    for (promise, tests) in &promises {
        assert!(!tests.is_empty(), "without a test: {promise}");
        for (file, test) in tests {
            assert!(tests_in(&root().join(file)).contains(test), "{file} has no test {test}: {promise}");
            named.insert((file.clone(), test.clone()));
        }
    }
    let of_strangers = [
        "crates/cli/tests/hostile_folders.rs",
        "crates/cli/tests/hostile_files.rs",
        "crates/report/tests/page/hostile.rs",
        "python/tests/test_hostile.py",
    ];
    for file in of_strangers {
        for test in tests_in(&root().join(file)) {
            assert!(
                named.contains(&(file.to_owned(), test.clone())),
                "docs/lab/promises.md has no promise for {file}: {test}"
            );
        }
    }
}
