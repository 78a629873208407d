//! Hand-made lists of events with exactly known metrics.

use super::*;
use anabranch_network::CapacitySpec;
use anabranch_trace::{PathState, WindowChange};
use anabranch_units::{FramePattern, PathId, PlaybackRule, Range, Rate};

const UNDER_TEST: ConnId = ConnId(0);

fn config(from: u64, until: Option<u64>, size: Option<u64>) -> MeterConfig {
    let path = |name: &str, price, mbit: u64| PathConfig {
        name: name.into(),
        price,
        prices: Vec::new(),
        capacities: vec![CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(mbit * 1_000_000)))],
        marks: name == "wlan",
        outages: vec![],
    };
    MeterConfig {
        from: Instant::from_millis(from),
        until: until.map(Instant::from_millis),
        connections: 1,
        direction: TrafficDirection::Down,
        directions: vec![],
        cross: vec![],
        size,
        flow_size: None,
        timed: Timed::Nothing,
        mss: 1000,
        displacement_threshold: None,
        head_start: true,
        efficiency: false,
        requested: Vec::new(),
        paths: vec![path("wlan", 0.0, 8), path("3g", 0.5, 4)],
    }
}

/// Events of one run, recorded in the order in which they are given.
struct Run(Meter);

impl Run {
    fn new(config: MeterConfig) -> Self {
        Self(Meter::new(config))
    }
    fn tell(&mut self, ms: u64, host: Option<Side>, path: u8, event: Event) -> &mut Self {
        let origin = Origin { host, connection: UNDER_TEST, path: PathId(path) };
        self.0.record(Instant::from_millis(ms), origin, &event);
        self
    }
    fn server(&mut self, ms: u64, path: u8, event: Event) -> &mut Self {
        self.tell(ms, Some(Side::Server), path, event)
    }
    fn client(&mut self, ms: u64, path: u8, event: Event) -> &mut Self {
        self.tell(ms, Some(Side::Client), path, event)
    }
    fn link(&mut self, ms: u64, path: u8, what: LinkEvent) -> &mut Self {
        self.tell(ms, None, path, Event::Link { direction: Direction::Down, size: 1500, what })
    }
    fn end(&mut self, ms: u64) -> RunMetrics {
        self.0.clone().finish(Instant::from_millis(ms))
    }
}

fn sent(start: u64, kind: SendKind) -> Event {
    Event::DataSent { seq: 1, data: Range::new(start, start + 1000), kind }
}
fn arrived(start: u64, new: u64) -> Event {
    Event::DataArrived { data: Range::new(start, start + 1000), new, ofo: 0 }
}
/// A copy of what is held already.
fn ofo(ofo: u64) -> Event {
    Event::DataArrived { data: Range::new(0, 0), new: 0, ofo }
}
fn delivered(start: u64, end: u64) -> Event {
    Event::Delivered(Range::new(start, end))
}
fn written(end: u64) -> Event {
    Event::Written(Range::new(0, end))
}
fn window(cwnd: u32, srtt: u64) -> Event {
    let srtt = Duration::from_millis(srtt);
    Event::Window(WindowChange { cwnd, ssthresh: u32::MAX, in_flight: 1, srtt, rtt: None })
}
const SYN_SENT: Event = Event::ControlSent { flags: SYN, again: false };

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    let value = value.expect("the metric applies");
    assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{value} instead of {expected}");
}

#[test]
fn sized_transfer_ends_with_its_last_byte() {
    let mut run = Run::new(config(0, None, Some(3000)));
    run.client(5, 0, SYN_SENT)
        .client(7, 0, Event::ControlSent { flags: SYN, again: true })
        .client(30, 0, delivered(0, 1000))
        .client(55, 0, delivered(1000, 3000));
    assert!(run.0.is_complete());
    // Later events do not count: the farewell, a copy under way.
    run.client(60, 0, arrived(0, 0)).server(70, 0, Event::Timeout { n: 1 });
    let result = run.end(500);
    assert!(result.finished);
    assert_eq!(result.started, Some(Instant::from_millis(5)));
    assert_eq!(result.measured, (Instant::from_millis(5), Instant::from_millis(55)));
    near(result.get("completion_s"), 0.05);
    near(result.get("delivered_bytes"), 3000.0);
    near(result.get("goodput_bps"), 3000.0 * 8.0 / 0.05);
    near(result.get("duplicate_bytes"), 0.0);
    near(result.get("timeouts"), 0.0);
    near(result.get("syns_sent"), 2.0);
}

