//! Strangers, thieves of datagrams and hostile clients: the effect of each, by count.

mod common;

use anabranch_carrier::{Arrival, Client, Counters, Limits, PeerId, Server};
use anabranch_units::{Duration, Instant, PathId};
use common::{FAIR, Flying, World, client, client_later, home, random, server};
use proptest::prelude::*;
use std::net::SocketAddr;

const P0: PathId = PathId(0);
const P1: PathId = PathId(1);
/// Lengths of the handshake's messages and of a cookie reply.
const FIRST: usize = 164;
const SECOND: usize = 92;
const COOKIE: usize = 64;

fn joined(paths: u8) -> World {
    let mut world = World::new(&[2, 3], FAIR, 1);
    world.add(2, paths);
    world.add(3, paths);
    world.secs(1);
    world
}

fn away(port: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 9], port))
}

/// The server's datagrams in reply to one.
fn replies(server: &mut Server, now: Instant, from: SocketAddr, datagram: &[u8]) -> Vec<Vec<u8>> {
    assert_eq!(server.handle_datagram(now, from, datagram, &mut Vec::new()), None);
    std::iter::from_fn(|| server.poll_transmit()).map(|(_, datagram)| datagram).collect()
}

/// A client's first message.
fn first(client: &mut Client, now: Instant) -> Vec<u8> {
    client.add_path(now, P0);
    client.handle_timeout(now);
    client.poll_transmit().unwrap().1
}

#[test]
fn a_forged_datagram_costs_no_operation_on_the_curve_and_gets_no_reply() {
    let mut server = server(&[2], Limits::default());
    let before = server.counters();
    let mut bytes = random(9);
    for n in 0..20_000usize {
        let mut datagram = vec![0; [FIRST, SECOND, COOKIE, 32, 33, 1_472, n % 200][n % 7]];
        bytes.fill_bytes(&mut datagram);
        if let [kind, a, b, c, ..] = &mut datagram[..] {
            (*kind, *a, *b, *c) = (1 + (n / 7 % 4) as u8, 0, 0, 0);
        }
        assert_eq!(replies(&mut server, Instant::from_millis(n as u64), away(1), &datagram), Vec::<Vec<u8>>::new());
    }
    let after = server.counters();
    assert_eq!(after.multiplications, before.multiplications);
    let refused = after.bad_macs + after.malformed + after.unknown_keys + after.bad_handshakes;
    assert_eq!(refused, 20_000);
    assert!(after.bad_macs > 500 && after.unknown_keys > 500, "{after:?}");
    assert_eq!(server.poll_timeout(), Instant::MAX, "nothing is kept");
}

#[test]
fn a_first_message_with_any_bit_changed_gets_no_reply() {
    let message = first(&mut client(2), Instant::ZERO);
    let mut server = server(&[2], Limits::default());
    for bit in 0..8 * (FIRST - 16) {
        let mut forged = message.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(replies(&mut server, Instant::ZERO, home(2, P0), &forged).is_empty(), "bit {bit}");
    }
    assert_eq!(server.counters().multiplications, 0);
    assert_eq!(replies(&mut server, Instant::ZERO, home(2, P0), &message).len(), 1, "as it was, it is answered");
}

#[test]
fn a_replayed_or_older_first_message_is_dropped() {
    let mut server = server(&[2], Limits::default());
    let [older, newer] = [0, 1_000_000_000].map(|later| first(&mut client_later(2, later), Instant::ZERO));
    let at = |millis| Instant::from_millis(millis);
    assert_eq!(replies(&mut server, at(0), home(2, P0), &newer).len(), 1);
    assert!(replies(&mut server, at(100), home(2, P0), &newer).is_empty());
    assert!(replies(&mut server, at(200), home(2, P0), &older).is_empty());
    assert_eq!(server.counters().old_handshakes, 2);
}

#[test]
fn a_key_that_is_not_authorised_gets_no_reply() {
    let mut server = server(&[2], Limits::default());
    let message = first(&mut client(4), Instant::ZERO);
    assert!(replies(&mut server, Instant::ZERO, away(1), &message).is_empty());
    assert_eq!(server.counters().unauthorized, 1);
    assert_eq!(server.poll_timeout(), Instant::MAX, "nothing is kept");
}

