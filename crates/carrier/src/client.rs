//! The end that connects: one session with one server, over several paths.

use crate::format::{Content, Initiation, Message, Response, initiation};
use crate::inner::is_between;
use crate::keypair::{Keypair, Keys, Opened, Slot};
use crate::macs::{Cookie, Door, Tag};
use crate::noise::{Initiator, Payload, SESSION, Work};
use crate::path::{Path, PathStatus, probe};
use crate::time::Timestamps;
use crate::{Addresses, Counters, MAX_PATHS, PublicKey, Secret, StaticKey, Unsent};
use anabranch_units::{Duration, Instant, PathId};
use rand_core::CryptoRng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

/// The first repeat of a handshake, and the longest time between two.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(16);
/// After so long without an answer a new handshake begins: a server that was started again has forgotten the session. Programs wait
/// meanwhile, and a handshake in vain costs two datagrams.
const SILENCE: Duration = Duration::from_secs(2);

/// The server, and our keys.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Our key.
    pub key: StaticKey,
    /// The pre-shared key that the server has for it.
    pub preshared: Secret,
    /// The server's key.
    pub server: PublicKey,
    /// Wall time at [`Instant::ZERO`], in nanoseconds after the beginning of 1970: handshakes have timestamps that grow, also
    /// from one process to the next.
    pub epoch: u128,
}

#[derive(Debug)]
struct Attempt {
    initiator: Initiator,
    path: PathId,
    index: u32,
    mac1: Tag,
    /// The attempt had a `mac2`.
    marked: bool,
}

/// A client.
pub struct Client {
    settings: ClientSettings,
    theirs: Door,
    ours: Door,
    rng: Box<dyn CryptoRng + Send>,
    timestamps: Timestamps,
    session: [u8; SESSION],
    addresses: Addresses,
    keys: Keys,
    /// The server's number of the session, once it is known.
    incarnation: Option<[u8; 8]>,
    /// The incarnation has changed, which was not polled yet.
    is_forgotten: bool,
    paths: BTreeMap<PathId, Path>,
    attempt: Option<Attempt>,
    tries: u32,
    /// When the attempt is given up for the next.
    retry: Instant,
    /// The path of the next attempt, if it has just got a cookie.
    repeat: Option<PathId>,
    /// Something was sent then, and nothing came since.
    waiting: Option<Instant>,
    /// When something of the server's came last, over any path.
    heard: Option<Instant>,
    out: VecDeque<(PathId, Vec<u8>)>,
    /// Paths that carry larger or smaller packets than before.
    resized: VecDeque<(PathId, usize)>,
    counters: Counters,
    work: Work,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("addresses", &self.addresses)
            .field("paths", &self.paths.keys())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client without paths, in a session of its own. `rng` must be unpredictable.
    pub fn new(settings: ClientSettings, mut rng: Box<dyn CryptoRng + Send>) -> Self {
        let mut session = [0; SESSION];
        rng.fill_bytes(&mut session);
        Self {
            theirs: Door::of(&settings.server),
            ours: Door::of(&settings.key.public()),
            timestamps: Timestamps::new(settings.epoch),
            addresses: Addresses::of(&session, &settings.key.public()),
            session,
            rng,
            settings,
            keys: Keys::default(),
            incarnation: None,
            is_forgotten: false,
            paths: BTreeMap::new(),
            attempt: None,
            tries: 0,
            retry: Instant::ZERO,
            repeat: None,
            waiting: None,
            heard: None,
            out: VecDeque::new(),
            resized: VecDeque::new(),
            counters: Counters::default(),
            work: Work::default(),
        }
    }

    /// The addresses that packets of this session have.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Adds a path, or begins again with one whose network has changed; a handshake without an answer is repeated over it at once.
    /// False if its id is not below [`MAX_PATHS`].
    pub fn add_path(&mut self, now: Instant, id: PathId) -> bool {
        let fits = id.index() < MAX_PATHS;
        if fits {
            let path = Path::begin(now);
            self.resized.push_back((id, path.max_packet()));
            self.paths.insert(id, path);
            if self.attempt.is_some() {
                (self.retry, self.repeat) = (now, Some(id));
            }
        }
        fits
    }

