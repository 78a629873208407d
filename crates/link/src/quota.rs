//! Quotas of memory, or of places, that several users share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes, or of places, that may still be taken.
#[derive(Clone, Debug)]
pub struct Quota(Arc<AtomicU64>);

/// A part of a quota, until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    quota: Quota,
    amount: u64,
}

impl Quota {
    /// A quota of so much in all.
    pub fn new(amount: u64) -> Self {
        Self(Arc::new(AtomicU64::new(amount)))
    }

    /// Bytes or places that are left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Reserves a part; `None` if not so much is left.
    pub fn take(&self, amount: u64) -> Option<Reservation> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount));
        taken.ok().map(|_| Reservation { quota: self.clone(), amount })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.quota.0.fetch_add(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is_and_all_comes_back() {
        let quota = Quota::new(10);
        let first = quota.take(6).unwrap();
        assert!(quota.take(5).is_none());
        let second = quota.clone().take(4).unwrap();
        drop(first);
        assert!(quota.take(7).is_none() && quota.take(6).is_some());
        drop(second);
        assert!(quota.take(10).is_some());
    }
}
