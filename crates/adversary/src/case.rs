//! One transfer: the hosts, the paths, and the changes made to packets.

use crate::class::Class;
use crate::luck::Luck;
pub use crate::middle::Nat;
use crate::middle::{self, Deed, Rule};
use crate::parties::{self, Party};
use crate::script::{self, Act};
use anabranch_engine::connection::PathSetup;
use anabranch_engine::{FirstPath, FourTuple};
use anabranch_units::{Direction, Duration, Instant, PathId, Rng, Side};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The server's port.
pub(crate) const PORT: u16 = 80;
/// The client's port on path 0; on path n it is n more.
pub(crate) const CLIENT_PORT: u16 = 2000;
/// The longest common outage of all paths that every timeout outlasts.
const ENDURED: Duration = Duration::from_secs(5);
/// The time within which every transfer must be over: some timeouts and keep-alives are long.
const LIMIT: Duration = Duration::from_secs(3 * 3600);
/// One-way delay from which on a path is slow; only `Clock` has slow paths.
const SLOW: Duration = Duration::from_secs(5);
/// The server has three more addresses on each path, which only an announcement makes known.
pub(crate) const NEW_ADDRESSES: u8 = 3;

/// An outage of a path, counted from the begin of the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Begin of the outage.
    pub from: Duration,
    /// End of the outage.
    pub until: Duration,
    /// The direction; both if absent.
    pub way: Option<Direction>,
}

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// One-way delay up and down.
    pub delay: [Duration; 2],
    /// Nanoseconds per byte, up and down.
    pub byte_ns: [u64; 2],
    /// IPv6.
    pub v6: bool,
    /// The address translator on the path.
    pub nat: Option<Nat>,
    /// The longest wait in the queue before it, beyond which packets are dropped.
    pub queue: Option<Duration>,
    /// Outages of the path.
    pub dark: Vec<Outage>,
    /// The messages of its router about packets that are too large.
    pub router: Router,
}

/// The messages of a router about packets that are too large (RFC 1191).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// Nothing.
    Silent,
    /// The truth about each that was dropped.
    Honest,
    /// The same; and someone else says such things of packets that passed, and of others that were never sent.
    Forged,
}

/// Packets that belong to neither application's connection, sent to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flood {
    pub kind: Flooding,
    pub from: Duration,
    pub gap: Duration,
    pub count: u32,
}

/// The packets of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flooding {
    /// SYNs, each from another address.
    Syn { capable: bool },
    /// MP_JOIN SYNs with the server's token, each from another address.
    Join,
    /// Segments that belong to no connection.
    Stray,
}

/// A case. It determines the transfer completely.
#[derive(Clone, Debug)]
pub struct Case {
    /// Class of the case.
    pub class: Class,
    /// The seed of keys, sequence numbers and the draws per packet.
    pub seed: u64,
    /// The virtual time of the begin: some hosts have been up almost long enough for a 32-bit clock to wrap.
    pub start: Instant,
    /// Client and server.
    pub parties: [Party; 2],
    /// The paths.
    pub paths: Vec<Path>,
    /// Connections that the server holds at most.
    pub limit: usize,
    pub(crate) script: Vec<Act>,
    pub(crate) floods: Vec<Flood>,
    pub(crate) rules: Vec<Rule>,
    /// The deeds to play in place of the rules.
    pub deeds: Option<Vec<Deed>>,
}

impl Case {
    /// The case of a class with this seed.
    pub fn from_seed(class: Class, seed: u64) -> Self {
        let mut luck = Luck::Drawn(Rng::stream(seed, class.name()));
        Self::draw(class, seed, &mut luck)
    }

    /// The case with this scheduler, at its defaults, and this congestion control at both hosts, where given.
    pub fn with(mut self, scheduler: Option<&str>, congestion: Option<&'static str>) -> Self {
        for party in &mut self.parties {
            if let Some(name) = scheduler {
                (party.scheduler, party.parameters) = (name.to_owned(), Vec::new());
            }
            party.congestion = congestion.unwrap_or(party.congestion);
        }
        self
    }

