//! A server that sends a stream to each connection, and a client that downloads it over several interfaces.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod ground;

use anabranch_carrier::files::{self, KeyFile};
use anabranch_carrier::{Limits, PeerId};
use anabranch_engine::connection::{Connection, ConnectionEvent, PathSetup, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple, Settings, TcpSettings};
use anabranch_lab::Clock;
use anabranch_link::{ClientLink, Driver, Engine, Link, ServerLink, secrets};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Duration, Instant, PathId};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the server's engine listens.
pub const PORT: u16 = 7;
/// No prime power of two divides its length, so that a shifted or swapped segment is noticed.
const PERIOD: usize = 65_521;

pub fn pattern() -> Bytes {
    (0..PERIOD as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect::<Vec<u8>>().into()
}

pub fn setup(scheduler: &str, mss: u32, paths: Vec<PathSetup>) -> Setup {
    Setup {
        id: ConnId(0),
        settings: Settings { mss, tcp: TcpSettings { ecn: true, ..TcpSettings::default() }, ..Settings::default() },
        scheduler: anabranch_schedulers::build(scheduler, &[]).unwrap(),
        congestion: anabranch_congestion::build("cubic", &[]).unwrap(),
        paths,
        announce: Vec::new(),
        accept_announced: false,
    }
}

/// Payload of a segment on a path of 1,200 bytes: without the carrier's 32 bytes, IPv4's 20, TCP's 60 at most.
pub const MSS: u32 = 1_080;

pub fn seed() -> u64 {
    rand_core::Rng::next_u64(&mut secrets::random())
}

/// The congestion that a sender noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Congestion {
    /// Windows reduced because of a mark.
    pub marked: u64,
    /// Packets taken for lost. A tail loss probe repeats the last packet without this, where its acknowledgment is only late (RFC 8985 §7).
    pub lost: u64,
}

impl Recorder for Congestion {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        match *event {
            Event::Marked => self.marked += 1,
            Event::Lost { packets } => self.lost += u64::from(packets),
            _ => {}
        }
    }
}

/// A server that sends `size` bytes of the pattern on each connection.
pub struct Sender {
    pub driver: Driver<ServerLink, PeerId>,
    size: u64,
    clients: usize,
    /// Each connection with what it has still to send.
    open: Vec<(PeerId, Handle, u64)>,
    pub congestion: Congestion,
}

impl Sender {
    pub fn new(
        local: SocketAddr,
        key: &KeyFile,
        clients: Vec<files::Client>,
        scheduler: &'static str,
        size: u64,
        mss: u32,
    ) -> Self {
        let count = clients.len();
        let link = ServerLink::listen(local, key.key.clone(), clients, Limits::default(), Duration::ZERO).unwrap();
        let make = move |_, _| {
            let mut endpoint = Endpoint::default();
            endpoint.listen(PORT, Box::new(move |_| Some(setup(scheduler, mss, Vec::new()))));
            Some(Engine::new(endpoint, seed()))
        };
        let driver = Driver::new(link, Clock::start(), Box::new(make));
        Self { driver, size, clients: count, open: Vec::new(), congestion: Congestion::default() }
    }

    pub fn address(&self) -> SocketAddr {
        self.driver.link.local().unwrap()
    }

    pub fn run(mut self, stop: &AtomicBool) -> Self {
        let pattern = pattern();
        while !stop.load(Ordering::Relaxed) {
            let deadline = self.driver.now() + Duration::from_millis(20);
            self.driver.turn(deadline, &mut self.congestion).unwrap();
            for peer in (0..self.clients).map(PeerId) {
                let accepted = |endpoint: &mut Endpoint, _: &mut Cx<'_>| endpoint.poll_accept();
                while let Some(Some(handle)) = self.driver.with(peer, &mut (), accepted) {
                    self.open.push((peer, handle, self.size));
                }
            }
            for (peer, handle, left) in &mut self.open {
                self.driver.with(*peer, &mut self.congestion, |endpoint, cx| {
                    let Some(connection) = endpoint.connection_mut(*handle) else { return };
                    feed(connection, cx, &pattern, self.size, left);
                });
            }
        }
        self
    }
}

fn feed(connection: &mut Connection, cx: &mut Cx<'_>, pattern: &Bytes, size: u64, left: &mut u64) {
    while connection.poll_event().is_some() {}
    while *left > 0 && connection.writable() > 0 {
        let at = ((size - *left) % PERIOD as u64) as usize;
        let chunk = pattern.slice(at..PERIOD.min(at + *left as usize));
        let taken = connection.write(cx, chunk);
        *left -= taken as u64;
        if taken == 0 {
            return;
        }
    }
    if *left == 0 {
        connection.finish(cx);
    }
}

