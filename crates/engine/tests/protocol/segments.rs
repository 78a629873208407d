//! Which segments count, and how the others are answered (RFC 9293 §3.10.7, RFC 5961, RFC 7323 §5.3).

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{at, client_paths, ms, pattern, plain_stamps, setup, tcp};
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::{Repeat, Round, Scheduler};
use anabranch_engine::{Settings, State, TcpSettings};
use anabranch_trace::{Event, SendKind, Violation};
use anabranch_units::{PathId, Range, SeqNumber, Side};
use anabranch_wire::{Dss, Flags, MptcpOption, Packet, SackBlock, Segment, Timestamps};

/// A segment that an attacker sends in the peer's name.
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
            // The peer continues with its own clock.
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
    let alive = TcpSettings { keep_alive: Some(ms(100_000)), ..tcp().tcp };
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
    // RFC 7323 §4.3: SEG.SEQ <= Last.ACK.sent, even while an acknowledgment is delayed.
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
fn the_echo_is_that_of_the_last_segment_repeated() {
    // Its acknowledgment was lost. With the time of the first copy the peer would measure all that has passed since.
    let [mut h, _] = stamped_servers();
    h.send(stamp(h.seg(1, 1).data(b"abc"), 1001)).clear();
    h.send(stamp(h.seg(4, 1).data(b"def"), 1002)).clear();
    // A forged copy tells no time, nor does one of what came before.
    h.send(stamp(h.seg(4, 2).data(b"def"), 1 << 30));
    h.send(stamp(h.seg(4, 1).data(b"def").flags(Flags(0)), 1 << 30));
    h.send(stamp(h.seg(1, 1).data(b"abc"), 1 << 30)).clear();
    h.send(stamp(h.seg(4, 1).data(b"def"), 3000));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(3000));
    h.send(stamp(h.seg(7, 1).flags(Flags::FIN | Flags::ACK), 3001)).clear();
    h.send(stamp(h.seg(7, 1).flags(Flags::FIN | Flags::ACK), 6000));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(6000));
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
    // RFC 9293 §3.10.7.4 requires an acknowledgment, RFC 5961 §7 a limit; Linux: `tcp_invalid_ratelimit`
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

/// A segment that the peer of `side` might send next, with `len` bytes.
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

/// A plain server with a receive buffer of 4000 bytes, of which `filled` are used.
fn narrow(filled: usize) -> Solo {
    let mut h = Solo::tcp_server(Settings { recv_buffer: 4000, ..tcp() });
    if filled > 0 {
        h.send(h.seg(1, 1).data(&pattern(0, filled)));
    }
    h.clear();
    h
}

fn sacked(s: &Segment) -> Vec<(u64, u64)> {
    let offset = |n: SeqNumber| n.offset_from(SeqNumber(Solo::peer_isn(0)), 0).expect("after the SYN");
    s.options.sack().iter().map(|b| (offset(b.start), offset(b.end))).collect()
}

#[test]
fn nothing_beyond_the_window_is_kept() {
    // RFC 9293 §3.10.7.4, with the window that was advertised
    let mut h = narrow(1000);
    for beyond in [4001, 4002, 5000, 8000, 60_000] {
        h.at(h.now.as_nanos() / 1_000_000 + 1000).clear();
        h.send(h.seg(beyond, 1).data(b"evil"));
        let (_, ack, s) = h.recv_numbers();
        assert_eq!((ack, sacked(&s)), (1001, vec![]), "{beyond}");
        h.quiet();
    }
    // Partly inside: what is beyond the window is cut off, the FIN with it.
    h.send(h.seg(3501, 1).data(&pattern(3500, 1000)).flags(Flags::FIN | Flags::ACK));
    assert_eq!(sacked(&h.recv()), [(3501, 4001)]);
    h.send(h.seg(901, 1).data(&pattern(900, 2600)));
    assert_eq!(h.recv_numbers().1, 4001);
    assert_eq!((h.read(), h.state()), (pattern(0, 4000).to_vec(), State::Established));
    assert!(h.log.violated(Violation::BeyondWindow));
}

#[test]
fn a_closed_window_lets_acknowledgments_and_resets_through() {
    // RFC 9293 §3.10.7.4: "special allowance should be made to accept valid ACKs, URGs, and RSTs"
    let mut h = narrow(4000);
    h.write(b"abc").clear();
    for _ in 0..5 {
        // A probe with data, as the peer may send it: answered at once, and no more.
        h.send(h.seg(4001, 1).data(b"x"));
        let (_, ack, s) = h.recv_numbers();
        assert_eq!((ack, s.window, s.options.sack().len()), (4001, 0, 0));
    }
    h.send(h.seg(4001, 4).data(b"xyz"));
    assert_eq!(h.connection().unacknowledged(), 0);
    // An end without data needs no room; Linux takes it too.
    h.clear();
    h.send(h.seg(4001, 4).flags(Flags::FIN | Flags::ACK));
    assert_eq!((h.recv_numbers().1, h.state()), (4002, State::CloseWait));
    assert_eq!(h.read(), pattern(0, 4000));
    assert!(h.connection().read_finished());

    let mut h = narrow(4000);
    h.send(h.seg(4001, 0).flags(Flags::RST)).quiet();
    h.at(1);
    assert!(h.is_gone());
    // Not with a number beyond the window, nor below it.
    for seq in [4000, 4002] {
        let mut h = narrow(4000);
        h.send(h.seg(seq, 0).flags(Flags::RST)).quiet();
        assert_eq!(h.state(), State::Established);
    }
}