    /// The case that a fuzzer's bytes encode: the class, then the seed, then everything else in the order in which it
    /// is drawn.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut luck = Luck::Given(bytes);
        let class = *luck.pick(&Class::ALL);
        let seed = luck.below(1 << 32);
        Self::draw(class, seed, &mut luck)
    }

    fn draw(class: Class, seed: u64, luck: &mut Luck<'_>) -> Self {
        let least = if matches!(class, Class::PayloadOnePath | Class::Race) { 2 } else { 1 };
        let count = luck.within(least, 4) as usize;
        let mut paths: Vec<Path> = (0..count as u8).map(|n| path(luck, class, n)).collect();
        let bad = (class == Class::PayloadOnePath).then(|| luck.below(count as u64) as u8);
        let rules = middle::draw(luck, class, count, bad);
        let mut parties = parties::both(luck, class, count);
        let pauses = class == Class::Clock && paths.iter().all(|path| path.delay[0] < SLOW);
        if pauses {
            parties.iter_mut().for_each(|party| party.plan = parties::sparse(luck, party.plan));
        }
        let script = script::acts(luck, class, count);
        let floods = if class == Class::Floods { floods(luck) } else { Vec::new() };
        if class == Class::Clock && !rules.is_empty() {
            // Among thousands of keep-alives are nine in a row that are lost.
            parties.iter_mut().for_each(|party| party.settings.tcp.keep_alive = None);
        }
        let often = if class == Class::Clock { 0.7 } else { 0.05 };
        let start = if luck.chance(often) { luck.within(1, 4) * (1 << 31) - luck.spread(1, 100_000) } else { 0 };
        let start = Instant::from_millis(start);
        let limit = if class == Class::Floods { luck.spread(16, 4096) as usize } else { 64 };
        if class == Class::Race {
            let settings = &mut parties[0].settings;
            settings.first_path = FirstPath::Race;
            settings.race_delay = Duration::from_millis(*luck.pick(&[0, 0, 10, 50, 250]));
        }
        if class == Class::Mtu {
            let router = |luck: &mut Luck<'_>| *luck.pick(&[Router::Silent, Router::Honest, Router::Forged]);
            paths.iter_mut().for_each(|path| path.router = router(luck));
            // RFC 4821 §7: smaller segments after timeouts, and then larger ones.
            parties.iter_mut().for_each(|party| party.settings.tcp.mtu_probing = luck.chance(0.5));
        }
        Self { class, seed, start, parties, paths, limit, script, floods, rules, deeds: None }
    }

    /// Everything must arrive: no event of the case is a reason to give up.
    pub(crate) fn must_complete(&self) -> bool {
        let outages = self.paths.iter().flat_map(|path| &path.dark);
        let dark = outages.fold(Duration::ZERO, |sum, o| sum + o.until.saturating_sub(o.from));
        let bearable = match self.class {
            Class::Strip => self.rules.iter().any(Rule::makes_plain),
            Class::Mtu => (0..self.paths.len()).any(|n| !self.rules.iter().any(|rule| rule.narrows(n as u8))),
            _ => true,
        };
        self.class.must_complete() && bearable && dark <= ENDURED
    }

    /// Virtual time within which it must be over.
    pub(crate) fn limit(&self) -> Duration {
        match self.class {
            Class::Clock => {
                let slow = self.paths.iter().any(|path| path.delay[0] >= SLOW);
                // A packet takes a round trip where nothing measures one that is longer than the longest timeout (RFC 6298 §3).
                let limit = if slow { LIMIT * 8 } else { LIMIT };
                self.parties.iter().fold(limit, |sum, party| sum + party.plan.pauses())
            }
            // A path is given up after five subflows that each retransmit for half an hour.
            Class::Mtu => LIMIT * 2,
            _ => LIMIT,
        }
    }

    /// The host's own address on a path. The server has more: `low` is 2 for the first.
    pub(crate) fn address(&self, path: u8, low: u8) -> IpAddr {
        if self.paths.get(usize::from(path)).is_some_and(|p| p.v6) {
            return IpAddr::V6(Ipv6Addr::new(0xfd00, path.into(), 0, 0, 0, 0, 0, low.into()));
        }
        IpAddr::from([10, path, 0, low])
    }

    /// The paths as the host configures them.
    pub(crate) fn path_setups(&self, side: Side) -> Vec<PathSetup> {
        let party = &self.parties[side as usize - 1];
        let setup = |n: usize| {
            let path = n as u8;
            let client = SocketAddr::new(self.address(path, 1), CLIENT_PORT + u16::from(path));
            let server = SocketAddr::new(self.address(path, 2), PORT);
            let tuple = match side {
                Side::Client => FourTuple { local: client, remote: server },
                Side::Server => FourTuple { local: server, remote: client },
            };
            let policy = party.policies.get(n).copied().unwrap_or_default();
            PathSetup { backup: party.backups >> n & 1 == 1, policy, ..PathSetup::new(PathId(path), tuple) }
        };
        (0..self.paths.len()).map(setup).collect()
    }
}