#[test]
fn syns_count_from_the_beginning_and_on_all_paths() {
    let mut run = Run::new(config(100, Some(400), None));
    run.client(5, 0, SYN_SENT)
        .client(255, 1, SYN_SENT)
        // The server's answers, and segments with more flags than SYN, do not count.
        .server(260, 0, Event::ControlSent { flags: SYN_ACK, again: false })
        .client(261, 0, Event::ControlSent { flags: SYN_ACK, again: false })
        .client(390, 1, SYN_SENT)
        .client(450, 1, SYN_SENT);
    near(run.end(500).get("syns_sent"), 3.0);
}

#[test]
fn an_unfinished_transfer_says_so() {
    let mut run = Run::new(config(0, Some(100), Some(3000)));
    run.client(0, 0, SYN_SENT).client(50, 0, delivered(0, 1000)).client(101, 0, delivered(1000, 3000));
    let result = run.end(200);
    assert!(!result.finished);
    assert_eq!(result.get("completion_s"), None);
    near(result.get("delivered_bytes"), 1000.0);
    near(result.get("goodput_bps"), 80_000.0);
}

#[test]
fn the_warm_up_does_not_count() {
    let mut run = Run::new(config(100, Some(300), None));
    run.client(0, 0, SYN_SENT)
        .server(10, 0, sent(0, SendKind::First))
        .server(11, 0, sent(0, SendKind::Retransmission))
        .server(12, 0, Event::IdleRestart)
        .client(50, 0, delivered(0, 1000))
        .client(99, 0, arrived(0, 0))
        .client(100, 0, delivered(1000, 3000))
        .server(150, 0, sent(1000, SendKind::First))
        .server(160, 0, Event::IdleRestart)
        .client(300, 0, delivered(3000, 5000))
        .client(301, 0, delivered(5000, 9000));
    let result = run.end(400);
    assert!(result.finished);
    assert_eq!(result.measured, (Instant::from_millis(100), Instant::from_millis(300)));
    near(result.get("goodput_bps"), 4000.0 * 8.0 / 0.2);
    assert_eq!((result.get("delivered_bytes"), result.get("completion_s")), (None, None));
    near(result.get("retransmitted_packets"), 0.0);
    near(result.get("idle_restarts"), 1.0);
    near(result.get("duplicate_bytes"), 0.0);
    near(result.paths[0].get("sent_bytes"), 1000.0);
}

#[test]
fn repetitions_by_their_reason() {
    let mut run = Run::new(config(0, Some(1000), None));
    run.server(1, 0, sent(0, SendKind::First))
        .server(2, 0, sent(1000, SendKind::First))
        .server(3, 0, sent(2000, SendKind::First))
        .server(4, 1, sent(3000, SendKind::First))
        .server(5, 1, sent(0, SendKind::Opportunistic))
        .server(6, 1, sent(1000, SendKind::Opportunistic))
        .server(7, 1, sent(2000, SendKind::Rescue))
        .server(8, 0, sent(3000, SendKind::Copy))
        .server(9, 0, sent(0, SendKind::Retransmission))
        .server(10, 0, Event::Timeout { n: 1 })
        .server(11, 1, Event::Timeout { n: 1 });
    let result = run.end(1000);
    for (name, packets) in [("opportunistic", 2.0), ("rescued", 1.0), ("copied", 1.0), ("reinjected", 4.0)] {
        near(result.get(&format!("{name}_packets")), packets);
        near(result.get(&format!("{name}_bytes")), packets * 1000.0);
    }
    near(result.get("retransmitted_packets"), 1.0);
    near(result.get("timeouts"), 2.0);
    near(result.get("price"), 0.5 * 4000.0);
    let [wlan, slow] = &result.paths[..] else { panic!("two paths") };
    assert_eq!((wlan.name.as_str(), slow.name.as_str()), ("wlan", "3g"));
    near(wlan.get("share"), 0.75);
    near(slow.get("share"), 0.25);
    near(wlan.get("sent_ratio"), 1.25);
    near(slow.get("sent_ratio"), 1.0);
    near(wlan.get("sent_bytes"), 5000.0);
    near(wlan.get("retransmitted_packets"), 1.0);
    near(wlan.get("loss_ratio"), 0.2);
    near(slow.get("loss_ratio"), 0.0);
}

