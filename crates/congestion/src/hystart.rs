//! HyStart: leave slow start before the queue overflows (Ha and Rhee 2008, as Linux's CUBIC does it).

use anabranch_plugin::congestion::Acked;
use anabranch_units::{Duration, Instant};

/// Below this window, in packets, slow start continues unchecked.
const LOW_WINDOW: u32 = 16;
/// RTT samples that make a round's minimum.
const MIN_SAMPLES: u32 = 8;
/// Acknowledgments at most this far apart belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Allowance for aggregation at sender and receiver; Linux lowers it only above 2 Gbit/s.
const AGGREGATION: Duration = Duration::from_millis(1);
/// Bounds of the delay increase that ends slow start.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);

/// HyStart's state on a subflow since its begin, or since its last timeout.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    found: bool,
    round: Option<Round>,
    base: Option<Duration>,
}

/// One round trip of slow start.
#[derive(Clone, Debug)]
struct Round {
    start: Instant,
    train_end: Instant,
    least_rtt: Duration,
    samples: u32,
}

impl Round {
    fn begin(now: Instant) -> Self {
        Self { start: now, train_end: now, least_rtt: Duration::MAX, samples: 0 }
    }

    /// The train of acknowledgments has lasted as long as the path's estimated length: half the least RTT, or all of it
    /// if pacing spreads the packets.
    fn train_fills_path(&mut self, now: Instant, base: Duration, paced: bool) -> bool {
        if now.since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        now.since(self.start) > (base + AGGREGATION) / if paced { 1 } else { 2 }
    }

    /// The least of this round's first samples exceeds the least RTT by more than an eighth, within bounds.
    fn delay_rose(&mut self, rtt: Duration, base: Duration) -> bool {
        self.least_rtt = self.least_rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.least_rtt > base + (base / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

impl HyStart {
    /// Takes an acknowledgment in slow start at a window of `cwnd` packets; true if slow start should end.
    pub fn on_ack(&mut self, ack: &Acked, cwnd: u32, paced: bool) -> bool {
        if self.found {
            return false;
        }
        if ack.round_ended {
            self.round = None;
        }
        let round = self.round.get_or_insert_with(|| Round::begin(ack.now));
        let Some(rtt) = ack.rtt else { return false };
        let base = self.base.map_or(rtt, |b| b.min(rtt));
        self.base = Some(base);
        if cwnd < LOW_WINDOW {
            return false;
        }
        // Both tests see every acknowledgment, because each keeps its own count.
        let train = round.train_fills_path(ack.now, base, paced);
        self.found = round.delay_rose(rtt, base) || train;
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays one round of `acks` acknowledgments `gap_us` apart; the index of the one that ends slow start.
    fn round(h: &mut HyStart, start_ms: u64, acks: u64, gap_us: u64, rtt_ms: u64, paced: bool) -> Option<u64> {
        (0..acks).find(|i| {
            let ack = Acked {
                now: Instant::from_millis(start_ms) + Duration::from_micros(gap_us) * *i,
                rtt: Some(Duration::from_millis(rtt_ms)),
                round_ended: *i == 0,
                ..Acked::default()
            };
            h.on_ack(&ack, 64, paced)
        })
    }

    #[test]
    fn a_train_of_half_the_round_trip_ends_slow_start() {
        // (100 + 1) / 2 ms of acknowledgments 1 ms apart: the 51st is the first one later than that.
        assert_eq!(round(&mut HyStart::default(), 100, 90, 1000, 100, false), Some(51));
        assert_eq!(round(&mut HyStart::default(), 100, 90, 1000, 100, true), None);
        assert_eq!(round(&mut HyStart::default(), 100, 110, 1000, 100, true), Some(102));
    }

    #[test]
    fn a_gap_breaks_the_train_for_the_round() {
        let mut h = HyStart::default();
        assert_eq!(round(&mut h, 100, 90, 2001, 100, false), None);
        assert_eq!(round(&mut h, 300, 90, 2000, 100, false), Some(26));
    }

    #[test]
    fn a_longer_delay_ends_slow_start_after_eight_samples() {
        let mut h = HyStart::default();
        assert_eq!(round(&mut h, 100, 20, 5000, 100, false), None);
        assert_eq!(round(&mut h, 300, 20, 5000, 112, false), None);
        assert_eq!(round(&mut h, 500, 20, 5000, 113, false), Some(8));
        // Slow start ends once.
        assert_eq!(round(&mut h, 700, 20, 5000, 200, false), None);
    }

    #[test]
    fn the_delay_that_counts_has_bounds() {
        for (base, quiet, loud) in [(10, 14, 15), (400, 416, 417)] {
            let mut h = HyStart::default();
            assert_eq!(round(&mut h, 1000, 20, 5000, base, false), None);
            assert_eq!(round(&mut h, 2000, 20, 5000, quiet, false), None);
            assert_eq!(round(&mut h, 3000, 20, 5000, loud, false), Some(8));
        }
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut h = HyStart::default();
        for i in 0..200 {
            let mut ack = Acked::default();
            (ack.now, ack.rtt) = (Instant::from_millis(i), Some(Duration::from_millis(20 + i)));
            assert!(!h.on_ack(&ack, LOW_WINDOW - 1, false));
        }
    }
}
