//! The memory of a client's connections.

use crate::memory::{Memory, Share};

/// The greatest and the least memory of one connection, both of its buffers together.
const MOST: u64 = 8 << 20;
const LEAST: u64 = 128 << 10;
/// A connection gets this part of what is left: the first ones have large buffers, and there is always something for one more.
const PART: u64 = 256;

/// Memory for connections.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    memory: Memory,
}

impl Budget {
    /// So many bytes for all connections.
    pub fn new(bytes: u64) -> Self {
        Self { memory: Memory::new(bytes) }
    }

    /// Bytes for either buffer of one more connection; `None` if there is no memory left.
    pub fn offer(&self) -> Option<u64> {
        let left = self.memory.left();
        (left >= LEAST).then(|| (left / PART).clamp(LEAST, MOST) / 2)
    }

    /// The memory of a connection whose buffers have `each` bytes; `None` if there is less.
    pub fn take(&self, each: u64) -> Option<Share> {
        self.memory.take(2 * each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_connections_have_room_and_all_together_no_more_than_there_is() {
        let budget = Budget::new(2 << 30);
        assert_eq!(budget.offer(), Some(4 << 20));
        let mut all = Vec::new();
        while let Some(each) = budget.offer() {
            all.push((each, budget.take(each).unwrap()));
        }
        assert!((1_200..2_000).contains(&all.len()), "{}", all.len());
        assert!(all.iter().map(|(each, _)| 2 * each).sum::<u64>() <= 2 << 30);
        drop(all);
        assert_eq!(budget.offer(), Some(4 << 20), "what is given back is there again");
    }
}
