//! A kernel's TCP sockets, read by sock_diag(7) as in `ss -ti`.

use anabranch_run::TcpInfo;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A TCP socket, which may be a subflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// The local end.
    pub local: SocketAddr,
    /// The remote end.
    pub remote: SocketAddr,
    /// `struct tcp_info`, as far as this kernel fills it in.
    pub tcp: TcpInfo,
}

/// The data that waits in a socket of TCP or of Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// State of the socket.
    pub state: State,
    /// A Multipath TCP socket. Its subflows are separate TCP sockets.
    pub mptcp: bool,
    /// The local end.
    pub local: SocketAddr,
    /// The remote end.
    pub remote: SocketAddr,
    /// Unacknowledged bytes; the end of the stream counts as one.
    pub unacknowledged: u64,
    /// Bytes not read by the program; the end of the stream counts as one. For a listening socket: connections not
    /// accepted.
    pub unread: u64,
    /// No program holds it any more. A subflow never has a program.
    pub orphaned: bool,
    /// A Multipath TCP socket after fallback: its unacknowledged data waits in the TCP socket between the same ends.
    pub fallen_back: bool,
}

/// A state of RFC 9293 §3.3.2, as far as it matters for waiting data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// LISTEN.
    Listening,
    /// FIN-WAIT-1, CLOSING or LAST-ACK: closed locally, and not acknowledged by the peer.
    Closing,
    /// CLOSE-WAIT: closed by the peer alone.
    PeerClosed,
    /// Any other.
    Other,
}

impl State {
    /// linux/tcp_states.h
    fn of(number: u8) -> Self {
        match number {
            10 => Self::Listening,
            4 | 9 | 11 => Self::Closing,
            8 => Self::PeerClosed,
            _ => Self::Other,
        }
    }
}

/// A netlink socket. It belongs to the namespace of the thread that opened it.
#[derive(Debug)]
pub struct SockDiag {
    socket: Socket,
    buffer: Vec<u8>,
}

// linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_MPTCP: u32 = 262;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_REQ_PROTOCOL: u16 = 3;
const MPTCP_INFO_FLAG_FALLBACK: u64 = 1;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// Length of `struct inet_diag_msg`.
const ANSWER: usize = 72;
/// ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK, CLOSING.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const LISTEN: u32 = 1 << 10;

/// Fields of `struct tcp_info` (linux/tcp.h): name, offset, length. New fields are appended, so that an older kernel's
/// structure is a prefix.
const FIELDS: &[(&str, usize, usize)] = &[
    ("tcpi_state", 0, 1),
    ("tcpi_ca_state", 1, 1),
    ("tcpi_rto", 8, 4),
    ("tcpi_snd_mss", 16, 4),
    ("tcpi_rcv_mss", 20, 4),
    ("tcpi_unacked", 24, 4),
    ("tcpi_lost", 32, 4),
    ("tcpi_pmtu", 60, 4),
    ("tcpi_rtt", 68, 4),
    ("tcpi_rttvar", 72, 4),
    ("tcpi_snd_ssthresh", 76, 4),
    ("tcpi_snd_cwnd", 80, 4),
    ("tcpi_advmss", 84, 4),
    ("tcpi_reordering", 88, 4),
    ("tcpi_total_retrans", 100, 4),
    ("tcpi_pacing_rate", 104, 8),
    ("tcpi_bytes_acked", 120, 8),
    ("tcpi_bytes_received", 128, 8),
    ("tcpi_segs_out", 136, 4),
    ("tcpi_segs_in", 140, 4),
    ("tcpi_notsent_bytes", 144, 4),
    ("tcpi_min_rtt", 148, 4),
    ("tcpi_delivery_rate", 160, 8),
    ("tcpi_busy_time", 168, 8),
    ("tcpi_rwnd_limited", 176, 8),
    ("tcpi_sndbuf_limited", 184, 8),
    ("tcpi_bytes_sent", 200, 8),
    ("tcpi_bytes_retrans", 208, 8),
    ("tcpi_dsack_dups", 216, 4),
    ("tcpi_reord_seen", 220, 4),
    ("tcpi_rcv_ooopack", 224, 4),
    ("tcpi_snd_wnd", 228, 4),
    ("tcpi_rcv_wnd", 232, 4),
    ("tcpi_total_rto", 240, 2),
];

