//! The server's half of SOCKS5's negotiation (RFC 1928, CONNECT alone; RFC 1929), without IO. It is our own because every known
//! library brings a runtime (`fast-socks5`: tokio) or sockets with it.

use crate::target::{Host, Target};
use core::net::IpAddr;
use zeroize::{Zeroize, Zeroizing};

const VERSION: u8 = 5;
/// RFC 1929 §2: the version of the sub-negotiation.
const LOGIN: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NO_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// A reply's code (RFC 1928 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocksReply {
    /// Connected.
    Succeeded = 0,
    /// General failure.
    Failed = 1,
    /// Not allowed by the rules.
    NotAllowed = 2,
    /// The network cannot be reached.
    NetworkUnreachable = 3,
    /// The host cannot be reached, or its name is not known.
    HostUnreachable = 4,
    /// The host refuses.
    Refused = 5,
    /// The time is over.
    TimedOut = 6,
    /// Another command than CONNECT.
    NoSuchCommand = 7,
    /// An unknown type of address.
    NoSuchAddress = 8,
}

impl SocksReply {
    /// As it is sent; the address that a server is bound to is not said.
    pub fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocksState {
    Methods,
    Login,
    Request,
    Over,
}

/// The result of a client's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SocksOutput {
    /// To be sent to the client.
    pub say: Vec<u8>,
    /// The end of the negotiation.
    pub end: Option<SocksResult>,
}

/// The end of a negotiation.
#[derive(Debug, PartialEq, Eq)]
pub enum SocksResult {
    /// A connection to `target` is requested; `early` are bytes that came behind the request.
    Connect {
        /// Target of the request.
        target: Target,
        /// The first bytes for it.
        early: Vec<u8>,
    },
    /// The client is refused, after what is to be sent.
    Refused,
}

/// True for a user with that password.
pub type PasswordCheck<'a> = &'a dyn Fn(&[u8], &[u8]) -> bool;

/// A negotiation with a client.
#[derive(Debug)]
pub struct SocksHandshake {
    state: SocksState,
    /// Clients need a password.
    guarded: bool,
    /// Bytes that were not understood yet: at most one message and what the client sent behind it at once.
    came: Zeroizing<Vec<u8>>,
}

impl SocksHandshake {
    /// Bytes of the longest message, RFC 1929's.
    pub const LONGEST: usize = 513;

    /// A new client, which must give user and password if it is `guarded`.
    pub fn new(guarded: bool) -> Self {
        Self { state: SocksState::Methods, guarded, came: Zeroizing::new(Vec::with_capacity(2 * Self::LONGEST)) }
    }

    /// Takes bytes of the client; none after the end.
    pub fn take(&mut self, bytes: &[u8], admit: PasswordCheck<'_>) -> SocksOutput {
        let mut output = SocksOutput::default();
        if self.state == SocksState::Over {
            return output;
        }
        self.came.extend_from_slice(bytes);
        while output.end.is_none() {
            let step = match self.state {
                SocksState::Methods => self.methods(),
                SocksState::Login => self.login(admit),
                SocksState::Request => self.request(),
                SocksState::Over => None,
            };
            let Some((len, step)) = step else { break };
            self.forget(len);
            match step {
                Step::Next(say, state) => {
                    output.say.extend_from_slice(&say);
                    self.state = state;
                }
                Step::Refuse(say) => {
                    output.say.extend_from_slice(&say);
                    output.end = Some(SocksResult::Refused);
                }
                Step::Connect(target) => {
                    let early = core::mem::take(&mut *self.came);
                    output.end = Some(SocksResult::Connect { target, early });
                }
            }
        }
        if output.end.is_some() {
            self.state = SocksState::Over;
            self.came.zeroize();
        }
        output
    }

    /// Drops a message that was understood; a password does not stay in memory.
    fn forget(&mut self, len: usize) {
        let rest = self.came.len() - len;
        self.came.copy_within(len.., 0);
        self.came[rest..].zeroize();
        self.came.truncate(rest);
    }

