//! The reaction of each state to a segment (RFC 9293 §3.10.7.3, §3.10.7.4) and to an abort (§3.10.5).

use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{client_paths, pattern, plain_stamps, setup, tcp};
use anabranch_engine::connection::ConnectionEvent;
use anabranch_engine::{Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Violation};
use anabranch_units::{PathId, SeqNumber};
use anabranch_wire::{Flags, MpJoin, MptcpOption, Packet, Segment};

const FIN: Flags = Flags(0x11);
const RST: Flags = Flags::RST;
const SYN_ACK: Flags = Flags(0x12);

fn syn_received() -> Solo {
    let mut h = Solo::server(tcp());
    h.send(h.syn(0)).clear();
    assert_eq!(h.state(), State::SynReceived);
    h
}

/// A client whose SYN crossed the peer's.
fn crossing() -> Solo {
    let mut h = Solo::client(tcp());
    h.send(h.syn(0)).clear();
    assert_eq!(h.state(), State::SynReceived);
    h
}

#[test]
fn a_syn_ack_may_bring_data_and_an_end() {
    // RFC 9293 §3.10.7.3: "If there are other controls or text in the segment, then continue processing at the sixth step"
    let mut h = Solo::client(tcp());
    h.clear();
    h.send(h.syn_ack(0).data(b"hello").flags(Flags(0x13)));
    assert_eq!((h.recv_numbers().1, h.state()), (7, State::CloseWait));
    assert_eq!(h.read(), b"hello");
    assert!(h.connection().read_finished());
    // With Multipath TCP the data of a SYN/ACK has no known place in the data sequence: only the SYN is acknowledged.
    let mut h = Solo::client(plain_stamps());
    h.clear();
    h.send(h.syn_ack(0).data(b"hello").with(Solo::capable(Some(PEER_KEY), None)));
    assert_eq!((h.recv_numbers().1, h.state()), (1, State::Established));
}

#[test]
fn syn_sent_ignores_what_is_neither_syn_nor_rst() {
    let mut h = Solo::client(tcp());
    h.clear();
    h.send(h.seg(1, 0).flags(Flags(0)).data(b"x")).quiet();
    h.send(h.seg(1, 1).data(b"x")).quiet();
    h.send(h.seg(1, 1).flags(FIN)).quiet();
    assert_eq!(h.state(), State::SynSent);
    assert_eq!(h.read(), b"");
}

#[test]
fn a_reset_of_a_half_open_connection_is_exact() {
    // RFC 5961 §3.2, RFC 9293 §3.10.7.4, second step
    for mut h in [syn_received(), crossing()] {
        for seq in [0, 70_000, 1 << 30] {
            h.send(h.seg(seq, 1).flags(RST)).quiet();
        }
        h.send(h.seg(2, 1).flags(RST));
        let (seq, ack, s) = h.recv_numbers();
        assert_eq!((seq, ack, s.flags, h.state()), (1, 1, Flags::ACK, State::SynReceived));
        assert!(h.log.violated(Violation::BlindReset));
        h.send(h.seg(1, 1).flags(RST)).quiet();
        assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Refused)));
        assert!(h.at(1).is_gone());
    }
}

#[test]
fn a_repeated_syn_is_answered_twice_a_second() {
    for mut h in [syn_received(), crossing()] {
        // Its own repeats come less often: 1 s, 3 s, 7 s.
        for n in 1..10_000 {
            h.at(n);
            h.send(h.syn(0));
        }
        assert!((20..=24).contains(&h.sent.len()), "{}", h.sent.len());
        assert!(h.sent.iter().all(|(_, p)| p.segment.flags == SYN_ACK));
    }
}

/// A SYN of another connection of the peer's, between the same ends.
fn another_syn(h: &Solo, ahead: u32) -> Segment {
    let syn = h.syn(0);
    Segment { seq: SeqNumber(syn.seq.0.wrapping_add(ahead)), ..syn }
}

