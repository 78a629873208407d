//! COBALT, CoDel and BLUE alternate: the AQM of CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE", LANMAN 2018, §III-C),
//! as in Linux's `sch_cake` and ns-3.

use crate::{Aqm, DropTail, QueueState};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rng};

/// Parameters of COBALT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CobaltSpec {
    /// Acceptable standing delay.
    pub target: Duration,
    /// The time for which the delay may exceed it.
    pub interval: Duration,
    /// A packet is never dropped by CoDel's law before it has waited so long: four packets' transmission.
    pub least: Duration,
    /// ECN-capable packets are marked instead of dropped by CoDel's law.
    pub ecn: bool,
}

/// BLUE's steps: up where the queue is full, down where it is empty.
const UP: f64 = 1.0 / 256.0;
const DOWN: f64 = 1.0 / 4096.0;

/// CoDel's control law at the head, with a count that falls where CoDel's begins again, and BLUE's probability beside it.
#[derive(Clone, Debug)]
pub struct Cobalt {
    spec: CobaltSpec,
    limit: DropTail,
    rng: Rng,
    /// Drops that the control law counts; it falls by one at each of its times below the target.
    count: u32,
    dropping: bool,
    /// The next time of the control law; without a count, when the flow is forgotten.
    drop_next: Instant,
    /// BLUE's probability.
    probability: f64,
    /// When it last changed.
    changed: Instant,
    /// The last refusal was BLUE's, which does not mark.
    by_blue: bool,
}

impl Cobalt {
    /// An empty queue of capacity `limit`; BLUE draws from `rng`.
    pub fn new(spec: CobaltSpec, limit: DropTail, rng: Rng) -> Self {
        Self {
            spec,
            limit,
            rng,
            count: 0,
            dropping: false,
            drop_next: Instant::ZERO,
            probability: 0.0,
            changed: Instant::ZERO,
            by_blue: false,
        }
    }

    fn law(&self, after: Instant) -> Instant {
        let nanos = self.spec.interval.as_nanos() as f64 / f64::from(self.count.max(1)).sqrt();
        after + Duration::from_nanos(nanos as u64)
    }

    /// The queue is full: BLUE drops more, and CoDel's law begins.
    pub fn overflow(&mut self, now: Instant) {
        if now.since(self.changed) > self.spec.target {
            self.probability = (self.probability + UP).min(1.0);
            self.changed = now;
        }
        (self.dropping, self.drop_next) = (true, now);
        self.count = self.count.max(1);
    }

    /// A packet of this age is at the head. True if CoDel's law drops it.
    fn due(&mut self, now: Instant, sojourn: Duration) -> bool {
        let above = sojourn > self.spec.target && sojourn > self.spec.least;
        let due = self.count > 0 && now >= self.drop_next;
        if above && !self.dropping {
            self.dropping = true;
            self.drop_next = self.law(now);
        }
        if above {
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if !due {
            return false;
        }
        if self.dropping {
            self.count = self.count.saturating_add(1);
            self.drop_next = self.law(self.drop_next);
            return true;
        }
        while self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.law(self.drop_next);
        }
        false
    }
}

impl Aqm for Cobalt {
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause> {
        self.limit.admit(now, size, queue).inspect_err(|_| self.overflow(now))
    }

    fn release(&mut self, now: Instant, _size: u32, sojourn: Duration, _queue: QueueState) -> Result<(), DropCause> {
        let by_law = self.due(now, sojourn);
        self.by_blue = self.probability > 0.0 && self.rng.chance(self.probability);
        // Without a count the time says how long the flow is remembered.
        if self.count == 0 {
            self.drop_next = now + self.spec.interval;
        } else if now > self.drop_next && !by_law && !self.by_blue {
            self.drop_next = now;
        }
        if by_law || self.by_blue { Err(DropCause::Aqm) } else { Ok(()) }
    }

    fn marks(&mut self, _now: Instant) -> bool {
        self.spec.ecn && !self.by_blue
    }

    fn idle(&mut self, now: Instant) {
        if self.probability > 0.0 && now.since(self.changed) > self.spec.target {
            self.probability = (self.probability - DOWN).max(0.0);
            self.changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.law(self.drop_next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cobalt() -> Cobalt {
        let (target, interval, least) = (Duration::from_millis(5), Duration::from_millis(100), Duration::ZERO);
        Cobalt::new(CobaltSpec { target, interval, least, ecn: false }, DropTail::Packets(100), Rng::stream(1, "a"))
    }

    fn drops(cobalt: &mut Cobalt, times: core::ops::Range<u64>, sojourn: u64) -> Vec<u64> {
        let wait = Duration::from_millis(sojourn);
        let is_dropped =
            |ms: &u64| cobalt.release(Instant::from_millis(*ms), 1500, wait, QueueState::default()).is_err();
        times.filter(is_dropped).collect()
    }

    #[test]
    fn drops_come_at_an_interval_over_the_root_of_their_count() {
        // The first after an interval; then 100/√2, 100/√3 … after the one before: 170.7, 228.4, 278.4 …
        assert_eq!(drops(&mut cobalt(), 0..330, 20), [100, 171, 229, 279, 324]);
    }

    #[test]
    fn below_the_target_the_count_falls_step_by_step() {
        let mut cobalt = cobalt();
        assert_eq!(drops(&mut cobalt, 0..330, 20).len(), 5);
        assert_eq!(cobalt.count, 6);
        drops(&mut cobalt, 330..1000, 1);
        assert_eq!(cobalt.count, 0);
    }

    #[test]
    fn blue_rises_where_the_queue_is_full_and_falls_where_it_is_empty() {
        let mut cobalt = cobalt();
        let full = QueueState { packets: 100, bytes: 150_000, busy: true };
        for ms in 0..60 {
            assert_eq!(cobalt.admit(Instant::from_millis(ms), 1500, full), Err(DropCause::Queue));
        }
        // Once per target of 5 ms, the first when more than that is over.
        assert_eq!(cobalt.probability, 9.0 * UP);
        for ms in 60..72 {
            cobalt.idle(Instant::from_millis(ms));
        }
        assert_eq!(cobalt.probability, 9.0 * UP - 2.0 * DOWN);
    }
}
