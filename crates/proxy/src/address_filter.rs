//! Which addresses the server dials for its clients: public ones, and those that its owner allows.

use crate::message::Refusal;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A block of addresses as it is written: `ADDRESS/BITS` with zeros behind the prefix, or an address alone. Both are read as the
/// standard library reads addresses: `010.0.0.0` is none, for other programs take it as octal.
pub fn parse_block(text: &str) -> Option<IpNet> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address = address.parse::<IpAddr>().ok()?;
    let block = match bits {
        None => IpNet::from(address),
        Some(bits) => IpNet::new(address, parse_bits(bits)?).ok()?,
    };
    (block == block.trunc()).then_some(block)
}

/// A number of bits, without a sign or a leading zero.
fn parse_bits(text: &str) -> Option<u8> {
    let is_plain = text.bytes().all(|c| c.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok())?
}

const fn v4(a: u8, b: u8, c: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), bits)
}

const fn v6(a: u16, b: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

/// IPv4 that is not reachable from everywhere: the IANA special-purpose registry (RFC 6890), multicast and what is reserved.
const PRIVATE_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),
    v4(10, 0, 0, 8),
    v4(100, 64, 0, 10),
    v4(127, 0, 0, 8),
    v4(169, 254, 0, 16),
    v4(172, 16, 0, 12),
    v4(192, 0, 0, 24),
    v4(192, 0, 2, 24),
    v4(192, 88, 99, 24),
    v4(192, 168, 0, 16),
    v4(198, 18, 0, 15),
    v4(198, 51, 100, 24),
    v4(203, 0, 113, 24),
    v4(224, 0, 0, 4),
    v4(240, 0, 0, 4),
];

/// Public IPv4 that leads into the platform of a cloud from its hosts alone, and trusts whoever comes: Azure's agent (WireServer), Equinix
/// Metal's metadata, services of IBM Cloud. The other clouds have theirs in `PRIVATE_V4` (169.254.169.254, 100.100.100.200, 192.0.0.192) or outside
/// `GLOBAL_V6` (fd00:ec2::254).
const PLATFORM_V4: [Ipv4Net; 4] = [
    Ipv4Net::new_assert(Ipv4Addr::new(168, 63, 129, 16), 32),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 80, 8, 124), 32),
    v4(161, 26, 0, 16),
    v4(166, 8, 0, 14),
];

/// Loopback of IPv4; that of IPv6 is one address.
const LOOPBACK: IpNet = IpNet::V4(v4(127, 0, 0, 8));

/// The part of IPv6 that is given out as global unicast. What lies outside (loopback, mapped, link-local, ULA, multicast) is refused.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);
/// Private blocks of that part: protocol assignments with Teredo (RFC 4380), benchmarks and ORCHID; and documentation.
const PRIVATE_V6: [Ipv6Net; 3] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x3fff, 0, 20)];
/// RFC 3056: 6to4 has an IPv4 address behind these bits.
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 16);
/// RFC 6052: NAT64 has one in the last 32 bits.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 96);

/// The IPv4 address that an address contains; itself if it contains none.
fn inner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::from([a, b, c, d])
        }
        IpAddr::V6(v6) if SIX_TO_FOUR.contains(&v6) => {
            let [_, _, a, b, c, d, ..] = v6.octets();
            IpAddr::from([a, b, c, d])
        }
        other => other,
    }
}

/// The address is reachable from everywhere.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !PRIVATE_V4.iter().chain(&PLATFORM_V4).any(|block| block.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !PRIVATE_V6.iter().any(|block| block.contains(&v6)),
    }
}

/// The block means this host where an address in it is this host's.
fn means_own(block: &IpNet) -> bool {
    block.prefix_len() == block.max_prefix_len() || LOOPBACK.contains(block)
}

/// The owner's decision.
#[derive(Clone, Debug, Default)]
pub struct AddressFilter {
    allowed: Vec<IpNet>,
}

