//! Options: `dss dack8 1 dsn8 1 ssn 1 len 100 csum ok`

use super::field::{address, number};
use super::lex::{Cursor, Result, parse_number};
use super::{Field, KeyName, MapPattern, Number, OptionPattern, Stamp, Wide, Width};

const NAMES: [&str; 18] = [
    "mss",
    "wscale",
    "sackOK",
    "sack",
    "TS",
    "nop",
    "eol",
    "raw",
    "mp_capable",
    "mp_join",
    "dss",
    "add_addr",
    "remove_addr",
    "mp_prio",
    "mp_fail",
    "mp_fastclose",
    "mp_tcprst",
    "...",
];

/// Reads one option; `sent` says that the script sends it.
pub(super) fn read(cursor: &mut Cursor<'_>, sent: bool) -> Result<OptionPattern> {
    let mut option = match cursor.word("an option")? {
        "mss" => OptionPattern::Mss(field(cursor, "an MSS", 65_535)?),
        "wscale" => OptionPattern::WindowScale(field(cursor, "a shift", 255)?),
        "sackOK" => OptionPattern::SackOk,
        "sack" => OptionPattern::Sack(blocks(cursor)?),
        "TS" => {
            cursor.expect("val")?;
            let val = stamp(cursor)?;
            cursor.expect("ecr")?;
            OptionPattern::Stamps(val, stamp(cursor)?)
        }
        "nop" => OptionPattern::Nop,
        "eol" => OptionPattern::End,
        "raw" => OptionPattern::Raw(hex(cursor)?),
        "mp_capable" => capable(cursor)?,
        "mp_join" => join(cursor, sent)?,
        "dss" => dss(cursor)?,
        "add_addr" => add_addr(cursor)?,
        "remove_addr" => {
            let mut ids = vec![cursor.number("an address ID", 255)? as u8];
            while !at_end(cursor) {
                ids.push(cursor.number("an address ID", 255)? as u8);
            }
            OptionPattern::RemoveAddr(ids)
        }
        "mp_prio" => OptionPattern::Prio(cursor.take("backup")),
        "mp_fail" => {
            cursor.expect("dsn")?;
            OptionPattern::Fail(number(cursor, "a data sequence number")?)
        }
        "mp_fastclose" => {
            let key = if cursor.take("key") { field(cursor, "a key", u64::MAX)? } else { Field::Right };
            OptionPattern::FastClose(key)
        }
        "mp_tcprst" => {
            let transient = cursor.take("transient");
            cursor.expect("reason")?;
            OptionPattern::TcpRst { transient, reason: field(cursor, "a reason", 255)? }
        }
        _ => return Err(cursor.unknown("option", &NAMES)),
    };
    if !at_end(cursor) {
        return Err(cursor.error("is no part of this option"));
    }
    if sent {
        settle(cursor, &mut option)?;
    }
    Ok(option)
}

fn at_end(cursor: &Cursor<'_>) -> bool {
    matches!(cursor.peek(), None | Some("," | ">"))
}

/// A sent option must have known values; an open number of a random kind gets a fixed one.
fn settle(cursor: &Cursor<'_>, option: &mut OptionPattern) -> Result<()> {
    let open = match option {
        OptionPattern::Mss(f) | OptionPattern::WindowScale(f) | OptionPattern::FastClose(f) => *f == Field::Any,
        OptionPattern::Stamps(val, ecr) => *val == Stamp::Any || *ecr == Stamp::Any,
        OptionPattern::Fail(at) => *at == Number::Any,
        OptionPattern::TcpRst { reason, .. } => *reason == Field::Any,
        OptionPattern::Capable { keys, len, csum, flags, .. } => {
            flags.is_none() || keys.contains(&KeyName::Any) || *len == Some(Field::Any) || *csum == Some(Field::Any)
        }
        OptionPattern::JoinSyn { id, token: other, .. } | OptionPattern::JoinSynAck { id, hmac: other, .. } => {
            *id == Field::Any || *other == Field::Any
        }
        OptionPattern::JoinAck { hmac } => *hmac == Field::Any,
        OptionPattern::AddAddr { id, hmac, .. } => *id == Field::Any || *hmac == Field::Any,
        OptionPattern::Dss { ack, map, .. } => {
            let wide = |wide: &Wide| wide.at == Number::Any;
            let in_map = |m: &MapPattern| {
                wide(&m.dsn) || m.ssn == Field::Any || m.len == Field::Any || m.csum == Some(Field::Any)
            };
            ack.as_ref().is_some_and(wide) || map.as_ref().is_some_and(in_map)
        }
        _ => false,
    };
    if open { Err(cursor.before("an option that is sent must have all its fields")) } else { Ok(()) }
}

