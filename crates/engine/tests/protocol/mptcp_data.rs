//! The data sequence: mappings and data acknowledgments (RFC 8684 §3.3).

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, PEER_KEY, Solo, dss};
use crate::common::{at, client_paths, pattern, plain_stamps, setup};
use anabranch_engine::{BufferAccounting, DssWidth, Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Event, Violation};
use anabranch_units::Side;
use anabranch_wire::{DataAck, Dss, Flags, Mapping, MpCapable, MptcpOption, crypto};
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn numbers_of_four_bytes_are_understood() {
    let mut h = Solo::open_server(plain_stamps());
    h.write(b"abc").clear();
    let long = h.mapped(3, 0, 1, 5);
    let mapping = long.mapping.map(|m| Mapping { wide: false, data_seq: m.data_seq & 0xffff_ffff, ..m });
    let ack = Some(DataAck::Short(h.our_number(3) as u32));
    h.send(h.seg(1, 4).data(b"hello").dss(Dss { ack, mapping, data_fin: false }));
    assert_eq!(h.read(), b"hello");
    assert_eq!(h.connection().unacknowledged(), 0);
}

#[test]
fn a_long_mapping_may_be_repeated_on_each_segment() {
    // As Linux sends it.
    let mut h = Solo::open_server(plain_stamps());
    let whole = h.mapped(0, 0, 1, 3000);
    for n in [0u64, 2, 1] {
        h.send(h.seg(1 + n * 1000, 1).data(&pattern(n * 1000, 1000)).dss(whole));
    }
    assert_eq!(h.read(), pattern(0, 3000));
}

#[test]
fn a_mapping_may_come_once_and_before_its_data() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(&pattern(0, 1000)).dss(h.mapped(0, 0, 1, 3000)));
    h.send(h.seg(1001, 1).data(&pattern(1000, 1000)));
    h.send(h.seg(2001, 1).data(&pattern(2000, 1000)));
    assert_eq!(h.read(), pattern(0, 3000));
    assert_eq!(h.state(), State::Established);
}

#[test]
fn mappings_may_not_contradict_each_other() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 100)));
    h.clear();
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 50, 6, 5)));
    assert!(h.log.violated(Violation::MappingConflict));
    assert!(h.recv().flags.has(Flags::RST));
    assert_eq!(h.read(), b"hello");
}

#[test]
fn data_without_a_mapping_breaks_its_subflow() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.send_on(1, h.seg_on(1, 1, 1).data(b"lost"));
    let reset = h.recv();
    assert!(reset.flags.has(Flags::RST) && h.log.violated(Violation::Unmapped));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Established, State::Closed));
}

#[test]
fn data_may_come_before_its_mapping() {
    // RFC 8684 §3.3.1: within a receive window. The mapping follows with the next data, or alone.
    for alone in [false, true] {
        let mut h = Solo::open_server(plain_stamps());
        h.send(h.seg(1, 1).data(b"one ").dss(h.mapped(0, 0, 1, 4)));
        h.send(h.seg(5, 1).data(b"two ").dss(h.data_ack(0)));
        h.send(h.seg(9, 1).data(b"three "));
        // It is acknowledged as a part of its subflow, but not of the connection.
        let last = h.sent.back().expect("an acknowledgment").1.segment.clone();
        assert_eq!((h.numbers(0, &last).1, dss(&last).ack), (15, Some(DataAck::Long(Solo::peer_number(4)))));
        let both = h.seg(15, 1).dss(h.mapped(0, 4, 5, 10));
        match alone {
            true => h.send(both),
            false => h.send(h.seg(15, 1).data(b"four").dss(h.mapped(0, 4, 5, 14))),
        };
        assert_eq!(h.read(), if alone { &b"one two three "[..] } else { b"one two three four" });
        assert_eq!(h.state(), State::Established);
    }
}

