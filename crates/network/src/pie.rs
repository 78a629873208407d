//! Proportional Integral controller Enhanced: RFC 8033.

use crate::updates::Updates;
use crate::{Aqm, DropTail, Fifo, Limit, ManagedQueue, Parameter, Qdisc, QueueState, Value};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieSpec {
    /// Reference of the queueing delay: `QDELAY_REF`.
    pub target: Duration,
    /// Time between two updates of the drop probability: `T_UPDATE`.
    pub update: Duration,
    /// Time for which a burst meets no drop: `MAX_BURST`.
    pub burst: Duration,
    /// Weight of the delay's distance from the target, per second.
    pub alpha: f64,
    /// Weight of the delay's change, per second.
    pub beta: f64,
    /// ECN-capable packets are marked instead of dropped while the drop probability is below 10 %.
    pub ecn: bool,
}

impl Default for PieSpec {
    /// RFC 8033 §4.2, §4.4, and §5.1 for ECN.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            ecn: false,
        }
    }
}

impl ManagedQueue for PieSpec {
    const NAME: &'static str = "pie";
    const ABOUT: &'static str = "Proportional Integral controller Enhanced (RFC 8033)";
    /// RFC 8033 leaves it open; this is Linux's default.
    const LIMIT: Limit = Limit::Packets(1000);
    const RANDOM: bool = true;

    #[rustfmt::skip] // A table reads best with one parameter per row.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("target", Value::Time(&mut self.target), "queueing delay that is aimed at (QDELAY_REF)"),
            Parameter::new("update", Value::Time(&mut self.update), "time between two updates of the drop probability (T_UPDATE)"),
            Parameter::new("burst", Value::Time(&mut self.burst), "time for which a burst meets no drop (MAX_BURST)"),
            Parameter::new("alpha", Value::Real(&mut self.alpha), "weight of the delay's distance from target, per second"),
            Parameter::new("beta", Value::Real(&mut self.beta), "weight of the delay's change, per second"),
            Parameter::new("ecn", Value::Flag(&mut self.ecn), "mark ECN-capable packets (RFC 3168) in place of dropping them, while the drop probability is below 10 %; a full queue drops all the same"),
        ]
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn build(self, limit: DropTail, _rate: Rate, rng: Rng) -> Box<dyn Qdisc> {
        Box::new(Fifo::new(Pie::new(self, limit, rng)))
    }
}

/// RFC 8033 §5.1: the drop probability from which capable packets are dropped.
const MARKS_BELOW: f64 = 0.1;
/// RFC 8033 §4.2: below the first number the adjustment is divided by the second.
const SCALES: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
/// RFC 8033 §5.4: the sums of probabilities between which luck decides.
const DERANDOMISED: (f64, f64) = (0.85, 8.5);

/// Drops packets on arrival with a probability that a controller of the queueing delay sets.
#[derive(Clone, Debug)]
pub struct Pie {
    spec: PieSpec,
    limit: DropTail,
    rng: Rng,
    probability: f64,
    /// Sum of the probabilities since the last drop (RFC 8033 §5.4).
    accumulated: f64,
    burst_allowance: Duration,
    /// Sojourn time of the last packet that left, zero if none was behind it (RFC 8033 §5.2: by timestamps).
    delay: Duration,
    /// The same at the last update.
    old_delay: Duration,
    updates: Updates,
}

impl Pie {
    /// An empty queue of capacity `limit`; draws from `rng`.
    pub fn new(spec: PieSpec, limit: DropTail, rng: Rng) -> Self {
        Self {
            spec,
            limit,
            rng,
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: spec.burst,
            delay: Duration::ZERO,
            old_delay: Duration::ZERO,
            updates: Updates::new(spec.update),
        }
    }

    /// The drop probability, as of the last update.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Makes the updates that are due. Between two packets the delay does not change.
    fn catch_up(&mut self, now: Instant) {
        while self.updates.due(now).is_some() {
            let rests = self.probability == 0.0 && self.delay.is_zero() && self.old_delay.is_zero();
            if rests && self.burst_allowance == self.spec.burst {
                // Further updates change nothing.
                return self.updates.skip(now);
            }
            self.update();
        }
    }

