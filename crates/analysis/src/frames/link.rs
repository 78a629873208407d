//! Link layers: from a captured frame to the IP packet in it.

use pcap_file::DataLink;

/// Why a frame has no IP packet to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPacket {
    /// The frame is of another protocol: ARP, for instance.
    Foreign,
    /// The capture kept too little of the frame.
    Cut,
}

/// The IP packet of a frame, and what the link layer knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inside<'a> {
    /// From the IP header on.
    pub ip: &'a [u8],
    /// The capturing host sent it (`true`) or received it, where the link layer says so.
    pub sent: Option<bool>,
    /// The interface within the capture, where the link layer says so.
    pub interface: u32,
}

/// Ethertypes of IPv4 and IPv6, and of the tags before them: IEEE 802.1Q, 802.1ad and an older form of it.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// True for link types that [`inside`] reads.
pub(crate) fn is_known(link: DataLink) -> bool {
    matches!(
        link,
        DataLink::ETHERNET
            | DataLink::LINUX_SLL
            | DataLink::LINUX_SLL2
            | DataLink::RAW
            | DataLink::IPV4
            | DataLink::IPV6
            | DataLink::NULL
            | DataLink::LOOP
    ) || matches!(u32::from(link), 12 | 14)
}

/// The IP packet in a frame of a known link type.
pub(crate) fn inside(link: DataLink, frame: &[u8]) -> Result<Inside<'_>, NoPacket> {
    let plain = |ip| Inside { ip, sent: None, interface: 0 };
    match link {
        DataLink::ETHERNET => tagged(frame, 12).map(plain),
        // LINKTYPE_LINUX_SLL: packet type, …, protocol at 14
        DataLink::LINUX_SLL => Ok(Inside { sent: direction(half(frame, 0)?), ..plain(tagged(frame, 14)?) }),
        // LINKTYPE_LINUX_SLL2: protocol, …, interface at 4, packet type at 10, 20 bytes in all
        DataLink::LINUX_SLL2 => {
            let interface = u32::from(half(frame, 4)?) << 16 | u32::from(half(frame, 6)?);
            let sent = direction(u16::from(*frame.get(10).ok_or(NoPacket::Cut)?));
            let behind = frame.get(20..).ok_or(NoPacket::Cut)?;
            let ip = behind_tags(half(frame, 0)?, behind)?;
            Ok(Inside { ip, sent, interface })
        }
        // Four bytes with the address family, in the byte order of the host or of the network. The IP header tells the rest.
        DataLink::NULL | DataLink::LOOP => is_ip(frame.get(4..).ok_or(NoPacket::Cut)?).map(plain),
        _ => is_ip(frame).map(plain),
    }
}

/// The packet types of Linux: 4 is sent by this host, 0 to it; others are of other hosts, or to many.
fn direction(packet_type: u16) -> Option<bool> {
    match packet_type {
        4 => Some(true),
        0 => Some(false),
        _ => None,
    }
}

fn half(frame: &[u8], at: usize) -> Result<u16, NoPacket> {
    let bytes = frame.get(at..at + 2).ok_or(NoPacket::Cut)?;
    Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// The packet behind the ethertype at `at`.
fn tagged(frame: &[u8], at: usize) -> Result<&[u8], NoPacket> {
    behind_tags(half(frame, at)?, frame.get(at + 2..).ok_or(NoPacket::Cut)?)
}

/// The packet behind any number of VLAN tags: two bytes of tag, then the next ethertype.
fn behind_tags(mut ethertype: u16, mut rest: &[u8]) -> Result<&[u8], NoPacket> {
    while TAGS.contains(&ethertype) {
        ethertype = half(rest, 2)?;
        rest = rest.get(4..).ok_or(NoPacket::Cut)?;
    }
    if ethertype == IPV4 || ethertype == IPV6 { is_ip(rest) } else { Err(NoPacket::Foreign) }
}

fn is_ip(bytes: &[u8]) -> Result<&[u8], NoPacket> {
    match bytes.first().map(|first| first >> 4) {
        Some(4 | 6) => Ok(bytes),
        Some(_) => Err(NoPacket::Foreign),
        None => Err(NoPacket::Cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(before: &[u8]) -> Vec<u8> {
        [before, &[0x45, 1, 2, 3]].concat()
    }

    #[test]
    fn every_link_layer_leads_to_the_ip_header() {
        let mac = [0u8; 12];
        let ethernet = under(&[&mac[..], &[8, 0]].concat());
        let vlan = under(&[&mac[..], &[0x81, 0, 0, 7, 8, 0]].concat());
        let qinq = under(&[&mac[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]].concat());
        let cooked = under(&[0, 4, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
        let cooked2 = under(&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
        let loopback = under(&[2, 0, 0, 0]);
        for (link, frame, sent, interface) in [
            (DataLink::ETHERNET, ethernet, None, 0),
            (DataLink::ETHERNET, vlan, None, 0),
            (DataLink::ETHERNET, qinq, None, 0),
            (DataLink::LINUX_SLL, cooked, Some(true), 0),
            (DataLink::LINUX_SLL2, cooked2, Some(false), 3),
            (DataLink::NULL, loopback.clone(), None, 0),
            (DataLink::LOOP, loopback, None, 0),
            (DataLink::RAW, under(&[]), None, 0),
        ] {
            assert!(is_known(link));
            let expected = Inside { ip: &[0x45, 1, 2, 3], sent, interface };
            assert_eq!(inside(link, &frame), Ok(expected), "{link:?}");
            for cut in 0..frame.len() - 4 {
                assert_eq!(inside(link, &frame[..cut]), Err(NoPacket::Cut), "{link:?} {cut}");
            }
        }
    }

    #[test]
    fn other_protocols_are_foreign() {
        let arp = [&[0u8; 12][..], &[8, 6, 0, 1]].concat();
        assert_eq!(inside(DataLink::ETHERNET, &arp), Err(NoPacket::Foreign));
        assert_eq!(inside(DataLink::RAW, &[0x00]), Err(NoPacket::Foreign));
    }
}
