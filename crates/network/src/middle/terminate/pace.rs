//! The pace of a sender that terminates TCP: its timeout (RFC 6298), and NewReno's window (RFC 5681, RFC 6582).

use anabranch_units::{Duration, Instant};

/// The timeout before the first sample (RFC 6298 §2.1).
const FIRST: Duration = Duration::from_secs(1);
/// The least timeout, as in Linux.
const LEAST: Duration = Duration::from_millis(200);
/// The longest timeout (RFC 6298 §2.5).
const LONGEST: Duration = Duration::from_secs(60);

/// Estimates of one sender. Positions are offsets from the initial sequence number.
#[derive(Debug)]
pub(super) struct Pace {
    segment: u64,
    window: u64,
    threshold: u64,
    /// Duplicate acknowledgments in a row.
    duplicates: u32,
    recovers: bool,
    /// The end of the bytes sent when the last loss was found: `recover` of RFC 6582 §3.2.
    recover: u64,
    /// Smoothed round-trip time, and its variation.
    round_trip: Option<(Duration, Duration)>,
    /// The end of the segment that is timed, and when it left.
    timed: Option<(u64, Instant)>,
    doublings: u32,
}

impl Pace {
    /// A sender of segments of at most so many bytes.
    pub fn new(segment: u64) -> Self {
        Self {
            segment,
            window: 10 * segment, // RFC 6928 §2
            threshold: u64::MAX,
            duplicates: 0,
            recovers: false,
            recover: 0,
            round_trip: None,
            timed: None,
            doublings: 0,
        }
    }

    /// Bytes that may be under way.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The present timeout.
    pub fn timeout(&self) -> Duration {
        // RFC 6298 §2.2, §2.3: K = 4.
        let first = |(smooth, varies): (Duration, Duration)| smooth + varies * 4;
        let one = self.round_trip.map_or(FIRST, first).max(LEAST);
        (one * (1 << self.doublings.min(16))).min(LONGEST)
    }

    /// New data up to `end` leaves.
    pub fn on_sent(&mut self, now: Instant, end: u64) {
        self.timed.get_or_insert((end, now));
    }

    /// Data is acknowledged up to `una`, `bytes` of it new. True if the segment at `una` is lost, too.
    pub fn on_progress(&mut self, now: Instant, una: u64, bytes: u64) -> bool {
        self.duplicates = 0;
        if let Some((_, at)) = self.timed.take_if(|(end, _)| *end <= una) {
            self.sample(now.since(at));
            self.doublings = 0;
        }
        if self.recovers {
            self.recovers = una < self.recover;
            // RFC 6582 §3.2: full acknowledgment, then partial acknowledgment.
            let partial = self.window.saturating_sub(bytes) + self.segment.min(bytes);
            self.window = if self.recovers { partial } else { self.threshold };
            return self.recovers;
        }
        // RFC 5681 §3.1
        self.window += match self.window < self.threshold {
            true => bytes.min(self.segment),
            false => (self.segment * self.segment / self.window).max(1),
        };
        false
    }

    /// A duplicate acknowledgment of `una` came while data up to `sent` was under way. True if the segment at `una` is lost.
    pub fn on_duplicate(&mut self, una: u64, sent: u64) -> bool {
        self.duplicates += 1;
        if self.recovers {
            self.window += self.segment;
        }
        // RFC 6582 §3.2: what was repeated before answers with duplicates of its own.
        if self.duplicates != 3 || self.recovers || una <= self.recover {
            return false;
        }
        self.threshold = self.half(sent - una);
        self.window = self.threshold + 3 * self.segment;
        (self.recovers, self.recover, self.timed) = (true, sent, None);
        true
    }

    /// The timer expired while data from `una` to `sent` was under way.
    pub fn on_timeout(&mut self, una: u64, sent: u64) {
        // RFC 5681 §3.1, RFC 6298 §5.5; no sample of what is sent twice (Karn).
        self.threshold = self.half(sent - una);
        self.window = self.segment;
        (self.recovers, self.recover, self.timed, self.duplicates) = (false, sent, None, 0);
        self.back_off();
    }

    /// The timer expired, and a longer one follows.
    pub fn back_off(&mut self) {
        self.doublings += 1;
    }

    fn half(&self, flight: u64) -> u64 {
        (flight / 2).max(2 * self.segment)
    }

    fn sample(&mut self, took: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => (took, took / 2),
            Some((smooth, varies)) => {
                let apart = smooth.saturating_sub(took).max(took.saturating_sub(smooth));
                (smooth - smooth / 8 + took / 8, varies - varies / 4 + apart / 4)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn the_timeout_follows_the_round_trips_and_doubles() {
        let mut pace = Pace::new(1000);
        assert_eq!(pace.timeout(), Duration::from_secs(1));
        pace.on_sent(MS(0), 1000);
        pace.on_progress(MS(100), 1000, 1000);
        assert_eq!(pace.timeout(), Duration::from_millis(100 + 4 * 50));
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            pace = Pace { round_trip: None, ..pace };
            pace.on_timeout(1000, 3000);
            assert_eq!(pace.timeout(), Duration::from_secs(seconds));
        }
        // Bytes that were sent twice are no sample.
        pace.on_progress(MS(9000), 3000, 2000);
        assert_eq!(pace.timeout(), Duration::from_secs(60));
    }

    #[test]
    fn the_window_grows_halves_and_recovers() {
        let mut pace = Pace::new(1000);
        assert_eq!((pace.on_progress(MS(1), 1000, 1000), pace.window()), (false, 11_000));
        let answers = [0; 4].map(|_| pace.on_duplicate(1000, 12_000));
        assert_eq!((answers, pace.window()), ([false, false, true, false], 5500 + 3000 + 1000));
        assert!(pace.on_progress(MS(2), 5000, 4000), "a partial acknowledgment shows the next loss");
        assert_eq!((pace.on_progress(MS(3), 12_000, 7000), pace.window()), (false, 5500));
        pace.on_progress(MS(4), 13_000, 1000);
        assert_eq!(pace.window(), 5500 + 181);
        pace.on_timeout(13_000, 18_000);
        assert_eq!((pace.window(), [0; 3].map(|_| pace.on_duplicate(13_000, 18_000))), (1000, [false; 3]));
    }
}
