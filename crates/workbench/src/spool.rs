//! The values of many runs, beyond what memory shall hold.

use crate::beside::meant;
use anabranch_run::{Runs, Store};
use std::env;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{SpooledTempFile, spooled_tempfile_in};

/// Bytes that are held in memory; more of them lie in a file.
const MEMORY: usize = 64 << 20;

/// Values in memory, or in a file without a name, which vanishes with the process.
struct Spool {
    file: Mutex<SpooledTempFile>,
    /// Where that file is.
    folder: PathBuf,
}

/// No runs yet; the values of many will lie in a file in `folder`, or where the system has such files.
pub fn spooled(folder: Option<&Path>) -> Runs {
    let folder = folder.map_or_else(env::temp_dir, Path::to_owned);
    Runs::new(Box::new(Spool { file: Mutex::new(spooled_tempfile_in(MEMORY, &folder)), folder }))
}

impl Spool {
    fn file(&self) -> MutexGuard<'_, SpooledTempFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error with the directory, which the user may not have chosen.
    fn with_place(&self, error: io::Error) -> io::Error {
        let place = format!("{error}, in {}", meant(&self.folder).display());
        let is_system = self.folder == env::temp_dir();
        let help = if is_system { "; --out or the variable TMPDIR names another directory" } else { "" };
        io::Error::new(error.kind(), place + help)
    }
}

impl Store for Spool {
    fn put(&self, block: Vec<u8>) -> io::Result<u64> {
        let mut file = self.file();
        let written = file.seek(SeekFrom::End(0)).and_then(|place| file.write_all(&block).map(|()| place));
        written.map_err(|error| self.with_place(error))
    }

    fn get(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(place)).and_then(|_| file.read_exact(bytes)).map_err(|error| self.with_place(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found_in_memory_and_in_the_file() {
        let folder = env::temp_dir();
        let spool = Spool { file: Mutex::new(spooled_tempfile_in(100, &folder)), folder };
        let blocks: Vec<Vec<u8>> = (0..20).map(|n| vec![n; 10 + usize::from(n)]).collect();
        let places: Vec<u64> = blocks.iter().map(|block| spool.put(block.clone()).unwrap()).collect();
        assert!(spool.file().is_rolled());
        for (block, place) in blocks.iter().zip(places) {
            let mut part = vec![0; block.len() - 3];
            spool.get(place + 3, &mut part).unwrap();
            assert_eq!(part, block[3..]);
        }
        let error = spool.get(10_000, &mut [0]).unwrap_err().to_string();
        assert!(error.ends_with("; --out or the variable TMPDIR names another directory"), "{error}");
    }
}