#[test]
fn a_client_that_begins_anew_is_not_kept_waiting() {
    // It has forgotten the connection that is half open here, and its new number is outside the window: a challenge ACK
    // shows it the old one. It resets that, and opens its own (RFC 9293 §3.5.1, figure 9).
    for settings in [tcp(), plain_stamps()] {
        let mut h = Solo::server(settings.clone());
        let option = |s: Segment| if settings.mptcp { s.with(Solo::capable(None, None)) } else { s };
        h.send(option(h.syn(0))).clear();
        let syn = option(another_syn(&h, 1 << 30));
        h.send(syn.clone());
        let answer = h.recv();
        assert!(answer.flags.has(Flags::ACK) && answer.ack == SeqNumber(Solo::peer_isn(0)).at(1));
        let reset = Segment { seq: answer.ack, ..h.seg(0, 0).flags(RST) };
        h.send(reset).quiet();
        assert!(h.at(1).is_gone());
        h.send(syn.clone());
        let answer = h.recv();
        assert_eq!((answer.flags, answer.ack), (SYN_ACK, syn.seq.at(1)));
    }
}

#[test]
fn a_syn_within_the_window_sends_a_listener_back_to_listen() {
    // RFC 9293 §3.10.7.4, fourth step
    let mut h = syn_received();
    let syn = another_syn(&h, 1000);
    h.send(syn.clone()).quiet();
    assert!(h.at(1).is_gone());
    h.send(syn.clone());
    assert_eq!((h.recv().ack, h.state()), (syn.seq.at(1), State::SynReceived));
    // A host that opened actively answers with a challenge ACK (RFC 5961 §4).
    let mut h = crossing();
    h.send(another_syn(&h, 1000));
    assert_eq!((h.recv().flags, h.state()), (Flags::ACK, State::SynReceived));
    assert!(h.log.violated(Violation::BlindSyn));
}

#[test]
fn a_connection_that_is_aborted_resets_although_it_refuses_an_acknowledgment_too() {
    let mut h = crossing();
    let wrong = h.seg(1, 50);
    h.clear();
    h.app(|c, cx| {
        c.handle_segment(cx, PathId(0), &wrong);
        c.abort(cx);
    });
    assert!(h.recv().flags.has(RST) && h.at(1).is_gone());
}

#[test]
fn numbers_are_checked_before_acknowledgments() {
    // Outside the window: an acknowledgment, whatever it acknowledges. Within: a reset for what was never sent.
    let mut h = syn_received();
    h.send(h.seg(1 << 30, 50));
    assert_eq!(h.recv_numbers().2.flags, Flags::ACK);
    h.send(h.seg(1, 50));
    let reset = h.recv();
    assert_eq!((reset.flags, h.numbers(0, &reset).0), (RST, 50));
    h.send(h.seg(1, 1).flags(Flags(0)).data(b"x")).quiet();
    assert_eq!(h.state(), State::SynReceived);
}

#[test]
fn the_third_ack_may_bring_data_and_an_end() {
    let mut h = syn_received();
    h.send(h.seg(1, 1).data(b"hello").flags(FIN));
    assert_eq!((h.recv_numbers().1, h.state()), (7, State::CloseWait));
    assert_eq!(h.read(), b"hello");
}

#[test]
fn a_join_that_is_half_open_never_acknowledges_without_its_proof() {
    // A bare acknowledgment would be taken for the fourth ACK (RFC 8684 §3.2).
    let mut h = Solo::open_server(plain_stamps());
    h.send_on(1, h.syn(1).with(h.join_syn(1))).clear();
    for segment in [h.seg_on(1, 1 << 30, 1), h.seg_on(1, 2, 1).flags(RST), h.syn(1).with(h.join_syn(1))] {
        h.at(h.now.as_nanos() / 1_000_000 + 501).clear();
        h.send_on(1, segment);
        let answer = h.recv();
        assert_eq!(answer.flags, SYN_ACK);
        assert!(matches!(answer.options.mptcp(), [MptcpOption::Join(MpJoin::SynAck { .. })]));
    }
}

