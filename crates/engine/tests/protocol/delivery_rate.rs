//! Congestion controls that model the path: the rate samples that they get (draft-cheng-iccrg-delivery-rate-estimation),
//! and what they govern.

use crate::common::solo::{Build, Solo};
use crate::common::{client_paths, setup, tcp};
use anabranch_engine::Settings;
use anabranch_engine::congestion::{Acked, CongestionControl, Loss, RateSample, Window};
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId, Rate};
use anabranch_wire::{SackBlock, Segment};
use std::sync::{Arc, Mutex};

/// The acknowledgments that a control got.
type Told = Arc<Mutex<Vec<Acked>>>;

/// A constant window, and a log of the acknowledgments that it got.
#[derive(Debug)]
struct Constant {
    cwnd: u32,
    rate_based: bool,
    pacing: Option<Rate>,
    told: Told,
}

impl CongestionControl for Constant {
    fn on_join(&mut self, _id: PathId, _initial_window: u32) {}
    fn on_leave(&mut self, _id: PathId) {}
    fn on_ack(&mut self, _id: PathId, ack: &Acked, _paths: &[PathView]) {
        self.told.lock().expect("one thread").push(*ack);
    }
    fn on_loss(&mut self, _id: PathId, _now: Instant, _loss: Loss, _paths: &[PathView]) {}
    fn on_undo(&mut self, _id: PathId, _now: Instant) {}
    fn on_idle(&mut self, _id: PathId, _now: Instant, _idle: Duration, _rto: Duration) {}
    fn window(&self, _id: PathId) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.cwnd / 2, pacing: self.pacing }
    }
    fn is_rate_based(&self) -> bool {
        self.rate_based
    }
}

/// A connected client with a window of `cwnd`, and the log of its congestion control.
fn connected(cwnd: u32, rate_based: bool) -> (Solo, Told) {
    paced(cwnd, rate_based, None)
}

fn paced(cwnd: u32, rate_based: bool, pacing: Option<Rate>) -> (Solo, Told) {
    let told = Told::default();
    let congestion = Box::new(Constant { cwnd, rate_based, pacing, told: Arc::clone(&told) });
    let mut h = Solo::client_with(Setup { congestion, ..setup(tcp(), client_paths(1)) });
    h.at(40);
    h.send(h.syn_ack(0).window(60_000)).clear();
    (h, told)
}

fn last_rate(told: &Mutex<Vec<Acked>>) -> Option<RateSample> {
    told.lock().expect("one thread").last().expect("something was acknowledged").rate
}

#[test]
fn nobody_is_told_rates_who_does_not_ask() {
    let (mut h, told) = connected(4, false);
    h.write(&[1; 4000]).at(80);
    h.send(h.seg(1, 4001));
    assert_eq!(last_rate(&told), None);
}

#[test]
fn a_flight_is_a_sample_and_too_little_to_send_is_marked() {
    let (mut h, told) = connected(4, true);
    // More than the window holds: the path is the limit.
    h.write(&[1; 6000]).at(80);
    h.send(h.seg(1, 4001));
    let first = last_rate(&told).expect("a sample");
    assert_eq!((first.delivered, first.prior_delivered, first.interval), (4, 0, Duration::from_millis(40)));
    // The window was empty when these 6000 were written.
    assert!(first.app_limited);
    // Two more went out with the acknowledgment; room is left.
    h.at(120);
    h.send(h.seg(1, 6001));
    let second = last_rate(&told).expect("a sample");
    assert_eq!((second.delivered, second.prior_delivered), (2, 4));
    h.write(&[1; 12_000]).at(160);
    h.send(h.seg(1, 10_001)).at(200);
    assert!(last_rate(&told).is_some_and(|s| s.app_limited), "written into an empty window");
    h.send(h.seg(1, 14_001)).at(240);
    assert!(last_rate(&told).is_some_and(|s| !s.app_limited && s.delivered == 4), "a full window since");
    h.send(h.seg(1, 18_001));
    assert!(last_rate(&told).is_some_and(|s| !s.app_limited && s.delivered == 4), "no room for more");
}

/// Sends 4000 bytes in a window of 40 packets and answers them one by one, with `more` written after each; whether the last two samples are
/// said to be the application's limit.
fn limits(send_buffer: u64, peer_window: u16, first: usize, more: usize) -> [bool; 2] {
    let told = Told::default();
    let congestion = Box::new(Constant { cwnd: 40, rate_based: true, pacing: None, told: Arc::clone(&told) });
    let mut h = Solo::client_with(Setup { congestion, ..setup(Settings { send_buffer, ..tcp() }, client_paths(1)) });
    h.at(40);
    h.send(h.syn_ack(0).window(peer_window));
    h.write(&vec![1; first]);
    let mut answer = |n: u64| {
        h.at(80 + n * 10);
        h.send(h.seg(1, 1 + n * 1000).window(peer_window));
        h.write(&vec![1; more]);
        last_rate(&told).expect("a sample").app_limited
    };
    // The first four were sent when the connection began.
    (1..=6).for_each(|n| _ = answer(n));
    [7, 8].map(answer)
}

