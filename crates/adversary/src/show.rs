//! A case as a readable exchange: one line per packet, call and event.

use crate::middle::Deed;
use crate::script::Call;
use anabranch_units::{DataSeq, Instant, SeqNumber, Side};
use anabranch_wire::{DataAck, Dss, Flags, MptcpOption, Packet, crypto};
use core::fmt::Write;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// Collects the lines.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    lines: Vec<(Instant, u32, String)>,
    /// Initial sequence numbers, by the ends of a subflow as their sender sees them.
    isns: BTreeMap<(IpAddr, u16, IpAddr, u16), SeqNumber>,
    /// The initial data sequence numbers of client and server.
    idsns: [Option<DataSeq>; 2],
}

fn relative(n: SeqNumber, isn: Option<&SeqNumber>) -> String {
    isn.map_or_else(|| format!("?{}", n.0), |isn| (n.0.wrapping_sub(isn.0) as i32).to_string())
}

fn offset(number: u64, wide: bool, idsn: Option<DataSeq>) -> String {
    let first = idsn.map(|idsn| idsn.at(1).0);
    match (first, wide) {
        (None, _) => format!("?{number}"),
        (Some(first), true) => (number.wrapping_sub(first) as i64).to_string(),
        (Some(first), false) => (number as u32).wrapping_sub(first as u32).cast_signed().to_string(),
    }
}

impl Exchange {
    fn push(&mut self, at: Instant, line: String) {
        let order = self.lines.len() as u32;
        self.lines.push((at, order, line));
    }

    /// A packet leaves a host; the deeds on it.
    pub fn leaves(&mut self, at: Instant, from: Side, packet: &Packet, deeds: &[Deed], lost: Option<&str>) {
        self.learn(from, packet);
        let mut line = self.line(from, packet);
        let words = deeds.iter().map(|deed| deed.what.to_string()).chain(lost.map(str::to_owned));
        let words: Vec<String> = words.collect();
        if !words.is_empty() {
            let _ = write!(line, "   << {} >>", words.join(", "));
        }
        self.push(at, line);
    }

    /// A packet reaches a host.
    pub fn arrives(&mut self, at: Instant, to: Side, packet: &Packet) {
        let from = to.peer();
        let line = format!("                  to {to:?}: {}", self.line(from, packet));
        self.push(at, line);
    }

    /// An application makes a call.
    pub fn calls(&mut self, at: Instant, side: Side, call: &Call) {
        self.push(at, format!("{side:?} calls {call:?}"));
    }

    /// Adds the endpoints' events.
    pub fn add_events(&mut self, events: Vec<(Instant, Side, String)>) {
        for (at, side, text) in events {
            self.push(at, format!("    [{side:?}: {text}]"));
        }
    }

    /// All lines in order of time.
    pub fn lines(mut self) -> Vec<String> {
        self.lines.sort_by_key(|(at, order, _)| (*at, *order));
        self.lines.into_iter().map(|(at, _, line)| format!("{:>12.6} {line}", at.as_secs_f64())).collect()
    }

    fn learn(&mut self, from: Side, packet: &Packet) {
        let s = &packet.segment;
        if s.flags.has(Flags::SYN) {
            self.isns.insert((packet.src, s.src_port, packet.dst, s.dst_port), s.seq);
        }
        for option in s.options.mptcp() {
            if let MptcpOption::Capable(c) = option
                && let Some(key) = c.sender_key
            {
                self.idsns[from as usize - 1] = Some(crypto::idsn(key));
            }
        }
    }

    fn line(&self, from: Side, packet: &Packet) -> String {
        let s = &packet.segment;
        let ours = self.isns.get(&(packet.src, s.src_port, packet.dst, s.dst_port));
        let theirs = self.isns.get(&(packet.dst, s.dst_port, packet.src, s.src_port));
        let path = crate::case::line_of(packet.src, packet.dst).map_or("?".into(), |(path, _)| path.to_string());
        let mut line = format!("{from:?} path {path} [{}] seq {}", s.flags, relative(s.seq, ours));
        if !s.payload.is_empty() {
            let _ = write!(line, "+{}", s.payload.len());
        }
        if s.flags.has(Flags::ACK) {
            let _ = write!(line, " ack {}", relative(s.ack, theirs));
        }
        let _ = write!(line, " win {}", s.window);
        if let Some(t) = s.options.timestamps() {
            let _ = write!(line, " ts {}/{}", t.val, t.ecr);
        }
        for block in s.options.sack() {
            let _ = write!(line, " sack {}-{}", relative(block.start, theirs), relative(block.end, theirs));
        }
        if let Some(dss) = s.options.dss() {
            self.dss(from, dss, &mut line);
        }
        for option in s.options.mptcp() {
            let _ = write!(line, " {option}");
        }
        line
    }

    fn dss(&self, from: Side, dss: &Dss, line: &mut String) {
        let (ours, theirs) = match from {
            Side::Client => (self.idsns[0], self.idsns[1]),
            Side::Server => (self.idsns[1], self.idsns[0]),
        };
        line.push_str(" DSS");
        match dss.ack {
            Some(DataAck::Long(n)) => line.push_str(&format!(" ack {}", offset(n, true, theirs))),
            Some(DataAck::Short(n)) => line.push_str(&format!(" ack {}", offset(n.into(), false, theirs))),
            None => {}
        }
        if let Some(m) = dss.mapping {
            let fin = if dss.data_fin { " DATA_FIN" } else { "" };
            let sum = m.checksum.map_or(String::new(), |sum| format!(" csum {sum:#06x}"));
            let number = offset(m.data_seq, m.wide, ours);
            line.push_str(&format!(" map {number}+{} at {}{sum}{fin}", m.len, m.subflow_seq));
        }
    }
}
