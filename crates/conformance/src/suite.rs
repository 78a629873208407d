//! The scripts of the suite.

use crate::engine::EngineHost;
use crate::play::play;
use crate::script::Script;
use std::fs;
use std::path::{Path, PathBuf};

/// The file extension of scripts.
const EXTENSION: &str = "script";

/// The suite's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}

/// The files of all scripts below `root`, relative to it, in order.
///
/// # Errors
/// A directory cannot be read.
pub fn files(root: &Path) -> std::io::Result<Vec<String>> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
                let name = path.strip_prefix(root).unwrap_or(&path);
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the script `file` below `root`.
///
/// # Errors
/// It cannot be read, or a word of it is wrong.
pub fn load(root: &Path, file: &str) -> Result<Script, String> {
    let text = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    Script::parse(file, &text).map_err(|error| error.to_string())
}

/// Plays a script against the engine; returns the end of the exchange, one line each.
///
/// # Errors
/// The line that was not followed.
pub fn on_the_engine(script: &Script) -> Result<Vec<String>, String> {
    let mut host = EngineHost::new(script).map_err(|error| format!("{}: {error}", script.file))?;
    play(script, &mut host).map_err(|failure| failure.to_string())
}

/// Reads all scripts below `root`.
///
/// # Errors
/// One cannot be read.
pub fn all(root: &Path) -> Result<Vec<Script>, String> {
    let files = files(root).map_err(|error| format!("{}: {error}", root.display()))?;
    files.iter().map(|file| load(root, file)).collect()
}
