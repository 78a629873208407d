//! The choices that the RFCs leave to a sender and that a Linux kernel makes otherwise: one policy for each.

/// Data that waits in a path's queue when the peer acknowledges it, because a copy came over another path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Data does not leave then: as long as it has not left, it can be taken back.
    #[default]
    Revocable,
    /// Data leaves all the same: a subflow sends all data that was given to it.
    ///
    /// Linux 6.18: `mptcp_sendmsg_frag`, `tcp_write_xmit`.
    Final,
}

/// The window that is added to a DATA_ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerWindow {
    /// That of the same segment (RFC 8684 §3.3.5).
    #[default]
    OfSegment,
    /// That which the subflow takes for the peer's. It may be an older one, so that the sum reaches beyond what the peer promised.
    ///
    /// Linux 6.18: `ack_update_msk`, `tcp_may_update_window`, `mptcp_check_allowed_size`.
    OfSubflow,
}

/// The small segments for which another small segment waits, if Nagle's rule is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallSegments {
    /// The end of what was written waits for all outstanding data of the connection (RFC 9293 §3.7.4).
    #[default]
    Connection,
    /// The same; and once it is bound, it waits for the last small segment of its subflow too (Minshall's form).
    ///
    /// Linux 6.18: `tcp_nagle_test`, `tcp_minshall_check`.
    AndSubflow,
}

/// The repair of data that its path does not deliver, or that the peer dropped (RFC 8684 §3.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataRepair {
    /// The engine calls it stranded, and the scheduler has another path retransmit it.
    #[default]
    Rescue,
    /// The scheduler's own timer, for which [`PathView::timer`](super::PathView::timer) is kept up to date.
    ///
    /// Linux 6.18: `mptcp_retransmit_timer`, `mptcp_timeout_from_subflow`.
    DataTimer,
}

/// The numbers of our data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Data sequence numbers, which DATA_ACKs acknowledge: data may leave in any order (RFC 8684 §3.3).
    #[default]
    Data,
    /// Those of the only subflow, whose acknowledgments count: plain TCP (RFC 8684 §3.7). Data leaves in the order in which it was written,
    /// for nothing else says where it belongs.
    Subflow,
}

/// All choices of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderPolicy {
    /// Whether data can be taken from a path before it leaves.
    pub binding: Binding,
    /// The window that belongs to a DATA_ACK.
    pub window: PeerWindow,
    /// The small segments for which others wait.
    pub small: SmallSegments,
    /// The repair of undelivered data.
    pub repair: DataRepair,
}

impl SenderPolicy {
    /// As the RFCs say: the engine's `HostModel::Rfc`.
    pub const RFC: Self = Self {
        binding: Binding::Revocable,
        window: PeerWindow::OfSegment,
        small: SmallSegments::Connection,
        repair: DataRepair::Rescue,
    };
    /// As a Linux 6.18 kernel: the engine's `HostModel::Linux`.
    pub const LINUX: Self = Self {
        binding: Binding::Final,
        window: PeerWindow::OfSubflow,
        small: SmallSegments::AndSubflow,
        repair: DataRepair::DataTimer,
    };
}
