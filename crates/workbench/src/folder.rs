//! Directories whose content may be a stranger's: names in them are never followed.

use crate::failure::Failure;
use crate::input::{Limit, check_regular, text_of};
use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, FileType, Metadata, OpenOptions};
use cap_tempfile::TempFile;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A directory that is held open.
///
/// The user names it, and links on the way to it are the user's. A name in it is one component; a link of that name is refused,
/// or replaced as a whole.
pub struct Folder {
    dir: Dir,
    path: PathBuf,
}

impl Folder {
    /// Opens the directory that the user named.
    pub fn open(path: &Path) -> io::Result<Self> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self { dir: Dir::open_ambient_dir(named, ambient_authority())?, path: path.to_owned() })
    }

    /// The same, made if need be, with those around it.
    pub fn make(path: &Path) -> Result<Self, Failure> {
        let made = Dir::create_ambient_dir_all(path, ambient_authority()).and_then(|()| Self::open(path));
        made.map_err(|error| Failure::unwritable(path, &error))
    }

    /// The directory around `file`, and the name of `file` in it.
    pub fn around(file: &Path) -> io::Result<(Self, &OsStr)> {
        let name =
            file.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is no name of a file"))?;
        Ok((Self::open(file.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Opens the directory `name` in it.
    pub fn inner(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        self.refuse_link(name)?;
        Ok(Self { dir: self.dir.open_dir_nofollow(name)?, path: self.path.join(name) })
    }

    /// The same, made if need be.
    pub fn make_inner(&self, name: &str) -> Result<Self, Failure> {
        let made = match self.dir.create_dir(name) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => self.inner(name),
        };
        made.map_err(|error| Failure::unwritable(&self.path.join(name), &error))
    }

    /// The same for the user alone: refused if it is another user's, or others may write in it.
    pub fn make_own(&self, name: &str) -> io::Result<Self> {
        match self.dir.create_dir_with(name, &private()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let own = self.inner(name)?;
        if is_private(&own.dir.dir_metadata()?) { Ok(own) } else { Err(ErrorKind::PermissionDenied.into()) }
    }

    /// Path of the folder, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kind of what is called `name`; of a link, that it is one.
    pub fn kind(&self, name: impl AsRef<OsStr>) -> Option<FileType> {
        Some(self.dir.symlink_metadata(name.as_ref()).ok()?.file_type())
    }

    /// The length of the regular file `name` in bytes, and when it was last written.
    pub fn content(&self, name: impl AsRef<OsStr>) -> Option<(u64, SystemTime)> {
        let file = self.dir.symlink_metadata(name.as_ref()).ok().filter(Metadata::is_file)?;
        Some((file.len(), file.modified().ok()?.into_std()))
    }

    /// The names in it, in order.
    pub fn names(&self) -> io::Result<Vec<PathBuf>> {
        let names = self.dir.entries()?.map(|entry| Ok(PathBuf::from(entry?.file_name())));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// Opens a regular file for reading.
    pub fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        self.refuse_link(name)?;
        // A pipe without a writer must not keep us waiting.
        let options = OpenOptions::new().read(true).follow(FollowSymlinks::No).nonblock(true).clone();
        check_regular(self.dir.open_with(name, &options)?.into_std())
    }

    /// The text of a regular file, within `limit` if `used` bytes of that are used already.
    pub fn read_within(&self, limit: Limit, used: u64, name: impl AsRef<OsStr>) -> io::Result<String> {
        text_of(self.file(name)?, limit, used)
    }

    /// Writes beside `name` first, so that an interrupted command never leaves half of a file; then takes its place. A file that
    /// was there is replaced and never written to: it may have other names.
    pub fn write_with(
        &self,
        name: impl AsRef<OsStr>,
        fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.replace(name.as_ref(), |sink| fill(sink))
    }

    /// The same, on the disk before it takes its place.
    pub fn write_durably(
        &self,
        name: impl AsRef<OsStr>,
        fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.replace(name.as_ref(), |sink| {
            fill(sink)?;
            sink.flush()?;
            sink.get_ref().as_file().sync_data()
        })
    }

    fn replace(
        &self,
        name: &OsStr,
        fill: impl FnOnce(&mut BufWriter<TempFile<'_>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let write = || {
            self.refuse_other(name)?;
            let mut sink = BufWriter::new(TempFile::new(&self.dir)?);
            fill(&mut sink)?;
            sink.into_inner().map_err(io::IntoInnerError::into_error)?.replace(name)
        };
        write().map_err(|error| Failure::unwritable(&self.path.join(name), &error))
    }

    /// The same of content that is there.
    pub fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.write_with(name, |sink| sink.write_all(content.as_ref()))
    }

    /// Makes the file `name`, in the place of one that is there.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        self.refuse_other(name)?;
        self.remove(name)?;
        Ok(self.dir.open_with(name, OpenOptions::new().write(true).create_new(true))?.into_std())
    }

    /// Opens the file `name` for writing at its end; makes it if need be. One with other names is refused: it may be another's.
    pub fn append(&self, name: &str) -> io::Result<File> {
        self.refuse_other(name.as_ref())?;
        let options = OpenOptions::new().append(true).create(true).follow(FollowSymlinks::No).nonblock(true).clone();
        let file = self.dir.open_with(name, &options)?;
        match file.metadata()?.nlink() {
            1 => check_regular(file.into_std()),
            _ => Err(io::Error::new(ErrorKind::InvalidInput, "it has several names (hard links)")),
        }
    }

    /// Removes the file or link `name`, if it is there.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match self.dir.remove_file_or_symlink(name.as_ref()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes the directory `name` unless something is in it.
    pub fn remove_empty(&self, name: &str) {
        let _ = self.dir.remove_dir(name);
    }

    /// Moves the file `name` to the same name in `to`.
    pub fn move_to(&self, to: &Self, name: &OsStr) -> io::Result<()> {
        to.refuse_other(name)?;
        self.dir.rename(name, &to.dir, name)
    }

    fn refuse_link(&self, name: &OsStr) -> io::Result<()> {
        match self.kind(name) {
            Some(kind) if kind.is_symlink() => {
                Err(io::Error::new(ErrorKind::InvalidInput, "it is a symbolic link, which is not followed here"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a name that is there and is no regular file.
    pub fn refuse_other(&self, name: &OsStr) -> io::Result<()> {
        self.refuse_link(name)?;
        match self.kind(name) {
            Some(kind) if !kind.is_file() => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
            _ => Ok(()),
        }
    }
}

/// Mode of a directory that only its user reads.
#[cfg(unix)]
fn private() -> DirBuilder {
    use cap_std::fs::DirBuilderExt;
    let mut private = DirBuilder::new();
    private.mode(0o700);
    private
}

#[cfg(not(unix))]
fn private() -> DirBuilder {
    DirBuilder::new()
}

/// Whether the directory is this user's, and no other user may write to it.
#[cfg(unix)]
fn is_private(metadata: &Metadata) -> bool {
    use cap_std::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_private(_: &Metadata) -> bool {
    true
}
