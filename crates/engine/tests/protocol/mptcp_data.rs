//! The data sequence: mappings and data acknowledgments (RFC 8684 §3.3).

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, Solo, dss};
use crate::common::{at, pattern, plain_stamps};
use anabranch_engine::{Settings, State};
use anabranch_trace::Violation;
use anabranch_units::Side;
use anabranch_wire::{DataAck, Dss, Flags, Mapping};

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
fn data_beyond_the_window_is_not_taken() {
    let mut h = Solo::open_server(Settings { recv_buffer: 4000, ..plain_stamps() });
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 3998, 1, 5)));
    assert!(h.log.violated(Violation::BeyondWindow));
    let ack = dss(&h.recv()).ack;
    assert_eq!(ack, Some(DataAck::Long(Solo::peer_number(0))));
    h.send(h.seg(6, 1).data(b"hello").dss(h.mapped(0, 0, 6, 5)));
    assert_eq!(h.read(), b"hello");
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
