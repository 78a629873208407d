//! Which paths a connection has, tries and announces (RFC 8684 §3.2, §3.4).

use super::Connection;
use crate::cx::Cx;
use crate::settings::Settings;
use crate::subflow::{FourTuple, State};
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::{AddAddr, MptcpOption, crypto};
use core::net::{IpAddr, SocketAddr};

/// How long to wait for the echo of an ADD_ADDR, and how often to repeat it.
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);
const ANNOUNCEMENTS: u32 = 4;

/// A path that is known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSetup {
    /// Its id, the same at both ends.
    pub id: PathId,
    /// Our address and the peer's. Ports of a server's list are not looked at.
    pub tuple: FourTuple,
    /// A backup by our wish.
    pub backup: bool,
}

/// Where an attempt over a path stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To be tried as soon as the connection allows.
    Due,
    /// A subflow exists.
    Open,
    /// To be tried again then; the delay doubles with each failure.
    After(Instant),
    /// Not to be tried.
    Never,
}

#[derive(Clone, Debug)]
struct Known {
    setup: PathSetup,
    attempt: Attempt,
    delay: Duration,
    /// The peer's address ID, where it was announced.
    remote_id: Option<u8>,
    /// Opened by the peer, from addresses that were not known beforehand.
    learned: bool,
}

#[derive(Clone, Debug)]
struct Announcement {
    id: u8,
    address: IpAddr,
    port: Option<u16>,
    left: u32,
    at: Instant,
}

/// Keeps the paths of one connection.
#[derive(Debug)]
pub(super) struct PathManager {
    known: Vec<Known>,
    announcements: Vec<Announcement>,
    accept_announced: bool,
    first_delay: Duration,
    /// The peer confirmed MPTCP: joins may begin (RFC 8684 §3.2).
    pub ready: bool,
    stopped: bool,
}

impl PathManager {
    pub fn new(
        paths: Vec<PathSetup>,
        announce: Vec<(u8, IpAddr, Option<u16>)>,
        accept_announced: bool,
        first_delay: Duration,
    ) -> Self {
        let known = |setup| Known { setup, attempt: Attempt::Due, delay: first_delay, remote_id: None, learned: false };
        let announcement =
            |(id, address, port)| Announcement { id, address, port, left: ANNOUNCEMENTS, at: Instant::MAX };
        Self {
            known: paths.into_iter().map(known).collect(),
            announcements: announce.into_iter().map(announcement).collect(),
            accept_announced,
            first_delay,
            ready: false,
            stopped: false,
        }
    }

    fn of(&mut self, id: PathId) -> Option<&mut Known> {
        self.known.iter_mut().find(|k| k.setup.id == id)
    }

    /// The id of the path between the addresses of `tuple`: as known, or a new one, or that of a path which the peer
    /// had opened and is gone. `None` if all are in use.
    pub fn id_for(&mut self, tuple: FourTuple) -> Option<PathId> {
        let same = |k: &&mut Known| {
            let ours = k.setup.tuple;
            ours.local.ip() == tuple.local.ip() && ours.remote.ip() == tuple.remote.ip() && k.attempt != Attempt::Open
        };
        if let Some(known) = self.known.iter_mut().find(same) {
            known.attempt = Attempt::Open;
            return Some(known.setup.id);
        }
        let fresh = Known { attempt: Attempt::Open, learned: true, ..self.unknown(tuple) };
        if let Some(id) = self.free_id() {
            self.known.push(Known { setup: PathSetup { id, ..fresh.setup }, ..fresh });
            return Some(id);
        }
        let gone = self.known.iter_mut().find(|k| k.learned && k.attempt != Attempt::Open)?;
        let id = gone.setup.id;
        *gone = Known { setup: PathSetup { id, ..fresh.setup }, ..fresh };
        Some(id)
    }

    fn unknown(&self, tuple: FourTuple) -> Known {
        let setup = PathSetup { id: PathId(0), tuple, backup: false };
        Known { setup, attempt: Attempt::Due, delay: self.first_delay, remote_id: None, learned: false }
    }

    fn free_id(&self) -> Option<PathId> {
        (0..PathId::LIMIT as u8).map(PathId).find(|id| self.known.iter().all(|k| k.setup.id != *id))
    }

