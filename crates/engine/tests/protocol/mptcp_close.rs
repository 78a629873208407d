//! DATA_FIN (RFC 8684 §3.3.3), MP_FASTCLOSE (§3.5), MP_TCPRST (§3.6), and subflows that come and go.

use crate::common::pair::{Fate, Pair, over};
use crate::common::solo::{Build, Solo, dss};
use crate::common::{at, client_paths, host, pattern, plain_stamps, setup};
use anabranch_engine::connection::ConnectionEvent;
use anabranch_engine::{Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::{DataAck, Flags, MptcpOption, Reason};
use std::cell::RefCell;
use std::rc::Rc;

const FIN: Flags = Flags(0x11);

fn data_acked(s: &anabranch_wire::Segment) -> Option<DataAck> {
    dss(s).ack
}

#[test]
fn a_data_fin_by_itself_is_acknowledged() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).dss(h.data_fin(0, 0)));
    assert_eq!(data_acked(&h.recv()), Some(DataAck::Long(Solo::peer_number(1))));
    assert!(h.events.contains(&ConnectionEvent::Readable) && h.connection().read_finished());
    // It ends the peer's direction only.
    assert_eq!(h.state(), State::Established);
    h.write(b"bye");
    assert_eq!(h.recv().payload, "bye");
}

#[test]
fn a_data_fin_may_come_with_data_and_before_it() {
    let mut h = Solo::open_server(plain_stamps());
    // The second half, with the end of the stream, comes first.
    let mut second = h.mapped(0, 5, 6, 6);
    second.data_fin = true;
    h.send(h.seg(6, 1).data(b"world").dss(second));
    assert!(!h.connection().read_finished());
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    assert_eq!(h.read(), b"helloworld");
    assert!(h.connection().read_finished());
    let last = h.sent.back().expect("an acknowledgment").1.segment.clone();
    assert_eq!(data_acked(&last), Some(DataAck::Long(Solo::peer_number(11))));
}

#[test]
fn a_data_fin_does_not_move() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
    h.send(h.seg(6, 1).dss(h.data_fin(0, 5)));
    h.send(h.seg(6, 1).dss(h.data_fin(0, 5)));
    assert!(!h.log.violated(Violation::DataFinMoved));
    h.send(h.seg(6, 1).dss(h.data_fin(0, 9)));
    assert!(h.log.violated(Violation::DataFinMoved));
    assert_eq!(h.read(), b"hello");
    assert!(h.connection().read_finished());
    // Nor does it come before what was received, or beyond the window.
    for offset in [2, 1 << 40] {
        let mut h = Solo::open_server(plain_stamps());
        h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)));
        h.send(h.seg(6, 1).dss(h.data_fin(0, offset)));
        assert!(h.log.violated(Violation::DataFinMoved));
        assert!(!h.connection().read_finished());
    }
}

#[test]
fn we_end_the_stream() {
    let mut h = Solo::open_server(plain_stamps());
    h.write(b"hello").finish();
    h.clear();
    let s = h.clear();
    s.send(s.seg(1, 6).dss(s.data_ack(5)));
    // The end goes out as soon as it may, and again until it is acknowledged.
    let end = h.recv();
    assert!(dss(&end).data_fin && end.payload.is_empty());
    h.at(2000);
    assert!(h.sent.iter().any(|(_, p)| p.segment.options.dss().is_some_and(|d| d.data_fin)));
    h.clear();
    h.send(h.seg(1, 6).dss(h.data_fin(6, 0)));
    // Both streams are over: now the subflow.
    let flags: Vec<_> = h.sent.iter().map(|(_, p)| p.segment.flags).collect();
    assert!(flags.contains(&FIN), "{flags:?}");
    h.clear();
    h.send(h.seg(1, 7).flags(FIN).dss(h.data_ack(6)));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Finished)));
    h.at(70_000);
    assert!(h.is_gone());
    assert_eq!(h.endpoint.poll_timeout(), None);
}

#[test]
fn a_stream_without_data_ends_before_the_peer_has_spoken() {
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0).with(Solo::capable(Some(crate::common::solo::PEER_KEY), None))).clear();
    h.finish();
    let end = dss(&h.recv());
    assert!(end.data_fin);
    assert_eq!(end.mapping.map(|m| h.our_offset(m.data_seq)), Some(0));
    h.quiet();
}

