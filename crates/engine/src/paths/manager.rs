//! Which paths a connection has, tries and announces (RFC 8684 §3.2, §3.4).

use crate::account::Account;
use crate::deadlines::NEVER;
use crate::four_tuple::FourTuple;
use crate::schedule::PathPolicy;
use crate::settings::Settings;
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::{AddAddr, Reason};
use core::net::{IpAddr, SocketAddr};

/// Most addresses of the peer's that are joined because it announced them (Linux allows `add_addr_accepted` to be 8 at most).
const MAX_ANNOUNCED: usize = 8;
/// Subflows over a path that come to nothing before it is not tried any more: something on it takes options off, or drops all data.
const MAX_IN_VAIN: u32 = 5;

/// A path that is known beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSetup {
    /// Id of the path, the same at both ends.
    pub id: PathId,
    /// Our address and the peer's. Ports of a server's list are not looked at.
    pub tuple: FourTuple,
    /// A backup by our wish.
    pub backup: bool,
    /// The operator's policy, for our scheduler.
    pub policy: PathPolicy,
    /// Most payload bytes of a segment on it, where that may be less than [`Settings::mss`].
    pub mss: Option<u32>,
}

impl PathSetup {
    /// A path that is no backup, of which the operator says nothing.
    pub fn new(id: PathId, tuple: FourTuple) -> Self {
        Self { id, tuple, backup: false, policy: PathPolicy::default(), mss: None }
    }
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
    /// The peer took its address back, or refused a join to it: not to be tried unless it is announced again.
    Unwanted,
    /// Not to be tried.
    Never,
}

#[derive(Clone, Debug)]
struct Known {
    setup: PathSetup,
    attempt: Attempt,
    delay: Duration,
    /// Subflows that were answered and came to nothing since one was of use.
    in_vain: u32,
    /// The peer's address ID, where it was announced.
    remote_id: Option<u8>,
    /// Opened by the peer, from addresses that were not known beforehand.
    learned: bool,
    /// Payload bytes that subflows which are gone have sent.
    used: u64,
}

impl Known {
    /// A path to be tried; `delay` before it is tried again.
    fn new(setup: PathSetup, delay: Duration) -> Self {
        Self { setup, attempt: Attempt::Due, delay, in_vain: 0, remote_id: None, learned: false, used: 0 }
    }

    fn is_useless(&self) -> bool {
        self.in_vain >= MAX_IN_VAIN
    }

    fn is_between(&self, tuple: FourTuple) -> bool {
        let ours = self.setup.tuple;
        ours.local.ip() == tuple.local.ip() && ours.remote.ip() == tuple.remote.ip()
    }
}

/// Keeps the paths of one connection.
#[derive(Debug)]
pub(crate) struct PathManager {
    side: Side,
    known: Vec<Known>,
    accept_announced: bool,
    /// No join may go there (RFC 8684 §3.1, flag C).
    forbidden: Option<SocketAddr>,
    first_delay: Duration,
    /// The peer confirmed MPTCP: joins may begin (RFC 8684 §3.2).
    ready: bool,
    stopped: bool,
    /// When there is a path to be tried, stored because every packet reads it.
    next: Instant,
}

impl PathManager {
    pub fn new(side: Side, paths: Vec<PathSetup>, accept_announced: bool, first_delay: Duration) -> Self {
        Self {
            side,
            known: paths.into_iter().map(|setup| Known::new(setup, first_delay)).collect(),
            accept_announced,
            forbidden: None,
            first_delay,
            ready: false,
            stopped: false,
            next: NEVER,
        }
    }

    fn find(&self, id: PathId) -> Option<&Known> {
        self.known.iter().find(|k| k.setup.id == id)
    }

    fn of(&mut self, id: PathId) -> Option<&mut Known> {
        self.known.iter_mut().find(|k| k.setup.id == id)
    }

    /// The id that a path between the addresses of `tuple` would have now: as known, or a new one, or that of a path which
    /// the peer had opened and is gone. `None` if all are in use.
    pub fn likely_id(&self, tuple: FourTuple) -> Option<PathId> {
        let shut = |k: &&Known| k.attempt != Attempt::Open;
        let same = self.known.iter().filter(shut).find(|k| k.is_between(tuple));
        let gone = || self.known.iter().filter(shut).find(|k| k.learned).map(|k| k.setup.id);
        same.map(|k| k.setup.id).or_else(|| self.free_id()).or_else(gone)
    }

    /// The id of the path between the addresses of `tuple`, which is in use from now on; see [`Self::likely_id`].
    pub fn id_for(&mut self, tuple: FourTuple) -> Option<PathId> {
        let id = self.likely_id(tuple)?;
        let fresh = Known::new(PathSetup::new(id, tuple), self.first_delay);
        let fresh = Known { attempt: Attempt::Open, learned: true, ..fresh };
        match self.of(id) {
            Some(known) if known.is_between(tuple) => known.attempt = Attempt::Open,
            Some(gone) => *gone = fresh,
            None => self.known.push(fresh),
        }
        self.changed();
        Some(id)
    }

