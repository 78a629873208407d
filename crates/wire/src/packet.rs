//! An IP packet that carries one segment.

use crate::Segment;
use core::net::{IpAddr, Ipv4Addr};

/// One IP packet with its TCP segment. Both addresses are of one family; otherwise it is emitted as IPv6 with the IPv4
/// address mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// The segment inside.
    pub segment: Segment,
}

/// An empty segment between unspecified addresses.
impl Default for Packet {
    fn default() -> Self {
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self { src: nobody, dst: nobody, segment: Segment::default() }
    }
}

impl Packet {
    /// Bytes of the whole IP packet as emitted: IP header, TCP header, options, payload.
    pub fn len(&self) -> usize {
        let ip = if self.src.is_ipv4() && self.dst.is_ipv4() { 20 } else { 40 };
        ip + self.segment.header_len() + self.segment.payload.len()
    }

    /// Never true: a packet has at least its headers.
    pub fn is_empty(&self) -> bool {
        false
    }
}
