//! Which paths a connection has, tries and announces (RFC 8684 §3.2, §3.4), and over which it opens.

mod addresses;
mod manager;
mod race;

pub use addresses::OwnEnd;
pub use manager::PathSetup;

pub(crate) use addresses::Addresses;
pub(crate) use manager::PathManager;
pub(crate) use race::Race;

use crate::cx::Scope;
use crate::four_tuple::FourTuple;
use crate::mode::Mode;
use crate::reasons::{NO_RESOURCES, TOO_POOR, UNSPECIFIED};
use crate::subflow::half_open::{HalfOpen, Offer};
use crate::subflow::{Both, Lent, Reset, State, Subflow, Subflows};
use anabranch_units::{Instant, PathId, Rng};
use anabranch_wire::{AddAddr, MptcpOption, Reason};
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
    fn next_join(&mut self, now: Instant, subflows: &[Subflow]) -> Option<PathSetup> {
        loop {
            let setup = self.known.due(now)?;
            if subflows.iter().all(|s| s.tuple != setup.tuple) {
                return Some(setup);
            }
            self.known.withdraw(setup.id);
        }
    }

    /// Sends a SYN over the next path of the race; false if there is none.
    pub fn open_next(&mut self, cx: &mut Scope<'_>, rng: &mut Rng, subflows: &mut Subflows) -> bool {
        let Some(path) = self.race.start(cx.now) else { return false };
        self.open_over(cx, rng, subflows, path, false);
        true
    }

    /// Opens what is due.
    pub fn open_due(&mut self, cx: &mut Scope<'_>, rng: &mut Rng, subflows: &mut Subflows) {
        while self.race.next() <= cx.now {
            self.open_next(cx, rng, subflows);
        }
        while let Some(path) = self.next_join(cx.now, subflows) {
            self.open_over(cx, rng, subflows, path, true);
        }
    }

    /// Begins the handshake of a subflow over a path. One that names no local port draws it.
    fn open_over(&mut self, cx: &mut Scope<'_>, rng: &mut Rng, subflows: &mut Subflows, path: PathSetup, join: bool) {
        let PathSetup { id, mut tuple, backup, mss, .. } = path;
        if tuple.local.port() == 0 {
            tuple.local.set_port(subflows.fresh_port(rng));
        }
        let address_ids = self.opened(id, tuple.local, join);
        let mut s = Subflow::opening(id, tuple, (cx.settings(), mss), rng, cx.now, address_ids);
        if join {
            s.join(self.known.steady_pause(id));
        }
        s.set_backup(backup);
        subflows.add(cx, s);
    }

    /// A subflow of the peer's, whose SYN is to be answered; `None` if no path is free.
    pub fn admit(&mut self, cx: &Scope<'_>, half: &HalfOpen) -> Option<Subflow> {
        let id = self.known.id_for(half.tuple())?;
        let mut s = Subflow::admitted(id, half, cx.settings(), cx.now);
        s.set_backup(matches!(half.offer, Offer::Join { .. }) && self.known.is_backup(id));
        Some(s)
    }

    /// Sets whether a path is a backup by our wish. The subflow over it, if there is one and MPTCP is spoken, informs the peer: true.
    pub fn set_backup(&mut self, mode: Mode, subflows: &mut Subflows, id: PathId, backup: bool) -> bool {
        self.known.set_backup(id, backup);
        let Some(s) = subflows.on(id).filter(|_| !mode.is_plain()) else { return false };
        let s = &mut subflows[s];
        s.set_backup(backup);
        // Before a peer is known to have our keys, they go first (RFC 8684 §3.1).
        if mode == Mode::Confirmed {
            s.signal_backup();
        }
        true
    }

    /// Resets the subflow over a path, which is not used any more unless the reason is transient. False if there is none.
    pub fn reset(&mut self, subflows: &mut Subflows, id: PathId, reason: Reason) -> bool {
        let Some(s) = subflows.on(id) else { return false };
        if !reason.transient {
            self.known.withdraw(id);
        }
        subflows[s].close_by_reset(Reset::Because(reason));
        true
    }

    /// The path on which a join of the peer's would be, or the reason to reset it.
    pub fn of_join(&self, tuple: FourTuple, subflows: &[Subflow]) -> Result<PathId, Reason> {
        if self.known.is_useless(tuple) {
            return Err(TOO_POOR);
        }
        let replaced = subflows.iter().find(|s| s.is_replaced_by(tuple)).map(|s| s.id);
        replaced.or_else(|| self.known.likely_id(tuple)).ok_or(NO_RESOURCES)
    }

    /// A subflow is gone, after its path has carried `used` bytes, if it came into use. `over`: it is not to be replaced;
    /// `delivered`: data was, since one was lost before.
    pub fn lost(&mut self, now: Instant, s: &Subflow, used: Option<u64>, over: bool, delivered: bool) {
        if let Some(used) = used {
            self.known.set_used(s.id, used);
        }
        if s.was_in_vain() {
            self.known.tried_in_vain(s.id);
        } else if delivered {
            self.known.delivered(s.id);
        }
        self.known.lost(s.id, now, over || s.fin.wanted, !s.has_opened());
    }

    /// A subflow is being opened over a path, from `local`; `join`: it is not the first. Returns the IDs of its addresses.
    fn opened(&mut self, id: PathId, local: SocketAddr, join: bool) -> Both<u8> {
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
                s.signal(sign(option));
                self.own.said(now, now + s.sender().rtt().rto());
            }
        }
    }

    /// The ID under which the peer knows a local end: a subflow's, or an announced one.
    pub fn address_id(&self, subflows: &[Subflow], local: SocketAddr) -> Option<u8> {
        let is_there = |s: &&Subflow| s.tuple.local == local && s.reset.is_none();
        let joined = subflows.iter().find(is_there).map(|s| s.handshake.address_ids.ours);
        joined.or_else(|| self.own.announced(local))
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

    /// Takes what `s` brought about addresses: an announcement that proves whose it is, an echo, or what is taken back.
    pub fn on_option(&mut self, mut s: Lent<'_>, option: &MptcpOption) {
        match *option {
            MptcpOption::AddAddr(echo @ AddAddr { hmac: None, .. }) => self.own.echoed(echo),
            MptcpOption::AddAddr(announced) => self.known.announced(s.tuple, announced),
            MptcpOption::RemoveAddr(ids) => ids.into_iter().flatten().for_each(|id| self.taken_back(s.all_mut(), id)),
            _ => {}
        }
    }

    /// The peer took back an address. RFC 8684 §3.4.2: the subflows over it are closed, at once as Linux does, unless none
    /// would be left.
    fn taken_back(&mut self, subflows: &mut Subflows, address_id: u8) {
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