#[test]
fn what_is_mapped_does_not_wait_for_what_is_not() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"one ").dss(h.mapped(0, 0, 1, 4)));
    // The middle of a segment has no mapping yet; what follows it has.
    h.send(h.seg(9, 1).dss(h.mapped(0, 8, 9, 6)));
    h.send(h.seg(5, 1).data(b"two three ").dss(h.data_ack(0)));
    assert_eq!(h.read(), b"one ");
    assert!(h.log.0.iter().any(|(_, e)| matches!(e, Event::DataArrived { ofo: 6, .. })));
    // The peer sends it again as new data, mapped; the mapping that is still missing brings nothing new.
    h.send(h.seg(15, 1).data(b"two ").dss(h.mapped(0, 4, 15, 4)));
    assert_eq!(h.read(), b"two three ");
    h.send(h.seg(19, 1).dss(h.mapped(0, 4, 5, 4)));
    assert_eq!((h.read(), h.state()), (vec![], State::Established));
}

#[test]
fn a_mapping_that_never_comes_breaks_its_subflow_a_window_later() {
    let mut h = Solo::open_server(Settings { recv_buffer: 4000, ..plain_stamps() });
    h.join(1).clear();
    h.send_on(1, h.seg_on(1, 1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    for n in 0..4 {
        h.send_on(1, h.seg_on(1, 6 + n * 1000, 1).data(&pattern(0, 1000)).dss(h.data_ack(0)));
        assert_eq!((h.state_of(1), h.log.violated(Violation::Unmapped)), (State::Established, false));
    }
    h.send_on(1, h.seg_on(1, 4006, 1).data(b"!").dss(h.data_ack(0)));
    assert!(h.log.violated(Violation::Unmapped));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Established, State::Closed));
}

#[test]
fn a_subflow_that_loses_its_options_is_closed_soon() {
    // Three segments in a row without DSS, or two seconds without a mapping.
    for (segments, closed_after) in [(3u64, 0), (2, 2000)] {
        let mut h = Solo::open_server(plain_stamps());
        h.join(1).clear();
        h.send_on(1, h.seg_on(1, 1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
        for n in 0..segments {
            h.send_on(1, h.seg_on(1, 6 + n * 5, 1).data(b"world"));
        }
        if closed_after > 0 {
            h.at(closed_after - 1);
            assert_eq!(h.state_of(1), State::Established);
            h.at(closed_after);
        }
        assert_eq!((h.state_of(0), h.state_of(1)), (State::Established, State::Closed));
    }
}

#[test]
fn what_waits_for_its_mapping_is_found_by_an_infinite_one() {
    // RFC 8684 §3.7; with a place of its own, and as Linux has it without.
    for place in [true, false] {
        let mut h = Solo::open_server(plain_stamps());
        h.send(h.seg(1, 1).data(b"one ").dss(h.mapped(0, 0, 1, 4)));
        h.send(h.seg(5, 1).data(b"two "));
        let infinite = h.mapped(0, 4, if place { 5 } else { 0 }, 0);
        h.send(h.seg(9, 1).data(b"three").dss(infinite));
        assert_eq!(h.read(), b"one two three");
        assert!(!h.connection().is_multipath());
    }
}

#[test]
fn a_mapping_of_no_length_without_data_is_no_infinite_one() {
    // RFC 8684 §3.3.1, §3.7: the length 0 is reserved for data that continues without mappings; without data it maps nothing.
    // Linux reads no mapping but a DATA_FIN's from such a segment.
    for joined in [false, true] {
        for (data_fin, place) in [(false, 1), (false, 0), (true, 0), (true, 1)] {
            let mut h = Solo::open_server(plain_stamps());
            if joined {
                h.join(1);
            }
            h.clear();
            let empty = Dss { data_fin, ..h.mapped(0, 0, place, 0) };
            h.send(h.seg(1, 1).dss(empty)).quiet();
            assert!(h.connection().is_multipath() && !h.log.saw(Event::Fallback));
            h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
            assert_eq!((h.read(), h.state()), (b"hello".to_vec(), State::Established));
            assert!(!h.connection().read_finished());
        }
    }
    // With data, on the only subflow, it is the peer's fall back (§3.7); beside others it is an error.
    for joined in [false, true] {
        let mut h = Solo::open_server(plain_stamps());
        if joined {
            h.join(1);
        }
        h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 0)));
        assert_eq!((h.read().len(), h.connection().is_multipath()), if joined { (0, true) } else { (5, false) });
        assert_eq!(h.state_of(0) == State::Closed, joined);
    }
}