impl AddressFilter {
    /// Beyond public addresses it lets these through.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// The address to dial for `address`, if it may be dialled; `is_own` knows the addresses of this host, and one of which it cannot say
    /// is refused. A mapped address (RFC 4291 §2.5.5.2) is the IPv4 address that it contains. A block lets the addresses of others through; an
    /// address of this host only if it stands there alone, or if the block is of loopback.
    pub fn admit(&self, address: IpAddr, is_own: impl Fn(IpAddr) -> std::io::Result<bool>) -> Option<IpAddr> {
        let (address, inner) = (address.to_canonical(), inner(address));
        let is_foreign = || [address, inner].into_iter().all(|one| is_own(one).is_ok_and(|own| !own));
        let allowing = || self.allowed.iter().filter(|block| block.contains(&address) || block.contains(&inner));
        let is_admitted = allowing().any(means_own) || (is_public(inner) || allowing().count() > 0) && is_foreign();
        is_admitted.then_some(address)
    }

    /// Those of the addresses that may be dialled.
    ///
    /// # Errors
    /// There are none.
    pub(crate) fn admit_some(
        &self,
        addresses: Vec<IpAddr>,
        is_own: impl Fn(IpAddr) -> std::io::Result<bool>,
    ) -> Result<Vec<IpAddr>, Refusal> {
        let admitted: Vec<_> = addresses.into_iter().filter_map(|address| self.admit(address, &is_own)).collect();
        if admitted.is_empty() { Err(Refusal::NotAllowed) } else { Ok(admitted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// These alone are its own.
    fn own(own: &[IpAddr]) -> impl Fn(IpAddr) -> std::io::Result<bool> {
        |address| Ok(own.contains(&address))
    }

    #[test]
    fn public_addresses_alone_are_dialled() {
        let filter = AddressFilter::default();
        for public in ["1.1.1.1", "9.9.9.9", "100.63.0.1", "172.32.0.1", "192.167.1.1", "2606:4700::1111", "2a00:1::1"]
        {
            assert_eq!(filter.admit(ip(public), own(&[])), Some(ip(public)), "{public}");
        }
        assert_eq!(filter.admit(ip("::ffff:1.1.1.1"), own(&[])), Some(ip("1.1.1.1")), "and dialled as what it is");
        assert!(filter.admit(ip("64:ff9b::1.1.1.1"), own(&[])).is_some());
    }

    #[test]
    fn private_addresses_are_refused_in_every_disguise() {
        let filter = AddressFilter::default();
        let v4 = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ];
        for text in v4 {
            let IpAddr::V4(v4) = ip(text) else { panic!("{text}") };
            let [a, b, c, d] = v4.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            let disguises = [
                IpAddr::V4(v4),
                v4.to_ipv6_mapped().into(),
                v4.to_ipv6_compatible().into(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low).into(),
                Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low).into(),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, high, low).into(),
            ];
            for address in disguises {
                assert_eq!(filter.admit(address, own(&[])), None, "{address}");
            }
        }
        for text in [
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "2001:db8::1",
            "100::1",
            "5f00::1",
        ] {
            assert_eq!(filter.admit(ip(text), own(&[])), None, "{text}");
        }
    }

    #[test]
    fn addresses_of_cloud_platforms_are_refused() {
        let filter = AddressFilter::default();
        for refused in [
            "168.63.129.16",
            "64:ff9b::168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "192.80.8.124",
            "161.26.0.10",
            "166.9.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:42::42",
        ] {
            assert_eq!(filter.admit(ip(refused), own(&[])), None, "{refused}");
        }
        for public in ["168.63.129.15", "168.63.129.17", "192.80.8.125", "161.27.0.1", "166.7.255.255", "166.12.0.1"] {
            assert!(filter.admit(ip(public), own(&[])).is_some(), "{public}");
        }
    }

