//! A server's state for one authorised client.

use crate::format::{Content, OVERHEAD};
use crate::inner::is_between;
use crate::keypair::{Keys, Opened};
use crate::mtu::{BASE, Search};
use crate::noise::SESSION;
use crate::path::probe;
use crate::pieces::Pieces;
use crate::route::{Due, Route};
use crate::time::Timestamp;
use crate::{Addresses, Arrival, Counters, MAX_DATAGRAM, MAX_PATHS, PeerEvent, PeerId, Unsent, files};
use anabranch_units::{Duration, Instant, PathId};
use rand_core::CryptoRng;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A client makes no more than one handshake in this time.
const HANDSHAKE_GAP: Duration = Duration::from_millis(20);

/// The parts of a server that it lends a peer for one call.
pub(crate) struct Desk<'a> {
    pub now: Instant,
    /// The peer's name.
    pub id: PeerId,
    pub rng: &'a mut dyn CryptoRng,
    pub counters: &'a mut Counters,
    pub out: &'a mut VecDeque<(SocketAddr, Vec<u8>)>,
    pub events: &'a mut VecDeque<PeerEvent>,
}

#[derive(Debug)]
struct PeerPath {
    route: Route,
    /// The search of the address, once the address is proven.
    mtu: Option<(SocketAddr, Search)>,
    /// The largest packet, in bytes, as it was last reported.
    told: usize,
    pieces: Pieces,
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub client: files::Client,
    /// Timestamp of the last handshake, and when that came.
    last: Timestamp,
    came: Option<Instant>,
    pub keys: Keys,
    /// The session of the keys in use, and of those that wait to be confirmed.
    session: Option<[u8; SESSION]>,
    proposed: [u8; SESSION],
    /// Our number of it: a server that has forgotten the session has another one.
    incarnation: [u8; 8],
    pub addresses: Addresses,
    paths: [Option<PeerPath>; MAX_PATHS],
    /// How long the session remains without keys, and since when it has none.
    keep: Duration,
    keyless: Option<Instant>,
}

/// A datagram that is authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authentic {
    pub from: SocketAddr,
    /// Bytes of the whole datagram.
    pub len: usize,
    pub opened: Opened,
    /// The keys are those in use.
    pub is_current: bool,
}

impl Peer {
    pub fn new(client: files::Client, keep: Duration) -> Self {
        let addresses = Addresses::of(&[0; SESSION], &client.public);
        Self {
            client,
            last: Timestamp::default(),
            came: None,
            keys: Keys::default(),
            session: None,
            proposed: [0; SESSION],
            incarnation: [0; 8],
            addresses,
            paths: [const { None }; MAX_PATHS],
            keep,
            keyless: None,
        }
    }

    /// True if a handshake is later than all before it; it is the last then.
    pub fn advance(&mut self, now: Instant, timestamp: Timestamp) -> bool {
        let fits = timestamp > self.last && self.came.is_none_or(|came| now.since(came) >= HANDSHAKE_GAP);
        if fits {
            (self.last, self.came) = (timestamp, Some(now));
        }
        fits
    }

    pub fn propose(&mut self, session: [u8; SESSION]) {
        self.proposed = session;
    }

    /// The keys that waited are in use. True if another session begins with them, which has this number then.
    pub fn begin(&mut self, incarnation: [u8; 8]) -> bool {
        self.keyless = None;
        let is_other = self.session.replace(self.proposed) != Some(self.proposed);
        if is_other {
            self.incarnation = incarnation;
            self.addresses = Addresses::of(&self.proposed, &self.client.public);
            self.paths = [const { None }; MAX_PATHS];
        }
        is_other
    }

    /// The session, if there is one, has no keys. True if it ends for that.
    pub fn is_given_up(&mut self, now: Instant) -> bool {
        let since = *self.keyless.get_or_insert(now);
        let ends = self.session.is_some() && now.since(since) >= self.keep;
        if ends {
            self.paths = [const { None }; MAX_PATHS];
            self.session = None;
        }
        ends
    }

    /// Takes the content of an authenticated datagram. True if `plain` is a packet then.
    pub fn receive(&mut self, desk: &mut Desk<'_>, datagram: Authentic, plain: &mut Vec<u8>) -> bool {
        let id = datagram.opened.path;
        self.follow(desk, datagram);
        let Some(content) = Content::parse(plain) else {
            desk.counters.unknown_contents += 1;
            return false;
        };
        let path = &mut self.paths[id.index()];
        match content {
            Content::Packet(packet) => return self.on_packet(desk, id, packet),
            Content::Piece(piece) => {
                let joined = path.as_mut().and_then(|path| path.pieces.join(piece));
                return joined.is_some_and(|packet| {
                    *plain = packet;
                    self.on_packet(desk, id, plain)
                });
            }
            Content::Nothing => {}
            Content::Challenge(token) => {
                self.push(desk, id, &Content::Answer(token).bytes());
                self.push(desk, id, &Content::Incarnation(self.incarnation).bytes());
            }
            // Only servers have one.
            Content::Incarnation(_) => desk.counters.unknown_contents += 1,
            Content::Probe(number) => self.push(desk, id, &Content::ProbeSeen(number).bytes()),
            Content::ProbeSeen(number) => {
                path.iter_mut().filter_map(|path| path.mtu.as_mut()).for_each(|(_, mtu)| mtu.seen(desk.now, number));
            }
            Content::Answer(token) => path.iter_mut().for_each(|path| path.route.answered(datagram.from, token)),
        }
        self.resize(desk, id);
        false
    }

    fn on_packet(&self, desk: &mut Desk<'_>, id: PathId, packet: &[u8]) -> bool {
        let fits = is_between(packet, self.addresses.client(id), self.addresses.server());
        *if fits { &mut desk.counters.delivered } else { &mut desk.counters.foreign } += 1;
        fits
    }