#[test]
fn the_out_of_order_queue_and_its_copies() {
    let mut run = Run::new(config(10, Some(50), None));
    // Samples: [10, 20) begins with 4000, [20, 30) sees 2000, then 0, then 0.
    run.client(5, 0, ofo(4000)).client(15, 0, ofo(1000)).client(22, 0, ofo(2000)).client(28, 0, ofo(0)).client(
        29,
        0,
        arrived(0, 400),
    );
    let result = run.end(50);
    near(result.get("ofo_mean_bytes"), (4000.0 + 2000.0) / 4.0);
    near(result.get("ofo_max_bytes"), 4000.0);
    // Type 7: 2.85 of the way through 0, 0, 2000, 4000.
    near(result.get("ofo_p95_bytes"), 2000.0 + 0.85 * 2000.0);
    near(result.get("duplicate_bytes"), 600.0);
    // Nothing waited behind a gap of its own subflow.
    near(result.get("subflow_ofo_max_bytes"), 0.0);
}

#[test]
fn the_queues_of_subflows_add_up_and_end_with_their_subflows() {
    let mut run = Run::new(config(10, Some(50), None));
    // Samples: [10, 20) sees 900 + 300, [20, 30) and [30, 40) begin with 900, [40, 50) with nothing.
    run.client(5, 0, Event::SubflowOfo(500))
        .client(12, 0, Event::SubflowOfo(900))
        .client(13, 1, Event::SubflowOfo(300))
        .client(14, 1, Event::SubflowOfo(0))
        .client(35, 0, Event::Path(PathState::Dead))
        .server(36, 1, Event::SubflowOfo(9000));
    let result = run.end(50);
    near(result.get("subflow_ofo_mean_bytes"), (1200.0 + 900.0 + 900.0) / 4.0);
    near(result.get("subflow_ofo_max_bytes"), 1200.0);
    // Type 7: 2.85 of the way through 0, 900, 900, 1200.
    near(result.get("subflow_ofo_p95_bytes"), 900.0 + 0.85 * 300.0);
    near(result.get("ofo_max_bytes"), 0.0);
}

#[test]
fn reordering_by_blocks() {
    let mut run = Run::new(config(0, Some(1000), None));
    // 1, 2, 3, 7, 4, 5, 8, 6 with a copy of 7 between.
    for (ms, block) in [0, 1, 2, 6, 3, 6, 4, 7, 5].into_iter().enumerate() {
        run.client(ms as u64, 0, arrived(block * 1000, 1000));
    }
    let result = run.end(1000);
    near(result.get("rbd_mean_packets"), 0.625);
    near(result.get("reordered_ratio"), 3.0 / 8.0);
    near(result.get("reorder_extent_mean_packets"), 7.0 / 3.0);
    assert_eq!(result.density.packets(), 8);
}

#[test]
fn a_short_last_block_counts() {
    let mut run = Run::new(config(0, Some(1000), None));
    run.server(0, 0, Event::WriteEnd(1400))
        .client(1, 0, Event::DataArrived { data: Range::new(1000, 1400), new: 400, ofo: 0 })
        .client(2, 0, arrived(0, 1000));
    assert_eq!(run.end(1000).density.displacements(), [(-1, 0.5), (1, 0.5)]);
}

#[test]
fn windows_are_weighted_by_time() {
    let mut run = Run::new(config(100, Some(200), None));
    run.server(50, 0, window(10, 0)).server(110, 0, window(20, 40)).server(150, 0, window(40, 60)).server(
        175,
        0,
        Event::Path(PathState::Dead),
    );
    let result = run.end(200);
    near(result.paths[0].get("cwnd_mean_packets"), (10.0 * 10.0 + 20.0 * 40.0 + 40.0 * 25.0) / 75.0);
    near(result.paths[0].get("srtt_mean_s"), (0.04 * 40.0 + 0.06 * 25.0) / 65.0);
    assert_eq!(result.paths[1].get("cwnd_mean_packets"), None);
    assert_eq!(result.paths[1].get("srtt_mean_s"), None);
}

#[test]
fn waiting_for_the_window() {
    let mut run = Run::new(config(100, Some(200), None));
    run.server(90, 0, Event::WindowBlocked(true))
        .server(110, 0, Event::WindowBlocked(false))
        .server(150, 0, Event::WindowBlocked(true))
        .server(155, 0, Event::WindowBlocked(false))
        .server(190, 0, Event::WindowBlocked(true));
    near(run.end(200).get("window_blocked_s"), 0.01 + 0.005 + 0.01);
}

#[test]
fn the_longest_outage() {
    let mut run = Run::new(config(100, Some(1000), None));
    run.server(20, 0, written(3000))
        .client(130, 0, delivered(0, 1000)) // 30 ms since the warm-up ended
        .client(180, 0, delivered(1000, 3000)) // 50 ms; then nothing waits
        .server(900, 0, written(4000))
        .client(920, 0, delivered(3000, 4000))
        .server(980, 0, written(5000));
    near(run.end(1000).get("outage_s"), 0.05);
    // An outage at the end counts up to the end.
    let mut stuck = Run::new(config(0, Some(1000), None));
    stuck.server(400, 0, written(1000));
    near(stuck.end(1000).get("outage_s"), 0.6);
}