    #[test]
    fn its_own_addresses_are_refused_and_what_is_allowed_is_not() {
        let its = [ip("9.9.9.9"), ip("2606:4700::1")];
        let filter =
            AddressFilter::new(["192.168.7.0/24", "fd00:1::/64"].map(|text| parse_block(text).unwrap()).to_vec());
        for refused in ["9.9.9.9", "::ffff:9.9.9.9", "2606:4700::1", "192.168.8.1", "fd00:2::1"] {
            assert_eq!(filter.admit(ip(refused), own(&its)), None, "{refused}");
        }
        for allowed in ["192.168.7.9", "::ffff:192.168.7.9", "fd00:1::5"] {
            assert!(filter.admit(ip(allowed), own(&its)).is_some(), "{allowed}");
        }
        let all = AddressFilter::new(vec![parse_block("0.0.0.0/0").unwrap()]);
        assert!(all.admit(ip("127.0.0.1"), own(&its)).is_some() && all.admit(ip("::1"), own(&its)).is_none());
        // The server's own address in the block of its neighbours is no neighbour.
        let its = [ip("192.168.7.1"), ip("fd00:1::1"), ip("127.0.0.1")];
        for refused in ["192.168.7.1", "::ffff:192.168.7.1", "fd00:1::1", "64:ff9b::192.168.7.1"] {
            assert_eq!(filter.admit(ip(refused), own(&its)), None, "{refused}");
        }
        assert!(
            filter.admit(ip("192.168.7.2"), own(&its)).is_some() && all.admit(ip("127.0.0.1"), own(&its)).is_none()
        );
        for meant in ["192.168.7.1", "192.168.7.1/32", "fd00:1::1/128", "127.0.0.0/8"] {
            let block = parse_block(meant).unwrap();
            assert!(AddressFilter::new(vec![block]).admit(block.network().max(its[2]), own(&its)).is_some(), "{meant}");
        }
        let its = [ip("9.9.9.9")];
        // In disguise they are the same.
        for refused in ["64:ff9b::9.9.9.9", "2002:909:909::1"] {
            assert_eq!(filter.admit(ip(refused), own(&its)), None, "{refused}");
        }
        assert!(filter.admit(ip("64:ff9b::192.168.7.9"), own(&its)).is_some());
    }

    #[test]
    fn nothing_is_dialled_if_the_own_addresses_are_not_known() {
        let public = vec![ip("1.1.1.1"), ip("9.9.9.9")];
        let filter = AddressFilter::default();
        let unknown = |_| Err(std::io::Error::from_raw_os_error(nix::libc::EAFNOSUPPORT));
        assert_eq!(filter.admit_some(public.clone(), unknown), Err(Refusal::NotAllowed));
        assert_eq!(filter.admit_some(public.clone(), own(&[ip("9.9.9.9")])), Ok(vec![ip("1.1.1.1")]));
        // Both questions go by netlink.
        let unit = include_str!("../../../packaging/anabranch-serve.service");
        let families = unit.lines().find(|line| line.starts_with("RestrictAddressFamilies=")).unwrap();
        assert!(families.contains("AF_NETLINK"), "{families}");
    }

    #[test]
    fn blocks_are_read_and_what_is_none_is_refused() {
        for text in ["10.0.0.0/8", "10.1.2.3", "::1/128", "fd00::/8", "0.0.0.0/0"] {
            assert!(parse_block(text).is_some(), "{text}");
        }
        let ambiguous =
            ["010.0.0.0/8", "10.0.0.00/8", "10.0.0.0/08", "10.0.0.0/+8", "0x0a.0.0.0/8", "010.0.0.1", "167772160/8"];
        let others =
            ["10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "/8", "example.net", "fd00::1/64", "10.0.0/8", "fe80::1%lo"];
        for text in ambiguous.into_iter().chain(others) {
            assert_eq!(parse_block(text), None, "{text}");
        }
    }
}
