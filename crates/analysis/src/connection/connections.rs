//! Packets to subflows, and subflows to connections by their tokens.

use super::opening::{Offer, Opening};
use super::vantage::Vantage;
use crate::frames::Frame;
use anabranch_units::Side;
use anabranch_wire::{Flags, MpCapable, MptcpOption, Segment, crypto};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Most connections that are followed, and subflows of each; of others packets are counted.
const MOST_CONNECTIONS: usize = 10_000;
const MOST_SUBFLOWS: usize = 256;
/// Most packets that wait until it is known beside which host they were captured.
const MOST_PENDING: usize = 64;
/// Packets without a beginning after which that is not expected any more.
const HEADLESS: usize = 8;

/// Both ends of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

/// A connection that is followed.
pub(crate) struct Connection {
    pub number: u32,
    pub subflows: Vec<Ends>,
    /// Beside the client, and beside the server.
    pub vantages: [Option<Vantage>; 2],
    /// Tokens of the client and of the server (RFC 8684 §3.2), where keys were seen.
    pub tokens: [Option<u32>; 2],
    /// The token of joins whose connection was not seen to begin.
    pub joined: Option<u32>,
    /// The near host of a file, and whether that is more than a guess.
    near: Vec<(u16, Side)>,
    pub assumed: bool,
    pending: Vec<(Frame, usize, Side)>,
}

/// Connections in the order of their first packets.
pub(crate) struct Connections {
    pub all: Vec<Connection>,
    /// The connection and the subflow of each pair of ends, client's first.
    places: BTreeMap<Ends, (usize, usize)>,
    tokens: BTreeMap<u32, usize>,
    last: Option<(Ends, usize, usize)>,
    /// The near host that the user names.
    host: Option<Side>,
    /// Packets of connections for which there was no room.
    pub beyond: u64,
}

impl Connections {
    pub fn new(host: Option<Side>) -> Self {
        let (all, places, tokens) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { all, places, tokens, last: None, host, beyond: 0 }
    }

    /// Takes the next packet.
    pub fn packet(&mut self, frame: Frame) {
        let packet = &frame.packet;
        let source = SocketAddr::new(packet.src, packet.segment.src_port);
        let target = SocketAddr::new(packet.dst, packet.segment.dst_port);
        let Some((n, flow, from)) = self.place(source, target, &packet.segment) else {
            self.beyond += 1;
            return;
        };
        self.learn(n, from, &packet.segment);
        self.all[n].packet(frame, flow, from, self.host);
    }

    /// The connection, the subflow and the sender of a packet.
    fn place(&mut self, source: SocketAddr, target: SocketAddr, segment: &Segment) -> Option<(usize, usize, Side)> {
        let (there, back) = (Ends { client: source, server: target }, Ends { client: target, server: source });
        let syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST);
        let first = syn && !segment.flags.has(Flags::ACK);
        if let Some((ends, n, flow)) = self.last.filter(|(ends, ..)| !first && (*ends == there || *ends == back)) {
            return Some((n, flow, if ends == there { Side::Client } else { Side::Server }));
        }
        let known = [(there, Side::Client), (back, Side::Server)].into_iter().find_map(|(ends, from)| {
            let (n, flow) = *self.places.get(&ends)?;
            Some((ends, n, flow, from))
        });
        if let Some((ends, n, flow, from)) =
            known.filter(|(_, n, flow, _)| !(first && self.all[*n].begins_anew(*flow, segment)))
        {
            self.last = Some((ends, n, flow));
            return Some((n, flow, from));
        }
        // Without a SYN the lower port is taken for the server's.
        let by_client = first || !syn && source.port() >= target.port();
        let (ends, from) = if by_client { (there, Side::Client) } else { (back, Side::Server) };
        let (n, flow) = self.begin(ends, if first { Offer::of(segment) } else { Offer::Plain })?;
        self.last = Some((ends, n, flow));
        Some((n, flow, from))
    }

    /// A subflow that was not seen before.
    fn begin(&mut self, ends: Ends, offer: Offer) -> Option<(usize, usize)> {
        let token = if let Offer::Join(token) = offer { token } else { None };
        let known = token.and_then(|token| self.tokens.get(&token).copied());
        let n = match known {
            Some(n) if self.all[n].subflows.len() >= MOST_SUBFLOWS => return None,
            Some(n) => n,
            None if self.all.len() >= MOST_CONNECTIONS => return None,
            None => {
                self.all.push(Connection::new(self.all.len() as u32, token));
                self.all.len() - 1
            }
        };
        if let Some(token) = token {
            self.tokens.entry(token).or_insert(n);
        }
        self.all[n].subflows.push(ends);
        let flow = self.all[n].subflows.len() - 1;
        self.places.insert(ends, (n, flow));
        Some((n, flow))
    }

    /// Keys of a handshake name the connection for joins (RFC 8684 §3.1, §3.2).
    fn learn(&mut self, n: usize, from: Side, segment: &Segment) {
        let keys = segment.options.mptcp().iter().find_map(|option| match option {
            MptcpOption::Capable(MpCapable { version: 1, sender_key, receiver_key, .. }) => {
                Some([(from, *sender_key), (from.peer(), *receiver_key)])
            }
            _ => None,
        });
        for (side, key) in keys.into_iter().flatten() {
            let at = super::vantage::half(side);
            if let Some(key) = key.filter(|_| self.all[n].tokens[at].is_none()) {
                let token = crypto::token(key);
                self.all[n].tokens[at] = Some(token);
                self.tokens.insert(token, n);
            }
        }
    }

    /// No packet comes any more.
    pub fn finish(&mut self) {
        for connection in &mut self.all {
            connection.finish(self.host);
        }
    }
}

