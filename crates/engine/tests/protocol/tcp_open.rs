//! Opening (RFC 9293 §3.5, §3.10.7.2-3).

use crate::common::solo::{Build, Solo};
use crate::common::{at, tcp};
use anabranch_engine::connection::ConnectionEvent;
use anabranch_engine::{Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Event};
use anabranch_units::SeqNumber;
use anabranch_wire::Flags;

#[test]
fn a_client_opens() {
    let mut h = Solo::client(tcp());
    let syn = h.recv();
    assert_eq!((syn.flags, syn.ack, h.state()), (Flags::SYN, SeqNumber(0), State::SynSent));
    assert_eq!((syn.options.mss(), syn.options.sack_permitted()), (Some(1000), true));
    h.at(30);
    h.send(h.syn_ack(0));
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags), (1, 1, Flags::ACK));
    assert_eq!((h.state(), h.events.first()), (State::Established, Some(&ConnectionEvent::Established)));
    h.quiet();
}

#[test]
fn a_server_opens() {
    let mut h = Solo::server(tcp());
    h.send(h.syn(0));
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags, h.state()), (0, 1, Flags::SYN | Flags::ACK, State::SynReceived));
    h.at(20);
    h.send(h.seg(1, 1)).quiet();
    assert_eq!(h.state(), State::Established);
    assert!(h.events.contains(&ConnectionEvent::Established));
}

#[test]
fn both_open_at_once() {
    // RFC 9293 §3.5, figure 7
    let mut h = Solo::client(tcp());
    h.clear();
    h.at(5);
    h.send(h.syn(0).window(5000));
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags, h.state()), (0, 1, Flags::SYN | Flags::ACK, State::SynReceived));
    h.at(10);
    h.send(h.syn_ack(0).window(5000));
    assert_eq!(h.state(), State::Established);
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags), (1, 1, Flags::ACK));
    // The window came with the SYN.
    h.write(b"hello");
    assert_eq!(h.recv().payload, "hello");
}

#[test]
fn a_syn_is_repeated_and_given_up() {
    let mut h = Solo::client(Settings { tcp: TcpSettings { syn_retries: 2, ..tcp().tcp }, ..tcp() });
    h.at(20_000);
    let times: Vec<_> = h.sent.iter().map(|(at, p)| (*at, p.segment.flags)).collect();
    // RFC 6298 §2.1, §5.5: one second, doubled
    assert_eq!(times, [(at(0), Flags::SYN), (at(1000), Flags::SYN), (at(3000), Flags::SYN)]);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
}

#[test]
fn a_syn_ack_is_repeated() {
    let mut h = Solo::server(tcp());
    h.send(h.syn(0)).clear();
    h.at(1000);
    assert_eq!(h.recv().flags, Flags::SYN | Flags::ACK);
    // The peer's SYN again: at once.
    h.at(1500);
    h.send(h.syn(0));
    assert_eq!(h.recv().flags, Flags::SYN | Flags::ACK);
}

#[test]
fn a_syn_ack_for_a_repeated_syn_is_a_repetition() {
    let mut h = Solo::server(tcp());
    h.send(h.syn(0)).at(900);
    h.send(h.syn(0)).at(920);
    let flags = (Flags::SYN | Flags::ACK).0;
    let sent = |again| h.log.saw(Event::ControlSent { flags, again });
    assert!(sent(false) && sent(true));
    // It cannot be known which of them is acknowledged: no RTT (RFC 6298 §3), so that the timeout is the initial one.
    h.send(h.seg(1, 1)).clear();
    assert_eq!(h.connection().view().paths()[0].srtt, None);
}

#[test]
fn a_refused_connection_ends() {
    let mut h = Solo::client(tcp());
    h.clear();
    // Not acknowledging our SYN: a blind reset, ignored.
    h.send(h.seg(0, 5).flags(Flags::RST | Flags::ACK));
    assert_eq!(h.state(), State::SynSent);
    h.send(h.seg(0, 1).flags(Flags::RST | Flags::ACK));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Refused)));
    h.quiet();
}

