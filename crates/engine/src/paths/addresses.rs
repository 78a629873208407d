//! Addresses of ours: the IDs that they have, and which of them are announced (RFC 8684 §3.2, §3.4).

use crate::deadlines::NEVER;
use anabranch_units::{Duration, Instant};
use anabranch_wire::{AddAddr, MptcpOption};
use core::net::{IpAddr, SocketAddr};

/// How long to wait for the echo of an ADD_ADDR, and how often to send it. Linux too gives up after three repeats. A
/// REMOVE_ADDR has no echo, and is sent as often: it may be lost, and a peer that got it ignores the next (RFC 8684 §3.4.2).
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);
const ANNOUNCEMENTS: u32 = 4;
/// Signals that leave one after the other. The peer takes a third for a sign of congestion if it does not look at options
/// (RFC 8684 §4).
const IN_A_ROW: u32 = 2;

/// Which option announces an address or takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    Add,
    Remove,
}

/// An address of ours: as packets have it here, and as the peer has it. They differ where a translator stands between (RFC 3022 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnEnd {
    /// In our packets.
    pub here: IpAddr,
    /// In the peer's.
    pub there: IpAddr,
}

impl From<IpAddr> for OwnEnd {
    /// Nothing translates it.
    fn from(address: IpAddr) -> Self {
        Self { here: address, there: address }
    }
}

/// An address with its ID. With a port it means that port alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnAddress {
    pub id: u8,
    /// In our packets, and in announcements.
    pub address: IpAddr,
    announced: IpAddr,
    pub port: Option<u16>,
    kind: Announcement,
    /// How often it may still be sent, and when it is due next.
    left: u32,
    at: Instant,
}

impl OwnAddress {
    fn unannounced(id: u8, address: IpAddr) -> Self {
        Self { id, address, announced: address, port: None, kind: Announcement::Add, left: 0, at: NEVER }
    }

    /// The option that announces it or takes it back.
    fn option(&self) -> MptcpOption {
        let (address_id, address, port) = (self.id, self.announced, self.port);
        match self.kind {
            Announcement::Add => MptcpOption::AddAddr(AddAddr { address_id, address, port, hmac: None }),
            Announcement::Remove => MptcpOption::RemoveAddr([Some(address_id), None, None, None]),
        }
    }

    fn covers(&self, local: SocketAddr) -> bool {
        self.address == local.ip() && self.port.is_none_or(|port| port == local.port())
    }
}

/// Our addresses. The first subflow's has ID 0.
#[derive(Debug)]
pub(crate) struct Addresses {
    first: SocketAddr,
    own: Vec<OwnAddress>,
    /// The peer confirmed MPTCP: announcements may be sent.
    open: bool,
    /// Nothing more is to be announced.
    ended: bool,
    /// How many were sent in a row, and when the next begins another row.
    in_a_row: u32,
    rested: Instant,
    /// When there is something to announce, stored because every packet reads it.
    next: Instant,
}

impl Addresses {
    /// For a connection whose first subflow runs from `first`.
    pub fn new(first: SocketAddr, announce: &[(u8, IpAddr, Option<u16>)]) -> Self {
        let mut addresses = Self {
            first,
            own: vec![OwnAddress::unannounced(0, first.ip())],
            open: false,
            ended: false,
            in_a_row: 0,
            rested: Instant::ZERO,
            next: NEVER,
        };
        for &(id, address, port) in announce {
            addresses.announce(Instant::ZERO, id, address.into(), port);
        }
        addresses
    }

    /// The first subflow runs from there after all: its address has ID 0.
    pub fn begin_at(&mut self, first: SocketAddr) {
        self.first = first;
        self.own.retain(|own| own.id == 0 || own.port.is_some() || own.address != first.ip());
        self.own.iter_mut().filter(|own| own.id == 0).for_each(|own| *own = OwnAddress::unannounced(0, first.ip()));
        self.changed();
    }

    /// The ID of a local end, given to it now if it had none; `None` if all are given.
    pub fn id_for(&mut self, local: SocketAddr) -> Option<u8> {
        // One that means this port alone goes before one that means the address.
        // A REMOVE_ADDR that is still to be repeated would take back what is joined under its ID.
        let present = |own: &&OwnAddress| own.kind == Announcement::Add || own.id == 0 && own.left == 0;
        let rank = |own: &&OwnAddress| (own.port.is_some(), own.kind == Announcement::Add);
        let known = self.own.iter().filter(present).filter(|own| own.covers(local)).max_by_key(rank);
        if let Some(known) = known {
            return Some(known.id);
        }
        let id = (1..=u8::MAX).find(|id| self.own.iter().all(|own| own.id != *id))?;
        self.own.push(OwnAddress::unannounced(id, local.ip()));
        Some(id)
    }

