//! Handshakes beyond those that have a connection from their SYN on (RFC 9293 §3.10.7.4, SYN-RECEIVED; RFC 4987 §3.6): the
//! same segments lead to the same ends.

use crate::common::solo::{Build, PEER_KEY, Solo, dss};
use crate::common::{host, pattern, plain_stamps, tcp};
use anabranch_engine::{Settings, State};
use anabranch_trace::{Event, Violation};
use anabranch_units::SeqNumber;
use anabranch_wire::{DataAck, Flags, MpCapable, MptcpOption, Packet, Segment, Timestamps};

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// A server of which strangers have opened as many connections halfway as it holds.
fn crowded(settings: Settings) -> Solo {
    let mut h = Solo::server(settings);
    for n in 0..512u16 {
        let mut segment = h.syn(0);
        segment.src_port = 5000 + n;
        h.send_packet(&Packet { src: host(77, 7), dst: host(0, 2), segment });
    }
    assert_eq!((h.endpoint.len(), h.sent.len()), (512, 512));
    h.handle = None;
    h.clear();
    h
}

fn offered(h: &Solo) -> Segment {
    h.syn(0).with(Solo::capable(None, None))
}

fn keys(h: &Solo) -> MptcpOption {
    Solo::capable(Some(PEER_KEY), Some(h.key))
}

#[test]
fn checksums_are_asked_for_before_there_is_a_connection() {
    // RFC 8684 §3.1, flag A
    let mut h = crowded(Settings { checksum: true, ..plain_stamps() });
    h.send(offered(&h));
    let answer = h.recv();
    let asks = |option: &MptcpOption| matches!(option, MptcpOption::Capable(capable) if capable.checksum);
    assert!(answer.options.mptcp().iter().any(asks));
}

#[test]
fn a_connection_is_made_of_the_third_ack() {
    let mut h = crowded(plain_stamps());
    h.send(offered(&h));
    let answer = h.recv();
    assert_eq!((answer.flags, answer.ack, answer.window), (SYN_ACK, SeqNumber(Solo::peer_isn(0)).at(1), 0xffff));
    assert_eq!((answer.options.mss(), answer.options.sack_permitted()), (Some(1028), true));
    assert!(h.handle.is_none() && h.endpoint.len() == 512);
    h.at(30);
    h.send(h.seg(1, 1).window(7000).with(keys(&h))).quiet();
    assert!(h.connection().is_multipath() && h.state() == State::Established);
    // The round trip was measured.
    assert_eq!(h.connection().view().paths()[0].srtt, Some(crate::common::ms(30)));
    h.write(b"hello");
    let map = dss(&h.recv()).mapping.expect("a mapping");
    assert_eq!((h.our_offset(map.data_seq), map.subflow_seq, map.len), (0, 1, 5));
    // Nothing of it is left to be repeated.
    h.send(h.seg(1, 6).dss(h.data_ack(5)));
    h.clear().at(900).quiet();
}

#[test]
fn options_are_agreed_on_as_ever() {
    let with_stamps = Settings { tcp: Default::default(), recv_buffer: 1 << 20, ..tcp() };
    let mut h = crowded(with_stamps);
    let mut syn = h.syn(0).window(500);
    syn.options.set_window_scale(2);
    syn.options.set_timestamps(Timestamps { val: 77, ecr: 0 });
    h.send(syn);
    let answer = h.recv();
    assert_eq!((answer.options.window_scale(), answer.options.timestamps().map(|t| t.ecr)), (Some(5), Some(77)));
    let mut third = h.seg(1, 1).window(2000);
    third.options.set_timestamps(Timestamps { val: 78, ecr: 1 });
    h.send(third);
    // RFC 7323 §2.2: the window is scaled from now on, ours too.
    assert_eq!(h.connection().view().send_window(), 8000);
    h.write(b"hello");
    let first = h.recv();
    assert_eq!((first.window, first.options.timestamps().map(|t| t.ecr)), (1 << 15, Some(78)));
}

#[test]
fn the_first_data_stands_in_for_a_lost_third_ack() {
    let mut h = crowded(plain_stamps());
    h.send(offered(&h)).clear();
    let MptcpOption::Capable(both) = keys(&h) else { unreachable!() };
    h.send(h.seg(1, 1).data(b"hello").with(MptcpOption::Capable(MpCapable { data: Some((5, None)), ..both })));
    assert_eq!(h.read(), b"hello");
    assert_eq!(dss(&h.recv()).ack, Some(DataAck::Long(Solo::peer_number(5))));
}

#[test]
fn a_third_ack_without_keys_means_plain_tcp() {
    let mut h = crowded(plain_stamps());
    h.send(offered(&h)).clear();
    h.send(h.seg(1, 1).data(b"hello"));
    assert!(h.log.saw(Event::Fallback) && !h.connection().is_multipath());
    assert_eq!(h.read(), b"hello");
}

