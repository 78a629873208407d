//! Files that commands leave.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Makes a folder, and those around it.
pub fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, &error))
}

/// Writes beside the file first, so that an interrupted command never leaves half of one.
pub fn write_with(file: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<(), Failure> {
    let beside = file.with_extension("part");
    let written = File::create(&beside).and_then(|sink| {
        let mut sink = BufWriter::new(sink);
        fill(&mut sink)?;
        sink.flush()
    });
    written.and_then(|()| fs::rename(&beside, file)).map_err(|error| {
        let _ = fs::remove_file(&beside);
        Failure::unwritable(file, &error)
    })
}

/// The same of content that is there.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_with(file, |sink| sink.write_all(content.as_ref()))
}
