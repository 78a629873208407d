//! Files for the tests.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::disallowed_methods, reason = "tests run on a host with files")]

use anabranch_scenario::{Diagnostic, Resolver};
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files with mistakes.
pub fn data() -> PathBuf {
    root().join("tests/data/scenario")
}

/// The TOML files of a folder, by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Files from a folder.
pub struct Folder(pub PathBuf);

impl Resolver for Folder {
    fn read(&self, file: &str) -> Result<String, String> {
        // Without the system's message, which differs between systems.
        fs::read_to_string(self.0.join(file)).map_err(|_| "no such file".into())
    }
}

/// As on the command line, without colours.
pub fn rendered(diagnostics: &[Diagnostic]) -> String {
    let handler =
        GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(120).with_links(false);
    let mut text = String::new();
    for diagnostic in diagnostics {
        handler.render_report(&mut text, diagnostic).unwrap();
        text.push('\n');
    }
    // Trailing blanks are invisible in a review.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