#[test]
fn a_data_fin_that_comes_before_the_keys_is_repeated_with_them() {
    // The third ACK is lost. The server takes no DSS before it has the client's key (RFC 8684 §3.1).
    let mut h = Solo::client(plain_stamps());
    h.send(h.syn_ack(0).with(Solo::capable(Some(crate::common::solo::PEER_KEY), None))).clear();
    h.finish().clear();
    h.at(2000);
    let keys = |s: &anabranch_wire::Segment| s.options.mptcp().iter().any(|o| matches!(o, MptcpOption::Capable(_)));
    assert!(h.sent.iter().any(|(_, p)| keys(&p.segment)));
    assert!(h.sent.iter().any(|(_, p)| p.segment.options.dss().is_some_and(|d| d.data_fin)));
}

#[test]
fn a_data_fin_that_is_never_acknowledged_is_given_up() {
    let tcp = TcpSettings { retries: 3, ..plain_stamps().tcp };
    let mut h = Solo::open_server(Settings { tcp, ..plain_stamps() });
    h.finish().clear();
    h.at(600_000);
    let repeats = h.sent.iter().filter(|(_, p)| p.segment.options.dss().is_some_and(|dss| dss.data_fin)).count();
    assert_eq!(repeats, 3);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    assert!(h.is_gone());
}

#[test]
fn a_peer_that_never_sends_its_last_fin_is_not_waited_for() {
    let mut h = Solo::open_server(plain_stamps());
    h.finish().clear();
    h.send(h.seg(1, 1).dss(h.data_fin(1, 0)));
    h.send(h.seg(1, 2).dss(h.data_ack(1)));
    assert_eq!(h.state(), State::FinWait2);
    h.at(61_000);
    assert!(h.is_gone());
}

#[test]
fn both_streams_may_end_at_once() {
    // The DATA_FINs cross, then the FINs.
    let mut h = Solo::open_server(plain_stamps());
    h.app(|c, cx| {
        c.write(cx, pattern(0, 4));
        c.finish(cx);
    });
    let sent = dss(&h.recv());
    assert!(sent.data_fin && sent.mapping.is_some_and(|m| m.len == 5));
    let mut theirs = h.mapped(0, 0, 1, 7);
    theirs.data_fin = true;
    h.send(h.seg(1, 1).data(b"theirs").dss(theirs));
    assert_eq!(data_acked(&h.recv()), Some(DataAck::Long(Solo::peer_number(7))));
    h.send(h.seg(7, 5).dss(h.data_ack(5)));
    let fin = h.recv();
    assert_eq!((fin.flags, h.numbers(0, &fin), h.state()), (FIN, (5, 7), State::FinWait1));
    h.send(h.seg(7, 5).flags(FIN).dss(h.data_ack(5)));
    assert_eq!(h.state(), State::Closing);
    h.send(h.seg(8, 6).dss(h.data_ack(5)));
    assert_eq!((h.read(), h.state()), (b"theirs".to_vec(), State::TimeWait));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Finished)));
    // In time, over any paths, whatever single packet is lost.
    for paths in 1..=3 {
        for lost in 0..30 {
            let mut pair = Pair::new(paths, plain_stamps(), plain_stamps());
            let mut seen = 0;
            pair.delays = [10; 4].map(Duration::from_millis);
            pair.hook = Box::new(move |now, _, _, _| {
                seen += u32::from(now >= at(200));
                if seen == lost && lost > 0 { Fate::Drop } else { Fate::Pass }
            });
            pair.run(at(200));
            for side in [Side::Client, Side::Server] {
                pair.act(side, |c, cx| c.finish(cx));
            }
            pair.run(at(200_000));
            let finished = Some(CloseReason::Finished);
            assert_eq!((pair.client.closed(), pair.server.closed()), (finished, finished), "{paths} paths, {lost}");
        }
    }
}

