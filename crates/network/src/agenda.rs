//! The schedule of the network's parts: which one acts next.

use anabranch_units::Instant;

/// A time, then an insertion number that breaks ties, then a slot: packed into one number, so that a comparison is one
/// step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

/// Low bits of a key for the slot: at most 32 paths with two ways each, and few links.
const SLOT_BITS: u32 = 16;
const SLOT: u128 = (1 << SLOT_BITS) - 1;

impl Key {
    /// No action.
    pub(crate) const NEVER: Self = Self(!SLOT);

    /// At `due`; among several at that time, the one with the least `seq` goes first, which is less than 2⁴⁸.
    pub(crate) fn new(due: Instant, seq: u64) -> Self {
        Self(u128::from(due.as_nanos()) << 64 | u128::from(seq << SLOT_BITS))
    }

    /// The time; [`Instant::MAX`] for never.
    pub(crate) fn due(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    /// The same key for `slot`.
    fn of(self, slot: usize) -> Self {
        Self(self.0 | slot as u128)
    }
}

/// A fixed number of slots, each with the key of its next action. Networks have few, so that a scan beats a heap.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// The keys, each with its slot.
    keys: Vec<Key>,
    /// The least key.
    first: Key,
}

impl Agenda {
    /// `slots` slots without an action.
    ///
    /// # Panics
    /// If there are more slots than a key can encode.
    pub(crate) fn new(slots: usize) -> Self {
        assert!(slots as u128 <= SLOT, "too many paths and links");
        Self { keys: (0..slots).map(|slot| Key::NEVER.of(slot)).collect(), first: Key::NEVER }
    }

    /// The time of the next action; [`Instant::MAX`] for never.
    pub(crate) fn due(&self) -> Instant {
        self.first.due()
    }

    /// The slot of the next action.
    pub(crate) fn slot(&self) -> usize {
        (self.first.0 & SLOT) as usize
    }

    /// Sets the key of `slot`'s next action.
    pub(crate) fn set(&mut self, slot: usize, key: Key) {
        let own = key.of(slot);
        self.keys[slot] = own;
        if key <= self.first {
            self.first = own;
        } else if slot == self.slot() {
            self.first = self.keys.iter().copied().fold(own, Key::min);
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
                // In every tenth case the slot has no action.
                let key = if due < 5 { Key::NEVER } else { Key::new(Instant::from_nanos(due), insertion as u64) };
                agenda.set(slot, key);
                naive[slot] = key;
                let least = *naive.iter().min().unwrap();
                prop_assert_eq!(agenda.due(), least.due());
                prop_assert_eq!(naive[agenda.slot()], least);
            }
        }
    }

    #[test]
    fn keys_order_by_time_and_then_by_insertion() {
        let key = |due, seq| Key::new(Instant::from_nanos(due), seq);
        assert!(key(1, 9) < key(2, 0) && key(2, 0) < key(2, 1) && key(u64::MAX, 3) < Key::NEVER);
        assert_eq!(key(77, (1 << 48) - 1).due(), Instant::from_nanos(77));
        assert_eq!(Key::NEVER.due(), Instant::MAX);
    }
}
