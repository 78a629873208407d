//! Where a connection opens: over a path that was named, or in a race (RFC 8305 §5; draft-amend-tcpm-mptcp-robe, RobE_SIM).

use crate::common::pair::{Fate, Pair, over};
use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{at, client_paths, client_tuple, host, ms, pattern, plain_stamps, setup};
use anabranch_engine::connection::ConnectionEvent;
use anabranch_engine::{FirstPath, Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::{PathId, Side};
use anabranch_wire::{Flags, MpJoin, MptcpOption, Packet, Segment, crypto};

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
/// The peer's key on a path: a server draws one for each handshake.
const KEYS: [u64; 3] = [0xaaaa_0000, PEER_KEY, 0xcccc_0000];

fn racing() -> Settings {
    Settings { first_path: FirstPath::Race, ..plain_stamps() }
}

/// A client that races over `n` paths and has just begun.
fn race(n: u8) -> Solo {
    Solo::client_with(setup(racing(), client_paths(n)))
}

/// When the engine sent its segments, and from where.
fn sent(h: &mut Solo) -> Vec<(u64, Packet)> {
    h.sent.drain(..).map(|(time, packet)| (time.as_nanos() / 1_000_000, packet)).collect()
}

/// The times of all SYNs, and the paths by their addresses.
fn syns(h: &mut Solo) -> Vec<(u64, u8)> {
    let path = |packet: &Packet| (0..4).find(|path| packet.src == host(*path, 1)).expect("a path");
    let all = sent(h);
    all.iter().filter(|(_, packet)| packet.segment.flags == Flags::SYN).map(|(t, p)| (*t, path(p))).collect()
}

fn answer(h: &Solo, path: u8) -> Segment {
    h.syn_ack(path).with(Solo::capable(Some(KEYS[usize::from(path)]), None))
}

fn closed(h: &Solo) -> Option<CloseReason> {
    h.events.iter().find_map(|event| match event {
        ConnectionEvent::Closed(why) => Some(*why),
        _ => None,
    })
}

#[test]
fn syns_are_an_attempt_delay_apart() {
    let mut h = race(3);
    h.at(900);
    let all = sent(&mut h);
    for (n, (time, packet)) in all.iter().enumerate() {
        let tuple = client_tuple(n as u8);
        assert_eq!(*time, 250 * n as u64);
        assert_eq!((packet.src, packet.segment.src_port), (tuple.local.ip(), tuple.local.port()));
        assert_eq!((packet.dst, packet.segment.dst_port), (tuple.remote.ip(), tuple.remote.port()));
        // RFC 8684 §3.1: no key on a SYN, so that no two connections share one.
        assert_eq!(
            (packet.segment.flags, packet.segment.options.mptcp()),
            (Flags::SYN, &[Solo::capable(None, None)][..])
        );
    }
    assert_eq!(all.len(), 3);
    assert!(h.isn[0] != h.isn[1] && h.isn[1] != h.isn[2] && h.isn[0] != h.isn[2]);
    // RFC 6298 §5: each candidate repeats its own SYN.
    h.at(3700);
    assert_eq!(syns(&mut h), [(1000, 0), (1250, 1), (1500, 2), (3000, 0), (3250, 1), (3500, 2)]);
}

#[test]
fn without_a_delay_all_syns_leave_at_once() {
    let settings = Settings { race_delay: ms(0), ..racing() };
    let mut h = Solo::client_with(setup(settings, client_paths(3)));
    assert_eq!(syns(&mut h), [(0, 0), (0, 1), (0, 2)]);
}

#[test]
fn a_backup_is_tried_last() {
    let mut paths = client_paths(3);
    paths[0].backup = true;
    let mut h = Solo::client_with(setup(racing(), paths));
    h.at(600);
    assert_eq!(syns(&mut h), [(0, 1), (250, 2), (500, 0)]);
}

#[test]
fn an_answer_in_time_leaves_the_others_alone() {
    let mut h = race(3);
    h.at(100).clear();
    h.send(answer(&h, 0));
    let third = h.recv();
    assert_eq!(third.options.mptcp(), [Solo::capable(Some(h.key), Some(KEYS[0]))]);
    h.at(900).quiet();
    assert_eq!((h.state_of(0), h.connection().subflows().count()), (State::Established, 1));
}

#[test]
fn the_first_answer_counts_and_later_ones_are_reset() {
    let mut h = race(2);
    h.at(260).clear();
    let late = answer(&h, 0);
    h.send_on(1, answer(&h, 1));
    let third = h.recv();
    assert_eq!((third.flags, h.numbers(1, &third)), (Flags::ACK, (1, 1)));
    assert_eq!(third.options.mptcp(), [Solo::capable(Some(h.key), Some(KEYS[1]))]);
    assert!(h.connection().is_multipath() && h.state_of(1) == State::Established);
    assert!(h.events.contains(&ConnectionEvent::Established) && h.log.saw(Event::Path(PathState::Closed)));
    // RFC 9293 §3.10.7.1: <SEQ=SEG.ACK><CTL=RST>, and no third ACK, however often it comes.
    for _ in 0..2 {
        h.send(late.clone());
        let reset = h.recv();
        assert_eq!((reset.flags, reset.seq, reset.src_port), (Flags::RST, late.ack, client_tuple(0).local.port()));
        h.quiet();
    }
    // The one that lost is not repeated.
    h.at(20_000);
    assert_eq!(syns(&mut h), []);
    assert_eq!((closed(&h), h.connection().subflows().count()), (None, 1));
}

#[test]
fn the_others_are_joined_at_once_and_from_other_ports() {
    let mut h = race(3);
    h.at(260).clear();
    h.send_on(1, answer(&h, 1)).clear();
    // RFC 8684 §3.1: not before the peer has shown that it got the keys.
    h.at(290).quiet();
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    h.at(290);
    let joins = sent(&mut h);
    let mut seen = Vec::new();
    for (time, packet) in &joins {
        let Some(MptcpOption::Join(MpJoin::Syn { token, address_id, .. })) = packet.segment.options.mptcp().first()
        else {
            panic!("{packet:?}");
        };
        assert_eq!((*time, packet.segment.flags, *token), (290, Flags::SYN, crypto::token(KEYS[1])));
        assert_ne!(packet.segment.src_port, client_tuple(0).local.port());
        seen.push((packet.src, *address_id));
    }
    // RFC 8684 §3.2: the first subflow's address has ID 0.
    assert_eq!(h.app(|c, _| c.address_id(client_tuple(1).local)), Some(0));
    assert_eq!(seen, [(host(0, 1), 1), (host(2, 1), 2)]);
}

#[test]
fn an_opening_path_that_is_named_keeps_its_id() {
    let settings = Settings { first_path: FirstPath::On(PathId(1)), ..plain_stamps() };
    let mut h = Solo::client_with(setup(settings, client_paths(3)));
    h.at(900);
    assert_eq!(syns(&mut h), [(0, 1)]);
    h.send_on(1, answer(&h, 1)).clear();
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    h.at(900);
    assert_eq!(syns(&mut h), [(900, 0), (900, 2)]);
    let ids: Vec<PathId> = h.connection().view().paths().iter().map(|path| path.id).collect();
    assert_eq!((ids, h.state_of(1)), (vec![PathId(1)], State::Established));
    // A missing path means the first one.
    let settings = Settings { first_path: FirstPath::On(PathId(9)), ..plain_stamps() };
    assert_eq!(syns(&mut Solo::client_with(setup(settings, client_paths(2)))), [(0, 0)]);
}

#[test]
fn a_refusal_is_not_the_end_while_another_may_answer() {
    let mut h = race(3);
    h.at(20).clear();
    let refused = |h: &Solo, path| Segment { flags: Flags::RST | Flags::ACK, ..h.seg_on(path, 0, 1) };
    h.send(refused(&h, 0));
    // The next one does not wait for its turn; the one after it comes a delay later.
    assert_eq!(syns(&mut h), [(20, 1)]);
    h.at(300);
    assert_eq!(syns(&mut h), [(270, 2)]);
    h.send_on(1, refused(&h, 1));
    assert_eq!(closed(&h), None);
    h.send_on(2, answer(&h, 2)).clear();
    assert_eq!((h.state_of(2), h.connection().is_multipath()), (State::Established, true));
    // RFC 8684 §3.9.3: what was refused is not joined.
    h.send_on(2, Segment { ack: h.seg_on(2, 1, 1).ack, ..h.seg_on(2, 1, 1) }.dss(h.data_ack(0)));
    h.at(20_000);
    assert_eq!(syns(&mut h), []);
}

#[test]
fn the_last_refusal_is_the_end() {
    let mut h = race(2);
    h.at(300).clear();
    for path in [1, 0] {
        assert_eq!(closed(&h), None);
        h.send_on(path, Segment { flags: Flags::RST | Flags::ACK, ..h.seg_on(path, 0, 1) });
    }
    assert_eq!(closed(&h), Some(CloseReason::Refused));
    h.at(20_000).quiet();
    assert!(h.is_gone());
}

#[test]
fn a_race_without_any_answer_times_out_with_its_last_candidate() {
    let tcp = TcpSettings { syn_retries: 1, ..plain_stamps().tcp };
    let mut h = Solo::client_with(setup(Settings { tcp, ..racing() }, client_paths(2)));
    // Two attempts take 1 s and 2 s.
    h.at(3249);
    assert_eq!((syns(&mut h), closed(&h)), (vec![(0, 0), (250, 1), (1000, 0), (1250, 1)], None));
    h.at(3250);
    assert_eq!(closed(&h), Some(CloseReason::TimedOut));
    h.at(60_000).quiet();
}

#[test]
fn a_candidate_that_gave_up_is_joined_when_another_has_won() {
    let tcp = TcpSettings { syn_retries: 0, ..plain_stamps().tcp };
    let mut h = Solo::client_with(setup(Settings { tcp, ..racing() }, client_paths(2)));
    h.at(1100).clear();
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Closed, State::SynSent));
    h.send_on(1, answer(&h, 1)).clear();
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    h.at(1100);
    assert_eq!(syns(&mut h), [(1100, 0)]);
    assert_eq!(h.app(|c, _| c.address_id(client_tuple(1).local)), Some(0));
}

