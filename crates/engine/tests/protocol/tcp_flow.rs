//! Windows, acknowledgments, timestamps and SACK (RFC 9293 §3.8, RFC 7323, RFC 2018, RFC 2883).

use crate::common::solo::{Build, Solo};
use crate::common::{at, ms, pattern, plain_stamps, setup, tcp};
use anabranch_engine::congestion::{Acked, CongestionControl, Loss, Window};
use anabranch_engine::connection::{ConnectionEvent, Setup};
use anabranch_engine::schedule::PathView;
use anabranch_engine::{LimitedDecay, Settings, State, TcpSettings};
use anabranch_trace::{CloseReason, Event, Violation};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use anabranch_wire::{Flags, SackBlock, Segment, Timestamps};

fn payloads(h: &Solo) -> Vec<usize> {
    h.sent.iter().map(|(_, p)| p.segment.payload.len()).collect()
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut h = Solo::client(tcp());
    h.send(h.syn_ack(0).window(3000));
    h.write(&[1; 3000]).clear();
    h.send(h.seg(1, 3001).window(0));
    h.write(&[2; 1000]).quiet();
    h.at(100_000);
    // RFC 9293 §3.8.6.1: after a timeout, then ever more seldom; just below what is expected, so it must be answered
    let times: Vec<_> = h.sent.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
    assert!(times.len() >= 6 && times[0] <= 1000, "{times:?}");
    let gaps: Vec<_> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.windows(2).all(|g| g[1] >= g[0]) && gaps.iter().all(|g| *g <= 60_000), "{gaps:?}");
    let probe = h.recv();
    assert_eq!((h.numbers(0, &probe).0, probe.payload.len()), (3000, 0));
    // Still closed: probing continues. Open: data flows at once.
    h.clear();
    h.send(h.seg(1, 3001).window(0)).quiet();
    h.send(h.seg(1, 3001).window(2000));
    assert_eq!(payloads(&h), [1000]);
}

#[test]
fn an_unanswered_probe_is_given_up_and_an_answered_one_is_not() {
    let settings = Settings { tcp: TcpSettings { retries: 4, ..tcp().tcp }, ..tcp() };
    for answers in [true, false] {
        let mut h = Solo::client(settings.clone());
        h.send(h.syn_ack(0).window(1000));
        h.write(&[1; 1000]).clear();
        h.send(h.seg(1, 1001).window(0));
        h.write(&[2; 1000]);
        for second in 1..600 {
            h.at(second * 1000);
            if answers && !h.sent.is_empty() {
                h.clear();
                h.send(h.seg(1, 1001).window(0));
            }
        }
        let ended = h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut));
        assert_eq!(ended, !answers);
    }
}

#[test]
fn a_window_smaller_than_a_segment_is_used() {
    // RFC 9293 §3.8.6.2.1: half the largest window the peer ever offered is worth sending
    let mut h = Solo::client(tcp());
    h.send(h.syn_ack(0).window(600)).clear();
    h.write(&[1; 2000]);
    assert_eq!(payloads(&h).iter().sum::<usize>(), 600);
    let sent = h.sent.len();
    assert!(sent <= 2);
    h.clear();
    h.send(h.seg(1, 601).window(600));
    assert_eq!(payloads(&h).iter().sum::<usize>(), 600);
}

#[test]
fn a_slow_readers_window_is_honest() {
    // With scaling, so that the field is rounded; one byte at a time, which rounding must not turn into promises.
    let mut h = Solo::server(Settings { recv_buffer: 1 << 20, ..tcp() });
    let mut syn = h.syn(0);
    syn.options.set_window_scale(0);
    h.send(syn).clear();
    h.send(h.seg(1, 1));
    let mut edge = 0;
    let mut at = 1;
    for len in [1000u64; 1200].into_iter().chain([1; 2000]) {
        h.clear();
        h.send(h.seg(at, 1).data(&pattern(at, len as usize)));
        h.at(h.now.as_nanos() / 1_000_000 + 50);
        let Some((_, p)) = h.sent.back() else { continue };
        let (_, ack) = h.numbers(0, &p.segment);
        let now = ack + (u64::from(p.segment.window) << 5);
        // RFC 7323 §2.4: it may waver by less than a unit, no more.
        assert!(now + 32 > edge, "shrunk from {edge} to {now}");
        assert!(now <= 1 + (1 << 20), "more than the buffer: {now}");
        edge = edge.max(now);
        at = ack;
    }
    assert!(at > (1 << 20) - 1000, "the whole window was usable: {at}");
    assert!(at <= 1 + (1 << 20), "no more than the buffer was taken: {at}");
    // Reading opens it, and an acknowledgment announces it at once.
    h.clear();
    assert_eq!(h.read().len() as u64, at - 1);
    assert!(u64::from(h.recv().window) << 5 >= 1 << 19);
}

