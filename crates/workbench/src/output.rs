//! Files that the user names one by one; those in a directory are [`Folder`]'s.

use crate::failure::Failure;
use crate::folder::Folder;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// A file that the user named for writing. A stream (pipe, device, terminal) is open from the beginning and stays so until it is
/// written: a pipe that is closed in between has ended for its reader.
#[derive(Debug)]
pub struct Output<'a> {
    file: &'a Path,
    stream: Option<File>,
}

impl<'a> Output<'a> {
    /// To be done before the work: refuses a pipe that no program reads, a directory and a link.
    pub fn claim(file: &'a Path) -> Result<Self, Failure> {
        let claimed = match is_stream(file) {
            true => open_stream(file).map(Some),
            false => Folder::around(file).and_then(|(folder, name)| folder.refuse_other(name)).map(|()| None),
        };
        let stream = claimed.map_err(|error| Failure::unwritable(file, &error))?;
        Ok(Self { file, stream })
    }

    /// For writing from the beginning: the stream, or a new file in the place of one that is there.
    pub fn begin(self) -> Result<File, Failure> {
        let create = || {
            let (folder, name) = Folder::around(self.file)?;
            folder.create(name)
        };
        self.stream.map_or_else(create, Ok).map_err(|error| Failure::unwritable(self.file, &error))
    }

    /// Writes `content`; beside a file first, as [`Folder::write_with`].
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let unwritable = |error| Failure::unwritable(self.file, &error);
        match self.stream {
            Some(mut stream) => stream.write_all(content.as_ref()).map_err(unwritable),
            None => {
                let (folder, name) = Folder::around(self.file).map_err(unwritable)?;
                folder.write(name, content)
            }
        }
    }
}

/// Writes `content` into `file`, as [`Output`] does.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    Output::claim(file)?.write(content)
}

/// A device, a pipe or a terminal, also behind a link such as `/dev/stdout`: it is written to, and never replaced.
fn is_stream(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Opens a stream without waiting for its reader; writing waits for that as ever.
#[cfg(unix)]
fn open_stream(file: &Path) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use rustix::io::Errno;
    use std::os::unix::fs::OpenOptionsExt;
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let opened = fs::OpenOptions::new().write(true).custom_flags(nonblock).open(file);
    let opened = opened.map_err(|error| match error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) {
        true => io::Error::other("no program reads this pipe"),
        false => error,
    })?;
    fcntl_setfl(&opened, fcntl_getfl(&opened)? - OFlags::NONBLOCK)?;
    Ok(opened)
}

#[cfg(not(unix))]
fn open_stream(file: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).open(file)
}
