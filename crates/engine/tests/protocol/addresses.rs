//! Addresses that come and go while a connection runs, and subflows over them (RFC 8684 §3.3.8, §3.4, §3.6).

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{at, client_paths, client_tuple, host, mirror, pattern, plain_stamps, setup};
use anabranch_engine::connection::{OwnEnd, PathSetup, Setup};
use anabranch_engine::schedule::PathPolicy;
use anabranch_engine::{Cx, FourTuple, Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::{PathId, Rng, SeqNumber, Side};
use anabranch_wire::{AddAddr, Flags, MpJoin, MptcpOption, Packet, Reason, Segment, crypto};
use core::net::{IpAddr, SocketAddr};

const RST: Flags = Flags::RST;

fn join_of(s: &Segment) -> Option<MpJoin> {
    s.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Join(join) => Some(*join),
        _ => None,
    })
}

/// The peer's SYN with MP_JOIN between any two ends.
fn join_between(h: &Solo, from: (IpAddr, u16), to: (IpAddr, u16)) -> Packet {
    let mut segment = h.syn(1).with(h.join_syn(1));
    (segment.src_port, segment.dst_port) = (from.1, to.1);
    Packet { src: from.0, dst: to.0, segment }
}

fn add_addr(h: &Solo, id: u8, address: IpAddr, port: Option<u16>) -> MptcpOption {
    let hmac = Some(crypto::add_addr_hmac(PEER_KEY, h.key, id, address, port));
    MptcpOption::AddAddr(AddAddr { address_id: id, address, port, hmac })
}

#[test]
fn a_server_is_joined_between_addresses_that_it_did_not_list() {
    let listed = client_paths(1).into_iter().map(|p| PathSetup { tuple: mirror(p.tuple), ..p }).collect::<Vec<_>>();
    let mut h = Solo::server_with(move || setup(plain_stamps(), listed.clone())).opened();
    assert!(h.app(|c, cx| c.announce(cx, 3, host(0, 2), Some(8080))));
    let joins = [
        // As Linux's `fullmesh`: from another address, and to another.
        ((host(9, 1), 5000), (host(0, 2), 80), Some(0)),
        ((host(0, 1), 5001), (host(8, 2), 80), Some(1)),
        ((host(9, 1), 5002), (host(8, 2), 80), Some(1)),
        // The same two addresses once more, to the announced port; and to one that was not announced.
        ((host(0, 1), 5003), (host(0, 2), 8080), Some(3)),
        ((host(0, 1), 5004), (host(0, 2), 8081), None),
    ];
    for (from, to, id) in joins {
        h.clear();
        h.send_packet(&join_between(&h, from, to));
        let answer = h.sent.iter().find(|(_, p)| p.segment.dst_port == from.1).expect("an answer").1.clone();
        let given = join_of(&answer.segment).map(|join| match join {
            MpJoin::SynAck { address_id, .. } => address_id,
            other => panic!("{other:?}"),
        });
        assert_eq!((given, answer.src, answer.segment.flags.has(RST)), (id, to.0, id.is_none()));
        if id.is_some() {
            h.send_packet(&h.third_ack_of(&answer));
        }
    }
    let mut paths: Vec<_> = h.connection().subflows().map(|(id, ..)| id).collect();
    paths.sort();
    assert_eq!(paths, [0, 1, 2, 3, 4].map(PathId));
}

#[test]
fn a_path_is_known_by_both_its_addresses() {
    let listed = client_paths(2).into_iter().map(|p| PathSetup { tuple: mirror(p.tuple), ..p }).collect::<Vec<_>>();
    let mut h = Solo::server_with(move || setup(plain_stamps(), listed.clone())).opened();
    // To the second path's address from another one, from its address to another one, and between both.
    for (from, to) in [(host(9, 1), host(1, 2)), (host(1, 1), host(8, 2)), (host(1, 1), host(1, 2))] {
        h.clear();
        h.send_packet(&join_between(&h, (from, 5000), (to, 80)));
        let answer = h.sent.front().expect("an answer").1.clone();
        h.send_packet(&h.third_ack_of(&answer));
    }
    assert_eq!(h.connection().subflows().map(|(id, ..)| id.0).collect::<Vec<_>>(), [0, 2, 3, 1]);
}