#[test]
fn checksums_stand_where_they_were_agreed_on_and_nowhere_else() {
    // RFC 8684 §3.3: either way the subflow "MUST" be closed with a RST.
    for agreed in [false, true] {
        for fits in [true, false] {
            for first in [true, false] {
                let mut h = Solo::server(Settings { checksum: agreed, ..plain_stamps() }).opened();
                h.join(1).clear();
                let sum = |data: u64, sub: u32, text: &[u8]| {
                    anabranch_wire::dss_checksum(Solo::peer_number(data), sub, text.len() as u16, text)
                };
                let checksum = (agreed == fits).then(|| sum(0, 1, b"hello"));
                let segment = if first {
                    let MptcpOption::Capable(keys) = Solo::capable(Some(PEER_KEY), Some(h.key)) else { unreachable!() };
                    let data = Some((5, checksum));
                    h.seg(1, 1).data(b"hello").with(MptcpOption::Capable(MpCapable { data, ..keys }))
                } else {
                    let whole = h.mapped(0, 0, 1, 5);
                    let mapping = whole.mapping.map(|m| Mapping { checksum, ..m });
                    h.seg(1, 1).data(b"hello").dss(Dss { mapping, ..whole })
                };
                h.send(segment);
                let reset = h.sent.iter().any(|(_, p)| p.segment.flags.has(Flags::RST));
                assert_eq!(reset, !fits, "agreed: {agreed}, first: {first}");
                assert_eq!(h.read().len(), if fits { 5 } else { 0 }, "agreed: {agreed}, first: {first}");
                assert_eq!(h.connection().subflows().count(), if fits { 2 } else { 1 });
            }
        }
    }
}

#[test]
fn mappings_begin_before_their_segment_end_after_it_and_overlap() {
    let mut h = Solo::open_server(plain_stamps());
    let text = pattern(0, 10_000);
    // Segments of 700 bytes, each with a mapping that covers any part of the stream that holds it; one is lost at first.
    let send = |h: &mut Solo, from: u64, map_from: u64, map_to: u64| {
        let to = (from + 700).min(10_000);
        let len = (map_to - map_from) as u16;
        let segment = h.seg(1 + from, 1).data(&text[from as usize..to as usize]);
        h.send(segment.dss(h.mapped(0, map_from, 1 + map_from, len)));
    };
    for n in (0..15u64).filter(|n| *n != 4) {
        let (from, reach) = (n * 700, (n * 37 % 5 + 1) * 400);
        send(&mut h, from, from.saturating_sub(reach), (from + 700 + reach).min(10_000));
    }
    send(&mut h, 2800, 0, 10_000);
    assert_eq!(h.read(), text);
    assert!(!h.log.violated(Violation::MappingConflict));
}

#[test]
fn a_checksummed_mapping_may_come_on_each_of_its_segments_or_late() {
    for late in [false, true] {
        let mut h = Solo::server(Settings { checksum: true, ..plain_stamps() }).opened();
        let text = pattern(0, 3000);
        let sum = anabranch_wire::dss_checksum(Solo::peer_number(4), 5, 3000, &text);
        let whole = Dss {
            mapping: h.mapped(0, 4, 5, 3000).mapping.map(|m| Mapping { checksum: Some(sum), ..m }),
            ..h.data_ack(0)
        };
        let first = anabranch_wire::dss_checksum(Solo::peer_number(0), 1, 4, b"one ");
        let opening = h.mapped(0, 0, 1, 4).mapping.map(|m| Mapping { checksum: Some(first), ..m });
        h.send(h.seg(1, 1).data(b"one ").dss(Dss { mapping: opening, ..h.data_ack(0) }));
        assert_eq!(h.read(), b"one ");
        for n in 0..3u64 {
            let option = if late && n < 2 { h.data_ack(0) } else { whole };
            h.send(h.seg(5 + n * 1000, 1).data(&text[n as usize * 1000..][..1000]).dss(option));
            assert_eq!(h.read().len(), if n == 2 { 3000 } else { 0 }, "passed on when it is verified");
        }
    }
}