#[test]
fn another_pre_shared_key_makes_no_session() {
    let mut world = World::new(&[2], FAIR, 1);
    let settings = anabranch_carrier::ClientSettings {
        key: common::key(2).key,
        preshared: common::key(9).preshared,
        server: common::public(common::SERVER),
        epoch: common::EPOCH,
    };
    world.add_client(2, Client::new(settings, random(5)), 1);
    world.secs(5);
    assert!(!world.clients[&2].is_established() && world.events.is_empty());
    assert!(world.clients[&2].counters().bad_handshakes > 0);
}

#[test]
fn no_reply_is_longer_than_its_request() {
    let mut world = joined(2);
    world.secs(300);
    let replied = |kind: u8| world.seen.iter().filter(move |(_, f)| !f.to_server && f.bytes[0] == kind);
    assert!(replied(2).count() >= 6);
    assert!(replied(2).all(|(_, f)| f.bytes.len() == SECOND && SECOND < FIRST));
    const { assert!(COOKIE < SECOND && COOKIE < FIRST) };
}

#[test]
fn under_load_nothing_is_computed_without_a_cookie() {
    let limits = Limits { handshakes: 3, per_address: 2 };
    let mut server = server(&[2, 3, 4, 5, 6, 7], limits);
    for n in 2..5 {
        assert_eq!(
            replies(&mut server, Instant::ZERO, home(n, P0), &first(&mut client(n), Instant::ZERO))[0].len(),
            SECOND
        );
    }
    let spent = server.counters().multiplications;
    // A stranger that knows the server's key: valid `mac1`, any number of them.
    for n in 0..1_000 {
        let message = first(&mut client_later(5, n), Instant::ZERO);
        let reply = replies(&mut server, Instant::ZERO, away(n as u16), &message);
        assert!(reply.len() == 1 && reply[0].len() == COOKIE);
    }
    assert_eq!(server.counters().multiplications, spent);
    // A client that receives its cookie is answered, from its address alone.
    let mut client = client(6);
    let message = first(&mut client, Instant::ZERO);
    let cookie = replies(&mut server, Instant::ZERO, home(6, P0), &message).remove(0);
    client.handle_datagram(Instant::from_millis(1), &cookie, &mut Vec::new());
    client.handle_timeout(Instant::from_millis(1));
    let marked = client.poll_transmit().unwrap().1;
    assert_eq!(replies(&mut server, Instant::from_millis(2), away(1), &marked)[0].len(), COOKIE);
    assert_eq!(server.counters().multiplications, spent);
    assert_eq!(replies(&mut server, Instant::from_millis(2), home(6, P0), &marked)[0].len(), SECOND);
    // The next second is another one.
    let message = first(&mut common::client(7), Instant::from_millis(1_000));
    assert_eq!(replies(&mut server, Instant::from_millis(1_000), home(7, P0), &message)[0].len(), SECOND);
}

/// A cookie holds for one source address: it is used on the path that got it.
#[test]
fn under_load_a_client_with_several_paths_gets_in() {
    for paths in 1..=3 {
        let mut world = World::new(&[2], FAIR, 1);
        world.server = server(&[2], Limits { handshakes: 0, per_address: 2 });
        world.add(2, paths);
        // Two round trips of 20 ms: the cookie, and the handshake.
        world.run(Duration::from_millis(50));
        assert!(world.clients[&2].is_established(), "{paths} paths");
        let counters = world.server.counters();
        assert_eq!((counters.cookies, counters.overloaded), (1, 0), "{paths} paths");
    }
}

/// The repeat with a cookie does not keep the handshake on one path.
#[test]
fn under_load_each_path_is_tried() {
    for paths in 2..=3 {
        let mut world = World::new(&[2], FAIR, 1);
        world.server = server(&[2], Limits { handshakes: 0, per_address: 0 });
        world.add(2, paths);
        world.secs(20);
        for path in (0..paths).map(PathId) {
            let tried = world.seen.iter().filter(|(_, flying)| flying.to_server && flying.path == path).count();
            assert!(tried >= 2, "{paths} paths, {path:?}: {tried}");
        }
        let counters = world.server.counters();
        assert_eq!(counters.cookies, u64::from(paths), "each path gets one");
        assert!(counters.overloaded >= u64::from(paths), "and uses it");
    }
}

