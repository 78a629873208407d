//! Files that commands read: never more of them than can be meant.

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::ambient_authority;
use cap_std::fs::OpenOptions;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    mebibytes: u64,
    /// The kind of text that the limit bounds.
    of: &'static str,
}

impl Limit {
    /// So many mebibytes of what `of` says.
    pub const fn of(of: &'static str, mebibytes: u64) -> Self {
        Self { mebibytes, of }
    }

    /// Refuses more.
    pub fn check(self, bytes: u64) -> io::Result<()> {
        let Self { mebibytes, of } = self;
        match bytes > self.bytes() {
            true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("{of} may have {mebibytes} MiB at most"))),
            false => Ok(()),
        }
    }

    /// The limit of all files together.
    pub const fn bytes(self) -> u64 {
        self.mebibytes << 20
    }
}

/// Limit of one scenario file.
pub const SCENARIO: Limit = Limit::of("a scenario file", 4);
/// Limit of all the traces that a scenario names.
pub const TRACES: Limit = Limit::of("the traces of a scenario together", 64);
/// Limit of a page, a rule file or a paper's file.
pub const TEXT: Limit = Limit::of("such a file", 64);
/// Limit of the time series of one run.
pub const SERIES: Limit = Limit::of("a time series", 64);
/// Limit of the documents of a results directory together: more than a million runs leave.
pub const RESULTS: Limit = Limit::of("the documents of a results directory together", 4096);

/// The text of a regular file, within `limit` if `used` bytes of that are used already.
pub fn read_within(limit: Limit, used: u64, file: &Path) -> io::Result<String> {
    text_of(open_regular(file)?, limit, used)
}

/// The rest of `source` as text, under the same limits.
pub fn text_of(source: impl Read, limit: Limit, used: u64) -> io::Result<String> {
    let most = limit.bytes().saturating_sub(used);
    let mut bytes = Vec::new();
    // No further than the first hole of a file, which may be longer than the disk.
    BufReader::new(source.take(most + 1)).read_until(0, &mut bytes)?;
    limit.check(used.saturating_add(bytes.len() as u64))?;
    if bytes.last() == Some(&0) {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("it is no text: byte {} is 0", bytes.len())));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Opens a file that the user or a scenario names: one that has an end, and that never keeps us waiting.
pub fn open_regular(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A pipe without a writer waits for one.
    options.read(true).nonblock(true);
    check_regular(cap_std::fs::File::open_ambient_with(file, &options, ambient_authority())?.into_std())
}

/// Refuses a pipe, a device or a directory: it may have no end.
pub fn check_regular(opened: File) -> io::Result<File> {
    match opened.metadata()?.file_type() {
        kind if kind.is_file() => Ok(opened),
        kind if kind.is_dir() => Err(ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Why a file cannot be read, in words that do not depend on the system.
pub fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or directory".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a directory".into(),
        ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_read_up_to_the_limit_and_not_beyond() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let one = Limit::of("a test", 1);
        // The limit falls into the middle of a character.
        let text = "x".to_owned() + &"µ".repeat(1 << 19);
        fs::write(file.path(), &text).unwrap();
        let refused = read_within(one, 0, file.path()).unwrap_err();
        assert_eq!(refused.to_string(), "a test may have 1 MiB at most");
        fs::write(file.path(), &text[1..]).unwrap();
        assert!(read_within(one, 0, file.path()).is_ok_and(|read| read == text[1..]));
        assert!(read_within(one, 1, file.path()).is_err());
        fs::write(file.path(), "x\0y").unwrap();
        assert!(read_within(one, 0, file.path()).unwrap_err().to_string().contains("byte 2 is 0"));
        fs::write(file.path(), b"\xff").unwrap();
        assert!(read_within(one, 0, file.path()).unwrap_err().to_string().contains("utf-8"));
    }
}
