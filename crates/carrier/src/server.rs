//! The end that is connected to: it admits the clients of a list, and keeps no state for other hosts.

use crate::format::{Initiation, Message, cookie_reply, response};
use crate::keypair::{Keypair, Opened, Slot};
use crate::load::{Limits, Load};
use crate::macs::{COOKIE_NONCE, Door, Jar};
use crate::noise::{Responder, Work};
use crate::peer::{Authentic, Desk, Peer};
use crate::{Addresses, Counters, KEY_LEN, PublicKey, StaticKey, Unsent, files};
use anabranch_units::{Duration, Instant, PathId};
use rand_core::CryptoRng;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// A client among the authorised ones, by its place in their list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerId(pub usize);

/// A packet's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The client.
    pub peer: PeerId,
    /// The path.
    pub path: PathId,
}

/// A change of a client's session, or of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// A session began; connections of an earlier one are lost. New keys of the same session are no event.
    Began(PeerId),
    /// The session has had no keys for [`ServerSettings::keep`].
    Ended(PeerId),
    /// A path carries packets of other sizes than before: the largest that travels whole has so many bytes.
    Resized(Arrival, usize),
}

/// The server's key, and the clients that it admits.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Our key.
    pub key: StaticKey,
    /// The clients; [`PeerId`] is the place in this list.
    pub clients: Vec<files::Client>,
    /// How many handshakes are answered.
    pub limits: Limits,
    /// How long a session without keys remains: a client that makes new keys for it within this time keeps its connections.
    pub keep: Duration,
}

/// A server.
pub struct Server {
    key: StaticKey,
    ours: Door,
    rng: Box<dyn CryptoRng + Send>,
    peers: Vec<Peer>,
    by_key: BTreeMap<PublicKey, PeerId>,
    /// Peers by the index that we gave to their keys.
    by_index: BTreeMap<u32, PeerId>,
    load: Load,
    jar: Jar,
    /// Nothing is due earlier.
    next: Instant,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<PeerEvent>,
    counters: Counters,
    work: Work,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server").field("peers", &self.peers.len()).finish_non_exhaustive()
    }
}

impl Server {
    /// A server without sessions. `rng` must be unpredictable.
    pub fn new(settings: ServerSettings, rng: Box<dyn CryptoRng + Send>) -> Self {
        let ServerSettings { key, clients, limits, keep } = settings;
        let by_key = clients.iter().enumerate().map(|(n, client)| (client.public, PeerId(n))).collect();
        Self {
            ours: Door::of(&key.public()),
            key,
            rng,
            peers: clients.into_iter().map(|client| Peer::new(client, keep)).collect(),
            by_key,
            by_index: BTreeMap::new(),
            load: Load::new(limits),
            jar: Jar::new(),
            next: Instant::MAX,
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            work: Work::default(),
        }
    }

    /// Counts of all that came and was refused.
    pub fn counters(&self) -> Counters {
        Counters { multiplications: self.work.load(Ordering::Relaxed), ..self.counters }
    }

    /// A client's name in the list.
    pub fn name(&self, peer: PeerId) -> Option<&str> {
        self.peers.get(peer.0).map(|peer| peer.client.name.as_str())
    }

    /// The addresses of the packets of a client's session.
    pub fn addresses(&self, peer: PeerId) -> Option<Addresses> {
        self.peers.get(peer.0).map(|peer| peer.addresses)
    }

    /// Where a path's datagrams go, and whether that address has answered a challenge.
    pub fn address(&self, peer: PeerId, path: PathId) -> Option<(SocketAddr, bool)> {
        self.peers.get(peer.0)?.address(path)
    }

    /// Bytes of the largest packet that a path takes.
    pub fn max_packet(&self, peer: PeerId, path: PathId) -> Option<usize> {
        self.peers.get(peer.0)?.max_packet(path)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// The next datagram to send, with its destination. At most three for each that came, a few when time has passed, and the pieces of
    /// packets.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.out.pop_front()
    }

