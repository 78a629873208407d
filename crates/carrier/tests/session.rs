//! Handshakes, renewals, several paths, and what time does.

mod common;

use anabranch_carrier::{PeerEvent, PeerId, Unsent};
use anabranch_units::{Duration, Instant, PathId};
use common::{Delivered, FAIR, Weather, World, client_later, key, packet};
use proptest::prelude::*;

const P0: PathId = PathId(0);
const P1: PathId = PathId(1);

fn joined(paths: u8) -> World {
    let mut world = World::new(&[2], FAIR, 1);
    world.add(2, paths);
    world.secs(1);
    world
}

#[test]
fn a_session_begins_in_one_round_trip_and_carries_packets_both_ways() {
    let mut world = World::new(&[2], FAIR, 1);
    world.add(2, 2);
    assert_eq!(world.up(2, P0, 100, 1), None, "no application data before the session");
    world.run(Duration::from_millis(20));
    assert!(world.clients[&2].is_established());
    world.secs(1);
    assert_eq!(world.events, [PeerEvent::Began(PeerId(0))]);
    for path in [P0, P1] {
        assert!(world.up(2, path, 100, 7).is_some() && world.down(2, path, 1_400, 8).is_some());
    }
    world.secs(1);
    let all: Vec<_> = world.delivered.iter().map(|d| (d.to_server, d.path, d.number)).collect();
    assert_eq!(all, [(true, P0, 7), (false, P0, 8), (true, P1, 7), (false, P1, 8)]);
    assert_eq!(world.clients[&2].path(P1).unwrap().rtt, Some(Duration::from_millis(20)));
}

#[test]
fn both_ends_have_the_same_inner_addresses() {
    let world = joined(1);
    assert_eq!(world.server.addresses(PeerId(0)), Some(world.clients[&2].addresses()));
}

#[test]
fn a_new_handshake_every_120_s_loses_no_packet() {
    let mut world = joined(2);
    let mut sent = 0;
    while world.now < Instant::ZERO + Duration::from_secs(400) {
        world.run(Duration::from_millis(50));
        for path in [P0, P1] {
            assert!(world.up(2, path, 200, sent).is_some() && world.down(2, path, 200, sent).is_some());
            sent += 2;
        }
    }
    world.secs(1);
    assert_eq!(world.delivered.len() as u32, sent);
    assert_eq!(world.clients[&2].counters().handshakes, 4, "at 0, 120, 240 and 360 s");
    assert_eq!(world.events.len(), 1, "new keys are no new session");
}

#[test]
fn the_old_keys_serve_until_the_new_ones_are_confirmed() {
    let mut world = joined(1);
    world.secs(118);
    // Message 1 of the renewal arrives; its answer does not.
    let (before, spent) = (world.server.counters().handshakes, world.server.counters().multiplications);
    while world.server.counters().multiplications == spent {
        world.run(Duration::from_millis(1));
        assert!(world.now < Instant::ZERO + Duration::from_secs(125));
    }
    let flying = world.flying.len();
    world.flying.retain(|_, flying| flying.bytes[0] != 2);
    assert_eq!(world.flying.len(), flying - 1, "message 2 is lost");
    assert!(world.down(2, P0, 100, 1).is_some() && world.up(2, P0, 100, 2).is_some());
    world.run(Duration::from_millis(100));
    assert_eq!(world.delivered.len(), 2);
    assert_eq!(world.server.counters().handshakes, before);
    world.secs(5);
    assert_eq!(world.server.counters().handshakes, before + 1, "the client repeats it");
}

#[test]
fn keys_of_180_s_are_over() {
    let mut world = joined(1);
    world.weather.loss = 1.0;
    world.secs(178);
    assert!(world.down(2, P0, 100, 1).is_some() && world.up(2, P0, 100, 1).is_some());
    world.secs(3);
    assert_eq!((world.down(2, P0, 100, 1), world.up(2, P0, 100, 1)), (None, None));
    assert_eq!(world.events, [PeerEvent::Began(PeerId(0)), PeerEvent::Ended(PeerId(0))]);
    world.weather.loss = 0.0;
    world.secs(20);
    assert_eq!(world.events.last(), Some(&PeerEvent::Began(PeerId(0))));
    assert_eq!(world.server.addresses(PeerId(0)), Some(world.clients[&2].addresses()), "the same client");
}

