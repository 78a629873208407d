//! Tens of thousands of handshakes per second that their senders do not complete: honest peers connect all the same, and
//! the memory that a host spends on the others is bounded.

mod common;

use anabranch_engine::connection::{ConnectionEvent, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple, Settings};
use anabranch_units::{Duration, Instant, PathId, Rng, SeqNumber};
use anabranch_wire::{Flags, MpCapable, MpJoin, MptcpOption, Packet, Segment, Timestamps};
use bytes::Bytes;
use common::{SERVER_PORT, at, host, setup};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// One test at a time: they share the count of what is allocated.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Half of the honest peers' round trip.
const WAY: Duration = Duration::from_millis(100);
/// Time between two forged SYNs: 100,000 come in a second.
const GAP: Duration = Duration::from_micros(10);
const MIB: usize = 1 << 20;

/// Addresses that no packet comes back from.
fn nobody(rng: &mut Rng) -> SocketAddr {
    let bits = rng.bits();
    let ip = Ipv4Addr::from_bits(0x6400_0000 | (bits as u32 & 0x00ff_ffff));
    SocketAddr::new(IpAddr::V4(ip), (bits >> 40) as u16 | 1)
}

fn server_end() -> SocketAddr {
    SocketAddr::new(host(0, 2), SERVER_PORT)
}

/// A SYN as Linux sends it.
fn syn(from: SocketAddr, rng: &mut Rng, option: Option<MptcpOption>) -> Packet {
    let to = server_end();
    let mut segment = Segment {
        src_port: from.port(),
        dst_port: to.port(),
        seq: SeqNumber(rng.bits() as u32),
        flags: Flags::SYN,
        window: 0xffff,
        ..Segment::default()
    };
    segment.options.set_mss(1460);
    segment.options.set_timestamps(Timestamps { val: rng.bits() as u32, ecr: 0 });
    segment.options.set_sack_permitted();
    segment.options.set_window_scale(7);
    option.into_iter().for_each(|option| assert!(segment.options.push_mptcp(option)));
    Packet { src: from.ip(), dst: to.ip(), segment }
}

/// An honest peer.
struct Client {
    endpoint: Endpoint,
    handle: Handle,
    syns: u32,
    refused: bool,
    established: bool,
    got: Vec<u8>,
}

/// A server, those who flood it, and honest peers.
struct World {
    now: Instant,
    server: Endpoint,
    rngs: [Rng; 3],
    clients: Vec<Client>,
    /// The connections that the server's applications hold, by their peers' ports.
    served: BTreeMap<u16, Handle>,
    got: BTreeMap<u16, Vec<u8>>,
    flying: BTreeMap<(Instant, u64), Packet>,
    order: u64,
    /// SYN/ACKs to addresses that are no honest client's.
    answers: u64,
    /// The server finishes each stream as it has written, so that TIME-WAIT is its own.
    ends_first: bool,
    /// Loses a packet between the honest: a test's wish.
    loses: Box<dyn FnMut(&Packet) -> bool>,
}

/// The client's end of a path: its port tells which client it is.
fn client_end(n: usize, path: u8) -> SocketAddr {
    SocketAddr::new(host(path, 100), 2000 + n as u16)
}

fn is_client(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(v4) if v4.octets()[0] == 10)
}

impl World {
    fn new(settings: Settings) -> Self {
        Self::of(Endpoint::default(), settings)
    }

    fn of(mut server: Endpoint, settings: Settings) -> Self {
        server.listen(SERVER_PORT, Box::new(move |_| Some(setup(settings.clone(), Vec::new()))));
        Self {
            now: at(0),
            server,
            rngs: ["server", "clients", "flood"].map(|name| Rng::stream(5, name)),
            clients: Vec::new(),
            served: BTreeMap::new(),
            got: BTreeMap::new(),
            flying: BTreeMap::new(),
            order: 0,
            answers: 0,
            ends_first: false,
            loses: Box::new(|_| false),
        }
    }