#[test]
fn a_reset_in_each_state_ends_what_it_must() {
    let rst = |h: &Solo, seq, ack| h.seg(seq, ack).flags(Flags::RST);
    let closed =
        |h: &Solo| h.events.iter().find_map(|e| if let ConnectionEvent::Closed(why) = e { Some(*why) } else { None });
    // SYN-SENT and SYN-RECEIVED
    let mut h = Solo::client(plain_stamps());
    h.send(h.seg(0, 1).flags(Flags::RST | Flags::ACK));
    assert_eq!(closed(&h), Some(CloseReason::Refused));
    let mut h = Solo::server(plain_stamps());
    h.send(h.syn(0).with(Solo::capable(None, None)));
    h.send(rst(&h, 1, 1));
    assert_eq!(closed(&h), Some(CloseReason::Refused));
    // ESTABLISHED: the connection waits for another subflow (RFC 8684 §3.3.3).
    let mut h = Solo::open_server(plain_stamps());
    h.send(rst(&h, 1, 1));
    assert_eq!((h.state(), closed(&h)), (State::Closed, None));
    // Both streams are over: nothing is missing any more, whichever state the FINs have reached.
    for step in 0..4 {
        let mut h = Solo::open_server(plain_stamps());
        h.finish();
        h.send(h.seg(1, 1).dss(h.data_fin(1, 0)));
        let expected = [State::FinWait1, State::FinWait2, State::Closing, State::TimeWait][step];
        if step & 1 == 1 {
            h.send(h.seg(1, 2).dss(h.data_ack(1)));
        }
        if step >= 2 {
            h.send(h.seg(1, if step == 2 { 1 } else { 2 }).flags(FIN).dss(h.data_ack(1)));
        }
        assert_eq!(h.state(), expected);
        h.send(rst(&h, if step >= 2 { 2 } else { 1 }, 1));
        assert_eq!(closed(&h), Some(CloseReason::Finished), "{expected:?}");
        assert!(h.at(1).is_gone(), "{expected:?}");
    }
    // The peer's stream is not over: it may continue over another subflow.
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).flags(FIN).dss(h.data_ack(0)));
    assert_eq!(h.state(), State::CloseWait);
    h.send(rst(&h, 2, 1));
    assert_eq!((h.state(), closed(&h)), (State::Closed, None));
}

#[test]
fn after_the_peers_end_its_subflow_carries_the_answer() {
    // RFC 8684 §3.3.3: the peer's DATA_FIN, then its FIN. What is written before and afterwards leaves all the same.
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).data(b"question").dss(h.mapped(0, 0, 1, 8)));
    h.send(h.seg(9, 1).dss(h.data_fin(0, 8)));
    h.write(&pattern(0, 3000)).clear();
    h.send(h.seg(9, 1).flags(FIN).dss(h.data_ack(0)));
    assert_eq!((h.state(), h.recv().flags), (State::CloseWait, Flags::ACK));
    h.send(h.seg(10, 3001).dss(h.data_ack(3000))).clear();
    h.write(&pattern(3000, 2000));
    let payload: usize = h.sent.iter().map(|(_, p)| p.segment.payload.len()).sum();
    assert_eq!(payload, 2000);
    assert!(h.sent.iter().all(|(_, p)| !p.segment.flags.has(Flags::FIN)));
    h.finish();
    h.send(h.seg(10, 5001).dss(h.data_ack(5000))).clear();
    h.at(1000);
    assert!(h.sent.iter().any(|(_, p)| p.segment.options.dss().is_some_and(|d| d.data_fin)));
    h.clear();
    h.send(h.seg(10, 5001).dss(h.data_ack(5001)));
    assert_eq!((h.state(), h.recv().flags), (State::LastAck, FIN));
    h.send(h.seg(10, 5002).dss(h.data_ack(5001)));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Finished)));
}

#[test]
fn a_half_closed_subflow_is_kept_only_where_no_other_is_open() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).flags(FIN).dss(h.data_ack(0)));
    assert_eq!(h.state(), State::CloseWait);
    h.at(59_000).write(&[1; 500]);
    assert_eq!(h.sent.back().map(|(_, p)| p.segment.payload.len()), Some(500));
    h.send(h.seg(2, 501).dss(h.data_ack(500))).clear();
    h.join(1);
    assert_eq!((h.state(), h.state_of(1)), (State::LastAck, State::Established));
    // Nothing can come any more, and no DATA_FIN came: it ends after a timeout.
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).flags(FIN).dss(h.data_ack(0)));
    h.at(59_000);
    assert!(h.events.iter().all(|e| !matches!(e, ConnectionEvent::Closed(_))));
    h.at(61_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    assert!(h.is_gone());
}

