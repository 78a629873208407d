//! State that a Linux sender keeps for a subflow beyond the RFCs, for `HostModel::Linux` as `sender_model`.

use super::Subflow;
use anabranch_wire::Segment;

/// State of a subflow as a kernel has it.
#[derive(Debug, Default)]
pub(crate) struct LinuxSender {
    /// The window that it takes for the peer's (`snd_wnd`), bytes from the first that is not acknowledged.
    pub window: u64,
    /// End of the last segment below the MSS that was sent (`snd_sml`).
    runt: u64,
}

impl Subflow {
    /// The window that a Linux sender adds to a DATA_ACK: that of the subflow, which a duplicate acknowledgment does not shrink.
    /// So it may reach beyond what the receiver promised.
    ///
    /// Linux 6.18: `ack_update_msk`, `tcp_may_update_window`.
    pub fn heard_as_linux(&mut self, segment: &Segment, size: u64, max_window: u64) -> u64 {
        let acked = self.acked(segment, max_window);
        if size == 0 || size > self.linux.window || acked.is_some_and(|ack| ack > self.sender.una()) {
            self.linux.window = size;
        }
        self.linux.window
    }

    /// New data, of which the connection's window admits `shared` bytes from its first on, is given to the subflow: its own
    /// window is no narrower (MIB `MPTcpExtSndWndShared`).
    ///
    /// Linux 6.18: `mptcp_check_allowed_size`.
    pub fn share_window(&mut self, shared: u64) {
        self.linux.window = self.linux.window.max(shared);
    }

    /// A segment below the MSS that ends at `end` of the subflow's sequence was sent.
    pub fn on_runt(&mut self, end: u64) {
        self.linux.runt = end;
    }

    /// A segment below the MSS is under way, so that the next one waits (Minshall's form of Nagle's rule).
    ///
    /// Linux 6.18: `tcp_minshall_check`.
    pub fn has_runt_out(&self) -> bool {
        self.linux.runt > self.sender.una()
    }
}
