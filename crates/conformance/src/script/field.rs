//! Fields that stand in lines of several kinds.

use super::lex::{Cursor, Result, parse_number};
use super::{Address, Number};
use core::time::Duration;

/// `*`, `1001`, `-5`, `=0x1234`
pub(super) fn number(cursor: &mut Cursor<'_>, what: &str) -> Result<Number> {
    let word = cursor.word(what)?;
    let found = match word.strip_prefix('=') {
        Some(wire) => parse_number(wire).map(Number::Wire),
        None if word == "*" => Some(Number::Any),
        None => word.parse().ok().map(Number::At),
    };
    found.ok_or_else(|| cursor.before(format!("{what} is a number, `*`, or `=N` for one as on the wire")))
}

/// `local.1`, `peer.1`, `"2001:db8::1"`
pub(super) fn address(cursor: &mut Cursor<'_>) -> Result<Address> {
    let word = cursor.word("an address")?;
    let index = |prefix: &str| word.strip_prefix(prefix).and_then(|n| n.parse::<u8>().ok()).filter(|n| *n < 8);
    let found = index("local.").map(Address::Local).or_else(|| index("peer.").map(Address::Peer));
    let found = found.or_else(|| word.parse().ok().map(Address::Literal));
    found.ok_or_else(|| cursor.before("an address is written like `local.1`, `peer.1` or `192.0.2.1`"))
}

/// Seconds with a fraction, or a number with the suffix `ms` or `s`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (text, scale) = match text.strip_suffix("ms") {
        Some(text) => (text, 1_000_000),
        None => (text.strip_suffix('s').unwrap_or(text), 1_000_000_000),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    nanos = nanos * scale / 10u64.pow(fraction.len() as u32);
    whole.checked_mul(scale)?.checked_add(nanos).map(Duration::from_nanos)
}

pub(super) fn path_of(cursor: &mut Cursor<'_>) -> Result<u8> {
    Ok(cursor.number("the number of a path", 31)? as u8)
}
