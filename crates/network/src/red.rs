//! Random Early Detection: Floyd & Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN
//! 1993, as implemented in ns-2 (`queue/red.cc` of 2.35), without adaptive `max_p`.

use crate::{Aqm, DropTail, Fifo, Limit, ManagedQueue, Misfit, Parameter, Qdisc, QueueState, Threshold, Value};
use anabranch_trace::DropCause;
use anabranch_units::{Instant, Rate, Rng};

/// Parameters of RED. [`RedSpec::default`] has ns-2's `thresh_` 5, `maxthresh_` 15, `q_weight_` 0.002, `linterm_` 10,
/// `gentle_` and `mean_pktsize_` 500; unlike ns-2's, thresholds count packets and `wait_` is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpec {
    /// Average queue below which there are no early drops; 0 = 5 packets, or half of the packets of 5 ms, whichever is
    /// more. If it or [`Self::max`] counts bytes, larger packets are dropped more often.
    pub min: Threshold,
    /// Average queue at which the drop probability reaches `max_p`; 0 = three times `min`.
    pub max: Threshold,
    /// Drop probability at `max`.
    pub max_p: f64,
    /// Weight of the newest sample in the average; 0 = 1 − exp(−1/C) with C packets per second.
    pub weight: f64,
    /// Between `max` and twice that the probability rises from `max_p` to 1; otherwise it is 1 from `max` on.
    pub gentle: bool,
    /// No early drop before 1/p packets have come since the last one (ns-2's `wait_`); otherwise drops are uniform in 1
    /// … 1/p, as in the paper.
    pub wait: bool,
    /// Between `min` and `max`, ECN-capable packets are marked instead of dropped: ns-2's `setbit_`, with `use_mark_p_` and a `mark_p_`
    /// of `max_p`. From `max` on they are dropped like all others (RFC 3168 §7).
    pub ecn: bool,
    /// Mean bytes per packet: it decides how many packets could have passed while the queue was idle.
    pub mean_packet: u32,
}

impl Default for RedSpec {
    fn default() -> Self {
        Self {
            min: Threshold::packets(5.0),
            max: Threshold::packets(0.0),
            max_p: 0.1,
            weight: 0.002,
            gentle: true,
            wait: false,
            ecn: false,
            mean_packet: 500,
        }
    }
}

impl ManagedQueue for RedSpec {
    const NAME: &'static str = "red";
    const ABOUT: &'static str = "Random Early Detection (Floyd & Jacobson 1993, as in ns-2)";
    const LIMIT: Limit = Limit::Bdp;
    const RANDOM: bool = true;

    #[rustfmt::skip] // A table reads best with one parameter per row.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("min", Value::Threshold(&mut self.min), "average queue from which packets are dropped early, in packets or bytes (thresh_ of ns-2); 0: 5 packets, or half of the packets of 5 ms if that is more"),
            Parameter::new("max", Value::Threshold(&mut self.max), "average queue at which the drop probability is max_p (maxthresh_); 0: three times min"),
            Parameter::new("max_p", Value::Probability(&mut self.max_p), "drop probability at max (1/linterm_)"),
            Parameter::new("weight", Value::Probability(&mut self.weight), "weight of the newest queue length in the average (q_weight_); 0: 1 - exp(-1/C), C = mean packets per second"),
            Parameter::new("gentle", Value::Flag(&mut self.gentle), "beyond max the probability rises to 1 at twice max; false: it is 1 at once"),
            Parameter::new("wait", Value::Flag(&mut self.wait), "no early drop before 1/p packets have come since the last (ns-2's default); false: drops are uniform in 1 to 1/p, as in the paper"),
            Parameter::new("mean_packet", Value::Packet(&mut self.mean_packet), "mean size of a packet (mean_pktsize_): how fast the average falls while the queue is idle; thresholds in bytes drop larger packets more often in proportion to it"),
            Parameter::new("ecn", Value::Flag(&mut self.ecn), "mark ECN-capable packets (RFC 3168) in place of dropping them, while the average queue is below max; a full queue drops all the same"),
        ]
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn check(&self) -> Result<(), Misfit> {
        let (min, max) = (self.min, self.max);
        if min.amount > 0.0 && max.amount > 0.0 && min.in_bytes != max.in_bytes {
            let message = "one threshold counts packets, the other bytes";
            return Err(Misfit { parameter: "max", message, help: "write both in packets, or both in bytes" });
        }
        if max.amount > 0.0 && max.amount < min.amount {
            let help = "the drop probability rises from zero at `min` to `max_p` at `max`";
            return Err(Misfit { parameter: "max", message: "`max` is below `min`", help });
        }
        Ok(())
    }

    fn build(self, limit: DropTail, rate: Rate, rng: Rng) -> Box<dyn Qdisc> {
        Box::new(Fifo::new(Red::new(self, limit, rate, rng)))
    }
}