    /// A client that connects over its first path and speaks first, if it has words.
    fn connect(&mut self, settings: Settings, paths: u8, words: &'static [u8]) {
        let n = self.clients.len();
        let paths = (0..paths).map(|path| {
            let tuple = FourTuple { local: client_end(n, path), remote: server_end() };
            anabranch_engine::connection::PathSetup::new(PathId(path), tuple)
        });
        let setup = Setup { ..setup(settings, paths.collect()) };
        let mut endpoint = Endpoint::new(1);
        let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[1] };
        let handle = endpoint.connect(&mut cx, setup);
        let connection = endpoint.connection_mut(handle).expect("it is new");
        connection.write(&mut cx, Bytes::from_static(words));
        let got = Vec::new();
        self.clients.push(Client { endpoint, handle, syns: 0, refused: false, established: false, got });
    }

    fn send(&mut self, packet: Packet) {
        if !(self.loses)(&packet) {
            self.order += 1;
            self.flying.insert((self.now + WAY, self.order), packet);
        }
    }

    /// The server gets a packet from those who flood it.
    fn forge(&mut self, packet: &Packet) {
        let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[0] };
        self.server.handle_packet(&mut cx, packet);
        self.flush_server();
    }

    fn flush_server(&mut self) {
        loop {
            let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[0] };
            while let Some(handle) = self.server.poll_accept() {
                let connection = self.server.connection_mut(handle).expect("just accepted");
                let peer = connection.subflows().next().map(|(_, tuple, _)| tuple.remote);
                if let Some(peer) = peer.filter(|peer| is_client(peer.ip())) {
                    connection.write(&mut cx, Bytes::from_static(b"hello from the server"));
                    self.served.insert(peer.port(), handle);
                }
            }
            for (peer, handle) in &self.served {
                while self.server.poll_event(*handle).is_some() {}
                let Some(connection) = self.server.connection_mut(*handle) else { continue };
                if self.ends_first {
                    connection.finish(&mut cx);
                }
                while let Some(bytes) = connection.read(&mut cx) {
                    self.got.entry(*peer).or_default().extend_from_slice(&bytes);
                }
            }
            let Some((_, packet)) = self.server.poll_transmit(&mut cx) else { return };
            if is_client(packet.dst) {
                self.send(packet);
            } else {
                self.answers += u64::from(packet.segment.flags == Flags::SYN | Flags::ACK);
            }
        }
    }

    fn flush_clients(&mut self) {
        let mut sent = Vec::new();
        for client in &mut self.clients {
            let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[1] };
            while let Some((path, packet)) = client.endpoint.poll_transmit(&mut cx) {
                let first = path == Some(PathId(0));
                client.syns += u32::from(packet.segment.flags == Flags::SYN && first);
                sent.push(packet);
            }
            while let Some(event) = client.endpoint.poll_event(client.handle) {
                client.established |= event == ConnectionEvent::Established;
                client.refused |= matches!(event, ConnectionEvent::Closed(_));
            }
            let Some(connection) = client.endpoint.connection_mut(client.handle) else { continue };
            while let Some(bytes) = connection.read(&mut cx) {
                client.got.extend_from_slice(&bytes);
            }
            if connection.read_finished() {
                connection.finish(&mut cx);
            }
        }
        sent.into_iter().for_each(|packet| self.send(packet));
    }

    /// Time passes: what is on its way arrives, timers fire.
    fn pass(&mut self, until: Instant) {
        self.flush_clients();
        self.flush_server();
        loop {
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let timers = self.clients.iter().filter_map(|c| c.endpoint.poll_timeout()).min();
            let next = [arrival, timers, self.server.poll_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, packet) = self.flying.pop_first().expect("it is there");
                if packet.dst == server_end().ip() {
                    self.forge(&packet);
                } else {
                    let client = &mut self.clients[usize::from(packet.segment.dst_port) - 2000];
                    let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[1] };
                    client.endpoint.handle_packet(&mut cx, &packet);
                }
            } else {
                let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[0] };
                self.server.handle_timeout(&mut cx);
                for client in &mut self.clients {
                    let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[1] };
                    client.endpoint.handle_timeout(&mut cx);
                }
            }
            self.flush_clients();
            self.flush_server();
        }
        self.now = self.now.max(until);
    }

    /// A flood until `until`, of the packets that `forged` makes.
    fn flood(&mut self, until: Instant, mut forged: impl FnMut(&mut Rng) -> Packet) {
        while self.now < until {
            let packet = forged(&mut self.rngs[2]);
            self.forge(&packet);
            let next = self.now + GAP;
            self.pass(next);
        }
    }

    fn served(&self, n: usize) -> Option<&anabranch_engine::connection::Connection> {
        self.served.get(&client_end(n, 0).port()).and_then(|handle| self.server.connection(*handle))
    }
}

