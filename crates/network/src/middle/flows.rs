//! State per flow, in bounded memory.

use anabranch_wire::Packet;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// Most flows that a box knows.
pub(crate) const MOST: usize = 65_536;

/// The ends of a flow in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    from: (IpAddr, u16),
    to: (IpAddr, u16),
}

impl Flow {
    /// The flow of a packet.
    pub fn of(packet: &Packet) -> Self {
        let Packet { src, dst, segment } = packet;
        Self { from: (*src, segment.src_port), to: (*dst, segment.dst_port) }
    }

    /// The same for both directions.
    pub fn of_both(packet: &Packet) -> Self {
        let Self { from, to } = Self::of(packet);
        if from <= to { Self { from, to } } else { Self { from: to, to: from } }
    }
}

/// The state of a box for each flow.
pub(crate) type Flows<S> = BTreeMap<Flow, S>;