/// Parameters that zeros have been replaced in.
#[derive(Clone, Copy, Debug)]
struct Law {
    min: f64,
    max: f64,
    in_bytes: bool,
    max_p: f64,
    weight: f64,
    gentle: bool,
    wait: bool,
    mean_packet: u32,
}

impl Law {
    /// The values that follow from the rate in place of zeros.
    fn new(spec: RedSpec, rate: Rate) -> Self {
        let mean_packet = spec.mean_packet.max(1);
        let packets_per_second = rate.as_bps() as f64 / (8.0 * f64::from(mean_packet));
        let in_bytes = spec.min.in_bytes || spec.max.in_bytes;
        let unit = if in_bytes { f64::from(mean_packet) } else { 1.0 };
        let given = |value: f64| Some(value).filter(|value| *value != 0.0);
        // ns-2's targetdelay_ is 5 ms.
        let min = given(spec.min.amount).unwrap_or_else(|| (0.005 * packets_per_second / 2.0).max(5.0) * unit);
        let max = given(spec.max.amount).unwrap_or(3.0 * min);
        let weight = given(spec.weight).unwrap_or_else(|| 1.0 - libm::exp(-1.0 / packets_per_second));
        let RedSpec { max_p, gentle, wait, .. } = spec;
        Self { min, max, in_bytes, max_p, weight, gentle, wait, mean_packet }
    }