#[test]
fn the_winner_decides_whether_it_is_multipath() {
    let mut h = race(2);
    h.at(260).clear();
    let late = answer(&h, 0);
    // RFC 8684 §3.7: no MP_CAPABLE on the SYN/ACK
    h.send_on(1, h.syn_ack(1));
    assert_eq!((h.recv().options.mptcp(), h.connection().is_multipath()), (&[][..], false));
    h.send(late);
    assert_eq!(h.recv().flags, Flags::RST);
    h.write(b"hello");
    let data = h.recv();
    assert_eq!((h.numbers(1, &data), &data.payload[..], data.options.mptcp()), ((1, 1), &b"hello"[..], &[][..]));
    h.send_on(1, h.seg_on(1, 1, 6)).clear();
    h.at(20_000).quiet();
}

#[test]
fn what_was_written_before_goes_over_the_winner() {
    let mut h = race(2);
    h.write(b"hello").at(260).clear();
    h.send_on(1, answer(&h, 1));
    let first = h.sent.iter().find(|(_, packet)| !packet.segment.payload.is_empty()).expect("data").1.clone();
    assert_eq!((first.src, &first.segment.payload[..]), (host(1, 1), &b"hello"[..]));
    let Some(MptcpOption::Capable(keys)) = first.segment.options.mptcp().first() else { panic!("{first:?}") };
    assert_eq!((keys.receiver_key, keys.data), (Some(KEYS[1]), Some((5, None))));
}