    /// When [`Self::handle_timeout`] must be called next; [`Instant::MAX`] for never. It may be too early.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Seals an IPv4 packet from [`Addresses::server`] to [`Addresses::client`] of the path in `datagram`, whose old content is
    /// lost. Returns where it is to be sent; `None` where the path does not carry it whole: then [`Self::poll_transmit`] gives two that
    /// carry it.
    ///
    /// # Errors
    /// The packet cannot be sent now; it is lost.
    pub fn send(
        &mut self,
        now: Instant,
        Arrival { peer, path }: Arrival,
        packet: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Result<Option<SocketAddr>, Unsent> {
        if peer.0 >= self.peers.len() {
            return Err(Unsent::NoSession);
        }
        let (peer, mut desk) = self.desk(now, peer);
        let sent = peer.send(&mut desk, path, packet, datagram);
        match sent {
            Ok(_) => self.counters.sent += 1,
            Err(Unsent::HeldBack) => self.counters.held_back += 1,
            Err(Unsent::TooLarge) => self.counters.too_large += 1,
            Err(Unsent::Foreign) => self.counters.foreign += 1,
            Err(Unsent::NoSession | Unsent::NoPath) => {}
        }
        sent
    }

    /// Takes a datagram. If it has a packet, that is in `packet`, whose old content is lost, and its origin is returned.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        packet: &mut Vec<u8>,
    ) -> Option<Arrival> {
        match Message::parse(datagram) {
            Some(Message::Data { receiver, nonce, sealed }) => {
                let peer = self.open(now, receiver, nonce, sealed, packet)?;
                self.take(now, from, datagram.len(), peer, packet)
            }
            Some(Message::Initiation(initiation)) => {
                self.on_initiation(now, from, initiation);
                None
            }
            Some(Message::Response(_) | Message::Cookie { .. }) => {
                self.counters.bad_handshakes += 1;
                None
            }
            None => {
                self.counters.malformed += 1;
                None
            }
        }
    }

    /// Cheap checks come first: nothing is computed on the curve for a sender who may not know our key, or, under load,
    /// who has not shown that it receives at its address.
    fn on_initiation(&mut self, now: Instant, from: SocketAddr, initiation: Initiation<'_>) {
        if !self.ours.is_mac1(initiation.tags.covered, initiation.tags.mac1) {
            self.counters.bad_macs += 1;
            return;
        }
        if !self.load.admits(now) {
            self.jar.renew(now, &mut *self.rng);
            let tags = initiation.tags;
            if !self.jar.is_mac2(from, tags.covered, tags.mac1, tags.mac2) {
                self.reply_cookie(from, initiation);
                return;
            }
            if !self.load.admits_from(self.jar.place(from.ip())) {
                self.counters.overloaded += 1;
                return;
            }
        }
        self.answer(now, from, initiation);
    }

    fn reply_cookie(&mut self, from: SocketAddr, initiation: Initiation<'_>) {
        let mut nonce = [0; COOKIE_NONCE];
        self.rng.fill_bytes(&mut nonce);
        if let Some(sealed) = self.ours.seal(&nonce, &self.jar.cookie(from), initiation.tags.mac1) {
            self.counters.cookies += 1;
            self.out.push_back((from, cookie_reply(initiation.sender, &nonce, &sealed)));
        }
    }

    fn answer(&mut self, now: Instant, from: SocketAddr, initiation: Initiation<'_>) {
        let mut ephemeral = [0; KEY_LEN];
        self.rng.fill_bytes(&mut ephemeral);
        let Ok(responder) = Responder::read(&self.key, ephemeral, initiation.noise, &self.work) else {
            self.counters.bad_handshakes += 1;
            return;
        };
        let Some(id) = self.by_key.get(&responder.remote).copied() else {
            self.counters.unauthorized += 1;
            return;
        };
        let index = self.free_index();
        let peer = &mut self.peers[id.0];
        let (public, session) = (responder.remote, responder.payload.session);
        if !peer.advance(now, responder.payload.timestamp) {
            self.counters.old_handshakes += 1;
            return;
        }
        let Ok((noise, transport)) = responder.reply(&peer.client.preshared) else {
            self.counters.bad_handshakes += 1;
            return;
        };
        peer.propose(session);
        let replaced = peer.keys.propose(Keypair::new(transport, index, initiation.sender, now));
        self.next = self.next.min(peer.next_timeout());
        if let Some(index) = replaced {
            self.by_index.remove(&index);
        }
        self.by_index.insert(index, id);
        self.out.push_back((from, response(index, initiation.sender, &noise, &Door::of(&public))));
    }

