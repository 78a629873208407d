//! MPTCP options to and from bytes (RFC 8684 §3).

use crate::{AddAddr, DataAck, Dss, Mapping, MpCapable, MpJoin, MptcpOption, Options, Reason};
use bytes::{Buf, BufMut};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// TCP option kind of every MPTCP option.
pub(crate) const KIND: u8 = 30;
const NOP: u8 = 1;

/// The four bits that distinguish MPTCP options (RFC 8684 §7.2).
mod subtype {
    pub const MP_CAPABLE: u8 = 0;
    pub const MP_JOIN: u8 = 1;
    pub const DSS: u8 = 2;
    pub const ADD_ADDR: u8 = 3;
    pub const REMOVE_ADDR: u8 = 4;
    pub const MP_PRIO: u8 = 5;
    pub const MP_FAIL: u8 = 6;
    pub const MP_FASTCLOSE: u8 = 7;
    pub const MP_TCPRST: u8 = 8;
}

/// MP_CAPABLE, §3.1.
mod capable {
    pub const CHECKSUM: u8 = 0x80; // A
    pub const EXTENSIBLE: u8 = 0x40; // B
    pub const NO_JOIN_HERE: u8 = 0x20; // C
    pub const ALGORITHMS: u8 = 0x1f; // D to H
    pub const HMAC_SHA256: u8 = 0x01; // H
}

/// DSS, §3.3.
mod dss {
    pub const DATA_FIN: u8 = 0x10; // F
    pub const WIDE_SEQ: u8 = 0x08; // m
    pub const MAPPING: u8 = 0x04; // M
    pub const LONG_ACK: u8 = 0x02; // a
    pub const ACK: u8 = 0x01; // A
}

/// Flag B of MP_JOIN and MP_PRIO, E of ADD_ADDR, T of MP_TCPRST: the bit beside the subtype.
const LOW_FLAG: u8 = 0x01;

/// Appends the option that `body` writes, followed by NOPs up to a multiple of four, as in Linux.
fn framed(out: &mut Vec<u8>, subtype: u8, low_bits: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_slice(&[KIND, 0, subtype << 4 | low_bits]);
    body(out);
    let len = out.len() - start;
    out[start + 1] = len as u8;
    out.put_bytes(NOP, len.next_multiple_of(4) - len);
}

pub(crate) fn emit_dss(option: &Dss, out: &mut Vec<u8>) {
    let mut flags = if option.data_fin { dss::DATA_FIN } else { 0 };
    flags |= match option.ack {
        Some(DataAck::Long(_)) => dss::ACK | dss::LONG_ACK,
        Some(DataAck::Short(_)) => dss::ACK,
        None => 0,
    };
    flags |= match option.mapping {
        Some(m) if m.wide => dss::MAPPING | dss::WIDE_SEQ,
        Some(_) => dss::MAPPING,
        None => 0,
    };
    framed(out, subtype::DSS, 0, |out| {
        out.put_u8(flags);
        match option.ack {
            Some(DataAck::Long(ack)) => out.put_u64(ack),
            Some(DataAck::Short(ack)) => out.put_u32(ack),
            None => {}
        }
        let Some(m) = option.mapping else { return };
        if m.wide {
            out.put_u64(m.data_seq);
        } else {
            out.put_u32(m.data_seq as u32);
        }
        out.put_u32(m.subflow_seq);
        out.put_u16(m.len);
        put_some(out, m.checksum);
    });
}

