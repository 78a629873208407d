//! The addresses of the packets inside datagrams.

use crate::MAX_PATHS;
use crate::keys::PublicKey;
use crate::macs::hash;
use crate::noise::SESSION;
use anabranch_units::PathId;
use core::net::Ipv4Addr;

/// A session's addresses: of the client one per path, of the server one that all paths reach. They follow from the session
/// and the client's key, so a packet of another session has other ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    network: [u8; 2],
}

const SERVER: u8 = 129;

impl Addresses {
    pub(crate) fn of(session: &[u8; SESSION], client: &PublicKey) -> Self {
        let [a, b, ..] = hash(&[b"anabranch inner addresses 1", session, &client.0]);
        Self { network: [a, b] }
    }

    /// The client's address on `path`: 10.A.B.(1 + path). No host has that of a path that is not below [`MAX_PATHS`].
    pub fn client(&self, path: PathId) -> Ipv4Addr {
        Ipv4Addr::new(10, self.network[0], self.network[1], path.0.wrapping_add(1))
    }

    /// The path that a client's address of any session belongs to.
    pub fn path(client: Ipv4Addr) -> Option<PathId> {
        let [.., last] = client.octets();
        last.checked_sub(1).filter(|path| usize::from(*path) < MAX_PATHS).map(PathId)
    }

    /// The server's address: 10.A.B.129.
    pub fn server(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.network[0], self.network[1], SERVER)
    }
}

/// True if `packet` is IPv4 and goes from `source` to `destination`.
pub(crate) fn is_between(packet: &[u8], source: Ipv4Addr, destination: Ipv4Addr) -> bool {
    packet.len() >= 20
        && packet[0] >> 4 == 4
        && packet[12..16] == source.octets()
        && packet[16..20] == destination.octets()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_from_session_and_key() {
        let of = |session, key| Addresses::of(&[session; SESSION], &PublicKey([key; 32]));
        let here = of(1, 1);
        assert_eq!(here, of(1, 1));
        assert!(here != of(2, 1) && here != of(1, 2));
        let paths = [0, 15].map(|path| Addresses::path(here.client(PathId(path))));
        assert_eq!((paths, Addresses::path(here.server())), ([Some(PathId(0)), Some(PathId(15))], None));
        let [_, a, b, last] = here.client(PathId(15)).octets();
        assert_eq!((here.server().octets(), last), ([10, a, b, 129], 16));
        assert!((16..=255).all(|path| Addresses::path(here.client(PathId(path))).is_none()));
    }

    #[test]
    fn a_packet_is_known_by_both_addresses() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 129));
        let mut packet = [0x45; 20];
        packet[12..16].copy_from_slice(&a.octets());
        packet[16..].copy_from_slice(&b.octets());
        assert!(is_between(&packet, a, b) && !is_between(&packet, b, a) && !is_between(&packet[..19], a, b));
        packet[0] = 0x65;
        assert!(!is_between(&packet, a, b), "IPv6");
    }
}
