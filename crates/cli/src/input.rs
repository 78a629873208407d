//! Files that commands read: never more of them than can be meant.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    mebibytes: u64,
    /// Of what.
    of: &'static str,
}

impl Limit {
    /// Of all files together.
    pub const fn bytes(self) -> u64 {
        self.mebibytes << 20
    }
}

/// Of one scenario file.
pub const SCENARIO: Limit = Limit { mebibytes: 4, of: "a scenario file" };
/// Of all the traces that a scenario names.
pub const TRACES: Limit = Limit { mebibytes: 64, of: "the traces of a scenario together" };

/// The text of a file, within `limit` if `used` bytes of that are used already.
pub fn read_within(limit: Limit, used: u64, file: &Path) -> io::Result<String> {
    let most = limit.bytes().saturating_sub(used);
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let Limit { mebibytes, of } = limit;
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("{of} may have {mebibytes} MiB at most")));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// A file that has an end: a device may have none.
pub fn open_regular(file: &Path) -> io::Result<File> {
    let opened = File::open(file)?;
    match opened.metadata()?.is_file() {
        true => Ok(opened),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The text of a file that has an end.
pub fn read_regular(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(file)?.read_to_string(&mut text)?;
    Ok(text)
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
        let one = Limit { mebibytes: 1, of: "a test" };
        // The limit falls into the middle of a character.
        let text = "x".to_owned() + &"µ".repeat(1 << 19);
        fs::write(file.path(), &text).unwrap();
        let refused = read_within(one, 0, file.path()).unwrap_err();
        assert_eq!(refused.to_string(), "a test may have 1 MiB at most");
        fs::write(file.path(), &text[1..]).unwrap();
        assert!(read_within(one, 0, file.path()).is_ok_and(|read| read == text[1..]));
        assert!(read_within(one, 1, file.path()).is_err());
        fs::write(file.path(), b"\xff").unwrap();
        assert!(read_within(one, 0, file.path()).unwrap_err().to_string().contains("utf-8"));
    }
}
