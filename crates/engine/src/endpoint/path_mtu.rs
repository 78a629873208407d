//! Messages of routers about packets that were too large for them.

use super::{Endpoint, Ends};
use crate::cx::Cx;
use crate::four_tuple::FourTuple;
use anabranch_units::SeqNumber;

impl Endpoint {
    /// Takes a router's message (ICMP "fragmentation needed", RFC 1191; ICMPv6 "packet too big", RFC 8201): it has dropped our packet on
    /// `tuple` with sequence number `seq`, and carries none above `mtu` bytes. The path's segments are smaller from now on. A message
    /// about a packet that is not under way is ignored (RFC 5927 §4.1), and so is one that would bring nothing.
    pub fn handle_too_big(&mut self, cx: &mut Cx<'_>, tuple: FourTuple, seq: SeqNumber, mtu: u32) {
        let Some((handle, path)) = self.ends.get(&Ends::from(&tuple)).copied() else { return };
        if let Some(slot) = self.slots.get_mut(handle) {
            slot.connection.on_too_big(cx, path, seq, mtu);
            self.wake(handle);
        }
    }
}
