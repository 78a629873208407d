//! From the bytes of an IP packet, whole or not, to a value.

use super::link::NoPacket;
use anabranch_wire::{Ecn, Packet, ParseError, Segment};
use bytes::Bytes;
use etherparse::{IpNumber, LaxIpSlice};

/// The payload of all packets: a capture's analysis needs its length alone.
static ZEROS: [u8; MOST] = [0; MOST];
/// Longest payload: that of a packet with the greatest length that IP states, or of one whose length is not stated.
const MOST: usize = 1 << 18;

/// Why an IP packet has no segment to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSegment {
    /// Not TCP.
    Foreign,
    /// A fragment of a packet.
    Fragment,
    /// The capture kept too little of its headers.
    Cut,
    /// The headers contradict themselves.
    Malformed,
}

impl From<NoPacket> for NoSegment {
    fn from(no: NoPacket) -> Self {
        match no {
            NoPacket::Foreign => Self::Foreign,
            NoPacket::Cut => Self::Cut,
        }
    }
}

/// A packet whose payload has its true length and no contents, and the IPv4 identification (zero for IPv6). `missing` bytes of the
/// packet were not kept. Checksums may be anything: devices fill them in.
pub(crate) fn read(ip: &[u8], missing: usize) -> Result<(Packet, u16), NoSegment> {
    let cut = if missing > 0 { NoSegment::Cut } else { NoSegment::Malformed };
    let (slice, _) = LaxIpSlice::from_slice(ip).map_err(|_| cut)?;
    let payload = slice.payload();
    if payload.fragmented {
        return Err(NoSegment::Fragment);
    }
    if payload.ip_number != IpNumber::TCP {
        return Err(NoSegment::Foreign);
    }
    let (segment, header) = Segment::parse_header(payload.payload).map_err(|error| match error {
        ParseError::TcpHeader if payload.payload.len() >= 20 && missing == 0 => NoSegment::Malformed,
        _ => cut,
    })?;
    let before = payload.payload.as_ptr() as usize - ip.as_ptr() as usize;
    let stated = match &slice {
        LaxIpSlice::Ipv4(ip) => usize::from(ip.header().total_len()),
        LaxIpSlice::Ipv6(ip) => match ip.header().payload_length() {
            0 => 0,
            len => 40 + usize::from(len),
        },
    };
    // A super-segment that the kernel hands to the device may have no length: the frame has it.
    let total = if stated == 0 { ip.len() + missing } else { stated };
    let len = total.checked_sub(before + header).ok_or(NoSegment::Malformed)?;
    let payload = Bytes::from_static(&ZEROS[..len.min(MOST)]);
    let id = match &slice {
        LaxIpSlice::Ipv4(ip) => ip.header().identification(),
        LaxIpSlice::Ipv6(_) => 0,
    };
    let segment = Segment { payload, ecn: Ecn::of(ip).unwrap_or_default(), ..segment };
    Ok((Packet { src: slice.source_addr(), dst: slice.destination_addr(), segment }, id))
}
