//! The state that the script's host knows: ends, numbers, keys, streams.

use super::stream::{Mappings, Stream};
use crate::packet::{Opt, TcpPacket, proof};
use crate::script::{Address, Script};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The script's key.
pub const PEER_KEY: u64 = 0x0123_4567_89ab_cdef;
/// The server's port.
pub const SERVER_PORT: u16 = 80;
/// The client's ports: this one on path 0, the next on path 1, and so on.
pub const CLIENT_PORT: u16 = 2000;
/// Paths that a script may name.
pub const PATHS: u8 = 8;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InOut {
    /// From the script to the host.
    In,
    /// From the host to the script.
    Out,
}

/// One pair of ends.
#[derive(Clone, Debug)]
pub struct Path {
    /// The host's address.
    pub local: IpAddr,
    /// The peer's end.
    pub peer: SocketAddr,
    /// The host's port, once known.
    pub local_port: Option<u16>,
    /// The host's initial sequence number, once seen.
    pub local_isn: Option<u32>,
    /// The script's.
    pub peer_isn: u32,
    /// Random numbers of a join: the host's, the script's.
    pub nonces: (u32, u32),
    /// The host's last timestamp.
    pub last_stamp: u32,
    /// The places of the host's bytes in its stream.
    pub out: Mappings,
    /// The places of the script's bytes in its stream.
    pub into: Mappings,
}

/// The state of all paths and both streams.
#[derive(Clone, Debug)]
pub struct World {
    /// Paths, by number.
    pub paths: Vec<Path>,
    /// The host's key, once seen.
    pub local_key: Option<u64>,
    /// The stream of the host's application.
    pub written: Stream,
    /// Length of the written stream so far.
    pub written_len: u64,
    /// The stream of the script.
    pub sent: Stream,
    v6: bool,
}

/// The address of an end.
pub fn address(v6: bool, whose: Address) -> IpAddr {
    let (net, host) = match whose {
        Address::Local(index) => (index, 1),
        Address::Peer(index) => (index, 2),
        Address::Literal(address) => return address,
    };
    if v6 {
        Ipv6Addr::new(0xfd00, 0, 0, net.into(), 0, 0, 0, host.into()).into()
    } else {
        Ipv4Addr::new(10, 0, net, host).into()
    }
}

impl World {
    /// The state before the first step.
    pub fn new(script: &Script) -> Self {
        let v6 = script.settings.ipv6;
        let client = script.is_client();
        let path = |number: u8| {
            let line = script.paths.iter().find(|line| line.path == number);
            // The client has one address per path, the server one for all.
            let (local, peer) =
                line.map_or(if client { (number, 0) } else { (0, number) }, |line| (line.local, line.peer));
            let port = if client { SERVER_PORT } else { CLIENT_PORT + u16::from(number) };
            let local_port = line.and_then(|line| line.local_port).or((!client).then_some(SERVER_PORT));
            Path {
                local: address(v6, Address::Local(local)),
                peer: SocketAddr::new(
                    address(v6, Address::Peer(peer)),
                    line.and_then(|line| line.port).unwrap_or(port),
                ),
                local_port,
                local_isn: None,
                // Close to the wrap of sequence numbers.
                peer_isn: 0xffff_fc00u32.wrapping_add(0x1000_0000 * u32::from(number)),
                nonces: (0, 0x5eed_0000 + u32::from(number)),
                last_stamp: 0,
                out: Mappings::default(),
                into: Mappings::default(),
            }
        };
        Self {
            paths: (0..PATHS).map(path).collect(),
            local_key: None,
            written: Stream::new(1_000_003),
            written_len: 0,
            sent: Stream::new(0),
            v6,
        }
    }

    /// The address of an end of this world.
    pub fn address(&self, whose: Address) -> IpAddr {
        address(self.v6, whose)
    }

    /// The path of a packet that the host sent.
    pub fn path_of(&self, packet: &TcpPacket) -> Option<u8> {
        let opens = packet.flags & (SYN | ACK) == SYN;
        let fits = |path: &&Path, exactly: bool| {
            let ends = path.local == packet.src && path.peer == SocketAddr::new(packet.dst, packet.dst_port);
            ends && (path.local_port == Some(packet.src_port) || !exactly && (path.local_port.is_none() || opens))
        };
        let known = self.paths.iter().find(|path| fits(path, true));
        let known = known.or_else(|| self.paths.iter().find(|path| fits(path, false)))?;
        self.paths.iter().position(|path| core::ptr::eq(path, known)).map(|at| at as u8)
    }

    /// Records what a packet of the host reveals.
    pub fn observe(&mut self, number: u8, packet: &TcpPacket) {
        let path = &mut self.paths[usize::from(number)];
        if packet.flags & SYN != 0 && (path.local_isn.is_none() || path.local_port != Some(packet.src_port)) {
            path.local_isn = Some(packet.seq);
            path.local_port = Some(packet.src_port);
        }
        for option in &packet.options {
            match option {
                Opt::Stamps(val, _) => path.last_stamp = *val,
                Opt::JoinSyn { nonce, .. } | Opt::JoinSynAck { nonce, .. } => path.nonces.0 = *nonce,
                Opt::Capable { keys, .. } => self.local_key = self.local_key.or(keys.first().copied()),
                _ => {}
            }
        }
        for option in &packet.options {
            let Some((ssn, dsn, len)) = mapping(option) else { continue };
            let offset = match dsn {
                Some(dsn) => self.data_offset(InOut::Out, dsn),
                None => Some(0),
            };
            if let Some(offset) = offset {
                self.paths[usize::from(number)].out.add(ssn, offset, len);
            }
        }
    }

    /// The offset in a direction's stream of a data sequence number.
    pub fn data_offset(&self, way: InOut, dsn: crate::packet::Sized64) -> Option<i64> {
        let idsn = self.idsn(way)?;
        let from = if dsn.wide {
            dsn.number.wrapping_sub(idsn) as i64
        } else {
            i64::from((dsn.number as u32).wrapping_sub(idsn as u32) as i32)
        };
        Some(from - 1)
    }

    /// The key of the sender in this direction.
    pub fn key(&self, way: InOut) -> Option<u64> {
        match way {
            InOut::In => Some(PEER_KEY),
            InOut::Out => self.local_key,
        }
    }

    /// The initial data sequence number of a direction.
    pub fn idsn(&self, way: InOut) -> Option<u64> {
        self.key(way).map(proof::idsn)
    }
}

impl InOut {
    /// The other direction.
    pub fn back(self) -> Self {
        match self {
            Self::In => Self::Out,
            Self::Out => Self::In,
        }
    }
}

/// The mapping in an option: subflow number, data number (`None` = the stream's first), length.
pub fn mapping(option: &Opt) -> Option<(u32, Option<crate::packet::Sized64>, u16)> {
    match option {
        Opt::Dss { map: Some(map), fin, .. } if map.len > u16::from(*fin) || map.len == 0 => {
            Some((map.ssn, Some(map.dsn), map.len))
        }
        Opt::Capable { len: Some(len), .. } => Some((1, None, *len)),
        _ => None,
    }
}
