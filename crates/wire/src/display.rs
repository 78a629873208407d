//! One line per value, in tcpdump's notation; MPTCP options are named as in RFC 8684.

use crate::{AddAddr, DataAck, Dss, Ecn, Flags, MpCapable, MpJoin, MptcpOption, Options, Packet, Reason, Segment};
use core::fmt::{Display, Formatter, Result};

impl Display for Packet {
    /// `10.0.0.1.443 > 10.0.0.2.5000: Flags [P.], seq 1:101, ack 1, win 502, options […], length 100`
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Segment { src_port, dst_port, .. } = self.segment;
        write!(f, "{}.{src_port} > {}.{dst_port}: ", self.src, self.dst)?;
        fmt_after_ports(&self.segment, f)
    }
}

impl Display for Segment {
    /// `443 > 5000: Flags [P.], seq 1:101, ack 1, win 502, options […], length 100`
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} > {}: ", self.src_port, self.dst_port)?;
        fmt_after_ports(self, f)
    }
}

fn fmt_after_ports(segment: &Segment, f: &mut Formatter<'_>) -> Result {
    let Segment { seq, ack, flags, ecn, window, options, payload, .. } = segment;
    write!(f, "Flags [{flags}]")?;
    if !payload.is_empty() {
        write!(f, ", seq {seq}:{}", seq.at(payload.len() as u64))?;
    } else if segment.seq_len() > 0 || flags.has(Flags::RST) {
        write!(f, ", seq {seq}")?;
    }
    if flags.has(Flags::ACK) {
        write!(f, ", ack {ack}")?;
    }
    write!(f, ", win {window}")?;
    if *ecn != Ecn::NotEct {
        write!(f, ", {ecn}")?;
    }
    if options.encoded_len() > 0 {
        write!(f, ", options [{options}]")?;
    }
    write!(f, ", length {}", payload.len())
}

impl Display for Flags {
    /// `S`, `S.`, `P.`: a letter per bit, a point for ACK.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        const LETTERS: [(Flags, &str); 8] = [
            (Flags::FIN, "F"),
            (Flags::SYN, "S"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
        ];
        if *self == Self::default() {
            return f.write_str("none");
        }
        LETTERS.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

impl Display for Ecn {
    /// `not-ECT`, `ECT(1)`, `ECT(0)`, `CE`, as RFC 3168 §5 writes them.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::NotEct => "not-ECT",
            Self::Ect1 => "ECT(1)",
            Self::Ect0 => "ECT(0)",
            Self::Ce => "CE",
        })
    }
}

impl Display for Options {
    /// `mss 1460,sackOK,TS val 1 ecr 0,wscale 7,MP_CAPABLE v1 H`
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut comma = "";
        let mut item = |item: core::fmt::Arguments<'_>| {
            let result = write!(f, "{comma}{item}");
            comma = ",";
            result
        };
        if let Some(mss) = self.mss() {
            item(format_args!("mss {mss}"))?;
        }
        if self.sack_permitted() {
            item(format_args!("sackOK"))?;
        }
        if let Some(t) = self.timestamps() {
            item(format_args!("TS val {} ecr {}", t.val, t.ecr))?;
        }
        if let Some(shift) = self.window_scale() {
            item(format_args!("wscale {shift}"))?;
        }
        for (i, block) in self.sack().iter().enumerate() {
            match i {
                0 => item(format_args!("sack {} {{{}:{}}}", self.sack().len(), block.start, block.end))?,
                _ => item(format_args!("{{{}:{}}}", block.start, block.end))?,
            }
        }
        if let Some(dss) = self.dss() {
            item(format_args!("{dss}"))?;
        }
        self.mptcp().iter().try_for_each(|option| item(format_args!("{option}")))
    }
}

