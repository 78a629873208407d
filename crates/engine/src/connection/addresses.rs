//! Addresses of ours: the IDs that they have, and which of them are announced (RFC 8684 §3.2, §3.4).

use super::Connection;
use crate::cx::Cx;
use crate::subflow::{Reset, State, Subflow};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{AddAddr, MptcpOption, crypto};
use core::net::{IpAddr, SocketAddr};

/// How long to wait for the echo of an ADD_ADDR, and how often to say it. Linux too gives up after three repeats. A
/// REMOVE_ADDR has no echo, and is said as often: it may be lost, and who heard it once ignores it (RFC 8684 §3.4.2).
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);
const ANNOUNCEMENTS: u32 = 4;
/// Signals that leave one after the other. The peer takes a third for a sign of congestion if it does not look at options
/// (RFC 8684 §4).
const IN_A_ROW: u32 = 2;

/// What the peer is to be told of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Add,
    Remove,
}

/// An address with its ID. With a port it means that port alone.
#[derive(Clone, Copy, Debug)]
struct Own {
    id: u8,
    address: IpAddr,
    port: Option<u16>,
    word: Word,
    /// How often it may still be said, and when it is due next.
    left: u32,
    at: Instant,
}

impl Own {
    fn unannounced(id: u8, address: IpAddr) -> Self {
        Self { id, address, port: None, word: Word::Add, left: 0, at: Instant::MAX }
    }

    fn covers(&self, local: SocketAddr) -> bool {
        self.address == local.ip() && self.port.is_none_or(|port| port == local.port())
    }
}

/// Our addresses. The first subflow's has ID 0.
#[derive(Debug)]
pub(super) struct Addresses {
    first: SocketAddr,
    own: Vec<Own>,
    /// The peer confirmed MPTCP: announcements may be sent.
    open: bool,
    /// How many were sent in a row, and when the next begins another row.
    in_a_row: u32,
    rested: Instant,
    /// When there is something to announce: kept, for it is asked for after every packet.
    next: Instant,
}

impl Addresses {
    /// For a connection whose first subflow runs from `first`.
    pub fn new(first: SocketAddr, announce: &[(u8, IpAddr, Option<u16>)]) -> Self {
        let mut addresses = Self {
            first,
            own: vec![Own::unannounced(0, first.ip())],
            open: false,
            in_a_row: 0,
            rested: Instant::ZERO,
            next: Instant::MAX,
        };
        for &(id, address, port) in announce {
            addresses.announce(Instant::ZERO, id, address, port);
        }
        addresses
    }

    /// The first subflow runs from there after all: its address has ID 0.
    pub fn begin_at(&mut self, first: SocketAddr) {
        self.first = first;
        self.own.retain(|own| own.id == 0 || own.port.is_some() || own.address != first.ip());
        self.own.iter_mut().filter(|own| own.id == 0).for_each(|own| own.address = first.ip());
        self.changed();
    }

    /// The ID of a local end, given to it now if it had none; `None` if all are given.
    pub fn id_for(&mut self, local: SocketAddr) -> Option<u8> {
        // One that means this port alone goes before one that means the address.
        let present = |own: &&Own| own.word == Word::Add || own.id == 0;
        let known =
            self.own.iter().filter(present).filter(|own| own.covers(local)).max_by_key(|own| own.port.is_some());
        if let Some(known) = known {
            return Some(known.id);
        }
        let id = (1..=u8::MAX).find(|id| self.own.iter().all(|own| own.id != *id))?;
        self.own.push(Own::unannounced(id, local.ip()));
        Some(id)
    }

    /// Joins are accepted there: at the port of the first subflow, and where we announced another one; but not where the
    /// peer is being told that nobody is any more.
    pub fn listens_on(&self, local: SocketAddr) -> bool {
        let told = |word: Word| self.own.iter().filter(move |own| own.word == word && own.covers(local));
        let port = local.port() == self.first.port() || told(Word::Add).any(|own| own.port.is_some());
        port && told(Word::Remove).next().is_none()
    }

    fn announce(&mut self, now: Instant, id: u8, address: IpAddr, port: Option<u16>) -> bool {
        let same = |own: &Own| own.address == address && own.port == port;
        let clash = |own: &Own| (own.id == id) != same(own);
        if id == 0 || self.own.iter().any(clash) {
            return false;
        }
        self.own.retain(|own| own.id != id);
        self.own.push(Own { id, address, port, word: Word::Add, left: ANNOUNCEMENTS, at: now });
        self.changed();
        true
    }