    /// The path between the addresses of `tuple` was tried in vain too often.
    pub fn is_useless(&self, tuple: FourTuple) -> bool {
        self.known.iter().any(|k| k.is_between(tuple) && k.is_useless())
    }

    fn free_id(&self) -> Option<PathId> {
        (0..PathId::LIMIT as u8).map(PathId).find(|id| self.find(*id).is_none())
    }

    /// The pause before the next attempt, once repeated failures have brought it to its greatest.
    pub fn steady_pause(&self, id: PathId) -> Option<Duration> {
        self.find(id).map(|known| known.delay).filter(|delay| *delay >= Settings::REJOIN_MAX)
    }

    /// The peer's address ID on a path, where it was announced.
    pub fn remote_id(&self, id: PathId) -> Option<u8> {
        self.find(id).and_then(|known| known.remote_id)
    }

    /// A path is a backup by our wish.
    pub fn is_backup(&self, id: PathId) -> bool {
        self.find(id).is_some_and(|known| known.setup.backup)
    }

    /// The operator's account of a path.
    pub fn account(&self, id: PathId) -> Account {
        self.find(id).map_or_else(Account::default, |k| Account {
            policy: k.setup.policy,
            mss: k.setup.mss,
            used: k.used,
        })
    }

    /// Sets the most payload bytes of a segment on a path.
    pub fn set_mss(&mut self, id: PathId, mss: u32) {
        if let Some(known) = self.of(id) {
            known.setup.mss = Some(mss);
        }
    }

    /// Payload bytes sent on a path so far.
    pub fn set_used(&mut self, id: PathId, bytes: u64) {
        if let Some(known) = self.of(id) {
            known.used = bytes;
        }
    }

    pub fn set_policy(&mut self, id: PathId, policy: PathPolicy) {
        if let Some(known) = self.of(id) {
            known.setup.policy = policy;
        }
    }

    pub fn set_backup(&mut self, id: PathId, backup: bool) {
        if let Some(known) = self.of(id) {
            known.setup.backup = backup;
        }
    }

    /// Adds a path to be tried, or changes one; it is tried again unless there is a subflow over it.
    pub fn set(&mut self, setup: PathSetup) {
        let fresh = Known::new(setup, self.first_delay);
        match self.of(fresh.setup.id) {
            Some(known) if known.attempt == Attempt::Open => known.setup = fresh.setup,
            Some(known) => *known = Known { used: known.used, ..fresh },
            None => self.known.push(fresh),
        }
        self.changed();
    }

    /// A subflow is being opened.
    pub fn opened(&mut self, id: PathId) {
        self.set_attempt(id, Attempt::Open);
    }

    /// The race is over, and the connection runs over `id`. What lost it is joined like any other path, but from another
    /// port: the peer may still hold a handshake that was begun from the one that is known.
    pub fn decided(&mut self, id: PathId) {
        for known in self.known.iter_mut().filter(|k| k.setup.id != id) {
            known.setup.tuple.local.set_port(0);
            if matches!(known.attempt, Attempt::After(_)) {
                known.attempt = Attempt::Due;
            }
            known.delay = self.first_delay;
        }
        self.changed();
    }

    fn set_attempt(&mut self, id: PathId, attempt: Attempt) {
        if let Some(known) = self.of(id) {
            known.attempt = attempt;
            self.changed();
        }
    }

    /// Data was delivered since a subflow was last lost: the next failure waits the shortest time again.
    pub fn delivered(&mut self, id: PathId) {
        let first = self.first_delay;
        if let Some(known) = self.of(id) {
            (known.delay, known.in_vain) = (first, 0);
        }
    }

    /// A subflow was answered, and came to nothing.
    pub fn tried_in_vain(&mut self, id: PathId) {
        if let Some(known) = self.of(id) {
            known.in_vain += 1;
        }
    }

    /// A subflow is gone. `over`: closed in order. A path that never opened waits longer each time; one that was tried in vain too
    /// often, or that the peer announced and that may lead nowhere, is not tried any more.
    pub fn lost(&mut self, id: PathId, now: Instant, over: bool, never_opened: bool) {
        if let Some(known) = self.of(id)
            && known.attempt == Attempt::Open
        {
            let nowhere = never_opened && known.remote_id.is_some() && known.delay >= Settings::REJOIN_MAX;
            let again = !(over || nowhere || known.is_useless() || known.learned);
            known.attempt = if again { Attempt::After(now + known.delay) } else { Attempt::Never };
            if never_opened || !over {
                known.delay = (known.delay * 2).min(Settings::REJOIN_MAX);
            }
            self.changed();
        }
    }

    /// A path is not to be used any more.
    pub fn withdraw(&mut self, id: PathId) {
        self.set_attempt(id, Attempt::Never);
    }

