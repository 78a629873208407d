//! The values of many runs, beyond what memory shall hold.

use anabranch_run::{Runs, Store};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{SpooledTempFile, spooled_tempfile, spooled_tempfile_in};

/// Bytes that are held in memory; more of them lie in a file.
const MEMORY: usize = 64 << 20;

/// Values in memory, or in a file without a name, which vanishes with the process.
struct Spool(Mutex<SpooledTempFile>);

/// No runs yet; the values of many will lie in a file in `folder`, or where the system has such files.
pub fn spooled(folder: Option<&Path>) -> Runs {
    let file = folder.map_or_else(|| spooled_tempfile(MEMORY), |folder| spooled_tempfile_in(MEMORY, folder));
    Runs::new(Box::new(Spool(Mutex::new(file))))
}

impl Spool {
    fn file(&self) -> MutexGuard<'_, SpooledTempFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Spool {
    fn put(&self, block: Vec<u8>) -> io::Result<u64> {
        let mut file = self.file();
        let place = file.seek(SeekFrom::End(0))?;
        file.write_all(&block)?;
        Ok(place)
    }

    fn get(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found_in_memory_and_in_the_file() {
        let spool = Spool(Mutex::new(spooled_tempfile(100)));
        let blocks: Vec<Vec<u8>> = (0..20).map(|n| vec![n; 10 + usize::from(n)]).collect();
        let places: Vec<u64> = blocks.iter().map(|block| spool.put(block.clone()).unwrap()).collect();
        assert!(spool.file().is_rolled());
        for (block, place) in blocks.iter().zip(places) {
            let mut part = vec![0; block.len() - 3];
            spool.get(place + 3, &mut part).unwrap();
            assert_eq!(part, block[3..]);
        }
        assert!(spool.get(10_000, &mut [0]).is_err());
    }
}
