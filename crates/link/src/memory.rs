//! Memory, or places, that several users share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory that may still be taken, in bytes.
#[derive(Clone, Debug)]
pub struct Memory(Arc<AtomicU64>);

/// A part of it, until it is dropped.
#[derive(Debug)]
pub struct Share {
    memory: Memory,
    bytes: u64,
}

impl Memory {
    /// So many bytes in all.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A part; `None` if not so much is left.
    pub fn take(&self, bytes: u64) -> Option<Share> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.ok().map(|_| Share { memory: self.clone(), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is_and_all_comes_back() {
        let memory = Memory::new(10);
        let first = memory.take(6).unwrap();
        assert!(memory.take(5).is_none());
        let second = memory.clone().take(4).unwrap();
        drop(first);
        assert!(memory.take(7).is_none() && memory.take(6).is_some());
        drop(second);
        assert!(memory.take(10).is_some());
    }
}
