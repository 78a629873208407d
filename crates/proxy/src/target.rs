//! Where a proxied connection goes.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use serde::{Deserialize, Serialize};

/// A host, by name or address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name, which the server resolves.
    Name(String),
}

impl Host {
    /// RFC 1035 §2.3.4.
    const LONGEST: usize = 255;

    /// A host as it is written: a name that is an address is that address. What a resolver takes for an address and is none as
    /// written, such as `010.0.0.1` or `127.1`, is no host: programs do not agree on which one it is.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        if is_numeric(text) {
            return None;
        }
        let fits = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
        let is_name = !text.is_empty() && text.len() <= Self::LONGEST && text.bytes().all(fits);
        is_name.then(|| Self::Name(text.to_ascii_lowercase()))
    }

    /// The address, if it is one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// The same, of another host's: a name is one, and an address is none.
    pub(crate) fn checked(self) -> Option<Self> {
        match self {
            Self::Name(name) => Self::parse(&name),
            address => Some(address),
        }
    }

    /// The same, of bytes.
    pub fn parse_bytes(bytes: &[u8]) -> Option<Self> {
        Self::parse(core::str::from_utf8(bytes).ok()?)
    }
}

/// Numbers alone, decimal, octal or hexadecimal: inet_aton(3) reads one to four as an IPv4 address. RFC 1123 §2.1 has no such name.
fn is_numeric(text: &str) -> bool {
    let number = |part: &str| match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
        Some(rest) => rest.bytes().all(|c| c.is_ascii_hexdigit()),
        None => !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()),
    };
    text.strip_suffix('.').unwrap_or(text).split('.').all(number)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A host and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, above zero.
    pub port: u16,
}

impl Target {
    /// `HOST:PORT`, an IPv6 address in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => Host::Address(IpAddr::V6(address.parse().ok()?)),
            None => Host::parse(host).filter(|host| !matches!(host, Host::Address(IpAddr::V6(_))))?,
        };
        Some(Self { host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A port of this host's interfaces, whatever their addresses, whose connections go to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPort {
    /// The port, above zero.
    pub port: u16,
    /// Where its connections go.
    pub target: Target,
}

impl PublishedPort {
    /// `PORT:HOST:PORT`.
    pub fn parse(text: &str) -> Option<Self> {
        let (port, target) = text.split_once(':')?;
        Some(Self { port: port.parse().ok().filter(|port| *port > 0)?, target: Target::parse(target)? })
    }
}

/// A local port whose connections go to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Where it listens.
    pub local: SocketAddr,
    /// Where its connections go.
    pub target: Target,
}

impl Forward {
    /// `PORT:HOST:PORT`, or `ADDRESS:PORT:HOST:PORT`; without an address it listens on 127.0.0.1.
    pub fn parse(text: &str) -> Option<Self> {
        // The target is what is left behind the local end, which is a port or an address with its port.
        let local_v4 = |text: &str| text.parse::<SocketAddr>().ok();
        let ends = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let mut found = ends.filter_map(|(local, target)| {
            let local = match local.parse::<u16>() {
                Ok(port) => SocketAddr::from(([127, 0, 0, 1], port)),
                Err(_) => local_v4(local)?,
            };
            Some(Self { local, target: Target::parse(target)? })
        });
        found.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_address_are_no_host() {
        for text in
            ["010.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "1.2.3.4.5", "256.1.1.1"]
        {
            assert_eq!(Host::parse(text), None, "{text}");
            assert_eq!(Target::parse(&format!("{text}:80")), None, "{text}");
            assert_eq!(Forward::parse(&format!("8080:{text}:80")), None, "{text}");
        }
        for text in ["1and1.com", "3g", "a.1", "0xyz.net", "10.0.0.1.example.net"] {
            assert_eq!(Host::parse(text), Some(Host::Name(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn targets_are_read_as_they_are_written() {
        for text in ["example.net:80", "192.0.2.1:443", "[2001:db8::1]:22", "a_b-c.:1"] {
            assert_eq!(Target::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Target::parse("EXAMPLE.net:80").unwrap().to_string(), "example.net:80");
        for text in
            ["example.net", "example.net:0", "example.net:65536", ":80", "a b:80", "2001:db8::1:80", "é:80", "[x]:80"]
        {
            assert_eq!(Target::parse(text), None, "{text}");
        }
        assert_eq!(Host::parse(&"a".repeat(256)), None);
        assert_eq!(Host::parse("127.0.0.1"), Some(Host::Address([127, 0, 0, 1].into())), "no name is an address");
    }

    #[test]
    fn a_service_has_a_port_and_a_target() {
        let of = |text: &str| PublishedPort::parse(text).map(|s| (s.port, s.target.to_string()));
        assert_eq!(of("8080:127.0.0.1:80"), Some((8080, "127.0.0.1:80".to_owned())));
        assert_eq!(of("443:[::1]:8443"), Some((443, "[::1]:8443".to_owned())));
        for text in ["0:127.0.0.1:80", "8080:80", "8080", "65536:a:1", "127.0.0.1:8080:a:1", "a:1:a:1", "8080:a:0"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_forward_has_a_local_end_and_a_target() {
        let of = |text: &str| Forward::parse(text).map(|f| (f.local.to_string(), f.target.to_string()));
        let some = |local: &str, target: &str| Some((local.to_owned(), target.to_owned()));
        assert_eq!(of("8080:example.net:80"), some("127.0.0.1:8080", "example.net:80"));
        assert_eq!(of("127.0.0.2:8080:[2001:db8::1]:80"), some("127.0.0.2:8080", "[2001:db8::1]:80"));
        assert_eq!(of("[::1]:8080:192.0.2.1:80"), some("[::1]:8080", "192.0.2.1:80"));
        for text in ["8080", "8080:80", "8080:example.net", "host:8080:example.net:80"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
