//! A packet that the script sends.

use super::resolve::Resolver;
use super::world::{InOut, World, mapping};
use crate::packet::TcpPacket;
use crate::script::{Number, OptionPattern, Pattern, Sort};

/// Makes the packet, and records what it reveals to the host: random numbers, mappings, texts.
///
/// # Errors
/// A value is not known yet, or the options take more than 40 bytes.
pub fn make(world: &mut World, number: u8, pattern: &Pattern) -> Result<TcpPacket, String> {
    remember_nonces(world, number, pattern);
    let path = world.paths[usize::from(number)].clone();
    let len = usize::from(pattern.len.unwrap_or(0));
    let seq = relative(pattern.seq, path.peer_isn);
    // The mapping decides the place of the payload, and the payload the mapping's checksum: hence two passes.
    let draft = options(world, number, pattern, &[]);
    let mut mappings = path.into.clone();
    for option in draft.iter().flatten() {
        let Some((ssn, dsn, len)) = mapping(option) else { continue };
        let offset = dsn.map_or(Some(0), |dsn| world.data_offset(InOut::In, dsn));
        mappings.add(ssn, offset.unwrap_or(0), len);
    }
    let offset = mappings.offset(seq).max(0) as u64;
    let payload = match &pattern.payload {
        Sort::Text(text) => {
            world.sent.put(offset, text);
            text.clone()
        }
        Sort::From(other) => world.sent.bytes(*other, len),
        Sort::Stream | Sort::Changed | Sort::Any => world.sent.bytes(offset, len),
    };
    if payload.len() != len {
        return Err(format!("the text has {} bytes, the segment {len}", payload.len()));
    }
    let options = options(world, number, pattern, &payload)?;
    world.paths[usize::from(number)].into = mappings;
    let changed = pattern.payload == Sort::Changed;
    let payload = if changed { payload.iter().map(|byte| byte ^ 0xff).collect() } else { payload };
    let ack = match pattern.ack {
        Some(Number::At(at)) => path.local_isn.unwrap_or(0).wrapping_add(at as u32),
        Some(Number::Wire(number)) => number as u32,
        Some(Number::Any) | None => 0,
    };
    Ok(TcpPacket {
        src: path.peer.ip(),
        dst: path.local,
        src_port: path.peer.port(),
        dst_port: path.local_port.ok_or("the host's port is not known yet: it has not sent its SYN")?,
        seq: path.peer_isn.wrapping_add(seq as u32),
        ack,
        flags: pattern.flags,
        ecn: pattern.ecn,
        window: pattern.window.unwrap_or(u16::MAX),
        options,
        payload,
        bad_checksum: pattern.bad_checksum,
    })
}

fn options(world: &World, path: u8, pattern: &Pattern, payload: &[u8]) -> Result<Vec<crate::packet::Opt>, String> {
    let resolver = Resolver { world, path, way: InOut::In, payload };
    pattern.options.iter().map(|option| resolver.option(option, None)).collect()
}

/// The number counted from `isn`.
pub fn relative(number: Number, isn: u32) -> i64 {
    match number {
        Number::At(at) => at,
        Number::Wire(number) => i64::from((number as u32).wrapping_sub(isn) as i32),
        Number::Any => 0,
    }
}

fn remember_nonces(world: &mut World, number: u8, pattern: &Pattern) {
    use crate::script::Field;
    for option in &pattern.options {
        if let OptionPattern::JoinSyn { nonce: Field::Is(nonce), .. }
        | OptionPattern::JoinSynAck { nonce: Field::Is(nonce), .. } = option
        {
            world.paths[usize::from(number)].nonces.1 = *nonce as u32;
        }
    }
}
