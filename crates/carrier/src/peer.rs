//! A server's state for one authorised client.

use crate::files;
use crate::format::{Content, OVERHEAD};
use crate::inner::is_between;
use crate::keypair::{Keys, Opened};
use crate::mtu::{BASE, Search};
use crate::noise::SESSION;
use crate::path::probe;
use crate::route::{Due, Route};
use crate::time::Timestamp;
use crate::{Addresses, Counters, MAX_DATAGRAM, MAX_PATHS, Unsent};
use anabranch_units::{Duration, Instant, PathId};
use rand_core::CryptoRng;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A client makes no more than one handshake in this time.
const HANDSHAKE_GAP: Duration = Duration::from_millis(20);

/// The parts of a server that it lends a peer for one call.
pub(crate) struct Desk<'a> {
    pub now: Instant,
    pub rng: &'a mut dyn CryptoRng,
    pub counters: &'a mut Counters,
    pub out: &'a mut VecDeque<(SocketAddr, Vec<u8>)>,
}

#[derive(Debug)]
struct PeerPath {
    route: Route,
    /// Once the route is proven.
    mtu: Option<Search>,
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub client: files::Client,
    /// Of its last handshake, and when that came.
    last: Timestamp,
    came: Option<Instant>,
    pub keys: Keys,
    /// The session of the keys in use, and of those that wait to be confirmed.
    session: Option<[u8; SESSION]>,
    proposed: [u8; SESSION],
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

    /// The keys that waited are in use. True if another session begins with them.
    pub fn begin(&mut self) -> bool {
        self.keyless = None;
        let is_other = self.session.replace(self.proposed) != Some(self.proposed);
        if is_other {
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

    /// Takes the content of an authenticated datagram. True if it is a packet.
    pub fn receive(&mut self, desk: &mut Desk<'_>, datagram: Authentic, plain: &[u8]) -> bool {
        let id = datagram.opened.path;
        self.follow(desk, datagram);
        let Some(content) = Content::parse(plain) else {
            desk.counters.unknown_contents += 1;
            return false;
        };
        let path = &mut self.paths[id.index()];
        match content {
            Content::Packet(packet) if is_between(packet, self.addresses.client(id), self.addresses.server()) => {
                desk.counters.delivered += 1;
                return true;
            }
            Content::Packet(_) => desk.counters.foreign += 1,
            Content::Nothing => {}
            Content::Challenge(token) => self.push(desk, id, &Content::Answer(token).bytes()),
            Content::Probe(number) => self.push(desk, id, &Content::ProbeSeen(number).bytes()),
            Content::ProbeSeen(number) => {
                path.iter_mut().filter_map(|path| path.mtu.as_mut()).for_each(|mtu| mtu.seen(desk.now, number));
            }
            Content::Answer(token) => path.iter_mut().for_each(|path| path.answered(desk.now, datagram.from, token)),
        }
        false
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
                *path = Some(PeerPath { route: Route::begin(desk.now, from, len, token()), mtu: None });
            }
            None => {}
        }
        self.challenge_due(desk, opened.path);
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

    /// Seals a packet.
    pub fn send(
        &mut self,
        now: Instant,
        id: PathId,
        packet: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Result<SocketAddr, Unsent> {
        if !is_between(packet, self.addresses.server(), self.addresses.client(id)) {
            return Err(Unsent::Foreign);
        }
        if packet.len() > self.max_packet(id).ok_or(Unsent::NoPath)? {
            return Err(Unsent::TooLarge);
        }
        self.seal(now, id, packet, datagram)
    }

    fn path(&self, id: PathId) -> Option<&PeerPath> {
        self.paths.get(id.index())?.as_ref()
    }

    /// Bytes of the largest packet that a path takes.
    pub fn max_packet(&self, id: PathId) -> Option<usize> {
        Some(self.path(id)?.mtu.as_ref().map_or(BASE, Search::usable) - OVERHEAD)
    }

    /// A path's address, and whether it has answered.
    pub fn address(&self, id: PathId) -> Option<(SocketAddr, bool)> {
        self.path(id).map(|path| (path.route.address(), path.route.is_proven()))
    }

    /// Sends the challenges and probes that are due.
    pub fn handle_timeout(&mut self, desk: &mut Desk<'_>) {
        for id in (0..MAX_PATHS as u8).map(PathId) {
            self.challenge_due(desk, id);
            let due = self.paths[id.index()].as_mut().and_then(|path| path.mtu.as_mut()?.due(desk.now));
            if let Some((number, size)) = due {
                self.push(desk, id, &probe(number, size));
            }
        }
    }

    pub fn next_timeout(&self) -> Instant {
        let of_path = |path: &PeerPath| path.route.next().min(path.mtu.as_ref().map_or(Instant::MAX, Search::next));
        let paths = self.paths.iter().flatten().map(of_path);
        let end = self.keyless.filter(|_| self.session.is_some()).map_or(Instant::MAX, |since| since + self.keep);
        paths.chain([self.keys.next_expiry(), end]).min().unwrap_or(Instant::MAX)
    }
}

impl PeerPath {
    fn answered(&mut self, now: Instant, from: SocketAddr, token: [u8; 8]) {
        self.route.answered(from, token);
        if self.route.is_proven() {
            self.mtu.get_or_insert_with(|| Search::begin(now, MAX_DATAGRAM));
        }
    }
}