#[test]
fn small_reads_do_not_make_small_windows() {
    // RFC 9293 §3.8.6.2.2
    let mut h = Solo::tcp_server(Settings { recv_buffer: 8000, ..tcp() });
    for n in 0..8 {
        h.send(h.seg(1 + n * 1000, 1).data(&pattern(n * 1000, 1000)));
    }
    assert_eq!(h.sent.back().map(|(_, p)| p.segment.window), Some(0));
    h.clear();
    // A segment opens it; then half of the buffer must be free.
    let len = h.app(|c, cx| c.read(cx).map(|b| b.len()));
    assert_eq!((len, h.recv().window), (Some(1000), 1000));
    for _ in 0..3 {
        h.app(|c, cx| c.read(cx));
        h.quiet();
    }
    h.app(|c, cx| c.read(cx));
    assert_eq!(h.recv().window, 5000);
}

#[test]
fn what_does_not_fit_the_window_is_not_acknowledged() {
    let mut h = Solo::tcp_server(Settings { recv_buffer: 2000, ..tcp() });
    h.send(h.seg(1, 1).data(&pattern(0, 1000)));
    h.send(h.seg(1001, 1).data(&pattern(1000, 1000)));
    h.clear();
    h.send(h.seg(2001, 1).data(b"x"));
    assert_eq!(h.recv_numbers().1, 2001);
    assert!(h.log.violated(Violation::BeyondWindow));
    assert_eq!(h.read(), pattern(0, 2000));
    h.clear();
    h.send(h.seg(2001, 1).data(b"x"));
    assert_eq!(h.recv_numbers().1, 2002);
    assert_eq!(h.read(), b"x");
}

#[test]
fn a_small_segment_is_acknowledged_at_once() {
    // The peer may hold back its next small one until then (Nagle: RFC 9293 §3.7.4).
    let mut h = Solo::tcp_server(tcp());
    let mut at = 1;
    let mut arrives = |h: &mut Solo, len: u64| {
        h.clear();
        h.send(h.seg(at, 1).data(&pattern(at, len as usize)));
        at += len;
        assert_eq!(h.read().len() as u64, len);
        h.sent.len()
    };
    for _ in 0..16 {
        assert_eq!(arrives(&mut h, 1000), 1, "quick at the start");
    }
    assert_eq!(arrives(&mut h, 1000), 0, "a full one waits for the next");
    assert_eq!(arrives(&mut h, 1000), 1);
    assert_eq!(arrives(&mut h, 80), 1, "a small one may be what the next one waits for");
    // Data that leaves here carries the acknowledgment.
    h.write(b"reply");
    assert_eq!(arrives(&mut h, 80), 0);
    assert_eq!(arrives(&mut h, 80), 1);
}

#[test]
fn small_writes_wait_for_the_acknowledgment() {
    // Nagle: RFC 9293 §3.7.4
    let mut h = Solo::tcp_client(Settings { tcp: TcpSettings { nagle: true, ..tcp().tcp }, ..tcp() });
    h.write(b"a").write(b"b").write(b"c");
    assert_eq!(payloads(&h), [1]);
    h.clear();
    h.send(h.seg(1, 2));
    assert_eq!(payloads(&h), [2]);
    // A full segment does not wait, nor does the last one.
    h.clear().write(&[7; 1000]);
    assert_eq!(payloads(&h), [1000]);
    h.clear().write(b"end").finish();
    assert_eq!(h.recv().payload, "end");
}