#[test]
fn a_forged_answer_decides_nothing() {
    let mut h = race(2);
    h.at(260).clear();
    let mut forged = answer(&h, 1);
    forged.ack = forged.ack.at(7);
    h.send_on(1, forged.clone());
    // RFC 9293 §3.10.7.3
    let reset = h.recv();
    assert_eq!((reset.flags, reset.seq), (Flags::RST, forged.ack));
    assert!(h.log.violated(Violation::BlindAck));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::SynSent, State::SynSent));
    // Nor does a reset that acknowledges something else.
    h.send(Segment { flags: Flags::RST | Flags::ACK, ..h.seg(0, 9) });
    assert_eq!(h.state_of(0), State::SynSent);
    h.send(answer(&h, 0));
    assert_eq!((h.state_of(0), h.connection().is_multipath()), (State::Established, true));
}

#[test]
fn a_race_knows_no_simultaneous_open() {
    let mut h = race(2);
    h.at(260).clear();
    // A host that knows a candidate's addresses and ports could turn the connection into plain TCP with it.
    h.send(h.syn(0)).quiet();
    assert!(h.log.violated(Violation::UnexpectedOption) && h.state_of(0) == State::SynSent);
    h.send_on(1, answer(&h, 1));
    assert!(h.connection().is_multipath());
}