#[test]
fn data_far_beyond_the_window_is_not_taken() {
    let mut h = Solo::open_server(Settings { recv_buffer: 4000, ..plain_stamps() });
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 4500, 1, 5)));
    assert!(h.log.violated(Violation::BeyondWindow));
    let ack = dss(&h.recv()).ack;
    assert_eq!(ack, Some(DataAck::Long(Solo::peer_number(0))));
    h.send(h.seg(6, 1).data(b"hello").dss(h.mapped(0, 0, 6, 5)));
    assert_eq!(h.read(), b"hello");
}

/// Data in the eighth is acknowledged by its subflow: only the peer's data-level timer would bring it again.
#[test]
fn an_eighth_of_the_window_is_taken_beyond_it() {
    let mut h = Solo::open_server(Settings { recv_buffer: 4000, ..plain_stamps() });
    for n in 0..5 {
        h.send(h.seg(1 + n * 1000, 1).data(&pattern(n * 1000, 1000)).dss(h.mapped(0, n * 1000, 1 + n * 1000, 1000)));
    }
    assert!(h.log.violated(Violation::BeyondWindow));
    let last = h.sent.pop_back().expect("an acknowledgment").1.segment;
    assert_eq!((dss(&last).ack, last.window), (Some(DataAck::Long(Solo::peer_number(4500))), 0));
    assert_eq!(h.read(), pattern(0, 4500));
}

/// Each segment is acknowledged before the next comes.
#[test]
fn a_peer_that_never_heeds_the_window_brings_no_more_than_the_eighth() {
    for (accounting, paths) in
        [(BufferAccounting::Payload, 1), (BufferAccounting::Payload, 2), (BufferAccounting::Truesize, 2)]
    {
        let tcp = TcpSettings { buffer_accounting: accounting, ..plain_stamps().tcp };
        let mut h = Solo::open_server(Settings { recv_buffer: 4000, tcp, ..plain_stamps() });
        if paths == 2 {
            h.join(1);
        }
        for n in 0..100 {
            let (path, seq, data) = ((n % paths) as u8, 1 + n / paths * 500, n * 500);
            h.at(10 + 50 * n);
            h.send_on(path, h.seg_on(path, seq, 1).data(&pattern(data, 500)).dss(h.mapped(0, data, seq, 500)));
        }
        assert!(h.log.violated(Violation::BeyondWindow));
        let held = h.read().len();
        match accounting {
            BufferAccounting::Payload => assert_eq!(held, 4500, "{paths} paths"),
            // Less is offered, but the offer follows what has come.
            BufferAccounting::Truesize => assert!(held <= 4500, "{held}"),
        }
    }
}

#[test]
fn a_stream_may_end_in_the_eighth_beyond_the_window() {
    for (more, ends) in [(200, true), (500, true), (501, false)] {
        let mut h = Solo::open_server(Settings { recv_buffer: 4000, ..plain_stamps() });
        h.send(h.seg(1, 1).data(&pattern(0, 4000)).dss(h.mapped(0, 0, 1, 4000)));
        h.at(50).clear();
        h.send(h.seg(4001, 1).data(&pattern(4000, more)).dss(h.mapped(0, 4000, 4001, more as u16)));
        let end = 4000 + more as u64;
        let fin = h.data_fin(0, end);
        h.at(100).clear();
        h.send(h.seg(1 + end, 1).dss(fin));
        if ends {
            assert_eq!(dss(&h.recv()).ack, Some(DataAck::Long(Solo::peer_number(end + 1))), "{more}");
        }
        assert_eq!(h.log.violated(Violation::DataFinMoved), !ends, "{more}");
    }
}

#[test]
fn nothing_is_acknowledged_that_was_not_sent() {
    let mut h = Solo::open_server(plain_stamps());
    // Ten segments leave; the rest waits for the window.
    h.write(&pattern(0, 20_000)).clear();
    for beyond in [10_001, 20_000, 20_001, 1 << 40] {
        h.send(h.seg(1, 1).dss(h.data_ack(beyond)));
        assert_eq!(h.connection().unacknowledged(), 20_000);
    }
    assert!(h.log.violated(Violation::DataAckBeyond));
    h.send(h.seg(1, 10_001).dss(h.data_ack(10_000)));
    assert_eq!(h.connection().unacknowledged(), 10_000);
    assert_eq!(h.recv().payload, pattern(10_000, 1000));
}

