//! Options to and from bytes (RFC 9293 §3.1, RFC 7323, RFC 2018, RFC 8684 §3).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A data number, and whether it takes 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sized64 {
    /// 8 bytes; else 4.
    pub wide: bool,
    /// The number; its low 32 bits if not wide.
    pub number: u64,
}

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Data sequence number.
    pub dsn: Sized64,
    /// Subflow sequence number.
    pub ssn: u32,
    /// Length.
    pub len: u16,
    /// Checksum.
    pub csum: Option<u16>,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// End of the list.
    End,
    /// Padding.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamps.
    Stamps(u32, u32),
    /// MP_CAPABLE: version, flags, keys, data-level length and checksum.
    Capable {
        /// Version.
        version: u8,
        /// Flags.
        flags: u8,
        /// Keys.
        keys: Vec<u64>,
        /// Length.
        len: Option<u16>,
        /// Checksum.
        csum: Option<u16>,
    },
    /// MP_JOIN on a SYN.
    JoinSyn {
        /// Flag B.
        backup: bool,
        /// Address ID.
        id: u8,
        /// Token.
        token: u32,
        /// Random number.
        nonce: u32,
    },
    /// MP_JOIN on a SYN/ACK.
    JoinSynAck {
        /// Flag B.
        backup: bool,
        /// Address ID.
        id: u8,
        /// HMAC.
        hmac: u64,
        /// Random number.
        nonce: u32,
    },
    /// MP_JOIN on an ACK.
    JoinAck([u8; 20]),
    /// DSS.
    Dss {
        /// DATA_FIN.
        fin: bool,
        /// Data acknowledgment.
        ack: Option<Sized64>,
        /// Mapping.
        map: Option<Map>,
    },
    /// ADD_ADDR; an echo has no HMAC.
    AddAddr {
        /// Flag E.
        echo: bool,
        /// Address ID.
        id: u8,
        /// Address.
        address: IpAddr,
        /// Port.
        port: Option<u16>,
        /// HMAC.
        hmac: Option<u64>,
    },
    /// REMOVE_ADDR.
    RemoveAddr(Vec<u8>),
    /// MP_PRIO.
    Prio(bool),
    /// MP_FAIL.
    Fail(u64),
    /// MP_FASTCLOSE.
    FastClose(u64),
    /// MP_TCPRST.
    TcpRst {
        /// Flag T.
        transient: bool,
        /// Reason.
        reason: u8,
    },
    /// Anything else, as bytes.
    Raw(Vec<u8>),
}

/// The kind of MPTCP options.
const MPTCP: u8 = 30;

/// The bytes of all options, each padded to four with NOPs before it (TCP's) or behind it (MPTCP's), unless the list pads
/// itself.
pub(super) fn emit(options: &[Opt]) -> Vec<u8> {
    let mut out = Vec::new();
    let padded = options.iter().any(|option| matches!(option, Opt::Nop | Opt::End));
    for option in options {
        let bytes = bytes(option);
        let before = !matches!(bytes.first(), Some(&MPTCP)) && !matches!(option, Opt::Raw(_));
        let pad = if padded { 0 } else { bytes.len().next_multiple_of(4) - bytes.len() };
        if before {
            out.extend(std::iter::repeat_n(1, pad));
        }
        out.extend(&bytes);
        if !before {
            out.extend(std::iter::repeat_n(1, pad));
        }
    }
    let len = out.len().next_multiple_of(4);
    out.resize(len, 0);
    out
}

fn mptcp(subtype: u8, low: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![MPTCP, 3 + body.len() as u8, subtype << 4 | low];
    out.extend(body);
    out
}

fn put(out: &mut Vec<u8>, number: Sized64) {
    if number.wide {
        out.extend(number.number.to_be_bytes());
    } else {
        out.extend((number.number as u32).to_be_bytes());
    }
}