/// Hosts ahead of each other are recorded in another order, and their times count.
#[test]
fn an_outage_counts_times_in_any_order_of_hosts() {
    let [mut in_order, mut ahead] = [(); 2].map(|()| Run::new(config(0, Some(1000), None)));
    in_order.server(120, 0, written(1000));
    ahead.server(120, 0, written(1000));
    in_order.client(200, 0, delivered(0, 1000)).server(205, 0, written(2000)).client(300, 0, delivered(1000, 2000));
    ahead.server(205, 0, written(2000)).client(200, 0, delivered(0, 1000)).client(300, 0, delivered(1000, 2000));
    near(in_order.end(1000).get("outage_s"), 0.095);
    near(ahead.end(1000).get("outage_s"), 0.095);
}

#[test]
fn links_of_any_flow_down_only() {
    let mut run = Run::new(config(10, Some(20), None));
    run.link(5, 0, LinkEvent::Enqueued { queue_packets: 90, queue_bytes: 0 })
        .link(9, 0, LinkEvent::Departed)
        .link(11, 0, LinkEvent::Enqueued { queue_packets: 7, queue_bytes: 0 })
        .link(12, 0, LinkEvent::Enqueued { queue_packets: 3, queue_bytes: 0 })
        .link(9, 0, LinkEvent::Departed) // reported late
        .link(13, 0, LinkEvent::Departed)
        .link(14, 0, LinkEvent::Departed)
        .link(9, 0, LinkEvent::Marked) // of the warm-up, reported late
        .link(14, 0, LinkEvent::Marked)
        .tell(15, None, 0, Event::Link { direction: Direction::Up, size: 1500, what: LinkEvent::Departed });
    let result = run.end(20);
    assert_eq!([0, 1].map(|path| result.paths[path].get("marked_packets")), [Some(1.0), None]);
    near(result.paths[0].get("queue_max_packets"), 7.0);
    // 3000 of 10 000 bytes: 8 Mbit/s for 10 ms.
    near(result.paths[0].get("utilisation"), 0.3);
    assert_eq!(result.paths[1].get("queue_max_packets"), None);
    near(result.paths[1].get("utilisation"), 0.0);
}

#[test]
fn cross_traffic_does_not_count() {
    let mut run = Run::new(config(0, Some(100), None));
    let other = Origin { host: Some(Side::Client), connection: ConnId(9), path: PathId(0) };
    run.0.record(Instant::from_millis(5), other, &delivered(0, 1000));
    run.0.record(Instant::from_millis(5), Origin { host: Some(Side::Server), ..other }, &sent(0, SendKind::First));
    // Nor does what the client sends.
    run.client(6, 0, sent(0, SendKind::First)).server(6, 0, delivered(0, 1000));
    let result = run.end(100);
    near(result.get("goodput_bps"), 0.0);
    near(result.paths[0].get("sent_bytes"), 0.0);
    assert_eq!((result.paths[0].get("share"), result.paths[0].get("loss_ratio")), (None, None));
}

#[test]
fn several_connections_add_up() {
    let mut config = config(0, None, Some(3000));
    config.connections = 2;
    let mut run = Run::new(config);
    let second = Origin { host: Some(Side::Client), connection: ConnId(1), path: PathId(0) };
    run.client(0, 0, SYN_SENT).client(10, 0, delivered(0, 2000));
    run.0.record(Instant::from_millis(20), second, &SYN_SENT);
    run.0.record(Instant::from_millis(40), second, &arrived(1000, 1000));
    run.0.record(Instant::from_millis(50), second, &delivered(0, 1000));
    let result = run.end(90);
    near(result.get("completion_s"), 0.05);
    near(result.get("goodput_bps"), 3000.0 * 8.0 / 0.05);
    near(result.get("rbd_mean_packets"), 1.0);
    assert_eq!((result.get("flow_completion_mean_s"), result.get("flows_finished")), (None, None));
}

