//! Harnesses: one endpoint against hand-written segments, and two endpoints with pipes between them.
#![allow(dead_code)] // each test file uses its own part

pub mod pair;
pub mod solo;

use anabranch_engine::congestion::FixedWindows;
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::schedule::{Round, Scheduler};
use anabranch_engine::{FourTuple, Settings, TcpSettings};
use anabranch_trace::{Event, Origin, Recorder, Violation};
use anabranch_units::{ConnId, Duration, Instant, PathId};
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

pub const SERVER_PORT: u16 = 80;

pub fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The address of the client (1) or the server (2) on a path.
pub fn host(path: u8, low: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, path, 0, low))
}

/// The client's tuple on a path.
pub fn client_tuple(path: u8) -> FourTuple {
    FourTuple {
        local: SocketAddr::new(host(path, 1), 1000 + u16::from(path)),
        remote: SocketAddr::new(host(path, 2), SERVER_PORT),
    }
}

pub fn mirror(t: FourTuple) -> FourTuple {
    FourTuple { local: t.remote, remote: t.local }
}

/// Sends on the fastest path that has room.
#[derive(Debug)]
pub struct Fastest;

impl Scheduler for Fastest {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while let Some(id) = round.fastest_eligible().map(|p| p.id) {
            if !round.send_next(id) {
                return;
            }
        }
    }
}

/// No timestamps, so that options are few and numbers readable; and no waiting for more to write.
pub fn plain_stamps() -> Settings {
    let tcp = TcpSettings { timestamps: false, nagle: false, ..TcpSettings::default() };
    Settings { tcp, mss: 1000, ..Settings::default() }
}

/// As [`plain_stamps`], without MPTCP.
pub fn tcp() -> Settings {
    Settings { mptcp: false, ..plain_stamps() }
}

pub fn setup(settings: Settings, paths: Vec<PathSetup>) -> Setup {
    Setup {
        id: ConnId(0),
        settings,
        scheduler: Box::new(Fastest),
        congestion: Box::new(FixedWindows::default()),
        paths,
        announce: Vec::new(),
        accept_announced: false,
    }
}

pub fn client_paths(n: u8) -> Vec<PathSetup> {
    (0..n).map(|p| PathSetup::new(PathId(p), client_tuple(p))).collect()
}

/// `len` bytes whose values follow from their offset.
pub fn pattern(from: u64, len: usize) -> Bytes {
    (from..from + len as u64).map(|i| (i % 251) as u8).collect::<Vec<u8>>().into()
}

/// Remembers events.
#[derive(Debug, Default)]
pub struct Log(pub Vec<(Instant, Event)>);

impl Recorder for Log {
    fn record(&mut self, now: Instant, _origin: Origin, event: &Event) {
        let void = match event {
            Event::Lost { packets } => *packets == 0,
            Event::Written(range) => range.is_empty(),
            _ => false,
        };
        assert!(!void, "{event:?} at {now}: nothing happened");
        self.0.push((now, *event));
    }
}

impl Log {
    pub fn saw(&self, event: Event) -> bool {
        self.0.iter().any(|(_, e)| *e == event)
    }
    pub fn violated(&self, rule: Violation) -> bool {
        self.saw(Event::Violation(rule))
    }
}