impl SockDiag {
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::from(AF_NETLINK), Type::DGRAM, Some(Protocol::from(NETLINK_SOCK_DIAG)))?;
        socket.set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
        Ok(Self { socket, buffer: vec![0; 1 << 16] })
    }

    /// All open TCP sockets of both IP versions.
    ///
    /// # Errors
    /// The request fails.
    pub fn sockets(&mut self) -> io::Result<Vec<SocketInfo>> {
        let mut found = self.ask(&request(false, STATES, false), socket)?;
        found.extend(self.ask(&request(true, STATES, false), socket)?);
        Ok(found)
    }

    /// The waiting data of the sockets of both IP versions, of TCP and of Multipath TCP.
    ///
    /// # Errors
    /// The request fails.
    pub fn backlogs(&mut self) -> io::Result<Vec<Backlog>> {
        let mut found = Vec::new();
        for v6 in [false, true] {
            found.extend(self.ask(&request(v6, STATES | LISTEN, false), |message| backlog(message, false))?);
            match self.ask(&request(v6, STATES, true), |message| backlog(message, true)) {
                Ok(sockets) => found.extend(sockets),
                // This kernel does not list them, or has none.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn ask<T>(&mut self, request: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> io::Result<Vec<T>> {
        self.socket.send(request)?;
        let mut found = Vec::new();
        loop {
            let len = self.socket.read(&mut self.buffer)?;
            if messages(&self.buffer[..len], &read, &mut found)? {
                return Ok(found);
            }
        }
    }
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`, and an attribute for a protocol number that does not fit into it.
fn request(v6: bool, states: u32, mptcp: bool) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + REQUEST];
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes[HEADER] = if v6 { AF_INET6 } else { AF_INET };
    bytes[HEADER + 1] = IPPROTO_TCP;
    bytes[HEADER + 2] = 1 << (INET_DIAG_INFO - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&states.to_ne_bytes());
    if mptcp {
        bytes.extend(8u16.to_ne_bytes());
        bytes.extend(INET_DIAG_REQ_PROTOCOL.to_ne_bytes());
        bytes.extend(IPPROTO_MPTCP.to_ne_bytes());
    }
    let len = (bytes.len() as u32).to_ne_bytes();
    bytes[0..4].copy_from_slice(&len);
    bytes
}

/// Reads the messages of one answer; true after the last one.
fn messages<T>(mut bytes: &[u8], read: &impl Fn(&[u8]) -> Option<T>, found: &mut Vec<T>) -> io::Result<bool> {
    while let (Some(len), Some(kind)) = (number(bytes, 0, 4), number(bytes, 4, 2)) {
        match kind as u16 {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let errno = number(bytes, HEADER, 4).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(errno.wrapping_neg()));
            }
            _ => {}
        }
        let Some(message) = bytes.get(HEADER..len as usize) else { break };
        found.extend(read(message));
        bytes = bytes.get(aligned(len as usize)..).unwrap_or_default();
    }
    Ok(false)
}

/// `struct inet_diag_msg` and its attributes; `None` if there is no `tcp_info` among them.
fn socket(message: &[u8]) -> Option<SocketInfo> {
    let (local, remote) = ends(message)?;
    let value = info(message)?;
    let field = |(name, at, len): &(&str, usize, usize)| Some(((*name).to_owned(), number(value, *at, *len)?));
    Some(SocketInfo { local, remote, tcp: FIELDS.iter().filter_map(field).collect() })
}

/// `struct inet_diag_msg`, of Multipath TCP with `struct mptcp_info` (linux/mptcp.h).
fn backlog(message: &[u8], mptcp: bool) -> Option<Backlog> {
    let (local, remote) = ends(message)?;
    let info = if mptcp { info(message) } else { None };
    let field = |at, len| info.and_then(|value| number(value, at, len));
    let (fallen_back, written, acknowledged) = (field(8, 4), field(16, 8), field(24, 8));
    let unacknowledged = match written.zip(acknowledged) {
        Some((written, acknowledged)) => written.wrapping_sub(acknowledged),
        None => number(message, 60, 4)?,
    };
    Some(Backlog {
        state: State::of(*message.get(1)?),
        mptcp,
        local,
        remote,
        unacknowledged,
        unread: number(message, 56, 4)?,
        orphaned: number(message, 68, 4)? == 0,
        fallen_back: fallen_back.is_some_and(|flags| flags & MPTCP_INFO_FLAG_FALLBACK != 0),
    })
}

/// The local and the remote end.
fn ends(message: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let v6 = *message.first()? == AF_INET6;
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes(message.get(port..port + 2)?.try_into().ok()?);
        Some(SocketAddr::new(ip(message.get(address..address + 16)?, v6)?, port))
    };
    Some((end(4, 8)?, end(6, 24)?))
}

/// The protocol's attribute of a socket.
fn info(message: &[u8]) -> Option<&[u8]> {
    let mut attributes = message.get(ANSWER..)?;
    while let (Some(len), Some(kind)) = (number(attributes, 0, 2), number(attributes, 2, 2)) {
        let value = attributes.get(4..len as usize)?;
        if kind as u16 == INET_DIAG_INFO {
            return Some(value);
        }
        attributes = attributes.get(aligned(len as usize)..)?;
    }
    None
}

fn ip(bytes: &[u8], v6: bool) -> Option<IpAddr> {
    let all: [u8; 16] = bytes.try_into().ok()?;
    let [a, b, c, d, ..] = all;
    Some(if v6 { Ipv6Addr::from(all).to_canonical() } else { Ipv4Addr::new(a, b, c, d).into() })
}

/// A number of 1, 2, 4 or 8 bytes in native byte order.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + len)?;
    Some(match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => u64::from_ne_bytes(bytes.try_into().ok()?),
    })
}

/// Messages and attributes begin at multiples of four.
fn aligned(len: usize) -> usize {
    // A length of zero would never end the loop.
    len.max(4).next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_over_loopback_is_found_with_what_it_carried() {
        use std::io::Write;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, from) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        let found = SockDiag::open().unwrap().sockets().unwrap();
        let ours = found.iter().find(|socket| socket.local == from).expect("our own connection");
        assert_eq!(ours.remote, listener.local_addr().unwrap());
        assert_eq!((ours.tcp["tcpi_state"], ours.tcp["tcpi_bytes_sent"]), (1, 1000));
        assert!(ours.tcp["tcpi_snd_cwnd"] >= 10 && ours.tcp["tcpi_rtt"] > 0, "{ours:?}");
    }

    #[test]
    fn what_waits_at_either_end_of_a_connection_is_told() {
        use std::io::Write;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(here).unwrap();
        let port = client.local_addr().unwrap();
        let look = || {
            let mut sockets = SockDiag::open().unwrap().backlogs().unwrap();
            sockets.retain(|socket| [socket.local, socket.remote].contains(&here));
            sockets
        };
        let of = |local: SocketAddr| look().into_iter().find(|s| s.local == local && s.state != State::Listening);
        let waiting = |sockets: &[Backlog]| sockets.iter().find(|s| s.state == State::Listening).map(|s| s.unread);
        assert_eq!(waiting(&look()), Some(1), "not accepted yet");
        let (server, _) = listener.accept().unwrap();
        assert_eq!(waiting(&look()), Some(0));
        client.write_all(&[7; 1000]).unwrap();
        let ends = (of(port).unwrap(), look().into_iter().find(|s| s.remote == port).unwrap());
        assert_eq!((ends.0.unacknowledged, ends.0.orphaned, ends.0.mptcp), (0, false, false));
        assert_eq!((ends.1.unread, ends.1.state), (1000, State::Other));
        drop(client);
        let server_end = look().into_iter().find(|s| s.remote == port).unwrap();
        assert_eq!((server_end.unread, server_end.state), (1001, State::PeerClosed), "the FIN takes a sequence number");
        assert!(of(port).is_none_or(|client| client.orphaned));
        drop(server);
    }

    #[test]
    fn no_bytes_make_it_fail_or_hang() {
        for len in 0..200 {
            for byte in [0, 1, 2, 4, 255] {
                let _ = messages(&vec![byte; len], &socket, &mut Vec::new());
                let _ = messages(&vec![byte; len], &|message: &[u8]| backlog(message, true), &mut Vec::new());
                let _ = backlog(&vec![byte; len], true);
            }
        }
    }
}