#[test]
fn what_the_peer_drops_at_connection_level_is_sent_again() {
    // RFC 8684 §3.3.6: acknowledged by its subflow, not by the connection
    let mut h = Solo::open_server(plain_stamps());
    h.write(&pattern(0, 2000)).clear();
    h.send(h.seg(1, 2001).dss(h.data_ack(0))).quiet();
    // First the peer is asked: a data acknowledgment may have been lost.
    h.at(1000);
    let asked = h.recv();
    assert_eq!((h.numbers(0, &asked).0, asked.payload.len()), (2000, 0));
    h.send(h.seg(1, 2001).dss(h.data_ack(0)));
    h.at(3000);
    let again = h.sent.iter().find(|(_, p)| !p.segment.payload.is_empty()).expect("sent again").1.segment.clone();
    let map = dss(&again).mapping.expect("a mapping");
    assert_eq!((h.our_offset(map.data_seq), map.subflow_seq, again.payload), (0, 2001, pattern(0, 1000)));
    h.send(h.seg(1, 4001).dss(h.data_ack(2000)));
    assert_eq!(h.connection().unacknowledged(), 0);
    h.clear().at(60_000);
    h.quiet();
}

#[test]
fn what_two_subflows_bring_is_put_in_order() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.send_on(1, h.seg_on(1, 1, 1).data(b"world").dss(h.mapped(0, 5, 1, 5)));
    assert_eq!(h.read(), b"");
    assert_eq!(dss(&h.recv()).ack, Some(DataAck::Long(Solo::peer_number(0))));
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    assert_eq!(h.read(), b"helloworld");
    // The same again on the other subflow changes nothing.
    h.send_on(1, h.seg_on(1, 6, 1).data(b"hello").dss(h.mapped(0, 0, 6, 5)));
    assert_eq!(h.read(), b"");
    let last = h.sent.back().expect("an acknowledgment").1.segment.clone();
    assert_eq!(dss(&last).ack, Some(DataAck::Long(Solo::peer_number(10))));
}

#[test]
fn the_subflows_numbers_may_wrap() {
    // The peer's initial number is 500 below the wrap (see `Solo`); ours is wherever it is.
    let mut h = Solo::open_server(plain_stamps());
    for n in 0..5 {
        h.send(h.seg(1 + n * 300, 1).data(&pattern(n * 300, 300)).dss(h.mapped(0, n * 300, 1 + n * 300, 300)));
    }
    assert_eq!(h.read(), pattern(0, 1500));
}

#[test]
fn data_numbers_of_four_bytes_may_wrap() {
    // A key whose first data number stands less than a mebibyte below the wrap of 32 bits.
    let near_the_end = |key: &u64| crypto::idsn(*key).0 as u32 > u32::MAX - (1 << 20);
    let key = (0..).find(near_the_end).expect("one in 4096");
    let first = crypto::idsn(key).at(1);
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None))).clear();
    h.send(h.seg(1, 1).with(Solo::capable(Some(key), Some(h.key))));
    let mut got = Vec::new();
    for offset in (0..1_200_000u64).step_by(50_000) {
        let data_seq = u64::from(first.at(offset).0 as u32);
        let mapping = Mapping { data_seq, wide: false, subflow_seq: 1 + offset as u32, len: 50_000, checksum: None };
        let ack = Some(DataAck::Short(h.our_number(0) as u32));
        let dss = Dss { ack, mapping: Some(mapping), data_fin: false };
        h.send(h.seg(1 + offset, 1).data(&pattern(offset, 50_000)).dss(dss));
        got.extend(h.read());
    }
    assert!(got == pattern(0, 1_200_000), "{} bytes", got.len());
    let last = h.sent.back().expect("an acknowledgment").1.segment.clone();
    assert_eq!(dss(&last).ack, Some(DataAck::Long(first.at(1_200_000).0)));
}

