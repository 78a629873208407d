//! MP_JOIN (RFC 8684 §3.2), MP_PRIO (§3.3.8) and the addresses that lead to joins (§3.4).

use crate::common::pair::{Fate, Pair, over};
use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{at, client_paths, host, pattern, plain_stamps, setup};
use anabranch_engine::State;
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_trace::{Event, Violation};
use anabranch_units::{PathId, Side};
use anabranch_wire::{AddAddr, Flags, MpJoin, MptcpOption, Packet, Reason, Segment, crypto};
use core::net::IpAddr;

fn join_of(s: &Segment) -> MpJoin {
    match s.options.mptcp().first() {
        Some(MptcpOption::Join(join)) => *join,
        other => panic!("no MP_JOIN: {other:?}"),
    }
}

fn reason_of(s: &Segment) -> Option<Reason> {
    s.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::TcpRst(reason) => Some(*reason),
        _ => None,
    })
}

/// A client with two paths whose second SYN was just sent; its nonce.
fn joining() -> (Solo, u32) {
    let mut h = Solo::open_client(setup(plain_stamps(), client_paths(2)));
    h.at(1);
    let syn = h.recv();
    let MpJoin::Syn { backup: false, address_id: 1, token, nonce } = join_of(&syn) else { panic!("{syn:?}") };
    assert_eq!((token, syn.flags), (crypto::token(PEER_KEY), Flags::SYN));
    (h, nonce)
}

fn join_syn_ack(h: &Solo, theirs: u32, wrong: bool) -> MptcpOption {
    let hmac = crypto::leftmost_64(&crypto::join_hmac(PEER_KEY, h.key, 99, theirs)) ^ u64::from(wrong);
    MptcpOption::Join(MpJoin::SynAck { backup: false, address_id: 1, hmac, nonce: 99 })
}

#[test]
fn the_syn_ack_of_a_join_is_told_as_new_once() {
    let mut h = Solo::open_server(plain_stamps());
    let told = |h: &Solo| {
        [false, true].map(|again| {
            let event = Event::ControlSent { flags: (Flags::SYN | Flags::ACK).0, again };
            h.log.0.iter().filter(|(_, e)| *e == event).count()
        })
    };
    assert_eq!(told(&h), [1, 0], "that of the first subflow");
    for expected in [[2, 0], [2, 1]] {
        h.send_on(1, h.syn(1).with(h.join_syn(1)));
        assert_eq!(told(&h), expected);
    }
}

#[test]
fn a_client_joins() {
    let (mut h, nonce) = joining();
    h.send_on(1, h.syn_ack(1).with(join_syn_ack(&h, nonce, false)));
    let third = h.recv();
    let hmac = crypto::leftmost_160(&crypto::join_hmac(h.key, PEER_KEY, nonce, 99));
    assert_eq!(join_of(&third), MpJoin::Ack { hmac });
    // No data before the fourth ACK.
    assert!(!h.connection().view().path(PathId(1)).expect("it is there").usable);
    // The third ACK is repeated until then.
    h.at(1200);
    assert_eq!(join_of(&h.recv()), MpJoin::Ack { hmac });
    // The SYN/ACK again: so is the third ACK.
    h.clear();
    h.send_on(1, h.syn_ack(1).with(join_syn_ack(&h, nonce, false)));
    assert_eq!(join_of(&h.recv()), MpJoin::Ack { hmac });
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    assert!(h.connection().view().path(PathId(1)).expect("it is there").usable);
    h.clear().at(9000);
    h.quiet();
}