    /// The peer is told that the address with this ID is gone. The ID is not given again until that is over.
    fn remove(&mut self, now: Instant, id: u8) -> Option<Own> {
        let own = self.own.iter_mut().find(|own| own.id == id)?;
        *own = Own { word: Word::Remove, left: ANNOUNCEMENTS, at: now, ..*own };
        let own = *own;
        self.changed();
        Some(own)
    }

    /// Notes that an announcement is sent. Another one before `rested` belongs to the same row.
    fn said(&mut self, now: Instant, rested: Instant) {
        self.in_a_row = if now < self.rested { self.in_a_row + 1 } else { 1 };
        self.rested = rested;
        self.changed();
    }

    /// From now on addresses are announced.
    pub fn open(&mut self) {
        self.open = true;
        self.changed();
    }

    /// The peer echoed an announcement (RFC 8684 §3.4.1): all of it but the HMAC.
    pub fn echoed(&mut self, id: u8, address: IpAddr, port: Option<u16>) {
        let same = |own: &Own| (own.id, own.address, own.port) == (id, address, port);
        let announced = |own: &&mut Own| same(own) && own.word == Word::Add;
        self.own.iter_mut().filter(announced).for_each(|own| own.left = 0);
        self.changed();
    }

    /// When there is something to announce.
    pub fn next(&self) -> Instant {
        debug_assert_eq!(self.next, self.find_next());
        self.next
    }

    fn changed(&mut self) {
        self.next = self.find_next();
    }

    fn find_next(&self) -> Instant {
        let waiting = self.own.iter().filter(|own| self.open && own.left > 0).map(|own| own.at);
        let rested = if self.in_a_row < IN_A_ROW { Instant::ZERO } else { self.rested };
        waiting.min().map_or(Instant::MAX, |at| at.max(rested))
    }

    fn due(&mut self, now: Instant) -> Option<Own> {
        let own = self.own.iter_mut().find(|own| own.left > 0 && own.at <= now)?;
        own.left -= 1;
        own.at = now + ECHO_TIMEOUT;
        let own = *own;
        self.own.retain(|own| own.left > 0 || own.word == Word::Add || own.id == 0);
        self.changed();
        Some(own)
    }
}

impl Connection {
    /// Announces an address of ours with ADD_ADDR, until it is echoed or was said four times (RFC 8684 §3.4.1). With a
    /// port, joins to that port are accepted too. False if `id` is 0 or another address's, or the address has an ID
    /// already; see [`Self::address_id`].
    pub fn announce(&mut self, cx: &mut Cx<'_>, id: u8, address: IpAddr, port: Option<u16>) -> bool {
        self.touch_all();
        self.addresses.announce(cx.now, id, address, port)
    }

    /// The ID under which the peer knows a local end, if it has one.
    pub fn address_id(&self, local: SocketAddr) -> Option<u8> {
        self.subflows.iter().find(|s| s.tuple.local == local).map(|s| s.handshake.address_ids.0)
    }

    /// Takes back the address with this ID: tells the peer with REMOVE_ADDR, and closes the subflows over it
    /// (RFC 8684 §3.4.2). ID 0 is the first subflow's address.
    pub fn withdraw(&mut self, cx: &mut Cx<'_>, id: u8) {
        if let Some(own) = self.addresses.remove(cx.now, id).filter(|own| own.port.is_none() && id != 0) {
            self.paths.abandon(own.address);
        }
        let over = |s: &Subflow| s.handshake.address_ids.0 == id;
        for s in self.subflows.iter_mut().filter(|s| over(s)) {
            self.paths.withdraw(s.id);
            s.close_by_reset(Reset::Because(super::open::UNSPECIFIED));
        }
        self.announce_addresses(cx);
        self.settle(cx);
    }

    pub(super) fn announce_addresses(&mut self, cx: &mut Cx<'_>) {
        if self.closed || !self.speaks_mptcp() {
            return;
        }
        while self.addresses.next() <= cx.now
            && let Some(Own { id, address, port, word, .. }) = self.addresses.due(cx.now)
        {
            let option = match word {
                Word::Add => {
                    let hmac = crypto::add_addr_hmac(self.keys.local, self.keys.remote, id, address, port);
                    MptcpOption::AddAddr(AddAddr { address_id: id, address, port, hmac: Some(hmac) })
                }
                Word::Remove => MptcpOption::RemoveAddr([Some(id), None, None, None]),
            };
            if let Some(s) = self.subflows.iter_mut().find(|s| s.state == State::Established && s.reset.is_none()) {
                s.signals.push_back(option);
                self.addresses.said(cx.now, cx.now + s.sender.rtt().rto());
            }
        }
    }
}
