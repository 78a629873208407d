//! The sender's memory of data that was handed to a subflow, for [`PeerWindow::OfSubflow`] and [`SmallSegments::AndSubflow`].
//!
//! [`PeerWindow::OfSubflow`]: crate::schedule::PeerWindow::OfSubflow
//! [`SmallSegments::AndSubflow`]: crate::schedule::SmallSegments::AndSubflow

use super::Subflow;
use anabranch_wire::Segment;

/// State of a subflow beyond the RFCs.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// The window that it takes for the peer's (Linux `snd_wnd`), bytes from the first that is not acknowledged.
    window: u64,
    /// End of the last segment below the MSS that was sent (Linux `snd_sml`).
    small: u64,
}

impl Subflow {
    /// The window that belongs to the DATA_ACK of `segment`, whose own is `size`: that of the subflow, which a duplicate acknowledgment
    /// does not shrink. So it may reach beyond what the receiver promised.
    ///
    /// Linux 6.18: `ack_update_msk`, `tcp_may_update_window`.
    pub fn hear_window(&mut self, segment: &Segment, size: u64, max_window: u64) -> u64 {
        let acked = self.acked(segment, max_window);
        if size == 0 || size > self.handed.window || acked.is_some_and(|ack| ack > self.sender.una()) {
            self.handed.window = size;
        }
        self.handed.window
    }

    /// New data, of which the connection's window admits `shared` bytes from its first on, is given to the subflow: its own
    /// window is no narrower (MIB `MPTcpExtSndWndShared`).
    ///
    /// Linux 6.18: `mptcp_check_allowed_size`.
    pub fn share_window(&mut self, shared: u64) {
        self.handed.window = self.handed.window.max(shared);
    }

    /// A segment below the MSS that ends at `end` of the subflow's sequence was sent.
    pub fn on_small(&mut self, end: u64) {
        self.handed.small = end;
    }

    /// A segment below the MSS is under way, so that the next one waits (Minshall's form of Nagle's rule).
    ///
    /// Linux 6.18: `tcp_minshall_check`.
    pub fn has_small_out(&self) -> bool {
        self.handed.small > self.sender.una()
    }
}