    /// RFC 8033 §4.2, §4.4: `calculate_drop_prob`.
    fn update(&mut self) {
        let [delay, old, target] = [self.delay, self.old_delay, self.spec.target].map(Duration::as_secs_f64);
        let mut step = self.spec.alpha * (delay - target) + self.spec.beta * (delay - old);
        if let Some((_, by)) = SCALES.iter().find(|(below, _)| self.probability < *below) {
            step /= by;
        }
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if delay == 0.0 && old == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.spec.update);
        let short = 2 * self.delay.as_nanos() < self.spec.target.as_nanos();
        if self.probability == 0.0 && short && 2 * self.old_delay.as_nanos() < self.spec.target.as_nanos() {
            self.burst_allowance = self.spec.burst;
        }
        self.old_delay = self.delay;
    }

    /// RFC 8033 §4.1, §5.4: `drop_early`.
    fn drops_early(&mut self, queue: QueueState) -> bool {
        let calm = 2 * self.old_delay.as_nanos() < self.spec.target.as_nanos() && self.probability < 0.2;
        if !self.burst_allowance.is_zero() || calm || queue.packets <= 2 {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let (least, most) = DERANDOMISED;
        let drops = self.accumulated >= least && (self.accumulated >= most || self.rng.chance(self.probability));
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

impl Aqm for Pie {
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause> {
        self.catch_up(now);
        self.limit.admit(now, size, queue).inspect_err(|_| self.accumulated = 0.0)?;
        if self.drops_early(queue) { Err(DropCause::Aqm) } else { Ok(()) }
    }

    fn release(&mut self, now: Instant, _size: u32, sojourn: Duration, queue: QueueState) -> Result<(), DropCause> {
        self.catch_up(now);
        self.delay = if queue.packets == 0 { Duration::ZERO } else { sojourn };
        Ok(())
    }

    fn marks(&mut self, _now: Instant) -> bool {
        self.spec.ecn && self.probability < MARKS_BELOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pie() -> Pie {
        Pie::new(PieSpec::default(), DropTail::Packets(1000), Rng::stream(1, "a"))
    }

    const FULL: QueueState = QueueState { packets: 100, bytes: 150_000, busy: true };

    /// Delays seen at the updates, by their millisecond.
    fn probabilities(delays: &[u64]) -> Vec<f64> {
        let mut pie = pie();
        let after = |pie: &mut Pie, (n, delay): (usize, &u64)| {
            let at = Instant::from_millis(15 * n as u64 + 14);
            pie.release(at, 1500, Duration::from_millis(*delay), FULL).unwrap();
            pie.catch_up(at + Duration::from_millis(1));
            pie.probability()
        };
        delays.iter().enumerate().map(|step| after(&mut pie, step)).collect()
    }

    /// Worked out on paper from RFC 8033 §4.2: alpha 1/8, beta 5/4 per second, divided by 2048 below 10⁻⁶, by 512 below 10⁻⁵ …
    #[test]
    fn the_probability_follows_the_delay_and_its_change() {
        let got = probabilities(&[35, 35, 35]);
        // 0.125 · 0.020 + 1.25 · 0.035 = 0.04625; /2048 = 2.2583e-5. Then 0.0025 / 128 = 1.953e-5, twice.
        let expected = [0.046_25 / 2048.0, 0.046_25 / 2048.0 + 0.0025 / 128.0, 0.046_25 / 2048.0 + 0.005 / 128.0];
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        }
    }

    #[test]
    fn an_idle_queue_forgets() {
        let mut delays = vec![400; 30];
        delays.extend([0; 200]);
        let got = probabilities(&delays);
        assert!(got[29] > 0.01 && got[229] == 0.0, "{} {}", got[29], got[229]);
        // Above 0.1 the probability rises by 0.02 at most.
        assert!(got.windows(2).all(|pair| pair[0] < 0.1 || pair[1] - pair[0] <= 0.02 + 1e-12));
    }

    #[test]
    fn a_burst_meets_no_drop_for_its_allowance() {
        let mut pie = pie();
        let mut first = None;
        for ms in 0..400u64 {
            let at = Instant::from_millis(ms);
            pie.release(at, 1500, Duration::from_millis(300), FULL).unwrap();
            if pie.admit(at, 1500, FULL).is_err() && first.is_none() {
                first = Some(ms);
            }
        }
        // Ten updates of 15 ms use up 150 ms.
        assert!(first.is_some_and(|ms| ms >= 150), "{first:?}");
    }

    #[test]
    fn many_updates_at_once_are_those_one_by_one() {
        let (mut lazy, mut eager) = (pie(), pie());
        for ms in [0, 10, 100, 130, 131, 900, 30_000, 30_001] {
            let at = Instant::from_millis(ms);
            for early in (0..ms).step_by(7) {
                eager.catch_up(Instant::from_millis(early));
            }
            lazy.release(at, 1500, Duration::from_millis(ms % 97), FULL).unwrap();
            eager.release(at, 1500, Duration::from_millis(ms % 97), FULL).unwrap();
            assert_eq!((lazy.probability(), lazy.updates), (eager.probability(), eager.updates), "{ms}");
        }
    }
}
