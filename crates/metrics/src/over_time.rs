//! Values that hold over time: means, sums, and maxima of samples.

use crate::Histogram;
use anabranch_units::{Duration, Instant};

/// The mean of a value over the time in which it was known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeMean {
    value: Option<u64>,
    since: Instant,
    sum: u128,
    known: Duration,
}

impl TimeMean {
    /// From `now` on the value is this; `None` = unknown.
    pub fn set(&mut self, now: Instant, value: Option<u64>) {
        self.advance(now);
        self.value = value;
    }

    /// Forgets the past; the value stays.
    pub fn restart(&mut self, now: Instant) {
        *self = Self { value: self.value, since: now, ..Self::default() };
    }

    /// Up to `now` nothing changed.
    pub fn advance(&mut self, now: Instant) {
        let passed = now.since(self.since);
        if let Some(value) = self.value {
            self.sum += value as u128 * passed.as_nanos() as u128;
            self.known += passed;
        }
        self.since = self.since.max(now);
    }

    /// Adds what another one saw.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.known += other.known;
    }

    /// The mean; `None` if the value was never known for any time.
    pub fn mean(&self) -> Option<f64> {
        (!self.known.is_zero()).then(|| self.sum as f64 / self.known.as_nanos() as f64)
    }
}

/// As [`TimeMean`], of real numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RealMean {
    value: Option<f64>,
    since: Instant,
    /// Times seconds.
    sum: f64,
    known: f64,
}

impl RealMean {
    /// From `now` on the value is this; `None` = unknown.
    pub fn set(&mut self, now: Instant, value: Option<f64>) {
        self.advance(now);
        self.value = value;
    }

    /// Forgets the past; the value stays.
    pub fn restart(&mut self, now: Instant) {
        *self = Self { value: self.value, since: now, ..Self::default() };
    }

    /// Up to `now` nothing changed.
    pub fn advance(&mut self, now: Instant) {
        if let Some(value) = self.value {
            let passed = now.since(self.since).as_secs_f64();
            self.sum += value * passed;
            self.known += passed;
        }
        self.since = self.since.max(now);
    }

    /// The mean; `None` if the value was never known for any time.
    pub fn mean(&self) -> Option<f64> {
        (self.known > 0.0).then(|| self.sum / self.known)
    }
}

