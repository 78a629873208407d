//! MP_CAPABLE (RFC 8684 §3.1) and fallback (§3.7).

use crate::common::pair::{Fate, Pair, over};
use crate::common::solo::{Build, PEER_KEY, Solo, dss};
use crate::common::{at, client_paths, client_tuple, pattern, plain_stamps, setup};
use anabranch_engine::Settings;
use anabranch_engine::connection::{ConnectionEvent, Setup};
use anabranch_trace::{CloseReason, Event};
use anabranch_units::Side;
use anabranch_wire::{AddAddr, DataAck, Flags, MpCapable, MptcpOption, Packet, Segment, crypto};

fn capable(s: &Segment) -> Option<MpCapable> {
    s.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Capable(c) => Some(*c),
        _ => None,
    })
}

#[test]
fn a_client_exchanges_keys() {
    let mut h = Solo::client(plain_stamps());
    let offer = capable(&h.recv()).expect("MP_CAPABLE");
    assert_eq!((offer.version, offer.sender_key, offer.receiver_key, offer.checksum), (1, None, None, false));
    h.send(h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None)));
    let third = capable(&h.recv()).expect("MP_CAPABLE");
    assert_eq!((third.sender_key, third.receiver_key, third.data), (Some(h.key), Some(PEER_KEY), None));
    // The first data carries both keys and its length; what follows a DSS, and so on until the peer has shown one.
    h.write(&pattern(0, 1500));
    let first = h.recv();
    assert_eq!(capable(&first).expect("MP_CAPABLE").data, Some((1000, None)));
    let map = dss(&h.recv()).mapping.expect("a mapping");
    assert_eq!((h.our_offset(map.data_seq), map.subflow_seq, map.len), (1000, 1001, 500));
    h.send(h.seg(1, 1501).dss(h.data_ack(1500)));
    assert_eq!(h.connection().unacknowledged(), 0);
    h.write(b"more");
    assert_eq!(dss(&h.recv()).mapping.expect("a mapping").subflow_seq, 1501);
}

#[test]
fn a_server_exchanges_keys() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None)));
    let answer = capable(&h.recv()).expect("MP_CAPABLE");
    assert_eq!((answer.version, answer.receiver_key), (1, None));
    h.send(h.seg(1, 1).with(Solo::capable(Some(PEER_KEY), Some(h.key)))).quiet();
    assert!(h.connection().is_multipath());
    // The server speaks first.
    h.write(b"hello");
    let s = h.recv();
    let map = dss(&s).mapping.expect("a mapping");
    assert_eq!((h.our_offset(map.data_seq), map.subflow_seq, map.len), (0, 1, 5));
    assert_eq!(dss(&s).ack, Some(DataAck::Long(Solo::peer_number(0))));
}

/// MP_CAPABLE as the first data carries it.
fn with_data(h: &Solo, len: u16) -> MptcpOption {
    let MptcpOption::Capable(keys) = Solo::capable(Some(PEER_KEY), Some(h.key)) else { unreachable!() };
    MptcpOption::Capable(MpCapable { data: Some((len, None)), ..keys })
}

#[test]
fn the_first_data_stands_in_for_a_lost_third_ack() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).data(b"hello").with(with_data(&h, 5)));
    assert_eq!(h.read(), b"hello");
    assert!(h.connection().is_multipath());
    assert_eq!(dss(&h.recv()).ack, Some(DataAck::Long(Solo::peer_number(5))));
}

#[test]
fn keys_with_a_length_of_zero_map_nothing() {
    // RFC 8684 §3.3.1: the infinite mapping, whose length is zero, is a DSS.
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).with(with_data(&h, 0)));
    assert!(h.connection().is_multipath());
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    assert_eq!(h.read(), b"hello");
}