#[test]
fn acknowledgments_are_quick_at_first_then_every_second_or_late() {
    let mut h = Solo::tcp_server(tcp());
    let mut seq = 1;
    for n in 0..16 {
        h.at(n);
        h.send(h.seg(seq, 1).data(b"x"));
        assert_eq!(h.recv_numbers().1, seq + 1, "quick at first");
        seq += 1;
    }
    h.at(100);
    h.send(h.seg(seq, 1).data(b"x")).quiet();
    h.send(h.seg(seq + 1, 1).data(b"y"));
    assert_eq!(h.recv_numbers().1, seq + 2);
    h.at(200);
    h.send(h.seg(seq + 2, 1).data(b"z"));
    h.at(239);
    h.quiet();
    h.at(240);
    assert_eq!(h.recv_numbers().1, seq + 3);
    // One that came in the place of two, from a device that joins segments; but not one of a segment and a half.
    let mss = u64::from(tcp().mss);
    seq += 3;
    h.send(h.seg(seq, 1).data(&vec![0; 2 * mss as usize]));
    assert_eq!(h.recv_numbers().1, seq + 2 * mss);
    seq += 2 * mss;
    h.send(h.seg(seq, 1).data(&vec![0; mss as usize * 3 / 2])).quiet();
    h.at(300);
    assert_eq!(h.recv_numbers().1, seq + mss * 3 / 2);
    seq += mss * 3 / 2;
    // Data takes the acknowledgment along.
    h.send(h.seg(seq, 1).data(&vec![0; mss as usize])).quiet();
    h.write(b"reply");
    assert_eq!(h.recv_numbers().1, seq + mss);
    h.at(400);
    assert!(h.sent.iter().all(|(_, p)| !p.segment.payload.is_empty()));
}

fn blocks(h: &Solo, s: &Segment) -> Vec<(u64, u64)> {
    let offset = |n: SeqNumber| n.offset_from(SeqNumber(Solo::peer_isn(0)), 0).expect("after the SYN");
    let _ = h;
    s.options.sack().iter().map(|b| (offset(b.start), offset(b.end))).collect()
}

#[test]
fn sack_blocks_stand_newest_first_and_duplicates_before_them() {
    let mut h = Solo::tcp_server(tcp());
    let send = |h: &mut Solo, from: u64, to: u64| {
        h.clear();
        let segment = h.seg(from, 1).data(&pattern(from, (to - from) as usize));
        h.send(segment);
        let s = h.recv();
        (h.numbers(0, &s).1, blocks(h, &s))
    };
    assert_eq!(send(&mut h, 1, 11), (11, vec![]));
    assert_eq!(send(&mut h, 21, 31), (11, vec![(21, 31)]));
    assert_eq!(send(&mut h, 41, 51), (11, vec![(41, 51), (21, 31)]));
    // RFC 2018 §4: the block that the newest segment belongs to comes first, grown
    assert_eq!(send(&mut h, 31, 36), (11, vec![(21, 36), (41, 51)]));
    // RFC 2883 §4.1: below the acknowledgment; §4.2: above it, the block that holds it second
    assert_eq!(send(&mut h, 1, 6), (11, vec![(1, 6), (21, 36), (41, 51)]));
    assert_eq!(send(&mut h, 41, 51), (11, vec![(41, 51), (41, 51), (21, 36)]));
    assert_eq!(send(&mut h, 11, 21), (36, vec![(41, 51)]));
    assert_eq!(send(&mut h, 36, 41), (51, vec![]));
}

fn stamped() -> Settings {
    Settings { tcp: TcpSettings { timestamps: true, ..tcp().tcp }, ..tcp() }
}

fn stamp(mut s: Segment, val: u32, ecr: u32) -> Segment {
    s.options.set_timestamps(Timestamps { val, ecr });
    s
}