/// The path between two addresses, and the direction. The client's address, true or translated, decides. `None`:
/// neither host has the address.
pub(crate) fn line_of(src: IpAddr, dst: IpAddr) -> Option<(u8, Direction)> {
    client_path(src).map(|path| (path, Direction::Up)).or_else(|| Some((client_path(dst)?, Direction::Down)))
}

fn client_path(ip: IpAddr) -> Option<u8> {
    match ip {
        IpAddr::V4(ip) => match ip.octets() {
            [10 | 192, path, 0, 1] => Some(path),
            _ => None,
        },
        IpAddr::V6(ip) => {
            let [net, path, .., low] = ip.segments();
            (net >= 0xfd00 && low == 1).then_some(path as u8)
        }
    }
}

/// An initial sequence number, often just before it wraps or changes its sign.
fn number(luck: &mut Luck<'_>) -> u32 {
    match luck.below(3) {
        0 => luck.bits() as u32,
        1 => u32::MAX - luck.spread(1, 50_000) as u32,
        _ => (1 << 31) - luck.spread(1, 50_000) as u32,
    }
}

fn path(luck: &mut Luck<'_>, class: Class, n: u8) -> Path {
    let one_way = match class {
        Class::Wide => luck.time(200_000, 500_000),
        Class::Clock if luck.chance(0.3) => luck.time(5_000_000, 55_000_000),
        _ => luck.time(200, 150_000),
    };
    let delay = if luck.chance(0.3) { [one_way, luck.time(200, 150_000)] } else { [one_way; 2] };
    // From 1 Gbit/s to 0.5 Mbit/s.
    let byte_ns = match class {
        // A round trip holds 200,000 segments and more.
        Class::Wide => [luck.spread(1, 10), luck.spread(1, 10)],
        _ => [luck.spread(8, 16_000), luck.spread(8, 16_000)],
    };
    let queue = (class == Class::Wide).then(|| luck.time(1_000, 100_000));
    let v6 = luck.chance(0.2);
    let address = match v6 {
        true => IpAddr::V6(Ipv6Addr::new(0xfd01, n.into(), 0, 0, 0, 0, 0, 1)),
        false => IpAddr::from([192, n, 0, 1]),
    };
    let translates = class == Class::Nat && luck.chance(0.8) || class == Class::Clock && luck.chance(0.3);
    let nat = translates.then(|| Nat {
        port: luck.within(1, 9000) as u16,
        address,
        isn: [(); 2].map(|()| number(luck)),
        rebind: (class == Class::Nat && luck.chance(0.1)).then(|| luck.spread(10, 100) as u32),
    });
    let mut dark = Vec::new();
    while matches!(class, Class::Blackout | Class::Race) && luck.chance(0.6) {
        let from = luck.time(100, 5_000_000);
        // An outage matters to a race if it covers the race's begin.
        let from = if class == Class::Race && luck.chance(0.5) { Duration::ZERO } else { from };
        let longest = if luck.chance(0.2) { 400_000_000 } else { 20_000_000 };
        let until = from + luck.time(1_000, longest);
        dark.push(Outage { from, until, way: *luck.pick(&[None, None, Some(Direction::Up), Some(Direction::Down)]) });
    }
    Path { delay, byte_ns, v6, nat, queue, dark, router: Router::Silent }
}

fn floods(luck: &mut Luck<'_>) -> Vec<Flood> {
    let flood = |luck: &mut Luck<'_>| Flood {
        kind: *luck.pick(&[
            Flooding::Syn { capable: true },
            Flooding::Syn { capable: false },
            Flooding::Join,
            Flooding::Stray,
        ]),
        from: luck.time(10, 2_000_000),
        gap: luck.time(1, 20_000),
        count: luck.spread(10, 1200) as u32,
    };
    (0..luck.within(1, 3)).map(|_| flood(luck)).collect()
}