#[test]
fn what_overtakes_the_keys_is_as_good_as_lost() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 5, 6, 5)));
    h.send(h.seg(1, 1).data(b"hello").with(with_data(&h, 5)));
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 5, 6, 5)));
    assert_eq!(h.read(), b"helloworld");
    assert!(h.connection().is_multipath());
}

/// Linux repeats its first data without the keys once its application has finished.
#[test]
fn first_data_without_the_keys_means_plain_tcp() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 11, 1, 0)));
    assert!(!h.log.saw(Event::Fallback));
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 11, 1, 0)));
    assert!(h.log.saw(Event::Fallback) && !h.connection().is_multipath());
    assert!(h.recv().options.dss().is_none());
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 11, 1, 0)));
    h.send(h.seg(11, 1).flags(Flags::FIN | Flags::ACK));
    assert_eq!(h.read(), b"helloworld");
    assert!(h.connection().read_finished());
}

/// A peer that has not received it of the fall back yet gets no DATA_ACK, and sends its data again with new sequence numbers.
#[test]
fn data_repeated_by_a_peer_that_did_not_fall_back_is_passed_over() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 10)));
    assert!(h.log.saw(Event::Fallback) && !h.connection().is_multipath());
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 0, 1, 10)));
    // Not in order: it is not taken, and comes again.
    h.clear();
    h.send(h.seg(16, 1).data(b"world").dss(h.mapped(0, 0, 11, 10)));
    assert_eq!(h.recv_numbers().1, 11);
    h.send(h.seg(11, 1).data(b"hello").dss(h.mapped(0, 0, 11, 10)));
    h.clear();
    h.send(h.seg(16, 1).data(b"world").dss(h.mapped(0, 0, 11, 10)));
    assert_eq!(h.recv_numbers().1, 21);
    // Then it has, and continues in plain TCP.
    h.send(h.seg(21, 1).data(b"!").flags(Flags::FIN | Flags::ACK));
    assert_eq!(h.read(), b"helloworld!");
    assert!(h.connection().read_finished());
}

/// A mapping that puts new data elsewhere than the sequence does ends the connection: the streams would part.
#[test]
fn data_mapped_elsewhere_after_the_fall_back_ends_the_connection() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 7, 6, 5)));
    assert!(h.log.saw(Event::Closed(CloseReason::Aborted)));
    assert_eq!(h.read(), b"hello");
}

#[test]
fn a_short_request_with_its_end_still_carries_the_keys() {
    let mut h = Solo::client(plain_stamps());
    h.clear();
    h.send(h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None))).clear();
    h.write(b"GET /").finish();
    let s = h.recv();
    assert_eq!(capable(&s).and_then(|c| c.data), Some((5, None)));
    // The end of the stream follows without payload.
    h.send(h.seg(1, 6).dss(h.data_ack(5)));
    let end = dss(&h.recv());
    assert!(end.data_fin);
    assert_eq!(end.mapping.map(|m| (h.our_offset(m.data_seq), m.len)), Some((5, 1)));
}

#[test]
fn nothing_but_version_1_is_spoken() {
    let MptcpOption::Capable(offer) = Solo::capable(None, None) else { unreachable!() };
    let asked = |version, hmac_sha256| {
        let mut h = Solo::server(plain_stamps());
        h.send(h.syn(0).with(MptcpOption::Capable(MpCapable { version, hmac_sha256, ..offer })));
        h
    };
    for (version, hmac_sha256) in [(0, true), (1, false), (2, false)] {
        let mut h = asked(version, hmac_sha256);
        assert!(h.recv().options.mptcp().is_empty());
        h.send(h.seg(1, 1));
        assert!(!h.connection().is_multipath());
    }
    // RFC 8684 §3.1: a SYN names the highest version that its sender knows.
    assert_eq!(asked(15, true).recv().options.mptcp(), [Solo::capable(Some(asked(15, true).key), None)]);
}

