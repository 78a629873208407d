//! UDP sockets, each bound to one network interface.

use crate::LinkError;
use anabranch_wire::Ecn;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockAddr, Socket as RawSocket, Type};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes that the kernel holds for us while we are busy: 30 ms at 1 Gbit/s.
const BUFFER: usize = 1 << 22;
/// GRO joins at most 64 datagrams into 64 KiB.
const RECEIVED: usize = 1 << 16;

/// A UDP socket that sends and receives many datagrams with one system call (GSO, GRO). It does not let the network fragment
/// them.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Datagrams that could not be sent: the interface is down, there is no route, or they are too large for it.
    pub unsent: u64,
    buffers: Vec<Vec<u8>>,
}

/// Lets this process have as many sockets as its owner may permit it. A system that refuses has its reasons.
pub fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Any address of the family of `address`, and any port.
fn any(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// A socket for datagrams that leave and enter through `interface` alone (`SO_BINDTODEVICE`: no privilege is needed since
/// Linux 5.7).
fn open(interface: Option<&str>, local: SocketAddr) -> std::io::Result<RawSocket> {
    let socket = RawSocket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.bind(&SockAddr::from(local))?;
    Ok(socket)
}

impl Socket {
    /// A socket that listens at `local` on every interface.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen(local: SocketAddr) -> Result<Self, LinkError> {
        Self::with(open(None, local), format!("listening at {local}"))
    }

    /// A socket that reaches `remote` through `interface`.
    ///
    /// # Errors
    /// There is no such interface, or no route to `remote` through it.
    pub fn through(interface: &str, remote: SocketAddr) -> Result<Self, LinkError> {
        Self::route(interface, remote)?;
        // It stays unconnected: its address may change.
        Self::with(open(Some(interface), any(remote)), format!("a socket on {interface}"))
    }

    /// Finds out whether `interface` leads to `remote`.
    ///
    /// # Errors
    /// There is no such interface, or no route through it.
    pub fn route(interface: &str, remote: SocketAddr) -> Result<(), LinkError> {
        // Connecting sends nothing, and finds the route.
        let route = open(Some(interface), any(remote)).and_then(|probe| probe.connect(&SockAddr::from(remote)));
        route.map_err(LinkError::system(format!("a route to {remote} through {interface}")))
    }

    fn with(opened: std::io::Result<RawSocket>, what: String) -> Result<Self, LinkError> {
        let made = opened.and_then(|raw| {
            let socket = UdpSocket::from(raw);
            let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
            // Of control messages `quinn-udp` takes 96 bytes: with a time of arrival, which it requests, the ECN field has no room.
            setsockopt(&socket, ReceiveTimestampns, &false)?;
            // The kernel may allow less.
            let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), BUFFER);
            let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), BUFFER);
            Ok((socket, state))
        });
        let (socket, state) = made.map_err(LinkError::system(what))?;
        let buffers = (0..BATCH_SIZE).map(|_| vec![0; RECEIVED]).collect();
        Ok(Self { socket, state, unsent: 0, buffers })
    }

    /// The socket's own address.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn local(&self) -> Result<SocketAddr, LinkError> {
        self.socket.local_addr().map_err(LinkError::system("reading a socket's address"))
    }

    /// Datagrams that one call may send.
    pub fn burst(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends datagrams that stand one behind the other, all of `size` bytes but the last, which may be shorter, in IP packets with `ecn`.
    /// What cannot be sent is lost, as on any link, and counted.
    pub fn send(&mut self, destination: SocketAddr, ecn: Ecn, size: usize, contents: &[u8]) {
        let segment_size = (contents.len() > size).then_some(size);
        let ecn = EcnCodepoint::from_bits(ecn.bits());
        let transmit = Transmit { destination, ecn, contents, segment_size, src_ip: None };
        if self.state.try_send(UdpSockRef::from(&self.socket), &transmit).is_err() {
            self.unsent += contents.len().div_ceil(size.max(1)) as u64;
        }
    }

    /// Calls `take` with each datagram that is there, at most a batch of them, its sender and the ECN field of its IP packet. False if
    /// there was none.
    ///
    /// # Errors
    /// The socket fails; that the network reports an unreachable host is no failure.
    pub fn receive(&mut self, mut take: impl FnMut(SocketAddr, Ecn, &[u8])) -> Result<bool, LinkError> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let received = match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas) {
            Ok(received) => received,
            Err(error) if is_passing(error.kind()) => return Ok(false),
            Err(source) => return Err(LinkError::System { what: "receiving datagrams".into(), source }),
        };
        for (meta, buffer) in metas.iter().zip(&self.buffers).take(received) {
            // Linux joins only datagrams whose packets have the same field since "net: gro: add flush check in udp_gro_receive_segment"
            // (2024). An older kernel joins others too: then all have the field of the first.
            let ecn = meta.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8));
            buffer[..meta.len].chunks(meta.stride.max(1)).for_each(|datagram| take(meta.addr, ecn, datagram));
        }
        Ok(received > 0)
    }
}

/// Nothing is there, or an earlier datagram was answered by ICMP; an interface may come back.
fn is_passing(kind: ErrorKind) -> bool {
    use ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable, WouldBlock,
    };
    [WouldBlock, Interrupted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable]
        .contains(&kind)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> Socket {
        Socket::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
    }

    fn received(socket: &mut Socket, expected: usize) -> Vec<(Ecn, Vec<u8>)> {
        let mut all = Vec::new();
        while all.len() < expected {
            let more = socket.receive(|_, ecn, datagram| all.push((ecn, datagram.to_vec()))).unwrap();
            assert!(more || !all.is_empty() || expected > 0);
        }
        all
    }

    #[test]
    fn a_burst_arrives_as_single_datagrams() {
        let (mut sender, mut receiver) = (loopback(), loopback());
        let to = receiver.local().unwrap();
        let burst: Vec<u8> = (0..250u8).collect();
        sender.send(to, Ecn::Ect0, 100, &burst);
        sender.send(to, Ecn::NotEct, 7, &[9; 7]);
        let expected = [(Ecn::Ect0, &burst[..100]), (Ecn::Ect0, &burst[100..200]), (Ecn::Ect0, &burst[200..])];
        let expected = expected.into_iter().chain([(Ecn::NotEct, &[9; 7][..])]);
        let expected: Vec<_> = expected.map(|(ecn, datagram)| (ecn, datagram.to_vec())).collect();
        assert_eq!(received(&mut receiver, 4), expected);
        assert_eq!(sender.unsent, 0);
        assert!(sender.burst() >= 1);
    }

    #[test]
    fn an_interface_without_a_route_is_refused_at_the_start() {
        let error = Socket::through("no-such-link", "192.0.2.1:9".parse().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("a route to 192.0.2.1:9 through no-such-link: "), "{error}");
        let there = Socket::through("lo", "127.0.0.1:9".parse().unwrap());
        assert!(there.is_ok(), "{there:?}");
    }

    #[test]
    fn what_cannot_be_sent_is_counted() {
        let mut socket = loopback();
        socket.send("127.0.0.1:9".parse().unwrap(), Ecn::NotEct, 70_000, &vec![0; 70_000]);
        assert_eq!(socket.unsent, 1);
    }
}
