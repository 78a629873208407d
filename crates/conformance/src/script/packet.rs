//! Packets: `S. 0:0(0) ack 1 win 65535 <mss 1460, mp_capable v1 H [peer]>`

use super::field::number;
use super::lex::{Cursor, Result};
use super::{Number, OptionPattern, Pattern, Sort, option};

const LETTERS: [(char, u8); 8] =
    [('F', 0x01), ('S', 0x02), ('R', 0x04), ('P', 0x08), ('.', 0x10), ('U', 0x20), ('E', 0x40), ('W', 0x80)];
/// The ACK bit.
const ACK: u8 = 0x10;

/// Reads a packet; `sent` says that the script sends it.
pub(super) fn read(cursor: &mut Cursor<'_>, sent: bool) -> Result<Pattern> {
    let (flags, open_flags) = flags(cursor, sent)?;
    let (seq, len) = range(cursor)?;
    let mut pattern = Pattern {
        flags,
        open_flags,
        seq,
        len,
        ack: None,
        window: None,
        ecn: 0,
        options: Vec::new(),
        open: false,
        payload: Sort::Stream,
        bad_checksum: false,
    };
    while let Some(word) = cursor.peek() {
        match word {
            "ack" => {
                cursor.at += 1;
                pattern.ack = Some(number(cursor, "an acknowledgment")?);
            }
            "win" => {
                cursor.at += 1;
                let any = cursor.take("*");
                pattern.window = if any { None } else { Some(cursor.number("a window", 65_535)? as u16) };
            }
            "ecn" => {
                cursor.at += 1;
                pattern.ecn = ecn(cursor)?;
            }
            "<" => {
                cursor.at += 1;
                pattern.open = options(cursor, sent, &mut pattern.options)?;
            }
            "payload" => {
                cursor.at += 1;
                pattern.payload = payload(cursor, sent)?;
            }
            "checksum" if sent => {
                cursor.at += 1;
                cursor.expect("bad")?;
                pattern.bad_checksum = true;
            }
            _ => {
                cursor.at += 1;
                return Err(cursor.unknown("part of a packet", &["ack", "win", "ecn", "<", "payload", "checksum"]));
            }
        }
    }
    check(cursor, &pattern, sent)?;
    Ok(pattern)
}

/// Refuses a packet whose numbers do not fit its flags and direction.
fn check(cursor: &Cursor<'_>, pattern: &Pattern, sent: bool) -> Result<()> {
    let concrete = pattern.seq != Number::Any && pattern.len.is_some() && pattern.ack != Some(Number::Any);
    if sent && !concrete {
        return Err(cursor.error("a packet that is sent must have all its numbers"));
    }
    if pattern.flags & ACK == 0 && pattern.ack.is_some() && !sent && !pattern.open_flags {
        return Err(cursor.error("a packet without ACK (`.`) has no acknowledgment"));
    }
    if pattern.flags & ACK != 0 && pattern.ack.is_none() {
        return Err(cursor.error("a packet with ACK (`.`) needs its `ack`"));
    }
    Ok(())
}

/// The control bits, and whether others may be set too.
fn flags(cursor: &mut Cursor<'_>, sent: bool) -> Result<(u8, bool)> {
    let word = cursor.word("flags")?;
    if word == "-" {
        return Ok((0, false));
    }
    let letters = word.strip_suffix('*').filter(|_| !sent);
    let bit = |c: char| LETTERS.iter().find(|(letter, _)| *letter == c).map(|(_, bit)| *bit);
    let bits = letters.unwrap_or(word).chars().try_fold(0, |all, c| bit(c).map(|bit| all | bit));
    let bits = bits.ok_or_else(|| cursor.before("flags are letters of SFRPUEW, `.` for ACK, or `-` for none"))?;
    Ok((bits, letters.is_some()))
}

/// The codepoints of the ECN field (RFC 3168 §5), by their values.
pub(crate) const ECN: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];

/// `ect0`
fn ecn(cursor: &mut Cursor<'_>) -> Result<u8> {
    let word = cursor.word("a codepoint")?;
    let value = ECN.iter().position(|name| *name == word);
    value.map(|value| value as u8).ok_or_else(|| cursor.unknown("codepoint", &ECN))
}

/// `1:1001(1000)`, `*:*(0)`, `1:*(*)`, `=7:7(0)`
fn range(cursor: &mut Cursor<'_>) -> Result<(Number, Option<u16>)> {
    let seq = number(cursor, "a sequence number")?;
    cursor.expect(":")?;
    let end_at = cursor.at;
    let end = number(cursor, "the sequence number after the payload")?;
    cursor.expect("(")?;
    let len = if cursor.take("*") { None } else { Some(cursor.number("a length", 65_495)? as u16) };
    cursor.expect(")")?;
    let fits = match (seq, end, len) {
        (Number::At(seq), Number::At(end), Some(len)) => end == seq + i64::from(len),
        _ => true,
    };
    if !fits {
        cursor.at = end_at;
        return Err(cursor.error("is not the first number plus the length"));
    }
    Ok((seq, len))
}

/// The options between `<` and `>`; true if further ones are permitted.
fn options(cursor: &mut Cursor<'_>, sent: bool, all: &mut Vec<OptionPattern>) -> Result<bool> {
    let mut open = false;
    if cursor.take(">") {
        return Ok(false);
    }
    loop {
        if cursor.take("...") {
            open = true;
            if sent {
                return Err(cursor.before("a packet that is sent must name all its options"));
            }
        } else {
            all.push(option::read(cursor, sent)?);
        }
        if cursor.take(">") {
            return Ok(open);
        }
        cursor.expect(",")?;
    }
}

/// `from 500`, `changed`, `any`, `"text"`
fn payload(cursor: &mut Cursor<'_>, sent: bool) -> Result<Sort> {
    if cursor.is_quoted() {
        return Ok(Sort::Text(cursor.word("text")?.as_bytes().to_vec()));
    }
    match cursor.word("a payload")? {
        "from" => Ok(Sort::From(cursor.number("an offset in the stream", 1 << 40)?)),
        "changed" => Ok(Sort::Changed),
        "any" if !sent => Ok(Sort::Any),
        _ => Err(cursor.unknown("payload", &["from", "changed", "any"])),
    }
}