/// Seeds with which the server's data numbers begin less than 512 KiB below the wrap of 32 bits.
fn seed_near_the_wrap(client: &Settings, server: &Settings) -> u64 {
    let near_the_end = |seed: &u64| {
        let key = Rc::new(Cell::new(0));
        let seen = key.clone();
        let theirs = server.clone();
        let mut pair = Pair::with(*seed, setup(client.clone(), client_paths(2)), move || setup(theirs.clone(), vec![]));
        pair.hook = Box::new(move |_, _, _, p| {
            if let [MptcpOption::Capable(MpCapable { sender_key: Some(key), .. })] = p.segment.options.mptcp() {
                seen.set(*key);
            }
            Fate::Pass
        });
        pair.run(at(15));
        crypto::idsn(key.get()).0 as u32 > u32::MAX - (1 << 19)
    };
    (0..).find(near_the_end).expect("one in 8192")
}

#[test]
fn numbers_of_either_width_cross_the_wrap_in_any_mix() {
    use DssWidth::{Eight, Four};
    let with = |dss| Settings { dss, checksum: dss == Four, ..plain_stamps() };
    let seed = seed_near_the_wrap(&with(Four), &with(Four));
    for (client, server) in [(Four, Four), (Four, Eight), (Eight, Four), (Eight, Eight)] {
        let theirs = with(server);
        let mut pair =
            Pair::with(seed, setup(with(client), client_paths(2)), move || setup(theirs.clone(), Vec::new()));
        let seen = Rc::new(Cell::new([false; 4]));
        let (out, mut lossy) = (seen.clone(), 0u32);
        pair.hook = Box::new(move |_, side, _, p| {
            let own = if side == Side::Client { client } else { server };
            if let Some(dss) = p.segment.options.dss() {
                let mapping = dss.mapping.map(|m| m.wide);
                assert!(mapping.is_none_or(|wide| wide == (own == Eight)));
                let mut all = out.get();
                // A DATA_ACK of numbers of 8 bytes has 8 itself.
                let narrow = matches!(dss.ack, Some(DataAck::Short(_)));
                all[usize::from(side == Side::Server) * 2 + usize::from(narrow)] = true;
                out.set(all);
            }
            lossy += 1;
            if lossy.is_multiple_of(97) { Fate::Drop } else { Fate::Pass }
        });
        pair.write(Side::Server, pattern(0, 2_000_000), true).write(Side::Client, pattern(7, 500_000), true);
        pair.run(at(300_000));
        assert!(pair.client.got == pattern(0, 2_000_000) && pair.server.got == pattern(7, 500_000));
        let [_, client_narrow, _, server_narrow] = seen.get();
        assert_eq!(
            (client_narrow, server_narrow),
            match (client, server) {
                (Four, Four) => (true, true),
                // Before the peer's first data nothing wide has come.
                (Four, Eight) => (client_narrow, false),
                (Eight, Four) => (false, server_narrow),
                (Eight, Eight) => (false, false),
            }
        );
        assert_eq!(pair.client.closed(), Some(CloseReason::Finished));
    }
}

#[test]
fn numbers_of_eight_bytes_are_acknowledged_with_eight() {
    let mut h = Solo::open_server(Settings { dss: DssWidth::Four, ..plain_stamps() });
    let narrow = |h: &Solo, data: u64, len: u16| {
        let wide = h.mapped(0, data, 1 + data, len);
        Dss { mapping: wide.mapping.map(|m| Mapping { wide: false, data_seq: m.data_seq & 0xffff_ffff, ..m }), ..wide }
    };
    h.send(h.seg(1, 1).data(b"hello").dss(narrow(&h, 0, 5)));
    assert_eq!(dss(&h.recv()).ack, Some(DataAck::Short(Solo::peer_number(5) as u32)));
    h.send(h.seg(6, 1).data(b"world").dss(h.mapped(0, 5, 6, 5)));
    assert_eq!(dss(&h.recv()).ack, Some(DataAck::Long(Solo::peer_number(10))));
    h.write(b"narrow").finish();
    let sent = dss(&h.recv());
    assert_eq!(sent.mapping.map(|m| (m.wide, m.data_seq)), Some((false, h.our_number(0) & 0xffff_ffff)));
    assert_eq!(sent.ack, Some(DataAck::Long(Solo::peer_number(10))));
}