    /// Another address begins another search; an event reports if the path's largest packet has changed.
    fn resize(&mut self, desk: &mut Desk<'_>, id: PathId) {
        let Some(path) = &mut self.paths[id.index()] else { return };
        let proven = path.route.is_proven().then(|| path.route.address());
        if path.mtu.as_ref().map(|(address, _)| *address) != proven {
            path.mtu = proven.map(|address| (address, Search::begin(desk.now, MAX_DATAGRAM)));
        }
        let now = path.max_packet();
        if core::mem::replace(&mut path.told, now) != now {
            desk.events.push_back(PeerEvent::Resized(Arrival { peer: desk.id, path: id }, now));
        }
    }

    /// The path's address, as an authenticated datagram shows it.
    fn follow(&mut self, desk: &mut Desk<'_>, Authentic { from, len, opened, is_current }: Authentic) {
        let path = &mut self.paths[opened.path.index()];
        let mut token = || desk.rng.next_u64().to_le_bytes();
        match path {
            Some(path) => {
                let moves = path.route.heard(desk.now, from, len, opened.is_highest && is_current, token);
                desk.counters.moved += u64::from(moves);
            }
            None if is_current => {
                let route = Route::begin(desk.now, from, len, token());
                *path = Some(PeerPath { route, mtu: None, told: 0, pieces: Pieces::default() });
            }
            None => {}
        }
        self.challenge_due(desk, opened.path);
        self.resize(desk, opened.path);
    }

    fn challenge_due(&mut self, desk: &mut Desk<'_>, id: PathId) {
        let path = &mut self.paths[id.index()];
        match path.as_mut().map(|path| path.route.due(desk.now)) {
            Some(Due::Challenge(token)) => self.push(desk, id, &Content::Challenge(token).bytes()),
            Some(Due::Lost) => *path = None,
            _ => {}
        }
    }

    fn push(&mut self, desk: &mut Desk<'_>, id: PathId, plain: &[u8]) {
        let mut datagram = Vec::new();
        if let Ok(to) = self.seal(desk.now, id, plain, &mut datagram) {
            desk.out.push_back((to, datagram));
        }
    }

    /// Seals `plain` for the address of a path.
    fn seal(&mut self, now: Instant, id: PathId, plain: &[u8], datagram: &mut Vec<u8>) -> Result<SocketAddr, Unsent> {
        let path = self.paths.get_mut(id.index()).and_then(Option::as_mut).ok_or(Unsent::NoPath)?;
        let keys = self.keys.in_use(now).ok_or(Unsent::NoSession)?;
        if !path.route.spend(plain.len() + OVERHEAD) {
            return Err(Unsent::HeldBack);
        }
        if keys.seal(id, plain, datagram) { Ok(path.route.address()) } else { Err(Unsent::NoSession) }
    }

    /// Seals a packet; `None` if it is in `desk.out`, in two pieces.
    pub fn send(
        &mut self,
        desk: &mut Desk<'_>,
        id: PathId,
        packet: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Result<Option<SocketAddr>, Unsent> {
        if !is_between(packet, self.addresses.server(), self.addresses.client(id)) {
            return Err(Unsent::Foreign);
        }
        let path = self.paths.get_mut(id.index()).and_then(Option::as_mut).ok_or(Unsent::NoPath)?;
        let most = path.max_packet();
        if packet.len() <= most {
            path.mtu.iter_mut().for_each(|(_, mtu)| mtu.note_sent(packet.len() + OVERHEAD));
            return self.seal(desk.now, id, packet, datagram).map(Some);
        }
        let pieces = path.pieces.cut(packet, most).ok_or(Unsent::TooLarge)?;
        for piece in &pieces {
            let to = self.seal(desk.now, id, piece, datagram)?;
            desk.out.push_back((to, core::mem::take(datagram)));
        }
        desk.counters.cut += 1;
        Ok(None)
    }

    fn path(&self, id: PathId) -> Option<&PeerPath> {
        self.paths.get(id.index())?.as_ref()
    }

    /// Bytes of the largest packet that a path takes.
    pub fn max_packet(&self, id: PathId) -> Option<usize> {
        self.path(id).map(PeerPath::max_packet)
    }

    /// A path's address, and whether it has answered.
    pub fn address(&self, id: PathId) -> Option<(SocketAddr, bool)> {
        self.path(id).map(|path| (path.route.address(), path.route.is_proven()))
    }

    /// Sends the challenges and probes that are due.
    pub fn handle_timeout(&mut self, desk: &mut Desk<'_>) {
        for id in (0..MAX_PATHS as u8).map(PathId) {
            self.challenge_due(desk, id);
            self.resize(desk, id);
            let due = self.paths[id.index()].as_mut().and_then(|path| path.mtu.as_mut()?.1.due(desk.now));
            if let Some((number, size)) = due {
                self.push(desk, id, &probe(number, size));
            }
            self.resize(desk, id);
        }
    }

    pub fn next_timeout(&self) -> Instant {
        let paths = self.paths.iter().flatten().map(PeerPath::next);
        let end = self.keyless.filter(|_| self.session.is_some()).map_or(Instant::MAX, |since| since + self.keep);
        paths.chain([self.keys.next_expiry(), end]).min().unwrap_or(Instant::MAX)
    }
}

impl PeerPath {
    /// Bytes of the largest packet that travels whole.
    fn max_packet(&self) -> usize {
        self.mtu.as_ref().map_or(BASE, |(_, mtu)| mtu.usable()) - OVERHEAD
    }

    /// When something is due.
    fn next(&self) -> Instant {
        self.mtu.as_ref().map_or(Instant::MAX, |(_, mtu)| mtu.next()).min(self.route.next())
    }
}