    /// A peer, which exists, and the parts that it is lent.
    fn desk(&mut self, now: Instant, id: PeerId) -> (&mut Peer, Desk<'_>) {
        let Self { peers, rng, counters, out, events, .. } = self;
        (&mut peers[id.0], Desk { now, id, rng: &mut **rng, counters, out, events })
    }

    fn free_index(&mut self) -> u32 {
        loop {
            let index = self.rng.next_u32();
            if !self.by_index.contains_key(&index) {
                return index;
            }
        }
    }

    /// Opens a data datagram.
    fn open(
        &mut self,
        now: Instant,
        receiver: u32,
        nonce: u64,
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Option<(PeerId, Slot, Opened)> {
        let id = self.by_index.get(&receiver).copied();
        let found = id.and_then(|id| Some((id, self.peers[id.0].keys.find(receiver)?)));
        let Some((id, (slot, keys))) = found.filter(|(_, (_, keys))| !keys.is_over(now)) else {
            self.counters.unknown_keys += 1;
            return None;
        };
        match keys.open(nonce, sealed, plain) {
            Ok(opened) => Some((id, slot, opened)),
            Err(why) => {
                self.counters.unopened(why);
                None
            }
        }
    }

    /// Takes the content of a datagram that is authenticated.
    fn take(
        &mut self,
        now: Instant,
        from: SocketAddr,
        len: usize,
        (id, slot, opened): (PeerId, Slot, Opened),
        plain: &mut Vec<u8>,
    ) -> Option<Arrival> {
        let peer = &mut self.peers[id.0];
        if slot == Slot::Next {
            let mut incarnation = [0; 8];
            self.rng.fill_bytes(&mut incarnation);
            if let Some(index) = peer.keys.confirm() {
                self.by_index.remove(&index);
            }
            self.counters.handshakes += 1;
            if peer.begin(incarnation) {
                self.events.push_back(PeerEvent::Began(id));
            }
        }
        let datagram = Authentic { from, len, opened, is_current: slot != Slot::Previous };
        let (peer, mut desk) = self.desk(now, id);
        let is_packet = peer.receive(&mut desk, datagram, plain);
        let peer = &self.peers[id.0];
        self.next = self.next.min(peer.next_timeout());
        is_packet.then_some(Arrival { peer: id, path: opened.path })
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = Instant::MAX;
        for id in (0..self.peers.len()).map(PeerId) {
            let peer = &mut self.peers[id.0];
            peer.keys.expire(now, |index| {
                self.by_index.remove(&index);
            });
            if peer.keys.is_empty() && peer.is_given_up(now) {
                self.events.push_back(PeerEvent::Ended(id));
            }
            let (peer, mut desk) = self.desk(now, id);
            peer.handle_timeout(&mut desk);
            self.next = self.next.min(self.peers[id.0].next_timeout());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::KeyFile;
    use crate::noise::FIRST;
    use crate::pieces::Pieces;
    use crate::{Client, ClientSettings, Secret};
    use chacha20::ChaCha20Rng;
    use core::net::Ipv4Addr;
    use rand_core::SeedableRng as _;

    const P0: PathId = PathId(0);
    const P1: PathId = PathId(1);
    const NOW: Instant = Instant::from_millis(1);

    fn random(n: u8) -> Box<ChaCha20Rng> {
        Box::new(ChaCha20Rng::from_seed([n; 32]))
    }

    fn key(n: u8) -> KeyFile {
        KeyFile { key: StaticKey::new(Secret::new([n; 32])), preshared: Secret::new([n; 32]) }
    }

    fn client(n: u8) -> Client {
        let KeyFile { key: own, preshared } = key(n);
        Client::new(ClientSettings { key: own, preshared, server: key(1).key.public(), epoch: 0 }, random(n))
    }

    fn server() -> Server {
        let clients = [2, 3].map(|n| {
            let KeyFile { key, preshared } = key(n);
            files::Client { public: key.public(), preshared, name: format!("client-{n}") }
        });
        let settings = ServerSettings {
            key: key(1).key,
            clients: clients.into(),
            limits: Limits::default(),
            keep: Duration::ZERO,
        };
        Server::new(settings, random(1))
    }

    fn home(n: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, n], 1))
    }