#[test]
fn old_timestamps_are_refused() {
    let mut h = Solo::server(stamped());
    h.send(stamp(h.syn(0), 1000, 0)).clear();
    h.send(stamp(h.seg(1, 1), 1001, 1));
    h.send(stamp(h.seg(1, 1).data(b"new"), 1010, 1));
    let s = h.recv();
    assert_eq!(s.options.timestamps().map(|t| t.ecr), Some(1010));
    // RFC 7323 §5.3: an old duplicate of another age is acknowledged and dropped
    h.send(stamp(h.seg(4, 1).data(b"old"), 1009, 1));
    assert_eq!(h.recv_numbers().1, 4);
    assert!(h.log.violated(Violation::OldTimestamp));
    assert_eq!(h.read(), b"new");
    // A reset is not judged by it (§5.2).
    h.send(stamp(h.seg(4, 1).flags(Flags::RST), 5, 1));
    h.at(1);
    assert!(h.is_gone());
}

#[test]
fn a_delayed_acknowledgment_echoes_the_first_of_its_segments() {
    // RFC 7323 §4.3, (A)
    let mut h = Solo::server(stamped());
    h.send(stamp(h.syn(0), 1, 0)).clear();
    h.send(stamp(h.seg(1, 1), 2, 1));
    for n in 0..16u32 {
        h.send(stamp(h.seg(1 + u64::from(n), 1).data(b"x"), 100 + n, 1)).clear();
    }
    h.send(stamp(h.seg(17, 1).data(b"x"), 200, 1)).quiet();
    h.send(stamp(h.seg(18, 1).data(b"x"), 300, 1));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(200));
    // (B): a hole; the echo stays what it was until it is filled
    h.send(stamp(h.seg(29, 1).data(b"x"), 400, 1));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(200));
    h.send(stamp(h.seg(19, 1).data(b"0123456789"), 500, 1));
    assert_eq!(h.recv().options.timestamps().map(|t| t.ecr), Some(500));
}

