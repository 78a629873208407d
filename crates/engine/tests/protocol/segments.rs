//! Which segments count, and how the others are answered (RFC 9293 §3.10.7, RFC 5961, RFC 7323 §5.3).

use crate::common::pair::Pair;
use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{at, pattern, plain_stamps, tcp};
use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::Violation;
use anabranch_units::{SeqNumber, Side};
use anabranch_wire::{Dss, Flags, MptcpOption, Packet, SackBlock, Segment, Timestamps};

/// A segment that somebody sends in the peer's name.
type Forged = (&'static str, fn(&Solo) -> Segment);

fn stamped(settings: Settings) -> Settings {
    Settings { tcp: TcpSettings { timestamps: true, ..settings.tcp }, ..settings }
}

fn stamp(mut s: Segment, val: u32) -> Segment {
    s.options.set_timestamps(Timestamps { val, ecr: 1 });
    s
}

/// A plain connection whose peer's clock has come to 1000, and one with Multipath TCP.
fn stamped_servers() -> [Solo; 2] {
    let mut plain = Solo::server(stamped(tcp()));
    plain.send(stamp(plain.syn(0), 1000)).clear();
    plain.send(stamp(plain.seg(1, 1), 1000));
    let mut multipath = Solo::server(stamped(plain_stamps()));
    multipath.send(stamp(multipath.syn(0).with(Solo::capable(None, None)), 1000)).clear();
    let keys = Solo::capable(Some(PEER_KEY), Some(multipath.key));
    multipath.send(stamp(multipath.seg(1, 1).with(keys), 1000));
    assert!(multipath.connection().is_multipath());
    [plain, multipath]
}

#[test]
fn a_forged_timestamp_does_not_freeze_a_subflow() {
    // RFC 7323 §5.3: R3 comes after the segment was found acceptable; RFC 5961 §4, §5: these are not.
    const NONE: Flags = Flags(0);
    let far = 1 << 30;
    let forgeries: [Forged; 6] = [
        ("without ACK", |h| h.seg(1, 1).flags(NONE)),
        ("without ACK, with data", |h| h.seg(1, 1).flags(NONE).data(b"evil")),
        ("SYN", |h| h.seg(1, 1).flags(Flags::SYN)),
        ("SYN/ACK", |h| h.seg(1, 1).flags(Flags::SYN | Flags::ACK)),
        ("an acknowledgment of what was not sent", |h| h.seg(1, 2)),
        ("an acknowledgment of long ago", |h| h.seg(1, 0u64.wrapping_sub(1 << 30))),
    ];
    for (what, forged) in forgeries {
        for mut h in stamped_servers() {
            let segment = stamp(forged(&h), 1000 + far);
            h.send(segment).clear();
            // The peer goes on by its own clock.
            let data = h.seg(1, 1).data(b"true");
            let data = if h.connection().is_multipath() { data.dss(h.mapped(0, 0, 1, 4)) } else { data };
            h.send(stamp(data, 1001));
            assert_eq!(h.read(), b"true", "{what}");
            assert!(!h.log.violated(Violation::OldTimestamp), "{what}");
            assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(1001), "{what}");
        }
    }
}

#[test]
fn a_forgery_is_no_sign_of_life() {
    // RFC 9293 §3.8.4: a peer that is gone is given up, whatever a third party sends in its name.
    let alive = TcpSettings { keep_alive: Some(crate::common::ms(100_000)), ..tcp().tcp };
    let mut h = Solo::tcp_client(Settings { tcp: alive, ..tcp() });
    for second in 1..1200 {
        h.at(second * 1000);
        if !h.is_gone() {
            h.send(h.seg(1, 1).flags(Flags(0)));
            h.send(h.seg(1, 2));
        }
    }
    assert!(h.is_gone());
}

#[test]
fn the_echo_is_that_of_what_reaches_back_to_the_last_acknowledgment() {
    // RFC 7323 §4.3: SEG.SEQ <= Last.ACK.sent, also while an acknowledgment is delayed.
    let [mut h, _] = stamped_servers();
    for n in 0..16 {
        h.send(stamp(h.seg(1 + n, 1).data(b"x"), 1001 + n as u32)).clear();
    }
    h.send(stamp(h.seg(17, 1).data(b"abc"), 2000)).quiet();
    // The first of the two is repeated together with the second: its new time is the one to tell.
    h.send(stamp(h.seg(17, 1).data(b"abcdef"), 3000));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(3000));
}

#[test]
fn a_reset_without_ack_echoes_nothing() {
    // RFC 7323 §3.2: TSecr is valid only with ACK
    let mut h = Solo::server(stamped(tcp()));
    h.send(stamp(h.syn(0), 1000)).clear();
    h.send(stamp(h.seg(1, 50), 1001));
    let reset = h.recv();
    assert_eq!((reset.flags, reset.options.timestamps().map(|t| t.ecr)), (Flags::RST, Some(0)));
}

/// A connection that has taken some data from its peer and has some of its own under way.
fn under_way() -> Solo {
    let mut h = Solo::tcp_server(tcp());
    h.send(h.seg(1, 1).data(&pattern(0, 5000)));
    h.read();
    h.write(b"abc").clear();
    h.at(10_000).clear();
    h
}

