//! How late the loop ran.

use anabranch_units::Duration;

/// Lateness of packets that left for hosts outside, in a histogram of one microsecond.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Packets by whole microseconds of lateness; the last counts all above.
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

/// What became of a run's timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatenessReport {
    /// Packets.
    pub packets: u64,
    /// Half of them were at most so late.
    pub median: Duration,
    /// 99 of 100 were.
    pub p99: Duration,
    /// The latest was so late.
    pub max: Duration,
}

const BINS: usize = 100_000;

impl Lateness {
    /// A packet left `by` after its time.
    pub fn note(&mut self, by: Duration) {
        if self.counts.is_empty() {
            self.counts = vec![0; BINS];
        }
        self.counts[(by.as_micros() as usize).min(BINS - 1)] += 1;
        self.total += 1;
        self.max = self.max.max(by);
    }

    /// The least lateness, in whole microseconds rounded up, that `share` of the packets did not exceed.
    fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        let bin = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bin.map_or(Duration::ZERO, |micros| Duration::from_micros(micros as u64 + 1).min(self.max))
    }

    /// In short.
    pub fn report(&self) -> LatenessReport {
        LatenessReport { packets: self.total, median: self.quantile(0.5), p99: self.quantile(0.99), max: self.max }
    }
}

impl LatenessReport {
    /// Lateness below which an emulated path is as good as its description.
    pub const GOOD: Duration = Duration::from_millis(1);

    /// 99 of 100 packets left within a millisecond of their time.
    pub fn is_accurate(&self) -> bool {
        self.p99 <= Self::GOOD
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
            lateness.note(Duration::from_micros(micros));
        }
        let report = lateness.report();
        assert_eq!(report.packets, 1000);
        assert_eq!((report.median, report.p99), (Duration::from_micros(500), Duration::from_micros(990)));
        assert_eq!(report.max, Duration::from_micros(999));
        assert!(report.is_accurate());
        for _ in 0..20 {
            lateness.note(Duration::from_millis(500));
        }
        assert_eq!((lateness.report().max, lateness.report().is_accurate()), (Duration::from_millis(500), false));
    }
}
