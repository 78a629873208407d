//! The choices that the RFCs leave to a receiver and that a Linux kernel makes otherwise: one policy for each.

use super::linux_window::LinuxWindow;
use crate::settings::{BufferAccounting, HostModel, Settings};

/// The measure of the connection's window.
#[derive(Clone, Copy, Debug)]
pub(super) enum WindowBy {
    /// The data that was read: the window reaches so far beyond, however much waits out of order (RFC 8684 §3.3.5).
    Reads,
    /// The memory that is free.
    ///
    /// Linux 6.18: `__mptcp_space`, `__tcp_select_window`.
    FreeMemory(LinuxWindow),
}

/// The fate of data beyond the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// Taken up to an eighth of the window further: the subflow has acknowledged it, so that the peer would repeat it by its data-level
    /// timer alone (RFC 8684 §3.3.6).
    Grace,
    /// None is taken. A range that is out of order is dropped as a whole: the peer's data-level timer repairs that.
    ///
    /// Linux 6.18: `mptcp_data_queue_ofo`, counted as `MPTcpExtNoDSSInWindow`.
    Dropped,
}

/// How far a DATA_ACK goes, to which the peer may add a wider window than that of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataAcks {
    /// So far that the sum is no more than the window's edge (RFC 8684 §3.3.1). A later acknowledgment has the rest.
    WithinWindow,
    /// To the next byte that is expected, without this care, as Linux.
    Whole,
}

/// All choices of a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiverPolicy {
    pub window: WindowBy,
    pub excess: Excess,
    pub data_acks: DataAcks,
}

impl ReceiverPolicy {
    pub fn of(settings: &Settings) -> Self {
        match settings.receiver_model {
            HostModel::Rfc => Self {
                window: WindowBy::Reads,
                excess: Excess::Grace,
                data_acks: match settings.tcp.buffer_accounting {
                    BufferAccounting::Payload => DataAcks::WithinWindow,
                    BufferAccounting::Truesize => DataAcks::Whole,
                },
            },
            HostModel::Linux => Self {
                window: WindowBy::FreeMemory(LinuxWindow::new(settings)),
                excess: Excess::Dropped,
                data_acks: DataAcks::Whole,
            },
        }
    }
}