#[test]
fn a_join_that_was_in_use_forbids_the_fall_back_when_it_is_gone() {
    let (mut h, nonce) = joining();
    h.send_on(1, h.syn_ack(1).with(join_syn_ack(&h, nonce, false)));
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    h.send_on(1, h.seg_on(1, 1, 1).flags(Flags::RST));
    assert_eq!(h.state_of(1), State::Closed);
    h.clear();
    h.send(h.seg(1, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    assert!(h.recv().flags.has(Flags::RST) && !h.log.saw(Event::Fallback));
}

#[test]
fn a_client_resets_a_wrong_answer() {
    for wrong in [true, false] {
        let (mut h, nonce) = joining();
        let answer = h.syn_ack(1);
        h.send_on(1, if wrong { answer.with(join_syn_ack(&h, nonce, true)) } else { answer });
        let reset = h.recv();
        assert!(reset.flags.has(Flags::RST));
        assert_eq!(h.numbers(1, &reset).0, 1);
        assert_eq!(reason_of(&reset), Some(Reason { code: 1, transient: false }));
        assert_eq!(h.log.violated(Violation::Hmac), wrong);
        assert_eq!((h.state_of(0), h.state_of(1)), (State::Established, State::Closed));
    }
}

#[test]
fn a_server_is_joined() {
    let mut h = Solo::open_server(plain_stamps());
    h.send_on(1, h.syn(1).with(h.join_syn(1)));
    let answer = h.recv();
    let MpJoin::SynAck { hmac, nonce, .. } = join_of(&answer) else { panic!("{answer:?}") };
    assert_eq!(hmac, crypto::leftmost_64(&crypto::join_hmac(h.key, PEER_KEY, nonce, 78)));
    h.send_on(1, h.seg_on(1, 1, 1).with(h.join_ack(1, nonce)));
    // The fourth ACK, and again if it was lost.
    let fourth = h.recv();
    assert_eq!((fourth.flags, h.numbers(1, &fourth)), (Flags::ACK, (1, 1)));
    h.quiet();
    h.send_on(1, h.seg_on(1, 1, 1).with(h.join_ack(1, nonce)));
    assert_eq!(h.recv().flags, Flags::ACK);
    assert_eq!(h.state_of(1), State::Established);
}

#[test]
fn a_server_does_not_believe_a_wrong_hmac() {
    let mut h = Solo::open_server(plain_stamps());
    h.send_on(1, h.syn(1).with(h.join_syn(1))).clear();
    h.send_on(1, h.seg_on(1, 1, 1).with(MptcpOption::Join(MpJoin::Ack { hmac: [7; 20] })));
    let reset = h.recv();
    assert!(reset.flags.has(Flags::RST) && h.log.violated(Violation::Hmac));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Established, State::Closed));
}

#[test]
fn a_joining_subflow_without_its_proof_is_reset() {
    // RFC 8684 §3.2: where MP_JOIN is missing from the ACK as where the HMAC is wrong
    for data in [false, true] {
        let mut h = Solo::open_server(plain_stamps());
        h.send_on(1, h.syn(1).with(h.join_syn(1))).clear();
        let segment = h.seg_on(1, 1, 1);
        h.send_on(1, if data { segment.data(b"evil").dss(h.mapped(0, 0, 1, 4)) } else { segment });
        let reset = h.recv();
        assert!(reset.flags.has(Flags::RST));
        assert_eq!(reason_of(&reset), Some(Reason { code: 1, transient: false }));
        assert_eq!((h.read(), h.state_of(0), h.state_of(1)), (Vec::new(), State::Established, State::Closed));
    }
}

#[test]
fn whatever_a_joining_client_says_carries_its_proof() {
    // Its third ACK may have been lost.
    let (mut h, nonce) = joining();
    h.send_on(1, h.syn_ack(1).with(join_syn_ack(&h, nonce, false))).clear();
    let hmac = crypto::leftmost_160(&crypto::join_hmac(h.key, PEER_KEY, nonce, 99));
    // Reading opens the window, and all subflows announce it; a probe of the peer's is answered; the stream ends.
    h.send_on(1, h.seg_on(1, 0, 1).data(b"x"));
    h.send_on(1, h.seg_on(1, 0, 1));
    h.write(b"abc").finish();
    h.send(h.seg(1, 4).dss(h.data_ack(3)));
    h.at(1300);
    let said: Vec<_> = h.sent.iter().filter(|(_, p)| p.dst == host(1, 2)).map(|(_, p)| p.segment.clone()).collect();
    assert!(said.len() >= 2, "{said:?}");
    assert!(said.iter().all(|s| join_of(s) == MpJoin::Ack { hmac }), "{said:?}");
}

/// A path whose round trip is longer than the first attempts.
#[test]
fn a_far_path_is_joined_once_the_attempts_are_as_far_apart_as_they_get() {
    let (mut h, _) = joining();
    h.clear().at(103_000);
    let syns: Vec<(u64, u32)> = h
        .sent
        .iter()
        .filter(|(_, p)| p.segment.flags == Flags::SYN)
        .map(|(at, p)| {
            let MpJoin::Syn { nonce, .. } = join_of(&p.segment) else { panic!("{p:?}") };
            (at.as_nanos().div_ceil(1_000_000_000), nonce)
        })
        .collect();
    let attempts: Vec<Vec<u64>> =
        syns.chunk_by(|a, b| a.1 == b.1).map(|same| same.iter().map(|(at, _)| *at).collect()).collect();
    let last = vec![43, 44, 46, 50, 58, 74, 90];
    assert_eq!(attempts, [vec![1, 3], vec![8, 9, 11], vec![17, 18, 20], vec![28, 29, 31], last]);
    let nonce = syns.last().expect("SYNs").1;
    h.send_on(1, h.syn_ack(1).with(join_syn_ack(&h, nonce, false)));
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    assert!(h.connection().view().path(PathId(1)).expect("it is there").usable);
}