#[test]
fn a_peer_that_does_not_read_for_long_is_asked_and_waited_for() {
    for paths in [1, 2] {
        let small = Settings { recv_buffer: 20_000, ..plain_stamps() };
        let mut pair = Pair::new(paths, small, plain_stamps());
        pair.client.reads = false;
        pair.write(Side::Server, pattern(0, 500_000), true).run(at(3_600_000));
        assert_eq!((pair.client.closed(), pair.server.closed()), (None, None));
        // An hour of a closed window costs some probes, no more than two a minute and subflow and their answers.
        assert!(pair.packets < 800, "{} packets", pair.packets);
        pair.client.reads = true;
        pair.run(at(3_800_000));
        assert!(pair.client.got == pattern(0, 500_000), "{} bytes", pair.client.got.len());
        assert_eq!(pair.server.closed(), Some(CloseReason::Finished));
    }
}

#[test]
fn a_join_that_is_half_open_is_not_waited_for() {
    let over = ConnectionEvent::Closed(CloseReason::Finished);
    // A server whose peer sends the third ACK of its join too late: a reset shows that there is nothing to join any more.
    let mut h = Solo::open_server(plain_stamps());
    h.send_on(1, h.syn(1).with(h.join_syn(1)));
    let nonce = Solo::nonce_of(&h.recv());
    h.finish().clear();
    h.send(h.seg(1, 1).dss(h.data_fin(1, 0)));
    h.send(h.seg(1, 2).flags(FIN).dss(h.data_ack(1))).clear();
    assert!(h.events.contains(&over));
    h.send_on(1, h.seg_on(1, 1, 1).with(h.join_ack(1, nonce)));
    assert_eq!((h.recv().flags, h.connection().subflows().count()), (Flags::RST, 1));
    // For one that never sends it the SYN/ACK is not retransmitted.
    h.at(200_000).quiet();
    // A client whose joining SYN is not answered.
    let mut h = Solo::open_client(setup(plain_stamps(), client_paths(2)));
    h.at(1);
    assert_eq!(h.state_of(1), State::SynSent);
    h.finish().clear();
    h.send(h.seg(1, 1).dss(h.data_fin(1, 0)));
    assert_eq!(h.state_of(1), State::Closed);
    h.send(h.seg(1, 2).flags(FIN).dss(h.data_ack(1)));
    assert!(h.events.contains(&over) && h.sent.iter().all(|(_, p)| p.src == host(0, 1)));
}

#[test]
fn the_streams_end_survives_any_single_loss() {
    for n in 0..40 {
        let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
        let mut seen = 0;
        pair.hook = Box::new(move |_, _, _, _| {
            seen += 1;
            if seen == n + 1 { Fate::Drop } else { Fate::Pass }
        });
        pair.write(Side::Server, pattern(0, 8000), true).write(Side::Client, pattern(0, 500), true).run(at(200_000));
        assert_eq!((pair.client.got.len(), pair.server.got.len()), (8000, 500), "packet {n} lost");
        let closed = Some(CloseReason::Finished);
        assert_eq!((pair.client.closed(), pair.server.closed()), (closed, closed), "packet {n} lost");
        assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty(), "packet {n} lost");
    }
}

#[test]
fn fast_close_ends_it_at_once() {
    // RFC 8684 §3.5, with RST and with ACK; a wrong key is ignored.
    for flags in [Flags::ACK, Flags::RST] {
        let mut h = Solo::open_server(plain_stamps());
        h.join(1).clear();
        let wrong = MptcpOption::FastClose { receiver_key: h.key ^ 1 };
        h.send(h.seg(1, 1).dss(h.data_ack(0)).with(wrong));
        assert!(h.log.violated(Violation::WrongKey));
        assert_eq!(h.state(), State::Established);
        h.clear();
        let close = MptcpOption::FastClose { receiver_key: h.key };
        h.send(h.seg(1, 1).flags(flags).with(close));
        assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::ResetByPeer)));
        let resets = h.sent.iter().filter(|(_, p)| p.segment.flags.has(Flags::RST)).count();
        assert_eq!(resets, if flags == Flags::RST { 1 } else { 2 });
        h.at(1);
        assert!(h.is_gone());
    }
}

