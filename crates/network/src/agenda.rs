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

/// The most slots that are scanned. Most networks have few, and a scan beats a tree there.
const FEW: usize = 64;

/// A fixed number of slots, each with the key of its next action. A scan finds the first of few: it compares times, which seldom are
/// the same. Of many a tree of matches does.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// The keys in two parts.
    dues: Vec<Instant>,
    rests: Vec<u64>,
    /// The least key, and a slot that has it.
    first: Key,
    slot: usize,
    /// Winners of matches among many slots; none for few. Node n has that of its children 2n and 2n + 1, which are nodes up to the number
    /// of nodes, and slots beyond.
    winners: Vec<u32>,
}

impl Agenda {
    /// `slots` slots without an action.
    pub(crate) fn new(slots: usize) -> Self {
        let never = Key::NEVER;
        let (dues, rests) = (vec![never.due(); slots], vec![never.rest(); slots]);
        Self { dues, rests, first: never, slot: 0, winners: matches(slots) }
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
        self.winners = matches(slots);
        let many = if self.winners.is_empty() { 0 } else { slots };
        (0..many).for_each(|slot| self.play(slot));
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
        if !self.winners.is_empty() {
            self.play(slot);
        } else if key <= self.first {
            (self.first, self.slot) = (key, slot);
        } else if slot == self.slot {
            self.find_first();
        }
    }

    /// Decides the matches of a slot again, up to the final.
    fn play(&mut self, slot: usize) {
        let leaves = self.winners.len();
        let mut node = (leaves + slot) / 2;
        while node > 0 {
            let [left, right] = [2 * node, 2 * node + 1].map(|child| match child.checked_sub(leaves) {
                Some(slot) => slot,
                None => self.winners[child] as usize,
            });
            let wins = self.key(right) < self.key(left);
            self.winners[node] = if wins { right } else { left } as u32;
            node /= 2;
        }
        self.slot = self.winners[1] as usize;
        self.first = self.key(self.slot);
    }

    fn key(&self, slot: usize) -> Key {
        let due = self.dues.get(slot).copied();
        due.map_or(Key::NEVER, |due| Key::new(due, self.rests[slot]))
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

/// The nodes of a tree over so many slots without an action, each won by its first slot; none for few.
fn matches(slots: usize) -> Vec<u32> {
    if slots <= FEW {
        return Vec::new();
    }
    let leaves = slots.next_power_of_two();
    let mut winners = vec![0; leaves];
    for node in (1..leaves).rev() {
        let left = 2 * node;
        winners[node] = left.checked_sub(leaves).map_or_else(|| winners[left], |slot| slot as u32);
    }
    winners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(
            begun in 1usize..150,
            grown in 0usize..100,
            sets in prop::collection::vec((0usize..250, 0u64..50), 1..100),
        ) {
            let slots = begun + grown;
            let mut agenda = Agenda::new(begun);
            agenda.grow(grown);
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
