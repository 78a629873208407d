//! Values that change in steps, as a recording has them.

use anabranch_units::{Duration, Instant, Rate};

/// A value over time: from each time on until the next. At its end it begins again, or keeps its last value.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T> {
    /// Nanoseconds, strictly ascending from zero, and the value from then on.
    points: Vec<(u64, T)>,
    /// End in nanoseconds, after the last point.
    end: u64,
    /// After its end the last value stays.
    holds: bool,
}

impl<T: Copy + PartialEq> Steps<T> {
    /// `points`: times from the beginning, of which only later ones than the one before count, with their values; the first value
    /// counts from zero. The end comes as long after the last point as that comes after the one before, and one second after a
    /// single one. `None` without points.
    pub fn new(points: &[(Duration, T)]) -> Option<Self> {
        let (first, _) = points.first()?;
        let mut steps: Vec<(u64, T)> = Vec::with_capacity(points.len());
        for (at, value) in points {
            let at = at.saturating_sub(*first).as_nanos();
            match steps.last_mut() {
                Some(last) if at <= last.0 => last.1 = *value,
                _ => steps.push((at, *value)),
            }
        }
        let last = steps[steps.len() - 1].0;
        let gap = steps.len().checked_sub(2).map_or(1_000_000_000, |before| last - steps[before].0);
        // A value that stays is one point.
        steps.dedup_by(|later, earlier| later.1 == earlier.1);
        Some(Self { points: steps, end: last + gap, holds: false })
    }

    /// The same, with its last value for ever.
    #[must_use]
    pub fn held(&self) -> Self {
        Self { holds: true, ..self.clone() }
    }

    /// The same, begun `from` after its beginning, before its end.
    #[must_use]
    pub fn begun_at(&self, from: Duration) -> Self {
        let from = from.as_nanos();
        if from == 0 || from >= self.end {
            return self.clone();
        }
        let current = self.points.partition_point(|(at, _)| *at <= from) - 1;
        let mut points = vec![(0, self.points[current].1)];
        points.extend(self.points[current + 1..].iter().map(|(at, value)| (at - from, *value)));
        if self.holds {
            return Self { points, end: self.end - from, holds: true };
        }
        let rest = self.end - from;
        points.extend(self.points[..=current].iter().map(|(at, value)| (at + rest, *value)));
        points.dedup_by(|later, earlier| later.1 == earlier.1);
        Self { points, end: self.end, holds: false }
    }

    /// The value at `now`.
    pub fn at(&self, now: Instant) -> T {
        let within = if self.holds { now.as_nanos() } else { now.as_nanos() % self.end };
        self.points[self.points.partition_point(|(at, _)| *at <= within) - 1].1
    }

    /// Whether its last value stays at its end.
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Time from the first point to the end.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end)
    }

    /// Every value, with the time for which it lasts until the end.
    pub fn parts(&self) -> impl Iterator<Item = (Duration, T)> + '_ {
        let ends = self.points.iter().skip(1).map(|(at, _)| *at).chain([self.end]);
        self.points.iter().zip(ends).map(|((at, value), end)| (Duration::from_nanos(end - at), *value))
    }

    /// The mean of `number` until the end.
    pub fn mean(&self, number: impl Fn(T) -> f64) -> f64 {
        let sum: f64 = self.parts().map(|(time, value)| number(value) * time.as_secs_f64()).sum();
        sum / self.duration().as_secs_f64()
    }
}

/// A recorded rate, as a capacity: a packet takes the time in which the rate sums up to its bits.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSteps {
    steps: Steps<Rate>,
    /// Bits times 10⁹ that pass before each point, and before the end.
    sums: Vec<u128>,
}

impl From<Steps<Rate>> for RateSteps {
    fn from(steps: Steps<Rate>) -> Self {
        let mut sums = vec![0];
        for (time, rate) in steps.parts() {
            sums.push(sums[sums.len() - 1] + u128::from(rate.as_bps()) * u128::from(time.as_nanos()));
        }
        Self { steps, sums }
    }
}

impl RateSteps {
    /// The rate over time.
    pub fn steps(&self) -> &Steps<Rate> {
        &self.steps
    }