/// A plain connection in each state after ESTABLISHED, with what the peer sends and acknowledges next.
fn in_state(state: State) -> (u64, u64, Solo) {
    let mut h = Solo::tcp_client(tcp());
    let (seq, ack) = match state {
        State::Established => (1, 1),
        State::FinWait1 => {
            h.finish();
            (1, 1)
        }
        State::FinWait2 => {
            h.finish();
            h.send(h.seg(1, 2));
            (1, 2)
        }
        State::Closing => {
            h.finish();
            h.send(h.seg(1, 1).flags(FIN));
            (2, 1)
        }
        State::TimeWait => {
            h.finish();
            h.send(h.seg(1, 2).flags(FIN));
            (2, 2)
        }
        State::CloseWait => {
            h.send(h.seg(1, 1).flags(FIN));
            (2, 1)
        }
        State::LastAck => {
            h.send(h.seg(1, 1).flags(FIN)).finish();
            (2, 1)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(h.state(), state);
    h.clear();
    (seq, ack, h)
}

#[test]
fn nothing_follows_a_fin() {
    // RFC 9293 §3.10.7.4, seventh step: "This should not occur... Ignore the segment text."
    for state in [State::CloseWait, State::Closing, State::LastAck, State::TimeWait] {
        let (seq, ack, mut h) = in_state(state);
        for _ in 0..1000 {
            h.send(h.seg(seq, ack).data(b"more"));
            h.send(h.seg(seq + 10, ack).data(b"more").flags(FIN));
            h.send(h.seg(seq, ack).flags(FIN));
        }
        assert_eq!((h.read(), h.state()), (vec![], state));
        h.quiet();
        // The FIN itself, repeated, is acknowledged.
        h.send(h.seg(seq - 1, ack).flags(FIN));
        assert_eq!(h.recv_numbers().1, seq);
    }
}

#[test]
fn half_closed_we_go_on_reading() {
    for (state, after) in [(State::FinWait1, State::Closing), (State::FinWait2, State::TimeWait)] {
        let (seq, ack, mut h) = in_state(state);
        h.send(h.seg(seq, ack).data(b"hello"));
        h.send(h.seg(seq + 5, ack).data(b"world").flags(FIN));
        assert_eq!((h.read(), h.state()), (b"helloworld".to_vec(), after));
        assert_eq!(h.sent.back().map(|(_, p)| h.numbers(0, &p.segment).1), Some(seq + 11));
    }
}

#[test]
fn only_the_peers_own_fin_prolongs_time_wait() {
    let (seq, ack, mut h) = in_state(State::TimeWait);
    for second in 1..=59 {
        h.at(second * 1000);
        // Not at its place, and at none.
        h.send(h.seg(seq + (1 << 30), ack).flags(FIN));
        h.send(h.seg(seq - 2, ack).flags(FIN));
        h.send(h.seg(seq, ack).flags(FIN));
        h.send(h.seg(seq, ack));
    }
    h.at(60_001);
    assert!(h.is_gone());
}

#[test]
fn a_new_connection_from_the_same_ends_opens_out_of_time_wait() {
    // RFC 9293 §3.10.7.4, fourth step: the SYN is challenged, the client resets, and begins again.
    for ahead in [500, 1 << 30, 3 << 30] {
        let (seq, _, mut h) = {
            let mut h = Solo::server(tcp());
            h.send(h.syn(0));
            h.send(h.seg(1, 1)).finish();
            h.send(h.seg(1, 2).flags(FIN)).clear();
            (2, 2, h)
        };
        assert_eq!(h.state(), State::TimeWait);
        let syn = another_syn(&h, ahead);
        h.send(syn.clone());
        let (_, ack, challenge) = h.recv_numbers();
        assert_eq!((ack, challenge.flags), (seq, Flags::ACK));
        h.send(h.seg(seq, 0).flags(RST));
        assert!(h.at(1).is_gone());
        h.send(syn.clone());
        assert_eq!((h.recv().ack, h.state()), (syn.seq.at(1), State::SynReceived));
    }
}

#[test]
fn an_old_acknowledgment_is_no_older_than_the_widest_window() {
    // RFC 5961 §5.2: SND.UNA - MAX.SND.WND =< SEG.ACK =< SND.NXT
    let mut h = Solo::client(tcp());
    h.send(h.syn_ack(0).window(5000)).clear();
    let mut at = 1;
    for _ in 0..4 {
        h.write(&pattern(0, 5000));
        at += 5000;
        h.send(h.seg(1, at).window(3000)).clear();
        h.send(h.seg(1, at).window(5000)).clear();
    }
    h.send(h.seg(1, at - 5000).data(b"abc").window(5000));
    assert_eq!(h.read(), b"abc");
    h.clear();
    h.send(h.seg(4, at - 5001).data(b"evil").window(5000));
    assert_eq!((h.read(), h.recv_numbers().1), (vec![], 4));
    assert!(h.log.violated(Violation::BlindAck));
}

#[test]
fn segments_fit_the_least_mss_of_either_family() {
    // RFC 9293 §3.7.1 (MUST-15): 536 bytes with IPv4, 1220 with IPv6
    for (v6, expected) in [(false, 536), (true, 1220)] {
        let mut h = Solo::server(Settings { mss: 1400, ..tcp() });
        let hosts = if v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] };
        let [src, dst] = hosts.map(|host| host.parse().expect("an address"));
        let bare = Segment { options: Default::default(), ..h.syn(0) };
        h.send_packet(&Packet { src, dst, segment: bare }).clear();
        h.send_packet(&Packet { src, dst, segment: h.seg(1, 1) });
        h.write(&pattern(0, 5000));
        assert_eq!(h.recv().payload.len(), expected);
    }
}