    /// Forgets a path.
    pub fn remove_path(&mut self, id: PathId) {
        self.paths.remove(&id);
    }

    /// There are keys to send with.
    pub fn is_established(&self) -> bool {
        self.keys.current.is_some()
    }

    /// A path's state; `None` if there is no such path.
    pub fn path(&self, id: PathId) -> Option<PathStatus> {
        let path = self.paths.get(&id)?;
        Some(PathStatus { rtt: path.rtt, answers: path.answers, heard: path.heard, max_packet: path.max_packet() })
    }

    /// When something came last of the server's, over any path.
    pub fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Challenges a path now; an earlier challenge that is not answered yet is given up. [`PathStatus`] has the result.
    pub fn challenge(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.paths.get_mut(&id) {
            path.renew(now);
        }
    }

    /// Counts of all that came and was refused.
    pub fn counters(&self) -> Counters {
        Counters { multiplications: self.work.load(Ordering::Relaxed), ..self.counters }
    }

    /// Seals an IPv4 packet from [`Addresses::client`] of the path to [`Addresses::server`] in `datagram`, whose old content is
    /// lost. Where the path does not carry it whole, `datagram` remains empty, and [`Self::poll_transmit`] gives two that carry it.
    ///
    /// # Errors
    /// The packet cannot be sent now; it is lost.
    pub fn send(&mut self, now: Instant, id: PathId, packet: &[u8], datagram: &mut Vec<u8>) -> Result<(), Unsent> {
        datagram.clear();
        let path = self.paths.get_mut(&id).ok_or(Unsent::NoPath)?;
        if !is_between(packet, self.addresses.client(id), self.addresses.server()) {
            self.counters.foreign += 1;
            return Err(Unsent::Foreign);
        }
        let keys = self.keys.in_use(now).ok_or(Unsent::NoSession)?;
        let most = path.max_packet();
        if packet.len() > most {
            let Some(pieces) = path.pieces.cut(packet, most) else {
                self.counters.too_large += 1;
                return Err(Unsent::TooLarge);
            };
            self.counters.cut += 1;
            pieces.iter().for_each(|piece| self.push(now, id, piece));
        } else if keys.seal(id, packet, datagram) {
            path.mtu.iter_mut().for_each(|mtu| mtu.note_sent(datagram.len()));
        } else {
            return Err(Unsent::NoSession);
        }
        self.counters.sent += 1;
        self.waiting.get_or_insert(now);
        Ok(())
    }

    /// The next datagram to send, with its path. At most one for each that came, a few when time has passed, and the pieces of packets.
    pub fn poll_transmit(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.out.pop_front()
    }

    /// A path whose largest packet that travels whole, in bytes, has changed.
    pub fn poll_resized(&mut self) -> Option<(PathId, usize)> {
        self.resized.pop_front()
    }

    /// The server began the session again, after a start or a long silence: what it knew of connections is lost. True once.
    pub fn poll_forgotten(&mut self) -> bool {
        core::mem::take(&mut self.is_forgotten)
    }

    pub(crate) fn push(&mut self, now: Instant, path: PathId, plain: &[u8]) {
        let mut datagram = Vec::new();
        let keys = self.keys.in_use(now);
        if keys.is_some_and(|keys| keys.seal(path, plain, &mut datagram)) {
            self.out.push_back((path, datagram));
        }
    }

