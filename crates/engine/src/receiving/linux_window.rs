//! The window that a Linux kernel offers, for `HostModel::Linux` as `receiver_model`: a model of captures of Linux 6.18
//! and of that kernel's functions.

use crate::accounting::packet_memory;
use crate::settings::Settings;

/// Data that waits at a receiver, in bytes of payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Next data offset expected.
    pub next: u64,
    /// In sequence, and not read by the application.
    pub unread: u64,
    /// Out of order, as far as its memory counts.
    pub held: u64,
}

/// First offset beyond the free space of `buffer` bytes. Memory of what waits out of order counts as that of unread data, so
/// that the edge stands still while data comes behind a hole. Below a sixteenth of the buffer, or a segment, none is free. What
/// is offered is rounded up to whole `unit`s, so that windows seldom end with a segment.
///
/// Linux 6.18: `__mptcp_space` (`tcp_space` for plain TCP), `__tcp_select_window`.
fn free_edge(buffer: u64, mss: u64, unit: u64, waiting: Waiting) -> u64 {
    let free = buffer.saturating_sub(waiting.unread + waiting.held);
    let least = (buffer / 16).max(mss);
    waiting.next + if free < least { 0 } else { free.next_multiple_of(unit) }
}

/// The unit of a kernel's window field, bytes: it scales for the greatest buffer that the host allows, 4 MiB (`rmem_max`), or for
/// this one, of so many bytes of memory.
///
/// Linux 6.18: `tcp_select_initial_window`.
fn unit(memory: u64) -> u64 {
    1 << (memory.max(4 << 20).ilog2() - 15).min(14)
}

/// The share of the buffer that is offered until every subflow has brought data: the kernel takes half of its memory for
/// payload until it has seen how large packets are, and of several subflows the least share.
///
/// Linux 6.18: `TCP_DEFAULT_SCALING_RATIO`, `tcp_measure_rcv_mss`, `mptcp_rcv_space_adjust`.
fn unmeasured(settings: &Settings) -> u64 {
    let payload = u64::from(settings.mss);
    let half = u128::from(settings.recv_buffer) * u128::from(packet_memory(payload)) / u128::from(2 * payload);
    settings.recv_buffer.min(half as u64)
}

/// The window of a Linux receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinuxWindow {
    buffer: u64,
    unmeasured: u64,
    mss: u64,
    unit: u64,
}

impl LinuxWindow {
    pub fn new(settings: &Settings) -> Self {
        let (buffer, mss) = (settings.recv_buffer, u64::from(settings.mss));
        let memory = u128::from(buffer) * u128::from(packet_memory(mss)) / u128::from(mss.max(1));
        Self { buffer, unmeasured: unmeasured(settings), mss, unit: unit(memory.min(u64::MAX.into()) as u64) }
    }

    /// The share of the buffer that counts, bytes. `measured`: every subflow has brought data.
    pub fn buffer(&self, measured: bool) -> u64 {
        if measured { self.buffer } else { self.unmeasured }
    }

    /// First offset beyond the free space now.
    pub fn edge(&self, measured: bool, waiting: Waiting) -> u64 {
        free_edge(self.buffer(measured), self.mss, self.unit, waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_of_the_window() {
        // As a capture showed: 66 048 bytes advertised, and 61 824 with 4248 out of order.
        let waiting = |unread, held| Waiting { next: 1000, unread, held };
        let edge = |waiting| free_edge(66_048, 1416, 128, waiting);
        assert_eq!(edge(waiting(0, 0)), 67_048);
        assert_eq!(edge(waiting(0, 4248)), 1000 + 61_824);
        assert_eq!(edge(waiting(1416, 4248)), 1000 + 60_416);
        assert_eq!(edge(waiting(1 << 20, 0)), 1000);
    }

    #[test]
    fn a_sixteenth_of_the_buffer_or_a_segment_is_the_least_that_is_offered() {
        let edge = |buffer, mss, held| free_edge(buffer, mss, 1, Waiting { held, ..Waiting::default() });
        assert_eq!((edge(160_000, 1400, 150_000), edge(160_000, 1400, 150_001)), (10_000, 0));
        assert_eq!((edge(16_000, 1400, 14_600), edge(16_000, 1400, 14_601)), (1400, 0));
    }

    #[test]
    fn the_window_scale_is_that_of_the_greatest_buffer() {
        assert_eq!((unit(100_000), unit(4 << 20), unit(8 << 20), unit(u64::MAX)), (128, 128, 256, 16_384));
    }

    #[test]
    fn before_packets_are_known_half_of_the_memory_counts() {
        let settings = |mss, recv_buffer| Settings { mss, recv_buffer, ..Settings::default() };
        // A capture began with 52 416 to 52 736 bytes for a window of 66 000.
        assert_eq!(unmeasured(&settings(1420, 66_000)), 53_543);
        // Small packets take more than half themselves.
        assert_eq!(unmeasured(&settings(536, 66_000)), 66_000);
        assert_eq!(u128::from(unmeasured(&settings(1400, 1 << 60))), (1 << 60) * 2304 / 2800);
    }
}
