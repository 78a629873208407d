//! Middleboxes that remove options, change data or reset subflows: the observer follows the engines' reactions too.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
mod watch;

use anabranch_engine::connection::PathSetup;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, Settings};
use anabranch_observer::Unfollowed;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Duration, Instant, PathId, Rng, Side};
use anabranch_wire::{Flags, Options, Packet};
use bytes::Bytes;
use std::collections::BTreeMap;
use watch::{Host, Seen, compare_host};

/// A change of a packet in transit: time, sender, path.
type Meddle = fn(Instant, Side, PathId, &mut Packet);

struct Party {
    endpoint: Endpoint,
    handle: Option<Handle>,
    rng: Rng,
    unwritten: Bytes,
    got: u64,
    host: Host,
}

/// Records the engine's events.
struct Inside<'a>(&'a mut Host);

impl Recorder for Inside<'_> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.engine.push((now, origin, *event));
    }
}

/// Records the observed events.
struct Outside<'a>(&'a mut watch::Log);

impl Recorder for Outside<'_> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.push((now, origin, *event));
    }
}

impl Party {
    fn new(side: Side, write: usize) -> Self {
        Self {
            endpoint: Endpoint::default(),
            handle: None,
            rng: Rng::stream(1, if side == Side::Client { "client" } else { "server" }),
            unwritten: common::pattern(0, write),
            got: 0,
            host: Host::new(side),
        }
    }

    fn cross(&mut self, now: Instant, sent: bool, path: PathId, packet: &Packet) {
        let Host { observer, observed, .. } = &mut self.host;
        observer.packet(now, sent, path, packet, &mut Outside(observed));
    }

    /// Writes the remaining bytes, then finishes; reads the received bytes.
    fn serve(&mut self, now: Instant) {
        let mut cx = Cx { now, recorder: &mut Inside(&mut self.host), rng: &mut self.rng };
        self.handle = self.handle.or_else(|| self.endpoint.poll_accept());
        let Some(handle) = self.handle else { return };
        while self.endpoint.poll_event(handle).is_some() {}
        let Some(connection) = self.endpoint.connection_mut(handle) else { return };
        let taken = connection.write(&mut cx, self.unwritten.clone());
        drop(self.unwritten.split_to(taken));
        if self.unwritten.is_empty() {
            connection.finish(&mut cx);
        }
        while let Some(bytes) = connection.read(&mut cx) {
            self.got += bytes.len() as u64;
        }
    }
}

/// The client and the server after a minute. Each direction takes 10 ms on path 0, 20 on path 1.
fn run(paths: u8, settings: Settings, write: [usize; 2], meddle: Meddle) -> [Party; 2] {
    let mut parties = [Party::new(Side::Client, write[0]), Party::new(Side::Server, write[1])];
    let of_server = settings.clone();
    let accept = move |_| {
        let known = common::client_paths(paths).into_iter();
        let paths = known.map(|p| PathSetup { tuple: common::mirror(p.tuple), ..p }).collect();
        Some(common::setup(of_server.clone(), paths))
    };
    parties[1].endpoint.listen(common::SERVER_PORT, Box::new(accept));
    let client = &mut parties[0];
    let mut cx = Cx { now: Instant::ZERO, recorder: &mut Inside(&mut client.host), rng: &mut client.rng };
    client.handle = Some(client.endpoint.connect(&mut cx, common::setup(settings, common::client_paths(paths))));
    let mut flying = BTreeMap::new();
    let (mut now, mut order) = (Instant::ZERO, 0);
    while now < common::at(60_000) {
        for side in [Side::Client, Side::Server] {
            let party = &mut parties[usize::from(side == Side::Server)];
            party.serve(now);
            loop {
                let mut cx = Cx { now, recorder: &mut Inside(&mut party.host), rng: &mut party.rng };
                let Some((path, mut packet)) = party.endpoint.poll_transmit(&mut cx) else { break };
                let Some(path) = path else { continue };
                party.cross(now, true, path, &packet);
                meddle(now, side, path, &mut packet);
                order += 1;
                let arrives = now + Duration::from_millis(10 * (u64::from(path.0) + 1));
                flying.insert((arrives, order), (side, path, packet));
            }
            party.serve(now);
        }
        let arrival = flying.keys().next().map(|(at, _)| *at);
        let timers = parties.iter().filter_map(|p| p.endpoint.poll_timeout());
        let Some(next) = arrival.into_iter().chain(timers).min() else { break };
        now = now.max(next);
        let arrived = flying.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove());
        if let Some((from, path, packet)) = arrived {
            let party = &mut parties[usize::from(from == Side::Client)];
            party.cross(now, false, path, &packet);
            let mut cx = Cx { now, recorder: &mut Inside(&mut party.host), rng: &mut party.rng };
            party.endpoint.handle_packet(&mut cx, &packet);
            continue;
        }
        for party in &mut parties {
            let mut cx = Cx { now, recorder: &mut Inside(&mut party.host), rng: &mut party.rng };
            party.endpoint.handle_timeout(&mut cx);
        }
    }
    parties
}

