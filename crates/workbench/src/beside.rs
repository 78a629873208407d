//! Files that are written beside their place first.

use std::path::{Component, Path, PathBuf};

/// How the name of the directory beside begins.
pub const BESIDE: &str = ".unfinished-";

/// Where a file will be that is written beside first; any other stays where it is.
pub fn meant(file: &Path) -> PathBuf {
    let is_beside = |part: &Component<'_>| part.as_os_str().to_string_lossy().starts_with(BESIDE);
    file.components().filter(|part| !is_beside(part)).collect()
}