#[test]
fn a_session_outlives_its_keys_for_as_long_as_the_server_keeps_it() {
    let limits = anabranch_carrier::Limits::default();
    for (silent, events) in [(400, 1), (900, 3)] {
        let mut world = World::new(&[2], FAIR, 1);
        world.server = common::patient_server(&[2], limits, Duration::from_secs(600));
        world.add(2, 1);
        world.secs(1);
        world.weather.loss = 1.0;
        world.secs(silent);
        world.weather.loss = 0.0;
        world.secs(20);
        assert!(world.down(2, P0, 100, 1).is_some() && world.up(2, P0, 100, 1).is_some(), "{silent}");
        assert_eq!(world.events.len(), events, "{silent}: {:?}", world.events);
    }
}

#[test]
fn a_server_that_forgot_the_session_is_noticed() {
    let mut world = joined(1);
    world.server = common::server(&[2], anabranch_carrier::Limits::default());
    world.up(2, P0, 100, 1);
    // Programs wait so long.
    world.secs(3);
    assert!(world.up(2, P0, 100, 2).is_some());
    world.secs(1);
    assert_eq!(world.delivered.last().map(|d| d.number), Some(2));
}

/// A client learns by new keys that its server has lost the session; new keys of the same session, and late datagrams, show nothing.
#[test]
fn a_client_learns_that_its_server_has_forgotten_the_session() {
    let limits = anabranch_carrier::Limits::default();
    let forgotten = |world: &mut World| world.clients.get_mut(&2).unwrap().poll_forgotten();
    let mut world = joined(2);
    world.secs(250);
    assert_eq!(world.clients[&2].counters().handshakes, 3, "at 0, 120 and 240 s");
    assert!(!forgotten(&mut world));
    let old: Vec<_> = world.seen.iter().filter(|(_, flying)| !flying.to_server).map(|(_, f)| f.clone()).collect();
    world.server = common::random_server(&[2], limits, Duration::ZERO, 201);
    world.up(2, P0, 100, 1);
    world.secs(3);
    assert_eq!((forgotten(&mut world), forgotten(&mut world)), (true, false), "once");
    old.iter().rev().take(1_000).for_each(|flying| world.arrive(flying));
    world.secs(60);
    assert!(!forgotten(&mut world));
    // A session without keys that the server gave up.
    world.weather.loss = 1.0;
    world.secs(400);
    world.weather.loss = 0.0;
    world.secs(20);
    assert!(forgotten(&mut world));
}

#[test]
fn a_client_that_starts_again_begins_another_session() {
    let mut world = joined(2);
    let before = world.clients[&2].addresses();
    world.add_client(2, client_later(2, 5_000_000_001), 1);
    world.secs(2);
    assert_eq!(world.events, [PeerEvent::Began(PeerId(0)); 2]);
    assert_ne!(world.clients[&2].addresses(), before);
    assert_eq!(world.down(2, P1, 100, 1), None, "paths of the other session are gone");
    assert!(world.down(2, P0, 100, 1).is_some());
}

#[test]
fn a_client_whose_clock_went_back_is_refused_until_it_passes() {
    let mut world = joined(1);
    let keys = key(2);
    let settings = anabranch_carrier::ClientSettings {
        key: keys.key,
        preshared: keys.preshared,
        server: common::public(common::SERVER),
        epoch: common::EPOCH - 30_000_000_000,
    };
    world.add_client(2, anabranch_carrier::Client::new(settings, common::random(77)), 1);
    world.secs(20);
    assert!(!world.clients[&2].is_established());
    assert!(world.server.counters().old_handshakes > 0);
    world.secs(40);
    assert!(world.clients[&2].is_established());
}