impl Connection {
    fn new(number: u32, joined: Option<u32>) -> Self {
        Self {
            number,
            subflows: Vec::new(),
            vantages: [None, None],
            tokens: [None; 2],
            joined,
            near: Vec::new(),
            assumed: false,
            pending: Vec::new(),
        }
    }

    /// A SYN opens another connection between ends that were used before.
    fn begins_anew(&self, flow: usize, segment: &Segment) -> bool {
        let mut flows = self.vantages.iter().flatten().filter_map(|vantage| vantage.flows.get(flow));
        flows.any(|flow| flow.is_over() && !flow.began_with(segment.seq))
    }

    fn packet(&mut self, frame: Frame, flow: usize, from: Side, host: Option<Side>) {
        let file = frame.place.file;
        let said = frame.sent.map(|sent| if sent { from } else { from.peer() });
        let known = || self.near.iter().find(|(of, _)| *of == file).map(|(_, side)| *side);
        if let Some(near) = said.or(host).or_else(known) {
            self.deliver(&frame, flow, from, near);
            return;
        }
        self.pending.push((frame, flow, from));
        if let Some(near) = self.decide(file) {
            self.near.push((file, near));
            self.release(file, near);
        }
    }

    /// The near host of a file by the first round trip in it: the nearer end answers sooner.
    fn decide(&mut self, file: u16) -> Option<Side> {
        let of_file = || self.pending.iter().filter(|(frame, ..)| frame.place.file == file);
        let mut openings: BTreeMap<usize, Opening> = BTreeMap::new();
        for (frame, flow, from) in of_file() {
            openings.entry(*flow).or_default().take(frame.now, *from, &frame.packet.segment);
        }
        let (there, back) = match openings.values().find_map(Opening::round) {
            Some(round) => round,
            None => {
                let headless = openings.values().all(|opening| opening.syn.is_none());
                let most = if headless { HEADLESS } else { MOST_PENDING };
                if of_file().count() < most {
                    return None;
                }
                self.assumed = true;
                return Some(Side::Client);
            }
        };
        Some(if there >= back { Side::Client } else { Side::Server })
    }

    fn release(&mut self, file: u16, near: Side) {
        let (now, later) = std::mem::take(&mut self.pending).into_iter().partition(|(f, ..)| f.place.file == file);
        self.pending = later;
        let now: Vec<(Frame, usize, Side)> = now;
        now.iter().for_each(|(frame, flow, from)| self.deliver(frame, *flow, *from, near));
    }

    fn deliver(&mut self, frame: &Frame, flow: usize, from: Side, near: Side) {
        let number = self.number;
        let vantage = &mut self.vantages[super::vantage::half(near)];
        vantage.get_or_insert_with(|| Vantage::new(near, number, frame.now)).packet(frame, flow, from);
    }

    fn finish(&mut self, host: Option<Side>) {
        while let Some((frame, ..)) = self.pending.first() {
            self.assumed |= host.is_none();
            self.release(frame.place.file, host.unwrap_or(Side::Client));
        }
        self.vantages.iter_mut().flatten().for_each(Vantage::finish);
    }
}
