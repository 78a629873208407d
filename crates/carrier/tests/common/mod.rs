//! Clients and a server in virtual time, and a network that loses, reorders and duplicates.

#![allow(dead_code, reason = "each test file uses a part")]

use anabranch_carrier::files::{self, KeyFile};
use anabranch_carrier::{
    Addresses, Arrival, Client, ClientSettings, Limits, PeerEvent, PeerId, PublicKey, Secret, Server, ServerSettings,
    StaticKey,
};
use anabranch_units::{Duration, Instant, PathId, Rng};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng as _;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

pub fn key(n: u8) -> KeyFile {
    KeyFile { key: StaticKey::new(Secret::new([n; 32])), preshared: Secret::new([n + 100; 32]) }
}

pub fn random(n: u8) -> Box<ChaCha20Rng> {
    Box::new(ChaCha20Rng::from_seed([n; 32]))
}

/// The server's number.
pub const SERVER: u8 = 1;
/// Wall time at the beginning.
pub const EPOCH: u128 = 1_800_000_000_000_000_000;

pub fn public(n: u8) -> PublicKey {
    key(n).key.public()
}

/// A client with the key `n` that began `later` nanoseconds after others.
pub fn client_later(n: u8, later: u128) -> Client {
    let KeyFile { key, preshared } = key(n);
    let seed = n.wrapping_add(later as u8);
    Client::new(ClientSettings { key, preshared, server: public(SERVER), epoch: EPOCH + later }, random(seed))
}

pub fn client(n: u8) -> Client {
    client_later(n, 0)
}

/// A server that admits the clients with these keys.
pub fn server(admitted: &[u8], limits: Limits) -> Server {
    patient_server(admitted, limits, Duration::ZERO)
}

/// The same, whose sessions remain for `keep` without keys.
pub fn patient_server(admitted: &[u8], limits: Limits, keep: Duration) -> Server {
    random_server(admitted, limits, keep, 200)
}

/// The same with other random numbers, as a process that was started again has them.
pub fn random_server(admitted: &[u8], limits: Limits, keep: Duration, seed: u8) -> Server {
    let text: String =
        admitted.iter().map(|n| key(*n).authorization(&format!("client-{n}")).unwrap().to_string()).collect();
    let clients = files::authorized(&text).unwrap();
    Server::new(ServerSettings { key: key(SERVER).key, clients, limits, keep }, random(seed))
}

/// Where a client's path is seen from.
pub fn home(client: u8, path: PathId) -> SocketAddr {
    SocketAddr::from(([192, 0, client, path.0], 1_000))
}

/// An IPv4 packet of this length, which begins with a number.
pub fn packet(source: Ipv4Addr, destination: Ipv4Addr, len: usize, number: u32) -> Vec<u8> {
    let mut packet = vec![0; len.max(24)];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&destination.octets());
    packet[20..24].copy_from_slice(&number.to_be_bytes());
    packet
}

pub fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[20..24].try_into().unwrap())
}

/// The network's effect on a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: f64,
    pub duplicate: f64,
    /// One way.
    pub delay: Duration,
    /// Added to it, uniformly.
    pub jitter: Duration,
    /// Largest UDP payload.
    pub mtu: usize,
}

pub const FAIR: Weather =
    Weather { loss: 0.0, duplicate: 0.0, delay: Duration::from_millis(10), jitter: Duration::ZERO, mtu: 1_500 };

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Flying {
    pub to_server: bool,
    pub client: u8,
    pub path: PathId,
    /// Where the server sees it come from, or sends it.
    pub address: SocketAddr,
    pub bytes: Vec<u8>,
}

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub to_server: bool,
    pub client: u8,
    pub path: PathId,
    pub number: u32,
}

pub struct World {
    pub now: Instant,
    pub server: Server,
    pub clients: BTreeMap<u8, Client>,
    /// The keys that the server admits, in the order of their ids.
    pub admitted: Vec<u8>,
    pub weather: Weather,
    /// Largest UDP payload of paths that carry less than the weather allows.
    pub narrow: BTreeMap<PathId, usize>,
    /// Where paths are seen from, if not at home.
    pub moved: BTreeMap<(u8, PathId), SocketAddr>,
    pub flying: BTreeMap<(Instant, u64), Flying>,
    pub delivered: Vec<Delivered>,
    /// The server's about sessions, and about the sizes of paths.
    pub events: Vec<PeerEvent>,
    pub resized: Vec<(Arrival, usize)>,
    /// Every datagram that was sent, with the time.
    pub seen: Vec<(Instant, Flying)>,
    rng: Rng,
    sent: u64,
}