    /// Joins are accepted there: at the port of the first subflow, and where we announced another one; but not where
    /// REMOVE_ADDR takes the address back, unless it is announced again.
    pub fn listens_on(&self, local: SocketAddr) -> bool {
        let of_kind = |kind: Announcement| self.own.iter().filter(move |own| own.kind == kind && own.covers(local));
        let port = local.port() == self.first.port() || of_kind(Announcement::Add).any(|own| own.port.is_some());
        let anew = |gone: &OwnAddress| of_kind(Announcement::Add).any(|own| own.port == gone.port);
        port && of_kind(Announcement::Remove).all(anew)
    }

    /// The ID of a local end that was announced and not taken back.
    pub fn announced(&self, local: SocketAddr) -> Option<u8> {
        let announced = |own: &&OwnAddress| own.id != 0 && own.kind == Announcement::Add && own.covers(local);
        self.own.iter().find(announced).map(|own| own.id)
    }

    pub fn announce(&mut self, now: Instant, id: u8, OwnEnd { here, there }: OwnEnd, port: Option<u16>) -> bool {
        let same = |own: &OwnAddress| own.address == here && own.port == port;
        let clash = |own: &OwnAddress| match own.id == id {
            // RFC 8684 §3.4.1: an ID names one address as long as the peer may know it.
            true => !same(own) || own.announced != there,
            // RFC 8684 §3.4.2: what was taken back may come again, under another ID.
            false => same(own) && own.kind == Announcement::Add,
        };
        if id == 0 || self.own.iter().any(clash) {
            return false;
        }
        self.own.retain(|own| own.id != id);
        let (address, announced, kind) = (here, there, Announcement::Add);
        self.own.push(OwnAddress { id, address, announced, port, kind, left: ANNOUNCEMENTS, at: now });
        self.changed();
        true
    }

    /// REMOVE_ADDR tells the peer that the address with this ID is gone. The ID is not given again until that is over.
    pub fn remove(&mut self, now: Instant, id: u8) -> Option<OwnAddress> {
        let own = self.own.iter_mut().find(|own| own.id == id)?;
        *own = OwnAddress { kind: Announcement::Remove, left: ANNOUNCEMENTS, at: now, ..*own };
        let own = *own;
        self.changed();
        Some(own)
    }

    /// Notes that an announcement is sent. Another one before `rested` belongs to the same row.
    pub fn said(&mut self, now: Instant, rested: Instant) {
        self.in_a_row = if now < self.rested { self.in_a_row + 1 } else { 1 };
        self.rested = rested;
        self.changed();
    }

    /// From now on addresses are announced.
    pub fn open(&mut self) {
        self.open = true;
        self.changed();
    }

    /// From now on no address is announced.
    pub fn end(&mut self) {
        self.ended = true;
        self.changed();
    }

    /// The peer echoed an announcement (RFC 8684 §3.4.1): all of it but the HMAC.
    pub fn echoed(&mut self, AddAddr { address_id, address, port, .. }: AddAddr) {
        let same = |own: &OwnAddress| (own.id, own.announced, own.port) == (address_id, address, port);
        let announced = |own: &&mut OwnAddress| same(own) && own.kind == Announcement::Add;
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
        let open = self.open && !self.ended;
        let waiting = self.own.iter().filter(|own| open && own.left > 0).map(|own| own.at);
        let rested = if self.in_a_row < IN_A_ROW { Instant::ZERO } else { self.rested };
        waiting.min().map_or(NEVER, |at| at.max(rested))
    }

    /// The next announcement that is due, without its proof.
    pub fn due(&mut self, now: Instant) -> Option<MptcpOption> {
        let own = self.own.iter_mut().find(|own| own.left > 0 && own.at <= now)?;
        own.left -= 1;
        own.at = now + ECHO_TIMEOUT;
        let option = own.option();
        self.own.retain(|own| own.left > 0 || own.kind == Announcement::Add || own.id == 0);
        self.changed();
        Some(option)
    }
}