/// `*`, `ok`, `bad`, or a number.
fn field(cursor: &mut Cursor<'_>, what: &str, most: u64) -> Result<Field> {
    match cursor.peek() {
        Some("*") => cursor.at += 1,
        Some("ok") => {
            cursor.at += 1;
            return Ok(Field::Right);
        }
        Some("bad") => {
            cursor.at += 1;
            return Ok(Field::Wrong);
        }
        _ => return cursor.number(what, most).map(Field::Is),
    }
    Ok(Field::Any)
}

fn stamp(cursor: &mut Cursor<'_>) -> Result<Stamp> {
    let word = cursor.word("a timestamp")?;
    let last = |rest: &str| match rest {
        "" => Some(0),
        _ => rest.parse::<i64>().ok(),
    };
    let found = match word.strip_prefix("last") {
        Some(rest) => last(rest).map(Stamp::Last),
        None if word == "*" => Some(Stamp::Any),
        None => parse_number(word).and_then(|n| u32::try_from(n).ok()).map(Stamp::Is),
    };
    found.ok_or_else(|| cursor.before("a timestamp is a number, `*`, `last`, `last+5` or `last-5`"))
}

/// `1001:2001 3001:4001`
fn blocks(cursor: &mut Cursor<'_>) -> Result<Vec<(i64, i64)>> {
    let mut blocks = Vec::new();
    let edge = |cursor: &mut Cursor<'_>| {
        let word = cursor.word("an edge of a block")?;
        word.parse().map_err(|_| cursor.before("an edge of a block is a number"))
    };
    while !at_end(cursor) {
        let left = edge(cursor)?;
        cursor.expect(":")?;
        blocks.push((left, edge(cursor)?));
    }
    Ok(blocks)
}

/// `0xfd04abcd`
fn hex(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let word = cursor.word("bytes")?;
    let digits = word.strip_prefix("0x").filter(|digits| digits.len() % 2 == 0 && digits.is_ascii());
    let bytes = digits.and_then(|digits| {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
    });
    bytes.ok_or_else(|| cursor.before("bytes are written in pairs of digits behind `0x`"))
}

/// `v1 AH [peer local] len 100 csum ok`
fn capable(cursor: &mut Cursor<'_>) -> Result<OptionPattern> {
    let word = cursor.word("a version")?;
    let version = word.strip_prefix('v').and_then(|n| n.parse().ok()).filter(|n| *n < 16);
    let version = version.ok_or_else(|| cursor.before("a version is written like `v1`"))?;
    let letters = cursor.word("flags")?;
    let any = letters == "*";
    let flags = letters.chars().filter(|c| *c != '-' && !any).try_fold(0u8, |all, c| {
        // RFC 8684 §3.1: from A, the highest bit, to H, the lowest
        ('A'..='H').contains(&c).then(|| all | 0x80 >> (c as u8 - b'A'))
    });
    let flags = flags.ok_or_else(|| cursor.before("flags are letters from A to H, `-` for none, or `*` for any"))?;
    let flags = (!any).then_some(flags);
    let mut keys = Vec::new();
    if cursor.take("[") {
        while !cursor.take("]") {
            keys.push(match cursor.word("a key")? {
                "local" => KeyName::Local,
                "peer" => KeyName::Peer,
                "*" => KeyName::Any,
                "," => continue,
                other => match parse_number(other) {
                    Some(key) => KeyName::Is(key),
                    None => return Err(cursor.unknown("key", &["local", "peer", "*"])),
                },
            });
        }
    }
    let len = if cursor.take("len") { Some(field(cursor, "a length", 65_535)?) } else { None };
    let csum = checksum(cursor)?;
    Ok(OptionPattern::Capable { version, flags, keys, len, csum })
}

