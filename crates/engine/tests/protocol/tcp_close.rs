//! Closing (RFC 9293 §3.6) and resets (RFC 9293 §3.10.7.4, RFC 5961).

use crate::common::solo::{Build, Solo};
use crate::common::tcp;
use anabranch_engine::connection::ConnectionEvent;
use anabranch_engine::{Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Violation};
use anabranch_wire::Flags;

const FIN: Flags = Flags(0x11);
const RST: Flags = Flags::RST;

/// We close first: FIN-WAIT-1.
fn closing_first() -> Solo {
    let mut h = Solo::tcp_client(tcp());
    h.finish();
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags, h.state()), (1, 1, FIN, State::FinWait1));
    h
}

#[test]
fn we_close_first() {
    let mut h = closing_first();
    h.at(10);
    h.send(h.seg(1, 2)).quiet();
    assert_eq!(h.state(), State::FinWait2);
    h.at(20);
    h.send(h.seg(1, 2).flags(FIN));
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags, h.state()), (2, 2, Flags::ACK, State::TimeWait));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Finished)));
    // The peer repeats its FIN: answered, and TIME-WAIT starts again.
    h.at(30_000);
    h.send(h.seg(1, 2).flags(FIN));
    let (seq, ack, _) = h.recv_numbers();
    assert_eq!((seq, ack, h.state()), (2, 2, State::TimeWait));
    h.at(89_999);
    assert_eq!(h.state(), State::TimeWait);
    h.at(90_001).quiet();
    assert!(h.is_gone());
    assert_eq!(h.endpoint.poll_timeout(), None);
}

#[test]
fn the_peers_fin_acknowledges_ours() {
    let mut h = closing_first();
    h.send(h.seg(1, 2).flags(FIN));
    assert_eq!(h.recv_numbers().1, 2);
    assert_eq!(h.state(), State::TimeWait);
}

#[test]
fn both_close_at_once() {
    let mut h = closing_first();
    h.at(5);
    h.send(h.seg(1, 1).flags(FIN));
    assert_eq!((h.recv_numbers().1, h.state()), (2, State::Closing));
    h.at(10);
    h.send(h.seg(2, 2)).quiet();
    assert_eq!(h.state(), State::TimeWait);
}

#[test]
fn the_peer_closes_first_and_we_go_on_sending() {
    let mut h = Solo::tcp_server(tcp());
    h.at(10);
    h.send(h.seg(1, 1).data(b"bye").flags(FIN));
    assert_eq!((h.recv_numbers().1, h.state()), (5, State::CloseWait));
    assert_eq!(h.read(), b"bye");
    assert!(h.connection().read_finished());
    // Half-closed: our direction is open.
    h.write(b"not yet");
    let (seq, _, s) = h.recv_numbers();
    assert_eq!((seq, &s.payload[..]), (1, &b"not yet"[..]));
    h.send(h.seg(5, 8));
    h.finish();
    let (seq, _, s) = h.recv_numbers();
    assert_eq!((seq, s.flags, h.state()), (8, FIN, State::LastAck));
    h.send(h.seg(5, 9)).quiet();
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Finished)));
    h.at(100);
    assert!(h.is_gone());
}

#[test]
fn a_fin_waits_for_what_is_missing() {
    let mut h = Solo::tcp_server(tcp());
    h.send(h.seg(4, 1).data(b"def").flags(FIN));
    assert_eq!((h.recv_numbers().1, h.state()), (1, State::Established));
    h.send(h.seg(1, 1).data(b"abc"));
    assert_eq!((h.recv_numbers().1, h.state()), (8, State::CloseWait));
    assert_eq!(h.read(), b"abcdef");
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut h = closing_first();
    h.at(1500);
    let (seq, _, s) = h.recv_numbers();
    assert_eq!((seq, s.flags, h.state()), (1, FIN, State::FinWait1));
}

