//! The ports at which programs reach the proxy.

use crate::credentials::Credentials;
use crate::dial::KEEP_ALIVE;
use crate::poller::Poller;
use crate::target::{Forward, Target};
use anabranch_link::LinkError;
use socket2::{SockRef, TcpKeepalive};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

/// The protocol of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// SOCKS5, with a password if it is guarded.
    Socks { guarded: bool },
    /// None: everything goes to this target.
    Forward(Target),
}

/// The result of an attempt to accept.
pub(crate) enum Accepted {
    /// A program, and where it is.
    Program(TcpStream, IpAddr),
    Nobody,
    /// The system has no file descriptor left, for now.
    Later,
}

/// Open ports.
#[derive(Debug)]
pub struct Listeners {
    all: Vec<(TcpListener, ListenerKind)>,
    credentials: Option<Credentials>,
}

fn listen(local: SocketAddr) -> Result<TcpListener, LinkError> {
    let bound = TcpListener::bind(local).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    bound.map_err(LinkError::system(format!("listening at {local}")))
}

/// Without blocking; a program that vanishes without a word is noticed.
fn prepared(program: TcpStream) -> std::io::Result<TcpStream> {
    program.set_nonblocking(true)?;
    SockRef::from(&program).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))?;
    Ok(program)
}

impl Listeners {
    /// Opens ports for SOCKS5 and for forwarded connections. A port that other hosts can reach needs `credentials`, which only SOCKS5
    /// has.
    ///
    /// # Errors
    /// A port cannot be had, or may not.
    pub fn open(
        socks: &[SocketAddr],
        forwards: &[Forward],
        credentials: Option<Credentials>,
    ) -> Result<Self, LinkError> {
        let refused = |what: String| Err(LinkError::Malformed { what });
        if let Some(open) = socks.iter().find(|local| !local.ip().is_loopback() && credentials.is_none()) {
            return refused(format!("--socks {open}: other hosts can reach it, so it needs --credentials FILE"));
        }
        if let Some(open) = forwards.iter().find(|forward| !forward.local.ip().is_loopback()) {
            return refused(format!("--forward {}: other hosts could reach it without a password", open.local));
        }
        let mut all = Vec::new();
        for local in socks {
            all.push((listen(*local)?, ListenerKind::Socks { guarded: credentials.is_some() }));
        }
        for forward in forwards {
            all.push((listen(forward.local)?, ListenerKind::Forward(forward.target.clone())));
        }
        Ok(Self { all, credentials })
    }

    /// Where they listen.
    pub fn locals(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.all.iter().filter_map(|(socket, _)| socket.local_addr().ok())
    }

    /// Has changes reported as those of the listener's place.
    pub(crate) fn register(&self, poller: &Poller) -> Result<(), LinkError> {
        let add = |(n, (socket, _)): (usize, &(TcpListener, ListenerKind))| poller.add(socket, n as u64);
        self.all.iter().enumerate().try_for_each(add).map_err(LinkError::system("epoll"))
    }

    /// The next program at a listener, with its protocol.
    pub(crate) fn accept(&self, place: u64) -> Option<(Accepted, ListenerKind)> {
        let (socket, kind) = self.all.get(usize::try_from(place).ok()?)?;
        let accepted = match socket.accept().and_then(|(program, from)| Ok((prepared(program)?, from))) {
            Ok((program, from)) => Accepted::Program(program, from.ip()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Accepted::Nobody,
            Err(_) => Accepted::Later,
        };
        Some((accepted, kind.clone()))
    }

    /// True for a user with this password; where none is needed, for everybody.
    pub(crate) fn admit(&self, user: &[u8], password: &[u8]) -> bool {
        self.credentials.as_ref().is_none_or(|credentials| credentials.admit(user, password))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_other_hosts_reach_needs_credentials() {
        let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let forward = |local| Forward { local, target: Target::parse("example.net:80").unwrap() };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        std::fs::write(&file, "ann:secret\n").unwrap();
        let said = Credentials::read(&file).unwrap_err().to_string();
        assert!(said.contains("others than its owner"), "{said}");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let credentials = Credentials::read(&file).ok();
        assert!(Listeners::open(&[open], &[], None).unwrap_err().to_string().contains("--credentials"));
        assert!(Listeners::open(&[open], &[], credentials.clone()).is_ok());
        assert!(Listeners::open(&[local], &[forward(local)], None).is_ok());
        for credentials in [None, credentials] {
            assert!(Listeners::open(&[], &[forward(open)], credentials).is_err(), "a forward has no password");
        }
    }
}
