//! Changes of one packet: options removed, payload changed, addresses and numbers translated.

use anabranch_units::{Direction, SeqNumber};
use anabranch_wire::{Dss, Flags, MptcpOption, Options, Packet, SackBlock, Segment};
use core::net::IpAddr;

/// Options to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strip {
    /// All MPTCP options.
    Mptcp,
    /// DSS.
    Dss,
    /// The mapping of a DSS.
    Mapping,
    /// ADD_ADDR.
    AddAddr,
    /// SACK-permitted.
    SackPermitted,
    /// Timestamps.
    Timestamps,
    /// Window scale.
    WindowScale,
    /// SACK blocks.
    Sack,
}

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

/// The options that may remain on a segment.
pub(crate) struct Sieve<'a> {
    pub keeps: &'a dyn Fn(Strip) -> bool,
    pub sack: &'a dyn Fn(SackBlock) -> SackBlock,
}

/// The options of `old` that pass.
pub(crate) fn sift(old: &Options, sieve: &Sieve<'_>) -> Options {
    let Sieve { keeps, sack } = sieve;
    let mut new = Options::new();
    old.mss().map(|mss| new.set_mss(mss));
    old.timestamps().filter(|_| keeps(Strip::Timestamps)).map(|stamps| new.set_timestamps(stamps));
    if old.sack_permitted() && keeps(Strip::SackPermitted) {
        new.set_sack_permitted();
    }
    old.window_scale().filter(|_| keeps(Strip::WindowScale)).map(|shift| new.set_window_scale(shift));
    if let Some(dss) = old.dss().filter(|_| keeps(Strip::Mptcp) && keeps(Strip::Dss)) {
        let mapping = dss.mapping.filter(|_| keeps(Strip::Mapping));
        let dss = Dss { mapping, data_fin: dss.data_fin && mapping.is_some(), ..*dss };
        if dss.ack.is_some() || mapping.is_some() {
            new.set_dss(dss);
        }
    }
    for option in old.mptcp().iter().filter(|_| keeps(Strip::Mptcp)) {
        if keeps(Strip::AddAddr) || !matches!(option, MptcpOption::AddAddr(_)) {
            new.push_mptcp(*option);
        }
    }
    if keeps(Strip::Sack) {
        let mut blocks = [SackBlock::default(); 4];
        let count = old.sack().len();
        blocks.iter_mut().zip(old.sack()).for_each(|(new, old)| *new = sack(*old));
        new.set_sack(&blocks[..count]);
    }
    new
}

/// Removes options; true if there was one.
pub(crate) fn strip(segment: &mut Segment, what: Strip) -> bool {
    let options = sift(&segment.options, &Sieve { keeps: &|kind| kind != what, sack: &|block| block });
    let stripped = options != segment.options;
    segment.options = options;
    stripped
}

/// Changes MP_CAPABLE; true if there was one.
pub(crate) fn twist(segment: &mut Segment, twist: Twist) -> bool {
    let mut found = false;
    let mut options = sift(&segment.options, &Sieve { keeps: &|kind| kind != Strip::Mptcp, sack: &|block| block });
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
        segment.seq = SeqNumber(segment.seq.0.wrapping_add(ours));
        let back = |n: SeqNumber| SeqNumber(n.0.wrapping_sub(theirs));
        if segment.flags.has(Flags::ACK) {
            segment.ack = back(segment.ack);
        }
        if !segment.options.sack().is_empty() {
            let sack = |block: SackBlock| SackBlock { start: back(block.start), end: back(block.end) };
            segment.options = sift(&segment.options, &Sieve { keeps: &|_| true, sack: &sack });
        }
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
    use anabranch_wire::Timestamps;
    use bytes::Bytes;

    #[test]
    fn only_the_named_option_is_taken_off() {
        let mut segment = Segment::default();
        segment.options.set_timestamps(Timestamps { val: 1, ecr: 2 });
        segment.options.set_dss(Dss { ack: Some(anabranch_wire::DataAck::Long(1)), ..Dss::default() });
        segment.options.push_mptcp(MptcpOption::Prio { backup: true });
        let before = segment.options.clone();
        assert!(!strip(&mut segment, Strip::AddAddr) && segment.options == before);
        assert!(strip(&mut segment, Strip::Dss));
        assert!(segment.options.dss().is_none() && segment.options.mptcp().len() == 1);
        assert!(strip(&mut segment, Strip::Mptcp));
        assert!(segment.options.mptcp().is_empty() && segment.options.timestamps().is_some());
    }

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