#[test]
fn aborting_says_so_on_every_subflow() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.app(|c, cx| c.abort(cx));
    assert_eq!(h.sent.len(), 2);
    let key = crate::common::solo::PEER_KEY;
    for (_, p) in &h.sent {
        assert!(p.segment.flags.has(Flags::RST));
        assert!(p.segment.options.mptcp().contains(&MptcpOption::FastClose { receiver_key: key }));
    }
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    pair.write(Side::Server, pattern(0, 1_000_000), true).run(at(200));
    pair.act(Side::Client, |c, cx| c.abort(cx));
    pair.run(at(400));
    assert_eq!(pair.client.closed(), Some(CloseReason::Aborted));
    assert_eq!(pair.server.closed(), Some(CloseReason::ResetByPeer));
    assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
}

#[test]
fn a_reset_subflow_leaves_the_others() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.write(&pattern(0, 3000)).clear();
    let why = MptcpOption::TcpRst(Reason { code: 2, transient: true });
    h.send(h.seg(1, 1).flags(Flags::RST).with(why));
    // Its data leaves on the other.
    let rescued: usize = h.sent.iter().map(|(_, p)| p.segment.payload.len()).sum();
    assert_eq!(rescued, 3000);
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Closed, State::Established));
}

#[test]
fn a_peers_fin_in_the_middle_ends_only_its_subflow() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.send(h.seg(1, 1).data(b"hello").dss(h.mapped(0, 0, 1, 5)).flags(FIN));
    // Answered in kind.
    let last = h.sent.back().expect("an answer").1.segment.clone();
    assert_eq!((last.flags, h.numbers(0, &last)), (FIN, (1, 7)));
    h.send(h.seg(7, 2).dss(h.data_ack(0)));
    assert_eq!((h.state_of(0), h.state_of(1)), (State::Closed, State::Established));
    assert!(!h.connection().read_finished());
    h.send_on(1, h.seg_on(1, 1, 1).data(b" world").dss(h.mapped(0, 5, 1, 6)));
    assert_eq!(h.read(), b"hello world");
}

#[test]
fn an_orphan_waits_for_a_join_and_then_ends() {
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).flags(Flags::RST)).clear();
    h.at(30_000);
    h.join(1);
    assert_eq!(h.state_of(1), State::Established);
    h.send_on(1, h.seg_on(1, 1, 1).flags(Flags::RST));
    h.at(89_000);
    assert!(!h.is_gone());
    h.at(91_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    h.at(91_001);
    assert!(h.is_gone());
}