/// Changes to a MP_CAPABLE after which it is none of ours (RFC 8684 §3.1), whatever segment carries it.
fn spoilt(option: MptcpOption) -> Vec<MptcpOption> {
    let MptcpOption::Capable(capable) = option else { unreachable!() };
    let changes = [(0, true), (2, true), (15, true), (1, false)];
    changes.map(|(version, hmac_sha256)| MptcpOption::Capable(MpCapable { version, hmac_sha256, ..capable })).to_vec()
}

#[test]
fn a_syn_ack_must_agree_on_version_and_algorithm() {
    // "If flag bits D through H are all 0, the MP_CAPABLE option MUST be treated as invalid and ignored."
    let mut answers = spoilt(Solo::capable(Some(PEER_KEY), None));
    // Nor is it one with no key, or with two.
    answers.extend([Solo::capable(None, None), Solo::capable(Some(PEER_KEY), Some(7))]);
    for option in answers {
        let mut h = Solo::client(plain_stamps());
        h.clear();
        h.send(h.syn_ack(0).with(option));
        assert!(h.recv().options.mptcp().is_empty(), "{option:?}");
        assert!(!h.connection().is_multipath(), "{option:?}");
        h.write(b"hello");
        let s = h.recv();
        assert!(s.options.dss().is_none() && s.options.mptcp().is_empty(), "{option:?}");
    }
}

#[test]
fn a_third_ack_must_agree_on_version_and_algorithm() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None)));
    for option in spoilt(Solo::capable(Some(PEER_KEY), Some(h.key))) {
        let mut h = Solo::server(plain_stamps());
        h.send(h.syn(0).with(Solo::capable(None, None))).clear();
        h.send(h.seg(1, 1).with(option));
        assert!(h.log.saw(Event::Fallback) && !h.connection().is_multipath(), "{option:?}");
    }
    // With the first data in its place, and on the first data after it.
    for third in [false, true] {
        for n in 0..4 {
            let mut h = Solo::server(plain_stamps());
            h.send(h.syn(0).with(Solo::capable(None, None))).clear();
            if third {
                h.send(h.seg(1, 1).with(Solo::capable(Some(PEER_KEY), Some(h.key))));
                assert!(h.connection().is_multipath());
            }
            let option = spoilt(with_data(&h, 3))[n];
            h.send(h.seg(1, 1).data(b"hello").with(option));
            assert!(h.log.saw(Event::Fallback) && !h.connection().is_multipath(), "{option:?}");
            assert_eq!(h.read(), b"hello");
        }
    }
    // Keys that are not those of this connection map nothing.
    let mut h = Solo::open_server(plain_stamps());
    let MptcpOption::Capable(keys) = with_data(&h, 3) else { unreachable!() };
    let foreign = MptcpOption::Capable(MpCapable { sender_key: Some(PEER_KEY ^ 1), ..keys });
    h.send(h.seg(1, 1).data(b"hello").with(foreign));
    assert!(!h.connection().is_multipath());
}

#[test]
fn checksums_are_used_if_either_side_asks() {
    for (ours, theirs) in [(true, false), (false, true)] {
        let mut h = Solo::client(Settings { checksum: ours, ..plain_stamps() });
        assert_eq!(capable(&h.recv()).map(|c| c.checksum), Some(ours));
        let MptcpOption::Capable(answer) = Solo::capable(Some(PEER_KEY), None) else { unreachable!() };
        h.send(h.syn_ack(0).with(MptcpOption::Capable(MpCapable { checksum: theirs, ..answer }))).clear();
        h.write(&pattern(0, 1500));
        let (_, sum) = capable(&h.recv()).and_then(|c| c.data).expect("data");
        let expected = anabranch_wire::dss_checksum(h.our_number(0), 1, 1000, &pattern(0, 1000));
        assert_eq!(sum, Some(expected));
        let sum = dss(&h.recv()).mapping.expect("a mapping").checksum;
        assert_eq!(sum, Some(anabranch_wire::dss_checksum(h.our_number(1000), 1001, 500, &pattern(1000, 500))));
    }
}

