//! The packets that a bottleneck and its buffer hold, and the congestion-avoidance cycle over them: equation 10 and
//! related ones.

use libm::{ceil, floor, sqrt};

/// The error that rounding may add to a whole number.
const ROUNDING: f64 = 1e-9;

/// A bottleneck that one flow fills, with packets of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storage {
    /// Rate of the bottleneck μ, bits per second; above 0.
    pub rate: f64,
    /// Round-trip time τ without queueing, seconds; above 0.
    pub rtt: f64,
    /// Size of a packet, bytes; above 0.
    pub packet: f64,
    /// Buffer B in bandwidth-delay products μτ.
    pub buffer: f64,
    /// Take μτ as a whole number of packets, rounded down (at least 1), as the paper's figures do.
    pub floor_bdp: bool,
}

/// The end of a cycle of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// At w = F + 1, which the printed T_ca solves.
    Printed,
    /// At w = F, according to the text around it.
    Text,
}

impl Cycle {
    /// Both, in the order of the registry's words.
    pub const ALL: [Self; 2] = [Self::Printed, Self::Text];
}

impl Default for Storage {
    /// The paper's example: 10 Mbit/s, 15 ms, packets of 1500 bytes; one bandwidth-delay product of buffer.
    fn default() -> Self {
        Self { rate: 10e6, rtt: 0.015, packet: 1500.0, buffer: 1.0, floor_bdp: false }
    }
}

impl Storage {
    /// The rate in packets per second.
    pub fn packet_rate(&self) -> f64 {
        self.rate / (8.0 * self.packet)
    }

    /// μτ: packets that the path holds without its buffer.
    pub fn bdp_packets(&self) -> f64 {
        let bdp = self.packet_rate() * self.rtt;
        if self.floor_bdp { floor(bdp + ROUNDING).max(1.0) } else { bdp }
    }

    /// F = ⌈B + μτ⌉: packets that path and buffer hold.
    pub fn packets(&self) -> f64 {
        let bdp = self.bdp_packets();
        ceil(self.buffer * bdp + bdp - ROUNDING).max(1.0)
    }

    /// The window `time` seconds after the buffer begins to fill, if one acknowledgment covers `delayed_ack` packets (eq 10).
    pub fn window(&self, time: f64, delayed_ack: f64) -> f64 {
        let start = (self.packets() + 1.0) / 2.0;
        sqrt(start * start + 2.0 * self.packet_rate() * time / delayed_ack)
    }

    /// The round-trip time with `window` packets in flight: each one above μτ waits 1/μ.
    pub fn rtt_at(&self, window: f64) -> f64 {
        let queued = window - self.bdp_packets();
        self.rtt + queued.max(0.0) / self.packet_rate()
    }

    /// The duration of a cycle, T_ca, in seconds.
    pub fn cycle_time(&self, delayed_ack: f64, cycle: Cycle) -> f64 {
        let f = self.packets();
        let packets = match cycle {
            Cycle::Printed => 3.0 * delayed_ack * (f + 1.0) * (f + 1.0) / 8.0,
            // Equation 10 solved for w(T) = F: ((F + 1)/2)² + 2μT/b = F².
            Cycle::Text => delayed_ack * (3.0 * f + 1.0) * (f - 1.0) / 8.0,
        };
        packets / self.packet_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_the_path_and_the_buffer() {
        let of = |buffer, floor_bdp| Storage { buffer, floor_bdp, ..Storage::default() }.packets();
        assert_eq!([0.0, 1.0, 8.0].map(|buffer| of(buffer, true)), [12.0, 24.0, 108.0]);
        assert_eq!([0.0, 1.0, 8.0].map(|buffer| of(buffer, false)), [13.0, 25.0, 113.0]);
        // A product that is a whole number except for rounding is not rounded up.
        assert_eq!(Storage { rtt: 0.0144, ..Storage::default() }.packets(), 24.0);
    }

    #[test]
    fn the_window_at_the_end_of_a_cycle_is_what_the_cycle_ends_at() {
        for storage in [Storage::default(), Storage { buffer: 8.0, ..Storage::default() }] {
            for b in [1.0, 2.0] {
                let end = |cycle| storage.window(storage.cycle_time(b, cycle), b);
                assert!((end(Cycle::Printed) - (storage.packets() + 1.0)).abs() < 1e-9);
                assert!((end(Cycle::Text) - storage.packets()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn round_trips_grow_with_the_queue_alone() {
        let storage = Storage { floor_bdp: true, ..Storage::default() };
        assert_eq!(storage.rtt_at(7.0), 0.015);
        // 12 more packets of 1.2 ms each.
        assert!((storage.rtt_at(24.0) - 0.0294).abs() < 1e-12);
    }
}