    /// RFC 1928 §3.
    fn methods(&self) -> Option<(usize, Step)> {
        let [version, count, rest @ ..] = &self.came[..] else {
            // Another protocol is refused at its first byte.
            return self.came.first().filter(|version| **version != VERSION).map(|_| (1, Step::Refuse(Vec::new())));
        };
        if *version != VERSION {
            return Some((0, Step::Refuse(Vec::new())));
        }
        let methods = rest.get(..usize::from(*count))?;
        let (method, next) =
            if self.guarded { (PASSWORD, SocksState::Login) } else { (NO_AUTHENTICATION, SocksState::Request) };
        let step = match methods.contains(&method) {
            true => Step::Next(vec![VERSION, method], next),
            false => Step::Refuse(vec![VERSION, NO_ACCEPTABLE]),
        };
        Some((2 + methods.len(), step))
    }

    /// RFC 1929 §2.
    fn login(&self, admit: PasswordCheck<'_>) -> Option<(usize, Step)> {
        if *self.came.first()? != LOGIN {
            return Some((0, Step::Refuse(vec![LOGIN, 1])));
        }
        let user_len = usize::from(*self.came.get(1)?);
        let user = self.came.get(2..2 + user_len)?;
        let password_len = usize::from(*self.came.get(2 + user_len)?);
        let password = self.came.get(3 + user_len..3 + user_len + password_len)?;
        let step = match admit(user, password) {
            true => Step::Next(vec![LOGIN, 0], SocksState::Request),
            false => Step::Refuse(vec![LOGIN, 1]),
        };
        Some((3 + user_len + password_len, step))
    }

    /// RFC 1928 §4, §5.
    fn request(&self) -> Option<(usize, Step)> {
        let refuse = |reply: SocksReply| Some((0, Step::Refuse(reply.bytes().to_vec())));
        let [version, command, _, kind, rest @ ..] = &self.came[..] else { return None };
        if *version != VERSION {
            return refuse(SocksReply::Failed);
        }
        if *command != CONNECT {
            return refuse(SocksReply::NoSuchCommand);
        }
        let (host, len) = match *kind {
            IPV4 => (Some(Host::Address(IpAddr::from(*rest.first_chunk::<4>()?))), 4),
            IPV6 => (Some(Host::Address(IpAddr::from(*rest.first_chunk::<16>()?))), 16),
            DOMAIN => {
                let len = usize::from(*rest.first()?);
                (Host::parse_bytes(rest.get(1..1 + len)?), 1 + len)
            }
            _ => return refuse(SocksReply::NoSuchAddress),
        };
        let port = u16::from_be_bytes(*rest.get(len..)?.first_chunk::<2>()?);
        let step = match host.filter(|_| port > 0) {
            Some(host) => Step::Connect(Target { host, port }),
            None => Step::Refuse(SocksReply::HostUnreachable.bytes().to_vec()),
        };
        Some((4 + len + 2, step))
    }
}

/// The consequence of a message.
enum Step {
    Next(Vec<u8>, SocksState),
    Refuse(Vec<u8>),
    Connect(Target),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn admit(user: &[u8], password: &[u8]) -> bool {
        (user, password) == (b"ann", b"secret")
    }

    /// All that is said, and the end, if the bytes come in pieces of `size`.
    fn negotiation(guarded: bool, bytes: &[u8], size: usize) -> SocksOutput {
        let mut handshake = SocksHandshake::new(guarded);
        let mut all = SocksOutput::default();
        for piece in bytes.chunks(size) {
            match &mut all.end {
                // The socket has what follows.
                Some(SocksResult::Connect { early, .. }) => early.extend_from_slice(piece),
                Some(SocksResult::Refused) => {}
                None => {
                    let SocksOutput { say, end } = handshake.take(piece, &admit);
                    all.say.extend(say);
                    all.end = end;
                }
            }
        }
        all
    }

    fn connect(host: Host, port: u16, early: &[u8]) -> Option<SocksResult> {
        Some(SocksResult::Connect { target: Target { host, port }, early: early.to_vec() })
    }

