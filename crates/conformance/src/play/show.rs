//! A packet in the script's own notation.

use super::resolve::Resolver;
use super::world::{InOut, PEER_KEY, World};
use crate::packet::{Map, Opt, Sized64, TcpPacket};
use crate::script::{ECN, Field, MapPattern, Number, OptionPattern, Wide, Width};
use core::fmt::Write;

const LETTERS: [(char, u8); 8] =
    [('F', 0x01), ('S', 0x02), ('R', 0x04), ('P', 0x08), ('.', 0x10), ('U', 0x20), ('E', 0x40), ('W', 0x80)];
const ACK: u8 = 0x10;

/// `S.`
pub fn show_flags(flags: u8) -> String {
    let letters: String = LETTERS.iter().filter(|(_, bit)| flags & bit != 0).map(|(letter, _)| *letter).collect();
    if letters.is_empty() { "-".into() } else { letters }
}

/// `ect0`
pub fn show_ecn(field: u8) -> &'static str {
    ECN[usize::from(field & 3)]
}

/// `1> S. 0:0(0) ack 1 win 65535 <mss 1460>`
pub fn show(world: &World, path: u8, way: InOut, packet: &TcpPacket) -> String {
    let ends = &world.paths[usize::from(path)];
    let (mark, isn, other) = match way {
        InOut::In => ('<', ends.peer_isn, ends.local_isn.unwrap_or(0)),
        InOut::Out => ('>', ends.local_isn.unwrap_or(0), ends.peer_isn),
    };
    let mut line = if path == 0 { mark.to_string() } else { format!("{path}{mark}") };
    let seq = packet.seq.wrapping_sub(isn) as i32;
    let len = packet.payload.len();
    let flags = show_flags(packet.flags);
    let _ = write!(line, " {flags} {seq}:{}({len})", i64::from(seq) + len as i64);
    if packet.flags & ACK != 0 {
        let _ = write!(line, " ack {}", packet.ack.wrapping_sub(other) as i32);
    }
    let _ = write!(line, " win {}", packet.window);
    if packet.ecn > 0 {
        let _ = write!(line, " ecn {}", show_ecn(packet.ecn));
    }
    if !packet.options.is_empty() {
        let options: Vec<String> = packet.options.iter().map(|option| show_option(world, path, way, option)).collect();
        let _ = write!(line, " <{}>", options.join(", "));
    }
    if packet.bad_checksum {
        line.push_str(" checksum bad");
    }
    line
}

/// One option. Correct HMACs and tokens are shown as `ok`.
pub fn show_option(world: &World, path: u8, way: InOut, option: &Opt) -> String {
    let shown = Shown { world, path, way };
    match option {
        Opt::End => "eol".into(),
        Opt::Nop => "nop".into(),
        Opt::Mss(mss) => format!("mss {mss}"),
        Opt::WindowScale(shift) => format!("wscale {shift}"),
        Opt::SackOk => "sackOK".into(),
        Opt::Sack(blocks) => shown.sack(blocks),
        Opt::Stamps(val, ecr) => format!("TS val {val} ecr {ecr}"),
        Opt::Raw(bytes) => bytes.iter().fold("raw 0x".into(), |text, byte| format!("{text}{byte:02x}")),
        Opt::Capable { .. } => shown.capable(option),
        Opt::JoinSyn { backup, id, token, nonce } => {
            let pattern =
                OptionPattern::JoinSyn { backup: *backup, id: Field::Any, token: Field::Right, nonce: Field::Any };
            let token = shown.proof(&pattern, option, format!("{token:#x}"));
            format!("mp_join syn{} id {id} token {token} nonce {nonce:#x}", flag(*backup, " backup"))
        }
        Opt::JoinSynAck { backup, id, hmac, nonce } => {
            let pattern =
                OptionPattern::JoinSynAck { backup: *backup, id: Field::Any, hmac: Field::Right, nonce: Field::Any };
            let hmac = shown.proof(&pattern, option, format!("{hmac:#x}"));
            format!("mp_join synack{} id {id} hmac {hmac} nonce {nonce:#x}", flag(*backup, " backup"))
        }
        Opt::JoinAck(_) => {
            let pattern = OptionPattern::JoinAck { hmac: Field::Right };
            format!("mp_join ack hmac {}", shown.proof(&pattern, option, "bad".into()))
        }
        Opt::Dss { fin, ack, map } => shown.dss(*fin, *ack, *map),
        Opt::AddAddr { .. } => shown.add_addr(option),
        Opt::RemoveAddr(ids) => ids.iter().fold("remove_addr".into(), |text, id| format!("{text} {id}")),
        Opt::Prio(backup) => format!("mp_prio{}", flag(*backup, " backup")),
        Opt::Fail(dsn) => {
            let dsn = Sized64 { wide: true, number: *dsn };
            format!("mp_fail dsn {}", shown.data_number(way.back(), dsn))
        }
        Opt::FastClose(key) => {
            let proof = shown.proof(&OptionPattern::FastClose(Field::Right), option, format!("{key:#x}"));
            format!("mp_fastclose key {proof}")
        }
        Opt::TcpRst { transient, reason } => format!("mp_tcprst{} reason {reason}", flag(*transient, " transient")),
    }
}

