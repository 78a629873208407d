//! The schedule of the network's parts: which one acts next.

use anabranch_units::Instant;

/// A time, then an insertion number that breaks ties: packed into one number, so that a comparison is one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    /// No action.
    pub(crate) const NEVER: Self = Self(u128::MAX);

    /// At `due`; among several at that time, the one with the least `seq` goes first.
    pub(crate) fn new(due: Instant, seq: u64) -> Self {
        Self(u128::from(due.as_nanos()) << 64 | u128::from(seq))
    }

    /// The time; [`Instant::MAX`] for never.
    pub(crate) fn due(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    /// The part that breaks ties of time.
    fn rest(self) -> u64 {
        self.0 as u64
    }
}

/// A fixed number of slots, each with the key of its next action. Networks have few, so that a scan beats a heap; it
/// compares times, which seldom are the same.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// The keys in two parts.
    dues: Vec<Instant>,
    rests: Vec<u64>,
    /// The least key, and a slot that has it.
    first: Key,
    slot: usize,
}

impl Agenda {
    /// `slots` slots without an action.
    pub(crate) fn new(slots: usize) -> Self {
        let never = Key::NEVER;
        Self { dues: vec![never.due(); slots], rests: vec![never.rest(); slots], first: never, slot: 0 }
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.dues.len()
    }

    /// Adds `slots` slots without an action.
    pub(crate) fn grow(&mut self, slots: usize) {
        let slots = self.dues.len() + slots;
        self.dues.resize(slots, Key::NEVER.due());
        self.rests.resize(slots, Key::NEVER.rest());
    }

    /// The time of the next action; [`Instant::MAX`] for never.
    pub(crate) fn due(&self) -> Instant {
        self.first.due()
    }

    /// The slot of the next action.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Sets the key of `slot`'s next action.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, key: Key) {
        (self.dues[slot], self.rests[slot]) = (key.due(), key.rest());
        if key <= self.first {
            (self.first, self.slot) = (key, slot);
        } else if slot == self.slot {
            self.find_first();
        }
    }

    #[inline(always)]
    fn find_first(&mut self) {
        let (mut at, mut first) = (Instant::MAX, 0);
        for (slot, due) in self.dues.iter().enumerate() {
            if *due <= at && (*due < at || self.rests[slot] < self.rests[first]) {
                (at, first) = (*due, slot);
            }
        }
        self.slot = first;
        self.first = Key::new(at, self.rests[first]);
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