pub(crate) fn emit(option: &MptcpOption, out: &mut Vec<u8>) {
    match *option {
        MptcpOption::Capable(c) => emit_capable(&c, out),
        MptcpOption::Join(join) => emit_join(&join, out),
        MptcpOption::AddAddr(a) => emit_add_addr(&a, out),
        MptcpOption::RemoveAddr(ids) => {
            framed(out, subtype::REMOVE_ADDR, 0, |out| out.extend(ids.iter().flatten()));
        }
        MptcpOption::Prio { backup } => framed(out, subtype::MP_PRIO, backup.into(), |_| {}),
        MptcpOption::Fail { data_seq } => framed(out, subtype::MP_FAIL, 0, |out| {
            out.put_u8(0);
            out.put_u64(data_seq);
        }),
        MptcpOption::FastClose { receiver_key } => framed(out, subtype::MP_FASTCLOSE, 0, |out| {
            out.put_u8(0);
            out.put_u64(receiver_key);
        }),
        MptcpOption::TcpRst(reason) => {
            framed(out, subtype::MP_TCPRST, reason.transient.into(), |out| out.put_u8(reason.code));
        }
    }
}

fn put_some(out: &mut Vec<u8>, value: Option<u16>) {
    if let Some(value) = value {
        out.put_u16(value);
    }
}

fn emit_capable(c: &MpCapable, out: &mut Vec<u8>) {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    framed(out, subtype::MP_CAPABLE, c.version, |out| {
        out.put_u8(
            flag(c.checksum, capable::CHECKSUM)
                | flag(c.no_join_here, capable::NO_JOIN_HERE)
                | flag(c.hmac_sha256, capable::HMAC_SHA256),
        );
        for key in [c.sender_key, c.receiver_key].into_iter().flatten() {
            out.put_u64(key);
        }
        if let Some((len, checksum)) = c.data {
            out.put_u16(len);
            put_some(out, checksum);
        }
    });
}

fn emit_join(join: &MpJoin, out: &mut Vec<u8>) {
    match *join {
        MpJoin::Syn { backup, address_id, token, nonce } => framed(out, subtype::MP_JOIN, backup.into(), |out| {
            out.put_u8(address_id);
            out.put_u32(token);
            out.put_u32(nonce);
        }),
        MpJoin::SynAck { backup, address_id, hmac, nonce } => framed(out, subtype::MP_JOIN, backup.into(), |out| {
            out.put_u8(address_id);
            out.put_u64(hmac);
            out.put_u32(nonce);
        }),
        MpJoin::Ack { hmac } => framed(out, subtype::MP_JOIN, 0, |out| {
            out.put_u8(0);
            out.put_slice(&hmac);
        }),
    }
}

fn emit_add_addr(a: &AddAddr, out: &mut Vec<u8>) {
    framed(out, subtype::ADD_ADDR, a.hmac.is_none().into(), |out| {
        out.put_u8(a.address_id);
        match a.address {
            IpAddr::V4(address) => out.put_slice(&address.octets()),
            IpAddr::V6(address) => out.put_slice(&address.octets()),
        }
        put_some(out, a.port);
        if let Some(hmac) = a.hmac {
            out.put_u64(hmac);
        }
    });
}

/// Reads the option whose bytes behind kind and length are `body` into `options`. `None` if its subtype is unknown or
/// its length does not fit its subtype: such an option is ignored.
pub(crate) fn parse(body: &[u8], options: &mut Options) -> Option<()> {
    let (&first, rest) = body.split_first()?;
    let low_bits = first & 0x0f;
    let low_flag = low_bits & LOW_FLAG != 0;
    let option = match first >> 4 {
        subtype::DSS => {
            options.set_dss(parse_dss(rest)?);
            return Some(());
        }
        subtype::REMOVE_ADDR => {
            // §3.4.2 sets no limit to the number of removed addresses: more than four become several values.
            for ids in rest.chunks(4) {
                options.push_mptcp(MptcpOption::RemoveAddr(core::array::from_fn(|i| ids.get(i).copied())));
            }
            return Some(());
        }
        subtype::MP_CAPABLE => MptcpOption::Capable(parse_capable(low_bits, rest)?),
        subtype::MP_JOIN => MptcpOption::Join(parse_join(low_flag, rest)?),
        subtype::ADD_ADDR => MptcpOption::AddAddr(parse_add_addr(low_flag, rest)?),
        subtype::MP_PRIO if rest.is_empty() => MptcpOption::Prio { backup: low_flag },
        subtype::MP_FAIL if rest.len() == 9 => MptcpOption::Fail { data_seq: (&rest[1..]).get_u64() },
        subtype::MP_FASTCLOSE if rest.len() == 9 => MptcpOption::FastClose { receiver_key: (&rest[1..]).get_u64() },
        subtype::MP_TCPRST if rest.len() == 1 => MptcpOption::TcpRst(Reason { code: rest[0], transient: low_flag }),
        _ => return None,
    };
    options.push_mptcp(option);
    Some(())
}