#[test]
fn a_syn_that_comes_again_is_answered_again() {
    let mut h = crowded(plain_stamps());
    h.send(offered(&h));
    let first = h.recv();
    h.at(700);
    h.send(offered(&h));
    assert_eq!(h.recv(), first);
    // Another SYN between the same ends changes nothing (RFC 5961 §4).
    let mut other = offered(&h);
    other.seq = other.seq.at(100);
    h.send(other);
    assert_eq!(h.recv(), first);
    // One without the option: perhaps our answer was dropped for it (RFC 8684 §3.7).
    h.send(h.syn(0));
    let bare = h.recv();
    assert_eq!((bare.seq, bare.options.mptcp()), (first.seq, &[][..]));
    h.at(750);
    h.send(h.seg(1, 1)).quiet();
    assert!(!h.connection().is_multipath() && h.state() == State::Established);
    // It cannot be known which of the answers is acknowledged: no RTT (RFC 6298 §3).
    assert_eq!(h.connection().view().paths()[0].srtt, None);
}

#[test]
fn its_syn_ack_is_repeated_and_given_up() {
    let mut h = crowded(plain_stamps());
    h.at(500);
    h.send(offered(&h));
    h.at(400_000);
    let ours = h.sent.iter().filter(|(_, p)| p.dst == host(0, 1));
    let times: Vec<_> = ours.map(|(at, p)| (at.as_nanos() / 1_000_000, p.segment.flags)).collect();
    // RFC 6298 §5.5
    let expected = [500, 1500, 3500, 7500, 15_500, 31_500, 63_500].map(|at| (at, SYN_ACK));
    assert_eq!(times, expected);
    // Then nothing is known of it any more.
    h.clear();
    h.send(h.seg(1, 1).with(keys(&h)));
    assert_eq!(h.recv().flags, Flags::RST);
    assert_eq!(h.endpoint.poll_timeout(), None);
}

#[test]
fn resets_and_wrong_acknowledgments() {
    let mut h = crowded(plain_stamps());
    h.send(offered(&h)).clear();
    // RFC 9293 §3.10.7.4: an acknowledgment of what was never sent
    h.send(h.seg(1, 50));
    let reset = h.recv();
    assert_eq!((reset.flags, h.numbers(0, &reset).0), (Flags::RST, 50));
    // RFC 5961 §3.2, §4: a reset elsewhere than at the next number, and a SYN: the SYN/ACK is said again
    for segment in [h.seg(2, 0).flags(Flags::RST), h.seg(0, 1).flags(SYN_ACK), h.seg(1 << 20, 1)] {
        h.send(segment);
        assert_eq!(h.recv().flags, SYN_ACK);
    }
    h.send(h.seg(1 << 20, 0).flags(Flags::RST)).quiet();
    h.send(h.seg(1, 0).flags(Flags::FIN)).quiet();
    h.send(h.seg(1, 0).flags(Flags::RST)).quiet();
    h.send(h.seg(1, 1).with(keys(&h)));
    assert_eq!(h.recv().flags, Flags::RST);
    assert!(h.handle.is_none());
}

#[test]
fn a_place_that_is_free_again_is_used() {
    for flags in [Flags::ACK, Flags::RST] {
        let mut h = Solo::server(tcp());
        // The first of many is no forger, or gives up.
        h.send(h.syn(0));
        let first = h.seg(1, if flags == Flags::ACK { 1 } else { 0 }).flags(flags);
        let stranger = |h: &mut Solo, n: u16| {
            let mut segment = h.syn(0);
            segment.src_port = 5000 + n;
            h.handle = None;
            h.send_packet(&Packet { src: host(77, 7), dst: host(0, 2), segment });
            h.handle.is_some()
        };
        assert!((1..512).all(|n| stranger(&mut h, n)));
        assert!(!stranger(&mut h, 512));
        h.send(first);
        assert!(stranger(&mut h, 513) && !stranger(&mut h, 514));
    }
}

#[test]
fn a_join_that_is_half_open_obeys_the_same_rules() {
    let mut h = Solo::open_server(plain_stamps());
    let syn = h.syn(1).with(h.join_syn(1));
    h.send_on(1, syn.clone());
    let answer = h.recv();
    let nonce = Solo::nonce_of(&answer);
    h.at(100).send_on(1, syn);
    assert_eq!(h.recv(), answer);
    // An acknowledgment of something else.
    h.send_on(1, h.seg_on(1, 1, 9).with(h.join_ack(1, nonce)));
    assert_eq!(h.recv().flags, Flags::RST);
    // Its timer runs from the last answer on.
    h.at(1099).quiet().at(1101);
    assert_eq!(h.recv(), answer);
    h.send_on(1, h.seg_on(1, 1, 1).with(h.join_ack(1, nonce)));
    assert_eq!((h.state_of(1), h.recv().flags), (State::Established, Flags::ACK));
    // Both paths carry data.
    h.write(&pattern(0, 20_000));
    assert!(h.sent.iter().any(|(_, p)| p.dst == host(1, 1) && !p.segment.payload.is_empty()));
    // Another one is given up by the peer.
    h.clear();
    h.send_on(2, h.syn(2).with(h.join_syn(2)));
    let nonce = Solo::nonce_of(&h.recv());
    h.send_on(2, h.seg_on(2, 1, 0).flags(Flags::RST)).quiet();
    h.send_on(2, h.seg_on(2, 1, 1).with(h.join_ack(2, nonce)));
    assert_eq!((h.state_of(2), h.recv().flags), (State::Closed, Flags::RST));
    // An acknowledgment without proof ends it (RFC 8684 §3.2).
    h.send_on(2, h.syn(2).with(h.join_syn(2))).clear();
    h.send_on(2, h.seg_on(2, 1, 1));
    assert!(h.recv().flags == Flags::RST && h.log.violated(Violation::UnexpectedOption));
}