fn flag(set: bool, word: &'static str) -> &'static str {
    if set { word } else { "" }
}

struct Shown<'a> {
    world: &'a World,
    path: u8,
    way: InOut,
}

impl Shown<'_> {
    /// `ok` if the option is as `pattern` computes it.
    fn proof(&self, pattern: &OptionPattern, option: &Opt, other: String) -> String {
        let resolver = Resolver { world: self.world, path: self.path, way: self.way, payload: &[] };
        let right = resolver.option(pattern, Some(option)).is_ok_and(|right| right == *option);
        if right { "ok".into() } else { other }
    }

    fn sack(&self, blocks: &[(u32, u32)]) -> String {
        let ends = &self.world.paths[usize::from(self.path)];
        let isn = match self.way {
            InOut::In => ends.local_isn.unwrap_or(0),
            InOut::Out => ends.peer_isn,
        };
        let from = |number: u32| number.wrapping_sub(isn) as i32;
        blocks.iter().fold("sack".into(), |text, (left, right)| format!("{text} {}:{}", from(*left), from(*right)))
    }

    fn capable(&self, option: &Opt) -> String {
        let Opt::Capable { version, flags, keys, len, csum } = option else { return String::new() };
        let letters: String =
            (0..8u8).filter(|bit| flags & 0x80 >> bit != 0).map(|bit| char::from(b'A' + bit)).collect();
        let mut text = format!("mp_capable v{version} {}", if letters.is_empty() { "-" } else { &letters });
        if !keys.is_empty() {
            let name = |key: &u64| match *key {
                PEER_KEY => "peer".to_owned(),
                key if Some(key) == self.world.local_key => "local".to_owned(),
                key => format!("{key:#x}"),
            };
            let names: Vec<String> = keys.iter().map(name).collect();
            let _ = write!(text, " [{}]", names.join(" "));
        }
        len.iter().for_each(|len| text.push_str(&format!(" len {len}")));
        csum.iter().for_each(|csum| text.push_str(&format!(" csum {csum:#x}")));
        text
    }

    /// A data number, counted from the initial one where that is known.
    fn data_number(&self, way: InOut, number: Sized64) -> String {
        match self.world.data_offset(way, number) {
            Some(offset) => (offset + 1).to_string(),
            None => format!("={:#x}", number.number),
        }
    }

    fn dss(&self, fin: bool, ack: Option<Sized64>, map: Option<Map>) -> String {
        let width = |number: Sized64| if number.wide { 8 } else { 4 };
        let mut text = format!("dss{}", flag(fin, " fin"));
        if let Some(ack) = ack {
            let _ = write!(text, " dack{} {}", width(ack), self.data_number(self.way.back(), ack));
        }
        if let Some(map) = map {
            let (dsn, ssn, len) = (self.data_number(self.way, map.dsn), map.ssn, map.len);
            let _ = write!(text, " dsn{} {dsn} ssn {ssn} len {len}", width(map.dsn));
            if let Some(csum) = map.csum {
                let _ = write!(text, " csum {}", self.checksum(fin, &map, csum));
            }
        }
        text
    }

    fn checksum(&self, fin: bool, map: &Map, csum: u16) -> String {
        let pattern = MapPattern {
            dsn: Wide { width: Width::Either, at: Number::Any },
            ssn: Field::Any,
            len: Field::Any,
            csum: Some(Field::Right),
        };
        let pattern = OptionPattern::Dss { fin, ack: None, map: Some(pattern) };
        self.proof(&pattern, &Opt::Dss { fin, ack: None, map: Some(*map) }, format!("{csum:#x}"))
    }

    fn add_addr(&self, option: &Opt) -> String {
        let Opt::AddAddr { echo, id, address, port, hmac } = option else { return String::new() };
        let whose = |index: u8| [crate::script::Address::Local(index), crate::script::Address::Peer(index)];
        let known = (0..8).flat_map(whose).find(|whose| self.world.address(*whose) == *address);
        let name = match known {
            Some(crate::script::Address::Local(index)) => format!("local.{index}"),
            Some(crate::script::Address::Peer(index)) => format!("peer.{index}"),
            _ => format!("\"{address}\""),
        };
        let mut text = format!("add_addr{} id {id} {name}", flag(*echo, " echo"));
        port.iter().for_each(|port| text.push_str(&format!(" port {port}")));
        if let (Some(hmac), Some(whose)) = (hmac, known) {
            let pattern =
                OptionPattern::AddAddr { echo: *echo, id: Field::Any, address: whose, port: *port, hmac: Field::Right };
            let _ = write!(text, " hmac {}", self.proof(&pattern, option, format!("{hmac:#x}")));
        }
        text
    }
}