#[test]
fn one_address_with_a_cookie_does_not_take_the_whole_second() {
    let limits = Limits { handshakes: 0, per_address: 2 };
    let mut server = server(&[2], limits);
    let mut answered = 0;
    for n in 0..20 {
        let mut client = client_later(2, n);
        let message = first(&mut client, Instant::ZERO);
        let cookie = replies(&mut server, Instant::ZERO, home(2, P0), &message).remove(0);
        client.handle_datagram(Instant::ZERO, &cookie, &mut Vec::new());
        client.handle_timeout(Instant::ZERO);
        let marked = client.poll_transmit().unwrap().1;
        answered += replies(&mut server, Instant::ZERO, home(2, P0), &marked).len();
    }
    assert!(answered <= 2);
    assert_eq!(server.counters().overloaded, 18);
}

#[test]
fn a_cookie_that_the_server_did_not_make_is_ignored() {
    let mut client = client(2);
    let message = first(&mut client, Instant::ZERO);
    let mut cookie =
        replies(&mut server(&[2], Limits { handshakes: 0, per_address: 1 }), Instant::ZERO, home(2, P0), &message)
            .remove(0);
    cookie[40] ^= 1;
    client.handle_datagram(Instant::ZERO, &cookie, &mut Vec::new());
    assert_eq!((client.counters().bad_macs, client.counters().cookies), (1, 0));
}

#[test]
fn a_truncated_replayed_or_changed_datagram_is_dropped() {
    let mut world = joined(1);
    let datagram = world.up(2, P0, 300, 1).unwrap();
    world.secs(1);
    let before = world.server.counters();
    let mut arrivals = 0;
    let mut give = |bytes: &[u8]| {
        let arrival = world.server.handle_datagram(world.now, home(2, P0), bytes, &mut Vec::new());
        arrivals += usize::from(arrival.is_some());
    };
    (0..datagram.len()).for_each(|len| give(&datagram[..len]));
    for bit in 0..8 * datagram.len() {
        let mut forged = datagram.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        give(&forged);
    }
    give(&datagram);
    assert_eq!(arrivals, 0);
    let after = world.server.counters();
    assert_eq!(after.multiplications, before.multiplications);
    assert_eq!(after.delivered, before.delivered);
    assert!(after.replayed > before.replayed, "the datagram itself");
}

#[test]
fn reordered_datagrams_are_taken_within_the_window_and_slow_paths_are_not_punished() {
    let mut world = joined(2);
    let (now, mut held) = (world.now, Vec::new());
    for n in 0..3_000 {
        held.push(world.up(2, P0, 100, n).unwrap());
    }
    let late = world.up(2, P1, 100, 9_999).unwrap();
    world.flying.clear();
    let mut arrives =
        |bytes: &[u8], path| world.server.handle_datagram(now, home(2, path), bytes, &mut Vec::new()).is_some();
    assert!(held.iter().rev().all(|bytes| arrives(bytes, P0)), "2,048 at least may be overtaken");
    assert!(!held.iter().any(|bytes| arrives(bytes, P0)), "each once");
    assert!(arrives(&late, P1), "a path has a window of its own");
}

#[test]
fn a_datagram_of_one_session_is_none_of_another() {
    let mut world = joined(1);
    let datagram = world.up(2, P0, 300, 1).unwrap();
    world.flying.clear();
    // The index of the other client's keys stands in any of its datagrams.
    let other = world.up(3, P0, 300, 2).unwrap();
    world.flying.clear();
    let crossed = [&datagram[..4], &other[4..8], &datagram[8..]].concat();
    let before = world.server.counters();
    assert_eq!(world.server.handle_datagram(world.now, home(2, P0), &crossed, &mut Vec::new()), None);
    assert_eq!(world.server.counters(), Counters { forged: before.forged + 1, ..before });
}

#[test]
fn a_hostile_client_does_not_move_the_path_of_another() {
    let mut world = joined(1);
    let (victim, hostile) = (PeerId(0), PeerId(1));
    world.moved.insert((3, P0), home(2, P0));
    world.up(3, P0, 100, 1);
    world.secs(1);
    assert_eq!(world.server.address(victim, P0), Some((home(2, P0), true)));
    // It has claimed the victim's address, which does not answer its challenge.
    assert!(world.server.address(hostile, P0).is_some_and(|(_, proven)| !proven));
    assert!(world.down(2, P0, 100, 5).is_some());
}