fn checksum(cursor: &mut Cursor<'_>) -> Result<Option<Field>> {
    if cursor.take("csum") { field(cursor, "a checksum", 65_535).map(Some) } else { Ok(None) }
}

/// `syn backup id 1 token ok nonce 7`, `synack …`, `ack hmac ok`
fn join(cursor: &mut Cursor<'_>, sent: bool) -> Result<OptionPattern> {
    let form = cursor.word("syn, synack or ack")?;
    if !["syn", "synack", "ack"].contains(&form) {
        return Err(cursor.unknown("form of MP_JOIN", &["syn", "synack", "ack"]));
    }
    let backup = cursor.take("backup");
    let (mut id, mut proof, mut nonce) = (Field::Is(0), Field::Right, if sent { Field::Right } else { Field::Any });
    while !at_end(cursor) {
        match cursor.word("a field")? {
            "id" if form != "ack" => id = field(cursor, "an address ID", 255)?,
            "token" if form == "syn" => proof = field(cursor, "a token", u64::from(u32::MAX))?,
            "hmac" if form != "syn" => proof = field(cursor, "an HMAC", u64::MAX)?,
            "nonce" if form != "ack" => nonce = field(cursor, "a random number", u64::from(u32::MAX))?,
            _ => return Err(cursor.unknown("field of this form", &["id", "token", "hmac", "nonce"])),
        }
    }
    Ok(match form {
        "syn" => OptionPattern::JoinSyn { backup, id, token: proof, nonce },
        "synack" => OptionPattern::JoinSynAck { backup, id, hmac: proof, nonce },
        _ => OptionPattern::JoinAck { hmac: proof },
    })
}

/// `fin dack8 1 dsn8 1 ssn 1 len 100 csum ok`
fn dss(cursor: &mut Cursor<'_>) -> Result<OptionPattern> {
    let fin = cursor.take("fin");
    let width = |word: &str| match word.chars().last() {
        Some('4') => Width::Four,
        Some('8') => Width::Eight,
        _ => Width::Either,
    };
    let mut ack = None;
    if let Some(word @ ("dack" | "dack4" | "dack8")) = cursor.peek() {
        cursor.at += 1;
        ack = Some(Wide { width: width(word), at: number(cursor, "a data acknowledgment")? });
    }
    let mut map = None;
    if let Some(word @ ("dsn" | "dsn4" | "dsn8")) = cursor.peek() {
        cursor.at += 1;
        let dsn = Wide { width: width(word), at: number(cursor, "a data sequence number")? };
        cursor.expect("ssn")?;
        let ssn = field(cursor, "a subflow sequence number", u64::from(u32::MAX))?;
        cursor.expect("len")?;
        let len = field(cursor, "a length", 65_535)?;
        map = Some(MapPattern { dsn, ssn, len, csum: checksum(cursor)? });
    }
    Ok(OptionPattern::Dss { fin, ack, map })
}

/// `echo id 1 local.1 port 5000 hmac ok`
fn add_addr(cursor: &mut Cursor<'_>) -> Result<OptionPattern> {
    let echo = cursor.take("echo");
    cursor.expect("id")?;
    let id = field(cursor, "an address ID", 255)?;
    let address = address(cursor)?;
    let port = if cursor.take("port") { Some(cursor.number("a port", 65_535)? as u16) } else { None };
    let hmac = if cursor.take("hmac") { field(cursor, "an HMAC", u64::MAX)? } else { Field::Right };
    Ok(OptionPattern::AddAddr { echo, id, address, port, hmac })
}