/// Both observers' events equal the engines'; returns how often each saw the fallback.
#[track_caller]
fn check(parties: &[Party; 2]) -> [usize; 2] {
    for party in parties {
        compare_host(&party.host, &mut Seen::default()).expect("the same is observed");
        assert_eq!(party.host.observer.unfollowed(), Unfollowed::default());
    }
    [0, 1].map(|n| parties[n].host.observed.iter().filter(|(_, _, e)| *e == Event::Fallback).count())
}

/// Removes every MPTCP option.
fn strip(packet: &mut Packet) {
    let options = &packet.segment.options;
    let mut left = Options::new();
    options.mss().map(|mss| left.set_mss(mss));
    options.window_scale().map(|shift| left.set_window_scale(shift));
    options.timestamps().map(|stamps| left.set_timestamps(stamps));
    if options.sack_permitted() {
        left.set_sack_permitted();
    }
    left.set_sack(options.sack());
    packet.segment.options = left;
}

fn spoil(packet: &mut Packet) {
    let mut bytes = packet.segment.payload.to_vec();
    bytes.iter_mut().take(1).for_each(|b| *b ^= 0xff);
    packet.segment.payload = bytes.into();
}

const BOTH: [usize; 2] = [100_000, 150_000];

#[test]
fn without_options_there_is_plain_tcp() {
    let parties = run(1, common::plain_stamps(), BOTH, |_, _, _, p| strip(p));
    assert_eq!((check(&parties), parties.map(|p| p.got)), ([0, 0], [150_000, 100_000]));
}

#[test]
fn options_lost_on_the_syn_ack() {
    let meddle: Meddle = |_, side, _, p| {
        if side == Side::Server {
            strip(p);
        }
    };
    let parties = run(1, common::plain_stamps(), BOTH, meddle);
    assert_eq!((check(&parties), parties.map(|p| p.got)), ([0, 1], [150_000, 100_000]));
}

#[test]
fn options_lost_after_the_syns() {
    let meddle: Meddle = |_, _, _, p| {
        if !p.segment.flags.has(Flags::SYN) {
            strip(p);
        }
    };
    let parties = run(1, common::plain_stamps(), BOTH, meddle);
    assert_eq!((check(&parties), parties.map(|p| p.got)), ([1, 1], [150_000, 100_000]));
}

#[test]
fn changed_data_ends_in_plain_tcp() {
    let checked = Settings { checksum: true, ..common::plain_stamps() };
    let meddle: Meddle = |now, side, _, p| {
        if side == Side::Server && now > common::at(50) && now < common::at(100) {
            spoil(p);
        }
    };
    // A client that has already finished must send MP_FAIL before its FIN.
    for client in [400_000, 0] {
        let parties = run(1, checked.clone(), [client, 400_000], meddle);
        assert_eq!((check(&parties), parties.map(|p| p.got)), ([1, 1], [400_000, client as u64]));
    }
}

#[test]
fn a_reset_on_one_path_leaves_the_other() {
    let meddle: Meddle = |now, _, path, p| {
        if path == PathId(1) && now > common::at(150) && now < common::at(250) && !p.segment.payload.is_empty() {
            p.segment.flags = Flags::RST | Flags::ACK;
            p.segment.payload = Bytes::new();
        }
    };
    let parties = run(2, common::plain_stamps(), [0, 2_000_000], meddle);
    assert_eq!((check(&parties), parties[0].got), ([0, 0], 2_000_000));
    let dead = Event::Path(anabranch_trace::PathState::Dead);
    assert!(parties[0].host.observed.iter().any(|(_, _, e)| *e == dead));
}