    #[test]
    fn a_client_without_a_password_connects_to_each_kind_of_address() {
        let v4 = [&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80][..], b"GET"].concat();
        let v6 = [&[5, 2, 7, 0, 5, 1, 0, 4, 0x20, 1, 0xd, 0xb8][..], &[0; 11], &[9, 1, 187]].concat();
        let name = [&[5, 1, 0, 5, 1, 0, 3, 11][..], b"example.net", &[0, 22]].concat();
        let cases = [
            (v4, connect(Host::Address("192.0.2.1".parse().unwrap()), 80, b"GET")),
            (v6, connect(Host::Address("2001:db8::9".parse().unwrap()), 443, b"")),
            (name, connect(Host::Name("example.net".into()), 22, b"")),
        ];
        for (bytes, end) in cases {
            for size in 1..=bytes.len() {
                let got = negotiation(false, &bytes, size);
                assert_eq!((&got.say[..], &got.end), (&[5, 0][..], &end), "in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_password_is_demanded_where_it_is_needed() {
        let login = |password: &[u8]| {
            let len = password.len() as u8;
            [&[5, 2, 0, 2, 1, 3][..], b"ann", &[len], password, &[5, 1, 0, 1, 192, 0, 2, 1, 0, 80]].concat()
        };
        let right = negotiation(true, &login(b"secret"), 1);
        assert_eq!(right.say, [5, 2, 1, 0]);
        assert_eq!(right.end, connect(Host::Address("192.0.2.1".parse().unwrap()), 80, b""));
        let wrong = SocksOutput { say: vec![5, 2, 1, 1], end: Some(SocksResult::Refused) };
        assert_eq!(negotiation(true, &login(b"Secret"), 1), wrong);
        assert_eq!(negotiation(true, &login(b""), 100), wrong);
        let none = SocksOutput { say: vec![5, 0xff], end: Some(SocksResult::Refused) };
        assert_eq!(negotiation(true, &[5, 1, 0], 1), none, "a client that offers none");
        assert_eq!(negotiation(false, &[5, 1, 2], 1), none, "and one that offers nothing else");
    }

    #[test]
    fn what_is_not_spoken_is_refused_with_its_code() {
        let refused = |bytes: &[u8]| {
            let got = negotiation(false, &[&[5, 1, 0], bytes].concat(), 3);
            assert_eq!(got.end, Some(SocksResult::Refused), "{bytes:?}");
            got.say[3]
        };
        assert_eq!(refused(&[5, 2, 0, 1, 1, 2, 3, 4, 0, 80]), SocksReply::NoSuchCommand as u8, "BIND");
        assert_eq!(refused(&[5, 3, 0, 1, 1, 2, 3, 4, 0, 80]), SocksReply::NoSuchCommand as u8, "UDP ASSOCIATE");
        assert_eq!(refused(&[5, 1, 0, 2, 1, 2, 3, 4, 0, 80]), SocksReply::NoSuchAddress as u8);
        assert_eq!(refused(&[5, 1, 0, 3, 3, b'a', b' ', b'b', 0, 80]), SocksReply::HostUnreachable as u8, "no name");
        assert_eq!(refused(&[5, 1, 0, 1, 1, 2, 3, 4, 0, 0]), SocksReply::HostUnreachable as u8, "port 0");
        for other in [&b"GET / HTTP/1.1\r\n"[..], &[4, 1, 0, 80, 1, 2, 3, 4, 0], &[0x16, 3, 1]] {
            assert_eq!(
                negotiation(false, other, 1),
                SocksOutput { say: Vec::new(), end: Some(SocksResult::Refused) },
                "another protocol"
            );
        }
    }

    proptest! {
        /// Any bytes, in any pieces, come to the same end, and what is kept is bounded.
        #[test]
        fn any_bytes_in_any_pieces_mean_the_same(bytes in prop::collection::vec(any::<u8>(), 0..600), guarded: bool, size in 1_usize..20) {
            let bytes = [&[5, 2, 0, 2][..], &bytes].concat();
            let (whole, parts) = (negotiation(guarded, &bytes, bytes.len()), negotiation(guarded, &bytes, size));
            prop_assert_eq!(&whole, &parts);
            let mut handshake = SocksHandshake::new(guarded);
            for piece in bytes.chunks(size) {
                if handshake.take(piece, &admit).end.is_some() {
                    break;
                }
                prop_assert!(handshake.came.len() <= SocksHandshake::LONGEST);
            }
        }
    }
}