#[test]
fn a_syn_ack_without_the_option_means_plain_tcp() {
    let mut h = Solo::client(plain_stamps());
    h.clear();
    h.send(h.syn_ack(0));
    assert!(h.recv().options.mptcp().is_empty());
    h.write(b"hello").finish();
    let s = h.recv();
    assert!(s.options.dss().is_none() && s.options.mptcp().is_empty());
    assert_eq!(h.recv().flags, Flags::FIN | Flags::ACK);
    assert!(!h.connection().is_multipath());
}

#[test]
fn a_third_ack_without_the_option_means_plain_tcp() {
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1));
    assert!(h.log.saw(Event::Fallback) && !h.connection().is_multipath());
    h.send(h.seg(1, 1).data(b"plain"));
    assert_eq!(h.read(), b"plain");
    h.clear();
    h.write(b"too");
    assert!(h.recv().options.dss().is_none());
}

#[test]
fn first_data_without_a_mapping_means_plain_tcp() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"plain"));
    assert_eq!(h.read(), b"plain");
    assert!(!h.connection().is_multipath());
    h.send(h.seg(6, 1).data(b" tcp").flags(Flags::FIN | Flags::ACK));
    assert_eq!(h.read(), b" tcp");
    assert!(h.connection().read_finished());
}

#[test]
fn data_acknowledged_without_the_option_means_plain_tcp() {
    // A client, and a server that speaks first: what goes forth loses the option, or what comes back does.
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None)));
    h.write(&pattern(0, 1500)).clear();
    h.send(h.seg(1, 1001));
    assert!(!h.connection().is_multipath());
    assert_eq!(h.connection().unacknowledged(), 500);
    h.send(h.seg(1, 1501));
    assert_eq!(h.connection().unacknowledged(), 0);
    // The peer may have seen our options: an infinite mapping tells it.
    h.write(b"on");
    assert_eq!(dss(&h.recv()).mapping.map(|m| (h.our_offset(m.data_seq), m.subflow_seq, m.len)), Some((0, 1, 0)));
    h.write(b"on");
    assert!(h.recv().options.dss().is_none());

    let mut h = Solo::server(plain_stamps()).shaken();
    h.write(&pattern(0, 1500)).clear();
    h.send(h.seg(1, 1501));
    assert!(!h.connection().is_multipath());
    assert_eq!(h.connection().unacknowledged(), 0);
}

#[test]
fn an_acknowledgment_of_nothing_is_no_sign_of_plain_tcp() {
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None))).clear();
    h.send(h.seg(1, 1));
    assert!(h.connection().is_multipath());
}

#[test]
fn a_syn_ack_that_comes_again_is_answered_without_keys_in_plain_tcp() {
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0)).clear().at(1000);
    h.send(h.syn_ack(0));
    let answer = h.recv();
    assert_eq!((answer.flags, capable(&answer)), (Flags::ACK, None));
}

#[test]
fn an_announcement_is_a_sign_of_mptcp() {
    // ADD_ADDR leaves no room for a DSS beside timestamps: the acknowledgment that carries it has none.
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None)));
    h.write(b"hello").clear();
    let address = "10.9.0.2".parse().expect("an address");
    let hmac = Some(crypto::add_addr_hmac(PEER_KEY, h.key, 4, address, None));
    h.send(h.seg(1, 6).with(MptcpOption::AddAddr(AddAddr { address_id: 4, address, port: None, hmac })));
    assert!(h.connection().is_multipath());
}