/// A SYN from nowhere: every second one offers Multipath TCP.
fn spoofed(rng: &mut Rng) -> Packet {
    let from = nobody(rng);
    let option = rng.chance(0.5).then_some(MptcpOption::Capable(MpCapable::OFFER));
    syn(from, rng, option)
}

const FROM_CLIENT: &[u8] = b"hello from the client";
const FROM_SERVER: &[u8] = b"hello from the server";

#[test]
fn honest_peers_connect_during_a_flood_of_syns() {
    let _alone = alone();
    let mut w = World::new(Settings::default());
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    // Long enough to fill every place there is.
    w.flood(at(700), spoofed);
    for n in 0..10 {
        w.connect(Settings { mptcp: n % 3 > 0, ..Settings::default() }, 1, if n % 2 == 0 { FROM_CLIENT } else { b"" });
        w.flood(at(700 + 60 * (n + 1)), spoofed);
    }
    w.flood(at(2000), spoofed);
    for (n, client) in w.clients.iter().enumerate() {
        assert!(client.established && !client.refused, "client {n}");
        assert_eq!((client.syns, client.got.as_slice()), (1, FROM_SERVER), "client {n}");
        assert_eq!(w.served(n).expect("accepted").is_multipath(), n % 3 > 0, "client {n}");
        let got = w.got.get(&client_end(n, 0).port()).map(Vec::as_slice);
        assert_eq!(got, Some(FROM_CLIENT).filter(|_| n % 2 == 0), "client {n}");
    }
    // Nearly every SYN is answered, and nothing that is held grows beyond its bound.
    assert!(w.answers >= 199_000, "{} of 200,000 were answered", w.answers);
    let peak = MEMORY.peak_usage() - before;
    assert!(peak <= 16 * MIB, "{} KiB", peak / 1024);
    // After the flood all memory is freed except that of the honest peers, and of connections that no application holds.
    w.pass(at(200_000));
    let left = MEMORY.current_usage() - before;
    assert!(left <= 4 * MIB, "{} KiB", left / 1024);
}

#[test]
fn an_honest_peer_whose_syn_ack_is_lost_needs_two_syns() {
    let _alone = alone();
    let mut w = World::new(Settings::default());
    w.flood(at(600), spoofed);
    let mut lost = false;
    w.loses = Box::new(move |p| p.segment.flags.has(Flags::ACK) && !core::mem::replace(&mut lost, true));
    w.connect(Settings::default(), 1, FROM_CLIENT);
    w.flood(at(2200), spoofed);
    let client = &w.clients[0];
    assert_eq!((client.established, client.syns, client.got.as_slice()), (true, 2, FROM_SERVER));
}

#[test]
fn many_honest_peers_at_once_over_lossy_paths() {
    let _alone = alone();
    let mut w = World::new(Settings::default());
    let mut luck = Rng::stream(9, "loss");
    w.loses = Box::new(move |_| luck.chance(0.2));
    // More than have a connection from their SYN on. Those without words wait for the server's.
    for n in 0..600 {
        w.connect(Settings { mptcp: n % 2 > 0, ..Settings::default() }, 1, if n % 4 > 1 { FROM_CLIENT } else { b"" });
    }
    w.pass(at(300_000));
    for (n, client) in w.clients.iter().enumerate() {
        assert!(client.established && client.got == FROM_SERVER, "client {n}: {:?}", client.established);
        let got = w.got.get(&client_end(n, 0).port()).map(Vec::as_slice);
        assert_eq!(got, Some(FROM_CLIENT).filter(|_| n % 4 > 1), "client {n}");
    }
}