#[test]
fn each_flow_completes_by_itself() {
    let mut config = config(0, Some(100), Some(3000));
    config.connections = 3;
    config.flow_size = Some(1000);
    let mut run = Run::new(config);
    let mut client = |ms, connection, event: Event| {
        let origin = Origin { host: Some(Side::Client), connection: ConnId(connection), path: PathId(0) };
        run.0.record(Instant::from_millis(ms), origin, &event);
    };
    client(0, 0, SYN_SENT);
    client(10, 1, SYN_SENT);
    // A repeated SYN begins nothing.
    client(15, 1, Event::ControlSent { flags: SYN, again: true });
    client(20, 2, SYN_SENT);
    client(30, 0, delivered(0, 1000));
    client(40, 1, delivered(0, 999));
    client(70, 1, delivered(999, 1000));
    client(80, 2, delivered(0, 500));
    let result = run.end(100);
    near(result.get("flows_finished"), 2.0);
    // 30 and 60 ms from their own SYNs.
    near(result.get("flow_completion_mean_s"), 0.045);
    near(result.get("flow_completion_max_s"), 0.06);
    assert!(!result.finished && result.get("completion_s").is_none());
}

#[test]
fn responses_are_timed_from_the_request() {
    let mut config = config(0, None, Some(2000));
    config.timed = Timed::Responses(ResponseSchedule { request: 100, size: 1000 });
    let mut run = Run::new(config);
    run.client(0, 0, SYN_SENT)
        .client(10, 0, written(100))
        .client(40, 0, delivered(0, 1000))
        .client(50, 0, Event::Written(Range::new(100, 200)))
        .client(70, 0, delivered(1000, 2000));
    let result = run.end(90);
    near(result.get("response_mean_s"), 0.025);
    near(result.get("response_max_s"), 0.03);
    assert_eq!(result.get("app_delay_mean_s"), None);
}