#[test]
fn an_acknowledgment_of_nothing_is_reset() {
    // RFC 9293 §3.10.7.3: an old half-open connection at the peer
    let mut h = Solo::client(tcp());
    h.clear();
    h.send(h.seg(700, 300));
    let reset = h.recv();
    assert_eq!((reset.flags, h.numbers(0, &reset).0), (Flags::RST, 300));
    assert_eq!(h.state(), State::SynSent);
    // §3.10.7.4, SYN-RECEIVED
    let mut h = Solo::server(tcp());
    h.send(h.syn(0)).clear();
    h.send(h.seg(1, 50));
    let reset = h.recv();
    assert_eq!((reset.flags, h.numbers(0, &reset).0), (Flags::RST, 50));
    assert_eq!(h.state(), State::SynReceived);
}

#[test]
fn an_unacceptable_segment_does_not_establish() {
    let mut h = Solo::server(tcp());
    h.send(h.syn(0)).clear();
    h.send(h.seg(u64::from(u32::MAX / 3), 1));
    assert_eq!(h.state(), State::SynReceived);
    h.send(h.seg(1, 1));
    assert_eq!(h.state(), State::Established);
}

#[test]
fn a_lost_third_ack_is_sent_again() {
    let mut h = Solo::tcp_client(tcp());
    h.at(1000);
    h.send(h.syn_ack(0));
    let (seq, ack, s) = h.recv_numbers();
    assert_eq!((seq, ack, s.flags), (1, 1, Flags::ACK));
    h.quiet();
}

#[test]
fn nobody_listens() {
    let mut h = Solo::server(tcp());
    let mut syn = h.syn(0);
    syn.dst_port = 81;
    h.send(syn);
    let (_, ack, s) = h.recv_numbers();
    assert_eq!((s.seq, ack, s.flags), (SeqNumber(0), 1, Flags::RST | Flags::ACK));
    // A stray acknowledgment, a stray reset.
    let stray = h.seg(10, 0);
    h.send(stray.clone());
    let s = h.recv();
    assert_eq!((s.seq, s.flags), (stray.ack, Flags::RST));
    h.send(stray.flags(Flags::RST)).quiet();
}

#[test]
fn windows_are_scaled_after_the_syn_only() {
    let mut h = Solo::client(Settings { recv_buffer: 1 << 20, ..tcp() });
    let syn = h.recv();
    assert_eq!((syn.window, syn.options.window_scale()), (0xffff, Some(5)));
    let mut answer = h.syn_ack(0).window(3000);
    answer.options.set_window_scale(2);
    h.send(answer);
    assert_eq!(h.recv().window, (1u32 << 15) as u16);
    // RFC 7323 §2.2: 3000 bytes, not 12000
    h.write(&[7; 5000]);
    assert_eq!(h.sent.len(), 3);
    h.clear();
    h.send(h.seg(1, 3001).window(1000));
    assert_eq!(h.sent.len(), 2);
}

#[test]
fn a_peer_without_scaling_gets_none() {
    let mut h = Solo::client(Settings { recv_buffer: 1 << 20, ..tcp() });
    h.clear();
    h.send(h.syn_ack(0));
    assert_eq!(h.recv().window, 0xffff);
}

#[test]
fn segments_fit_the_peers_mss() {
    for (option, expected) in [(Some(600), 600), (None, 536), (Some(0), 8)] {
        let mut h = Solo::client(tcp());
        h.clear();
        let mut answer = h.seg(0, 1).flags(Flags::SYN | Flags::ACK);
        if let Some(mss) = option {
            answer.options.set_mss(mss);
        }
        h.send(answer).clear();
        h.write(&[1; 2000]);
        assert_eq!(h.recv().payload.len(), expected);
    }
}
