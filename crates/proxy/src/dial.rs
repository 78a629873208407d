//! Dialling a target: its addresses one after the other, without waiting for any.

use crate::message::Refusal;
use crate::poller::{Poller, Readiness};
use anabranch_units::{Duration, Instant};
use core::net::SocketAddr;
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind};
use std::net::TcpStream;

/// How long an address has to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Addresses of a name that are tried.
pub(super) const ADDRESSES: usize = 4;
/// A target or a program that vanishes without a word is noticed after this time and Linux's nine probes.
pub(super) const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(600);

/// A target that is being dialled.
#[derive(Debug)]
pub(crate) struct Dial {
    socket: Socket,
    /// The system has something to say of it.
    changed: bool,
    until: Instant,
    /// The last of them is next.
    others: Vec<SocketAddr>,
}

/// How far it is.
#[derive(Debug)]
pub(crate) enum Dialled {
    Waits(Dial),
    Connected(TcpStream),
}

/// The socket's answer to why it is not connected.
fn why(error: &io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::ConnectionRefused => Refusal::Refused,
        ErrorKind::NetworkUnreachable => Refusal::NetworkUnreachable,
        ErrorKind::TimedOut => Refusal::TimedOut,
        _ if [nix::libc::EMFILE, nix::libc::ENFILE].map(Some).contains(&error.raw_os_error()) => Refusal::TooMany,
        _ => Refusal::HostUnreachable,
    }
}

/// A socket that is being connected.
fn connect(to: SocketAddr, poller: &Poller, token: u64) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))?;
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => return Err(error),
        _ => poller.add(&socket, token)?,
    }
    Ok(socket)
}

impl Dial {
    /// Dials the first of these addresses; `poller` reports changes as those of `token`.
    ///
    /// # Errors
    /// None can be dialled.
    pub fn begin(now: Instant, to: Vec<SocketAddr>, poller: &Poller, token: u64) -> Result<Self, Refusal> {
        let mut others: Vec<_> = to.into_iter().take(ADDRESSES).collect();
        others.reverse();
        Self::next(now, others, Refusal::HostUnreachable, poller, token)
    }

    fn next(
        now: Instant,
        mut others: Vec<SocketAddr>,
        mut last: Refusal,
        poller: &Poller,
        token: u64,
    ) -> Result<Self, Refusal> {
        while let Some(to) = others.pop() {
            match connect(to, poller, token) {
                Ok(socket) => return Ok(Self { socket, changed: false, until: now + PATIENCE, others }),
                Err(error) => last = why(&error),
            }
        }
        Err(last)
    }

    /// The system's report.
    pub fn set_ready(&mut self, readiness: Readiness) {
        self.changed |= readiness.writable;
    }

    /// When the present address is given up.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Looks how far it is.
    ///
    /// # Errors
    /// No address answers as it should.
    pub fn advance(self, now: Instant, poller: &Poller, token: u64) -> Result<Dialled, Refusal> {
        let failed = match self.socket.take_error() {
            Ok(Some(error)) | Err(error) => why(&error),
            Ok(None) if self.changed && self.socket.peer_addr().is_ok() => {
                return Ok(Dialled::Connected(self.socket.into()));
            }
            Ok(None) if now < self.until => return Ok(Dialled::Waits(self)),
            Ok(None) => Refusal::TimedOut,
        };
        let others = self.others;
        drop(self.socket);
        Self::next(now, others, failed, poller, token).map(Dialled::Waits)
    }
}
