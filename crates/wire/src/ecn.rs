//! The ECN field of IP headers (RFC 3168 §5), also of packets that are no TCP.

/// The ECN field's codepoint, by its value on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not speak ECN: congestion drops the packet.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// The bits of the field in IPv4's second byte, and in IPv6's traffic class.
const FIELD: u8 = 0b11;

impl Ecn {
    /// The codepoint of the field's bits; higher ones are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & FIELD {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The field's bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// A queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// The codepoint of an IP packet; `None` if its first bytes are no IP header.
    pub fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Some(Self::from_bits(*packet.get(1)?)),
            // RFC 8200 §3: the traffic class lies across the first two bytes.
            6 => Some(Self::from_bits(*packet.get(1)? >> 4)),
            _ => None,
        }
    }

    /// Sets the codepoint of an IP packet, with the checksum of its IPv4 header. What is no IP packet stays as it is.
    pub fn set(self, packet: &mut [u8]) {
        match packet {
            [first, tos, ..] if *first >> 4 == 4 && *tos & FIELD != self.bits() => {
                let old = u16::from_be_bytes([*first, *tos]);
                *tos = *tos & !FIELD | self.bits();
                let new = u16::from_be_bytes([*first, *tos]);
                if let Some([high, low]) = packet.get_mut(10..12) {
                    // RFC 1624 §3: HC' = ~(~HC + ~m + m')
                    let sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(!old) + u32::from(new);
                    let folded = (sum & 0xffff) + (sum >> 16);
                    let folded = (folded & 0xffff) + (folded >> 16);
                    [*high, *low] = (!(folded as u16)).to_be_bytes();
                }
            }
            [first, class, ..] if *first >> 4 == 6 => *class = *class & !(FIELD << 4) | self.bits() << 4,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Packet, Segment};
    use core::net::IpAddr;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    fn packet(src: &str, dst: &str, ecn: Ecn) -> Packet {
        let [src, dst]: [IpAddr; 2] = [src, dst].map(|text| text.parse().unwrap());
        Packet { src, dst, segment: Segment { flags: Flags::ACK, ecn, ..Segment::default() } }
    }

    #[test]
    fn bytes_and_values_have_the_same_codepoint() {
        for (src, dst) in [("10.0.0.1", "10.1.0.1"), ("fd00::1", "fd00::2")] {
            for old in ALL {
                let written = packet(src, dst, old);
                let bytes = written.emit();
                assert_eq!(Ecn::of(&bytes), Some(old));
                assert_eq!(Packet::parse(bytes.clone().into()), Ok(written));
                for new in ALL {
                    let mut bytes = bytes.clone();
                    new.set(&mut bytes);
                    // The IPv4 header's checksum holds, and nothing else changed.
                    assert_eq!(bytes, packet(src, dst, new).emit());
                }
            }
        }
    }

    #[test]
    fn the_field_lies_where_the_headers_have_it() {
        let bytes = packet("10.0.0.1", "10.1.0.1", Ecn::Ect0).emit();
        assert_eq!(bytes[1], 0x02);
        let bytes = packet("fd00::1", "fd00::2", Ecn::Ce).emit();
        assert_eq!(bytes[..2], [0x60, 0x30]);
    }

    #[test]
    fn what_is_no_packet_has_none_and_stays() {
        for bytes in [&[][..], &[0x45], &[0x60], &[0x12, 0xff, 0xff], &[0x45, 0]] {
            let mut changed = bytes.to_vec();
            if bytes.len() != 2 {
                assert_eq!(Ecn::of(bytes), None, "{bytes:?}");
            }
            Ecn::NotEct.set(&mut changed);
            assert_eq!(changed, bytes);
        }
    }
}