#[test]
fn an_unknown_token_is_reset() {
    let mut h = Solo::open_server(plain_stamps());
    let join = MptcpOption::Join(MpJoin::Syn { backup: false, address_id: 1, token: 1, nonce: 5 });
    h.send_on(1, h.syn(1).with(join));
    let reset = h.recv();
    assert!(reset.flags.has(Flags::RST));
    assert_eq!(reason_of(&reset), Some(Reason { code: 1, transient: false }));
}

#[test]
fn a_joining_syn_leaves_the_window_alone() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).window(2000).dss(h.data_ack(0)));
    let before = h.connection().view().send_window();
    h.send_on(1, h.syn(1).window(500).with(h.join_syn(1)));
    assert_eq!(h.connection().view().send_window(), before);
}

#[test]
fn a_refused_join_leaves_the_connection() {
    let (mut h, _) = joining();
    h.send_on(1, h.seg_on(1, 0, 1).flags(Flags::RST | Flags::ACK));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Established, State::Closed));
    // RFC 8684 §3.9.3: it is not tried again, unless the reason may pass.
    h.clear().at(60_000);
    h.quiet();
    let reset = |transient| {
        let (mut h, _) = joining();
        let reason = MptcpOption::TcpRst(Reason { code: 3, transient });
        h.send_on(1, h.seg_on(1, 0, 1).flags(Flags::RST | Flags::ACK).with(reason));
        h.clear();
        h
    };
    reset(false).at(60_000).quiet();
    assert_eq!(reset(true).at(2000).recv().flags, Flags::SYN);
}

#[test]
fn a_crossing_syn_does_not_turn_a_join_into_plain_tcp() {
    let (mut h, _) = joining();
    h.send_on(1, h.syn(1));
    assert!(h.connection().is_multipath());
    assert_eq!(h.state_of(1), State::SynSent);
}

#[test]
fn every_lost_handshake_segment_is_made_good() {
    // Drops the n-th packet on the second path, whichever it is.
    for n in 0..6 {
        let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
        let mut seen = 0;
        pair.hook = Box::new(move |_, _, path, _| {
            if path != 1 {
                return Fate::Pass;
            }
            seen += 1;
            if seen == n + 1 { Fate::Drop } else { Fate::Pass }
        });
        pair.client.polite = false;
        pair.server.polite = false;
        pair.write(Side::Client, pattern(0, 1000), false).run(at(5000));
        for party in [&pair.client, &pair.server] {
            let usable = party.connection().expect("open").view().path(PathId(1)).is_some_and(|p| p.usable);
            assert!(usable, "packet {n} lost");
        }
    }
}

#[test]
fn backups_rest_while_there_is_another() {
    let mut paths = client_paths(2);
    paths[1].backup = true;
    let mut h = Solo::open_client(setup(plain_stamps(), paths));
    h.at(1);
    let MpJoin::Syn { backup, nonce, .. } = join_of(&h.recv()) else { panic!() };
    assert!(backup);
    h.send_on(1, h.syn_ack(1).with(join_syn_ack(&h, nonce, false)));
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0))).clear();
    h.write(&pattern(0, 40_000));
    assert!(h.sent.iter().all(|(_, p)| p.dst == host(0, 2)));
    // The peer takes the first path's priority away; both are backups then.
    h.clear();
    h.send(h.seg(1, 10_001).dss(h.data_ack(10_000)).with(MptcpOption::Prio { backup: true }));
    assert!(h.sent.iter().any(|(_, p)| p.dst == host(1, 2)));
    // We give the second its priority back, and say so on it.
    h.clear();
    h.app(|c, _| c.set_backup(PathId(1), false));
    let told = h.sent.iter().find(|(_, p)| p.segment.options.mptcp() == [MptcpOption::Prio { backup: false }]);
    assert_eq!(told.map(|(_, p)| p.dst), Some(host(1, 2)));
}

fn announcing(address: IpAddr, port: Option<u16>) -> Setup {
    let paths = client_paths(1);
    let paths = paths.into_iter().map(|p| PathSetup { tuple: crate::common::mirror(p.tuple), ..p }).collect();
    Setup { announce: vec![(3, address, port)], ..setup(plain_stamps(), paths) }
}