/// A client with three paths, whose joins over the second and third the peer has refused for now.
fn refused_for_now() -> Solo {
    let mut h = Solo::open_client(setup(plain_stamps(), client_paths(3)));
    h.at(1);
    let transient = MptcpOption::TcpRst(Reason { code: 2, transient: true });
    for path in [1, 2] {
        h.send_on(path, h.seg_on(path, 0, 1).flags(RST | Flags::ACK).with(transient));
    }
    h.clear();
    h
}

/// From where SYNs left within ten seconds.
fn tried_again(mut h: Solo) -> Vec<IpAddr> {
    h.at(10_000);
    let mut from: Vec<_> = h.sent.iter().filter(|(_, p)| p.segment.flags == Flags::SYN).map(|(_, p)| p.src).collect();
    from.sort();
    from.dedup();
    from
}

#[test]
fn no_path_is_tried_from_an_address_that_was_withdrawn_and_others_are() {
    assert_eq!(tried_again(refused_for_now()), [host(1, 1), host(2, 1)]);
    let mut h = refused_for_now();
    h.app(|c, cx| c.withdraw(cx, 1));
    assert_eq!(tried_again(h), [host(2, 1)]);
}

#[test]
fn an_address_that_the_peer_takes_back_leaves_other_paths_alone() {
    let mut h = refused_for_now();
    h.send(h.seg(1, 1).dss(h.data_ack(0)).with(MptcpOption::RemoveAddr([Some(9), None, None, None])));
    assert_eq!(tried_again(h), [host(1, 1), host(2, 1)]);
}

#[test]
fn an_address_announced_while_running_is_joined_and_left_again() {
    let mut pair = Pair::with(5, Setup { accept_announced: true, ..setup(plain_stamps(), client_paths(1)) }, || {
        setup(plain_stamps(), Vec::new())
    });
    pair.write(Side::Server, pattern(0, 40_000_000), true).run(at(200));
    let subflows = |pair: &Pair| {
        [&pair.client, &pair.server].map(|p| p.connection().expect("open").subflows().collect::<Vec<_>>().len())
    };
    for round in 0..2 {
        let now = pair.now;
        assert!(pair.act(Side::Server, |c, cx| c.announce(cx, 3, host(5, 2), Some(8080))));
        pair.run(now + crate::common::ms(300));
        assert_eq!(subflows(&pair), [2, 2], "round {round}");
        let remote = SocketAddr::new(host(5, 2), 8080);
        let over =
            |(_, tuple, state): &(PathId, FourTuple, State)| tuple.remote == remote && *state == State::Established;
        assert!(pair.client.connection().expect("open").subflows().any(|s| over(&s)));
        assert_eq!(pair.act(Side::Server, |c, _| c.address_id(remote)), Some(3));
        pair.act(Side::Server, |c, cx| c.withdraw(cx, 3));
        pair.run(now + crate::common::ms(600));
        assert_eq!(subflows(&pair), [1, 1], "round {round}");
        // A withdrawn address is not tried again.
        pair.run(now + crate::common::ms(5000));
        assert_eq!(subflows(&pair), [1, 1], "round {round}");
    }
    pair.run(at(300_000));
    assert_eq!(pair.client.got.len(), 40_000_000);
    assert_eq!(pair.client.closed(), Some(CloseReason::Finished));
}