    /// The peer refused a join over a path (RFC 8684 §3.9.3). A transient reason is no reason not to try it again.
    pub fn refused(&mut self, id: PathId, reason: Option<Reason>) {
        if !reason.is_some_and(|reason| reason.transient) {
            self.set_attempt(id, Attempt::Unwanted);
        }
    }

    /// No path from this address of ours is to be opened any more.
    pub fn abandon(&mut self, local: IpAddr) {
        for known in self.known.iter_mut().filter(|k| k.setup.tuple.local.ip() == local) {
            known.attempt = Attempt::Never;
        }
        self.changed();
    }

    /// The peer took back an address, over which the subflow on `over` ran; `None`: all paths that it announced.
    pub fn taken_back(&mut self, address_id: u8, over: Option<PathId>) {
        for known in &mut self.known {
            if Some(known.setup.id) == over || known.remote_id == Some(address_id) {
                known.attempt = Attempt::Unwanted;
            }
        }
        self.changed();
    }

    /// The peer announced an address on a subflow between the ends of `over`: a client will join to it from each address of its
    /// own that is of the same family, that of the subflow first.
    pub fn announced(&mut self, over: FourTuple, announced: AddAddr) {
        let AddAddr { address_id, address, port, .. } = announced;
        let (local, remote) = (over.local.ip(), SocketAddr::new(address, port.unwrap_or(over.remote.port())));
        if !self.accept_announced || self.side == Side::Server || self.stopped {
            return;
        }
        // RFC 8684 §3.4.1: an address id that is in use names no other address.
        let named = self.known.iter().filter(|k| k.remote_id == Some(address_id) && k.attempt != Attempt::Unwanted);
        if named.map(|k| k.setup.tuple.remote.ip()).any(|known| known != address) {
            return;
        }
        let mut others: Vec<SocketAddr> =
            self.known.iter().filter(|k| k.remote_id.is_some()).map(|k| k.setup.tuple.remote).collect();
        others.sort();
        others.dedup();
        if others.len() >= MAX_ANNOUNCED && !others.contains(&remote) {
            return;
        }
        let mut locals = vec![local];
        for ip in self.known.iter().map(|k| k.setup.tuple.local.ip()) {
            if !locals.contains(&ip) {
                locals.push(ip);
            }
        }
        for local in locals.into_iter().filter(|ip| ip.is_ipv4() == remote.is_ipv4()) {
            self.may_join(local, remote, address_id);
        }
        self.changed();
    }

    fn may_join(&mut self, local: IpAddr, remote: SocketAddr, address_id: u8) {
        let same = |k: &&mut Known| k.setup.tuple.remote == remote && k.setup.tuple.local.ip() == local;
        if let Some(known) = self.known.iter_mut().find(same) {
            known.remote_id = Some(address_id);
            if known.attempt == Attempt::Unwanted {
                known.attempt = Attempt::Due;
            }
            return;
        }
        let Some(id) = self.free_id() else { return };
        let setup = PathSetup::new(id, FourTuple { local: SocketAddr::new(local, 0), remote });
        self.known.push(Known { remote_id: Some(address_id), ..Known::new(setup, self.first_delay) });
    }

    /// No further subflow may go to that address and port (RFC 8684 §3.1, flag C).
    pub fn keep_off(&mut self, remote: SocketAddr) {
        self.forbidden = Some(remote);
        self.changed();
    }

    /// Joins may begin.
    pub fn open(&mut self) {
        self.ready = true;
        self.changed();
    }

    /// Nothing more is to be opened or announced: what is known of the paths is of no use any more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.known = Vec::new();
        self.changed();
    }

    /// When there is something to do next.
    pub fn next(&self) -> Instant {
        debug_assert_eq!(self.next, self.find_next());
        self.next
    }

    fn changed(&mut self) {
        self.next = self.find_next();
    }

    fn find_next(&self) -> Instant {
        self.known.iter().map(|k| self.attempt_at(k)).min().unwrap_or(NEVER)
    }

    /// A client's joins begin once the peer confirmed MPTCP, as Linux does.
    fn may_open(&self) -> bool {
        self.ready && !self.stopped && self.side == Side::Client
    }

    /// When a path is to be tried.
    fn attempt_at(&self, known: &Known) -> Instant {
        match known.attempt {
            _ if !self.may_open() => NEVER,
            _ if self.forbidden == Some(known.setup.tuple.remote) => NEVER,
            Attempt::Due => Instant::ZERO,
            Attempt::After(at) => at,
            Attempt::Open | Attempt::Unwanted | Attempt::Never => NEVER,
        }
    }

    /// A path that is to be tried now.
    pub fn due(&self, now: Instant) -> Option<PathSetup> {
        if self.next() > now {
            return None;
        }
        self.known.iter().find(|k| self.attempt_at(k) <= now).map(|k| k.setup.clone())
    }
}