    /// The mean until the end.
    pub fn mean_rate(&self) -> Rate {
        let bps = self.sums[self.sums.len() - 1] / u128::from(self.steps.end.max(1));
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Bits times 10⁹ that pass until `now`.
    fn sum(&self, now: Instant) -> u128 {
        let Steps { points, end, holds } = &self.steps;
        let rounds = if *holds { 0 } else { now.as_nanos() / end };
        let within = now.as_nanos() - rounds * end;
        let point = points.partition_point(|(at, _)| *at <= within) - 1;
        let (at, rate) = points[point];
        let whole = u128::from(rounds) * self.sums[self.sums.len() - 1];
        whole + self.sums[point] + u128::from(rate.as_bps()) * u128::from(within - at)
    }

    /// Bytes that pass after `from` and up to `to`.
    pub fn bytes(&self, from: Instant, to: Instant) -> f64 {
        self.sum(to).saturating_sub(self.sum(from)) as f64 / 8e9
    }

    /// When the last bit leaves of `size` bytes whose first one leaves at `begins`; [`Instant::MAX`] for never.
    pub(crate) fn leaves(&self, begins: Instant, size: u32) -> Instant {
        if begins == Instant::MAX || size == 0 {
            return begins;
        }
        let Steps { points, end, holds } = &self.steps;
        let target = self.sum(begins).saturating_add(u128::from(size) * 8_000_000_000);
        let round = self.sums[self.sums.len() - 1];
        let rounds = if *holds || round == 0 { 0 } else { (target - 1) / round };
        let rest = target - rounds * round;
        // The point in whose time the sum is reached.
        let point = self.sums[..points.len()].partition_point(|sum| *sum < rest) - 1;
        let (at, rate) = points[point];
        if rate.as_bps() == 0 {
            return Instant::MAX;
        }
        let nanos =
            (rest - self.sums[point]).div_ceil(rate.as_bps().into()) + u128::from(at) + rounds * u128::from(*end);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn steps_begin_again_or_hold() {
        // 10 until 100 ms, 20 until 300 ms; the recording began at 50 ms.
        let steps = Steps::new(&[(ms(50), 10), (ms(150), 20), (ms(250), 20)]).unwrap();
        assert_eq!(steps.duration(), ms(300));
        let values = |steps: &Steps<i32>| [0, 99, 100, 299, 300, 399, 400, 1000].map(|now| steps.at(at(now)));
        assert_eq!(values(&steps), [10, 10, 20, 20, 10, 10, 20, 20]);
        assert_eq!(values(&steps.held()), [10, 10, 20, 20, 20, 20, 20, 20]);
        assert!((steps.mean(f64::from) - 50.0 / 3.0).abs() < 1e-9);
        for from in 0..300 {
            let (looped, held) = (steps.begun_at(ms(from)), steps.held().begun_at(ms(from)));
            for now in 0..700 {
                assert_eq!(looped.at(at(now)), steps.at(at(now + from)), "{from} {now}");
                assert_eq!(held.at(at(now)), steps.held().at(at(now + from)), "{from} {now}");
            }
        }
        assert_eq!(Steps::<i32>::new(&[]), None);
        assert_eq!(Steps::new(&[(ms(7), 1)]).unwrap().duration(), ms(1000));
        // The later of two values of one time counts.
        assert_eq!(Steps::new(&[(ms(0), 1), (ms(0), 2), (ms(9), 3)]).unwrap().at(at(0)), 2);
    }

    #[test]
    fn a_packet_takes_what_the_rate_sums_up_to() {
        // A byte per microsecond for 1 ms, none for 1 ms, two bytes per microsecond for 1 ms.
        let rates = [8_000_000, 0, 16_000_000].map(Rate::from_bps);
        let points: Vec<_> = rates.iter().enumerate().map(|(n, rate)| (ms(n as u64), *rate)).collect();
        let steps = Steps::new(&points).unwrap();
        let looped = RateSteps::from(steps.clone());
        let us = |us: u64| Instant::from_nanos(us * 1000);
        assert_eq!(looped.leaves(us(0), 1000), us(1000));
        assert_eq!(looped.leaves(us(0), 1500), us(2250));
        assert_eq!(looped.leaves(us(1500), 2000), us(3000));
        assert_eq!(looped.leaves(us(2500), 1500), us(3500));
        assert_eq!(looped.leaves(us(0), 9_000), us(9_000));
        assert_eq!(looped.bytes(us(500), us(3500)), 3000.0);
        assert_eq!(looped.mean_rate(), Rate::from_bps(8_000_000));
        let held = RateSteps::from(steps.held());
        assert_eq!(held.leaves(us(0), 9_000), us(6_000));
        assert_eq!(held.bytes(us(0), us(6_000)), 9_000.0);
        let dead = RateSteps::from(Steps::new(&points[..2]).unwrap().held());
        assert_eq!((dead.leaves(us(0), 1000), dead.leaves(us(0), 1001)), (us(1000), Instant::MAX));
        let never = RateSteps::from(Steps::new(&points[1..2]).unwrap());
        assert_eq!(never.leaves(us(5), 1), Instant::MAX);
    }
}