/// For how long something was true.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stopwatch {
    running: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    /// From `now` on it is true, or false.
    pub fn set(&mut self, now: Instant, on: bool) {
        self.total = self.read(now);
        self.running = on.then_some(now);
    }

    /// Forgets the past; true stays true.
    pub fn restart(&mut self, now: Instant) {
        *self = Self { running: self.running.map(|_| now), total: Duration::ZERO };
    }

    /// Total time until `now`.
    pub fn read(&self, now: Instant) -> Duration {
        self.total + self.running.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// The maxima of a value of each of several flows, within samples of fixed length.
#[derive(Clone, Debug)]
pub(crate) struct Peaks {
    step: Duration,
    flows: Vec<Sample>,
    /// The maxima of all samples that are over.
    closed: Histogram,
}

/// The open sample of a flow.
#[derive(Clone, Copy, Debug)]
struct Sample {
    end: Instant,
    value: u64,
    peak: u64,
}

impl Peaks {
    /// Samples of `step` (not zero) of `flows` flows, whose values begin at 0.
    pub fn new(step: Duration, flows: usize) -> Self {
        let flows = vec![Sample { end: Instant::ZERO + step, value: 0, peak: 0 }; flows];
        Self { step, flows, closed: Histogram::default() }
    }

    /// From `now` on the value of `flow` is this. A flow beyond the last does not count.
    #[inline(always)]
    pub fn set(&mut self, now: Instant, flow: usize, value: u64) {
        let Some(sample) = self.flows.get_mut(flow) else { return };
        if now >= sample.end {
            sample.close(now, self.step, &mut self.closed);
        }
        sample.value = value;
        sample.peak = sample.peak.max(value);
    }

    /// Forgets the past and begins the first samples; the values stay.
    pub fn restart(&mut self, now: Instant) {
        self.closed.clear();
        for sample in &mut self.flows {
            (sample.end, sample.peak) = (now + self.step, sample.value);
        }
    }

    /// The maxima up to `now`; a sample that has only begun counts.
    pub fn finish(&mut self, now: Instant) -> Histogram {
        for sample in &mut self.flows {
            if now >= sample.end {
                sample.close(now, self.step, &mut self.closed);
            }
            if now > sample.end - self.step {
                self.closed.add(sample.peak, 1);
            }
        }
        core::mem::take(&mut self.closed)
    }
}

impl Sample {
    /// Closes it and all further ones of length `step` that end by `now`: in those the value did not change.
    #[cold]
    #[inline(never)]
    fn close(&mut self, now: Instant, step: Duration, closed: &mut Histogram) {
        closed.add(self.peak, 1);
        let whole = now.since(self.end).as_nanos() / step.as_nanos();
        closed.add(self.value, whole);
        self.end += step * (whole + 1);
        self.peak = self.value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn means_are_weighted_by_time() {
        let mut mean = TimeMean::default();
        assert_eq!(mean.mean(), None);
        mean.set(ms(10), Some(4));
        mean.set(ms(20), Some(10));
        mean.set(ms(50), None);
        mean.advance(ms(90));
        assert_eq!(mean.mean(), Some((4.0 * 10.0 + 10.0 * 30.0) / 40.0));
        mean.set(ms(100), Some(7));
        mean.restart(ms(200));
        assert_eq!(mean.mean(), None);
        mean.advance(ms(300));
        assert_eq!(mean.mean(), Some(7.0));
    }

    #[test]
    fn means_of_real_numbers_are_too() {
        let mut mean = RealMean::default();
        mean.set(ms(0), Some(-0.5));
        mean.set(ms(250), Some(1.5));
        mean.set(ms(1000), None);
        mean.advance(ms(9000));
        assert_eq!(mean.mean(), Some(-0.5 * 0.25 + 1.5 * 0.75));
        mean.restart(ms(9000));
        assert_eq!(mean.mean(), None);
    }

    #[test]
    fn a_stopwatch_adds_up() {
        let mut watch = Stopwatch::default();
        watch.set(ms(10), true);
        watch.set(ms(12), true);
        watch.set(ms(15), false);
        watch.set(ms(20), true);
        assert_eq!(watch.read(ms(30)), Duration::from_millis(15));
        watch.restart(ms(30));
        assert_eq!(watch.read(ms(31)), Duration::from_millis(1));
    }

    fn peaks(flows: usize) -> Peaks {
        Peaks::new(Duration::from_millis(10), flows)
    }

    #[test]
    fn peaks_fill_samples_without_changes() {
        let mut peaks = peaks(1);
        peaks.restart(ms(5));
        peaks.set(ms(6), 0, 30); // sample [5, 15): 30
        peaks.set(ms(7), 0, 10); // then [15, 25), [25, 35): 10
        peaks.set(ms(35), 0, 20); // sample [35, 45): 20, for it begins with 10
        let seen = peaks.finish(ms(40));
        assert_eq!(seen.mean(), Some((30.0 + 10.0 + 10.0 + 20.0) / 4.0));
        assert_eq!(seen.max(), Some(30));
    }

    #[test]
    fn a_sample_without_length_does_not_count() {
        let mut peaks = peaks(1);
        peaks.restart(ms(0));
        peaks.set(ms(10), 0, 50);
        assert_eq!(peaks.finish(ms(10)).mean(), Some(0.0));
    }

    #[test]
    fn each_flow_has_samples_of_its_own() {
        let mut peaks = peaks(2);
        peaks.restart(ms(0));
        peaks.set(ms(1), 0, 40);
        peaks.set(ms(2), 1, 8);
        peaks.set(ms(3), 2, 500); // there is none
        assert_eq!((peaks.finish(ms(10)).mean(), peaks.finish(ms(10)).len()), (Some(24.0), 0));
    }
}
