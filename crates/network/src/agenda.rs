//! Which part of the network has something to do next.

use anabranch_units::Instant;

/// A time, then an insertion number that breaks ties: one number, so that two compare in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// Nothing to do.
    pub(crate) const NEVER: Self = Self(u128::MAX);

    /// At `due`; of several at that time, the one with the least `seq` first.
    pub(crate) fn new(due: Instant, seq: u64) -> Self {
        Self(u128::from(due.as_nanos()) << 64 | u128::from(seq))
    }

    /// When; [`Instant::MAX`] for never.
    pub(crate) fn due(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
}

/// A fixed number of slots, each with the key of its next deed. Networks have few, so that a scan beats a heap.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    keys: Vec<Key>,
    /// The least key and its slot.
    first: (Key, usize),
}

impl Agenda {
    /// `slots` slots with nothing to do.
    pub(crate) fn new(slots: usize) -> Self {
        Self { keys: vec![Key::NEVER; slots], first: (Key::NEVER, 0) }
    }

    /// The least key and its slot.
    pub(crate) fn first(&self) -> (Key, usize) {
        self.first
    }

    /// The next deed of `slot` is now `key`.
    pub(crate) fn set(&mut self, slot: usize, key: Key) {
        self.keys[slot] = key;
        let (least, at) = self.first;
        if key <= least {
            self.first = (key, slot);
        } else if slot == at {
            let mut first = (key, slot);
            for (slot, key) in self.keys.iter().enumerate() {
                if *key < first.0 {
                    first = (*key, slot);
                }
            }
            self.first = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(slots in 1usize..20, sets in prop::collection::vec((0usize..20, 0u64..50), 1..100)) {
            let mut agenda = Agenda::new(slots);
            let mut naive = vec![Key::NEVER; slots];
            for (insertion, (slot, due)) in sets.into_iter().enumerate() {
                let slot = slot % slots;
                // Every tenth time a slot falls silent.
                let key = if due < 5 { Key::NEVER } else { Key::new(Instant::from_nanos(due), insertion as u64) };
                agenda.set(slot, key);
                naive[slot] = key;
                let least = *naive.iter().min().unwrap();
                prop_assert_eq!(agenda.first().0, least);
                prop_assert_eq!(naive[agenda.first().1], least);
            }
        }
    }

    #[test]
    fn keys_order_by_time_and_then_by_insertion() {
        let key = |due, seq| Key::new(Instant::from_nanos(due), seq);
        assert!(key(1, 9) < key(2, 0) && key(2, 0) < key(2, 1) && key(u64::MAX, 3) < Key::NEVER);
        assert_eq!(key(77, u64::MAX).due(), Instant::from_nanos(77));
        assert_eq!(Key::NEVER.due(), Instant::MAX);
    }
}
