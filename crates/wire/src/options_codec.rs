//! The options of a segment to and from bytes (RFC 9293 §3.1).

use crate::{Options, SackBlock, Timestamps, mptcp_codec};
use anabranch_units::SeqNumber;
use bytes::{Buf, BufMut};

/// TCP option kinds.
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}
use kind::NOP;

/// Appends the options in the order and with the padding of Linux; [`Options::encoded_len`] bytes.
pub(crate) fn emit(options: &Options, out: &mut Vec<u8>) {
    if let Some(mss) = options.mss() {
        out.put_slice(&[kind::MSS, 4]);
        out.put_u16(mss);
    }
    let sack_permitted = [kind::SACK_PERMITTED, 2];
    if let Some(t) = options.timestamps() {
        out.put_slice(if options.sack_permitted() { &sack_permitted } else { &[NOP, NOP] });
        out.put_slice(&[kind::TIMESTAMPS, 10]);
        out.put_u32(t.val);
        out.put_u32(t.ecr);
    } else if options.sack_permitted() {
        out.put_slice(&[NOP, NOP]);
        out.put_slice(&sack_permitted);
    }
    if let Some(shift) = options.window_scale() {
        out.put_slice(&[NOP, kind::WINDOW_SCALE, 3, shift]);
    }
    let sack = options.sack();
    if !sack.is_empty() {
        out.put_slice(&[NOP, NOP, kind::SACK, 2 + 8 * sack.len() as u8]);
        for block in sack {
            out.put_u32(block.start.0);
            out.put_u32(block.end.0);
        }
    }
    if let Some(dss) = options.dss() {
        mptcp_codec::emit_dss(dss, out);
    }
    for option in options.mptcp() {
        mptcp_codec::emit(option, out);
    }
}

/// Reads the options in any order and with any padding, as Linux does: an unknown kind is skipped by its length; a
/// known kind of the wrong length is skipped too; a length below 2 or past the end of the header ends the list, and
/// earlier options count (RFC 9293 MUST-7 demands only not to fail). Of a kind that may come once, the first counts.
/// Options packed too tightly for [`Options`] lose SACK blocks first, then the last ones.
pub(crate) fn parse(mut bytes: &[u8]) -> Options {
    let mut options = Options::new();
    let mut sack: &[u8] = &[];
    loop {
        match *bytes {
            [NOP, ref rest @ ..] => bytes = rest,
            [kind, len, ..] if kind != kind::END && len >= 2 && usize::from(len) <= bytes.len() => {
                let (option, rest) = bytes.split_at(len.into());
                let body = &option[2..];
                if kind == kind::SACK {
                    sack = body;
                } else {
                    parse_option(kind, body, &mut options);
                }
                bytes = rest;
            }
            _ => break,
        }
    }
    parse_sack(sack, &mut options);
    options
}

fn parse_option(kind: u8, mut body: &[u8], options: &mut Options) {
    match (kind, body.len()) {
        (kind::MSS, 2) => {
            options.set_mss(body.get_u16());
        }
        (kind::WINDOW_SCALE, 1) => {
            options.set_window_scale(body[0]);
        }
        (kind::SACK_PERMITTED, 0) => {
            options.set_sack_permitted();
        }
        (kind::TIMESTAMPS, 8) => {
            options.set_timestamps(Timestamps { val: body.get_u32(), ecr: body.get_u32() });
        }
        (mptcp_codec::KIND, _) => {
            mptcp_codec::parse(body, options);
        }
        _ => {}
    }
}

fn parse_sack(mut body: &[u8], options: &mut Options) {
    if !body.len().is_multiple_of(8) {
        return;
    }
    let mut blocks = [SackBlock::default(); 4];
    let n = (body.len() / 8).min(4);
    for block in &mut blocks[..n] {
        *block = SackBlock { start: SeqNumber(body.get_u32()), end: SeqNumber(body.get_u32()) };
    }
    options.set_sack(&blocks[..n]);
}