fn bytes(option: &Opt) -> Vec<u8> {
    match option {
        Opt::End => vec![0],
        Opt::Nop => vec![1],
        Opt::Mss(mss) => [&[2, 4][..], &mss.to_be_bytes()].concat(),
        Opt::WindowScale(shift) => vec![3, 3, *shift],
        Opt::SackOk => vec![4, 2],
        Opt::Sack(blocks) => {
            let edges = blocks.iter().flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()]);
            let body: Vec<u8> = edges.flatten().collect();
            [&[5, 2 + body.len() as u8][..], &body].concat()
        }
        Opt::Stamps(val, ecr) => [&[8, 10][..], &val.to_be_bytes(), &ecr.to_be_bytes()].concat(),
        Opt::Raw(bytes) => bytes.clone(),
        _ => mptcp_bytes(option),
    }
}

fn mptcp_bytes(option: &Opt) -> Vec<u8> {
    let numbers = |id: u8, first: &[u8], nonce: u32| [&[id][..], first, &nonce.to_be_bytes()].concat();
    match option {
        Opt::Capable { version, flags, keys, len, csum } => {
            let mut body = vec![*flags];
            body.extend(keys.iter().flat_map(|key| key.to_be_bytes()));
            body.extend(len.iter().chain(csum).flat_map(|number| number.to_be_bytes()));
            mptcp(0, *version, &body)
        }
        Opt::JoinSyn { backup, id, token, nonce } => {
            mptcp(1, (*backup).into(), &numbers(*id, &token.to_be_bytes(), *nonce))
        }
        Opt::JoinSynAck { backup, id, hmac, nonce } => {
            mptcp(1, (*backup).into(), &numbers(*id, &hmac.to_be_bytes(), *nonce))
        }
        Opt::JoinAck(hmac) => mptcp(1, 0, &[&[0][..], hmac].concat()),
        Opt::Dss { fin, ack, map } => {
            // RFC 8684 §3.3: F m M a A
            let wide = |n: &Option<Sized64>| n.is_some_and(|n| n.wide);
            let dsn = map.map(|map| map.dsn);
            let flags = u8::from(*fin) << 4 | u8::from(wide(&dsn)) << 3 | u8::from(map.is_some()) << 2;
            let mut body = vec![flags | u8::from(wide(ack)) << 1 | u8::from(ack.is_some())];
            ack.iter().for_each(|ack| put(&mut body, *ack));
            if let Some(map) = map {
                put(&mut body, map.dsn);
                body.extend(map.ssn.to_be_bytes());
                body.extend([Some(map.len), map.csum].iter().flatten().flat_map(|number| number.to_be_bytes()));
            }
            mptcp(2, 0, &body)
        }
        Opt::AddAddr { echo, id, address, port, hmac } => {
            let mut body = vec![*id];
            match address {
                IpAddr::V4(address) => body.extend(address.octets()),
                IpAddr::V6(address) => body.extend(address.octets()),
            }
            body.extend(port.iter().flat_map(|port| port.to_be_bytes()));
            body.extend(hmac.iter().flat_map(|hmac| hmac.to_be_bytes()));
            mptcp(3, (*echo).into(), &body)
        }
        Opt::RemoveAddr(ids) => mptcp(4, 0, ids),
        Opt::Prio(backup) => mptcp(5, (*backup).into(), &[]),
        Opt::Fail(dsn) => mptcp(6, 0, &[&[0][..], &dsn.to_be_bytes()].concat()),
        Opt::FastClose(key) => mptcp(7, 0, &[&[0][..], &key.to_be_bytes()].concat()),
        Opt::TcpRst { transient, reason } => mptcp(8, (*transient).into(), &[*reason]),
        _ => Vec::new(),
    }
}

/// All options but padding. An option of an unknown form is kept as bytes, as is the unreadable rest of a list.
pub(super) fn read(mut bytes: &[u8]) -> Vec<Opt> {
    let mut found = Vec::new();
    while let Some(&kind) = bytes.first() {
        if kind == 0 {
            break;
        }
        if kind == 1 {
            bytes = &bytes[1..];
            continue;
        }
        let len = bytes.get(1).map_or(0, |len| usize::from(*len));
        if len < 2 || len > bytes.len() {
            found.push(Opt::Raw(bytes.to_vec()));
            break;
        }
        let (option, rest) = bytes.split_at(len);
        let known = Take(&option[2..]).option(kind);
        found.push(known.unwrap_or_else(|| Opt::Raw(option.to_vec())));
        bytes = rest;
    }
    found
}

