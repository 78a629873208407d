//! No file is forgotten: each is a module, and each entry stands in the registry.

#![allow(clippy::disallowed_methods, reason = "tests run on a host with files")]

use std::fs;
use std::path::Path;

/// Name without its ending, and text, of each source file.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut sources: Vec<_> = files.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect();
    sources.sort();
    sources
}

fn text_of<'s>(sources: &'s [(String, String)], name: &str) -> &'s str {
    sources.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str()).unwrap()
}

#[test]
fn every_file_is_a_module() {
    let sources = sources();
    let lib = text_of(&sources, "lib");
    let is_module = |name: &str| lib.lines().any(|line| line.trim_start_matches("pub ") == format!("mod {name};"));
    for (name, _) in sources.iter().filter(|(name, _)| name != "lib") {
        assert!(is_module(name), "src/lib.rs lacks `pub mod {name};`, for src/{name}.rs");
    }
}

#[test]
fn every_entry_is_in_the_registry() {
    let sources = sources();
    let registry = text_of(&sources, "registry");
    for (name, text) in sources.iter() {
        let constants = text.lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(": Entry<"));
        for (constant, _) in constants {
            let path = format!("&crate::{name}::{constant}");
            let is_registered = [',', ')'].iter().any(|end| registry.contains(&format!("coupled({path}{end}")));
            assert!(is_registered, "src/registry.rs lacks `{path}`, the entry of src/{name}.rs");
        }
    }
}
