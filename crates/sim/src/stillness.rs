//! Limits on a host's activity while time stands still.

use anabranch_units::Instant;

/// Timer rounds that a host may have at one time. One or two are usual; pacing at very high rates takes more.
pub const MOST_ROUNDS: u32 = 100_000;
/// Packets that a host may send at one time: more than any window holds.
pub const MOST_PACKETS: u32 = 10_000_000;

/// A host's activity since time last advanced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stillness {
    at: Instant,
    rounds: u32,
    packets: u32,
}

impl Stillness {
    /// Counts a timer round at `now`.
    pub fn round(&mut self, now: Instant) {
        self.move_to(now);
        self.rounds += 1;
    }

    /// Counts packets that left at `now`.
    pub fn sent(&mut self, now: Instant, packets: u32) {
        self.move_to(now);
        self.packets += packets;
    }

    fn move_to(&mut self, now: Instant) {
        if self.at != now {
            *self = Self { at: now, rounds: 0, packets: 0 };
        }
    }

    /// The host exceeds a limit.
    pub fn is_endless(&self) -> bool {
        self.rounds > MOST_ROUNDS || self.packets > MOST_PACKETS
    }

    /// Timer rounds and packets.
    pub fn counts(&self) -> (u32, u32) {
        (self.rounds, self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_one_moment() {
        let mut still = Stillness::default();
        for ns in 0..3 {
            let now = Instant::from_nanos(ns);
            (0..MOST_ROUNDS).for_each(|_| still.round(now));
            still.sent(now, MOST_PACKETS);
            assert!(!still.is_endless());
        }
        let now = Instant::from_nanos(2);
        still.round(now);
        assert!(still.is_endless() && still.counts() == (MOST_ROUNDS + 1, MOST_PACKETS));
        still.sent(Instant::from_nanos(3), MOST_PACKETS + 1);
        assert!(still.is_endless());
    }
}