#[test]
fn an_idle_peer_is_probed_and_given_up() {
    let alive = Settings { tcp: TcpSettings { keep_alive: Some(ms(100_000)), ..tcp().tcp }, ..tcp() };
    let mut h = Solo::tcp_client(alive);
    h.at(99_999);
    h.quiet();
    h.at(100_001);
    let (seq, _, s) = h.recv_numbers();
    assert_eq!((seq, s.flags, s.payload.len()), (0, Flags::ACK, 0));
    h.send(h.seg(1, 1));
    h.at(200_000);
    h.quiet();
    h.at(200_002);
    assert_eq!(h.sent.len(), 1);
    // RFC 9293 §3.8.4: the peer does not answer
    h.at(900_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
}

/// A box between may forget the flow when it has been silent for a little longer.
#[test]
fn a_peer_that_answers_is_probed_as_often_as_the_setting_says() {
    let alive = Settings { tcp: TcpSettings { keep_alive: Some(ms(700)), ..tcp().tcp }, ..tcp() };
    let mut h = Solo::tcp_client(alive);
    for n in 1..=10 {
        h.clear();
        h.at(700 * n - 1).quiet().at(700 * n);
        assert_eq!(h.recv_numbers().0, 0, "probe {n}");
        h.send(h.seg(1, 1));
    }
}

/// Slow start, from one packet again after a timeout.
#[derive(Debug)]
struct SlowStart(u32);

impl CongestionControl for SlowStart {
    fn on_join(&mut self, _id: PathId, initial_window: u32) {
        self.0 = initial_window;
    }
    fn on_leave(&mut self, _id: PathId) {}
    fn on_ack(&mut self, _id: PathId, ack: &Acked, _paths: &[PathView]) {
        self.0 += ack.packets;
    }
    fn on_loss(&mut self, _id: PathId, _now: Instant, _loss: Loss, _paths: &[PathView]) {
        self.0 = 1;
    }
    fn on_undo(&mut self, _id: PathId, _now: Instant) {
        self.0 = 10;
    }
    fn on_idle(&mut self, _id: PathId, _now: Instant, _idle: Duration, _rto: Duration) {}
    fn window(&self, _id: PathId) -> Window {
        Window { cwnd: self.0, ssthresh: u32::MAX, pacing: None }
    }
}

#[test]
fn after_a_timeout_new_data_finds_out_whether_anything_was_lost() {
    // F-RTO, RFC 5682 §3.1 step 2.b, for a peer without SACK and timestamps.
    let timed_out = |more: usize| {
        let make = || {
            let bare = Settings { tcp: TcpSettings { sack: false, ..tcp().tcp }, ..tcp() };
            Setup { congestion: Box::new(SlowStart(0)), ..setup(bare, Vec::new()) }
        };
        let mut h = Solo::server_with(make);
        h.send(h.syn(0)).clear();
        h.send(h.seg(1, 1));
        h.write(&[1; 4000]).clear();
        h.at(300);
        assert_eq!(numbers(&h), [1]);
        h.write(&vec![2; more]).clear();
        h.send(h.seg(1, 1001));
        h
    };
    fn numbers(h: &Solo) -> Vec<u64> {
        h.sent.iter().map(|(_, p)| h.numbers(0, &p.segment).0).collect()
    }
    for spurious in [true, false] {
        let mut h = timed_out(3000);
        assert_eq!(numbers(&h), [4001, 5001], "new ones first");
        h.clear();
        h.send(h.seg(1, if spurious { 2001 } else { 1001 }));
        assert_eq!(h.log.saw(Event::Undo), spurious);
        assert_eq!(numbers(&h), if spurious { vec![6001] } else { vec![1001, 2001] });
    }
    // Without new data F-RTO finds out nothing, and retransmission does not wait for it.
    assert_eq!(numbers(&timed_out(0)), [1001, 2001]);
}

#[test]
fn data_that_nobody_acknowledges_is_given_up() {
    // RFC 9293 §3.8.3, R2
    let mut h = Solo::tcp_client(Settings { tcp: TcpSettings { retries: 3, ..tcp().tcp }, ..tcp() });
    h.write(b"hello").clear();
    h.at(60_000);
    let again = h.sent.iter().filter(|(_, p)| p.segment.payload == "hello").count();
    assert!((3..=5).contains(&again), "{again}");
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
    assert_eq!(h.endpoint.len(), 0);
}

#[test]
fn an_acknowledgment_that_is_due_with_a_keep_alive_probe_leaves() {
    let delayed = TcpSettings { quick_acks: 0, delayed_ack: ms(40), keep_alive: Some(ms(40)), ..tcp().tcp };
    let mut h = Solo::tcp_server(Settings { tcp: delayed, ..tcp() });
    h.at(5);
    h.send(h.seg(1, 1).data(b"x"));
    h.at(44).quiet().at(45);
    let (_, ack, _) = h.recv_numbers();
    assert_eq!(ack, 2);
}

#[test]
fn a_peer_that_has_closed_is_probed_as_early_as_any() {
    // RFC 9293 §3.8.4, in CLOSE-WAIT
    let alive = TcpSettings { keep_alive: Some(ms(10_000)), ..tcp().tcp };
    let mut h = Solo::tcp_server(Settings { tcp: alive, ..tcp() });
    h.at(1000);
    h.send(h.seg(1, 1).flags(Flags::FIN | Flags::ACK)).clear();
    h.at(10_999).quiet().at(11_000);
    assert_eq!((h.recv_numbers().0, h.state()), (0, State::CloseWait));
}

#[test]
fn keep_alive_probes_of_the_peer_are_answered() {
    let mut h = Solo::tcp_client(tcp());
    h.send(h.seg(0, 1));
    assert_eq!((h.recv_numbers().1, h.state()), (1, State::Established));
    h.send(h.seg(0, 1).data(b"x"));
    assert_eq!(h.recv_numbers().1, 1);
}

fn payload(h: &Solo) -> usize {
    h.sent.iter().map(|(_, p)| p.segment.payload.len()).sum()
}

#[test]
fn a_write_that_finds_no_room_is_no_write() {
    let mut h = Solo::tcp_server(Settings { send_buffer: 1000, ..tcp() });
    let taken = [(); 2].map(|()| h.app(|c, cx| c.write(cx, pattern(0, 1500))));
    assert_eq!(taken, [1000, 0]);
    assert_eq!(h.log.0.iter().filter(|(_, event)| matches!(event, Event::Written(_))).count(), 1);
}

/// Answers every segment that comes with an acknowledgment of `ack` and `window`, until `ms`.
fn answer_all(h: &mut Solo, ack: u64, window: u16, ms: u64) {
    while let Some(due) = h.endpoint.poll_timeout().filter(|due| *due <= at(ms)) {
        h.at(due.as_nanos().div_ceil(1_000_000));
        if !h.sent.is_empty() {
            h.clear();
            h.send(h.seg(1, ack).window(window));
        }
    }
    h.at(ms);
}

#[test]
fn a_window_that_closes_stops_new_data_and_is_asked_for_as_long_as_the_peer_answers() {
    // RFC 9293 §3.8.6, §3.8.6.1. What was offered before counts no more.
    let mut h = Solo::tcp_server(tcp());
    h.write(&pattern(0, 60_000)).clear();
    h.send(h.seg(1, 10_001).window(0));
    assert_eq!((payload(&h), h.connection().unacknowledged()), (0, 50_000));
    answer_all(&mut h, 10_001, 0, 7_200_000);
    assert!(h.events.iter().all(|e| !matches!(e, ConnectionEvent::Closed(_))));
    h.clear();
    h.send(h.seg(1, 10_001).window(5000));
    assert_eq!(payload(&h), 5000);
}

#[test]
fn a_window_that_shrinks_below_what_was_sent_holds_it_back() {
    let mut h = Solo::tcp_server(tcp());
    h.write(&pattern(0, 60_000)).clear();
    // Ten segments are out. The first comes; of the others the window takes two.
    h.send(h.seg(1, 1001).window(2000)).clear();
    h.at(10_000);
    let repeated: Vec<_> = h.sent.iter().map(|(_, p)| h.numbers(0, &p.segment).0).collect();
    assert!(!repeated.is_empty() && repeated.iter().all(|seq| *seq < 3001), "{repeated:?}");
    // It closes. Only the first byte is retransmitted, repeatedly; the peer answers and is not given up.
    h.send(h.seg(1, 1001).window(0)).clear();
    h.at(60_000);
    assert!(h.sent.iter().all(|(_, p)| h.numbers(0, &p.segment).0 == 1001));
    answer_all(&mut h, 1001, 0, 7_200_000);
    assert!(h.events.iter().all(|e| !matches!(e, ConnectionEvent::Closed(_))));
    h.clear();
    h.send(h.seg(1, 10_001).window(20_000));
    assert!(payload(&h) > 0);
    // One that does not answer is given up.
    let mut h = Solo::tcp_server(tcp());
    h.write(&pattern(0, 60_000)).clear();
    h.send(h.seg(1, 1001).window(0)).clear();
    h.at(7_200_000);
    assert!(h.events.contains(&ConnectionEvent::Closed(CloseReason::TimedOut)));
}

#[test]
fn what_is_less_than_a_segment_goes_out_after_a_while() {
    // RFC 9293 §3.8.6.2.1 (4)
    let mut h = Solo::tcp_server(tcp());
    h.write(&pattern(0, 60_000)).clear();
    h.send(h.seg(1, 10_001).window(300));
    assert_eq!(payload(&h), 0);
    h.at(5000);
    assert_eq!(h.recv().payload, pattern(10_000, 300));
}

#[test]
fn a_subflow_of_a_shrunk_window_gets_no_data_and_another_does() {
    let mut h = Solo::open_server(plain_stamps());
    h.join(1).clear();
    h.send_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(0)));
    h.send(h.seg(1, 1).window(0).dss(h.data_ack(0)));
    h.write(&pattern(0, 5000));
    assert!(payload(&h) == 5000 && h.sent.iter().all(|(_, p)| p.src == crate::common::host(1, 2)));
    // Both are shut, and nothing is under way: the peer is asked, and what it says moves the data.
    h.send_on(1, h.seg_on(1, 1, 5001).window(0).dss(h.data_ack(5000))).clear();
    h.write(&pattern(5000, 5000));
    assert_eq!(payload(&h), 0);
    h.at(5000);
    assert!(!h.sent.is_empty() && payload(&h) == 0);
    h.clear();
    h.send(h.seg(1, 1).dss(h.data_ack(5000)));
    assert_eq!(payload(&h), 5000);
}