#[test]
fn an_abort_ends_the_race() {
    let mut h = race(3);
    h.at(260).clear();
    h.app(|c, cx| c.abort(cx));
    h.at(60_000).quiet();
    assert_eq!(closed(&h), Some(CloseReason::Aborted));
    assert!(h.is_gone());
}

#[test]
fn a_path_that_is_taken_off_makes_room_for_the_next() {
    let mut h = race(2);
    h.at(20).clear();
    let reason = anabranch_wire::Reason { code: 0, transient: false };
    h.app(|c, cx| c.reset_path(cx, PathId(0), reason));
    assert_eq!((syns(&mut h), closed(&h)), (vec![(20, 1)], None));
}

#[test]
fn a_lost_syn_ack_costs_an_attempt_delay() {
    // 10 ms on path 0, where nothing passes for a second, and 20 ms on path 1.
    let mut pair = Pair::with(3, setup(racing(), client_paths(2)), || setup(plain_stamps(), client_paths(2)));
    pair.hook =
        Box::new(
            |now, side, _, packet| {
                if over(packet, 0) && side == Side::Server && now < at(1000) { Fate::Drop } else { Fate::Pass }
            },
        );
    pair.server.reads = true;
    pair.run(at(289));
    assert!(pair.client.events.is_empty());
    pair.run(at(290));
    assert_eq!(pair.client.events.first(), Some(&ConnectionEvent::Established));
}

/// A server that is asked when a handshake is complete.
fn server_of_complete() -> Solo {
    let mut h = Solo::server(plain_stamps());
    let accept = Box::new(|_| Some(setup(plain_stamps(), Vec::new())));
    h.endpoint.listen_for_complete(crate::common::SERVER_PORT, plain_stamps(), accept);
    h
}

#[test]
fn a_server_accepts_the_winner_alone() {
    let mut h = server_of_complete();
    h.send(h.syn(0).with(Solo::capable(None, None)));
    let (lost, lost_key) = (h.recv(), h.key);
    h.send_on(1, h.syn(1).with(Solo::capable(None, None)));
    let won = h.recv();
    assert_eq!((lost.flags, won.flags), (SYN_ACK, SYN_ACK));
    assert_ne!(lost_key, h.key);
    assert!(h.handle.is_none() && h.endpoint.is_empty());
    // The loser's reset, and then the winner's third ACK.
    let reset = Segment { flags: Flags::RST, ack: Default::default(), seq: lost.ack, ..h.seg_on(0, 1, 1) };
    h.send_on(0, reset).quiet();
    let third = Segment { ack: won.seq.at(1), ..h.seg_on(1, 1, 1) };
    h.send_on(1, third.with(Solo::capable(Some(KEYS[0]), Some(h.key))));
    assert!(h.connection().is_multipath());
    assert_eq!(h.endpoint.len(), 1);
    // Of the one that was reset nothing is repeated.
    h.clear().at(20_000).quiet();
}

#[test]
fn streams_arrive_whole_whoever_wins() {
    for (seed, lost) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let settings = Settings { race_delay: ms(10), ..racing() };
        let mut pair = Pair::with(seed, setup(settings, client_paths(3)), || setup(plain_stamps(), Vec::new()));
        let accept = Box::new(|_| Some(setup(plain_stamps(), Vec::new())));
        pair.server.endpoint.listen_for_complete(crate::common::SERVER_PORT, plain_stamps(), accept);
        // The first SYNs of so many paths are lost.
        pair.hook = Box::new(move |now, side, path, packet| {
            let syn = side == Side::Client && packet.segment.flags == Flags::SYN;
            if syn && path < lost && now < at(500) { Fate::Drop } else { Fate::Pass }
        });
        pair.client.reads = true;
        pair.server.reads = true;
        pair.server.polite = true;
        pair.write(Side::Client, pattern(0, 300_000), true);
        pair.run(at(60_000));
        assert_eq!(pair.server.got, pattern(0, 300_000), "{lost} lost");
        assert_eq!(pair.client.closed(), Some(CloseReason::Finished), "{lost} lost");
    }
}