#[test]
fn a_path_that_comes_later_joins_and_one_that_goes_is_refused() {
    let mut world = joined(1);
    let now = world.now;
    world.clients.get_mut(&2).unwrap().add_path(now, P1);
    world.secs(1);
    assert!(world.up(2, P1, 100, 1).is_some() && world.down(2, P1, 100, 2).is_some());
    world.secs(1);
    assert_eq!(world.delivered.len(), 2);
    world.clients.get_mut(&2).unwrap().remove_path(P1);
    assert_eq!(world.up(2, P1, 100, 3), None);
    assert!(!world.clients.get_mut(&2).unwrap().add_path(now, PathId(16)), "a path's id has four bits");
}

#[test]
fn handshakes_try_every_path() {
    let mut world = World::new(&[2], FAIR, 1);
    world.add(2, 3);
    // The first path is dead: what is sent there is thrown away.
    for _ in 0..100 {
        world.run(Duration::from_millis(40));
        world.flying.retain(|_, flying| flying.path != P0);
    }
    assert!(world.clients[&2].is_established());
}

#[test]
fn a_packet_that_the_path_does_not_carry_whole_travels_in_two() {
    let mut world = World::new(&[2], Weather { mtu: 1_200, ..FAIR }, 1);
    world.add(2, 1);
    world.secs(1);
    let max = |world: &World| (world.clients[&2].path(P0).unwrap().max_packet, world.server.max_packet(PeerId(0), P0));
    assert_eq!(max(&world), (1_200 - 32, Some(1_200 - 32)));
    let cut = |world: &World| (world.clients[&2].counters().cut, world.server.counters().cut);
    for (n, size) in [1_168, 1_169, 1_440, 2_326].into_iter().enumerate() {
        let (up, down) = (world.up(2, P0, size, n as u32).unwrap(), world.down(2, P0, size, n as u32).unwrap());
        assert!(up.is_empty() == (n > 0) && down.is_empty() == (n > 0), "{size}");
        assert_eq!(cut(&world), (n as u64, n as u64));
    }
    world.secs(1);
    assert_eq!(world.delivered.len(), 8);
    // Two are the most.
    let mut world = joined(1);
    let addresses = world.clients[&2].addresses();
    assert_eq!(max(&world), (1_472 - 32, Some(1_472 - 32)));
    let large = packet(addresses.client(P0), addresses.server(), 2 * (1_440 - 5) + 1, 2);
    let now = world.now;
    let refused = world.clients.get_mut(&2).unwrap().send(now, P0, &large, &mut Vec::new());
    assert_eq!(refused, Err(Unsent::TooLarge));
    assert_eq!(world.down(2, P0, 2 * (1_440 - 5) + 1, 2), None);
}

#[test]
fn a_tunnel_on_the_way_is_found() {
    let mut world = World::new(&[2], Weather { mtu: 1_392, ..FAIR }, 1);
    world.add(2, 1);
    world.secs(120);
    let found = world.clients[&2].path(P0).unwrap().max_packet + 32;
    assert!((1_385..=1_392).contains(&found), "{found}");
}