/// Shrinks the window to one packet after every idle time that the engine reports.
#[derive(Debug)]
struct Restarted(u32);

impl CongestionControl for Restarted {
    fn on_join(&mut self, _id: PathId, initial_window: u32) {
        self.0 = initial_window;
    }
    fn on_leave(&mut self, _id: PathId) {}
    fn on_ack(&mut self, _id: PathId, _ack: &Acked, _paths: &[PathView]) {}
    fn on_loss(&mut self, _id: PathId, _now: Instant, _loss: Loss, _paths: &[PathView]) {}
    fn on_undo(&mut self, _id: PathId, _now: Instant) {}
    fn on_idle(&mut self, _id: PathId, _now: Instant, _idle: Duration, _rto: Duration) {
        self.0 = 1;
    }
    fn window(&self, _id: PathId) -> Window {
        Window { cwnd: self.0, ssthresh: u32::MAX, pacing: None }
    }
}

#[test]
fn a_window_restarts_after_an_idle_time_of_more_than_a_timeout() {
    // RFC 5681 §4.1. The round trip takes 100 ms, so that the timeout is 300 ms (100 + 200).
    for (idle, restarts) in [(299, false), (301, true)] {
        let make = || Setup { congestion: Box::new(Restarted(0)), ..setup(tcp(), Vec::new()) };
        let mut h = Solo::server_with(make);
        h.send(h.syn(0)).at(100);
        h.send(h.seg(1, 1));
        h.write(&[1; 1000]).clear();
        h.at(200);
        h.send(h.seg(1, 1001)).at(100 + idle);
        h.write(&[2; 5000]);
        assert_eq!(
            (payload(&h), h.log.saw(Event::IdleRestart)),
            (if restarts { 1000 } else { 5000 }, restarts),
            "{idle} ms"
        );
    }
}

