//! The largest packet that a path carries, as routers say (RFC 1191, RFC 8201).

use super::Subflow;
use crate::settings::Settings;
use anabranch_units::SeqNumber;

/// Less than any link of IPv4 carries (Linux `min_pmtu`), and the least of IPv6 (RFC 8200 §5). A router that says less does not make us
/// send crumbs.
const LEAST_MTU: u32 = 552;
const LEAST_MTU_V6: u32 = 1280;

/// Payload that nearly every path carries (Linux `tcp_base_mss`), and the least that is tried (`tcp_mtu_probe_floor`).
const BASE_MSS: u32 = 1024;
const FLOOR_MSS: u32 = 48;

impl Subflow {
    /// Most payload bytes of segments if those under way are too large for the path (RFC 4821 §7.7); `None` if they cannot be smaller.
    pub fn next_smaller(&self) -> Option<u32> {
        let largest = self.sender.unacknowledged().map(|sent| sent.payload.len() as u32).max()?;
        let smaller = if largest > BASE_MSS { BASE_MSS } else { largest / 2 };
        (smaller >= FLOOR_MSS).then_some(smaller)
    }

    /// Payload of a full segment once a router says that it has dropped the one with `seq`, and carries `mtu` bytes. `None` if that
    /// changes nothing, or was not said of a segment that is under way (RFC 5927 §4.1): anyone may say it.
    pub fn payload_after(&self, seq: SeqNumber, mtu: u32, settings: &Settings, multipath: bool) -> Option<u32> {
        let v6 = self.tuple.remote.ip().to_canonical().is_ipv6();
        let mtu = mtu.max(if v6 { LEAST_MTU_V6 } else { LEAST_MTU });
        let offset = seq.offset_from(self.isn, self.sender.una())?;
        let under_way = self.state.is_synchronized() && (self.sender.una()..self.sender.nxt()).contains(&offset);
        let payload = self.terms.payload_in(mtu, v6, settings, multipath);
        let largest = self.sender.unacknowledged().map(|sent| sent.payload.len() as u32).max()?;
        (under_way && payload < largest).then_some(payload)
    }
}