    /// The address ID under which we speak on a path: 0 for the first (RFC 8684 §3.2).
    pub fn address_id(&self, id: PathId) -> u8 {
        self.known.iter().position(|k| k.setup.id == id).unwrap_or(0) as u8
    }

    /// The address ID of a local address: as announced, else by its place.
    pub fn local_address_id(&self, address: IpAddr) -> u8 {
        let announced = self.announcements.iter().find(|a| a.address == address).map(|a| a.id);
        let place = || self.known.iter().position(|k| k.setup.tuple.local.ip() == address).unwrap_or(0) as u8;
        announced.unwrap_or_else(place)
    }

    pub fn set_backup(&mut self, id: PathId, backup: bool) {
        if let Some(known) = self.of(id) {
            known.setup.backup = backup;
        }
    }

    /// A subflow is being opened.
    pub fn opened(&mut self, id: PathId) {
        if let Some(known) = self.of(id) {
            known.attempt = Attempt::Open;
        }
    }

    /// A subflow was established: the next failure waits the shortest time again.
    pub fn established(&mut self, id: PathId) {
        let first = self.first_delay;
        if let Some(known) = self.of(id) {
            known.delay = first;
        }
    }

    /// A subflow is gone. `over`: closed in order. A path that never opened waits longer each time.
    pub fn lost(&mut self, id: PathId, now: Instant, over: bool, never_opened: bool) {
        if let Some(known) = self.of(id)
            && known.attempt == Attempt::Open
        {
            known.attempt = if over { Attempt::Never } else { Attempt::After(now + known.delay) };
            if never_opened || !over {
                known.delay = (known.delay * 2).min(Settings::REJOIN_MAX);
            }
        }
    }

    /// A path is not to be used any more.
    pub fn withdraw(&mut self, id: PathId) {
        if let Some(known) = self.of(id) {
            known.attempt = Attempt::Never;
        }
    }

    /// The peer took back an address.
    pub fn forget_remote(&mut self, address_id: u8) {
        for known in self.known.iter_mut().filter(|k| k.remote_id == Some(address_id)) {
            known.attempt = Attempt::Never;
        }
    }

    /// The peer announced an address: a client will join to it, from `local` if that is of the same family, else from
    /// the first address that is.
    pub fn announced(&mut self, local: IpAddr, remote: SocketAddr, address_id: u8, side: Side) {
        if !self.accept_announced || side == Side::Server || self.stopped {
            return;
        }
        if let Some(known) = self.known.iter_mut().find(|k| k.setup.tuple.remote == remote) {
            // Taken back once, and announced again.
            if known.attempt == Attempt::Never && known.remote_id.is_some() {
                known.attempt = Attempt::Due;
            }
            return;
        }
        let ours = self.known.iter().map(|k| k.setup.tuple.local.ip());
        let local = core::iter::once(local).chain(ours).find(|ip| ip.is_ipv4() == remote.is_ipv4());
        let (Some(local), Some(id)) = (local, self.free_id()) else { return };
        let fresh = self.unknown(FourTuple { local: SocketAddr::new(local, 0), remote });
        let setup = PathSetup { id, ..fresh.setup };
        self.known.push(Known { setup, remote_id: Some(address_id), ..fresh });
    }

    /// No further subflow may go to that address and port (RFC 8684 §3.1, flag C).
    pub fn keep_off(&mut self, remote: SocketAddr) {
        for known in self.known.iter_mut().filter(|k| k.setup.tuple.remote == remote && k.attempt == Attempt::Due) {
            known.attempt = Attempt::Never;
        }
    }

    /// From now on our further addresses are announced.
    pub fn announce_from(&mut self, now: Instant) {
        for a in &mut self.announcements {
            a.at = now;
        }
    }

    /// The peer echoed an announcement.
    pub fn echoed(&mut self, address_id: u8) {
        self.announcements.iter_mut().filter(|a| a.id == address_id).for_each(|a| a.left = 0);
    }