/// The address of the first subflow has ID 0. It is joined again under the ID that is announced later.
#[test]
fn the_first_address_is_taken_back_and_announced_anew() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1);
    let first = SocketAddr::new(host(0, 2), 80);
    let answer = |h: &mut Solo, port: u16| {
        let syn = join_between(h, (host(0, 1), port), (host(0, 2), 80));
        h.clear().send_packet(&syn);
        let answer = h.sent.iter().find(|(_, p)| p.segment.dst_port == port).expect("an answer").1.clone();
        join_of(&answer.segment).map(|join| match join {
            MpJoin::SynAck { address_id, .. } => address_id,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(h.connection().address_id(first), Some(0));
    h.app(|c, cx| c.withdraw(cx, 0));
    assert_eq!((h.connection().address_id(first), answer(&mut h, 5_001)), (None, None));
    // While the removal is still being said: not under 0, nor under the ID of another address.
    assert!([0, 1].iter().all(|id| !h.app(|c, cx| c.announce(cx, *id, host(0, 2), None))));
    assert!(h.app(|c, cx| c.announce(cx, 4, host(0, 2), None)));
    assert_eq!((h.connection().address_id(first), answer(&mut h, 5_002)), (Some(4), Some(4)));
}

/// RFC 3022 §2.1: the peer's packets have another address of ours than those that arrive here.
#[test]
fn a_translated_address_is_announced_as_the_peer_has_it() {
    let mut h = Solo::server_with(|| setup(plain_stamps(), Vec::new())).opened();
    let (here, there, moved) = (host(5, 2), host(6, 2), host(7, 2));
    assert!(h.app(|c, cx| c.announce(cx, 3, OwnEnd { here, there }, None)));
    h.at(1);
    let hmac = Some(crypto::add_addr_hmac(h.key, PEER_KEY, 3, there, None));
    let announced = AddAddr { address_id: 3, address: there, port: None, hmac };
    let said = |h: &mut Solo| h.recv().options.mptcp().to_vec();
    assert_eq!(said(&mut h), [MptcpOption::AddAddr(announced)]);
    // An echo of what is announced: a join arrives where it is translated to.
    h.send(h.seg(1, 1).with(MptcpOption::AddAddr(AddAddr { hmac: None, ..announced })));
    h.clear().at(60_000);
    h.quiet();
    h.send_packet(&join_between(&h, (host(0, 1), 5_000), (here, 80)));
    let answer = h.sent.back().expect("an answer").1.clone();
    assert!(matches!(join_of(&answer.segment), Some(MpJoin::SynAck { address_id: 3, .. })), "{answer:?}");
    assert_eq!(answer.src, here);
    // It is another one now: the ID is still that of the first.
    assert!(!h.app(|c, cx| c.announce(cx, 3, OwnEnd { here, there: moved }, None)));
    assert!(!h.app(|c, cx| c.announce(cx, 4, OwnEnd { here, there: moved }, None)));
    h.app(|c, cx| c.withdraw(cx, 3));
    assert!(!h.app(|c, cx| c.announce(cx, 3, OwnEnd { here, there: moved }, None)));
    assert!(h.app(|c, cx| c.announce(cx, 4, OwnEnd { here, there: moved }, None)));
}

/// A client that joined an announced address, while the other end sends, and on which nothing of `lost` arrives from then on
/// until `until`.
fn joined(lost: fn(&MptcpOption) -> bool, until: u64) -> Pair {
    let mut pair = Pair::with(5, Setup { accept_announced: true, ..setup(plain_stamps(), client_paths(1)) }, || {
        Setup { announce: vec![(3, host(5, 2), None)], ..setup(plain_stamps(), Vec::new()) }
    });
    pair.write(Side::Server, pattern(0, 40_000_000), true).run(at(1000));
    assert_eq!(pair.client.connection().expect("open").subflows().count(), 2);
    pair.hook = Box::new(move |now, side, _, p| {
        let caught = side == Side::Server && now < at(until) && p.segment.options.mptcp().iter().any(lost);
        if caught { Fate::Drop } else { Fate::Pass }
    });
    pair
}

#[test]
fn a_lost_remove_addr_is_said_again() {
    // The reset of the subflow is lost as well.
    let lost = |o: &MptcpOption| matches!(o, MptcpOption::RemoveAddr(_) | MptcpOption::TcpRst(_));
    let mut pair = joined(lost, 2_500);
    pair.act(Side::Server, |c, cx| c.withdraw(cx, 3));
    pair.run(at(3_200));
    let subflows = |pair: &Pair| pair.client.connection().expect("open").subflows().count();
    assert_eq!(subflows(&pair), 1);
    // It is not tried again, and the ID may be given to another address once all is said.
    let joins = |pair: &Pair| pair.client.log.0.iter().filter(|(_, e)| *e == Event::Path(PathState::Opening)).count();
    let before = joins(&pair);
    assert!(!pair.act(Side::Server, |c, cx| c.announce(cx, 3, host(6, 2), None)), "the removal is still being said");
    pair.run(at(9_000));
    assert_eq!((joins(&pair), subflows(&pair)), (before, 1));
    assert!(pair.act(Side::Server, |c, cx| c.announce(cx, 3, host(6, 2), None)));
    pair.run(at(9_500));
    assert_eq!(subflows(&pair), 2);
}

#[test]
fn a_lost_reset_of_a_subflow_is_noticed_with_the_next_segment() {
    let mut pair = joined(|o| matches!(o, MptcpOption::TcpRst(_)), 1_005);
    let second = pair.act(Side::Server, |c, _| c.subflows().nth(1).expect("a second one").0);
    pair.act(Side::Server, |c, cx| c.reset_path(cx, second, Reason { code: 3, transient: false }));
    // The client's acknowledgments find no connection: RFC 9293 §3.10.7.1
    pair.run(at(1_200));
    let dead = |e: &Event| *e == Event::Path(PathState::Dead);
    assert!(pair.client.log.0.iter().any(|(now, e)| dead(e) && *now <= at(1_100)));
    pair.run(at(300_000));
    assert_eq!((pair.client.got.len(), pair.client.closed()), (40_000_000, Some(CloseReason::Finished)));
}

#[test]
fn an_announced_address_is_joined_from_every_address_of_its_family() {
    // Two paths from two addresses, a third from the first address again, and one of the other family.
    let mut paths = client_paths(4);
    paths[2].tuple.local = SocketAddr::new(host(0, 1), 0);
    let v6 = |s: &str| -> SocketAddr { s.parse().expect("an address") };
    paths[3].tuple = FourTuple { local: v6("[fd00::1]:0"), remote: v6("[fd00::2]:80") };
    let mut h = Solo::open_client(Setup { accept_announced: true, ..setup(plain_stamps(), paths) });
    h.at(1);
    let ids: Vec<_> = h.sent.iter().filter_map(|(_, p)| join_of(&p.segment)).collect();
    let ids: Vec<_> =
        ids.iter().map(|join| if let MpJoin::Syn { address_id, .. } = join { *address_id } else { 99 }).collect();
    assert_eq!(ids, [1, 0, 2], "IDs name addresses, not paths");
    h.clear();
    for time in [2, 3] {
        h.send(h.seg(1, 1).dss(h.data_ack(0)).with(add_addr(&h, 5, host(5, 2), None)));
        h.at(time);
    }
    let syns =
        h.sent.iter().filter(|(_, p)| p.segment.flags == Flags::SYN).map(|(_, p)| (p.src, p.dst, p.segment.dst_port));
    let to = |from| (from, host(5, 2), 80);
    assert_eq!(syns.collect::<Vec<_>>(), [to(host(0, 1)), to(host(1, 1))]);
}

#[test]
fn no_path_is_tried_after_both_streams_have_ended() {
    let announce = vec![(9, host(7, 1), None)];
    let mut h = Solo::open_client(Setup { announce, ..setup(plain_stamps(), client_paths(2)) });
    h.at(1);
    let transient = MptcpOption::TcpRst(Reason { code: 2, transient: true });
    h.send_on(1, h.seg_on(1, 0, 1).flags(RST | Flags::ACK).with(transient));
    h.finish();
    h.send(h.seg(1, 1).dss(h.data_fin(1, 0)));
    let tried = |h: &Solo| h.log.0.iter().filter(|(_, e)| *e == Event::Path(PathState::Opening)).count();
    assert_eq!(tried(&h), 2);
    // The path would be tried again, and the address is still to be announced.
    h.at(10_000);
    assert_eq!(tried(&h), 2);
}

#[test]
fn a_peer_cannot_make_us_try_any_number_of_addresses() {
    let mut h = Solo::open_client(Setup { accept_announced: true, ..setup(plain_stamps(), client_paths(1)) });
    h.at(1);
    h.clear();
    for n in 1..=200u8 {
        h.send(h.seg(1, 1).dss(h.data_ack(0)).with(add_addr(&h, n, host(n, 9), None)));
    }
    h.at(2);
    let tried = |h: &Solo| {
        let mut to: Vec<_> = h.sent.iter().filter(|(_, p)| p.segment.flags == Flags::SYN).map(|(_, p)| p.dst).collect();
        to.sort();
        to.dedup();
        to.len()
    };
    assert_eq!(tried(&h), 8);
    // Nor for ever: nothing answers there.
    h.at(200_000);
    h.clear().at(1_000_000);
    assert_eq!(tried(&h), 0);
}

#[test]
fn an_ipv6_address_with_a_port_leaves_no_room_for_timestamps() {
    let tcp = TcpSettings { timestamps: true, ..plain_stamps().tcp };
    let mut h = Solo::server(Settings { tcp, ..plain_stamps() });
    let mut syn = h.syn(0).with(Solo::capable(None, None));
    let stamps = |val| anabranch_wire::Timestamps { val, ecr: 0 };
    assert!(syn.options.set_timestamps(stamps(7)));
    h.send(syn).clear();
    let mut third = h.seg(1, 1).with(Solo::capable(Some(PEER_KEY), Some(h.key)));
    assert!(third.options.set_timestamps(stamps(8)));
    h.send(third).clear();
    let address = "fd00::7".parse().expect("an address");
    assert!(h.app(|c, cx| c.announce(cx, 9, address, Some(8080))));
    h.at(1);
    let said = h.recv();
    let hmac = Some(crypto::add_addr_hmac(h.key, PEER_KEY, 9, address, Some(8080)));
    let option = MptcpOption::AddAddr(AddAddr { address_id: 9, address, port: Some(8080), hmac });
    assert_eq!((said.options.mptcp(), said.options.timestamps()), (&[option][..], None));
}

#[test]
fn ids_name_one_address_each() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1);
    let mut announce = |id, ip, port| h.app(|c, cx| c.announce(cx, id, ip, port));
    assert!(!announce(0, host(7, 2), None), "0 is the first subflow's");
    assert!(!announce(4, host(1, 2), None), "joined under ID 1");
    assert!(announce(1, host(1, 2), None));
    assert!(announce(4, host(7, 2), None) && announce(4, host(7, 2), None));
    assert!(!announce(4, host(8, 2), None) && !announce(5, host(7, 2), None));
    assert!(announce(5, host(7, 2), Some(81)));
    assert_eq!(h.connection().address_id(SocketAddr::new(host(1, 2), 80)), Some(1));
}