#[test]
fn segments_outside_the_window_are_answered_twice_a_second() {
    // RFC 9293 §3.10.7.4 asks for an acknowledgment, RFC 5961 §7 for a limit; Linux: `tcp_invalid_ratelimit`
    const FAR: u64 = 1 << 30;
    let segments: [Forged; 9] = [
        ("before the window", |h| h.seg(4000, 1)),
        ("long before the window", |h| h.seg(5001u64.wrapping_sub(FAR), 1)),
        ("beyond the window", |h| h.seg(5001 + FAR, 1)),
        ("with data, beyond the window", |h| h.seg(5001 + FAR, 1).data(b"evil")),
        ("with data, long before the window", |h| h.seg(5001u64.wrapping_sub(FAR), 1).data(b"evil")),
        ("SYN", |h| h.seg(5001, 1).flags(Flags::SYN)),
        ("SYN beyond the window", |h| h.seg(5001 + FAR, 1).flags(Flags::SYN)),
        ("SYN/ACK", |h| h.syn_ack(0)),
        ("an unacceptable acknowledgment", |h| h.seg(5001, 9000)),
    ];
    for (what, segment) in segments {
        let mut h = under_way();
        for n in 0..10_000 {
            h.at(10_000 + n);
            h.send(segment(&h));
        }
        let answers = h.sent.iter().filter(|(_, p)| p.segment.payload.is_empty()).count();
        assert!((19..=20).contains(&answers), "{what}: {answers}");
        let (_, ack) = h.numbers(0, &h.sent[0].1.segment);
        assert_eq!((ack, h.sent[0].1.segment.flags), (5001, Flags::ACK), "{what}");
    }
}

#[test]
fn old_timestamps_are_answered_twice_a_second() {
    let [mut h, _] = stamped_servers();
    for n in 0..10_000 {
        h.at(10_000 + n);
        h.send(stamp(h.seg(1, 1), 999));
    }
    assert!((19..=20).contains(&h.sent.len()), "{}", h.sent.len());
}

#[test]
fn a_third_ack_is_repeated_twice_a_second_at_most() {
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None))).clear();
    let again = |h: &Solo| h.syn_ack(0).with(Solo::capable(Some(PEER_KEY), None));
    for n in 0..10_000 {
        h.at(n);
        h.send(again(&h));
    }
    assert!((19..=21).contains(&h.sent.len()), "{}", h.sent.len());
    let shows = |s: &Segment| matches!(s.options.mptcp(), [MptcpOption::Capable(_)]);
    assert!(h.sent.iter().all(|(_, p)| shows(&p.segment)));
}

#[test]
fn what_an_honest_peer_repeats_is_answered_at_once() {
    let mut h = under_way();
    // Data that was acknowledged: its DSACK tells the peer that it need not have been repeated (RFC 2883).
    for n in 0..50u64 {
        h.send(h.seg(1 + n * 100, 1).data(&pattern(n * 100, 100)));
        let answer = h.recv();
        let start = SeqNumber(Solo::peer_isn(0)).at(1 + n * 100);
        assert_eq!(answer.options.sack().first(), Some(&SackBlock { start, end: start.at(100) }));
        h.quiet();
    }
    // Probes with a byte, of a closed window or of an idle connection; and without, as Linux sends them.
    for _ in 0..5 {
        h.send(h.seg(5000, 1).data(b"x"));
        assert_eq!(h.recv_numbers().1, 5001);
    }
    for n in 1..20 {
        h.at(10_000 + n * 500).clear();
        h.send(h.seg(5000, 1));
        assert_eq!(h.recv_numbers().1, 5001);
    }
    // Its FIN, of which the acknowledgment was lost.
    h.send(h.seg(5001, 1).flags(Flags::FIN | Flags::ACK)).clear();
    for _ in 0..5 {
        h.send(h.seg(5001, 1).flags(Flags::FIN | Flags::ACK));
        assert_eq!(h.recv_numbers().1, 5002);
    }
}

#[test]
fn two_exact_forgeries_start_no_war() {
    // Each end is given bytes that the other never sent: from then on each finds the other's acknowledgments unacceptable.
    for len in [1, 5, 1000] {
        for settings in [tcp(), plain_stamps()] {
            let mut pair = Pair::new(1, settings.clone(), settings);
            pair.write(Side::Client, pattern(0, 1000), false).write(Side::Server, pattern(0, 1000), false);
            pair.run(at(5000));
            for side in [Side::Client, Side::Server] {
                let forged = forged_for(&pair, side, len);
                pair.inject(side, forged);
            }
            pair.run(at(6000));
            let before = pair.packets;
            pair.run(at(16_000));
            assert!(pair.packets - before <= 90, "{len} bytes: {} packets in 10 s", pair.packets - before);
        }
    }
}

/// What the peer of `side` might send next: `len` bytes.
fn forged_for(pair: &Pair, side: Side, len: usize) -> Packet {
    let mut packet = pair.last[usize::from(side == Side::Client)].clone().expect("it has sent something");
    packet.segment.seq = packet.segment.seq.at(packet.segment.payload.len() as u64);
    packet.segment.payload = pattern(7, len);
    let dss = packet.segment.options.dss().copied();
    packet.segment.options.clear();
    if let Some(ack) = dss.and_then(|dss| dss.ack) {
        packet.segment.options.set_dss(Dss { ack: Some(ack), mapping: None, data_fin: false });
    }
    packet
}