/// Windows of 10 packets; records how much of them was used, as the engine reports it.
#[derive(Debug)]
struct Underused(std::sync::Arc<std::sync::Mutex<Vec<u32>>>);

impl CongestionControl for Underused {
    fn on_join(&mut self, _id: PathId, _initial_window: u32) {}
    fn on_leave(&mut self, _id: PathId) {}
    fn on_ack(&mut self, _id: PathId, _ack: &Acked, _paths: &[PathView]) {}
    fn on_loss(&mut self, _id: PathId, _now: Instant, _loss: Loss, _paths: &[PathView]) {}
    fn on_undo(&mut self, _id: PathId, _now: Instant) {}
    fn on_idle(&mut self, _id: PathId, _now: Instant, _idle: Duration, _rto: Duration) {}
    fn on_underuse(&mut self, _id: PathId, used: u32) {
        self.0.lock().unwrap().push(used);
    }
    fn window(&self, _id: PathId) -> Window {
        Window { cwnd: 10, ssthresh: u32::MAX, pacing: None }
    }
}

#[test]
fn a_window_that_was_not_filled_for_a_timeout_is_told_to_congestion_control() {
    // RFC 2861 §3.2. The round trip takes 100 ms, so that the timeout is about 300 ms. Every 50 ms the application writes
    // `packets`; each is acknowledged 20 ms after that.
    let told = |decay: LimitedDecay, packets: usize| {
        let told = std::sync::Arc::default();
        let settings = Settings { tcp: TcpSettings { limited_decay: decay, ..tcp().tcp }, ..tcp() };
        let teller = std::sync::Arc::clone(&told);
        let congestion = move || Box::new(Underused(std::sync::Arc::clone(&teller)));
        let make = move || Setup { congestion: congestion(), ..setup(settings.clone(), Vec::new()) };
        let mut h = Solo::server_with(make);
        h.send(h.syn(0)).at(100);
        h.send(h.seg(1, 1));
        for n in 0..20 {
            h.at(100 + 50 * n);
            h.write(&vec![1; 1000 * packets]);
            h.at(120 + 50 * n);
            h.send(h.seg(1, 1 + 1000 * packets as u64 * (n + 1)));
        }
        told.lock().unwrap().clone()
    };
    // With the first packet nothing has been measured yet.
    let used = told(LimitedDecay::Rfc2861, 3);
    assert!((4..=5).contains(&used.len()) && used[1..].iter().all(|packets| *packets == 3), "{used:?}");
    // Linux's time starts again with each acknowledgment. Full windows are not reported; by default no windows are.
    assert!(told(LimitedDecay::Linux, 3).len() <= 1);
    assert!(told(LimitedDecay::Rfc2861, 10).len() <= 1);
    assert_eq!(told(LimitedDecay::None, 3), [0; 0]);
}

