//! How a Linux kernel counts the window of a connection, where [`HostModel::Linux`] asks for it: a model of what was seen in
//! captures of Linux 6.18 and of what its functions do. One rule per function below.

use super::{Connection, Mode};
use crate::settings::{HostModel, Settings};
use anabranch_wire::Segment;

/// What waits at a receiver, in bytes of payload.
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
/// that the edge stands still while data comes behind a hole. Below a sixteenth of the buffer, or a segment, none is free.
///
/// Linux 6.18: `__mptcp_space` (`tcp_space` for plain TCP), `__tcp_select_window`.
fn free_edge(buffer: u64, mss: u64, waiting: Waiting) -> u64 {
    let free = buffer.saturating_sub(waiting.unread + waiting.held);
    let least = (buffer / 16).max(mss);
    waiting.next + if free < least { 0 } else { free }
}

/// The share of the buffer that is offered until every subflow has brought data: the kernel takes half of its memory for
/// payload until it has seen how large packets are, and of several subflows the least share.
///
/// Linux 6.18: `TCP_DEFAULT_SCALING_RATIO`, `tcp_measure_rcv_mss`, `mptcp_rcv_space_adjust`.
fn unmeasured(settings: &Settings) -> u64 {
    let payload = u64::from(settings.mss);
    // Of a received packet: its bytes with room before and behind in a power of two, and its descriptor.
    let memory = (payload + 80 + 384).next_power_of_two().max(1024) + 256;
    let half = u128::from(settings.recv_buffer) * u128::from(memory) / u128::from(2 * payload);
    settings.recv_buffer.min(half as u64)
}

impl Connection {
    pub(super) fn counts_as_linux(&self) -> bool {
        self.settings.receiver_model == HostModel::Linux
    }

    pub(super) fn heeds_as_linux(&self) -> bool {
        self.settings.sender_model == HostModel::Linux
    }

    /// First offset beyond the free space now.
    pub(super) fn linux_edge(&self) -> u64 {
        free_edge(self.linux_buffer(), u64::from(self.settings.mss), self.waiting())
    }

    fn linux_buffer(&self) -> u64 {
        let mut any = false;
        let measured = self.subflows.iter().filter(|s| s.state.is_synchronized()).all(|s| {
            any = true;
            s.receiver.next() > 1
        });
        if measured && any { self.settings.recv_buffer } else { unmeasured(&self.settings) }
    }

    fn waiting(&self) -> Waiting {
        let next = self.reassembly.next();
        // What a subflow of Multipath TCP holds behind its own hole is charged to the subflow, whose memory does not decide
        // about the window (Linux 6.18: `mptcp_space`).
        let subflows = match self.mode {
            Mode::Plain => self.subflows.iter().map(|s| s.receiver.held_bytes()).sum(),
            Mode::Opening | Mode::Multipath { .. } => 0,
        };
        Waiting { next, unread: next - self.reassembly.read_bytes(), held: self.reassembly.ofo_bytes() + subflows }
    }

    /// The application read. A subflow tells of it if at most half of the buffer is left of what was offered on that subflow, and
    /// at least twice as much is free; what another has told meanwhile does not count.
    ///
    /// Linux 6.18: `mptcp_cleanup_rbuf`, `__tcp_cleanup_rbuf`.
    pub(super) fn linux_tells(&mut self) {
        let free = self.linux_edge() - self.reassembly.next();
        let buffer = self.linux_buffer();
        for s in self.subflows.iter_mut().filter(|s| s.state.is_synchronized()) {
            let left = s.offered.saturating_sub(s.receiver.next() - s.acked_to);
            if 2 * left <= buffer && free > 0 && free >= 2 * left {
                s.acks.demand();
                self.touched |= u64::from(s.id.bit());
            }
        }
    }

    /// The window that a sender adds to a DATA_ACK: that of the subflow, which a duplicate acknowledgment does not shrink. So it
    /// may reach beyond what the receiver promised.
    ///
    /// Linux 6.18: `ack_update_msk`, `tcp_may_update_window`.
    pub(super) fn linux_heard(&mut self, i: usize, segment: &Segment, size: u64) -> u64 {
        let acked = self.acked(i, segment);
        let s = &mut self.subflows[i];
        if size == 0 || size > s.heard_window || acked.is_some_and(|ack| ack > s.sender.una()) {
            s.heard_window = size;
        }
        s.heard_window
    }

    /// Data from `start` on is about to leave on a subflow, whose window is at least what the connection's leaves.
    ///
    /// Linux 6.18: `mptcp_check_allowed_size`.
    pub(super) fn linux_allows(&mut self, i: usize, start: u64) {
        let left = self.view.window_edge().saturating_sub(start);
        let s = &mut self.subflows[i];
        s.heard_window = s.heard_window.max(left);
    }

    /// Bytes of the data sequence from `start` to `end` are dropped as a whole: they are out of order and end beyond what was
    /// promised, though their subflow has acknowledged them. The peer's data-level timer repairs that (RFC 8684 §3.3.6).
    ///
    /// Linux 6.18: `mptcp_data_queue_ofo`, counted as `MPTcpExtNoDSSInWindow`.
    pub(super) fn linux_drops(&self, start: u64, end: u64) -> bool {
        self.counts_as_linux() && self.mode != Mode::Plain && start > self.reassembly.next() && end > self.announced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_of_the_window() {
        // As a capture showed: 66 048 bytes advertised, and 61 824 with 4248 out of order, to the unit of the window scale.
        let waiting = |unread, held| Waiting { next: 1000, unread, held };
        assert_eq!(free_edge(66_048, 1416, waiting(0, 0)), 67_048);
        assert_eq!(free_edge(66_048, 1416, waiting(0, 4248)), 1000 + 61_800);
        assert_eq!(free_edge(66_048, 1416, waiting(1416, 4248)), 1000 + 60_384);
        assert_eq!(free_edge(66_048, 1416, waiting(1 << 20, 0)), 1000);
    }

    #[test]
    fn a_sixteenth_of_the_buffer_or_a_segment_is_the_least_that_is_offered() {
        let edge = |buffer, mss, held| free_edge(buffer, mss, Waiting { held, ..Waiting::default() });
        assert_eq!((edge(160_000, 1400, 150_000), edge(160_000, 1400, 150_001)), (10_000, 0));
        assert_eq!((edge(16_000, 1400, 14_600), edge(16_000, 1400, 14_601)), (1400, 0));
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
