//! The memory of a client's connections: a fair part of what all clients share.

use anabranch_engine::Settings;
use anabranch_link::{Quota, Reservation};

/// The greatest and the least memory of one connection, both of its buffers and what is taken beyond the window together.
const MOST: u64 = 8 << 20;
const LEAST: u64 = 128 << 10;
/// A connection gets this part of what its client may still take: the first ones have large buffers, and there is always something for
/// one more.
const PART: u64 = 256;

/// Memory for the connections of one client.
///
/// A client may hold twice what is left for all: dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998) with alpha = 2. One
/// alone gets two thirds; n that want all of it get 2/(2n + 1) each, and one that comes later finds something.
#[derive(Clone, Debug)]
pub(crate) struct BufferBudget {
    common: Quota,
    own: Quota,
    total: u64,
}

/// The memory of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct BufferReservation(#[expect(dead_code, reason = "it is held")] [Reservation; 2]);

/// Bytes of buffers for all connections of a host that has no clients.
const ALL: u64 = 2 << 30;

impl BufferBudget {
    /// For connections of this host's programs alone.
    pub fn whole() -> Self {
        Self::new(&Quota::new(ALL), ALL)
    }

    /// A client's part of the `common` memory, which has so many bytes for all clients.
    pub fn new(common: &Quota, total: u64) -> Self {
        Self { common: common.clone(), own: Quota::new(total), total }
    }

    /// Bytes that the client may still take.
    fn left(&self) -> u64 {
        let own = self.total - self.own.left();
        // own + x <= 2 (left - x)
        (2 * self.common.left()).saturating_sub(own) / 3
    }

    /// Bytes for either buffer of one more connection; `None` if there is no memory left.
    pub fn offer(&self) -> Option<u64> {
        let left = self.left();
        (left >= LEAST).then(|| {
            let all = (left / PART).clamp(LEAST, MOST);
            // All of it in proportion to the memory of two buffers of one size.
            all * MOST / Settings::memory(MOST, MOST)
        })
    }

    /// The memory of a connection whose buffers have `each` bytes; `None` if there is less.
    pub fn take(&self, each: u64) -> Option<BufferReservation> {
        let all = Settings::memory(each, each);
        Some(BufferReservation([self.own.take(all)?, self.common.take(all)?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: u64 = 2 << 30;

    fn all(budget: &BufferBudget) -> Vec<BufferReservation> {
        core::iter::from_fn(|| budget.take(budget.offer()?)).collect()
    }

    #[test]
    fn a_thousand_connections_have_room_however_many_keys_are_listed() {
        let common = Quota::new(TOTAL);
        // A key without connections costs nothing.
        let budgets: Vec<BufferBudget> = (0..1_000).map(|_| BufferBudget::new(&common, TOTAL)).collect();
        assert!(budgets[0].offer().unwrap() > 2 << 20);
        let first = all(&budgets[0]);
        assert!((1_150..1_300).contains(&first.len()), "docs/proxy.md has the figure: {}", first.len());
        // One that takes all it may leaves a third, and others their connections.
        assert!(common.left() > TOTAL * 3 / 10);
        let second = all(&budgets[1]);
        assert!(second.len() > 800, "{}", second.len());
        assert!(budgets[2].offer().is_some());
        drop((first, second));
        assert_eq!(common.left(), TOTAL, "what is given back is there again");
    }
}