impl World {
    pub fn new(admitted: &[u8], weather: Weather, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            server: server(admitted, Limits::default()),
            clients: BTreeMap::new(),
            admitted: admitted.to_vec(),
            weather,
            narrow: BTreeMap::new(),
            moved: BTreeMap::new(),
            flying: BTreeMap::new(),
            delivered: Vec::new(),
            events: Vec::new(),
            resized: Vec::new(),
            seen: Vec::new(),
            rng: Rng::stream(seed, "network"),
            sent: 0,
        }
    }

    /// A client with so many paths.
    pub fn add(&mut self, n: u8, paths: u8) -> Addresses {
        self.add_client(n, client(n), paths)
    }

    pub fn add_client(&mut self, n: u8, mut client: Client, paths: u8) -> Addresses {
        (0..paths).for_each(|path| assert!(client.add_path(self.now, PathId(path))));
        let addresses = client.addresses();
        self.clients.insert(n, client);
        addresses
    }

    pub fn id(&self, client: u8) -> PeerId {
        PeerId(self.admitted.iter().position(|n| *n == client).unwrap())
    }

    fn address(&self, client: u8, path: PathId) -> SocketAddr {
        self.moved.get(&(client, path)).copied().unwrap_or_else(|| home(client, path))
    }

    pub fn launch(&mut self, flying: Flying) {
        self.seen.push((self.now, flying.clone()));
        let Weather { loss, duplicate, delay, jitter, mtu } = self.weather;
        let mtu = self.narrow.get(&flying.path).map_or(mtu, |narrow| mtu.min(*narrow));
        for copy in 0..2 {
            let happens = if copy == 0 { !self.rng.chance(loss) } else { self.rng.chance(duplicate) };
            let late = Duration::from_nanos(self.rng.below(jitter.as_nanos() + 1));
            if happens && flying.bytes.len() <= mtu {
                self.sent += 1;
                self.flying.insert((self.now + delay + late, self.sent), flying.clone());
            }
        }
    }

    /// Sends what both ends have to send.
    pub fn flush(&mut self) {
        let mut out = Vec::new();
        while let Some((address, bytes)) = self.server.poll_transmit() {
            out.push(self.to_client(address, bytes));
        }
        for (n, client) in &mut self.clients {
            while let Some((path, bytes)) = client.poll_transmit() {
                out.push(Some(Flying { to_server: true, client: *n, path, address: home(*n, path), bytes }));
            }
        }
        for mut flying in out.into_iter().flatten() {
            if flying.to_server {
                flying.address = self.address(flying.client, flying.path);
            }
            self.launch(flying);
        }
    }

    /// Nothing arrives at an address that is nobody's.
    pub fn to_client(&self, address: SocketAddr, bytes: Vec<u8>) -> Option<Flying> {
        let all = self.clients.keys().flat_map(|n| (0..16).map(|path| (*n, PathId(path))));
        let (client, path) = all.into_iter().find(|(n, path)| self.address(*n, *path) == address)?;
        Some(Flying { to_server: false, client, path, address, bytes })
    }

    /// Runs for so long.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.flush();
            let timers = self.clients.values().map(Client::poll_timeout).chain([self.server.poll_timeout()]);
            let timer = timers.min().unwrap().max(self.now);
            let arrival = self.flying.keys().next().map_or(Instant::MAX, |(at, _)| *at);
            let next = timer.min(arrival);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if arrival == next {
                let (_, flying) = self.flying.pop_first().unwrap();
                self.arrive(&flying);
            } else {
                self.server.handle_timeout(self.now);
                self.listen();
                self.clients.values_mut().for_each(|client| client.handle_timeout(next));
            }
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                PeerEvent::Resized(arrival, size) => self.resized.push((arrival, size)),
                event => self.events.push(event),
            }
        }
    }

    pub fn arrive(&mut self, flying: &Flying) {
        let mut packet = Vec::new();
        let Flying { to_server, client, .. } = *flying;
        let path = if to_server {
            let arrival = self.server.handle_datagram(self.now, flying.address, &flying.bytes, &mut packet);
            self.listen();
            arrival.map(|Arrival { peer, path }| {
                assert_eq!(peer, self.id(client), "a packet of one client is never another's");
                path
            })
        } else {
            self.clients.get_mut(&client).unwrap().handle_datagram(self.now, &flying.bytes, &mut packet)
        };
        if let Some(path) = path {
            self.delivered.push(Delivered { to_server, client, path, number: number(&packet) });
        }
    }

    /// A client sends a packet. Returns its datagram if it could be sent, which is empty if there are two.
    pub fn up(&mut self, n: u8, path: PathId, len: usize, number: u32) -> Option<Vec<u8>> {
        let (client, now) = (self.clients.get_mut(&n).unwrap(), self.now);
        let addresses = client.addresses();
        let packet = packet(addresses.client(path), addresses.server(), len, number);
        let mut bytes = Vec::new();
        client.send(now, path, &packet, &mut bytes).ok()?;
        let address = self.address(n, path);
        if !bytes.is_empty() {
            self.launch(Flying { to_server: true, client: n, path, address, bytes: bytes.clone() });
        }
        Some(bytes)
    }

    /// The server sends a packet. Returns its datagram if it could be sent, which is empty if there are two.
    pub fn down(&mut self, n: u8, path: PathId, len: usize, number: u32) -> Option<Vec<u8>> {
        let peer = self.id(n);
        let addresses = self.server.addresses(peer).unwrap();
        let packet = packet(addresses.server(), addresses.client(path), len, number);
        let mut bytes = Vec::new();
        let address = self.server.send(self.now, Arrival { peer, path }, &packet, &mut bytes).ok()?;
        let flying = address.and_then(|address| self.to_client(address, bytes.clone()));
        flying.into_iter().for_each(|flying| self.launch(flying));
        Some(bytes)
    }

    pub fn secs(&mut self, secs: u64) {
        self.run(Duration::from_secs(secs));
    }
}
