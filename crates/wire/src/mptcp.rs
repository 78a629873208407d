//! Multipath TCP options (RFC 8684 §3), version 1.

use core::net::IpAddr;

/// MP_CAPABLE (§3.1). The segment decides which keys are present: none on SYN, one on SYN/ACK, two on ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// Protocol version; 1 here.
    pub version: u8,
    /// Flag A: DSS checksums are required.
    pub checksum: bool,
    /// Flag C: the peer must not join to the source address and port of this segment.
    pub no_join_here: bool,
    /// Flag H: HMAC-SHA256, the only algorithm of version 1. A SYN may propose others beside it (flags D to G); with
    /// keys it is set only if it is the chosen one.
    pub hmac_sha256: bool,
    /// The sender's key.
    pub sender_key: Option<u64>,
    /// The receiver's key; on the third ACK and the first data.
    pub receiver_key: Option<u64>,
    /// On the first data segment: data-level length, and the checksum if in use.
    pub data: Option<(u16, Option<u16>)>,
}

impl MpCapable {
    /// The offer of the first SYN of a version 1 connection, without checksums.
    pub const OFFER: Self = Self {
        version: 1,
        checksum: false,
        no_join_here: false,
        hmac_sha256: true,
        sender_key: None,
        receiver_key: None,
        data: None,
    };
}

/// MP_JOIN (§3.2): one form per segment of its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    /// On the SYN.
    Syn {
        /// Flag B: use as backup.
        backup: bool,
        /// Address ID of the sender.
        address_id: u8,
        /// The receiver's token.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// On the SYN/ACK.
    SynAck {
        /// Flag B: use as backup.
        backup: bool,
        /// Address ID of the sender.
        address_id: u8,
        /// The sender's HMAC, leftmost 64 bits.
        hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// On the third ACK.
    Ack {
        /// The sender's HMAC, leftmost 160 bits.
        hmac: [u8; 20],
    },
}

/// A data acknowledgment in the width in which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAck {
    /// Low 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(u64),
}

/// Maps bytes of a subflow to the data sequence (§3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number; the low 32 bits if `!wide`.
    pub data_seq: u64,
    /// Sent with 8 bytes.
    pub wide: bool,
    /// Subflow sequence number, relative to the subflow's ISN: the first data byte has 1. Zero in an infinite mapping
    /// only by the sender's choice.
    pub subflow_seq: u32,
    /// Data-level length, including a DATA_FIN. Zero makes the mapping infinite (§3.7).
    pub len: u16,
    /// Checksum, if negotiated.
    pub checksum: Option<u16>,
}

/// DSS (§3.3): data acknowledgment, mapping and DATA_FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// Data acknowledgment.
    pub ack: Option<DataAck>,
    /// Mapping of this segment's payload (or of the DATA_FIN).
    pub mapping: Option<Mapping>,
    /// The mapping's last number is the DATA_FIN.
    pub data_fin: bool,
}

/// ADD_ADDR (§3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddr {
    /// Address ID.
    pub address_id: u8,
    /// The announced address.
    pub address: IpAddr,
    /// The announced port, if not the connection's.
    pub port: Option<u16>,
    /// Truncated HMAC; `None` on an echo.
    pub hmac: Option<u64>,
}

/// Why a subflow was reset (§3.6), with the T flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Reason code: 0 unspecified, 1 MPTCP-specific error, 2 lack of resources, 3 administratively prohibited,
    /// 4 too much outstanding data, 5 unacceptable performance, 6 middlebox interference.
    pub code: u8,
    /// Flag T: the condition is transient.
    pub transient: bool,
}

/// Every option except DSS, which has its own field in [`crate::Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MptcpOption {
    /// MP_CAPABLE.
    Capable(MpCapable),
    /// MP_JOIN.
    Join(MpJoin),
    /// ADD_ADDR or its echo.
    AddAddr(AddAddr),
    /// REMOVE_ADDR with up to 4 address IDs; unused elements are `None` and come last.
    RemoveAddr([Option<u8>; 4]),
    /// MP_PRIO: the backup flag of the subflow that carries it.
    Prio {
        /// Flag B.
        backup: bool,
    },
    /// MP_FAIL with the data sequence number from which the checksum failed.
    Fail {
        /// The start of the failed mapping.
        data_seq: u64,
    },
    /// MP_FASTCLOSE with the receiver's key.
    FastClose {
        /// Key of the host that receives the segment.
        receiver_key: u64,
    },
    /// MP_TCPRST.
    TcpRst(Reason),
}

const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

impl Dss {
    /// Bytes on the wire, padded to a multiple of four.
    pub const fn encoded_len(&self) -> usize {
        let mut len = 4;
        len += match self.ack {
            Some(DataAck::Long(_)) => 8,
            Some(DataAck::Short(_)) => 4,
            None => 0,
        };
        if let Some(m) = &self.mapping {
            len += if m.wide { 8 } else { 4 };
            len += 6;
            if m.checksum.is_some() {
                len += 2;
            }
        }
        padded(len)
    }
}

impl MptcpOption {
    /// True if it can be encoded.
    pub(crate) fn has_form(&self) -> bool {
        match self {
            Self::Capable(c) => {
                c.version < 16
                    && c.receiver_key.is_some() <= c.sender_key.is_some()
                    && c.data.is_some() <= c.receiver_key.is_some()
            }
            Self::RemoveAddr(ids) => ids[0].is_some() && ids.is_sorted_by_key(Option::is_none),
            _ => true,
        }
    }

    /// Bytes on the wire, padded to a multiple of four.
    pub fn encoded_len(&self) -> usize {
        padded(match self {
            Self::Capable(c) => {
                let keys = 8 * (usize::from(c.sender_key.is_some()) + usize::from(c.receiver_key.is_some()));
                4 + keys
                    + match c.data {
                        None => 0,
                        Some((_, None)) => 2,
                        Some((_, Some(_))) => 4,
                    }
            }
            Self::Join(MpJoin::Syn { .. }) => 12,
            Self::Join(MpJoin::SynAck { .. }) => 16,
            Self::Join(MpJoin::Ack { .. }) => 24,
            Self::AddAddr(a) => {
                let address = if a.address.is_ipv4() { 4 } else { 16 };
                4 + address + if a.port.is_some() { 2 } else { 0 } + if a.hmac.is_some() { 8 } else { 0 }
            }
            Self::RemoveAddr(ids) => 3 + ids.iter().flatten().count(),
            Self::Prio { .. } => 3,
            Self::Fail { .. } => 12,
            Self::FastClose { .. } => 12,
            Self::TcpRst(_) => 4,
        })
    }
}