#[test]
fn a_syn_that_is_dropped_for_its_option_is_sent_without() {
    let mut pair = Pair::new(1, plain_stamps(), plain_stamps());
    pair.hook = Box::new(|_, _, _, p| {
        let offered = p.segment.flags.has(Flags::SYN) && !p.segment.options.mptcp().is_empty();
        if offered { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 5000), true).run(at(20_000));
    assert_eq!(pair.server.got, pattern(0, 5000));
    assert!(pair.client.closed().is_some() && pair.server.closed().is_some());
}

#[test]
fn the_third_repeat_of_a_syn_has_no_option() {
    // Linux: `syn_retrans_before_tcp_fallback` = 2
    let mut h = Solo::client(plain_stamps());
    h.at(7500);
    let syns: Vec<_> =
        h.sent.iter().map(|(at, p)| (at.as_nanos() / 1_000_000_000, capable(&p.segment).is_some())).collect();
    assert_eq!(syns, [(0, true), (1, true), (3, true), (7, false)]);
}

fn required() -> Settings {
    Settings { mptcp_required: true, ..plain_stamps() }
}

#[test]
fn where_multipath_tcp_is_required_every_syn_offers_it_and_nothing_else_is_taken() {
    let mut h = Solo::client(required());
    h.at(20_000);
    assert!(h.sent.len() >= 5 && h.sent.iter().all(|(_, p)| capable(&p.segment).is_some()));
    h.send(h.syn_ack(0));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Refused)));
    let mut h = Solo::server(required());
    h.send(h.syn(0));
    assert!(h.recv().flags.has(Flags::RST) && h.handle.is_none());
    // A third ACK without the keys.
    let mut h = Solo::server(required());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).data(b"hello"));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Refused)));
}

/// The client opens while nothing arrives for nine seconds: four SYNs are lost. The path that then answers first is lost later.
#[test]
fn a_connection_that_was_opened_in_a_silence_outlives_its_first_path() {
    let lost = |settings: Settings| {
        let mut pair = Pair::new(2, settings.clone(), settings);
        pair.hook = Box::new(|now, _, _, p| {
            let drop = now < at(9_000) || now > at(16_000) && over(p, 0);
            if drop { Fate::Drop } else { Fate::Pass }
        });
        pair.run(at(15_900)).write(Side::Client, pattern(0, 20_000_000), true).run(at(600_000));
        (pair.client.log.saw(Event::Fallback), pair.client.closed())
    };
    assert_eq!(lost(required()), (false, Some(CloseReason::Finished)));
    assert_eq!(lost(plain_stamps()).1, None, "plain TCP has one path");
}

#[test]
fn where_multipath_tcp_is_required_a_connection_that_would_fall_back_ends() {
    let mut pair = Pair::new(1, required(), required());
    pair.hook = Box::new(
        |_, _, _, p| {
            if p.segment.flags.has(Flags::SYN) { Fate::Pass } else { Fate::Become(vec![stripped(p)]) }
        },
    );
    pair.write(Side::Client, pattern(0, 50_000), true).run(at(100_000));
    assert!(pair.server.got.is_empty());
    for party in [&pair.client, &pair.server] {
        let closed = party.closed();
        assert!(closed.is_some_and(|why| why != CloseReason::Finished), "{closed:?} {:?}", party.log.0);
    }
}

