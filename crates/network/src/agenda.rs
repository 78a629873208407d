//! Which part of the network has something to do next.

use anabranch_units::Instant;

/// A time, then an insertion number that breaks ties.
pub(crate) type Key = (Instant, u64);

/// Nothing to do.
pub(crate) const NEVER: Key = (Instant::MAX, u64::MAX);

/// A fixed number of slots, each with the key of its next deed; a winner tree, so that reading the least key is O(1)
/// and changing one is O(log slots).
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// `nodes[1]` is the root, `nodes[leaves + slot]` a leaf; each holds the least key below it and that key's slot.
    nodes: Vec<(Key, u32)>,
    leaves: usize,
}

impl Agenda {
    /// `slots` slots with nothing to do.
    pub(crate) fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two();
        Self { nodes: vec![(NEVER, 0); 2 * leaves], leaves }
    }

    /// The least key and its slot.
    pub(crate) fn first(&self) -> (Key, usize) {
        let (key, slot) = self.nodes[1];
        (key, slot as usize)
    }

    /// The next deed of `slot` is now `key`.
    pub(crate) fn set(&mut self, slot: usize, key: Key) {
        let mut at = self.leaves + slot;
        self.nodes[at] = (key, slot as u32);
        while at > 1 {
            let (a, b) = (self.nodes[at & !1], self.nodes[at | 1]);
            at /= 2;
            self.nodes[at] = if b.0 < a.0 { b } else { a };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_root_is_the_least_key(slots in 1usize..20, sets in prop::collection::vec((0usize..20, 0u64..50), 1..100)) {
            let mut agenda = Agenda::new(slots);
            let mut naive = vec![NEVER; slots];
            for (insertion, (slot, due)) in sets.into_iter().enumerate() {
                let slot = slot % slots;
                // Every tenth time a slot falls silent.
                let key = if due < 5 { NEVER } else { (Instant::from_nanos(due), insertion as u64) };
                agenda.set(slot, key);
                naive[slot] = key;
                let least = *naive.iter().min().unwrap();
                prop_assert_eq!(agenda.first().0, least);
                prop_assert_eq!(naive[agenda.first().1], least);
            }
        }
    }
}
