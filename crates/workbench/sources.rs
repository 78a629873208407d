// Digests of source files. The build scripts of the workbench, of the command and of the playground's module share it, by links.

use std::fs;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Digest of the sources of all crates but those `beside`, of `more`, and of the versions of what they use; of a packed crate, which
/// takes the others from a registry, the versions say all.
pub fn digest(own: &Path, root: &Path, beside: &[&str], more: &[PathBuf]) -> u128 {
    let crates = entries(&root.join("crates")).into_iter().filter(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        folder.is_dir() && !beside.contains(&name.as_str())
    });
    let locked = [root, own].map(|folder| folder.join("Cargo.lock"));
    let mut files: Vec<PathBuf> = locked.into_iter().filter(|file| file.is_file()).take(1).collect();
    files.extend_from_slice(more);
    files.iter().for_each(|file| println!("cargo:rerun-if-changed={}", file.display()));
    for folder in crates {
        println!("cargo:rerun-if-changed={}", folder.join("src").display());
        sources(&folder.join("src"), &mut files);
    }
    let mut digest = Xxh3::new();
    for file in files {
        let text = fs::read(&file).expect("a source file can be read");
        // The length keeps the end of one file apart from the beginning of the next.
        digest.update(&(text.len() as u64).to_le_bytes());
        digest.update(&text);
    }
    digest.digest128()
}

/// Crates that the playground's module does not use.
const BESIDE_MODULE: [&str; 9] =
    ["adversary", "carrier", "cli", "conformance", "lab", "link", "observer", "py", "workbench"];

/// The digest of the playground's module, as 32 digits; empty outside a checkout, where the module cannot be made.
pub fn module(own: &Path, root: &Path) -> String {
    let presets = root.join("crates/playground/presets");
    if !presets.is_dir() {
        return String::new();
    }
    let assets = root.join("crates/report/assets");
    let mut texts = [entries(&presets), entries(&root.join("scenarios")), entries(&assets)].concat();
    texts.retain(|path| path.is_file());
    format!("{:032x}", digest(own, root, &BESIDE_MODULE, &texts))
}

/// Adds every file below a folder, by name.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() { sources(&path, files) } else { files.push(path) }
    }
}

/// The entries of a folder, by name.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
