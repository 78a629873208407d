//! Packets in the network, with their destination.

use crate::flow::HostId;
use crate::outside::Raw;
use anabranch_network::{Carried, Markable};
use anabranch_units::Instant;
use anabranch_wire::{Ecn, FiveTuple, Packet};
use core::slice::from_ref;
use prefetch_index::prefetch_index;

/// Bytes that a processor fetches from memory at once.
const LINE: usize = 64;

/// The content of a packet in the network. Its fields lie in this order, for [`Self::fetch`] counts from the first one.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Parcel {
    /// Where it goes.
    pub host: HostId,
    pub sent: Instant,
    /// The packet as a host outside sent it; `packet` is unused then.
    pub raw: Option<Box<Raw>>,
    pub packet: Packet,
}

impl Markable for Parcel {
    fn ecn(&self) -> Ecn {
        match &self.raw {
            Some(raw) => Ecn::of(&raw.bytes).unwrap_or_default(),
            None => self.packet.segment.ecn,
        }
    }

    fn mark(&mut self) {
        match &mut self.raw {
            Some(raw) => raw.mark(),
            None => self.packet.segment.ecn = Ecn::Ce,
        }
    }

    fn flow(&self) -> u64 {
        let tuple = match &self.raw {
            Some(raw) => FiveTuple::of(&raw.bytes),
            None => Some((&self.packet).into()),
        };
        tuple.map_or(0, |tuple| tuple.hash())
    }

    fn segment(&self) -> Option<Carried> {
        let packet = match &self.raw {
            Some(raw) => raw.parse().ok()?,
            None => self.packet.clone(),
        };
        Some(Carried { packet, ends: (self.host.peer().number(), self.host.number()), sent: self.sent })
    }

    fn of(carried: Carried) -> Option<Self> {
        let Carried { packet, ends: (_, to), sent } = carried;
        Some(Self { host: HostId::numbered(to), sent, raw: None, packet })
    }
}

impl Parcel {
    /// Has the processor fetch it while it does other work. Where thousands are under way, each has left the caches before it arrives.
    #[inline(always)]
    pub fn fetch(&self) {
        for line in 0..size_of::<Self>().div_ceil(LINE) {
            prefetch_index(from_ref(&self.host), line * (LINE / size_of::<HostId>()));
        }
    }
}