#[test]
fn attempts_in_vain_do_not_keep_an_orphan_alive() {
    let mut h = Solo::open_client(setup(plain_stamps(), client_paths(1)));
    h.send(h.seg(1, 1).flags(Flags::RST)).clear();
    h.at(59_000);
    assert!(!h.sent.is_empty(), "it tries to join again");
    h.at(61_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    h.at(300_000);
    assert!(h.is_gone());
}

/// A transfer of which nothing arrives from one second on, for so many seconds.
fn silenced_for(secs: u64, orphan_timeout: Duration) -> Pair {
    let tcp = TcpSettings { rto_max: Duration::from_secs(2), ..plain_stamps().tcp };
    let settings = Settings { orphan_timeout, tcp, send_buffer: 100_000, ..plain_stamps() };
    let mut pair = Pair::new(2, settings.clone(), settings);
    let silence = at(1_000)..at(1_000 + 1_000 * secs);
    pair.hook = Box::new(move |now, _, _, _| if silence.contains(&now) { Fate::Drop } else { Fate::Pass });
    pair.write(Side::Client, pattern(0, 20_000_000), true).run(at(1_000 * secs + 600_000));
    pair
}

#[test]
fn all_paths_may_be_gone_for_as_long_as_the_setting_says() {
    let minute = Settings::default().orphan_timeout;
    for (secs, timeout) in [(50, minute), (300, Duration::from_secs(600))] {
        let mut pair = silenced_for(secs, timeout);
        assert_eq!(pair.client.closed(), Some(CloseReason::Finished), "{secs} s");
        assert_eq!(pair.party(Side::Server).got.len(), 20_000_000);
    }
    // A computer that sleeps for ten minutes.
    assert_eq!(silenced_for(600, minute).client.closed(), Some(CloseReason::TimedOut));
}

#[test]
fn all_subflows_lost_are_joined_again() {
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    pair.hook = Box::new(|now, side, _, p| {
        // A middlebox resets whatever the server sends between 300 and 360 ms.
        if side == Side::Server && now > at(300) && now < at(360) {
            let mut reset = p.clone();
            reset.segment.flags = Flags::RST;
            reset.segment.payload = bytes::Bytes::new();
            reset.segment.options = anabranch_wire::Options::new();
            return Fate::Become(vec![reset]);
        }
        Fate::Pass
    });
    pair.write(Side::Client, pattern(0, 3_000_000), true).run(at(120_000));
    let dead = pair.client.log.0.iter().filter(|(_, e)| *e == Event::Path(PathState::Dead)).count();
    assert!(dead >= 2, "{dead}");
    assert!(pair.server.got == pattern(0, 3_000_000), "{} bytes", pair.server.got.len());
    assert_eq!(pair.client.closed(), Some(CloseReason::Finished));
}

/// Path events and timeouts of one side, to be read when something went wrong.
fn story(log: &crate::common::Log) -> String {
    let events = log.0.iter().filter(|(_, e)| matches!(e, Event::Path(_) | Event::Timeout { .. }));
    events.map(|(now, e)| format!("{now} {e:?}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_path_that_comes_back_is_used_again_soon() {
    for writer in [Side::Server, Side::Client] {
        for outage in [700, 3_000, 20_000, 100_000] {
            let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
            let back = at(1_000 + outage);
            pair.hook = Box::new(
                move |now, _, path, _| {
                    if path == 1 && now >= at(1_000) && now < back { Fate::Drop } else { Fate::Pass }
                },
            );
            pair.client.polite = false;
            pair.server.polite = false;
            pair.write(writer, pattern(0, 90_000_000), true).run(back + Duration::from_secs(30));
            let log = &pair.party(writer).log;
            let mut established = log.0.iter().filter(|(_, e)| *e == Event::Path(PathState::Established));
            let again = established.find(|(now, _)| *now >= back).map(|(now, _)| now.since(back).as_millis());
            // While the subflow lives: one capped timeout and a round trip. A client that gave it up joins again: at
            // most 4 s left of an attempt and 16 s until the next.
            let gave_up = log.saw(Event::Path(PathState::Dead));
            assert_eq!(gave_up, writer == Side::Client && outage > 30_000);
            let bound = if gave_up { 20_200 } else { 2_100 };
            assert!(
                again.is_some_and(|late| late <= bound),
                "{outage} ms, {writer:?} writes: {again:?}; {}",
                story(log)
            );
            let path = pair.party(writer).connection().expect("open").view().path(PathId(1)).copied();
            assert!(path.is_some_and(|p| p.usable));
        }
    }
}

/// Resets: when, and what for.
type Resets = Vec<(Instant, Option<Reason>)>;

/// A client sends for a while over two paths, of which the second is silent from half a second on, and both finish. Returns
/// the pair after `seconds`, and what the client said with resets over that path and when.
fn ends_with_a_silent_path(seconds: u64, both: bool) -> (Pair, Resets) {
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    let resets: Rc<RefCell<Resets>> = Rc::default();
    let log = resets.clone();
    pair.hook = Box::new(move |now, side, path, p| {
        if side == Side::Client && path == 1 && p.segment.flags.has(Flags::RST) {
            let reason = p.segment.options.mptcp().iter().find_map(|o| match o {
                MptcpOption::TcpRst(reason) => Some(*reason),
                _ => None,
            });
            log.borrow_mut().push((now, reason));
        }
        if (path == 1 || both) && now >= at(500) { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 3_000_000), true);
    pair.run(at(seconds * 1000));
    let resets = resets.borrow().clone();
    (pair, resets)
}

#[test]
fn a_silent_subflow_does_not_keep_an_ended_connection_open() {
    let (pair, resets) = ends_with_a_silent_path(20, false);
    assert_eq!(pair.server.got.len(), 3_000_000);
    assert_eq!(
        (pair.client.closed(), pair.server.closed()),
        (Some(CloseReason::Finished), Some(CloseReason::Finished))
    );
    let ended = |e: &Event| *e == Event::Closed(CloseReason::Finished);
    let (over, _) = pair.client.log.0.iter().find(|(_, e)| ended(e)).expect("an end");
    // RFC 8684 §3.3.3, §3.6: too much outstanding data
    let [(reset, Some(Reason { code: 4, transient: false }))] = resets[..] else { panic!("{resets:?}") };
    assert_eq!(reset, *over);
    // Not before its FIN had a second to be answered in.
    let last = |e: &Event| matches!(e, Event::DataAcked(3_000_000));
    let (acked, _) = pair.client.log.0.iter().find(|(_, e)| last(e)).expect("all data");
    assert!((1000..1100).contains(&reset.since(*acked).as_millis()), "{}", reset.since(*acked));
}

/// As a Linux peer closes: its FIN follows its DATA_FIN, while our stream still runs.
#[test]
fn nor_does_it_where_the_peers_fin_came_before_our_streams_end() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.write(&pattern(0, 30_000));
    // Path 1 is silent: what it carried goes out again over path 0, which acknowledges.
    let mut next = 1;
    for n in 1..30 {
        let sent: Vec<_> = h.sent.drain(..).filter(|(_, p)| over(p, 0)).map(|(_, p)| p.segment).collect();
        let ends = sent.iter().map(|s| h.numbers(0, s).0 + s.payload.len() as u64);
        next = ends.fold(next, u64::max);
        h.send(h.seg(1, next).dss(h.data_ack(0)));
        h.at(100 * n);
    }
    h.send(h.seg(1, next).dss(h.data_ack(30_000)));
    h.send(h.seg(1, next).dss(h.data_fin(30_000, 0)));
    h.send(h.seg(1, next).flags(FIN).dss(h.data_ack(30_000)));
    assert_eq!((h.state(), h.state_of(1)), (State::CloseWait, State::Established));
    h.finish().clear();
    h.send(h.seg(2, next).dss(h.data_ack(30_001))).clear();
    h.at(3800);
    assert!(h.sent.iter().all(|(_, p)| !p.segment.flags.has(Flags::RST)));
    h.at(8000);
    let resets = h.sent.iter().filter(|(_, p)| over(p, 1) && p.segment.flags.has(Flags::RST));
    assert_eq!(resets.count(), 1);
    h.send(h.seg(2, next + 1).dss(h.data_ack(30_001)));
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::Finished)));
}

#[test]
fn where_all_paths_are_silent_none_is_given_up_early() {
    let (pair, resets) = ends_with_a_silent_path(20, true);
    assert_eq!((pair.client.closed(), resets.len()), (None, 0));
}

#[test]
fn a_data_fin_that_data_had_passed_is_refused() {
    // RFC 8684 §3.3.3: the DATA_FIN is the end of the stream. (The subflow's own FIN is refused if bytes beyond it are held:
    // `Receiver::note_fin`.)
    let mut h = Solo::open_server(plain_stamps());
    h.send(h.seg(1, 1).dss(h.mapped(0, 400, 1, 1000)).data(&pattern(400, 1000)));
    h.send(h.seg(1001, 1).dss(h.data_fin(0, 500)));
    h.send(h.seg(1001, 1).dss(h.mapped(0, 0, 1001, 400)).data(&pattern(0, 400)));
    let read = h.read().len();
    // The DATA_FIN is refused, because data beyond it had come: the stream continues.
    assert!(read == 1400 && h.log.violated(Violation::DataFinMoved), "{read} bytes");
    assert!(!h.connection().read_finished());
}
