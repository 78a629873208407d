//! Counts the packets that a receiver holds out of order.

use anabranch_units::Range;
use std::collections::BTreeMap;

/// Counts packets of [`crate::Event::DataArrived`] that the application cannot read yet, because their data lies above
/// the lowest missing byte. Holds one entry per packet.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Everything below this arrived.
    next: u64,
    /// Begin and end of each piece that arrived above it.
    ahead: BTreeMap<u64, u64>,
}

impl Held {
    /// Adds `data`, some of which is new. Returns the number of packets held after it.
    pub fn arrive(&mut self, data: Range) -> usize {
        if data.start > self.next {
            self.ahead.insert(data.start, data.end);
            return self.ahead.len();
        }
        self.next = self.next.max(data.end);
        while let Some(first) = self.ahead.first_entry().filter(|first| *first.key() <= self.next) {
            self.next = self.next.max(first.remove());
        }
        self.ahead.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_above_a_gap_are_held_until_it_is_filled() {
        let mut held = Held::default();
        let packets = [(0, 10), (20, 30), (40, 50), (30, 40), (20, 30), (10, 20), (60, 70), (45, 60)];
        let counts = packets.map(|(start, end)| held.arrive(Range::new(start, end)));
        assert_eq!(counts, [0, 1, 2, 3, 3, 0, 1, 0]);
    }
}