#[test]
fn the_true_join_comes_in_during_a_flood_of_joins() {
    let _alone = alone();
    let mut w = World::new(Settings::default());
    w.connect(Settings::default(), 2, FROM_CLIENT);
    // The second path is a bad one at first: its SYN comes when the flood has filled every place.
    let until = std::rc::Rc::new(core::cell::Cell::new(true));
    let early = until.clone();
    w.loses = Box::new(move |p| early.get() && p.dst == server_end().ip() && p.src == host(1, 100));
    w.pass(at(400));
    let token = w.served(0).and_then(|c| c.token()).expect("a token");
    let forged = move |rng: &mut Rng| {
        let from = nobody(rng);
        let nonce = rng.bits() as u32;
        syn(from, rng, Some(MptcpOption::Join(MpJoin::Syn { backup: false, address_id: 1, token, nonce })))
    };
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    w.flood(at(1000), forged);
    assert_eq!(w.served(0).map(|c| c.subflows().count()), Some(1));
    until.set(false);
    w.flood(at(2500), forged);
    let ids: Vec<_> = w.served(0).expect("open").subflows().map(|(id, ..)| id).collect();
    assert_eq!(ids, [PathId(0), PathId(1)]);
    let path = w.clients[0].endpoint.connection(w.clients[0].handle).and_then(|c| c.view().path(PathId(1)));
    assert!(path.is_some_and(|path| path.usable));
    let peak = MEMORY.peak_usage() - before;
    assert!(peak <= 16 * MIB, "{} KiB", peak / 1024);
}

#[test]
fn connections_in_time_wait_keep_nobody_out() {
    let _alone = alone();
    for mptcp in [false, true] {
        let settings = Settings { mptcp, ..Settings::default() };
        let mut w = World::of(Endpoint::new(4), settings.clone());
        w.ends_first = true;
        // Each ends within a second, and lingers for a minute.
        for n in 0..20 {
            w.connect(settings.clone(), 1, b"");
            w.pass(at(1000 * (n + 1)));
            let client = &w.clients[n as usize];
            assert!(client.established && client.got == FROM_SERVER, "client {n}");
            assert_eq!(w.server.len(), 4.min(n as usize + 1));
        }
        // Those that are in use do not make room.
        let mut w = World::of(Endpoint::new(4), settings.clone());
        for n in 0..5 {
            w.connect(settings.clone(), 1, b"");
            w.pass(at(1000 * (n + 1)));
            assert_eq!((w.clients[n as usize].established, w.clients[n as usize].refused), (n < 4, n == 4));
        }
    }
}

#[test]
fn a_small_host_is_not_filled_by_who_shows_no_address() {
    let _alone = alone();
    for limit in [1, 2, 3] {
        let settings = Settings::default();
        let mut w = World::of(Endpoint::new(limit), settings.clone());
        w.flood(at(10), spoofed);
        for n in 0..limit {
            w.connect(settings.clone(), 1, FROM_CLIENT);
            w.flood(at(10 + 700 * (n as u64 + 1)), spoofed);
            let client = &w.clients[n];
            assert!(client.established && !client.refused, "limit {limit}, client {n}");
            assert_eq!((client.syns, client.got.as_slice()), (1, FROM_SERVER), "limit {limit}, client {n}");
        }
        assert_eq!(w.server.len(), limit);
        // A peer that has proved its address does not make room.
        w.connect(settings.clone(), 1, FROM_CLIENT);
        w.flood(at(10 + 700 * (limit as u64 + 1)), spoofed);
        assert!(w.clients[limit].refused, "limit {limit}");
        assert!(w.served(0).is_some() && w.server.len() == limit);
    }
}