fn parse_dss(mut rest: &[u8]) -> Option<Dss> {
    let flags = rest.try_get_u8().ok()?;
    let has = |bit: u8| flags & bit != 0;
    let ack = match (has(dss::ACK), has(dss::LONG_ACK)) {
        (false, _) => None,
        (true, false) => Some(DataAck::Short(rest.try_get_u32().ok()?)),
        (true, true) => Some(DataAck::Long(rest.try_get_u64().ok()?)),
    };
    let mut mapping = None;
    if has(dss::MAPPING) {
        let wide = has(dss::WIDE_SEQ);
        mapping = Some(Mapping {
            wide,
            data_seq: if wide { rest.try_get_u64().ok()? } else { rest.try_get_u32().ok()?.into() },
            subflow_seq: rest.try_get_u32().ok()?,
            len: rest.try_get_u16().ok()?,
            // §3.3: only the length shows whether there is one.
            checksum: rest.try_get_u16().ok(),
        });
    }
    rest.is_empty().then_some(Dss { ack, mapping, data_fin: has(dss::DATA_FIN) })
}

fn parse_capable(version: u8, mut rest: &[u8]) -> Option<MpCapable> {
    let flags = rest.try_get_u8().ok()?;
    // §3.1: with B set the rest is undefined.
    if flags & capable::EXTENSIBLE != 0 {
        return None;
    }
    let sender_key = rest.try_get_u64().ok();
    // §3.1: the answering host sets one bit.
    let proposed = if sender_key.is_some() { capable::ALGORITHMS } else { capable::HMAC_SHA256 };
    let receiver_key = rest.try_get_u64().ok();
    let len = if receiver_key.is_some() { rest.try_get_u16().ok() } else { None };
    let data = len.map(|len| (len, rest.try_get_u16().ok()));
    rest.is_empty().then_some(MpCapable {
        version,
        checksum: flags & capable::CHECKSUM != 0,
        no_join_here: flags & capable::NO_JOIN_HERE != 0,
        hmac_sha256: flags & proposed == capable::HMAC_SHA256,
        sender_key,
        receiver_key,
        data,
    })
}

fn parse_join(backup: bool, mut rest: &[u8]) -> Option<MpJoin> {
    let address_id = rest.try_get_u8().ok()?;
    Some(match rest.len() {
        8 => MpJoin::Syn { backup, address_id, token: rest.get_u32(), nonce: rest.get_u32() },
        12 => MpJoin::SynAck { backup, address_id, hmac: rest.get_u64(), nonce: rest.get_u32() },
        _ => MpJoin::Ack { hmac: rest.try_into().ok()? },
    })
}

fn parse_add_addr(echo: bool, mut rest: &[u8]) -> Option<AddAddr> {
    let address_id = rest.try_get_u8().ok()?;
    let hmac_len = if echo { 0 } else { 8 };
    // §3.4.1: version 1 has no field for the family, which follows from the length.
    let address: IpAddr = match rest.len().checked_sub(hmac_len)? {
        4 | 6 => Ipv4Addr::from(rest.get_u32()).into(),
        16 | 18 => Ipv6Addr::from(rest.get_u128()).into(),
        _ => return None,
    };
    let port = if rest.len() > hmac_len { Some(rest.get_u16()) } else { None };
    let hmac = if echo { None } else { Some(rest.get_u64()) };
    Some(AddAddr { address_id, address, port, hmac })
}
