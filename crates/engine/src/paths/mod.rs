//! Which paths a connection has, tries and announces (RFC 8684 §3.2, §3.4), and over which it opens.

mod addresses;
mod manager;
mod race;

pub use manager::PathSetup;

pub(crate) use addresses::Addresses;
pub(crate) use manager::PathManager;
pub(crate) use race::Race;

use crate::reasons::UNSPECIFIED;
use crate::subflow::{Both, Reset, State, Subflow, Subflows};
use anabranch_units::{Instant, PathId};
use anabranch_wire::MptcpOption;
use core::net::SocketAddr;

/// The paths of a connection, the addresses of ours that its peer knows, and the race that it opens with.
#[derive(Debug)]
pub(crate) struct Paths {
    pub known: PathManager,
    pub own: Addresses,
    pub race: Race,
}

impl Paths {
    /// When there is something to open or to announce.
    #[inline(always)]
    pub fn next(&self) -> Instant {
        self.race.next().min(self.known.next()).min(self.own.next())
    }

    /// The peer has shown that it got our keys: joins and announcements may begin.
    pub fn open(&mut self) {
        self.known.open();
        self.own.open();
    }

    /// Nothing more is to be opened or announced.
    pub fn end(&mut self) {
        self.known.stop();
        self.own.end();
        self.race.stop();
    }

    /// The race is over: the first subflow runs over `id`, from `local`.
    pub fn won(&mut self, id: PathId, local: SocketAddr) {
        self.race.stop();
        self.known.decided(id);
        self.own.begin_at(local);
    }

    /// The next path to be joined now. One whose ends a subflow has already is not.
    pub fn next_join(&mut self, now: Instant, subflows: &[Subflow]) -> Option<PathSetup> {
        loop {
            let setup = self.known.due(now)?;
            if subflows.iter().all(|s| s.tuple != setup.tuple) {
                return Some(setup);
            }
            self.known.withdraw(setup.id);
        }
    }

    /// A subflow is being opened over a path, from `local`; `join`: it is not the first. Returns the IDs of its addresses.
    pub fn opened(&mut self, id: PathId, local: SocketAddr, join: bool) -> Both<u8> {
        self.known.opened(id);
        // RFC 8684 §3.2: the address of the first subflow has ID 0, whichever path that is.
        let ours = if join { self.own.id_for(local).unwrap_or(0) } else { 0 };
        Both { ours, theirs: self.known.remote_id(id).unwrap_or(0) }
    }

    /// Hands what is to be announced now to an open subflow; `sign` adds the proof of who announces it.
    pub fn announce(&mut self, now: Instant, subflows: &mut Subflows, sign: impl Fn(MptcpOption) -> MptcpOption) {
        while self.own.next() <= now
            && let Some(option) = self.own.due(now)
        {
            if let Some(s) = subflows.iter_mut().find(|s| s.state == State::Established && s.reset.is_none()) {
                s.signals.push_back(sign(option));
                self.own.said(now, now + s.sender.rtt().rto());
            }
        }
    }

    /// Takes back the address of ours with this ID, and closes the subflows over it (RFC 8684 §3.4.2).
    pub fn withdraw(&mut self, now: Instant, subflows: &mut Subflows, address_id: u8) {
        if let Some(own) = self.own.remove(now, address_id).filter(|own| own.port.is_none() && address_id != 0) {
            self.known.abandon(own.address);
        }
        for s in subflows.iter_mut().filter(|s| s.handshake.address_ids.ours == address_id) {
            self.known.withdraw(s.id);
            s.close_by_reset(Reset::Because(UNSPECIFIED));
        }
    }

    /// The peer took back an address. RFC 8684 §3.4.2: the subflows over it are closed, at once as Linux does, unless none
    /// would be left.
    pub fn taken_back(&mut self, subflows: &mut Subflows, address_id: u8) {
        self.known.taken_back(address_id, None);
        let over = |s: &Subflow| s.handshake.address_ids.theirs == address_id && s.state != State::SynSent;
        if !subflows.iter().any(|s| s.may_carry() && !over(s)) {
            return;
        }
        for s in subflows.iter_mut().filter(|s| over(s)) {
            self.known.taken_back(address_id, Some(s.id));
            s.close_by_reset(Reset::Because(UNSPECIFIED));
        }
    }
}
