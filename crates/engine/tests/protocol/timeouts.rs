//! Retransmission timeouts: what leaves then is not paced, how they back off, and what the scheduler sees of their paths.

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, Solo};
use crate::common::{at, client_paths, pattern, plain_stamps, setup, tcp};
use anabranch_engine::congestion::{Acked, CongestionControl, FixedWindows, Loss, Window};
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::PathView;
use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::{Event, PathState};
use anabranch_units::{Duration, Instant, PathId, Rate, Side};
use anabranch_wire::{Flags, Mapping};
use std::cell::RefCell;
use std::rc::Rc;

/// Without tail loss probes: only timeouts retransmit.
fn unprobed(settings: Settings) -> Settings {
    let tcp = TcpSettings { tail_loss_probe: Some(false), ..settings.tcp };
    Settings { tcp, ..settings }
}

/// A plain TCP server that sends 100 bytes per second, a full segment every ten seconds and a little more, over a round trip of 50 ms.
fn paced() -> Solo {
    let make = || {
        let window = Window { cwnd: 10, ssthresh: u32::MAX, pacing: Some(Rate::from_bps(800)) };
        Setup { congestion: Box::new(FixedWindows(vec![(PathId(0), window)])), ..setup(unprobed(tcp()), Vec::new()) }
    };
    let mut h = Solo::server_with(make);
    h.send(h.syn(0)).clear();
    h.at(50);
    h.send(h.seg(1, 1));
    h
}

/// When the segments that begin at `seq` left.
fn departures(h: &Solo, seq: u64) -> Vec<Instant> {
    let begins = |s| h.numbers(0, s).0 == seq;
    let sent = h.sent.iter().filter(|(_, p)| !p.segment.payload.is_empty() && begins(&p.segment));
    sent.map(|(now, _)| *now).collect()
}

/// Linux `tcp_retransmit_timer`. RFC 6298 §5.5: the next timeout would come before the segment's turn.
#[test]
fn what_a_timeout_retransmits_does_not_wait_for_its_pacing() {
    let mut h = paced();
    h.write(&pattern(0, 1000)).at(4000);
    assert_eq!(departures(&h, 1), [50, 300, 800, 1800, 3800].map(at));
}

#[test]
fn the_segment_after_a_timeout_waits_for_one_turn_and_not_for_two() {
    let mut h = paced();
    h.write(&pattern(0, 1000)).at(350);
    assert_eq!(departures(&h, 1), [50, 300].map(at));
    h.send(h.seg(1, 1001));
    h.write(&pattern(1000, 1000)).at(30_000);
    let next = departures(&h, 1001)[0];
    assert!(next > at(10_300) && next < at(12_000), "{next}");
}