impl Display for Dss {
    /// `DSS fin ack 7 seq 5 subseq 1 len 100 csum 0x1234`; a short number is followed by `(32)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("DSS")?;
        if self.data_fin {
            f.write_str(" fin")?;
        }
        match self.ack {
            Some(DataAck::Long(ack)) => write!(f, " ack {ack}")?,
            Some(DataAck::Short(ack)) => write!(f, " ack {ack}(32)")?,
            None => {}
        }
        let Some(m) = &self.mapping else { return Ok(()) };
        let width = if m.wide { "" } else { "(32)" };
        write!(f, " seq {}{width} subseq {} len {}", m.data_seq, m.subflow_seq, m.len)?;
        fmt_checksum(m.checksum, f)
    }
}

fn fmt_checksum(checksum: Option<u16>, f: &mut Formatter<'_>) -> Result {
    checksum.map_or(Ok(()), |checksum| write!(f, " csum {checksum:#06x}"))
}

impl Display for MptcpOption {
    /// `MP_JOIN backup id 1 token 0x1234abcd nonce 0x00000001`, and the like
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Capable(capable) => capable.fmt(f),
            Self::Join(join) => join.fmt(f),
            Self::AddAddr(add_addr) => add_addr.fmt(f),
            Self::RemoveAddr(ids) => {
                f.write_str("REMOVE_ADDR id")?;
                ids.iter().flatten().try_for_each(|id| write!(f, " {id}"))
            }
            Self::Prio { backup } => write!(f, "MP_PRIO{}", flag(*backup, " backup")),
            Self::Fail { data_seq } => write!(f, "MP_FAIL seq {data_seq}"),
            Self::FastClose { receiver_key } => write!(f, "MP_FASTCLOSE key {receiver_key:#018x}"),
            Self::TcpRst(Reason { code, transient }) => {
                write!(f, "MP_TCPRST reason {code}{}", flag(*transient, " transient"))
            }
        }
    }
}

fn flag(set: bool, word: &'static str) -> &'static str {
    if set { word } else { "" }
}

impl Display for MpCapable {
    /// `MP_CAPABLE v1 AH {0x…,0x…} len 100 csum 0x1234`: flags by their letters, the sender's key before the receiver's.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let letters = [(self.checksum, "A"), (self.no_join_here, "C"), (self.hmac_sha256, "H")];
        write!(f, "MP_CAPABLE v{} ", self.version)?;
        letters.iter().try_for_each(|&(set, letter)| f.write_str(flag(set, letter)))?;
        if let Some(key) = self.sender_key {
            write!(f, " {{{key:#018x}")?;
            if let Some(key) = self.receiver_key {
                write!(f, ",{key:#018x}")?;
            }
            f.write_str("}")?;
        }
        let Some((len, checksum)) = self.data else { return Ok(()) };
        write!(f, " len {len}")?;
        fmt_checksum(checksum, f)
    }
}

impl Display for MpJoin {
    /// `MP_JOIN backup id 1 token 0x1234abcd nonce 0x00000001`; the other two forms show the HMAC.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Syn { backup, address_id, token, nonce } => {
                let backup = flag(backup, " backup");
                write!(f, "MP_JOIN{backup} id {address_id} token {token:#010x} nonce {nonce:#010x}")
            }
            Self::SynAck { backup, address_id, hmac, nonce } => {
                let backup = flag(backup, " backup");
                write!(f, "MP_JOIN{backup} id {address_id} hmac {hmac:#018x} nonce {nonce:#010x}")
            }
            Self::Ack { hmac } => {
                f.write_str("MP_JOIN hmac 0x")?;
                hmac.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl Display for AddAddr {
    /// `ADD_ADDR id 1 10.0.0.2:5000 hmac 0x…`, `ADD_ADDR echo id 1 10.0.0.2`
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { address_id, address, port, hmac } = self;
        write!(f, "ADD_ADDR{} id {address_id} ", flag(hmac.is_none(), " echo"))?;
        match port {
            Some(port) => write!(f, "{}", core::net::SocketAddr::new(*address, *port))?,
            None => write!(f, "{address}")?,
        }
        hmac.map_or(Ok(()), |hmac| write!(f, " hmac {hmac:#018x}"))
    }
}