#[test]
fn a_path_that_becomes_narrow_in_use_loses_packets_for_seconds_and_no_other_does() {
    let mut world = joined(2);
    world.narrow.insert(P1, 1_300);
    let (narrow, mut n) = (world.now, 0);
    let mut lost = [0; 2];
    while world.now.since(narrow) < Duration::from_secs(40) {
        world.delivered.clear();
        for path in [P0, P1] {
            assert!(world.up(2, path, 1_440, n).is_some() && world.down(2, path, 1_440, n).is_some());
            n += 1;
        }
        world.run(Duration::from_millis(100));
        for (path, lost) in [P0, P1].into_iter().zip(&mut lost) {
            *lost += 2 - world.delivered.iter().filter(|delivered| delivered.path == path).count();
        }
    }
    // A confirmation within 5 s, an answer awaited for 1 s, in tenths of a second both ways.
    assert!(lost[0] == 0 && (2..=2 * 62).contains(&lost[1]), "{lost:?}");
    let (client, server) = (world.clients[&2].path(P1).unwrap().max_packet, world.server.max_packet(PeerId(0), P1));
    assert!((1_261..=1_268).contains(&client) && server == Some(client), "{client} {server:?}");
    // Both ends have reported all steps, the last one last.
    let told: Vec<_> = world.resized.iter().filter(|(at, _)| at.path == P1).map(|(_, size)| *size).collect();
    assert!(told.starts_with(&[1_168, 1_440, 1_168]) && told.last() == Some(&client), "{told:?}");
    let polled = std::iter::from_fn(|| world.clients.get_mut(&2).unwrap().poll_resized());
    assert_eq!(polled.filter(|(path, _)| *path == P1).map(|(_, size)| size).collect::<Vec<_>>(), told);
}

#[test]
fn the_size_of_one_address_says_nothing_of_the_next() {
    let mut world = joined(1);
    assert_eq!(world.server.max_packet(PeerId(0), P0), Some(1_440));
    world.moved.insert((2, P0), ([203, 0, 113, 5], 7).into());
    world.narrow.insert(P0, 1_300);
    world.up(2, P0, 100, 1);
    world.run(Duration::from_millis(15));
    assert_eq!(world.server.max_packet(PeerId(0), P0), Some(1_168));
    world.secs(60);
    assert!(world.server.max_packet(PeerId(0), P0).is_some_and(|size| (1_261..=1_268).contains(&size)));
}

#[test]
fn idle_paths_are_kept_alive() {
    let mut world = joined(2);
    let begun = world.seen.len();
    world.secs(100);
    for path in [P0, P1] {
        let of_path = world.seen[begun..].iter().filter(|(_, f)| f.to_server && f.path == path);
        let times: Vec<Instant> = of_path.map(|(at, _)| *at).collect();
        let longest = times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
        assert!(longest <= Duration::from_secs(21), "{longest:?}");
    }
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.4, 0.0..0.3, 1u64..300, 0u64..200, 1_250usize..1_500).prop_map(|(loss, duplicate, delay, jitter, mtu)| {
        let (delay, jitter) = (Duration::from_millis(delay), Duration::from_millis(jitter));
        Weather { loss, duplicate, delay, jitter, mtu }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Through loss, reordering and duplicates, across renewals: each packet is delivered at most once, on its path, and only
    /// if it was sent; what the network did not lose is delivered.
    #[test]
    fn each_packet_is_delivered_once_at_most(weather in weather(), seed in any::<u64>()) {
        let mut world = World::new(&[2, 3], weather, seed);
        world.add(2, 2);
        world.add(3, 1);
        let mut sent: Vec<Delivered> = Vec::new();
        for n in 0..300 {
            world.run(Duration::from_millis(900));
            for (client, path) in [(2, P0), (2, P1), (3, P0)] {
                for to_server in [true, false] {
                    let put = if to_server { world.up(client, path, 300, n) } else { world.down(client, path, 300, n) };
                    if put.is_some() {
                        sent.push(Delivered { to_server, client, path, number: n });
                    }
                }
            }
        }
        world.secs(2);
        let mut delivered = world.delivered.clone();
        let count = delivered.len();
        delivered.sort_by_key(|d| (d.client, d.to_server, d.path, d.number));
        delivered.dedup();
        prop_assert_eq!(delivered.len(), count, "a packet came twice");
        prop_assert!(delivered.iter().all(|d| sent.contains(d)));
        // Keys that were replaced twice and those that are over lose a little more than the network does.
        let expected = sent.len() as f64 * (1.0 - weather.loss);
        prop_assert!(count as f64 > expected * 0.9 - 60.0, "{} of {}, loss {}", count, sent.len(), weather.loss);
        prop_assert!(sent.len() > 900, "{} were sent", sent.len());
    }
}