/// The SYN of a join was lost, so that nothing tells its round trip; then its path is dark. RFC 6298 §5.5, §5.7: its timeouts back off
/// from three seconds, though others carry its data.
#[test]
fn a_failing_path_of_unknown_round_trip_backs_off() {
    let mut pair = Pair::new(2, unprobed(plain_stamps()), unprobed(plain_stamps()));
    let sent: Rc<RefCell<Vec<Instant>>> = Rc::default();
    let log = sent.clone();
    pair.hook = Box::new(move |now, side, path, p| {
        let data = !p.segment.payload.is_empty();
        if path == 1 && side == Side::Client && data {
            log.borrow_mut().push(now);
        }
        let syn = p.segment.flags.has(Flags::SYN);
        let lost = if syn { side == Side::Client && now < at(500) } else { data || now > at(2000) };
        if path == 1 && lost { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 40_000_000), false).run(at(30_000));
    assert!(pair.client.log.saw(Event::Path(PathState::Failing)));
    let mut sent = sent.take();
    sent.dedup();
    let waits: Vec<_> = sent.windows(2).map(|two| two[1].since(two[0]).as_millis()).collect();
    assert_eq!(waits, [3000, 6000, 12_000]);
}

/// A server with ten segments on path 0, acknowledged, and two on path 1, which has timed out and been probed.
fn failing() -> Solo {
    let mut h = Solo::open_server(unprobed(plain_stamps()));
    h.at(100);
    h.join(1).at(120);
    h.send(h.seg(1, 1).dss(h.data_ack(0)));
    h.write(&pattern(0, 12_000)).at(140);
    h.send(h.seg(1, 10_001).dss(h.data_ack(10_000)));
    let probed = |h: &Solo| h.log.saw(Event::PathProbe);
    let mut now = 140;
    while !probed(&h) {
        now += 10;
        h.at(now);
        // Path 0 delivers what it is given meanwhile.
        let upto = h.sent.iter().filter(|(_, p)| p.src.to_string() == "10.0.0.2").map(|(_, p)| {
            let s = &p.segment;
            h.numbers(0, s).0 + s.payload.len() as u64
        });
        let upto = upto.max().unwrap_or(10_001);
        h.send(h.seg(1, upto).dss(h.data_ack(10_000)));
        assert!(now < 10_000, "it is not probed");
    }
    assert!(h.log.0.iter().any(|(_, e)| matches!(e, Event::Timeout { .. })));
    h.clear();
    h
}

/// Debug builds compare before each round. The answer to a probe marks what the path carries as lost.
#[test]
fn the_scheduler_sees_what_the_answer_to_a_probe_changed() {
    let mut h = failing();
    let in_flight = h.connection().view().path(PathId(1)).unwrap().in_flight;
    assert_eq!(in_flight, 2, "its timeout retransmitted both");
    h.answered_on(1, h.seg_on(1, 1, 1).dss(h.data_ack(10_000)), &pattern(12_000, 100));
    assert!(h.sent.iter().any(|(_, p)| p.segment.payload.len() == 1000), "its data leaves again");
}

/// The same where the answer's options break the subflow.
#[test]
fn the_scheduler_sees_what_an_answer_changed_that_breaks_its_subflow() {
    let mut h = failing();
    let mapping = Mapping { data_seq: Solo::peer_number(0), wide: true, subflow_seq: 1, len: 10, checksum: Some(1) };
    let mut dss = h.data_ack(10_000);
    dss.mapping = Some(mapping);
    h.answered_on(1, h.seg_on(1, 1, 1).data(b"0123456789").dss(dss), &pattern(12_000, 100));
    assert!(h.sent.iter().any(|(_, p)| p.segment.flags.has(Flags::RST)), "{:?}", h.sent);
}

/// Ten packets; one after a timeout.
#[derive(Debug)]
struct Timid(u32);

impl CongestionControl for Timid {
    fn on_join(&mut self, _: PathId, _: u32) {}
    fn on_leave(&mut self, _: PathId) {}
    fn on_ack(&mut self, _: PathId, _: &Acked, _: &[PathView]) {}
    fn on_loss(&mut self, _: PathId, _: Instant, loss: Loss, _: &[PathView]) {
        if matches!(loss, Loss::Timeout { .. }) {
            self.0 = 1;
        }
    }
    fn on_undo(&mut self, _: PathId, _: Instant) {}
    fn on_idle(&mut self, _: PathId, _: Instant, _: Duration, _: Duration) {}
    fn window(&self, _: PathId) -> Window {
        Window { cwnd: self.0, ssthresh: u32::MAX, pacing: None }
    }
}

/// RFC 8985 §6.3: what was sent less than a round trip before the timeout is not lost. The first packet leaves beside it, beyond the
/// window, and then the window is what congestion control says.
#[test]
fn the_scheduler_sees_the_window_that_is_left_once_a_timeout_has_retransmitted() {
    let mut client = setup(unprobed(plain_stamps()), client_paths(1));
    client.congestion = Box::new(Timid(10));
    let mut h = Solo::open_client(client);
    h.at(100);
    h.write(&pattern(0, 1000)).at(150);
    h.send(h.seg(1, 1001).dss(h.data_ack(1000))).at(200);
    h.write(&pattern(1000, 1000));
    let timeout = |e: &(Instant, Event)| matches!(e.1, Event::Timeout { .. });
    let mut now = 200;
    while !h.log.0.iter().any(timeout) {
        now += 1;
        h.at(now);
        if now == 390 {
            h.write(&pattern(2000, 1000));
        }
        assert!(now < 1000, "no timeout");
    }
    let path = *h.connection().view().path(PathId(0)).unwrap();
    assert_eq!((path.cwnd, path.in_flight), (1, 2), "at {now} ms");
    h.write(&pattern(3000, 1000));
}