#[test]
fn data_before_the_fin_is_sent_first() {
    let mut h = Solo::tcp_client(tcp());
    h.write(&[1; 1500]).finish();
    let lens: Vec<_> = h.sent.iter().map(|(_, p)| (p.segment.payload.len(), p.segment.flags.has(Flags::FIN))).collect();
    assert_eq!(lens, [(1000, false), (500, false), (0, true)]);
}

/// A connection in each synchronized state, with the number that the peer sends next.
fn in_every_state() -> Vec<(State, u64, Solo)> {
    let established = Solo::tcp_client(tcp());
    let fin_wait_1 = closing_first();
    let mut fin_wait_2 = closing_first();
    fin_wait_2.send(fin_wait_2.seg(1, 2));
    let mut close_wait = Solo::tcp_client(tcp());
    close_wait.send(close_wait.seg(1, 1).flags(FIN));
    let mut closing = closing_first();
    closing.send(closing.seg(1, 1).flags(FIN));
    let mut last_ack = Solo::tcp_client(tcp());
    last_ack.send(last_ack.seg(1, 1).flags(FIN)).finish();
    let mut time_wait = closing_first();
    time_wait.send(time_wait.seg(1, 2).flags(FIN));
    let mut all = vec![
        (State::Established, 1, established),
        (State::FinWait1, 1, fin_wait_1),
        (State::FinWait2, 1, fin_wait_2),
        (State::CloseWait, 2, close_wait),
        (State::Closing, 2, closing),
        (State::LastAck, 2, last_ack),
        (State::TimeWait, 2, time_wait),
    ];
    for (state, _, h) in &mut all {
        assert_eq!(h.state(), *state);
        h.clear();
    }
    all
}

#[test]
fn an_exact_reset_ends_every_state() {
    for (state, next, mut h) in in_every_state() {
        h.at(10);
        h.send(h.seg(next, 0).flags(RST)).quiet();
        let closed = h.events.iter().any(|e| matches!(e, ConnectionEvent::Closed(_)));
        assert!(closed, "{state:?}");
        h.at(20);
        assert!(h.is_gone(), "{state:?}");
    }
}

#[test]
fn a_blind_reset_is_challenged_in_every_state() {
    // RFC 5961 §3.2
    for (state, next, mut h) in in_every_state() {
        h.at(1000).clear();
        h.send(h.seg(next + 1, 0).flags(RST));
        let (_, ack, s) = h.recv_numbers();
        assert_eq!((ack, s.flags, h.state()), (next, Flags::ACK, state));
        assert!(h.log.violated(Violation::BlindReset));
        // §7: the next one is not, for a while
        h.send(h.seg(next + 2, 0).flags(RST)).quiet();
        // Outside the window: dropped without an answer.
        h.send(h.seg(next + (1 << 30), 0).flags(RST)).quiet();
        assert_eq!(h.state(), state);
    }
}

/// A peer whose data was lost resets where it stands itself: behind what was acknowledged selectively (Linux
/// `tcp_validate_incoming`). Anywhere else in the window it is challenged.
#[test]
fn a_reset_at_the_right_edge_of_the_sacked_data_is_the_peers() {
    for (at, accepted) in [(2001, true), (2000, false), (1001, false), (2002, false), (1, true)] {
        let mut h = Solo::tcp_server(tcp());
        h.send(h.seg(501, 1).data(&[1; 500]));
        h.send(h.seg(1501, 1).data(&[2; 500])).at(1000).clear();
        h.send(h.seg(at, 0).flags(RST)).at(1001);
        assert_eq!(h.is_gone(), accepted, "{at}");
    }
    // Without SACK nothing was acknowledged there.
    let mut h = Solo::tcp_server(Settings { tcp: TcpSettings { sack: false, ..tcp().tcp }, ..tcp() });
    h.send(h.seg(1501, 1).data(&[2; 500])).at(1000).clear();
    h.send(h.seg(2001, 0).flags(RST)).at(1001);
    assert!(!h.is_gone());
}