#[test]
fn values_come_in_the_order_of_the_catalogue() {
    let order = |values: &[(&'static str, f64)], per_path| {
        let all: Vec<_> = crate::METRICS.iter().filter(|m| m.per_path == per_path).map(|m| m.name).collect();
        let at: Vec<_> = values.iter().map(|(name, _)| all.iter().position(|n| n == name).expect("listed")).collect();
        assert!(at.is_sorted(), "{values:?}");
        all.len() - at.len()
    };
    let mut config = config(0, None, Some(2000));
    config.paths[0].outages = vec![(Instant::ZERO, Instant::from_millis(1))];
    config.flow_size = Some(2000);
    config.timed = Timed::Frames(FrameSchedule {
        pattern: FramePattern::steady(1000, Duration::from_millis(1)),
        count: Some(2),
        deadline: Some(Duration::from_millis(1)),
    });
    config.cross = vec![CrossFlow { id: ConnId(1), size: Some(2000) }];
    config.efficiency = true;
    let mut run = Run::new(config);
    for event in [SYN_SENT, delivered(0, 2000)] {
        let origin = Origin { host: Some(Side::Client), connection: ConnId(1), path: PathId(0) };
        run.0.record(Instant::from_millis(0), origin, &event);
    }
    run.client(0, 0, SYN_SENT)
        .server(1, 0, Event::Written(Range::new(0, 1000)))
        .server(1, 0, window(10, 20))
        .server(1, 1, window_sample(10, 20, 20))
        .server(1, 0, sent(0, SendKind::First))
        .link(1, 0, LinkEvent::Enqueued { queue_packets: 0, queue_bytes: 0 })
        .client(1, 1, arrived(1000, 1000))
        .server(1, 1, window_sample(10, 20, 20))
        .client(2, 0, arrived(0, 1000))
        .server(2, 0, window_sample(10, 20, 20))
        .client(3, 0, Event::Path(PathState::Dead))
        .client(3, 0, delivered(0, 2000));
    let mut result = run.end(4);
    near(result.paths[0].get("lost_subflows"), 1.0);
    // Due after 1 and 2 ms, both delivered after 3.
    near(result.get("app_delay_mean_s"), 0.0015);
    near(result.get("app_delay_max_s"), 0.002);
    // Played out after 2 and 3 ms: the first is late, and nothing is to be seen for a millisecond of two.
    near(result.get("late_ratio"), 0.5);
    near(result.get("stall_s"), 0.001);
    near(result.get("stall_ratio"), 0.5);
    near(result.get("late_per_minute"), 30_000.0);
    // All but the four that need other runs or a bound, those of responses, the six of a video alone, and the twelve of each of two directions; of a path, all but the
    // three of real links.
    assert_eq!((order(&result.values, false), order(&result.paths[0].values, true)), (27, 3));
    result.set("oracle_ratio", Some(0.5));
    result.set("aggregation_benefit", Some(0.25));
    result.set("best_single_ratio", None);
    result.set("aggregation_benefit", Some(0.75));
    assert_eq!((order(&result.values, false), result.get("aggregation_benefit")), (25, Some(0.75)));
}

#[test]
fn nothing_at_all_is_no_error() {
    let result = Meter::new(config(100, None, Some(1))).finish(Instant::from_millis(50));
    assert!(!result.finished);
    assert_eq!((result.get("goodput_bps"), result.get("ofo_mean_bytes")), (None, None));
    assert_eq!(Meter::new(config(0, None, None)).finish(Instant::ZERO).get("goodput_bps"), None);
}

#[test]
fn absurd_events_do_no_harm() {
    let mut run = Run::new(config(0, None, None));
    run.client(1, 200, Event::DataArrived { data: Range::new(9, u64::MAX), new: u64::MAX, ofo: 0 })
        .client(1, 200, Event::DataArrived { data: Range::new(7, 3), new: 9, ofo: 0 })
        .client(1, 200, ofo(u64::MAX))
        .server(1, 200, window(u32::MAX, 1 << 40))
        .server(2, 200, Event::WriteEnd(0))
        .link(3, 200, LinkEvent::Departed);
    let result = run.0.clone().finish(Instant::MAX);
    near(result.get("goodput_bps"), 0.0);
}

#[test]
fn a_path_returns_with_the_first_new_data_after_its_outage() {
    let mut config = config(0, None, None);
    config.paths[0].outages = vec![(Instant::from_millis(10), Instant::from_millis(30))];
    let mut run = Run::new(config);
    run.client(9, 0, arrived(0, 1000))
        .client(31, 1, arrived(1000, 1000))
        .client(35, 0, arrived(0, 0))
        .server(36, 0, Event::PathProbe)
        .client(42, 0, arrived(2000, 500))
        .client(60, 0, arrived(3000, 1000));
    let result = run.end(100);
    let of = |path: usize| result.paths[path].values.iter().find(|(name, _)| *name == "return_s").map(|(_, s)| *s);
    near(of(0), 0.012);
    assert_eq!(of(1), None);
    near(result.get("path_probes"), 1.0);
}

#[test]
fn cross_flows_add_up_and_finish_on_their_own() {
    let cross = |n, size| CrossFlow { id: ConnId(n), size };
    let config = |cross| MeterConfig { cross, ..config(1000, Some(3000), None) };
    let mut run = Run::new(config(vec![cross(1, Some(2000)), cross(2, None), cross(3, Some(9000))]));
    let mut tell = |ms, n, host, event: Event| {
        let origin = Origin { host: Some(host), connection: ConnId(n), path: PathId(0) };
        run.0.record(Instant::from_millis(ms), origin, &event);
    };
    let syn = Event::ControlSent { flags: SYN, again: false };
    let got = |start| Event::Delivered(Range::new(start, start + 1000));
    tell(500, 1, Side::Client, syn);
    tell(600, 1, Side::Client, Event::ControlSent { flags: SYN, again: true });
    tell(500, 3, Side::Client, syn);
    // Before the measured time: counted for the transfer, not for the goodput.
    tell(900, 1, Side::Client, got(0));
    tell(1500, 2, Side::Server, got(0)); // it flows to the server
    tell(2000, 1, Side::Client, got(1000));
    tell(2500, 3, Side::Client, got(0));
    tell(3500, 3, Side::Client, got(1000)); // too late
    let metrics = run.end(3500);
    assert_eq!(metrics.get("cross_goodput_bps"), Some(3000.0 * 8.0 / 2.0));
    assert_eq!(metrics.get("cross_completion_mean_s"), Some(1.5));
    assert_eq!(metrics.get("cross_finished"), Some(1.0));
    let mut run = Run::new(config(vec![cross(1, None)]));
    assert_eq!(run.end(3000).get("cross_goodput_bps"), Some(0.0));
    assert_eq!(run.end(3000).get("cross_finished"), None);
    let mut without = Run::new(config(vec![]));
    assert!(without.end(3000).values.iter().all(|(name, _)| !name.starts_with("cross_")));
}

#[test]
fn a_cross_flow_may_finish_after_the_connection() {
    let sized = CrossFlow { id: ConnId(1), size: Some(1000) };
    let mut run = Run::new(MeterConfig { cross: vec![sized], ..config(0, None, Some(1000)) });
    run.client(0, 0, Event::ControlSent { flags: SYN, again: false });
    run.client(100, 0, Event::Delivered(Range::new(0, 1000)));
    for (ms, event) in
        [(50, Event::ControlSent { flags: SYN, again: false }), (400, Event::Delivered(Range::new(0, 1000)))]
    {
        let origin = Origin { host: Some(Side::Client), connection: ConnId(1), path: PathId(0) };
        run.0.record(Instant::from_millis(ms), origin, &event);
    }
    let metrics = run.end(400);
    assert_eq!((metrics.get("completion_s"), metrics.get("cross_completion_mean_s")), (Some(0.1), Some(0.35)));
    // Its bytes came after the measured time.
    assert_eq!(metrics.get("cross_goodput_bps"), Some(0.0));
}

fn window_sample(cwnd: u32, srtt: u64, rtt: u64) -> Event {
    let (srtt, rtt) = (Duration::from_millis(srtt), Some(Duration::from_millis(rtt)));
    Event::Window(WindowChange { cwnd, ssthresh: u32::MAX, in_flight: 1, srtt, rtt })
}

#[test]
fn samples_of_the_round_trip_time_have_a_mean() {
    let mut run = Run::new(config(100, Some(1000), None));
    run.server(50, 0, window_sample(10, 900, 900))
        .server(150, 0, window_sample(10, 20, 20))
        .server(160, 0, window(10, 20))
        .server(170, 0, window_sample(10, 22, 50));
    let result = run.end(1000);
    near(result.paths[0].get("rtt_mean_s"), 0.035);
    assert_eq!(result.paths[1].get("rtt_mean_s"), None);
}

#[test]
fn the_head_start_ends_with_the_first_packet_of_another_path() {
    // The warm-up counts: by its end all is over.
    let mut run = Run::new(config(500, Some(1000), None));
    run.server(5, 1, window_sample(10, 30, 30)) // of the first path's handshake: nothing has arrived yet
        .client(10, 1, arrived(0, 1000))
        .client(11, 1, Event::DataArrived { data: Range::new(1000, 2400), new: 1400, ofo: 0 }) // two segments
        .server(20, 1, window_sample(10, 30, 40))
        .server(21, 0, window_sample(10, 80, 80)) // of the other's handshake
        .client(30, 1, arrived(3000, 1000))
        .server(40, 1, window_sample(10, 30, 60))
        .client(90, 0, arrived(4000, 1000));
    assert_eq!((run.end(95).get("head_start_packets"), run.end(95).get("head_start_rtt_ratio")), (Some(4.0), None));
    run.client(91, 1, arrived(5000, 1000))
        .server(100, 1, window_sample(10, 30, 900))
        .server(120, 0, window_sample(10, 80, 150))
        .server(130, 0, window_sample(10, 80, 700));
    let result = run.end(1000);
    near(result.get("head_start_packets"), 4.0);
    near(result.get("head_start_rtt_ratio"), 150.0 / 50.0);
}

#[test]
fn without_another_path_there_is_no_head_start() {
    for head_start in [false, true] {
        let mut run = Run::new(MeterConfig { head_start, ..config(0, Some(1000), None) });
        run.client(10, 0, arrived(0, 1000)).server(20, 0, window_sample(10, 30, 40));
        if !head_start {
            run.client(30, 1, arrived(1000, 1000)).server(40, 1, window_sample(10, 30, 40));
        }
        // Nor does it keep the measured time from ending.
        run.client(1500, 0, delivered(0, 1000));
        let result = run.end(2000);
        assert_eq!((result.get("head_start_packets"), result.get("goodput_bps")), (None, Some(0.0)), "{head_start}");
    }
}

#[test]
fn the_increase_of_lia_is_a_mean_over_the_measured_time() {
    let mut run = Run::new(MeterConfig { efficiency: true, ..config(100, Some(200), None) });
    // β = 2; γ = 2 for 25 ms, then 8, until a path is gone.
    run.server(10, 0, window(10, 20)).server(20, 1, window(20, 40)).server(125, 1, window(20, 160)).server(
        175,
        1,
        Event::Path(PathState::Dead),
    );
    near(run.end(200).get("increment_efficiency_mean"), (0.25 * 25.0 + 0.64 * 50.0) / 75.0);
    let mut other = Run::new(config(0, Some(200), None));
    other.server(10, 0, window(10, 20)).server(20, 1, window(20, 40));
    assert_eq!(other.end(200).get("increment_efficiency_mean"), None);
}

/// Bytes count at the price of their time, and those of the warm-up do not count.
#[test]
fn prices_that_change_count_from_then_on() {
    let mut config = config(10, None, None);
    let at = Instant::from_millis;
    config.paths[0].prices = vec![(at(5), 0.1), (at(20), 2.0), (at(30), 0.0)];
    let mut run = Run::new(config);
    for ms in [1, 12, 19, 20, 29, 30, 40] {
        run.server(ms, 0, sent(ms * 1000, SendKind::First));
    }
    near(run.end(50).get("price"), 2000.0 * 0.1 + 2000.0 * 2.0);
}

/// The same events at the other end are the same run, but for who connects.
#[test]
fn what_the_client_sends_counts_as_what_the_server_sends() {
    let of = |direction: TrafficDirection| {
        let mut run = Run::new(MeterConfig { direction, ..config(0, None, Some(2000)) });
        let (sender, receiver) = (direction.first().sender(), direction.first().receiver());
        run.client(10, 0, SYN_SENT);
        run.tell(40, Some(sender), 0, written(2000)).tell(40, Some(sender), 0, sent(0, SendKind::First));
        run.tell(41, Some(sender), 1, sent(1000, SendKind::First));
        run.tell(60, Some(receiver), 0, arrived(0, 1000)).tell(60, Some(receiver), 0, delivered(0, 1000));
        run.tell(90, Some(receiver), 1, arrived(1000, 1000)).tell(90, Some(receiver), 1, delivered(1000, 2000));
        let what = LinkEvent::Departed;
        run.tell(50, None, 0, Event::Link { direction: direction.first(), size: 1500, what });
        run.tell(50, None, 0, Event::Link { direction: direction.first().reverse(), size: 9000, what });
        run.end(200)
    };
    let (down, up) = (of(TrafficDirection::Down), of(TrafficDirection::Up));
    assert_eq!(down.values, up.values);
    assert_eq!(down.paths, up.paths);
    assert_eq!((up.get("completion_s"), up.get("syns_sent")), (Some(0.08), Some(1.0)));
    // 1,500 bytes of the 80,000 that 8 Mbit/s carry in the 80 ms from the SYN on.
    near(up.paths[0].get("utilisation"), 1500.0 / 80_000.0);
}

#[test]
fn both_directions_add_up_and_stand_for_themselves() {
    let direction = TrafficDirection::Both;
    let mut run = Run::new(MeterConfig { direction, ..config(0, None, Some(4000)) });
    run.client(10, 0, SYN_SENT).server(40, 0, written(2000)).client(30, 0, written(2000));
    run.server(41, 0, sent(0, SendKind::First)).server(42, 1, sent(1000, SendKind::First));
    run.client(31, 0, sent(0, SendKind::First)).client(32, 0, sent(1000, SendKind::Retransmission));
    run.client(60, 0, delivered(0, 2000)).server(80, 0, delivered(0, 1000)).server(110, 0, delivered(1000, 2000));
    run.link(50, 0, LinkEvent::Departed);
    let up = Event::Link { direction: Direction::Up, size: 500, what: LinkEvent::Departed };
    let result = run.tell(51, None, 0, up).end(900);
    assert!(result.finished);
    near(result.get("completion_s"), 0.1);
    near(result.get("completion_down_s"), 0.05);
    near(result.get("completion_up_s"), 0.1);
    near(result.get("goodput_bps"), 4000.0 * 8.0 / 0.1);
    near(result.get("goodput_down_bps"), 2000.0 * 8.0 / 0.1);
    near(result.get("goodput_up_bps"), 2000.0 * 8.0 / 0.1);
    near(result.get("retransmitted_packets"), 1.0);
    near(result.paths[0].get("sent_bytes"), 3000.0);
    // The capacity of a path with two ways is that of both; this configuration knows one.
    near(result.paths[0].get("utilisation"), 2000.0 / 100_000.0);
}

#[test]
fn segments_are_timed_from_the_first_syn_in_the_order_of_the_catalogue() {
    let mut config = config(0, None, None);
    let secs = Duration::from_secs;
    let rule = PlaybackRule { segment: secs(1), start_at: secs(1), resume_at: secs(1), count: None };
    config.timed = Timed::Video(VideoSchedule { rule, live: Some(secs(1)) });
    let requested = Event::SegmentRequested { bps: 8000, size: 1000 };
    let mut run = Run::new(config);
    run.client(100, 0, SYN_SENT).client(200, 0, requested).client(400, 0, delivered(0, 1000));
    run.client(400, 0, requested).client(1900, 0, delivered(1000, 2000));
    // Begins at 400 ms, is empty at 1400, plays again at 1900.
    let result = run.end(2400);
    let order: Vec<_> =
        result.values.iter().map(|(name, _)| crate::METRICS.iter().position(|m| m.name == *name)).collect();
    assert!(order.is_sorted(), "{:?}", result.values);
    let expected = [
        ("stall_s", 0.5),
        ("stall_ratio", 0.25),
        ("freeze_max_s", 0.5),
        ("qoe", (0.016 - 3.0 * 0.8) / 2.0),
        ("bitrate_mean_bps", 8000.0),
        ("switches", 0.0),
        ("startup_s", 0.3),
        ("played_s", 1.5),
        ("live_latency_s", 1.7),
    ];
    for (name, value) in expected {
        near(result.get(name), value);
    }
}
