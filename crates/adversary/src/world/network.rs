//! The network between the hosts: delivery of packets, and packets of third parties.

use super::agenda::Event;
use super::{SIDES, Step, World};
use crate::case::{self, Case, Flood, Flooding, PORT, Router};
use crate::class::Class;
use crate::middle::{self, What};
use anabranch_engine::FourTuple;
use anabranch_units::{Direction, Duration, SeqNumber};
use anabranch_wire::{Flags, MpCapable, MpJoin, MptcpOption, Packet, Segment, crypto};
use core::net::{IpAddr, SocketAddr};

impl World<'_> {
    /// A packet leaves a host.
    pub(super) fn send(&mut self, n: usize, packet: Packet) {
        debug_assert!(packet.segment.options.encoded_len() <= 40);
        if n == 1 && self.token == 0 {
            self.token = token_in(&packet.segment);
        }
        let way = SIDES[n].sends();
        let line = case::line_of(packet.src, packet.dst)
            .filter(|(path, there)| usize::from(*path) < self.case.paths.len() && *there == way);
        let Some((path, _)) = line else {
            if let Some(exchange) = &mut self.exchange {
                exchange.leaves(self.now, SIDES[n], &packet, &[], Some("to no host"));
            }
            return;
        };
        if self.is_dark(path, way) {
            if let Some(exchange) = &mut self.exchange {
                exchange.leaves(self.now, SIDES[n], &packet, &[], Some("the path is dark"));
            }
            return;
        }
        self.note_syn(n, &packet.segment);
        let before = self.middle.done.len();
        let shown = self.exchange.is_some().then(|| packet.clone());
        self.middle.guesses |= self.apps[1].established;
        // A reset that is not exactly in place is answered by a challenge ACK (RFC 5961 §3.2).
        let resets = packet.segment.flags.has(Flags::RST) || self.was_reset && packet.segment.payload.is_empty();
        let (ends, seq, sent) = (ends_of(&packet), packet.segment.seq, self.middle.sent(path, way));
        let (passed, waits) = self.middle.take(path, way, packet);
        self.reset_lost |= resets && self.middle.done[before..].iter().any(|deed| deed.what == What::Drop);
        if let (Some(exchange), Some(packet)) = (&mut self.exchange, shown) {
            exchange.leaves(self.now, SIDES[n], &packet, &self.middle.done[before..], None);
        }
        let dropped = self.middle.done[before..].iter().any(|deed| deed.what == What::Drop);
        if let Some((mtu, ahead)) = self.router_says(path, sent, dropped) {
            let back = self.case.paths[usize::from(path)].delay[usize::from(way == Direction::Up)];
            self.agenda.put(self.now + back, Event::TooBig(n, ends, seq.at(ahead), mtu));
        }
        if waits {
            self.agenda.put(self.now + middle::HOLDS, Event::Release(path, way));
        }
        for middle::Passed { packet, way, later } in passed {
            self.carry(path, way, packet, later);
        }
    }

    /// The MTU in a router's message about packet `sent` of a path, and the distance from the packet's sequence number to the one that the
    /// message quotes.
    fn router_says(&self, path: u8, sent: u32, dropped: bool) -> Option<(u32, u64)> {
        let most = self.case.rules.iter().filter_map(|rule| rule.most(path)).min();
        let truth = most.filter(|_| dropped).map(|most| (most.into(), 0));
        match self.case.paths[usize::from(path)].router {
            Router::Silent => None,
            Router::Honest => truth,
            // Numbers without a pattern that a transfer could follow.
            Router::Forged => truth.or_else(|| {
                let any = u64::from(sent.wrapping_mul(0x9e37_79b1));
                (any % 5 == 0).then_some((any as u32 >> 7 & 0x7ff, (any >> 3 & 1) * (any >> 5)))
            }),
        }
    }

    /// RFC 9293 §3.5.1: where an application has reset a path, a forged SYN opens another connection. It answers the client's segments
    /// with ACKs (§3.10.7.4, RFC 7323 §5.3), and the client learns of no reset.
    fn note_syn(&mut self, n: usize, segment: &Segment) {
        if self.case.class != Class::Guess || !segment.flags.has(Flags::SYN) {
            return;
        }
        if n == 0 {
            self.own_syns.push(segment.seq);
        } else if self.was_reset && !self.own_syns.iter().any(|syn| syn.at(1) == segment.ack) {
            self.reset_lost = true;
        }
    }

    fn is_dark(&self, path: u8, way: Direction) -> bool {
        let (dark, now) = (&self.case.paths[usize::from(path)].dark, self.now.since(self.case.start));
        dark.iter().any(|o| o.from <= now && now < o.until && o.way.is_none_or(|w| w == way))
    }

    /// Carries a packet, delayed by `later`.
    pub(super) fn carry(&mut self, path: u8, way: Direction, mut packet: Packet, later: Duration) {
        let spec = &self.case.paths[usize::from(path)];
        let w = usize::from(way == Direction::Down);
        if let Some(nat) = &spec.nat {
            let sent = self.middle.sent(path, Direction::Up);
            let shifts = &mut self.shifts[usize::from(path)];
            if packet.segment.flags.has(Flags::SYN) {
                shifts[w].get_or_insert(nat.isn[w].wrapping_sub(packet.segment.seq.0));
            }
            let shifts = shifts.map(Option::unwrap_or_default);
            if !nat.translate(way, shifts, sent, self.case.address(path, 1), &mut packet) {
                return;
            }
        }
        let free = &mut self.free[usize::from(path)][w];
        if spec.queue.is_some_and(|longest| free.since(self.now) > longest) {
            return;
        }
        *free = (*free).max(self.now) + Duration::from_nanos(packet.len() as u64 * spec.byte_ns[w]);
        let at = *free + spec.delay[w] + later;
        self.agenda.put(at, Event::Arrival(usize::from(way == Direction::Up), packet));
    }

    pub(super) fn flood(&mut self, number: usize, sent: u32) -> Step {
        let Flood { kind, gap, count, .. } = self.case.floods[number];
        if sent + 1 < count {
            self.agenda.put(self.now + gap, Event::Flood(number, sent + 1));
        }
        if kind == Flooding::Join && self.token == 0 {
            return Ok(());
        }
        let packet = flood_packet(self.case, kind, number as u8, sent, self.token);
        self.arrive(1, packet)
    }
}