#[test]
fn a_peer_that_takes_back_everything_leaves_one_subflow() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.send(h.seg(1, 1).dss(h.data_ack(0)).with(MptcpOption::RemoveAddr([Some(0), Some(1), None, None])));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Closed, State::Established));
    h.write(b"still here");
    assert_eq!(h.sent.back().expect("data").1.segment.payload, "still here");
}

#[test]
fn one_subflow_is_reset_with_its_reason() {
    for transient in [true, false] {
        let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
        pair.write(Side::Server, pattern(0, 20_000_000), true).run(at(300));
        let reason = Reason { code: 5, transient };
        assert!(pair.act(Side::Client, |c, cx| c.reset_path(cx, PathId(1), reason)));
        assert!(!pair.act(Side::Client, |c, cx| c.reset_path(cx, PathId(7), reason)));
        pair.run(at(500));
        let dead = |log: &crate::common::Log| log.saw(Event::Path(PathState::Dead));
        assert!(dead(&pair.client.log) && dead(&pair.server.log));
        pair.run(at(3000));
        let again = pair.client.connection().expect("open").subflows().count() == 2;
        assert_eq!(again, transient, "tried again only if the reason may pass");
        pair.run(at(200_000));
        assert_eq!(pair.client.got.len(), 20_000_000);
    }
}

