//! State per flow, in bounded memory.

use anabranch_units::Instant;
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

/// Segments that a box holds back, one item per flow, until a time of its own.
#[derive(Debug)]
pub(crate) struct Held<S>(Flows<(Instant, S)>);

impl<S> Held<S> {
    /// Nothing.
    pub const fn new() -> Self {
        Self(Flows::new())
    }

    /// Whether another flow has no room.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Holds `what` of a flow that has nothing here.
    pub fn hold(&mut self, flow: Flow, until: Instant, what: S) {
        self.0.insert(flow, (until, what));
    }

    /// The item of a flow, and until when it is held.
    pub fn take(&mut self, flow: &Flow) -> Option<(Instant, S)> {
        self.0.remove(flow)
    }

    /// When the first is due; [`Instant::MAX`] for never.
    pub fn due(&self) -> Instant {
        self.0.values().map(|(until, _)| *until).min().unwrap_or(Instant::MAX)
    }

    /// The items that are due, in the order of flows.
    pub fn take_due(&mut self, now: Instant) -> impl Iterator<Item = S> {
        self.0.extract_if(.., move |_, (until, _)| *until <= now).map(|(_, (_, what))| what)
    }
}
