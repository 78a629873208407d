//! The lateness of the loop.

use anabranch_units::{Duration, Instant};

/// Lateness of packets delivered to hosts outside, in a histogram of one-microsecond bins.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Packets per whole microsecond of lateness; the last bin counts everything above.
    counts: Vec<u64>,
    total: u64,
    max: Duration,
    /// When the last packet left.
    left: Instant,
    /// Consecutive packets until then that left together.
    burst: u64,
    longest_burst: u64,
}

/// The timing of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatenessReport {
    /// Delivered packets.
    pub packets: u64,
    /// Median lateness.
    pub median: Duration,
    /// 99th percentile of lateness.
    pub p99: Duration,
    /// Greatest lateness.
    pub max: Duration,
    /// Most consecutive packets that left together, each late.
    pub burst: u64,
}

const BINS: usize = 100_000;

impl Lateness {
    /// Records a packet that was due `at` and left at `left`.
    pub fn note(&mut self, at: Instant, left: Instant) {
        let by = left.since(at);
        // A packet that was due before the previous one left follows it directly, whatever the model's spacing.
        let together = by > LatenessReport::GOOD && at <= self.left;
        self.burst = if together { self.burst + 1 } else { u64::from(by > LatenessReport::GOOD) };
        self.longest_burst = self.longest_burst.max(self.burst);
        self.left = left;
        if self.counts.is_empty() {
            self.counts = vec![0; BINS];
        }
        self.counts[(by.as_micros() as usize).min(BINS - 1)] += 1;
        self.total += 1;
        self.max = self.max.max(by);
    }

    /// The quantile `share` of the lateness, in whole microseconds rounded up.
    fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        let bin = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bin.map_or(Duration::ZERO, |micros| Duration::from_micros(micros as u64 + 1).min(self.max))
    }

    /// The summary.
    pub fn report(&self) -> LatenessReport {
        LatenessReport {
            packets: self.total,
            median: self.quantile(0.5),
            p99: self.quantile(0.99),
            max: self.max,
            burst: self.longest_burst,
        }
    }
}

impl LatenessReport {
    /// Lateness below which an emulated path is as accurate as its description.
    pub const GOOD: Duration = Duration::from_millis(1);

    /// Lateness of a stall: packets that leave together after it are a burst that no path made.
    pub const STALL: Duration = Duration::from_millis(10);

    /// 99 of 100 packets left within a millisecond of their time, and the loop never stalled.
    pub fn is_accurate(&self) -> bool {
        self.p99 <= Self::GOOD && self.max <= Self::STALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_packets() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.report(), LatenessReport::default());
        for micros in 0..1000 {
            lateness.note(Instant::ZERO, Instant::ZERO + Duration::from_micros(micros));
        }
        let report = lateness.report();
        assert_eq!(report.packets, 1000);
        assert_eq!((report.median, report.p99), (Duration::from_micros(500), Duration::from_micros(990)));
        assert_eq!(report.max, Duration::from_micros(999));
        assert!(report.is_accurate());
        for _ in 0..20 {
            lateness.note(Instant::ZERO, Instant::from_millis(500));
        }
        assert_eq!((lateness.report().max, lateness.report().is_accurate()), (Duration::from_millis(500), false));
    }

    #[test]
    fn what_a_stall_lets_go_together_is_a_burst() {
        let mut lateness = Lateness::default();
        let mut leave = |at: u64, left: u64| {
            lateness.note(Instant::from_millis(at), Instant::from_millis(left));
            let report = lateness.report();
            (report.burst, report.is_accurate())
        };
        // Late, each at its own time.
        assert_eq!([leave(10, 11), leave(20, 22), leave(30, 32)], [(0, true), (1, false), (1, false)]);
        assert_eq!(
            [leave(40, 50), leave(42, 50), leave(44, 50), leave(60, 60)],
            [(1, false), (2, false), (3, false), (3, false)]
        );
        let mut stalled = Lateness::default();
        for n in 0..1000 {
            stalled.note(Instant::from_millis(n), Instant::from_millis(n));
        }
        assert!(stalled.report().is_accurate());
        stalled.note(Instant::from_millis(1000), Instant::from_millis(1011));
        assert!(!stalled.report().is_accurate());
    }
}
