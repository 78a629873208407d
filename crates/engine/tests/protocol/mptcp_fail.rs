//! Checksums that fail, MP_FAIL and infinite mappings (RFC 8684 §3.3.1, §3.7).

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, PEER_KEY, Solo, dss};
use crate::common::{at, pattern, plain_stamps};
use anabranch_engine::Settings;
use anabranch_engine::connection::ConnectionEvent;
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::{PathId, Side};
use anabranch_wire::{DataAck, Dss, Flags, Mapping, MptcpOption, Reason, Segment, dss_checksum};
use bytes::Bytes;

fn checked() -> Settings {
    Settings { checksum: true, ..plain_stamps() }
}

/// A segment with a checksummed mapping, its last payload byte changed on the way.
fn corrupted(h: &Solo, path: u8, data: u64, sub: u64, text: &[u8]) -> Segment {
    let number = Solo::peer_number(data);
    let sum = dss_checksum(number, sub as u32, text.len() as u16, text);
    let good = h.mapped(0, data, sub, text.len() as u16);
    let mapping = Mapping { checksum: Some(sum), ..good.mapping.expect("a mapping") };
    let mut bytes = text.to_vec();
    *bytes.last_mut().expect("not empty") ^= 1;
    h.seg_on(path, sub, 1).data(&bytes).dss(Dss { mapping: Some(mapping), ..good })
}

fn intact(h: &Solo, path: u8, data: u64, sub: u64, text: &[u8]) -> Segment {
    corrupted(h, path, data, sub, text).data(text)
}

fn fail_of(s: &Segment) -> Option<u64> {
    s.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Fail { data_seq } => Some(*data_seq),
        _ => None,
    })
}

#[test]
fn on_the_only_subflow_it_means_plain_tcp() {
    let mut h = Solo::open_server(checked());
    h.send(intact(&h, 0, 0, 1, b"good "));
    assert_eq!(h.read(), b"good ");
    h.clear();
    h.send(corrupted(&h, 0, 5, 6, b"bad"));
    // Said until the peer reacts; the data is taken as it came.
    assert_eq!(fail_of(&h.recv()), Some(Solo::peer_number(5)));
    assert!(h.log.violated(Violation::Checksum) && h.log.saw(Event::Fallback));
    assert_eq!(h.read(), b"bae");
    h.send(intact(&h, 0, 8, 9, b" in flight"));
    assert_eq!(fail_of(&h.recv()), Some(Solo::peer_number(5)));
    let infinite = Dss { ack: None, ..h.mapped(0, 5, 6, 0) };
    h.send(h.seg(19, 1).data(b" infinite").dss(infinite));
    assert_eq!(fail_of(&h.recv()), None);
    h.send(h.seg(28, 1).data(b" plain"));
    assert_eq!(h.read(), b" in flight infinite plain");
    h.clear();
    h.write(b"out");
    let s = h.recv();
    assert!(s.options.dss().is_none() && s.options.mptcp().is_empty());
}