/// Reads numbers from the front.
struct Take<'a>(&'a [u8]);

impl Take<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_at_checked(N)?;
        self.0 = rest;
        front.try_into().ok()
    }
    fn u8(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_be_bytes)
    }
    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }
    fn sized(&mut self, wide: bool) -> Option<Sized64> {
        let number = if wide { self.u64()? } else { self.u32()?.into() };
        Some(Sized64 { wide, number })
    }

    fn option(mut self, kind: u8) -> Option<Opt> {
        let option = match kind {
            2 => Opt::Mss(self.u16()?),
            3 => Opt::WindowScale(self.u8()?),
            4 => Opt::SackOk,
            5 => {
                let mut blocks = Vec::new();
                while !self.0.is_empty() {
                    blocks.push((self.u32()?, self.u32()?));
                }
                Opt::Sack(blocks)
            }
            8 => Opt::Stamps(self.u32()?, self.u32()?),
            MPTCP => self.mptcp()?,
            _ => return None,
        };
        self.0.is_empty().then_some(option)
    }

    fn mptcp(&mut self) -> Option<Opt> {
        let first = self.u8()?;
        let flag = first & 1 != 0;
        Some(match first >> 4 {
            0 => {
                let flags = self.u8()?;
                let mut keys = Vec::new();
                while self.0.len() >= 8 {
                    keys.push(self.u64()?);
                }
                let len = if self.0.is_empty() { None } else { Some(self.u16()?) };
                let csum = if self.0.is_empty() { None } else { Some(self.u16()?) };
                Opt::Capable { version: first & 15, flags, keys, len, csum }
            }
            1 => {
                let id = self.u8()?;
                match self.0.len() {
                    8 => Opt::JoinSyn { backup: flag, id, token: self.u32()?, nonce: self.u32()? },
                    12 => Opt::JoinSynAck { backup: flag, id, hmac: self.u64()?, nonce: self.u32()? },
                    _ => Opt::JoinAck(self.bytes()?),
                }
            }
            2 => self.dss()?,
            3 => self.add_addr(flag)?,
            4 => Opt::RemoveAddr(core::mem::take(&mut self.0).to_vec()),
            5 => Opt::Prio(flag),
            6 => Opt::Fail(self.u8().and_then(|_| self.u64())?),
            7 => Opt::FastClose(self.u8().and_then(|_| self.u64())?),
            8 => Opt::TcpRst { transient: flag, reason: self.u8()? },
            _ => return None,
        })
    }

    fn dss(&mut self) -> Option<Opt> {
        let flags = self.u8()?;
        let has = |bit: u8| flags & bit != 0;
        let ack = if has(1) { Some(self.sized(has(2))?) } else { None };
        let map = if has(4) {
            let (dsn, ssn, len) = (self.sized(has(8))?, self.u32()?, self.u16()?);
            Some(Map { dsn, ssn, len, csum: if self.0.is_empty() { None } else { Some(self.u16()?) } })
        } else {
            None
        };
        Some(Opt::Dss { fin: has(16), ack, map })
    }

    fn add_addr(&mut self, echo: bool) -> Option<Opt> {
        let id = self.u8()?;
        let tail = if echo { 0 } else { 8 };
        let address: IpAddr = match self.0.len().checked_sub(tail)? {
            4 | 6 => Ipv4Addr::from(self.bytes::<4>()?).into(),
            _ => Ipv6Addr::from(self.bytes::<16>()?).into(),
        };
        let port = if self.0.len() > tail { Some(self.u16()?) } else { None };
        let hmac = if echo { None } else { Some(self.u64()?) };
        Some(Opt::AddAddr { echo, id, address, port, hmac })
    }
}