/// The outcome of a download.
#[derive(Debug)]
pub struct Downloaded {
    pub bytes: u64,
    pub finished: bool,
    pub took: Duration,
    /// The longest time between two arrivals.
    pub silence: Duration,
}

/// A client with its interfaces.
pub struct Receiver {
    pub driver: Driver<ClientLink, ()>,
}

impl Receiver {
    pub fn new(key: KeyFile, server: anabranch_carrier::PublicKey, address: SocketAddr, interfaces: &[&str]) -> Self {
        let clock = Clock::start();
        let mut link = ClientLink::new(clock.now(), key, server, address);
        for (n, interface) in interfaces.iter().enumerate() {
            link.add_path(clock.now(), PathId(n as u8), interface).unwrap();
        }
        Self { driver: Driver::new(link, clock, Box::new(|(), _| Some(Engine::new(Endpoint::default(), seed())))) }
    }

    pub fn join(&mut self) -> bool {
        let until = self.driver.now() + Duration::from_secs(20);
        while !self.driver.link.is_established() && self.driver.now() < until {
            let deadline = self.driver.now() + Duration::from_millis(20);
            self.driver.turn(deadline, &mut ()).unwrap();
        }
        self.driver.link.is_established()
    }

    pub fn paths(&self, count: u8) -> Vec<PathSetup> {
        let addresses = self.driver.link.addresses();
        let tuple =
            |path| FourTuple { local: (addresses.client(path), 0).into(), remote: (addresses.server(), PORT).into() };
        (0..count).map(PathId).map(|path| PathSetup::new(path, tuple(path))).collect()
    }

    /// Downloads in segments of `mss` bytes until the end or the deadline, and calls `at` after each turn with the bytes so far.
    pub fn download(&mut self, paths: u8, mss: u32, limit: Duration, mut at: impl FnMut(&mut Self, u64)) -> Downloaded {
        let setup = setup("minrtt", mss, self.paths(paths));
        let begun = self.driver.now();
        let handle = self.driver.with((), &mut (), |endpoint, cx| endpoint.connect(cx, setup)).unwrap();
        let pattern = pattern();
        let mut got = Downloaded { bytes: 0, finished: false, took: Duration::ZERO, silence: Duration::ZERO };
        let mut last = begun;
        while !got.finished && self.driver.now() < begun + limit {
            let deadline = self.driver.now() + Duration::from_millis(20);
            self.driver.turn(deadline, &mut ()).unwrap();
            let before = got.bytes;
            self.driver.with((), &mut (), |endpoint, cx| {
                let Some(connection) = endpoint.connection_mut(handle) else { return };
                drain(connection, cx, &pattern, &mut got);
            });
            let now = self.driver.now();
            if got.bytes > before {
                got.silence = if before > 0 { got.silence.max(now.since(last)) } else { got.silence };
                last = now;
            }
            at(self, got.bytes);
        }
        got.took = self.driver.now().since(begun);
        got
    }
}

fn drain(connection: &mut Connection, cx: &mut Cx<'_>, pattern: &Bytes, got: &mut Downloaded) {
    while let Some(event) = connection.poll_event() {
        assert!(!matches!(event, ConnectionEvent::FellBack), "it is Multipath TCP");
    }
    while let Some(bytes) = connection.read(cx) {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let at = (got.bytes % PERIOD as u64) as usize;
            let len = rest.len().min(PERIOD - at);
            assert!(rest[..len] == pattern[at..at + len], "a wrong byte after {}", got.bytes);
            got.bytes += len as u64;
            rest = &rest[len..];
        }
    }
    if connection.read_finished() && !got.finished {
        got.finished = true;
        connection.finish(cx);
    }
}

pub fn admit(key: &KeyFile, name: &str) -> files::Client {
    files::authorized(&key.authorization(name).unwrap()).unwrap().remove(0)
}

pub fn stop() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

/// Lets what both ends still owe each other pass.
pub fn settle<E: Copy + PartialEq, L: Link<E>>(driver: &mut Driver<L, E>, time: Duration) {
    let until: Instant = driver.now() + time;
    while driver.now() < until {
        driver.turn(until, &mut ()).unwrap();
    }
}