#[test]
fn an_address_that_does_not_answer_gets_three_times_its_bytes_at_most() {
    let mut world = joined(1);
    // A thief of datagrams sends one from elsewhere before the client's own copy arrives.
    let stolen = world.up(2, P0, 1_000, 1).unwrap();
    world.flying.clear();
    world.server.handle_datagram(world.now, away(7), &stolen, &mut Vec::new());
    assert_eq!(world.server.address(PeerId(0), P0), Some((away(7), false)));
    let mut sent: usize = std::iter::from_fn(|| world.server.poll_transmit())
        .map(|(to, bytes)| {
            assert_eq!(to, away(7));
            bytes.len()
        })
        .sum();
    for n in 0..100 {
        sent += world.down(2, P0, 400, n).map_or(0, |bytes| bytes.len());
    }
    assert!(sent <= 3 * stolen.len() && sent > 2 * stolen.len(), "{sent}");
    assert!(world.server.counters().held_back > 90);
    // The client's next datagram, from where it always was, ends that.
    world.up(2, P0, 100, 2);
    world.secs(1);
    assert_eq!(world.server.address(PeerId(0), P0), Some((home(2, P0), true)));
    assert!((0..100).all(|n| world.down(2, P0, 400, n).is_some()));
}

/// Copies of every datagram of one path arrive from elsewhere before the client's own do. Nothing comes twice, the other path is used on, and
/// the client's first datagram after that brings the path back.
#[test]
fn a_forwarder_that_is_quicker_than_the_network_takes_one_path_while_it_is() {
    let mut world = joined(2);
    for n in 0..600 {
        world.run(Duration::from_millis(50));
        let own = world.up(2, P0, 100, 4 * n).unwrap();
        world.server.handle_datagram(world.now, away(9), &own, &mut Vec::new());
        world.up(2, P1, 100, 4 * n + 1);
        world.down(2, P0, 100, 4 * n + 2);
        assert!(world.down(2, P1, 100, 4 * n + 3).is_some());
    }
    assert_eq!(world.server.address(PeerId(0), P0), Some((away(9), false)), "it answers no challenge");
    world.up(2, P0, 100, 9_000);
    world.secs(1);
    assert_eq!(world.server.address(PeerId(0), P0), Some((home(2, P0), true)));
    let came = |path, to_server| {
        let mut numbers: Vec<u32> =
            world.delivered.iter().filter(|d| (d.path, d.to_server) == (path, to_server)).map(|d| d.number).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "nothing comes twice");
        all
    };
    // The thief delivered the datagrams of the first path itself.
    assert_eq!([came(P1, true), came(P1, false)], [600, 600]);
    assert!(came(P0, true) <= 1 && came(P0, false) < 600, "{} and {}", came(P0, true), came(P0, false));
}

#[test]
fn a_client_behind_a_nat_that_changes_its_port_is_followed() {
    let mut world = joined(1);
    let other = SocketAddr::from(([192, 0, 2, 77], 4_000));
    world.moved.insert((2, P0), other);
    world.up(2, P0, 100, 1);
    world.secs(1);
    assert_eq!(world.server.address(PeerId(0), P0), Some((other, true)));
    assert_eq!(world.server.counters().moved, 1);
    assert!(world.down(2, P0, 100, 2).is_some());
    world.secs(1);
    assert_eq!(world.delivered.last().map(|d| (d.to_server, d.number)), Some((false, 2)));
}

#[test]
fn a_late_datagram_does_not_move_a_path_back() {
    let mut world = joined(1);
    let late = world.up(2, P0, 100, 1).unwrap();
    world.flying.clear();
    world.up(2, P0, 100, 2);
    world.secs(1);
    let arrival = world.server.handle_datagram(world.now, away(7), &late, &mut Vec::new());
    assert_eq!(arrival, Some(Arrival { peer: PeerId(0), path: P0 }), "it is authentic");
    assert_eq!(world.server.address(PeerId(0), P0), Some((home(2, P0), true)));
}

proptest! {
    /// Any datagrams from any host: no panic, no reply that is longer than its request, and the session continues.
    #[test]
    fn any_bytes(datagrams in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..200), 0u8..5), 1..60)) {
        let mut world = joined(1);
        for (to_server, mut bytes, kind) in datagrams {
            if let [first, a, b, c, ..] = &mut bytes[..] {
                (*first, *a, *b, *c) = (kind, 0, 0, 0);
            }
            let flying = Flying { to_server, client: 2, path: P0, address: away(1), bytes };
            world.arrive(&flying);
            let longest = std::iter::from_fn(|| world.server.poll_transmit()).map(|(_, reply)| reply.len()).max();
            prop_assert!(longest.unwrap_or(0) <= flying.bytes.len());
        }
        world.up(2, P0, 100, 1);
        world.secs(1);
        prop_assert_eq!(world.delivered.last().map(|d| d.number), Some(1));
    }
}