    /// Takes a datagram. If it has a packet, that is in `packet`, whose old content is lost, and its path is returned.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8], packet: &mut Vec<u8>) -> Option<PathId> {
        match Message::parse(datagram) {
            Some(Message::Data { receiver, nonce, sealed }) => self.on_data(now, receiver, nonce, sealed, packet),
            Some(Message::Response(response)) => {
                self.on_response(now, response);
                None
            }
            Some(Message::Cookie { receiver, nonce, sealed }) => {
                let attempt = self.attempt.as_ref().filter(|attempt| attempt.index == receiver);
                let opened = attempt.and_then(|a| Some((a.path, a.marked, self.theirs.open(nonce, sealed, &a.mac1)?)));
                match opened {
                    Some((path, marked, tag)) => self.on_cookie(now, path, marked, tag),
                    None => self.counters.bad_macs += 1,
                }
                None
            }
            Some(Message::Initiation(Initiation { .. })) => {
                self.counters.bad_handshakes += 1;
                None
            }
            None => {
                self.counters.malformed += 1;
                None
            }
        }
    }

    /// A cookie holds for one source address, so it belongs to the path of the message that it replies to.
    fn on_cookie(&mut self, now: Instant, id: PathId, marked: bool, tag: Tag) {
        self.counters.cookies += 1;
        let Some(path) = self.paths.get_mut(&id) else { return };
        path.cookie = Some(Cookie { tag, since: now });
        // A message that had a cookie already is not repeated at once: two hosts must not keep each other busy.
        if !marked {
            (self.retry, self.repeat) = (now, Some(id));
        }
    }

    fn on_response(&mut self, now: Instant, response: Response<'_>) {
        if !self.ours.is_mac1(response.tags.covered, response.tags.mac1) {
            self.counters.bad_macs += 1;
            return;
        }
        let awaited = self.attempt.take_if(|attempt| attempt.index == response.receiver);
        let Some(mut attempt) = awaited else {
            self.counters.bad_handshakes += 1;
            return;
        };
        if attempt.initiator.finish(response.noise).is_err() {
            self.counters.bad_handshakes += 1;
            self.attempt = Some(attempt);
            return;
        }
        let Ok(transport) = attempt.initiator.transport() else { return };
        self.keys.adopt(Keypair::new(transport, attempt.index, response.sender, now));
        self.counters.handshakes += 1;
        (self.tries, self.repeat, self.waiting) = (0, None, None);
        // The server uses the new keys from the first datagram on that they protect, and learns each path's address.
        self.paths.values_mut().for_each(|path| path.renew(now));
        self.challenge_due(now);
    }

    fn on_data(
        &mut self,
        now: Instant,
        receiver: u32,
        nonce: u64,
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Option<PathId> {
        let Some((slot, keys)) = self.keys.find(receiver).filter(|(_, keys)| !keys.is_over(now)) else {
            self.counters.unknown_keys += 1;
            return None;
        };
        match keys.open(nonce, sealed, plain) {
            Ok(Opened { path, .. }) => self.on_content(now, path, slot, plain),
            Err(why) => {
                self.counters.unopened(why);
                None
            }
        }
    }

    fn on_content(&mut self, now: Instant, id: PathId, slot: Slot, plain: &mut Vec<u8>) -> Option<PathId> {
        let (Some(path), Some(content)) = (self.paths.get_mut(&id), Content::parse(plain)) else {
            self.counters.unknown_contents += 1;
            return None;
        };
        (self.waiting, self.heard, path.heard) = (None, Some(now), Some(now));
        match content {
            Content::Packet(packet) => return self.on_packet(id, packet),
            Content::Piece(piece) => {
                *plain = path.pieces.join(piece)?;
                return self.on_packet(id, plain);
            }
            Content::Nothing => {}
            Content::Challenge(token) => self.push(now, id, &Content::Answer(token).bytes()),
            Content::Probe(number) => self.push(now, id, &Content::ProbeSeen(number).bytes()),
            Content::ProbeSeen(number) => {
                self.resize(id, |path| path.mtu.iter_mut().for_each(|mtu| mtu.seen(now, number)))
            }
            Content::Answer(token) => path.answered(now, token),
            // A late one, under the keys before, is of an earlier session perhaps.
            Content::Incarnation(incarnation) if slot == Slot::Current => {
                let before = self.incarnation.replace(incarnation);
                self.is_forgotten |= before.is_some_and(|before| before != incarnation);
            }
            Content::Incarnation(_) => {}
        }
        None
    }

    fn on_packet(&mut self, id: PathId, packet: &[u8]) -> Option<PathId> {
        let fits = is_between(packet, self.addresses.server(), self.addresses.client(id));
        *if fits { &mut self.counters.delivered } else { &mut self.counters.foreign } += 1;
        fits.then_some(id)
    }

    /// Does with a path what may change its largest packet.
    fn resize<T: Default>(&mut self, id: PathId, act: impl FnOnce(&mut Path) -> T) -> T {
        let Some(path) = self.paths.get_mut(&id) else { return T::default() };
        let before = path.max_packet();
        let result = act(path);
        let after = path.max_packet();
        if after != before {
            self.resized.push_back((id, after));
        }
        result
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.keys.expire(now, |_| {});
        if self.next_handshake() <= now {
            self.begin(now);
        }
        self.challenge_due(now);
        self.probe_due(now);
    }

    /// When [`Self::handle_timeout`] must be called next; [`Instant::MAX`] for never.
    pub fn poll_timeout(&self) -> Instant {
        let times = [self.next_handshake(), self.keys.next_expiry()];
        let paths = self.paths.values().filter(|_| self.is_established());
        paths.map(Path::next).chain(times).min().unwrap_or(Instant::MAX)
    }

    fn next_handshake(&self) -> Instant {
        match &self.keys.current {
            _ if self.paths.is_empty() => Instant::MAX,
            _ if self.attempt.is_some() => self.retry,
            None => Instant::ZERO,
            Some(keys) => keys.renewal().min(self.waiting.map_or(Instant::MAX, |since| since + SILENCE)),
        }
    }

    /// The path of the next attempt. The repeat with a cookie is no attempt of its own: those take the paths in turn.
    fn next_path(&mut self) -> Option<PathId> {
        if let Some(id) = self.repeat.take().filter(|id| self.paths.contains_key(id)) {
            return Some(id);
        }
        let next = self.tries as usize % self.paths.len().max(1);
        self.tries += 1;
        self.paths.keys().nth(next).copied()
    }

    /// Sends message 1.
    fn begin(&mut self, now: Instant) {
        let delay = RETRY.as_nanos() << self.tries.min(4);
        let Some(path) = self.next_path() else { return };
        let mut ephemeral = [0; crate::KEY_LEN];
        self.rng.fill_bytes(&mut ephemeral);
        let index = loop {
            let index = self.rng.next_u32();
            if self.keys.find(index).is_none() {
                break index;
            }
        };
        let payload = Payload { timestamp: self.timestamps.next(now), session: self.session };
        let ClientSettings { key, preshared, server, .. } = &self.settings;
        let begun = Initiator::begin(key, server, preshared, ephemeral, payload, &self.work);
        let cookie = self.paths[&path].cookie.filter(|cookie| cookie.is_fresh(now)).map(|cookie| cookie.tag);
        if let Ok((initiator, noise)) = begun {
            let (datagram, mac1) = initiation(index, &noise, &self.theirs, cookie.as_ref());
            self.out.push_back((path, datagram));
            self.attempt = Some(Attempt { initiator, path, index, mac1, marked: cookie.is_some() });
        }
        // Clients that lost their server together do not return together.
        let jitter = u64::from(self.rng.next_u32()) % (RETRY.as_nanos() / 3);
        self.retry = now + Duration::from_nanos(delay.min(MAX_RETRY.as_nanos()) + jitter);
    }

    fn challenge_due(&mut self, now: Instant) {
        if !self.is_established() {
            return;
        }
        let due: Vec<PathId> = self.paths.iter().filter(|(_, path)| path.at <= now).map(|(id, _)| *id).collect();
        for id in due {
            let token = self.rng.next_u64().to_le_bytes();
            self.push(now, id, &Content::Challenge(token).bytes());
            self.waiting.get_or_insert(now);
            if let Some(path) = self.paths.get_mut(&id) {
                path.challenged(now, token);
            }
        }
    }

    fn probe_due(&mut self, now: Instant) {
        let all: Vec<PathId> = self.paths.keys().copied().collect();
        for id in all {
            if let Some((number, size)) = self.resize(id, |path| path.mtu.as_mut()?.due(now)) {
                self.push(now, id, &probe(number, size));
            }
        }
    }
}
