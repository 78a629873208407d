//! Two endpoints and a pipe per path between them, in virtual time.

use super::{Log, SERVER_PORT, client_paths, host, mirror, setup};
use anabranch_engine::connection::{Connection, ConnectionEvent, PathSetup, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple, Settings};
use anabranch_units::{Duration, Instant, Rng, Side};
use anabranch_wire::Packet;
use bytes::Bytes;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// The fate of a packet on its way.
pub enum Fate {
    Pass,
    Drop,
    /// Delivered as these, in this order.
    Become(Vec<Packet>),
}

/// Looks at each packet as it leaves: time, who sent it, over which path.
pub type Hook = Box<dyn FnMut(Instant, Side, u8, &Packet) -> Fate>;

pub struct Party {
    pub endpoint: Endpoint,
    pub handle: Option<Handle>,
    pub log: Log,
    pub events: Vec<ConnectionEvent>,
    pub got: Vec<u8>,
    /// Reads whatever comes.
    pub reads: bool,
    /// Finishes as soon as the peer has.
    pub polite: bool,
    rng: Rng,
    unwritten: Bytes,
    then_finish: bool,
}

pub struct Pair {
    pub now: Instant,
    pub client: Party,
    pub server: Party,
    pub delays: [Duration; 4],
    /// The delays from the server, if they differ.
    pub back: Option<[Duration; 4]>,
    pub hook: Hook,
    pub packets: u64,
    /// The last packet of each side.
    pub last: [Option<Packet>; 2],
    flying: BTreeMap<(Instant, u64), (Side, Packet)>,
    order: u64,
}

impl Party {
    fn new(name: &str, seed: u64) -> Self {
        Self {
            endpoint: Endpoint::default(),
            handle: None,
            log: Log::default(),
            events: Vec::new(),
            got: Vec::new(),
            reads: true,
            polite: true,
            rng: Rng::stream(seed, name),
            unwritten: Bytes::new(),
            then_finish: false,
        }
    }

    pub fn connection(&self) -> Option<&Connection> {
        self.handle.and_then(|h| self.endpoint.connection(h))
    }

    pub fn closed(&self) -> Option<anabranch_trace::CloseReason> {
        self.events.iter().find_map(|e| match e {
            ConnectionEvent::Closed(why) => Some(*why),
            _ => None,
        })
    }

    /// The application's turn, whenever something may have changed.
    fn serve(&mut self, now: Instant) {
        let mut cx = Cx { now, recorder: &mut self.log, rng: &mut self.rng };
        if self.handle.is_none() {
            self.handle = self.endpoint.poll_accept();
        }
        let Some(handle) = self.handle else { return };
        while let Some(connection) = self.endpoint.news_of(handle) {
            self.events.push(connection.poll_event().expect("there is news"));
        }
        assert_eq!(self.endpoint.poll_event(handle), None, "an event that is no news");
        let Some(connection) = self.endpoint.connection_mut(handle) else { return };
        if !self.unwritten.is_empty() {
            let taken = connection.write(&mut cx, self.unwritten.clone());
            let _ = self.unwritten.split_to(taken);
        }
        if self.then_finish && self.unwritten.is_empty() {
            self.then_finish = false;
            connection.finish(&mut cx);
        }
        while self.reads
            && let Some(bytes) = connection.read(&mut cx)
        {
            self.got.extend_from_slice(&bytes);
        }
        if self.polite && self.unwritten.is_empty() && connection.read_finished() {
            connection.finish(&mut cx);
        }
    }
}

impl Pair {
    /// A client with `paths` paths that connects now. Each way takes 10 ms on path 0, 20 on path 1, and so on.
    pub fn new(paths: u8, client: Settings, server: Settings) -> Self {
        Self::with(1, setup(client, client_paths(paths)), move || {
            let known = client_paths(paths).into_iter();
            let paths = known.map(|p| PathSetup { tuple: mirror(p.tuple), ..p }).collect();
            setup(server.clone(), paths)
        })
    }

