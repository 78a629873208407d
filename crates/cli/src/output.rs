//! Files that the user names one by one; those in a directory are [`Folder`]'s.

use crate::failure::Failure;
use crate::folder::Folder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file for writing from its beginning: a new one in the place of one that is there. A link to a file is refused.
pub fn begin(file: &Path) -> io::Result<File> {
    if is_stream(file) {
        return OpenOptions::new().write(true).open(file);
    }
    let (folder, name) = Folder::around(file)?;
    folder.create(name)
}

/// Writes beside the file first, as [`Folder::write_with`].
pub fn write_with(file: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<(), Failure> {
    let unwritable = |error| Failure::unwritable(file, &error);
    if is_stream(file) {
        return OpenOptions::new().write(true).open(file).and_then(|mut sink| fill(&mut sink)).map_err(unwritable);
    }
    let (folder, name) = Folder::around(file).map_err(unwritable)?;
    folder.write_with(name, fill)
}

/// The same of content that is there.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_with(file, |sink| sink.write_all(content.as_ref()))
}

/// A device, a pipe or a terminal, also behind a link such as `/dev/stdout`: it is written to, and never replaced.
fn is_stream(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir())
}
