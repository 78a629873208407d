//! A received packet against the expected one.

use super::resolve::{Resolver, same_form};
use super::show::{show_ecn, show_flags, show_option};
use super::world::{InOut, World};
use crate::packet::{Opt, TcpPacket};
use crate::script::{Number, Pattern, Sort};

const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// The differences between packet and pattern; empty if there are none.
pub fn differences(world: &World, number: u8, pattern: &Pattern, packet: &TcpPacket) -> Vec<String> {
    let mut found = Vec::new();
    let path = &world.paths[usize::from(number)];
    // RFC 9293 §3.9.1.2 leaves PSH to the sender, unless the script demands it.
    let care = match pattern.flags {
        named if pattern.open_flags => named,
        named if named & PSH == 0 => !PSH,
        _ => 0xff,
    };
    if packet.flags & care != pattern.flags & care {
        found.push(format!("flags {}, not {}", show_flags(packet.flags), show_flags(pattern.flags)));
    }
    numbers("seq", pattern.seq, packet.seq, path.local_isn.unwrap_or(0), &mut found);
    if let Some(len) = pattern.len.filter(|len| usize::from(*len) != packet.payload.len()) {
        found.push(format!("length {}, not {len}", packet.payload.len()));
    }
    if let Some(ack) = pattern.ack.filter(|_| packet.flags & ACK != 0) {
        numbers("ack", ack, packet.ack, path.peer_isn, &mut found);
    }
    if let Some(window) = pattern.window.filter(|window| *window != packet.window) {
        found.push(format!("win {}, not {window}", packet.window));
    }
    if packet.ecn != pattern.ecn {
        found.push(format!("ecn {}, not {}", show_ecn(packet.ecn), show_ecn(pattern.ecn)));
    }
    if packet.bad_checksum {
        found.push("the TCP checksum is wrong".into());
    }
    options(world, number, pattern, packet, &mut found);
    payload(world, number, pattern, packet, &mut found);
    found
}

fn numbers(what: &str, expected: Number, came: u32, isn: u32, found: &mut Vec<String>) {
    let wire = match expected {
        Number::Any => return,
        Number::At(at) => isn.wrapping_add(at as u32),
        Number::Wire(number) => number as u32,
    };
    if wire != came {
        let [came, expected] = [came, wire].map(|number| number.wrapping_sub(isn) as i32);
        found.push(format!("{what} {came}, not {expected}"));
    }
}

fn options(world: &World, path: u8, pattern: &Pattern, packet: &TcpPacket, found: &mut Vec<String>) {
    let resolver = Resolver { world, path, way: InOut::Out, payload: &packet.payload };
    let mut left: Vec<&Opt> = packet.options.iter().collect();
    for expected in &pattern.options {
        let Some(at) = left.iter().position(|option| same_form(expected, option)) else {
            let wanted = resolver.option(expected, None);
            let wanted =
                wanted.map_or_else(|_| format!("{expected:?}"), |option| show_option(world, path, InOut::Out, &option));
            found.push(format!("no <{wanted}>"));
            continue;
        };
        let came = left.remove(at);
        match resolver.option(expected, Some(came)) {
            Ok(wanted) if wanted == *came => {}
            Ok(wanted) => {
                let [came, wanted] = [came, &wanted].map(|option| show_option(world, path, InOut::Out, option));
                found.push(format!("<{came}>, not <{wanted}>"));
            }
            Err(why) => found.push(format!("<{}>: {why}", show_option(world, path, InOut::Out, came))),
        }
    }
    if !pattern.open {
        found.extend(left.iter().map(|option| format!("<{}> besides", show_option(world, path, InOut::Out, option))));
    }
}

/// Every byte is the one that the application wrote there.
fn payload(world: &World, number: u8, pattern: &Pattern, packet: &TcpPacket, found: &mut Vec<String>) {
    let path = &world.paths[usize::from(number)];
    let seq = i64::from(packet.seq.wrapping_sub(path.local_isn.unwrap_or(0)) as i32);
    let len = packet.payload.len();
    let offset = match &pattern.payload {
        _ if len == 0 => return,
        Sort::Any => return,
        Sort::Text(text) => {
            if *text != packet.payload {
                found.push(format!("the payload is \"{}\"", String::from_utf8_lossy(&packet.payload)));
            }
            return;
        }
        Sort::From(offset) => *offset as i64,
        Sort::Stream | Sort::Changed => path.out.offset(seq),
    };
    let written = |offset: &u64| *offset + len as u64 <= world.written_len || matches!(pattern.payload, Sort::From(_));
    let Some(offset) = u64::try_from(offset).ok().filter(written) else {
        found.push(format!("the payload is mapped to byte {offset} of a stream of {}", world.written_len));
        return;
    };
    let stream = world.written.bytes(offset, len);
    if let Some(at) = (0..len).find(|at| stream[*at] != packet.payload[*at]) {
        let (came, wanted) = (packet.payload[at], stream[at]);
        let place = offset + at as u64;
        found.push(format!("payload byte {at} is {came:#04x}; the stream has {wanted:#04x} there, at {place}"));
    }
}