    fn joined(server: &mut Server, n: u8) -> Client {
        let (mut client, mut packet) = (client(n), Vec::new());
        assert!(client.add_path(NOW, P0) && client.add_path(NOW, P1));
        client.handle_timeout(NOW);
        for _ in 0..4 {
            while let Some((_, datagram)) = client.poll_transmit() {
                server.handle_datagram(NOW, home(n), &datagram, &mut packet);
            }
            while let Some((_, datagram)) = server.poll_transmit() {
                client.handle_datagram(NOW, &datagram, &mut packet);
            }
        }
        assert!(client.is_established());
        client
    }

    fn packet(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
        [&[0x45; 12][..], &source.octets(), &destination.octets()].concat()
    }

    #[test]
    fn a_hostile_client_cannot_send_with_foreign_addresses() {
        let mut server = server();
        let (victim, mut hostile) = (joined(&mut server, 2).addresses(), joined(&mut server, 3));
        let own = hostile.addresses();
        assert_ne!(victim, own);
        let mut take = |packet: &[u8]| {
            hostile.push(NOW, P0, packet);
            let (_, datagram) = hostile.poll_transmit().unwrap();
            let before = server.counters();
            let arrival = server.handle_datagram(NOW, home(3), &datagram, &mut Vec::new());
            (arrival, server.counters().foreign - before.foreign)
        };
        for foreign in [
            packet(victim.client(P0), own.server()),
            packet(victim.client(P0), victim.server()),
            packet(own.client(P1), own.server()),
            packet(own.client(P0), victim.client(P0)),
            packet(own.server(), own.server()),
        ] {
            assert_eq!(take(&foreign), (None, 1), "{foreign:?}");
        }
        // In two pieces, too.
        let mut pieces = Pieces::default();
        let [first, last] = pieces.cut(&packet(victim.client(P0), own.server()), 20).unwrap();
        assert_eq!([take(&first), take(&last)], [(None, 0), (None, 1)]);
        let arrival = Arrival { peer: PeerId(1), path: P0 };
        let [first, last] = pieces.cut(&packet(own.client(P0), own.server()), 20).unwrap();
        assert_eq!([take(&first), take(&last)], [(None, 0), (Some(arrival), 0)]);
        assert_eq!(take(&packet(own.client(P0), own.server())), (Some(arrival), 0));
    }

    #[test]
    fn strangers_leave_nothing_behind() {
        let mut server = server();
        let mut bytes = [0; 8 + FIRST];
        for n in 0..200u32 {
            // One is not authorised, one has a valid `mac1` and nothing else.
            let mut stranger = client(4);
            stranger.add_path(NOW, P0);
            stranger.handle_timeout(NOW);
            let (_, datagram) = stranger.poll_transmit().unwrap();
            server.rng.fill_bytes(&mut bytes);
            let (forged, _) = crate::format::initiation(n, bytes[8..].try_into().unwrap(), &server.ours, None);
            for datagram in [datagram, forged] {
                server.handle_datagram(Instant::from_millis(u64::from(n) * 100), home(4), &datagram, &mut Vec::new());
            }
        }
        assert_eq!((server.counters.unauthorized, server.counters.bad_handshakes), (200, 200));
        assert!(server.by_index.is_empty() && server.out.is_empty() && server.events.is_empty());
        assert!(server.peers.iter().all(|peer| peer.keys.is_empty()) && server.next == Instant::MAX);
    }

    #[test]
    fn an_ended_session_leaves_no_index_behind() {
        let mut server = server();
        let client = joined(&mut server, 2);
        assert_eq!(server.by_index.len(), 1);
        drop(client);
        server.handle_timeout(NOW + crate::keypair::LAST_AGE);
        assert!(server.by_index.is_empty());
        server.events.retain(|event| !matches!(event, PeerEvent::Resized(..)));
        assert_eq!(server.events, [PeerEvent::Began(PeerId(0)), PeerEvent::Ended(PeerId(0))]);
    }
}