/// The challenge, or the reset that answers it, may be lost: an end with nothing to send asks again, and is not half-open for ever.
#[test]
fn a_challenge_that_nobody_answers_ends_in_time() {
    let mut h = Solo::tcp_server(tcp());
    h.send(h.seg(1, 1).data(b"first")).at(1000);
    h.read();
    h.clear();
    h.send(h.seg(17, 0).flags(RST));
    assert_eq!(h.recv_numbers().1, 6);
    h.clear().at(400_000);
    let probes: Vec<_> =
        h.sent.iter().filter(|(_, p)| !p.segment.flags.has(RST)).map(|(at, _)| at.as_secs_f64()).collect();
    assert_eq!(probes, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 203.0, 278.0]);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    assert!(h.is_gone());
}

#[test]
fn a_peer_that_answers_the_challenge_is_left_alone() {
    let mut h = Solo::tcp_server(tcp());
    h.send(h.seg(1, 1).data(b"first")).at(1000).clear();
    h.send(h.seg(17, 0).flags(RST)).at(2000);
    // It acknowledges the probe, which lies below its window (RFC 9293 §3.10.7.4).
    h.send(h.seg(6, 1)).clear();
    h.at(3_000_000).quiet();
    assert!(!h.is_gone());
}

/// Data that left before the reset, and comes late, is no answer to the challenge.
#[test]
fn what_left_before_a_reset_does_not_vouch_for_the_peer() {
    let mut h = Solo::tcp_server(tcp());
    h.send(h.seg(1, 1).data(b"first")).at(1000);
    h.read();
    h.send(h.seg(17, 0).flags(RST)).at(1100);
    h.send(h.seg(11, 1).data(b"third")).clear();
    h.at(400_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    assert!(h.is_gone());
}

#[test]
fn a_syn_is_challenged_in_every_state() {
    // RFC 5961 §4.2
    for (state, next, mut h) in in_every_state() {
        h.at(1000).clear();
        h.send(h.seg(next + 10, 1).flags(Flags::SYN));
        let (_, ack, s) = h.recv_numbers();
        assert_eq!((ack, s.flags, h.state()), (next, Flags::ACK, state));
        assert!(h.log.violated(Violation::BlindSyn));
    }
}

#[test]
fn an_unacceptable_segment_is_answered_in_every_state() {
    for (state, next, mut h) in in_every_state() {
        h.at(1000).clear();
        h.send(h.seg(next + (1 << 30), 1));
        let (_, ack, s) = h.recv_numbers();
        assert_eq!((ack, s.flags, h.state()), (next, Flags::ACK, state));
    }
}

#[test]
fn a_blind_acknowledgment_is_challenged() {
    // RFC 5961 §5.2
    let mut h = Solo::tcp_client(tcp());
    h.write(b"abc").clear();
    h.at(10);
    h.send(h.seg(1, 9));
    assert_eq!(h.recv().flags, Flags::ACK);
    assert!(h.log.violated(Violation::BlindAck));
    h.at(2000).clear();
    let ancient = h.seg(1, 0u64.wrapping_sub(200_000));
    h.send(ancient.data(b"evil"));
    assert_eq!(h.read(), b"");
    // The true one counts.
    h.send(h.seg(1, 4));
    assert_eq!(h.connection().unacknowledged(), 0);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut h = Solo::tcp_client(tcp());
    h.send(h.seg(1, 1).data(b"abc").flags(Flags(0))).quiet();
    assert_eq!(h.read(), b"");
}

#[test]
fn aborting_resets() {
    let mut h = Solo::tcp_client(tcp());
    h.write(b"abc").clear();
    h.app(|c, cx| c.abort(cx));
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags), (4, 1, Flags::RST | Flags::ACK));
    h.at(10);
    assert!(h.is_gone());
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Aborted)));
}
