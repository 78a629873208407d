//! Embeds the ready scenarios, the commit that the program is built from, and a digest of what decides a run's outcome.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use xxhash_rust::xxh3::Xxh3;

/// Crates that show or judge outcomes: no run depends on them. Every other crate may decide one.
const BESIDE_RUNS: [&str; 7] = ["adversary", "cli", "conformance", "observer", "playground", "report", "reproduce"];

fn main() {
    // The folders stand here by links, so that the packed crate has them too; `root` is of a checkout alone.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.join("../..");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (file, folder) in [("scenarios.rs", "scenarios"), ("frontier.rs", "scenarios/frontier")] {
        fs::write(target.join(file), scenario_list(&own.join(folder))).expect("OUT_DIR takes files");
    }
    fs::write(target.join("site.rs"), site_list(&own.join("site"))).expect("OUT_DIR takes files");
    fs::write(target.join("papers.rs"), paper_list(&own.join("papers"))).expect("OUT_DIR takes files");
    println!("cargo:rustc-env=ANABRANCH_ENGINE={:032x}", engine(own, &root));
    if let Some(commit) = git(&root, &["rev-parse", "HEAD"]) {
        println!("cargo:rustc-env=ANABRANCH_COMMIT={commit}");
    }
    // The log of HEAD grows with every commit; HEAD itself only changes with the branch.
    if let Some(log) = git(&root, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}

/// A digest of every source file that decides a run's outcome, with the versions of what they use; of a packed crate, which
/// takes the others from a registry, the versions say all.
fn engine(own: &Path, root: &Path) -> u128 {
    let crates = entries(&root.join("crates")).into_iter().filter(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        folder.is_dir() && !BESIDE_RUNS.contains(&name.as_str())
    });
    let locked = [root, own].map(|folder| folder.join("Cargo.lock"));
    let mut files: Vec<PathBuf> = locked.into_iter().filter(|file| file.is_file()).take(1).collect();
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

/// Adds every file below a folder, by name.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() { sources(&path, files) } else { files.push(path) }
    }
}

/// A Rust array of `(key, files)`, a paper's folder each, in the order of the keys.
fn paper_list(folder: &Path) -> String {
    println!("cargo:rerun-if-changed={}", folder.display());
    let papers = entries(folder).into_iter().filter(|path| path.is_dir());
    let line = |path: PathBuf| {
        let key = path.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        format!("    ({key:?}, {}),\n", scenario_list(&path).trim_end())
    };
    format!("&[\n{}]\n", papers.map(line).collect::<String>())
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A Rust array of `(name, text)`, in the order of the names.
fn scenario_list(folder: &Path) -> String {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = entries(folder);
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    let line = |path: &PathBuf| {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        format!("    ({name:?}, include_str!({:?})),\n", path.to_string_lossy())
    };
    format!("&[\n{}]\n", files.iter().map(line).collect::<String>())
}

/// A Rust array of `(name, bytes)`, in the order of the names.
fn site_list(folder: &Path) -> String {
    println!("cargo:rerun-if-changed={}", folder.display());
    let line = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        format!("    ({name:?}, include_bytes!({:?})),\n", path.to_string_lossy())
    };
    format!("&[\n{}]\n", entries(folder).into_iter().map(line).collect::<String>())
}

/// Git's output; `None` without git or outside a repository.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
