//! Applies each mutation of `tests/conformance/mutations.toml` to a copy of the workspace, builds the player of
//! scripts, and checks that every script fails that the mutation names.
//!
//! `cargo run -p anabranch-conformance --bin mutations [-- WORD…]`: only mutations whose file, text or scripts contain
//! one of the words.

use anabranch_conformance::mutation::{Mutation, Mutations};
use anabranch_conformance::script::EngineWord;
use anabranch_conformance::suite;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The parts that the copy needs: all members, because cargo reads their manifests.
const COPIED: [&str; 6] = ["Cargo.toml", "Cargo.lock", "crates", "benches", "examples", "tests/conformance"];
/// A mutation may make the engine run for ever: this limit catches it.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let root = suite::root();
    let workspace = root.join("../..");
    let mutations = Mutations::load(&root)?;
    let scripts = suite::all(&root)?;
    let scratch = workspace.join("target/mutations");
    copy_all(&workspace, &scratch)?;
    let mut good = true;
    for (mutation, number) in mutations.mutation.iter().zip(1..) {
        let Mutation { file, find, replace, scripts: named } = mutation;
        let text = format!("{file} {find} {} ", named.join(" "));
        if !words.is_empty() && !words.iter().any(|word| text.contains(word.as_str())) {
            continue;
        }
        let number: u32 = number;
        let begun = Instant::now();
        let caught = caught(&scratch, file, find, replace)?;
        println!("{number} {file}: {:.0} s", begun.elapsed().as_secs_f64());
        for script in named {
            // A script with `engine fails` fails without the mutation, and proves nothing before the repair.
            let waits = scripts.iter().any(|one| one.file == *script && matches!(one.engine, EngineWord::Fails(_)));
            match (caught.contains(script), waits) {
                (true, false) => println!("    caught by {script}"),
                (_, true) => println!("    waits for a repair: {script}"),
                (false, false) => {
                    good = false;
                    println!("    NOT CAUGHT by {script}");
                }
            }
        }
        let passes =
            |script: &&String| scripts.iter().any(|one| one.file == **script && one.engine == EngineWord::Passes);
        let others = caught.iter().filter(|script| !named.contains(script)).filter(passes);
        others.for_each(|script| println!("    and by {script}"));
    }
    Ok(good)
}

/// The scripts that fail with a mutation in place.
fn caught(scratch: &Path, file: &str, find: &str, replace: &str) -> Result<Vec<String>, String> {
    let path = scratch.join(file);
    let original = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
    if original.matches(find).count() != 1 {
        return Err(format!("{file}: `{find}` does not stand there once"));
    }
    write(&path, &original.replace(find, replace))?;
    let played = build(scratch).and_then(|()| play(scratch));
    write(&path, &original)?;
    played.map_err(|why| format!("{file}: `{find}` → `{replace}`: {why}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn build(scratch: &Path) -> Result<(), String> {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--offline", "-p", "anabranch-conformance", "--bin", "play"])
        .current_dir(scratch)
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .env("CARGO_INCREMENTAL", "1")
        // The copy is built often and runs for milliseconds.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if built.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&built.stderr).into_owned()) }
}

/// Plays each script alone, so that an endless one stops no other.
fn play(scratch: &Path) -> Result<Vec<String>, String> {
    let root = scratch.join("tests/conformance");
    let files = suite::files(&root).map_err(|error| error.to_string())?;
    let mut failed = Vec::new();
    for file in files {
        let mut player = Command::new(scratch.join("target/debug/play"))
            .arg(root.join(&file))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the player: {error}"))?;
        let begun = Instant::now();
        let passed = loop {
            match player.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status.success(),
                None if begun.elapsed() > PATIENCE => {
                    player.kill().and_then(|()| player.wait()).map_err(|error| error.to_string())?;
                    break false;
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if !passed {
            failed.push(file);
        }
    }
    Ok(failed)
}

/// Copies the files that changed since the last copy, so that cargo rebuilds nothing else.
fn copy_all(workspace: &Path, scratch: &Path) -> Result<(), String> {
    for name in COPIED {
        copy(&workspace.join(name), &scratch.join(name)).map_err(|error| format!("copying {name}: {error}"))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &PathBuf) -> std::io::Result<()> {
    if from.is_file() {
        let text = fs::read(from)?;
        if fs::read(to).ok().as_ref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap_or(to))?;
            fs::write(to, text)?;
        }
        return Ok(());
    }
    let names: Vec<_> =
        fs::read_dir(from)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    // Files removed from the workspace are removed from the copy.
    for entry in fs::read_dir(to).into_iter().flatten().flatten().filter(|entry| !names.contains(&entry.file_name())) {
        if entry.path().is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
    }
    names.iter().try_for_each(|name| copy(&from.join(name), &to.join(name)))
}
