//! Work that a packet's sender leaves to a device: the optional header that TUN puts before each packet.

/// `struct virtio_net_hdr` (virtio 1.2 §5.1.6), as far as a TUN device and its reader need it. The default leaves no
/// work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// The checksum is still to be filled in: the start of the covered bytes, from the packet's start, and the offset
    /// of its field from there. The field holds the pseudo-header's sum.
    pub checksum: Option<(u16, u16)>,
    /// The packet is still to be cut up.
    pub gso: Option<Gso>,
}

/// How a packet is to be cut up (Generic Segmentation Offload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Protocol of the segments.
    pub kind: GsoKind,
    /// Bytes of all headers.
    pub header_len: u16,
    /// Payload of each packet but the last.
    pub size: u16,
}

/// The protocol of the packet, by the header's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GsoKind(pub u8);

impl GsoKind {
    /// TCP over IPv4.
    pub const TCP_V4: Self = Self(1);
    /// TCP over IPv6.
    pub const TCP_V6: Self = Self(4);
}

const NEEDS_CHECKSUM: u8 = 1;
const NO_GSO: u8 = 0;

impl VnetHeader {
    /// Bytes of the header.
    pub const LEN: usize = 10;

    /// The header's bytes, in native byte order.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let (flags, (start, field)) = self.checksum.map_or((0, (0, 0)), |place| (NEEDS_CHECKSUM, place));
        let (kind, header_len, size) = self.gso.map_or((NO_GSO, 0, 0), |gso| (gso.kind.0, gso.header_len, gso.size));
        let mut bytes = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        for (place, number) in bytes[2..].chunks_exact_mut(2).zip([header_len, size, start, field]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let gso = Gso { kind: GsoKind(bytes[1]), header_len: number(2), size: number(4) };
        Self {
            checksum: (bytes[0] & NEEDS_CHECKSUM != 0).then(|| (number(6), number(8))),
            gso: (bytes[1] != NO_GSO).then_some(gso),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_kernel() {
        let gso = Gso { kind: GsoKind::TCP_V6, header_len: 92, size: 1408 };
        for header in [
            VnetHeader::default(),
            VnetHeader { checksum: Some((20, 16)), gso: None },
            VnetHeader { checksum: Some((40, 16)), gso: Some(gso) },
        ] {
            assert_eq!(VnetHeader::from_bytes(header.to_bytes()), header);
        }
        // Read from a TUN device of a little-endian machine: a segment of 1448 bytes a piece over IPv4.
        if cfg!(target_endian = "little") {
            let read = VnetHeader::from_bytes([1, 1, 52, 0, 0xa8, 0x05, 20, 0, 16, 0]);
            let gso = Gso { kind: GsoKind::TCP_V4, header_len: 52, size: 1448 };
            assert_eq!(read, VnetHeader { checksum: Some((20, 16)), gso: Some(gso) });
        }
        // A verified checksum leaves no work.
        assert_eq!(VnetHeader::from_bytes([2, 0, 0, 0, 0, 0, 0, 0, 0, 0]), VnetHeader::default());
    }
}
