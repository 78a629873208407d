//! Files that commands leave.

use crate::failure::Failure;
use std::fs;
use std::path::Path;

/// Makes a folder, and those around it.
pub fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, &error))
}

/// Writes beside the file first, so that an interrupted command never leaves half of one.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let beside = file.with_extension("part");
    let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, file));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        Failure::unwritable(file, &error)
    })
}
