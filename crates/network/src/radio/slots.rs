//! Slots of a schedule: in each the path has another delay, and its beginning loses packets.

use anabranch_units::{Duration, Instant, Rng};

/// Slots of equal length. Starlink assigns its satellites again every 15 s (Mohan et al., "A Multifaceted Look at Starlink
/// Performance", WWW 2024).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotsSpec {
    /// The length of a slot; zero is no slots.
    pub every: Duration,
    /// The delay of a slot differs from the path's by a time that is uniform within this.
    pub step: Duration,
    /// Probability that a packet is lost that arrives at the beginning of a slot.
    pub loss: f64,
    /// The length of that beginning.
    pub burst: Duration,
}

impl SlotsSpec {
    /// No slots.
    pub const NONE: Self = Self { every: Duration::ZERO, step: Duration::ZERO, loss: 0.0, burst: Duration::ZERO };

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.every.is_zero()
    }

    /// Whether packets are lost at the beginning of a slot.
    pub fn loses(&self) -> bool {
        !self.is_none() && self.loss > 0.0 && !self.burst.is_zero()
    }

    /// The most that a slot's delay is below the path's.
    pub fn earliest(&self) -> Duration {
        if self.is_none() { Duration::ZERO } else { self.step }
    }
}

/// The slots of one direction of a path. Every slot has its own random stream; all paths are in the same place of a slot, which
/// the seed draws.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    pub spec: SlotsSpec,
    seed: u64,
    name: String,
    /// The part of a slot that is over at time zero.
    phase: f64,
    /// The slot of the last packet that left the bottleneck, and the difference of its delay in nanoseconds.
    current: Option<(u64, i64)>,
    /// The slot in which a packet arrived last, and its stream of loss.
    losing: Option<(u64, Rng)>,
}

impl Slots {
    /// Slots of the direction `name` (`"path.wlan.down"`).
    pub fn new(spec: SlotsSpec, seed: u64, name: &str) -> Self {
        let phase = Rng::stream(seed, "slots").unit();
        Self { spec, seed, name: name.into(), phase, current: None, losing: None }
    }

    pub fn set(&mut self, spec: SlotsSpec) {
        *self = Self { spec, current: None, losing: None, ..self.clone() };
    }

    /// The slot at `at`, and the time since it began.
    fn place(&self, at: Instant) -> (u64, u64) {
        let every = self.spec.every.as_nanos();
        let now = at.as_nanos().saturating_add((self.phase * every as f64) as u64);
        (now / every, now % every)
    }

    fn luck(&self, slot: u64) -> Rng {
        Rng::stream(self.seed, &format!("{}.slots.{slot}", self.name))
    }

    /// How far the delay at `at` is above the path's, in nanoseconds.
    pub fn offset(&mut self, at: Instant) -> i64 {
        if self.spec.is_none() || at == Instant::MAX {
            return 0;
        }
        let (slot, _) = self.place(at);
        if let Some((_, offset)) = self.current.filter(|(of, _)| *of == slot) {
            return offset;
        }
        let step = self.spec.step.as_nanos() as f64;
        let offset = libm::round((2.0 * self.luck(slot).unit() - 1.0) * step) as i64;
        self.current = Some((slot, offset));
        offset
    }

    /// Whether a packet is lost that arrives at `at`. One call per packet, in order.
    pub fn loses(&mut self, at: Instant) -> bool {
        if !self.spec.loses() {
            return false;
        }
        let (slot, since) = self.place(at);
        // The run begins within a slot, whose beginning it does not see.
        if slot == 0 || since >= self.spec.burst.as_nanos() {
            return false;
        }
        if self.losing.as_ref().is_none_or(|(of, _)| *of != slot) {
            self.losing = Some((slot, self.luck(slot).fork("loss")));
        }
        self.losing.as_mut().is_some_and(|(_, luck)| luck.chance(self.spec.loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(seed: u64) -> Slots {
        let (every, step) = (Duration::from_secs(15), Duration::from_millis(8));
        Slots::new(SlotsSpec { every, step, loss: 0.5, burst: Duration::from_millis(200) }, seed, "path.a.down")
    }

    #[test]
    fn the_delay_is_constant_within_a_slot_and_uniform_over_slots() {
        let mut slots = slots(3);
        let offsets: Vec<i64> = (0..300_000).map(|second| slots.offset(Instant::from_millis(second * 1000))).collect();
        let changes: Vec<usize> = (1..offsets.len()).filter(|n| offsets[*n] != offsets[n - 1]).collect();
        assert!(changes.windows(2).all(|two| two[1] - two[0] == 15), "every 15 s");
        let mut of_slots: Vec<f64> = changes.iter().map(|n| (offsets[*n] as f64 / 8e6 + 1.0) / 2.0).collect();
        of_slots.sort_unstable_by(f64::total_cmp);
        let n = of_slots.len() as f64;
        let distance = of_slots.iter().enumerate().map(|(k, it)| (it - k as f64 / n).abs()).fold(0.0, f64::max);
        assert!(distance < 2.23 / n.sqrt(), "{distance}");
    }

    /// The closed form: a packet per millisecond loses loss · burst / every of all.
    #[test]
    fn only_the_beginning_of_a_slot_loses_packets() {
        let mut slots = slots(4);
        let lost: Vec<u64> = (0..3_000_000).filter(|ms| slots.loses(Instant::from_millis(*ms))).collect();
        let expected = 200.0 * 200.0 * 0.5;
        assert!((lost.len() as f64 - expected).abs() < 5.0 * (expected / 2.0f64).sqrt(), "{}", lost.len());
        assert!(lost.iter().all(|ms| slots.place(Instant::from_millis(*ms)).1 < 200_000_000));
    }

    #[test]
    fn paths_are_in_the_same_place_of_a_slot_and_a_slot_keeps_its_delay() {
        let (mut one, mut other) = (slots(9), slots(9));
        other.name = "path.b.down".into();
        let at = Instant::from_millis(100_000);
        assert_eq!(one.place(at), other.place(at));
        assert_ne!(one.offset(at), other.offset(at));
        let before = one.offset(at);
        one.offset(Instant::from_millis(500_000));
        assert_eq!(one.offset(at), before);
    }
}