#[test]
fn a_syn_ack_that_is_dropped_for_its_option_is_sent_without() {
    let mut pair = Pair::new(1, plain_stamps(), plain_stamps());
    pair.hook = Box::new(|_, side, _, p| {
        let answer = side == Side::Server && p.segment.flags.has(Flags::SYN);
        if answer && !p.segment.options.mptcp().is_empty() { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 5000), true).run(at(20_000));
    assert_eq!(pair.server.got, pattern(0, 5000));
    assert!(pair.client.closed().is_some() && pair.server.closed().is_some());
}

/// A packet without its MPTCP options.
fn stripped(p: &Packet) -> Packet {
    let mut bare = p.clone();
    let old = &p.segment.options;
    bare.segment.options = anabranch_wire::Options::new();
    let new = &mut bare.segment.options;
    old.mss().map(|mss| new.set_mss(mss));
    old.window_scale().map(|shift| new.set_window_scale(shift));
    let _ = old.sack_permitted() && new.set_sack_permitted();
    new.set_sack(old.sack());
    bare
}

#[test]
fn options_may_vanish_with_any_packet() {
    // From the n-th packet of one direction on, or of both; or from that packet alone.
    for from in [None, Some(Side::Client), Some(Side::Server)] {
        for alone in [true, false] {
            for n in 0..14 {
                for writer in [Side::Client, Side::Server] {
                    let mut pair = Pair::new(1, plain_stamps(), plain_stamps());
                    let mut seen = 0;
                    pair.hook = Box::new(move |_, side, _, p| {
                        if from.is_some_and(|from| from != side) {
                            return Fate::Pass;
                        }
                        seen += 1;
                        let hit = if alone { seen == n + 1 } else { seen > n };
                        if hit { Fate::Become(vec![stripped(p)]) } else { Fate::Pass }
                    });
                    pair.write(writer, pattern(0, 50_000), true).run(at(300_000));
                    let what = format!("stripped from {from:?}, packet {n}, alone: {alone}, {writer:?} writes");
                    let (got, ends) = match writer {
                        Side::Client => (&pair.server.got, [pair.client.closed(), pair.server.closed()]),
                        Side::Server => (&pair.client.got, [pair.server.closed(), pair.client.closed()]),
                    };
                    // Every byte is right, neither end waits for ever, and neither takes a part of the stream for all of it.
                    assert!(got[..] == pattern(0, got.len())[..], "{what}");
                    assert!(ends[0].is_some() && ends[1].is_some(), "{what}: {ends:?}");
                    let whole = got.len() == 50_000;
                    let finished = [Some(CloseReason::Finished); 2];
                    assert!(whole || !ends.contains(&finished[0]), "{what}: {} bytes, {ends:?}", got.len());
                    // One packet does no harm. From the first data on (or earlier) it is plain TCP.
                    let early = n
                        <= match from {
                            None => 3,
                            Some(Side::Client) => 2,
                            Some(Side::Server) => 1,
                        };
                    if alone || early {
                        assert!(whole && ends == finished, "{what}: {} bytes, {ends:?}", got.len());
                    }
                }
            }
        }
    }
}

#[test]
fn options_stripped_in_any_phase_and_direction_do_not_stop_the_stream() {
    for from in [None, Some(Side::Client), Some(Side::Server)] {
        for syns_too in [true, false] {
            for writer in [Side::Client, Side::Server] {
                let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
                pair.hook = Box::new(move |_, side, _, p| {
                    let spared = p.segment.flags.has(Flags::SYN) && !syns_too;
                    if spared || from.is_some_and(|from| from != side) {
                        return Fate::Pass;
                    }
                    Fate::Become(vec![stripped(p)])
                });
                pair.write(writer, pattern(0, 50_000), true).run(at(30_000));
                let reader = if writer == Side::Client { &pair.server } else { &pair.client };
                assert_eq!(reader.got.len(), 50_000, "stripped from {from:?}, SYNs too: {syns_too}, {writer:?} writes");
                assert_eq!(reader.got, pattern(0, 50_000));
                assert!(pair.client.closed().is_some() && pair.server.closed().is_some());
            }
        }
    }
}

#[test]
fn no_join_goes_where_flag_c_forbids_it() {
    let paths = client_paths(1);
    let mut second = paths[0].clone();
    second.id = anabranch_units::PathId(1);
    second.tuple.local = client_tuple(1).local;
    let mut h = Solo::client_with(Setup { ..setup(plain_stamps(), vec![paths[0].clone(), second]) });
    let MptcpOption::Capable(answer) = Solo::capable(Some(PEER_KEY), None) else { unreachable!() };
    h.send(h.syn_ack(0).with(MptcpOption::Capable(MpCapable { no_join_here: true, ..answer })));
    h.clear();
    h.send(h.seg(1, 1).dss(h.data_ack(0)));
    h.at(100);
    h.quiet();
}
