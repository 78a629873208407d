//! A client's path: its challenges, round-trip time and MTU.

use crate::MAX_DATAGRAM;
use crate::format::{Content, OVERHEAD};
use crate::macs::Cookie;
use crate::mtu::{BASE, Search};
use crate::pieces::Pieces;
use anabranch_units::{Duration, Instant};

/// A path is challenged so often, which also keeps the bindings of NATs (RFC 4787 §4.3: 2 minutes at least; many have 30 s).
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// An unanswered challenge is repeated, so often at most.
const CHALLENGE_TIMER: Duration = Duration::from_secs(1);
const MAX_CHALLENGES: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Challenge {
    token: [u8; 8],
    sent: Instant,
}

#[derive(Debug)]
pub(crate) struct Path {
    challenge: Option<Challenge>,
    tries: u32,
    /// When the next challenge is due.
    pub at: Instant,
    pub rtt: Option<Duration>,
    /// Challenges that were answered.
    pub answers: u64,
    pub heard: Option<Instant>,
    /// From the first answer on.
    pub mtu: Option<Search>,
    pub pieces: Pieces,
    /// The server's, for the address that this path's datagrams come from.
    pub cookie: Option<Cookie>,
}

/// A path's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// Round-trip time of the last challenge that was answered.
    pub rtt: Option<Duration>,
    /// Challenges that were answered.
    pub answers: u64,
    /// When an authenticated datagram came last.
    pub heard: Option<Instant>,
    /// Largest packet, in bytes, that travels whole.
    pub max_packet: usize,
}

impl Path {
    /// A new path, which is challenged at once.
    pub fn begin(now: Instant) -> Self {
        Self {
            challenge: None,
            tries: 0,
            at: now,
            rtt: None,
            answers: 0,
            heard: None,
            mtu: None,
            pieces: Pieces::default(),
            cookie: None,
        }
    }

    /// The session has new keys: the path is challenged at once, which uses them.
    pub fn renew(&mut self, now: Instant) {
        (self.tries, self.at) = (0, now);
    }

    /// Bytes of the largest packet.
    pub fn max_packet(&self) -> usize {
        self.mtu.as_ref().map_or(BASE, Search::usable) - OVERHEAD
    }

    /// When something is due.
    pub fn next(&self) -> Instant {
        self.mtu.as_ref().map_or(Instant::MAX, Search::next).min(self.at)
    }

    /// A challenge is sent.
    pub fn challenged(&mut self, now: Instant, token: [u8; 8]) {
        self.challenge = Some(Challenge { token, sent: now });
        self.tries += 1;
        let given_up = self.tries >= MAX_CHALLENGES;
        self.at = now + if given_up { KEEP_ALIVE } else { CHALLENGE_TIMER };
        self.tries = if given_up { 0 } else { self.tries };
    }

    /// An answer came.
    pub fn answered(&mut self, now: Instant, token: [u8; 8]) {
        let Some(challenge) = self.challenge.take_if(|challenge| challenge.token == token) else { return };
        self.rtt = Some(now.since(challenge.sent));
        self.answers += 1;
        (self.tries, self.at) = (0, now + KEEP_ALIVE);
        self.mtu.get_or_insert_with(|| Search::begin(now, MAX_DATAGRAM));
    }
}

/// The content of a datagram of `size` bytes.
pub(crate) fn probe(number: u32, size: usize) -> Vec<u8> {
    let mut plain = Content::Probe(number).bytes();
    plain.resize(size - OVERHEAD, 0);
    plain
}
