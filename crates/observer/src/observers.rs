//! Assigns packets to the connections of a host.

use crate::observer::{Observer, Unfollowed, joined_token};
use crate::subflow::FourTuple;
use anabranch_trace::Recorder;
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};
use std::collections::BTreeMap;

/// Most subflows over all connections; further ones are not followed.
const MAX_SUBFLOWS: usize = 1 << 16;

/// The number of the connection that a client opens from this port; `None` to ignore it.
pub type Number = fn(u16) -> Option<ConnId>;

/// Follows all connections of one host, each by an [`Observer`].
#[derive(Clone, Debug)]
pub struct Observers {
    host: Side,
    number: Number,
    each: Vec<Observer>,
    /// The connection of each subflow.
    subflows: BTreeMap<FourTuple, usize>,
    /// The connection of the previous packet, which usually is the next packet's too.
    last: Option<(FourTuple, usize)>,
    stray_packets: u64,
    overflows: u64,
}

impl Observers {
    /// Observers before the first packet.
    pub fn new(host: Side, number: Number) -> Self {
        let (each, subflows) = (Vec::new(), BTreeMap::new());
        Self { host, number, each, subflows, last: None, stray_packets: 0, overflows: 0 }
    }

    /// A packet as in [`Observer::packet`]. Returns its connection, if that is followed.
    pub fn packet(
        &mut self,
        now: Instant,
        sent: bool,
        path: PathId,
        packet: &Packet,
        recorder: &mut dyn Recorder,
    ) -> Option<ConnId> {
        let tuple = FourTuple::of(packet, sent);
        let Some(i) = self.place(tuple, sent, packet) else {
            self.stray_packets += 1;
            return None;
        };
        self.last = Some((tuple, i));
        self.each[i].packet(now, sent, path, packet, recorder);
        Some(self.each[i].connection())
    }

    /// The data that could not be followed so far, over all connections.
    pub fn unfollowed(&self) -> Unfollowed {
        let own = Unfollowed { stray_packets: self.stray_packets, overflows: self.overflows, ..Unfollowed::default() };
        self.each.iter().map(Observer::unfollowed).fold(own, |all, each| Unfollowed {
            stray_packets: all.stray_packets + each.stray_packets,
            unmapped_bytes: all.unmapped_bytes + each.unmapped_bytes,
            missed_bytes: all.missed_bytes + each.missed_bytes,
            overflows: all.overflows + each.overflows,
        })
    }

    fn place(&mut self, tuple: FourTuple, sent: bool, packet: &Packet) -> Option<usize> {
        if let Some((known, i)) = self.last
            && known == tuple
        {
            return Some(i);
        }
        if let Some(i) = self.subflows.get(&tuple) {
            return Some(*i);
        }
        let flags = packet.segment.flags;
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK) || flags.has(Flags::RST) {
            return None;
        }
        if self.subflows.len() >= MAX_SUBFLOWS {
            self.overflows += 1;
            return None;
        }
        let i = match joined_token(&packet.segment) {
            Some(token) => self.each.iter().position(|observer| observer.is_joined_by(sent, token))?,
            None => {
                let client = if self.host == Side::Client { tuple.local } else { tuple.remote };
                self.follow((self.number)(client.port())?)
            }
        };
        self.subflows.insert(tuple, i);
        Some(i)
    }

    /// The index of a connection's observer; a new one if it has none.
    fn follow(&mut self, connection: ConnId) -> usize {
        let known = self.each.iter().position(|observer| observer.connection() == connection);
        known.unwrap_or_else(|| {
            self.each.push(Observer::new(self.host, connection));
            self.each.len() - 1
        })
    }
}