#[test]
fn joins_to_one_address_have_ports_of_their_own() {
    for seed in 0..200 {
        let mut paths = client_paths(1);
        for n in 1..PathId::LIMIT as u8 {
            let tuple = FourTuple { local: SocketAddr::new(host(n % 3, 1), 0), ..client_tuple(0) };
            paths.push(PathSetup::new(PathId(n), tuple));
        }
        let mut pair = Pair::with(seed, setup(plain_stamps(), paths), || setup(plain_stamps(), Vec::new()));
        pair.write(Side::Client, pattern(0, 10), false).run(at(100));
        let connection = pair.client.connection().expect("open");
        let mut ports: Vec<_> = connection.subflows().map(|(_, tuple, _)| tuple.local.port()).collect();
        ports.sort();
        ports.dedup();
        assert_eq!(ports.len(), PathId::LIMIT, "seed {seed}");
    }
}

#[test]
fn a_connection_does_not_take_the_ends_of_anothers_subflow() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    let ours = h.handle;
    // Another connection of this host wants to run between the same ends.
    let taken = PathSetup::new(PathId(0), mirror(client_tuple(1)));
    let mut rng = Rng::stream(1, "other");
    let mut cx = Cx { now: h.now, recorder: &mut (), rng: &mut rng };
    h.endpoint.connect(&mut cx, setup(plain_stamps(), vec![taken]));
    while h.endpoint.poll_transmit(&mut cx).is_some() {}
    h.handle = ours;
    h.send_on(1, h.seg_on(1, 1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    assert_eq!(h.read(), b"hello");
}

#[test]
fn a_fast_close_with_our_key_counts_wherever_it_stands_in_the_window() {
    // RFC 5961 §3.2 challenges such a reset, and a peer that is gone answers without the option.
    let mut h = Solo::open_server(plain_stamps());
    h.clear();
    let wrong = MptcpOption::FastClose { receiver_key: h.key ^ 1 };
    h.send(h.seg(500, 1).flags(RST).with(wrong));
    assert!(h.log.violated(Violation::BlindReset));
    assert_eq!(h.state(), State::Established);
    let close = MptcpOption::FastClose { receiver_key: h.key };
    h.send(h.seg(500, 1).flags(RST).with(close));
    assert!(h.log.saw(Event::Closed(CloseReason::ResetByPeer)));
    assert!(h.at(1).is_gone());
}

#[test]
fn nobody_joins_streams_that_have_ended() {
    let mut h = Solo::open_server(plain_stamps());
    h.finish().clear();
    h.send(h.seg(1, 1).dss(h.data_fin(1, 0))).clear();
    h.send_on(1, h.syn(1).with(h.join_syn(1)));
    let answer = h.recv();
    assert!(answer.flags.has(RST) && answer.ack == SeqNumber(Solo::peer_isn(1)).at(1));
}

/// The paths of a side's established subflows.
fn established(pair: &mut Pair, side: Side) -> Vec<u8> {
    let subflows = pair.party(side).connection().expect("open").subflows();
    let mut paths: Vec<u8> = subflows.filter(|(.., state)| *state == State::Established).map(|(id, ..)| id.0).collect();
    paths.sort();
    paths
}

/// An interface that goes and comes: REMOVE_ADDR tells the peer at once, and the path is joined at once when it is set again, while
/// the REMOVE_ADDR is still being repeated.
#[test]
fn a_path_that_was_withdrawn_is_joined_again_when_it_is_set() {
    for gone in [0, 1] {
        let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
        // Joins begin once the peer has shown that it speaks MPTCP.
        pair.write(Side::Client, pattern(0, 1_000), false).run(at(500));
        let local = client_tuple(gone).local.ip();
        let subflow = pair.party(Side::Client).connection().unwrap().subflows().find(|(_, t, _)| t.local.ip() == local);
        let ends = subflow.expect("it is there").1.local;
        let id = pair.act(Side::Client, |c, _| c.address_id(ends)).expect("it has an ID");
        pair.act(Side::Client, |c, cx| c.withdraw(cx, id));
        pair.run(at(700));
        for side in [Side::Client, Side::Server] {
            assert_eq!(established(&mut pair, side), [1 - gone], "{side:?}");
        }
        let mut again = client_paths(2)[usize::from(gone)].clone();
        again.policy = PathPolicy { price: 2.0, ..PathPolicy::default() };
        again.tuple.local.set_port(0);
        pair.act(Side::Client, |c, _| c.set_path(again));
        pair.run(at(900));
        for until in [901, 15_000] {
            pair.run(at(until));
            assert_eq!(
                [Side::Client, Side::Server].map(|side| established(&mut pair, side)),
                [[0, 1], [0, 1]],
                "{gone}"
            );
        }
        let policy = pair.act(Side::Client, |c, _| c.view().path(PathId(gone)).map(|path| path.policy.price));
        assert_eq!(policy, Some(2.0));
    }
}

#[test]
fn a_path_that_is_new_is_joined_and_one_in_use_is_changed() {
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    pair.write(Side::Client, pattern(0, 1_000), false).run(at(300));
    let mut new = client_paths(3)[2].clone();
    new.backup = true;
    pair.act(Side::Client, |c, _| c.set_path(new));
    let mut first = client_paths(1)[0].clone();
    first.backup = true;
    pair.act(Side::Client, |c, _| c.set_path(first));
    pair.run(at(600));
    for side in [Side::Client, Side::Server] {
        assert_eq!(established(&mut pair, side), [0, 1, 2]);
        let backups = pair.act(side, |c, _| [0, 1, 2].map(|id| c.view().path(PathId(id)).map(|path| path.backup)));
        assert_eq!(backups, [Some(true), Some(false), Some(true)], "{side:?}: MP_PRIO and the join say so");
    }
}

#[test]
fn an_address_id_that_names_another_address_is_ignored() {
    // RFC 8684 §3.4.1: an ADD_ADDR may repeat an assigned ID, "but the IP address MUST be the same as previously assigned to
    // this Address ID [...] If these conditions are not met, the receiver SHOULD silently ignore the ADD_ADDR."
    let mut h = Solo::open_client(Setup { accept_announced: true, ..setup(plain_stamps(), client_paths(1)) });
    h.at(1);
    h.clear();
    h.send(h.seg(1, 1).dss(h.data_ack(0)).with(add_addr(&h, 5, host(5, 2), None)));
    h.at(2);
    h.send(h.seg(1, 1).dss(h.data_ack(0)).with(add_addr(&h, 5, host(6, 2), None)));
    h.at(3);
    let syns: Vec<_> = h.sent.iter().filter(|(_, p)| p.segment.flags == Flags::SYN).map(|(_, p)| p.dst).collect();
    assert_eq!(syns, [host(5, 2)]);
}
