//! Counts the payload that a host holds.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Payload that is counted as long as a reference to it exists.
struct Counted(Bytes, Arc<AtomicU64>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}

/// Bytes that one host holds.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<AtomicU64>);

impl Held {
    /// A copy of `payload` that counts as long as it exists. A slice of a larger buffer would keep that buffer alive.
    pub fn count(&self, payload: &Bytes) -> Bytes {
        self.0.fetch_add(payload.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(Counted(Bytes::copy_from_slice(payload), self.0.clone()))
    }

    /// Bytes now.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
