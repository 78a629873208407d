//! Embeds the ready scenarios, the commit that the program is built from, and a digest of what decides a run's outcome.

use sources::entries;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[allow(dead_code, reason = "the command's build script has the other digest")]
mod sources;

/// Crates that show or judge outcomes: no run depends on them. Every other crate may decide one.
const BESIDE_RUNS: [&str; 8] =
    ["adversary", "cli", "conformance", "observer", "playground", "report", "reproduce", "workbench"];

fn main() {
    // The folders stand here by links, so that the packed crate has them too; `root` is of a checkout alone.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.join("../..");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let folders =
        [("scenarios.rs", "scenarios"), ("frontier.rs", "scenarios/frontier"), ("wavering.rs", "scenarios/wavering")];
    for (file, folder) in folders {
        fs::write(target.join(file), scenario_list(&own.join(folder))).expect("OUT_DIR takes files");
    }
    fs::write(target.join("papers.rs"), paper_list(&own.join("papers"))).expect("OUT_DIR takes files");
    println!("cargo:rustc-env=ANABRANCH_ENGINE={:032x}", sources::digest(own, &root, &BESIDE_RUNS, &[]));
    if let Some(commit) = git(&root, &["rev-parse", "HEAD"]) {
        println!("cargo:rustc-env=ANABRANCH_COMMIT={commit}");
    }
    // The log of HEAD grows with every commit; HEAD itself only changes with the branch.
    if let Some(log) = git(&root, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=sources.rs");
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

/// Git's output; `None` without git or outside a repository.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