#[test]
fn a_tail_loss_probe_carries_new_data_if_there_is_some() {
    // RFC 8985 §7.3: if the peer's window admits it; beyond the congestion window by one segment.
    let probed = |window: u16, more: usize, settings: Settings| {
        let mut h = Solo::client(settings);
        h.clear();
        h.at(20);
        h.send(h.syn_ack(0).window(window)).clear();
        h.write(&pattern(0, 10_000 + more));
        assert_eq!(h.sent.len(), 10);
        h.clear().at(100);
        let (seq, _, probe) = h.recv_numbers();
        assert!(h.log.saw(Event::TailLossProbe));
        h.quiet();
        (seq, probe.payload.len())
    };
    assert_eq!(probed(0xffff, 5000, tcp()), (10_001, 1000));
    // The window is full; or there is no more.
    assert_eq!(probed(10_000, 5000, tcp()), (9001, 1000));
    assert_eq!(probed(0xffff, 0, tcp()), (9001, 1000));
    // A small rest does not wait for more to write.
    let nagle = Settings { tcp: TcpSettings { nagle: true, ..tcp().tcp }, ..tcp() };
    assert_eq!(probed(0xffff, 10, nagle), (10_001, 10));
}

#[test]
fn a_probe_with_new_data_finds_the_loss_before_it() {
    let mut h = Solo::client(tcp());
    h.clear();
    h.at(20);
    h.send(h.syn_ack(0)).clear();
    h.write(&pattern(0, 15_000)).clear();
    h.at(100);
    assert_eq!(h.recv_numbers().0, 10_001);
    // All but the last two of the ten have come, and the probe.
    let mut ack = h.seg(1, 8001);
    let block = SackBlock { start: SeqNumber(h.isn[0]).at(10_001), end: SeqNumber(h.isn[0]).at(11_001) };
    ack.options.set_sack(&[block]);
    h.send(ack);
    h.at(140);
    let again: Vec<_> = h.sent.iter().map(|(_, p)| h.numbers(0, &p.segment).0).filter(|seq| *seq < 10_000).collect();
    assert_eq!(again, [8001, 9001]);
}

#[test]
fn an_old_acknowledgment_does_not_move_the_window() {
    // RFC 9293 §3.10.7.4: "If SND.UNA =< SEG.ACK =< SND.NXT, the send window should be updated." Only then.
    let mut h = Solo::client(tcp());
    h.send(h.syn_ack(0).window(10_000));
    h.write(&[1; 5000]).clear();
    // The peer sent [1, 1001) and [1001, 2001) before it got anything (window 5000). The first was lost and comes again with a
    // new acknowledgment; the second was delayed and comes after that.
    h.send(h.seg(1, 5001).window(10_000).data(&[7; 1000])).clear();
    h.write(&[2; 1000]);
    assert_eq!(payloads(&h).iter().sum::<usize>(), 1000, "the new window is open");
    h.clear();
    h.send(h.seg(1001, 1).window(5000).data(&[7; 1000])).clear();
    h.write(&[2; 1000]);
    assert_eq!(
        payloads(&h).iter().sum::<usize>(),
        1000,
        "the window of 10,000 that came with the newest acknowledgment is open"
    );
}