#[test]
fn no_segment_is_larger_than_the_peer_takes() {
    // RFC 9293 §3.7.1: the MSS without options. The first data's MP_CAPABLE counts too, and so do rescues.
    for width in [DssWidth::Four, DssWidth::Eight] {
        for (checksum, small) in [(false, 600u16), (true, 536), (true, 48)] {
            let tcp = TcpSettings { timestamps: true, nagle: false, ..TcpSettings::default() };
            let settings = Settings { tcp, dss: width, checksum, mss: 1400, ..Settings::default() };
            let mut pair = Pair::new(2, settings.clone(), settings);
            pair.hook = Box::new(move |now, side, path, p| {
                let (options, payload) = (&p.segment.options, p.segment.payload.len());
                let least = if payload > 8 { usize::from(small) } else { 48 };
                let limit = if path == 1 { least } else { 1440 };
                assert!(payload + options.encoded_len() <= limit.max(48) || p.segment.flags.has(Flags::SYN));
                if path == 0 && now > at(400) {
                    // Data that was under way in large segments is sent in small ones.
                    return Fate::Drop;
                }
                if path == 1 && p.segment.flags.has(Flags::SYN) && side == Side::Client {
                    let mut less = p.clone();
                    less.segment.options = anabranch_wire::Options::new();
                    less.segment.options.set_mss(small);
                    options.timestamps().map(|t| less.segment.options.set_timestamps(t));
                    options.mptcp().iter().for_each(|o| assert!(less.segment.options.push_mptcp(*o)));
                    return Fate::Become(vec![less]);
                }
                Fate::Pass
            });
            pair.write(Side::Server, pattern(0, 300_000), true);
            pair.run(at(300_000));
            assert!(pair.client.got == pattern(0, 300_000), "{} bytes, MSS {small}", pair.client.got.len());
        }
    }
}

#[test]
fn the_window_is_one_of_the_connection() {
    // A data acknowledgment on one subflow opens the window for both.
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.send(h.seg(1, 1).window(3000).dss(h.data_ack(0)));
    let before = h.connection().view().window_edge();
    h.send_on(1, h.seg_on(1, 1, 1).window(0xffff).dss(h.data_ack(0)));
    assert!(h.connection().view().window_edge() >= before);
}

#[test]
fn transfers_survive_loss_reordering_and_duplication() {
    for seed in 0..6u64 {
        let mut pair = Pair::new(3, plain_stamps(), plain_stamps());
        let mut n = seed;
        let mut held = None;
        pair.hook = Box::new(move |_, _, _, p| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match (n >> 40) % 40 {
                0 => Fate::Drop,
                1 => Fate::Become(vec![p.clone(), p.clone()]),
                2 => Fate::Become(held.replace(p.clone()).into_iter().collect()),
                3 => Fate::Become(core::iter::once(p.clone()).chain(held.take()).collect()),
                _ => Fate::Pass,
            }
        });
        pair.write(Side::Server, pattern(0, 300_000), true).write(Side::Client, pattern(7, 300_000), true);
        pair.run(at(300_000));
        assert!(pair.client.got == pattern(0, 300_000), "seed {seed}: {} bytes", pair.client.got.len());
        assert!(pair.server.got == pattern(7, 300_000), "seed {seed}: {} bytes", pair.server.got.len());
        assert!(pair.client.closed().is_some() && pair.server.closed().is_some(), "seed {seed}");
    }
}

#[test]
fn a_mapping_may_be_as_long_as_its_field_allows() {
    // RFC 8684 §3.3: 16 bits without a sign. One mapping over 65 segments, in order and out of order.
    let stream = pattern(0, 65_000);
    let mut h = Solo::open_server(plain_stamps());
    let whole = h.mapped(0, 0, 1, 65_000);
    for n in (0..65).map(|n: u64| n ^ 1).filter(|n| *n < 65).chain([64]) {
        let at = (n * 1000) as usize;
        h.send(h.seg(1 + n * 1000, 1).data(&stream[at..at + 1000]).dss(whole));
    }
    assert!(h.read() == stream);
}
