//! Changes of one packet that no box of a path makes: MP_CAPABLE and payload changed, addresses and ports translated.

use anabranch_network::{OptionKind, renumber, sift};
use anabranch_units::Direction;
use anabranch_wire::{MptcpOption, Packet, Segment};
use core::net::IpAddr;

/// A change of MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// Flag A is inverted.
    Checksum,
    /// Flag C is set.
    NoJoinHere,
    /// Flag H is cleared.
    NoSha256,
    /// Another version.
    Version(u8),
}

/// Changes MP_CAPABLE; true if there was one.
pub(crate) fn twist(segment: &mut Segment, twist: Twist) -> bool {
    let mut found = false;
    let mut options = sift(&segment.options, &|kind| kind != OptionKind::Mptcp, &|block| block);
    segment.options.dss().map(|dss| options.set_dss(*dss));
    for option in segment.options.mptcp() {
        let mut option = *option;
        if let MptcpOption::Capable(capable) = &mut option {
            found = true;
            match twist {
                Twist::Checksum => capable.checksum = !capable.checksum,
                Twist::NoJoinHere => capable.no_join_here = true,
                Twist::NoSha256 => capable.hmac_sha256 = false,
                Twist::Version(version) => capable.version = version,
            }
        }
        options.push_mptcp(option);
    }
    segment.options = options;
    found
}

/// Adds one to one byte, the first from `at` on that can be raised. Every change adds to the checksum's sum, so that no
/// two changes of a mapping cancel. True if there is such a byte.
pub(crate) fn raise_byte(segment: &mut Segment, at: usize) -> bool {
    let mut payload = segment.payload.to_vec();
    let len = payload.len();
    let place = (0..len).map(|n| (at + n) % len).find(|n| payload[*n] < 255);
    if let Some(n) = place {
        payload[n] += 1;
        segment.payload = payload.into();
    }
    place.is_some()
}

/// The translation on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    /// The offset of the client's port; [`Self::rebind`] adds it a second time.
    pub port: u16,
    /// The client's address as the server sees it.
    pub address: IpAddr,
    /// The translated initial sequence numbers of client and server; later numbers shift by the same offset.
    pub isn: [u32; 2],
    /// The client's packet from which on its port is another one.
    pub rebind: Option<u32>,
}

impl Nat {
    fn shift(&self, sent: u32) -> u16 {
        let again = self.rebind.is_some_and(|from| sent >= from);
        if again { self.port.wrapping_mul(2) } else { self.port }
    }

    /// Translates a packet. `shifts`: offsets of the client's and the server's numbers; `sent`: packets of the client
    /// so far; `client`: its true address. False: the packet is for a port that the client no longer has.
    pub fn translate(&self, way: Direction, shifts: [u32; 2], sent: u32, client: IpAddr, packet: &mut Packet) -> bool {
        let shift = self.shift(sent);
        let segment = &mut packet.segment;
        let [ours, theirs] = match way {
            Direction::Up => shifts,
            Direction::Down => [shifts[1], shifts[0]],
        };
        renumber(segment, ours, theirs);
        match way {
            Direction::Up => {
                packet.src = self.address;
                segment.src_port = segment.src_port.wrapping_add(shift);
                true
            }
            Direction::Down => {
                packet.dst = client;
                segment.dst_port = segment.dst_port.wrapping_sub(shift);
                // Packets for the client's port before the rebinding reach no host.
                segment.dst_port >= 1000
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Flags;
    use bytes::Bytes;

    #[test]
    fn a_translation_has_a_way_back() {
        let nat = Nat { port: 77, address: IpAddr::from([192, 168, 0, 1]), isn: [0; 2], rebind: None };
        let (client, shifts) = (IpAddr::from([10, 0, 0, 1]), [5, u32::MAX]);
        let segment = Segment { src_port: 1000, flags: Flags::ACK, ..Segment::default() };
        let mut there = Packet { src: client, dst: IpAddr::from([10, 0, 0, 2]), segment };
        assert!(nat.translate(Direction::Up, shifts, 0, client, &mut there));
        let s = &there.segment;
        assert_eq!((there.src, s.src_port, s.seq.0, s.ack.0), (nat.address, 1077, 5, 1));
        let segment = Segment {
            dst_port: s.src_port,
            seq: s.ack,
            ack: s.seq,
            flags: Flags::ACK,
            payload: Bytes::new(),
            ..Segment::default()
        };
        let mut back = Packet { src: there.dst, dst: there.src, segment };
        assert!(nat.translate(Direction::Down, shifts, 0, client, &mut back));
        assert_eq!((back.dst, back.segment.dst_port, back.segment.seq.0, back.segment.ack.0), (client, 1000, 0, 0));
    }

    #[test]
    fn a_raised_byte_is_seen_by_the_checksum() {
        let mut segment = Segment { payload: Bytes::from_static(&[255, 255, 3]), ..Segment::default() };
        assert!(raise_byte(&mut segment, 4) && segment.payload[..] == [255, 255, 4]);
        let mut full = Segment { payload: Bytes::from_static(&[255; 4]), ..Segment::default() };
        assert!(!raise_byte(&mut full, 0));
    }
}
