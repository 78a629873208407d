//! Packets and options as a line of a script writes them.

use core::net::IpAddr;

/// An address of a path's end, by its owner and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address of the host under test: `local.1`.
    Local(u8),
    /// An address of the script: `peer.1`.
    Peer(u8),
    /// A literal address.
    Literal(IpAddr),
}

/// A sequence number, acknowledgment or data number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// `*`: any.
    Any,
    /// Relative to the initial number.
    At(i64),
    /// `=N`: as on the wire.
    Wire(u64),
}

/// A field that is computed, open, or given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `*`: any.
    Any,
    /// `ok`: the correct value.
    Right,
    /// `bad`: a wrong value.
    Wrong,
    /// A number.
    Is(u64),
}

/// Bytes that a data number takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `dsn`, `dack`: 8 when sent, either when expected.
    Either,
    /// `dsn4`, `dack4`
    Four,
    /// `dsn8`, `dack8`
    Eight,
}

/// The bytes of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The stream's bytes at the packet's place.
    Stream,
    /// The stream's bytes at another place.
    From(u64),
    /// The stream's bytes, changed.
    Changed,
    /// The given bytes.
    Text(Vec<u8>),
    /// Any, where expected.
    Any,
}

/// A packet as a line writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Control bits.
    pub flags: u8,
    /// Whether other bits may be set too: `R*`.
    pub open_flags: bool,
    /// First number.
    pub seq: Number,
    /// Payload; `None` = any.
    pub len: Option<u16>,
    /// Acknowledgment; `None` = none (without ACK) or, where expected, any.
    pub ack: Option<Number>,
    /// Window as on the wire; `None` = 65535 when sent, any when expected.
    pub window: Option<u16>,
    /// ECN field of the IP header, 0 to 3.
    pub ecn: u8,
    /// Options, in order.
    pub options: Vec<OptionPattern>,
    /// `...`: further options are permitted.
    pub open: bool,
    /// The payload's bytes.
    pub payload: Sort,
    /// The TCP checksum is wrong.
    pub bad_checksum: bool,
}

/// The owner of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyName {
    /// The host's.
    Local,
    /// The script's.
    Peer,
    /// A number.
    Is(u64),
    /// `*`
    Any,
}

/// A data number with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide {
    /// The width in bytes.
    pub width: Width,
    /// The number.
    pub at: Number,
}

/// The mapping of a DSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapPattern {
    /// Data sequence number.
    pub dsn: Wide,
    /// Subflow sequence number.
    pub ssn: Field,
    /// Length.
    pub len: Field,
    /// Checksum, if there is one.
    pub csum: Option<Field>,
}

/// An option as a line writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionPattern {
    /// `mss 1460`
    Mss(Field),
    /// `wscale 7`
    WindowScale(Field),
    /// `sackOK`
    SackOk,
    /// `sack 1001:2001 3001:4001`
    Sack(Vec<(i64, i64)>),
    /// `TS val 1 ecr 0`
    Stamps(Stamp, Stamp),
    /// `nop`
    Nop,
    /// `eol`
    End,
    /// `raw 0xfd04abcd`
    Raw(Vec<u8>),
    /// `mp_capable v1 AH [peer local] len 100 csum ok`
    Capable {
        /// Version.
        version: u8,
        /// Flags as on the wire; `None` = any.
        flags: Option<u8>,
        /// Keys in order.
        keys: Vec<KeyName>,
        /// Length of the first data.
        len: Option<Field>,
        /// Checksum of the first data.
        csum: Option<Field>,
    },
    /// `mp_join syn backup id 1 token ok nonce 7`
    JoinSyn {
        /// Flag B.
        backup: bool,
        /// Address ID.
        id: Field,
        /// Token.
        token: Field,
        /// Random number.
        nonce: Field,
    },
    /// `mp_join synack backup id 1 hmac ok nonce 7`
    JoinSynAck {
        /// Flag B.
        backup: bool,
        /// Address ID.
        id: Field,
        /// HMAC.
        hmac: Field,
        /// Random number.
        nonce: Field,
    },
    /// `mp_join ack hmac ok`
    JoinAck {
        /// HMAC.
        hmac: Field,
    },
    /// `dss fin dack8 1 dsn8 1 ssn 1 len 100 csum ok`
    Dss {
        /// DATA_FIN.
        fin: bool,
        /// Data acknowledgment.
        ack: Option<Wide>,
        /// Mapping.
        map: Option<MapPattern>,
    },
    /// `add_addr echo id 1 local.1 port 5000 hmac ok`
    AddAddr {
        /// Whether it is an echo.
        echo: bool,
        /// Address ID.
        id: Field,
        /// Address.
        address: Address,
        /// Port.
        port: Option<u16>,
        /// HMAC.
        hmac: Field,
    },
    /// `remove_addr 1 2`
    RemoveAddr(Vec<u8>),
    /// `mp_prio backup`
    Prio(bool),
    /// `mp_fail dsn 1`
    Fail(Number),
    /// `mp_fastclose key ok`
    FastClose(Field),
    /// `mp_tcprst transient reason 1`
    TcpRst {
        /// Flag T.
        transient: bool,
        /// Reason code.
        reason: Field,
    },
}

/// A timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// `*`
    Any,
    /// A number.
    Is(u32),
    /// `last`, `last+5`, `last-5`: the host's last TSval on this path, and an offset.
    Last(i64),
}