#[test]
fn an_abort_resets_where_the_peer_may_wait() {
    // RFC 9293 §3.10.5
    let abort = |h: &mut Solo| h.app(|c, cx| c.abort(cx));
    let mut h = Solo::client(tcp());
    h.clear();
    abort(&mut h);
    h.at(100_000).quiet();
    assert!(h.is_gone() && h.events.contains(&ConnectionEvent::Closed(CloseReason::Aborted)));
    for mut h in [syn_received(), crossing()] {
        abort(&mut h);
        let (seq, _, reset) = h.recv_numbers();
        assert!(reset.flags.has(RST) && seq == 1);
        assert!(h.at(1).is_gone());
    }
    let sends = [State::Established, State::FinWait1, State::FinWait2, State::CloseWait];
    for state in sends {
        let (_, _, mut h) = in_state(state);
        abort(&mut h);
        assert!(h.recv().flags.has(RST), "{state:?}");
        assert!(h.at(1).is_gone(), "{state:?}");
    }
    for state in [State::Closing, State::LastAck, State::TimeWait] {
        let (_, _, mut h) = in_state(state);
        abort(&mut h);
        h.quiet();
        assert!(h.at(1).is_gone(), "{state:?}");
    }
}

#[test]
fn an_abort_resets_no_join_that_has_only_begun() {
    let mut h = Solo::open_client(setup(plain_stamps(), client_paths(2)));
    h.at(1).clear();
    assert_eq!(h.state_of(1), State::SynSent);
    h.app(|c, cx| c.abort(cx));
    let resets: Vec<_> = h.sent.iter().map(|(_, p)| p.dst).collect();
    assert_eq!(resets, [crate::common::host(0, 2)]);
    assert!(h.at(2).is_gone());
    // Nor does one that is given up, or ends because the peer closed fast.
    let retries = TcpSettings { retries: 1, ..plain_stamps().tcp };
    let mut h = Solo::open_client(setup(Settings { tcp: retries, ..plain_stamps() }, client_paths(2)));
    h.at(1).clear();
    h.send(h.seg(1, 1).with(MptcpOption::FastClose { receiver_key: h.key }));
    assert!(h.sent.iter().all(|(_, p)| p.dst == crate::common::host(0, 2)));
}