/// A server that answers at once: the request acknowledges the last answer, and the round for this is not held yet.
#[test]
fn an_answer_to_the_segment_that_acknowledges_the_last_one_is_the_application_s_limit() {
    let (mut h, told) = connected(10, true);
    h.write(&[1; 4000]);
    for (n, answered) in [(1, 4001), (2, 8001), (3, 12_001)] {
        h.at(40 + 40 * n);
        let request = Segment { payload: vec![2; 400].into(), ..h.seg(400 * (n - 1) + 1, answered) };
        h.answered(request, &[1; 4000]);
    }
    h.at(200);
    h.send(h.seg(1201, 16_001));
    let samples: Vec<_> = told.lock().expect("one thread").iter().filter_map(|acked| acked.rate).collect();
    assert_eq!(samples.len(), 4);
    assert!(samples.iter().all(|sample| sample.app_limited), "{samples:?}");
}

#[test]
fn a_full_buffer_is_not_the_application_s_limit() {
    assert_eq!(limits(16 << 20, 60_000, 4000, 1000), [true; 2], "the application writes no more");
    assert_eq!(limits(4000, 60_000, 4000, 1000), [false; 2], "the send buffer has no room for more");
    assert_eq!(limits(16 << 20, 4000, 12_000, 0), [false; 2], "the peer's window has no room for more");
}

/// The application is woken by the acknowledgment that frees a third of the buffer, and fills it again at once.
#[test]
fn a_buffer_that_is_filled_again_at_once_is_not_the_application_s_limit() {
    let told = Told::default();
    let congestion = Box::new(Constant { cwnd: 40, rate_based: true, pacing: None, told: Arc::clone(&told) });
    let mut h =
        Solo::client_with(Setup { congestion, ..setup(Settings { send_buffer: 6000, ..tcp() }, client_paths(1)) });
    h.at(40);
    h.send(h.syn_ack(0).window(60_000));
    h.write(&[1; 6000]);
    for n in 1..=9 {
        h.at(80 + n * 20);
        h.answered(h.seg(1, 1 + n * 2000).window(60_000), &[1; 2000]);
    }
    let samples: Vec<_> = told.lock().expect("one thread").iter().filter_map(|acked| acked.rate).collect();
    assert!(samples.len() >= 9 && samples[5..].iter().all(|sample| !sample.app_limited), "{samples:?}");
}

#[test]
fn a_flight_that_is_repaired_is_not_limited_by_the_application() {
    let (mut h, told) = connected(10, true);
    h.write(&[1; 10_000]);
    let sack = |h: &Solo, end: u32| {
        let at = |offset: u32| anabranch_units::SeqNumber(h.isn[0].wrapping_add(offset));
        let mut segment = h.seg(1, 1);
        segment.options.set_sack(&[SackBlock { start: at(1001), end: at(end) }]);
        segment
    };
    // The first packet is lost. While it is repeated, the window has room and nothing new waits.
    h.at(80);
    h.send(sack(&h, 5001)).at(81);
    h.send(sack(&h, 6001));
    h.write(&[1; 1000]).at(121);
    h.send(h.seg(1, 10_001)).at(122);
    h.send(h.seg(1, 11_001));
    assert!(last_rate(&told).is_some_and(|sample| !sample.app_limited));
}

#[test]
fn the_rate_that_a_control_asks_for_is_kept() {
    // 1080 bytes every 2 ms, of which 80 are headers.
    let (mut h, _) = paced(40, true, Some(Rate::from_bps(1080 * 8 * 500)));
    h.write(&[1; 40_000]).at(100);
    let times: Vec<_> = h.sent.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
    assert_eq!(times[..10], [40; 10], "ten at once after idling");
    assert_eq!(times[10..14], [40, 42, 44, 46]);
    assert_eq!(times.len(), 40);
}

#[test]
fn a_window_of_its_own_holds_in_fast_recovery() {
    // Of ten packets the first is lost, the others arrive one by one.
    let sent_in_recovery = |rate_based| {
        let (mut h, told) = connected(10, rate_based);
        h.write(&[1; 60_000]).at(80);
        h.clear();
        for n in 2..=10_u32 {
            let mut segment = h.seg(1, 1);
            let isn = h.isn[0];
            let at = |offset: u32| anabranch_units::SeqNumber(isn.wrapping_add(offset));
            segment.options.set_sack(&[SackBlock { start: at(1001), end: at(1 + n * 1000) }]);
            h.send(segment);
        }
        let lost = told.lock().expect("one thread").iter().map(|ack| ack.lost).sum::<u32>();
        assert_eq!(lost, 1);
        h.sent.len()
    };
    // All that is not in flight, and what is lost again.
    assert_eq!(sent_in_recovery(true), 10);
    // PRR halves the window meanwhile.
    assert!(sent_in_recovery(false) < 8);
}

#[test]
fn the_limit_of_byte_counting_caps_what_counts_and_not_what_was_delivered() {
    // RFC 3465 §2.2, L = 1: an acknowledgment of three segments.
    for (abc_limit, counted) in [(u32::MAX, 3), (1, 1), (2, 2), (9, 3)] {
        let told = Told::default();
        let mut settings = tcp();
        settings.tcp.abc_limit = abc_limit;
        let congestion = Box::new(Constant { cwnd: 10, rate_based: true, pacing: None, told: Arc::clone(&told) });
        let mut h = Solo::client_with(Setup { congestion, ..setup(settings, client_paths(1)) });
        h.at(40);
        h.send(h.syn_ack(0).window(60_000)).clear();
        h.write(&[1; 10_000]).clear();
        h.at(80);
        h.send(h.seg(1, 3001));
        let ack = *told.lock().expect("one thread").last().expect("something was acknowledged");
        assert_eq!((ack.counted, ack.packets, ack.bytes), (counted, 3, 3000), "{abc_limit}");
        assert_eq!(ack.rate.map(|rate| rate.delivered), Some(3));
    }
}