/// The ends of a packet, as its sender knows them.
fn ends_of(packet: &Packet) -> FourTuple {
    let Packet { src, dst, segment } = packet;
    FourTuple { local: (*src, segment.src_port).into(), remote: (*dst, segment.dst_port).into() }
}

/// The token of the server's key, if the segment has the key.
fn token_in(segment: &Segment) -> u32 {
    let key = segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Capable(c) => c.sender_key,
        _ => None,
    });
    key.map_or(0, crypto::token)
}

fn flood_packet(case: &Case, kind: Flooding, number: u8, sent: u32, token: u32) -> Packet {
    let src = SocketAddr::new(IpAddr::from([172, 16 + number, (sent >> 8) as u8, sent as u8]), 5000);
    let mut segment = Segment {
        src_port: src.port(),
        dst_port: PORT,
        seq: SeqNumber(sent.wrapping_mul(0x9e37_79b9)),
        flags: Flags::SYN,
        window: 0xffff,
        ..Segment::default()
    };
    segment.options.set_mss(1460);
    match kind {
        Flooding::Syn { capable } => {
            if capable {
                segment.options.push_mptcp(MptcpOption::Capable(MpCapable::OFFER));
            }
        }
        Flooding::Join => {
            segment.options.push_mptcp(MptcpOption::Join(MpJoin::Syn {
                backup: false,
                address_id: sent as u8,
                token,
                nonce: sent,
            }));
        }
        Flooding::Stray => segment.flags = Flags::ACK,
    }
    let dst = case.address(0, 2);
    Packet { src: src.ip(), dst, segment }
}