#[test]
fn a_peer_that_has_filled_the_window_may_acknowledge() {
    // Its first segment was lost, and the number of its acknowledgments is that of the window's end.
    let mut h = narrow(0);
    h.write(b"abc");
    h.send(h.seg(1001, 1).data(&pattern(1000, 3000)));
    h.send(h.seg(4001, 4));
    assert_eq!(h.connection().unacknowledged(), 0);
}

#[test]
fn a_subflow_keeps_no_more_than_the_connections_window() {
    // RFC 8684 §3.3.4: the window is one of the connection; what its peer may have under way on a subflow is no more.
    let mut h = Solo::open_server(Settings { recv_buffer: 4000, ..plain_stamps() });
    h.join(1).clear();
    h.send_on(1, h.seg_on(1, 4002, 1).data(b"evil").dss(h.mapped(0, 3000, 4002, 4)));
    assert_eq!(h.recv().options.sack().len(), 0);
    h.send_on(1, h.seg_on(1, 3998, 1).data(b"truevil").dss(h.mapped(0, 3000, 3998, 7)));
    let s = h.recv();
    let start = SeqNumber(Solo::peer_isn(1)).at(3998);
    assert_eq!(s.options.sack(), [SackBlock { start, end: start.at(3) }]);
    // Data that is an eighth of the connection's window beyond it is cut off there.
    h.send(h.seg(1, 1).data(b"abcdef").dss(h.mapped(0, 4497, 1, 6)));
    assert!(h.log.0.iter().any(|(_, e)| matches!(e, Event::DataArrived { ofo: 3, .. })));
    h.send(h.seg(7, 1).data(&pattern(0, 3997)).dss(h.mapped(0, 0, 7, 3997)));
    h.send(h.seg(4004, 1).data(&pattern(3997, 500)).dss(h.mapped(0, 3997, 4004, 500)));
    assert_eq!(h.read(), [&pattern(0, 4497)[..], b"abc"].concat());
}

/// Sends everything on every path.
#[derive(Debug)]
struct Everywhere;

impl Scheduler for Everywhere {
    fn schedule(&mut self, round: &mut Round<'_>) {
        for id in (0..2).map(PathId) {
            let runs: Vec<_> =
                round.outstanding().iter().filter(|(_, copies)| !copies.on(id)).map(|(r, _)| r).collect();
            for run in runs {
                let mut from = run.start;
                while from < run.end && round.repeat(id, Range::new(from, run.end.min(from + 1000)), Repeat::Copy) {
                    from += 1000;
                }
            }
            while round.send_next(id) {}
        }
    }
}

#[test]
fn a_sender_heeds_the_window_of_each_subflow() {
    // RFC 8684 §3.3.5: (ack_i, ack_i + rcv_wnd_i). Copies on a slow path would go far beyond it.
    let tcp = TcpSettings { initial_window: 40, ..plain_stamps().tcp };
    let settings = Settings { recv_buffer: 8000, tcp, ..plain_stamps() };
    let client = Setup { scheduler: Box::new(Everywhere), ..setup(settings.clone(), client_paths(2)) };
    let mut pair = Pair::with(7, client, move || setup(settings.clone(), Vec::new()));
    pair.delays[1] = ms(400);
    let mut n = 0;
    pair.hook = Box::new(move |_, side, path, p| {
        // One that is lost on the slow path keeps all that follows waiting there.
        n += u32::from(side == Side::Client && path == 1 && !p.segment.payload.is_empty());
        if side == Side::Client && path == 1 && n % 50 == 30 { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 6_000_000), true).run(at(120_000));
    assert!(pair.server.got == pattern(0, 6_000_000), "{} bytes", pair.server.got.len());
    let used =
        pair.client.log.0.iter().filter(|(_, e)| matches!(e, Event::DataSent { kind: SendKind::Copy, .. })).count();
    assert!(used > 100, "{used} copies");
    assert!(!pair.server.log.violated(Violation::BeyondWindow));
}

#[test]
fn a_fin_and_what_a_closed_window_cuts_off_are_no_duplicate_acknowledgments() {
    // RFC 5681 §2: of three the third tells a loss, where there is no SACK.
    let under_way = || {
        let bare = TcpSettings { sack: false, ..tcp().tcp };
        let mut h = Solo::tcp_server(Settings { recv_buffer: 1000, tcp: bare, ..tcp() });
        h.send(h.seg(1, 1).data(&pattern(0, 1000)));
        h.write(&pattern(0, 5000)).clear();
        h
    };
    let again = |h: &Solo| h.sent.iter().filter(|(_, p)| !p.segment.payload.is_empty()).count();
    let mut h = under_way();
    for _ in 0..5 {
        h.send(h.seg(1001, 1).data(b"x"));
    }
    h.send(h.seg(1001, 1).flags(Flags::FIN | Flags::ACK));
    h.send(h.seg(1002, 1));
    h.send(h.seg(1002, 1));
    assert_eq!(again(&h), 0);
    h.send(h.seg(1002, 1));
    assert_eq!(again(&h), 1);
}
