//! Packets that are larger than their path carries, and the routers' messages about them.

use crate::flow::HostId;
use crate::outside::Raw;
use crate::parcel::Parcel;
use anabranch_network::Refused;
use anabranch_units::Instant;
use anabranch_wire::{Packet, too_big};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Dropped packets, and messages about them that are under way.
#[derive(Debug, Default)]
pub(crate) struct TooBig {
    /// Some path has a limit, now or later.
    pub possible: bool,
    /// When a message arrives whose packet was dropped just now, and its number.
    sent: Vec<(Instant, u32)>,
    under_way: BTreeMap<u32, Report>,
    next: u32,
}

/// A router's message about a dropped packet.
#[derive(Debug)]
pub(crate) struct Report {
    /// The sender of the packet.
    pub to: HostId,
    /// The network path.
    pub path: usize,
    /// Bytes of the largest packet that the path carries.
    pub mtu: u32,
    parcel: Box<Parcel>,
}

impl Report {
    /// The packet, as an engine sent it.
    pub fn packet(&self) -> &Packet {
        &self.parcel.packet
    }

    /// As an IP packet, for a host outside; `None` if what it sent was none.
    pub fn into_raw(self) -> Option<Raw> {
        let packet = self.parcel.raw.map_or_else(|| self.parcel.packet.emit().into(), |raw| raw.bytes);
        too_big(&packet, self.mtu).map(|message| Bytes::from(message).into())
    }
}

impl TooBig {
    /// No message is under way.
    pub fn new(possible: bool) -> Self {
        Self { possible, ..Self::default() }
    }

    /// Notes that a packet of host `to` was refused.
    #[cold]
    #[inline(never)]
    pub fn note(&mut self, to: HostId, path: usize, refused: Refused, parcel: Box<Parcel>) {
        if let Some(at) = refused.reported {
            self.sent.push((at, self.next));
            self.under_way.insert(self.next, Report { to, path, mtu: refused.mtu, parcel });
            self.next = self.next.wrapping_add(1);
        }
    }

    /// The messages that set out just now, each once: when it arrives, and its number.
    pub fn take_sent(&mut self) -> Vec<(Instant, u32)> {
        core::mem::take(&mut self.sent)
    }

    /// A message that arrives.
    pub fn take(&mut self, number: u32) -> Option<Report> {
        self.under_way.remove(&number)
    }
}