#[test]
fn an_address_is_announced_until_it_is_echoed() {
    let address = host(7, 2);
    let mut h = Solo::server_with(move || announcing(address, Some(8080))).opened();
    let hmac = crypto::add_addr_hmac(h.key, PEER_KEY, 3, address, Some(8080));
    let announced = AddAddr { address_id: 3, address, port: Some(8080), hmac: Some(hmac) };
    h.at(1);
    let option = |s: &Segment| s.options.mptcp().first().copied();
    assert_eq!(option(&h.recv()), Some(MptcpOption::AddAddr(announced)));
    h.at(2100);
    assert_eq!(option(&h.recv()), Some(MptcpOption::AddAddr(announced)));
    h.send(h.seg(1, 1).with(MptcpOption::AddAddr(AddAddr { hmac: None, ..announced })));
    h.clear().at(60_000);
    h.quiet();
}

#[test]
fn an_echo_repeats_the_whole_announcement() {
    // RFC 8684 §3.4.1: one that names another address or port under the same ID echoes nothing.
    let (address, port) = (host(7, 2), Some(8080));
    let mut h = Solo::server_with(move || announcing(address, port)).opened();
    h.at(1);
    let v6: IpAddr = "fd00::7".parse().expect("an address");
    let others = [(3, host(7, 3), port), (3, address, None), (3, address, Some(81)), (4, address, port), (3, v6, port)];
    let echo = |address_id, address, port| MptcpOption::AddAddr(AddAddr { address_id, address, port, hmac: None });
    for (id, address, port) in others {
        h.send(h.seg(1, 1).with(echo(id, address, port)));
    }
    let announced = |h: &Solo| {
        h.sent.iter().filter(|(_, p)| matches!(p.segment.options.mptcp(), [MptcpOption::AddAddr(_)])).count()
    };
    h.clear().at(2100);
    assert_eq!(announced(&h), 1);
    h.send(h.seg(1, 1).with(echo(3, address, port)));
    h.clear().at(60_000);
    assert_eq!(announced(&h), 0);
}

#[test]
fn announced_addresses_are_echoed_and_joined() {
    let v6: IpAddr = "fd00::9".parse().expect("an address");
    for (address, port, joined) in [(host(5, 2), None, true), (host(5, 2), Some(8080), true), (v6, None, false)] {
        let mut h = Solo::open_client(Setup { accept_announced: true, ..setup(plain_stamps(), client_paths(1)) });
        h.at(1);
        h.clear();
        let hmac = Some(crypto::add_addr_hmac(PEER_KEY, h.key, 5, address, port));
        let announced = AddAddr { address_id: 5, address, port, hmac };
        h.send(h.seg(1, 1).dss(h.data_ack(0)).with(MptcpOption::AddAddr(announced)));
        let echo = MptcpOption::AddAddr(AddAddr { hmac: None, ..announced });
        assert!(h.sent.iter().any(|(_, p)| p.segment.options.mptcp().contains(&echo)));
        h.at(2);
        let syn = h.sent.iter().find(|(_, p)| p.segment.flags == Flags::SYN).map(|(_, p)| (p.dst, p.segment.dst_port));
        assert_eq!(syn, joined.then_some((address, port.unwrap_or(80))));
        // A wrong HMAC is neither echoed nor joined.
        let mut h = Solo::open_client(Setup { accept_announced: true, ..setup(plain_stamps(), client_paths(1)) });
        h.at(1);
        h.clear();
        h.send(h.seg(1, 1).with(MptcpOption::AddAddr(AddAddr { hmac: Some(5), ..announced })));
        h.at(100);
        h.quiet();
        assert!(h.log.violated(Violation::Hmac));
    }
}

#[test]
fn subflows_with_the_same_ports_are_told_apart() {
    // Both subflows run from port 4000 to port 80, between different addresses.
    let mut paths = client_paths(2);
    for p in &mut paths {
        p.tuple.local.set_port(4000);
    }
    let server = || setup(plain_stamps(), Vec::new());
    let mut pair = Pair::with(3, setup(plain_stamps(), paths), server);
    pair.write(Side::Client, pattern(0, 500_000), true).run(at(20_000));
    assert_eq!(pair.server.got, pattern(0, 500_000));
    for id in [0, 1] {
        let sent = |e: &Event| matches!(e, Event::Path(anabranch_trace::PathState::Established));
        assert!(pair.client.log.0.iter().filter(|(_, e)| sent(e)).count() > id);
    }
}

