//! Several connections between two hosts: the events of each have its number, and equal those of the engine.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

#[path = "../../sim/tests/common/mod.rs"]
mod common;
mod watch;

use anabranch_engine::{FirstPath, Settings};
use anabranch_observer::{Observers, Unfollowed};
use anabranch_sim::{End, FlowSetup, Opening, Party, address, client_port};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Duration, Instant, PathId, Side};
use anabranch_wire::Packet;
use anabranch_workload::{BulkSink, BulkSource, Workload};
use common::{Transfer, lossy, path};
use watch::{KINDS, Log};

const CONNECTIONS: u32 = 6;
const SIZE: u64 = 300_000;

fn number(port: u16) -> Option<ConnId> {
    (0..CONNECTIONS).map(ConnId).find(|id| client_port(*id) == port)
}

struct Host {
    observers: Observers,
    engine: Log,
    observed: Log,
}

struct Watch([Host; 2]);

fn place(side: Side) -> usize {
    usize::from(side == Side::Server)
}

struct Notes<'a>(&'a mut Log);

impl Recorder for Notes<'_> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.push((now, origin, *event));
    }
}

impl Recorder for Watch {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let Some(side) = origin.host {
            self.0[place(side)].engine.push((now, origin, *event));
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let Host { observers, observed, .. } = &mut self.0[place(host)];
        let followed = observers.packet(now, sent, path, packet, &mut Notes(observed));
        assert!(followed.is_some(), "{now} {host:?} {sent} {path} {packet}");
    }
}

/// Both ends of all connections, opened a few milliseconds after each other, over the first path or in a race of all at once.
fn flow(transfer: &Transfer, race: bool) -> FlowSetup {
    let over: Vec<_> = (0..transfer.paths.len()).map(|n| (PathId(n as u8), false)).collect();
    let party = |side, n| {
        let mut setup = transfer.setup(n, side, &over);
        setup.paths = anabranch_sim::paths_between(false, 0, side, &over);
        if race {
            setup.settings = Settings { first_path: FirstPath::Race, race_delay: Duration::ZERO, ..setup.settings };
        }
        let opening = if race { over.len() } else { 1 };
        for path in &mut setup.paths[..opening] {
            let client = if side == Side::Client { &mut path.tuple.local } else { &mut path.tuple.remote };
            client.set_port(client_port(ConnId(n)));
        }
        let workload: Box<dyn Workload> = match side {
            Side::Client => Box::new(BulkSink::new(Some(SIZE))),
            Side::Server => Box::new(BulkSource::new(Some(SIZE))),
        };
        Party { setup, workload }
    };
    let opening = Opening::At((0..CONNECTIONS).map(|n| Instant::from_millis(7 * u64::from(n / 2))).collect());
    let end =
        |side| End::Engine { parties: (0..CONNECTIONS).map(|n| party(side, n)).collect(), opening: opening.clone() };
    let routes = over.iter().map(|(path, _)| (address(false, *path, 0, Side::Client), path.index())).collect();
    FlowSetup { captured: true, ..FlowSetup::between(end(Side::Client), end(Side::Server), routes) }
}

fn watched(transfer: &Transfer, race: bool) -> Watch {
    let mut world = transfer.world_of(vec![flow(transfer, race)]);
    let host = |side| Host { observers: Observers::new(side, number), engine: Log::new(), observed: Log::new() };
    let mut watch = Watch([host(Side::Client), host(Side::Server)]);
    world.run(Instant::ZERO + Duration::from_secs(60), &mut watch).expect("it goes on");
    watch
}

#[test]
fn candidates_of_a_race_are_one_connection() {
    // The near path is the second, and it wins.
    let transfer = Transfer::new(vec![path("far", 4000, 40, 30), lossy("near", 8000, 10, 30, 0.02)]);
    let watch = watched(&transfer, true);
    for (Host { observers, engine, observed }, client) in watch.0.iter().zip([true, false]) {
        // The far SYN reaches the server after the near path has won: it, its answer and the reset belong to no
        // connection.
        let stray_packets = if client { 0 } else { 3 * u64::from(CONNECTIONS) };
        assert_eq!(observers.unfollowed(), Unfollowed { stray_packets, ..Unfollowed::default() });
        // A server records no incomplete handshake: its SYN/ACKs are not among its events.
        for (name, kind) in KINDS.iter().filter(|(name, _)| client || *name != "control") {
            let only = |log: &Log| -> Log {
                log.iter().filter_map(|(now, origin, event)| Some((*now, *origin, kind(event)?))).collect()
            };
            assert_eq!(only(engine), only(observed), "{name}");
        }
        let connected = |(_, origin, event): &(Instant, Origin, Event)| {
            matches!(event, Event::Connected(true)).then_some((origin.connection, origin.path))
        };
        let mut first: Vec<_> = observed.iter().filter_map(connected).collect();
        first.sort();
        assert_eq!(first, (0..CONNECTIONS).map(|n| (ConnId(n), PathId(1))).collect::<Vec<_>>());
    }
}

#[test]
fn every_connection_is_followed_under_its_number() {
    let transfer = Transfer::new(vec![lossy("near", 8000, 10, 30, 0.02), path("far", 4000, 40, 30)]);
    let watch = watched(&transfer, false);
    for Host { observers, engine, observed } in &watch.0 {
        assert_eq!(observers.unfollowed(), Unfollowed::default());
        for id in (0..CONNECTIONS).map(ConnId) {
            for (name, kind) in KINDS {
                let only = |log: &Log| -> Log {
                    let own = log.iter().filter(|(_, origin, _)| origin.connection == id);
                    own.filter_map(|(now, origin, event)| Some((*now, *origin, kind(event)?))).collect()
                };
                let (recorded, seen) = (only(engine), only(observed));
                assert_eq!(recorded, seen, "{id:?} {name}");
                let common = ["control", "connected"].contains(&name);
                assert!(!common || !seen.is_empty(), "{id:?} {name}");
            }
        }
    }
    // Over both paths, so that joins were assigned, too.
    let of = |id: ConnId, path| {
        let data = |(_, origin, event): &&(Instant, Origin, Event)| {
            (origin.connection, origin.path) == (id, PathId(path)) && matches!(event, Event::DataSent { .. })
        };
        watch.0[place(Side::Server)].observed.iter().filter(data).count()
    };
    assert!((0..CONNECTIONS).map(ConnId).all(|id| of(id, 0) > 0 && of(id, 1) > 0));
}