    pub fn with(seed: u64, client: Setup, server: impl Fn() -> Setup + Send + 'static) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            client: Party::new("client", seed),
            server: Party::new("server", seed),
            delays: [10, 20, 30, 40].map(Duration::from_millis),
            back: None,
            hook: Box::new(|_, _, _, _| Fate::Pass),
            packets: 0,
            last: [None, None],
            flying: BTreeMap::new(),
            order: 0,
        };
        pair.server.endpoint.listen(SERVER_PORT, Box::new(move |_| Some(server())));
        let c = &mut pair.client;
        let mut cx = Cx { now: Instant::ZERO, recorder: &mut c.log, rng: &mut c.rng };
        c.handle = Some(c.endpoint.connect(&mut cx, client));
        pair
    }

    pub fn party(&mut self, side: Side) -> &mut Party {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The path of a packet: the second number of the client's address, or of the server's where that is a new one.
    fn path_of(a: IpAddr, b: IpAddr) -> u8 {
        let second = |ip: IpAddr| match ip {
            IpAddr::V4(v4) => v4.octets()[1],
            IpAddr::V6(v6) => v6.octets()[3],
        };
        second(a).max(second(b)) % 4
    }

    fn flush(&mut self, side: Side) {
        let now = self.now;
        self.party(side).serve(now);
        loop {
            let p = self.party(side);
            let mut cx = Cx { now, recorder: &mut p.log, rng: &mut p.rng };
            let Some((_, packet)) = p.endpoint.poll_transmit(&mut cx) else { break };
            self.packets += 1;
            self.last[usize::from(side == Side::Server)] = Some(packet.clone());
            let path = Self::path_of(packet.src, packet.dst);
            let arriving = match (self.hook)(now, side, path, &packet) {
                Fate::Pass => vec![packet],
                Fate::Drop => Vec::new(),
                Fate::Become(packets) => packets,
            };
            for packet in arriving {
                self.order += 1;
                let to = side.peer();
                let delays = self.back.filter(|_| side == Side::Server).unwrap_or(self.delays);
                self.flying.insert((now + delays[usize::from(path)], self.order), (to, packet));
            }
        }
        self.party(side).serve(now);
    }

    /// Runs until `until`.
    pub fn run(&mut self, until: Instant) -> &mut Self {
        let mut spins = 0u32;
        loop {
            self.flush(Side::Client);
            self.flush(Side::Server);
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let timers = [&self.client, &self.server].map(|p| p.endpoint.poll_timeout());
            let Some(next) = arrival.into_iter().chain(timers.into_iter().flatten()).min() else { break };
            if next > until {
                break;
            }
            spins = if next > self.now { 0 } else { spins + 1 };
            assert!(spins < 10_000, "time stands still at {}", self.now);
            self.now = self.now.max(next);
            let now = self.now;
            if arrival == Some(next) {
                let ((_, _), (to, packet)) = self.flying.pop_first().expect("it is there");
                let p = self.party(to);
                let mut cx = Cx { now, recorder: &mut p.log, rng: &mut p.rng };
                p.endpoint.handle_packet(&mut cx, &packet);
                self.flush(to);
                continue;
            }
            for side in [Side::Client, Side::Server] {
                let p = self.party(side);
                let mut cx = Cx { now, recorder: &mut p.log, rng: &mut p.rng };
                p.endpoint.handle_timeout(&mut cx);
            }
        }
        self.now = self.now.max(until);
        self
    }

    /// `side` writes all of `bytes` as its buffer allows, then finishes if it is to.
    pub fn write(&mut self, side: Side, bytes: Bytes, then_finish: bool) -> &mut Self {
        let p = self.party(side);
        p.unwritten = bytes;
        p.then_finish = then_finish;
        self
    }

    /// A third party's packet for `side`, which arrives now.
    pub fn inject(&mut self, side: Side, packet: Packet) -> &mut Self {
        self.order += 1;
        self.flying.insert((self.now, self.order), (side, packet));
        self
    }

    /// A router tells `side` that it dropped its `packet` and carries none above `mtu` bytes.
    pub fn report_too_big(&mut self, side: Side, packet: &Packet, mtu: u32) -> &mut Self {
        let Packet { src, dst, segment } = packet;
        let tuple = FourTuple { local: (*src, segment.src_port).into(), remote: (*dst, segment.dst_port).into() };
        let (now, p) = (self.now, self.party(side));
        let mut cx = Cx { now, recorder: &mut p.log, rng: &mut p.rng };
        p.endpoint.handle_too_big(&mut cx, tuple, segment.seq, mtu);
        self
    }

    /// Does something to a side's connection.
    pub fn act<T>(&mut self, side: Side, act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T) -> T {
        let now = self.now;
        let p = self.party(side);
        let mut cx = Cx { now, recorder: &mut p.log, rng: &mut p.rng };
        act(p.endpoint.connection_mut(p.handle.expect("open")).expect("it exists"), &mut cx)
    }
}

/// True if a packet runs over the client's address on `path`.
pub fn over(packet: &Packet, path: u8) -> bool {
    [packet.src, packet.dst].contains(&host(path, 1))
}