#[test]
fn a_removed_address_takes_its_subflows_and_loses_no_data() {
    for side in [Side::Client, Side::Server] {
        let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
        pair.write(Side::Server, pattern(0, 2_000_000), true).run(at(300));
        assert_eq!(pair.client.connection().expect("open").subflows().count(), 2);
        pair.act(side, |c, cx| c.withdraw(cx, 1));
        pair.run(at(500));
        assert_eq!(pair.server.connection().expect("open").subflows().count(), 1, "{side:?}");
        pair.hook = Box::new(|_, _, _, p| {
            assert!(!over(p, 1));
            Fate::Pass
        });
        pair.run(at(120_000));
        assert_eq!(pair.client.got, pattern(0, 2_000_000));
    }
}

/// The SYN of a join from an address of the peer's, and what it is answered.
fn join_from(h: &mut Solo, n: u8) -> Packet {
    h.clear();
    let segment = h.syn(1).with(h.join_syn(1));
    h.send_packet(&Packet { src: host(n, 1), dst: host(0, 2), segment });
    h.sent.pop_front().expect("an answer").1
}

#[test]
fn a_server_runs_out_of_path_ids_and_says_so() {
    let mut h = Solo::open_server(plain_stamps());
    for n in 1..32 {
        let answer = join_from(&mut h, n);
        h.send_packet(&h.third_ack_of(&answer));
    }
    let mut ids: Vec<_> = h.connection().subflows().map(|(id, ..)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), PathId::LIMIT);
    // RFC 8684 §3.6: lack of resources, for now
    let refused = join_from(&mut h, 40).segment;
    assert!(refused.flags.has(Flags::RST));
    assert_eq!(reason_of(&refused), Some(Reason { code: 2, transient: true }));
    // When one is gone, another may come.
    h.app(|c, cx| assert!(c.reset_path(cx, PathId(7), Reason { code: 0, transient: false })));
    let answer = join_from(&mut h, 40);
    h.send_packet(&h.third_ack_of(&answer));
    assert_eq!(h.state_of(7), State::Established);
}

/// A host that has seen the token on the wire may send SYNs with it (RFC 8684 §5).
#[test]
fn silent_joins_do_not_keep_out_the_true_one() {
    let mut h = Solo::open_server(plain_stamps());
    for n in 20..120 {
        assert_eq!(join_from(&mut h, n).segment.flags, Flags::SYN | Flags::ACK);
    }
    assert_eq!(h.connection().subflows().count(), 1);
    h.clear().join(1);
    assert_eq!(h.state_of(1), State::Established);
    // The SYN/ACKs of the others are retransmitted as RFC 6298 §5 says, and then they are given up.
    h.clear().at(999).quiet().at(1001);
    assert_eq!(h.sent.len(), 100);
    h.at(300_000).clear().at(1_000_000).quiet();
}

/// The token alone proves nothing: only the HMAC of the third ACK shows that the peer lost its subflow.
#[test]
fn a_joining_syn_takes_the_place_of_a_silent_subflow_once_it_is_proved() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1);
    // Both paths carry data; the second falls silent.
    h.app(|c, _| c.set_backup(PathId(0), true));
    h.write(&pattern(0, 5000)).at(3000);
    assert!(h.log.saw(Event::Timeout { n: 1 }));
    let ends = |h: &Solo, port: u16| {
        let mut segment = h.syn(1).with(h.join_syn(1));
        segment.src_port = port;
        Packet { src: host(1, 1), dst: host(1, 2), segment }
    };
    let before: Vec<_> = h.connection().subflows().collect();
    h.clear();
    h.send_packet(&ends(&h, 4000));
    let answer = h.sent.pop_front().expect("a SYN/ACK").1;
    assert_eq!(h.connection().subflows().collect::<Vec<_>>(), before);
    // A forged third ACK changes nothing either.
    let mut forged = h.third_ack_of(&answer);
    forged.segment = h.seg(0, 0).with(MptcpOption::Join(MpJoin::Ack { hmac: [1; 20] }));
    let Packet { segment: Segment { src_port, dst_port, seq, ack, .. }, .. } = h.third_ack_of(&answer);
    (forged.segment.src_port, forged.segment.dst_port) = (src_port, dst_port);
    (forged.segment.seq, forged.segment.ack) = (seq, ack);
    h.clear().send_packet(&forged);
    assert!(h.recv().flags.has(Flags::RST) && h.log.violated(Violation::Hmac));
    assert_eq!(h.connection().subflows().collect::<Vec<_>>(), before);
    // The true one: the path keeps its id.
    h.clear();
    h.send_packet(&ends(&h, 4001));
    let answer = h.sent.pop_front().expect("a SYN/ACK").1;
    h.send_packet(&h.third_ack_of(&answer));
    let after: Vec<_> = h.connection().subflows().map(|(id, tuple, _)| (id, tuple.remote.port())).collect();
    assert_eq!(after, [(PathId(0), 1000), (PathId(1), 4001)]);
}
