//! Where the values of runs lie until they are read again.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Runs that are put into the store at once, and read at once.
pub(crate) const BLOCK: usize = 4096;

/// Keeps blocks of bytes, in a file for example.
pub trait Store: Send + Sync {
    /// Adds a block; the place of its first byte. The place of its byte n is n more.
    ///
    /// # Errors
    /// There is no room for it.
    fn put(&self, block: Vec<u8>) -> io::Result<u64>;

    /// Fills `bytes` with what stands at `place`, within one block.
    ///
    /// # Errors
    /// They cannot be read.
    fn get(&self, place: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Keeps blocks in memory.
#[derive(Default)]
pub(super) struct Memory(Mutex<BTreeMap<u64, Box<[u8]>>>);

impl Memory {
    /// Blocks are added whole, so a panic elsewhere leaves nothing half done.
    fn blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn put(&self, block: Vec<u8>) -> io::Result<u64> {
        let mut blocks = self.blocks();
        let place = blocks.last_key_value().map_or(0, |(place, block)| place + block.len() as u64);
        blocks.insert(place, block.into());
        Ok(place)
    }

    fn get(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        let blocks = self.blocks();
        let part = blocks.range(..=place).next_back().and_then(|(begin, block)| {
            let begin = (place - begin) as usize;
            block.get(begin..begin + bytes.len())
        });
        part.map(|part| bytes.copy_from_slice(part)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A store, and the first error of reading from it.
pub(super) struct Shelf {
    pub store: Box<dyn Store>,
    unread: OnceLock<io::Error>,
}

impl Shelf {
    pub fn new(store: Box<dyn Store>) -> Self {
        Self { store, unread: OnceLock::new() }
    }

    /// The bytes at `place`; zeros after an error.
    pub fn get(&self, place: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        if let Err(error) = self.store.get(place, &mut bytes) {
            let _ = self.unread.set(error);
            bytes.fill(0);
        }
        bytes
    }

    /// The first error of reading.
    pub fn check(&self) -> io::Result<()> {
        let copied = |error: &io::Error| Err(io::Error::new(error.kind(), error.to_string()));
        self.unread.get().map_or(Ok(()), copied)
    }
}