/// A sender whose buffer is full sends no infinite mapping before its mapped data is acknowledged at connection level;
/// Linux waits for ever.
#[test]
fn mapped_data_is_acknowledged_until_the_infinite_mapping() {
    let mut h = Solo::open_server(checked());
    h.send(intact(&h, 0, 0, 1, b"good ")).clear();
    h.send(corrupted(&h, 0, 5, 6, b"bad"));
    let s = h.recv();
    let data_ack = |s: &Segment| match s.options.dss().and_then(|dss| dss.ack) {
        Some(DataAck::Long(number)) => Some(number),
        _ => None,
    };
    assert_eq!((fail_of(&s), data_ack(&s)), (Some(Solo::peer_number(5)), Some(Solo::peer_number(8))));
    // The peer answers in kind, and what it had sent before comes with its mapping.
    h.send(h.seg(9, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    h.clear();
    h.send(intact(&h, 0, 8, 9, b" in flight")).at(1000);
    let s = h.recv();
    assert_eq!((fail_of(&s), data_ack(&s)), (None, Some(Solo::peer_number(18))));
    let infinite = Dss { ack: None, ..h.mapped(0, 18, 19, 0) };
    h.clear();
    h.send(h.seg(19, 1).data(b" infinite").dss(infinite)).at(2000);
    let s = h.recv();
    assert_eq!((fail_of(&s), s.options.dss()), (None, None));
}

#[test]
fn a_sender_that_hears_of_it_answers_and_goes_on() {
    let mut h = Solo::open_server(plain_stamps());
    h.write(&pattern(0, 2000)).clear();
    h.send(h.seg(1, 1001).dss(h.data_ack(1000)));
    let fail = MptcpOption::Fail { data_seq: h.our_number(1000) };
    h.send(h.seg(1, 2001).with(fail));
    assert_eq!(fail_of(&h.recv()), Some(Solo::peer_number(0)));
    assert!(!h.connection().is_multipath());
    assert_eq!(h.connection().unacknowledged(), 0);
    // The first new data carries the infinite mapping, which reaches back to where what has come intact begins.
    h.write(b"new");
    let s = h.recv();
    let map = dss(&s).mapping.expect("a mapping");
    assert_eq!((map.len, h.our_offset(map.data_seq), map.subflow_seq, dss(&s).ack), (0, 0, 1, None));
    // Again if it is lost; and MP_FAIL again, if that was.
    h.send(h.seg(1, 2001).with(fail));
    assert!(h.sent.iter().any(|(_, p)| fail_of(&p.segment).is_some()));
    h.clear().at(3000);
    let again = h.recv();
    assert_eq!((again.payload.clone(), dss(&again).mapping), (Bytes::from_static(b"new"), Some(map)));
    h.send(h.seg(1, 2004)).clear();
    h.write(b"er");
    assert!(h.recv().options.dss().is_none());
}

#[test]
fn a_receiver_that_has_finished_sends_its_fin_after_the_peer_has_reacted() {
    let mut h = Solo::open_server(checked());
    h.finish().clear();
    h.send(corrupted(&h, 0, 0, 1, b"bad"));
    let s = h.recv();
    assert_eq!((s.flags.has(Flags::FIN), fail_of(&s)), (false, Some(Solo::peer_number(0))));
    // A peer that does not know of it would take the FIN for the end of a subflow, and end it too.
    h.at(5000);
    assert!(h.sent.iter().all(|(_, p)| !p.segment.flags.has(Flags::FIN)));
    h.clear();
    h.send(h.seg(4, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    assert!(h.recv().flags.has(Flags::FIN));
}

#[test]
fn with_several_subflows_the_affected_one_is_reset() {
    let mut h = Solo::server(checked());
    let MptcpOption::Capable(offer) = Solo::capable(None, None) else { unreachable!() };
    h.send(h.syn(0).with(MptcpOption::Capable(offer))).clear();
    h.send(h.seg(1, 1).with(Solo::capable(Some(PEER_KEY), Some(h.key))));
    h.send(h.seg(1, 1).dss(h.data_ack(0)));
    h.join(1).clear();
    h.send_on(1, corrupted(&h, 1, 0, 1, b"bad"));
    let reset = h.recv();
    assert!(reset.flags.has(Flags::RST));
    assert_eq!(fail_of(&reset), Some(Solo::peer_number(0)));
    assert!(h.connection().is_multipath());
    h.send(intact(&h, 0, 0, 1, b"bad"));
    assert_eq!(h.read(), b"bad");
}

#[test]
fn a_mapping_is_verified_as_a_whole() {
    // One mapping over two segments, as Linux sends them; the second comes first.
    let mut h = Solo::open_server(checked());
    let text = b"hello world";
    let whole = intact(&h, 0, 0, 1, text);
    let second = Segment { seq: whole.seq.at(5), payload: whole.payload.slice(5..), ..whole.clone() };
    h.send(second);
    h.send(Segment { payload: whole.payload.slice(..5), ..whole });
    assert_eq!(h.read(), text);
}

/// Changes one byte of the payload of a packet.
fn spoil(p: &anabranch_wire::Packet) -> Fate {
    let mut p = p.clone();
    let mut bytes = p.segment.payload.to_vec();
    bytes[0] ^= 0xff;
    p.segment.payload = bytes.into();
    Fate::Become(vec![p])
}

#[test]
fn a_middlebox_that_changes_data_ends_mptcp_and_not_the_stream() {
    let mut pair = Pair::new(1, checked(), checked());
    let mut n = 0;
    pair.hook = Box::new(move |_, side, _, p| {
        n += u32::from(side == Side::Client && p.segment.payload.len() == 1000);
        if side == Side::Client && n == 30 && p.segment.payload.len() == 1000 { spoil(p) } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 200_000), true).run(at(30_000));
    assert_eq!(pair.server.got.len(), 200_000);
    let wrong = pair.server.got.iter().zip(pattern(0, 200_000).iter()).filter(|(a, b)| a != b).count();
    assert_eq!(wrong, 1, "the middlebox's change is part of the stream");
    assert!(pair.client.closed().is_some() && pair.server.closed().is_some());
}

#[test]
fn a_middlebox_on_one_of_two_paths_changes_nothing() {
    let mut pair = Pair::new(2, checked(), checked());
    pair.hook = Box::new(move |at, side, path, p| {
        let late = at > crate::common::at(300);
        if side == Side::Client && path == 1 && late && !p.segment.payload.is_empty() { spoil(p) } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 1_000_000), true).run(at(60_000));
    assert!(pair.server.got == pattern(0, 1_000_000), "{} bytes", pair.server.got.len());
    assert!(pair.server.log.violated(Violation::Checksum));
}

/// A box takes the options off what one side sends, or both, for three seconds in the middle of a transfer over the only
/// path. Returns the pair after a while.
fn stripped_in_the_middle(whose: fn(Side) -> bool, writer: Side) -> Pair {
    let settings = Settings { recv_buffer: 60_000, ..plain_stamps() };
    let mut pair = Pair::new(1, settings.clone(), settings);
    pair.hook = Box::new(move |now, side, _, p| {
        let mut packet = p.clone();
        if whose(side) && now >= at(300) && now < at(3_300) {
            let stamps = packet.segment.options.timestamps();
            packet.segment.options.clear();
            stamps.into_iter().for_each(|stamps| assert!(packet.segment.options.set_timestamps(stamps)));
        }
        Fate::Become(vec![packet])
    });
    pair.write(writer, pattern(0, 4_000_000), true);
    pair.run(at(120_000));
    pair
}

#[test]
fn options_taken_off_the_only_subflow_break_it_and_a_new_one_goes_on() {
    // RFC 8684 §3.7: it is closed with RST, for nothing can be said any more.
    for writer in [Side::Client, Side::Server] {
        for (what, whose) in [
            ("both ways", (|_| true) as fn(Side) -> bool),
            ("from the client", |side| side == Side::Client),
            ("from the server", |side| side == Side::Server),
        ] {
            let pair = stripped_in_the_middle(whose, writer);
            let got = if writer == Side::Client { &pair.server.got } else { &pair.client.got };
            assert!(*got == pattern(0, 4_000_000), "{what}, {writer:?} writes: {} bytes", got.len());
            let closed = (pair.client.closed(), pair.server.closed());
            assert_eq!(closed, (Some(CloseReason::Finished), Some(CloseReason::Finished)), "{what}, {writer:?} writes");
            let joins = pair.client.log.0.iter().filter(|(_, e)| *e == Event::Path(PathState::Opening)).count();
            assert!(joins > 1, "{what}, {writer:?} writes");
        }
    }
}

#[test]
fn what_the_subflow_acknowledged_before_the_fall_back_has_arrived() {
    // The peer acknowledges at subflow level alone, as Linux does while data waits there, and then continues in plain TCP.
    let mut h = Solo::open_server(plain_stamps());
    h.write(&[7; 1000]).clear();
    h.send(h.seg(1, 1001).dss(h.data_ack(0)));
    let infinite = Mapping { len: 0, ..h.mapped(0, 0, 1, 0).mapping.expect("one") };
    h.send(h.seg(1, 1001).data(b"plain").dss(Dss { ack: None, mapping: Some(infinite), data_fin: false }));
    assert!(!h.connection().is_multipath());
    assert_eq!(h.read(), b"plain");
    h.clear().write(b"more");
    let (at, _, segment) = h.recv_numbers();
    assert_eq!((at, &segment.payload[..]), (1001, &b"more"[..]));
    h.send(h.seg(6, 1005));
    assert_eq!(h.connection().unacknowledged(), 0);
    h.finish();
    assert!(h.sent.iter().any(|(_, p)| p.segment.flags.has(Flags::FIN)));
}

#[test]
fn a_stream_that_is_sent_again_as_new_is_not_the_subflows_sequence() {
    // RFC 8684 §3.3.6: the peer dropped what its subflow acknowledged, and its window admits one segment of it.
    let mut h = Solo::open_server(plain_stamps());
    h.write(&pattern(0, 5000)).clear();
    let answer = h.seg(1, 5001).window(1000);
    for ms in [0, 1000] {
        h.at(ms);
        h.send(answer.clone().dss(h.data_ack(0)));
    }
    h.clear().at(3000);
    assert_eq!(h.connection().view().backlog().bytes(), 4000);
    h.clear();
    h.send(answer.with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    assert!(h.recv().flags.has(Flags::RST) && !fell_back(&h));
}

#[test]
fn data_that_comes_again_with_the_word_of_the_fall_back_is_not_delivered_twice() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    let fail = MptcpOption::Fail { data_seq: h.our_number(0) };
    h.send(h.seg(6, 1).data(b"hello").dss(h.mapped(0, 0, 6, 5)).with(fail));
    assert!(fell_back(&h));
    assert_eq!(h.read(), b"hello");
}

/// Data that waited for its mapping was repeated with another place in the subflow's sequence.
#[test]
fn data_that_was_repeated_while_it_waited_is_not_delivered_behind_its_repetition() {
    let fail = |h: &Solo| h.seg(13, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) });
    // As Linux sends it, without a place.
    let infinite = |h: &Solo| h.seg(13, 1).data(b"!").dss(Dss { ack: None, ..h.mapped(0, 7, 0, 0) });
    for word in [fail, infinite] {
        let mut h = Solo::open_server(plain_stamps());
        h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
        h.send(h.seg(6, 1).data(b"again").dss(h.data_ack(0)));
        h.send(h.seg(11, 1).data(b"ag").dss(h.mapped(0, 5, 11, 2)));
        assert_eq!(h.read(), b"helloag");
        h.clear();
        h.send(word(&h));
        assert!(h.recv().flags.has(Flags::RST) && !fell_back(&h));
        assert_eq!(h.read(), b"");
    }
}

fn fell_back(h: &Solo) -> bool {
    h.events.contains(&ConnectionEvent::FellBack)
}

#[test]
fn a_mapping_that_is_half_there_when_the_peer_falls_back_is_not_lost() {
    let mut h = Solo::open_server(checked());
    let whole = intact(&h, 0, 0, 1, b"hello world");
    h.send(Segment { payload: whole.payload.slice(..5), ..whole.clone() });
    assert_eq!(h.read(), b"");
    h.send(h.seg(6, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    assert!(fell_back(&h));
    h.send(Segment { seq: whole.seq.at(5), payload: whole.payload.slice(5..), ..whole });
    assert_eq!(h.read(), b"hello world");
}

#[test]
fn what_a_lost_subflow_carried_is_not_taken_for_delivered() {
    // Data goes out on two subflows. One is lost with what it carried; then the peer cannot verify data on the other.
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.write(&pattern(0, 30_000)).clear();
    h.send_on(1, h.seg_on(1, 1, 1).flags(Flags::RST).with(MptcpOption::TcpRst(Reason { code: 1, transient: true })));
    h.clear();
    h.send(h.seg(1, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    let reset = h.recv();
    assert!(reset.flags.has(Flags::RST) && fail_of(&reset).is_some() && !fell_back(&h));
    // The connection waits for another subflow, which gets everything.
    h.clear();
    h.join(2);
    let rescued: usize = h.sent.iter().map(|(_, p)| p.segment.payload.len()).sum();
    assert_eq!(rescued, 10_000, "an initial window of what was stranded");
}

#[test]
fn data_that_others_carried_forbids_going_on_with_what_failed() {
    // Our own data is not one piece on the subflow whose data failed: it is reset, and nothing is taken.
    let mut h = Solo::open_server(checked());
    h.join(1).clear();
    h.send_on(1, h.seg_on(1, 1, 1).flags(Flags::RST).with(MptcpOption::TcpRst(Reason { code: 1, transient: true })));
    h.send(corrupted(&h, 0, 0, 1, b"bad"));
    let reset = h.sent.iter().find(|(_, p)| p.segment.flags.has(Flags::RST));
    assert_eq!(reset.and_then(|(_, p)| fail_of(&p.segment)), Some(Solo::peer_number(0)));
    assert_eq!((h.read(), fell_back(&h)), (Vec::new(), false));
}

#[test]
fn a_fin_in_plain_tcp_that_leaves_a_hole_is_no_end() {
    // The peer falls back while a part of what it sent, out of order in the data sequence, is missing.
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"later").dss(h.mapped(0, 5, 1, 5)));
    h.send(h.seg(6, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    assert!(h.sent.iter().any(|(_, p)| p.segment.flags.has(Flags::RST)));
    h.send(h.seg(6, 1).flags(Flags::FIN | Flags::ACK));
    assert!(!fell_back(&h) && h.read().is_empty() && !h.connection().read_finished());
}

#[test]
fn a_fin_that_came_before_the_fall_back_ends_the_stream() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"all").dss(h.mapped(0, 0, 1, 3)));
    h.send(h.seg(4, 1).flags(Flags::FIN | Flags::ACK).dss(h.data_ack(0)));
    assert!(!h.connection().read_finished());
    h.send(h.seg(5, 1).with(MptcpOption::Fail { data_seq: h.our_number(0) }));
    assert_eq!(h.read(), b"all");
    assert!(h.connection().read_finished());
}

#[test]
fn a_peer_that_does_not_react_to_mp_fail_is_asked_again_and_given_up() {
    let mut h = Solo::open_server(checked());
    h.send(corrupted(&h, 0, 0, 1, b"bad"));
    assert!(fell_back(&h));
    h.clear().at(10_000);
    let said = h.sent.iter().filter(|(_, p)| fail_of(&p.segment) == Some(Solo::peer_number(0))).count();
    assert!((3..10).contains(&said), "{said}");
    h.at(121_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    assert!(h.is_gone());
}

/// A subflow that is to be reset does not become plain TCP by a segment that came with the wrong one, and nothing of either is
/// delivered.
#[test]
fn a_subflow_that_is_to_be_reset_does_not_fall_back() {
    let mut h = Solo::open_server(checked());
    h.send(intact(&h, 0, 0, 1, &pattern(0, 1000)));
    assert_eq!(h.read(), pattern(0, 1000));
    h.clear();
    // Half of it came before: the stream cannot continue in the subflow's sequence.
    let wrong = corrupted(&h, 0, 500, 1001, &pattern(500, 1000));
    let infinite = h.seg(2001, 1).data(b"plain").dss(Dss { ack: None, ..h.mapped(0, 1000, 0, 0) });
    h.app(|connection, cx| {
        [wrong, infinite].iter().for_each(|segment| connection.handle_segment(cx, PathId(0), segment))
    });
    assert!(h.connection().is_multipath() && !h.log.saw(Event::Fallback));
    assert_eq!(h.read(), b"");
    assert!(h.recv().flags.has(Flags::RST));
}

/// Data in the subflow's sequence is acknowledged there, and so delivered, though the window of the data sequence ended
/// before it.
#[test]
fn what_waits_in_the_sequence_at_the_fall_back_is_not_cut_at_the_edge_of_the_data_sequence() {
    let mut h = Solo::open_server(Settings { recv_buffer: 3000, ..plain_stamps() });
    let all = pattern(0, 5500);
    let part = |from: usize, upto: usize| &all[from..upto];
    h.send(h.seg(1, 1).data(part(0, 1000)).dss(h.mapped(0, 0, 1, 1000)));
    h.send(h.seg(1001, 1).data(part(1000, 2000)).dss(h.data_ack(0)));
    // Out of order: the second ends a window behind what is next in the sequence.
    h.send(h.seg(3001, 1).data(part(3000, 4000)).dss(h.data_ack(0)));
    h.send(h.seg(4001, 1).data(part(4000, 5000)).dss(h.data_ack(0)));
    let infinite = Dss { ack: None, ..h.mapped(0, 1000, 1001, 0) };
    h.clear();
    h.send(h.seg(2001, 1).data(part(2000, 3000)).dss(infinite));
    assert!(fell_back(&h));
    let (_, acked, _) = h.recv_numbers();
    assert_eq!(acked, 5001);
    assert_eq!(h.read(), part(0, 5000));
    assert!(!h.log.violated(Violation::BeyondWindow));
}