    /// Nothing more is to be opened or announced.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// When there is something to do next.
    pub fn next(&self, side: Side) -> Instant {
        if self.stopped {
            return Instant::MAX;
        }
        let mut at = Instant::MAX;
        // Only a client joins.
        for known in self.known.iter().filter(|_| self.ready && side == Side::Client) {
            match known.attempt {
                Attempt::Due => return Instant::ZERO,
                Attempt::After(after) => at = at.min(after),
                Attempt::Open | Attempt::Never => {}
            }
        }
        for announcement in self.announcements.iter().filter(|a| a.left > 0) {
            at = at.min(announcement.at);
        }
        at
    }

    fn due_attempt(&self, now: Instant) -> Option<PathSetup> {
        let due = |k: &&Known| match k.attempt {
            Attempt::Due => true,
            Attempt::After(at) => at <= now,
            Attempt::Open | Attempt::Never => false,
        };
        self.known.iter().find(due).map(|k| k.setup.clone())
    }

    fn due_announcement(&mut self, now: Instant) -> Option<(u8, IpAddr, Option<u16>)> {
        let a = self.announcements.iter_mut().find(|a| a.left > 0 && a.at <= now)?;
        a.left -= 1;
        a.at = now + ECHO_TIMEOUT;
        Some((a.id, a.address, a.port))
    }
}

impl Connection {
    /// Opens and announces what is due. Joins begin once the peer confirmed MPTCP, as Linux does.
    pub(super) fn manage_paths(&mut self, cx: &mut Cx<'_>) {
        if self.closed || !self.speaks_mptcp() || self.paths.next(self.side) > cx.now {
            return;
        }
        while self.side == Side::Client
            && self.paths.ready
            && let Some(setup) = self.paths.due_attempt(cx.now)
        {
            let mut tuple = setup.tuple;
            if self.subflows.iter().any(|s| s.tuple == tuple) {
                self.paths.withdraw(setup.id);
                continue;
            }
            if tuple.local.port() == 0 {
                tuple.local.set_port(self.fresh_port(cx, tuple));
            }
            self.paths.opened(setup.id);
            self.start_subflow(cx, setup.id, tuple, true, setup.backup);
        }
        while let Some((id, address, port)) = self.paths.due_announcement(cx.now) {
            let hmac = crypto::add_addr_hmac(self.keys.local, self.keys.remote, id, address, port);
            let option = MptcpOption::AddAddr(AddAddr { address_id: id, address, port, hmac: Some(hmac) });
            if let Some(s) = self.subflows.iter_mut().find(|s| s.state == State::Established) {
                s.signals.push_back(option);
            }
        }
    }

    /// A port of ours that no present subflow of this connection uses towards the same peer.
    fn fresh_port(&self, cx: &mut Cx<'_>, tuple: FourTuple) -> u16 {
        loop {
            let port = 49_152 + cx.rng.below(16_384) as u16;
            let taken = |s: &crate::subflow::Subflow| {
                s.tuple.local == SocketAddr::new(tuple.local.ip(), port) && s.tuple.remote == tuple.remote
            };
            if !self.subflows.iter().any(taken) {
                return port;
            }
        }
    }

    /// The subflow that a join on `tuple` takes the place of: same ends but for the peer's port, and silent.
    pub(super) fn replaced_by(&self, tuple: FourTuple) -> Option<usize> {
        self.subflows.iter().position(|s| {
            s.tuple.local == tuple.local
                && s.tuple.remote.ip() == tuple.remote.ip()
                && s.tuple.remote != tuple.remote
                && (s.failing || !s.state.is_synchronized())
        })
    }

    /// Takes back an address of ours: tells the peer, and closes the subflows over it (RFC 8684 §3.4.2).
    pub fn remove_address(&mut self, cx: &mut Cx<'_>, address: IpAddr) {
        let id = self.paths.local_address_id(address);
        for i in (0..self.subflows.len()).rev() {
            if self.subflows[i].tuple.local.ip() == address {
                self.paths.withdraw(self.subflows[i].id);
                self.subflows[i].reset = Some(crate::subflow::Reset::Because(super::open::UNSPECIFIED));
            }
        }
        if let Some(s) = self.subflows.iter_mut().find(|s| s.may_carry()) {
            s.signals.push_back(MptcpOption::RemoveAddr([Some(id), None, None, None]));
        }
        self.settle(cx);
    }
}
