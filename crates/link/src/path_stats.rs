//! The load of a path, for `anabranch status`.

use anabranch_units::{Duration, Instant};

/// The load of a path, of one connection or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Payload sent.
    pub sent_bytes: u64,
    /// Packets with payload, retransmitted ones included.
    pub packets: u64,
    /// Packets whose payload had been sent before.
    pub retransmitted: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Congestion window, in packets.
    pub cwnd: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// The second that is counted, its bytes, and those of the second before.
    second: u64,
    now_bytes: u64,
    last_bytes: u64,
}

impl PathStats {
    fn advance(&mut self, now: Instant) {
        let second = now.as_nanos() / 1_000_000_000;
        if second > self.second {
            self.last_bytes = if second == self.second + 1 { self.now_bytes } else { 0 };
            (self.second, self.now_bytes) = (second, 0);
        }
    }

    /// Counts a packet with so much payload.
    pub fn add(&mut self, now: Instant, bytes: u64) {
        self.advance(now);
        self.sent_bytes += bytes;
        self.now_bytes += bytes;
        self.packets += 1;
    }

    /// Payload sent in the last whole second before `now`, bit/s.
    pub fn rate_bps(mut self, now: Instant) -> u64 {
        self.advance(now);
        self.last_bytes * 8
    }
}