    /// Drop probability p_b at an average queue of `min` or above.
    fn initial_probability(&self, average: f64) -> f64 {
        let Self { min, max, max_p, .. } = *self;
        let p = if average < max {
            max_p * (average - min) / (max - min)
        } else if self.gentle {
            // From max_p to 1 between max and 2·max.
            (1.0 - max_p) * average / max + 2.0 * max_p - 1.0
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Drop probability p_a of packet number `count` since the last drop.
    fn final_probability(&self, p: f64, count: f64, size: u32) -> f64 {
        let due = count * p;
        let spread = match self.wait {
            true if due < 1.0 => 0.0,
            true if due < 2.0 => p / (2.0 - due),
            // Floyd & Jacobson 1993 §7: the gaps between drops become uniform instead of geometric.
            false if due < 1.0 => p / (1.0 - due),
            _ => 1.0,
        };
        if self.in_bytes && spread < 1.0 {
            (spread * f64::from(size) / f64::from(self.mean_packet)).min(1.0)
        } else {
            spread.min(1.0)
        }
    }
}

/// Drops packets on arrival, with a probability that rises with the average queue.
#[derive(Clone, Debug)]
pub struct Red {
    law: Law,
    ecn: bool,
    limit: DropTail,
    rate: Rate,
    rng: Rng,
    average: f64,
    /// Packets and bytes since the last drop, or since the average rose above the lower threshold.
    count: u32,
    count_bytes: u64,
    /// The average was above the lower threshold.
    above: bool,
    /// Since when the queue and the transmitter are empty.
    idle: Option<Instant>,
}

impl Red {
    /// An empty queue of capacity `limit` before a link of `rate`; draws from `rng`. The rate decides the packets of an
    /// idle time, and the parameters that are 0; it is the initial rate, as in ns-2.
    pub fn new(spec: RedSpec, limit: DropTail, rate: Rate, rng: Rng) -> Self {
        let (law, ecn) = (Law::new(spec, rate), spec.ecn);
        let (average, count, count_bytes, above, idle) = (0.0, 0, 0, false, Some(Instant::ZERO));
        Self { law, ecn, limit, rate, rng, average, count, count_bytes, above, idle }
    }

    /// The average queue: packets, or bytes if the thresholds are.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// A packet meets `waiting`. Packets that could have passed while the queue was idle count as samples of an empty
    /// queue.
    fn update_average(&mut self, now: Instant, waiting: f64) {
        let weight = self.law.weight;
        if let Some(since) = self.idle.take() {
            let passed = self.rate.bytes_in(now.since(since)) / u64::from(self.law.mean_packet);
            self.average *= libm::pow(1.0 - weight, passed as f64);
        }
        self.average = (1.0 - weight) * self.average + weight * waiting;
    }

    fn drops_early(&mut self, size: u32, waiting: f64) -> bool {
        self.count = self.count.saturating_add(1);
        self.count_bytes += u64::from(size);
        // ns-2 never drops a packet that finds the queue empty or nearly so, whatever the average.
        if self.average < self.law.min || waiting <= 1.0 {
            self.above = false;
            return false;
        }
        if !self.above {
            self.above = true;
            self.restart(1, size.into());
            return false;
        }
        let p = self.law.initial_probability(self.average);
        let count = match self.law.in_bytes {
            true => (self.count_bytes / u64::from(self.law.mean_packet)) as f64,
            false => self.count.into(),
        };
        let drops = self.rng.chance(self.law.final_probability(p, count, size));
        if drops {
            self.restart(0, 0);
        }
        drops
    }

    fn restart(&mut self, count: u32, bytes: u64) {
        (self.count, self.count_bytes) = (count, bytes);
    }
}

impl Aqm for Red {
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause> {
        let waiting = if self.law.in_bytes { queue.bytes as f64 } else { queue.packets.into() };
        self.update_average(now, waiting);
        let early = self.drops_early(size, waiting);
        // A full queue always drops, and that counts as a drop.
        self.limit.admit(now, size, queue).inspect_err(|_| self.restart(0, 0))?;
        if early { Err(DropCause::Aqm) } else { Ok(()) }
    }

    fn marks(&mut self, _now: Instant) -> bool {
        self.ecn && self.average < self.law.max
    }

    fn idle(&mut self, now: Instant) {
        self.idle = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: DropTail = DropTail::Packets(1000);

    fn red(spec: RedSpec) -> Red {
        // 1000 packets of 500 bytes per second.
        Red::new(spec, FULL, Rate::from_bps(4_000_000), Rng::stream(1, "path.a.down.red"))
    }

    fn law(spec: RedSpec) -> Law {
        Law::new(spec, Rate::from_bps(4_000_000))
    }

    fn waiting(packets: u32) -> QueueState {
        QueueState { packets, bytes: u64::from(packets) * 500, busy: true }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn the_average_moves_by_its_weight_and_falls_while_idle() {
        let mut red = red(RedSpec::default());
        let mut averages = |ms, packets| {
            red.admit(Instant::from_millis(ms), 500, waiting(packets)).unwrap();
            red.average()
        };
        assert!(near(averages(0, 10), 0.02));
        assert!(near(averages(0, 20), 0.059_96));
        assert!(near(averages(700, 0), 0.059_840_08));
        red.idle(Instant::from_millis(1000));
        // 500 packets could have passed: 0.05984008 · 0.998^500, and the sample.
        red.admit(Instant::from_nanos(1_500_900_000), 500, waiting(0)).unwrap();
        assert!(near(red.average(), 0.021_947_919_085_769_65), "{}", red.average());
        // No longer idle: time alone changes nothing.
        red.admit(Instant::from_millis(9000), 500, waiting(0)).unwrap();
        assert!(near(red.average(), 0.021_904_023_247_598_114), "{}", red.average());
    }

    #[test]
    fn the_probability_rises_with_the_average() {
        let gentle = law(RedSpec::default());
        let steep = Law { gentle: false, ..gentle };
        for (average, p, q) in
            [(5.0, 0.0, 0.0), (10.0, 0.05, 0.05), (15.0, 0.1, 1.0), (22.5, 0.55, 1.0), (40.0, 1.0, 1.0)]
        {
            assert!(near(gentle.initial_probability(average), p), "{average}");
            assert!(near(steep.initial_probability(average), q), "{average}");
        }
        // Equal thresholds make a step.
        assert_eq!(Law { min: 15.0, ..steep }.initial_probability(15.0), 1.0);
    }

    #[test]
    fn the_probability_rises_with_the_count_since_the_last_drop() {
        let spec = law(RedSpec::default());
        let of = |law: Law, count| law.final_probability(0.05, count, 1000);
        for (count, p) in [(1.0, 0.05 / 0.95), (10.0, 0.1), (18.0, 0.5), (20.0, 1.0), (99.0, 1.0)] {
            assert!(near(of(spec, count), p), "{count}");
        }
        let wait = Law { wait: true, ..spec };
        for (count, p) in [(1.0, 0.0), (19.0, 0.0), (20.0, 0.05), (30.0, 0.1), (40.0, 1.0)] {
            assert!(near(of(wait, count), p), "{count}");
        }
        // Twice the mean size, twice the probability.
        assert!(near(of(Law { in_bytes: true, ..spec }, 10.0), 0.2));
        assert_eq!(of(Law { in_bytes: true, ..spec }, 18.0), 1.0);
    }

    #[test]
    fn gaps_between_drops_are_uniform() {
        // Average = queue = 10: p = 0.05, and the gaps are 1 … 19, as the count is 1 at the first packet after a drop.
        let mut red = red(RedSpec { weight: 1.0, ..RedSpec::default() });
        let mut gaps = vec![0u32; 40];
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            if red.admit(Instant::ZERO, 500, waiting(10)) == Err(DropCause::Aqm) {
                gaps[core::mem::take(&mut gap)] += 1;
            }
        }
        let drops: u32 = gaps[1..20].iter().sum();
        assert_eq!(gaps.iter().sum::<u32>(), drops + gaps[20], "{gaps:?}");
        // The very first drop comes one packet later, because the packet that crosses the threshold is never dropped.
        assert!(gaps[20] <= 1 && (19_500..20_500).contains(&drops), "{gaps:?}");
        let expected = drops / 19;
        assert!(gaps[1..20].iter().all(|n| n.abs_diff(expected) < expected / 5), "{gaps:?}");
    }

    #[test]
    fn below_the_threshold_and_before_an_empty_queue_nothing_is_dropped() {
        let mut red = red(RedSpec {
            weight: 1.0,
            min: Threshold::packets(1.0),
            max: Threshold::packets(2.0),
            gentle: false,
            ..RedSpec::default()
        });
        assert!((0..1000).all(|_| red.admit(Instant::ZERO, 500, waiting(1)).is_ok()));
        // The first packet above is not dropped, then the average is beyond `max`.
        let drops =
            |red: &mut Red| (0..3).map(|_| red.admit(Instant::ZERO, 500, waiting(2)).is_err()).collect::<Vec<_>>();
        assert_eq!(drops(&mut red), [false, true, true]);
        red.admit(Instant::ZERO, 500, waiting(0)).unwrap();
        assert_eq!(drops(&mut red), [false, true, true]);
    }

    #[test]
    fn marks_take_the_place_of_drops_below_the_upper_threshold() {
        for (ecn, packets, marks) in [(true, 10, true), (true, 20, false), (false, 10, false)] {
            let mut red = red(RedSpec { weight: 1.0, ecn, ..RedSpec::default() });
            let early = (0..1000).any(|_| red.admit(Instant::ZERO, 500, waiting(packets)) == Err(DropCause::Aqm));
            assert!(early);
            assert_eq!(red.marks(Instant::ZERO), marks, "{packets}");
        }
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average() {
        let limit = DropTail::Packets(3);
        let mut red = Red::new(RedSpec::default(), limit, Rate::from_bps(4_000_000), Rng::stream(1, "a"));
        assert_eq!(red.admit(Instant::ZERO, 500, waiting(2)), Ok(()));
        assert_eq!(red.admit(Instant::ZERO, 500, waiting(3)), Err(DropCause::Queue));
    }

    #[test]
    fn zeros_follow_the_rate() {
        let spec = RedSpec { min: Threshold::packets(0.0), weight: 0.0, ..RedSpec::default() };
        let slow = Law::new(spec, Rate::from_bps(4_000_000));
        assert_eq!((slow.min, slow.max), (5.0, 15.0));
        assert!(near(slow.weight, 0.000_999_500_166_625_008_4));
        let fast = Law::new(spec, Rate::from_bps(100_000_000));
        assert_eq!((fast.min, fast.max), (62.5, 187.5));
        let bytes = RedSpec { min: Threshold { amount: 0.0, in_bytes: true }, ..spec };
        let bytes = Law::new(bytes, Rate::from_bps(100_000_000));
        assert_eq!((bytes.min, bytes.max), (31_250.0, 93_750.0));
    }
}
