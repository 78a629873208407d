//! The lives of packets in virtual time.

use anabranch_recorders::{Fate, Timeline, TimelinePacket, TimelineRecorder};
use anabranch_run::{CONNECTION, Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, PlugIn};
use anabranch_trace::{DecisionLog, Event, Origin, Outcome, Recorder, SendKind};
use anabranch_units::{Instant, PathId, Range, RangeSet, Side};
use anabranch_wire::Packet;
use std::sync::Arc;

const SCENARIO: &str = r#"
name = "two paths"

[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"
loss = "1%"

[[path]]
name = "far"
rate = "4mbit"
delay = "60ms"

[[traffic]]
kind = "bulk"
size = "2MB"
"#;

/// The events that a recorder sees of a run that ends at `end`.
struct Until {
    end: Instant,
    recorder: TimelineRecorder,
}

impl Recorder for Until {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if now <= self.end {
            self.recorder.record(now, origin, event);
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        if now <= self.end {
            self.recorder.packet(now, host, sent, path, packet);
        }
    }
}

fn timeline(scheduler: &str, limit: usize) -> Timeline {
    let mut recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, limit);
    let outcome = run(scheduler, &mut recorder);
    let end = Instant::from_nanos((outcome.metrics["completion_s"] * 1e9) as u64);
    recorder.finish(end, vec!["near".into(), "far".into()])
}

fn run(scheduler: &str, recorder: &mut dyn Recorder) -> RunOutcome {
    run_of(SCENARIO, scheduler, recorder)
}

fn run_of(scenario: &str, scheduler: &str, recorder: &mut dyn Recorder) -> RunOutcome {
    let scenario = Document::parse("two.toml", scenario).unwrap().cells.remove(0).1;
    let choice = Choice::Multipath(PlugIn { name: scheduler.into(), parameters: Vec::new() });
    VirtualTime::default().run(&Job::of(Arc::new(scenario), choice, 1), recorder).unwrap()
}

#[test]
fn each_packet_has_the_view_of_the_scheduler_that_bound_it() {
    for (scheduler, state, path_state) in [
        ("minrtt+pr", None, None),
        ("blest", Some("lambda"), None),
        ("ecf", Some("waiting"), None),
        ("daps", None, Some("planned")),
    ] {
        let log = DecisionLog::new(CONNECTION, Instant::ZERO, 5000);
        let mut recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, 5000).with_decisions(log);
        let outcome = run(scheduler, &mut recorder);
        assert_eq!(outcome.digest, run(scheduler, &mut ()).digest, "{scheduler}: a witness changes nothing");
        let timeline = recorder.finish(Instant::from_millis(60_000), vec!["near".into(), "far".into()]);
        let decisions = timeline.decisions.as_ref().unwrap();
        let names = |name: Option<&str>| Vec::from_iter(name.map(str::to_owned));
        assert_eq!((&decisions.state, &decisions.path_state), (&names(state), &names(path_state)), "{scheduler}");
        let new = timeline.packets.iter().filter(|packet| packet.kind == SendKind::First);
        let (seen, unseen): (Vec<&TimelinePacket>, Vec<_>) =
            new.partition(|packet| timeline.decision_of(packet).is_some());
        assert!(seen.len() > 1200, "{scheduler}: {}", unseen.len());
        // The first went out before the second path was there. Later ones waited for a loss recovery's leave to send (RFC 6937),
        // and no event says when they were bound.
        for packet in unseen.iter().filter(|packet| packet.bound_s >= 0.3) {
            let mut repairs =
                timeline.packets.iter().filter(|p| p.kind == SendKind::Retransmission && p.path == packet.path);
            let recent = |sent_s: f64| sent_s < packet.sent_s && packet.sent_s < sent_s + 0.3;
            assert!(repairs.any(|repair| recent(repair.sent_s)), "{scheduler}: {packet:?}");
        }
        for packet in seen {
            let decision = &decisions.rows[timeline.decision_of(packet).unwrap()];
            let path = &decision.paths[packet.path];
            assert_eq!(decision.at_s, packet.bound_s);
            assert!(path.usable && decision.backlog_bytes >= packet.data_end - packet.data_start, "{decision:?}");
            assert!(
                path.room > 0 || scheduler == "daps" || packet.bound_s < packet.sent_s,
                "{scheduler}: {decision:?}"
            );
            assert_eq!(decision.state.len(), decisions.state.len());
        }
        let planned =
            decisions.rows.iter().flat_map(|row| &row.paths).filter(|path| path.state.iter().any(|n| *n > 0.0));
        assert_eq!(planned.count() > 0, scheduler == "daps");
    }
}

/// A timeline with views of a run of `scenario`.
fn with_views(scheduler: &str, scenario: &str) -> Timeline {
    let log = DecisionLog::new(CONNECTION, Instant::ZERO, 5000);
    let mut recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, 5000).with_decisions(log);
    let seen = run_of(scenario, scheduler, &mut recorder);
    assert_eq!(seen.digest, run_of(scenario, scheduler, &mut ()).digest, "{scheduler}: a witness changes nothing");
    recorder.finish(Instant::from_millis(60_000), vec!["near".into(), "far".into()])
}

/// Packets that went elsewhere although a usable path with a lower RTT had room until the end of their round.
fn passed_over(timeline: &Timeline) -> usize {
    let over = |packet: &&TimelinePacket| {
        let Some(place) = timeline.decision_of(packet) else { return false };
        let paths = &timeline.decisions.as_ref().unwrap().rows[place].paths;
        let rtt = paths[packet.path].srtt_s.unwrap_or(f64::MAX);
        paths.iter().any(|path| path.usable && path.left > 0 && path.srtt_s.is_some_and(|srtt| srtt < rtt))
    };
    timeline.packets.iter().filter(over).count()
}

#[test]
fn minrtt_passes_over_no_faster_path_with_room_and_roundrobin_does() {
    // Small requests leave room; each round binds many packets.
    let requests =
        SCENARIO.replace("kind = \"bulk\"\nsize = \"2MB\"", "kind = \"request\"\nsize = \"100kB\"\ncount = 12");
    for scenario in [SCENARIO, &requests] {
        let minrtt = with_views("minrtt", scenario);
        assert!(minrtt.decisions.as_ref().unwrap().rows.len() > 50);
        assert_eq!(passed_over(&minrtt), 0);
    }
    let short = requests.replace("100kB", "14kB");
    assert!(passed_over(&with_views("roundrobin", &short)) > 20);
}

#[test]
fn a_scheduler_that_takes_over_is_seen_too() {
    let scenario =
        format!("{SCENARIO}\n[[timeline]]\nat = \"1s\"\nset = \"connection.scheduler\"\nvalue = \"blest\"\n");
    let timeline = with_views("minrtt", &scenario);
    let later: Vec<_> =
        timeline.packets.iter().filter(|packet| packet.kind == SendKind::First && packet.bound_s > 1.0).collect();
    let seen = later.iter().filter(|packet| timeline.decision_of(packet).is_some()).count();
    assert!(later.len() > 100 && seen > later.len() * 9 / 10, "{seen} of {}", later.len());
    assert_eq!(timeline.decisions.unwrap().state, ["lambda"]);
}

#[test]
fn rounds_that_only_wait_are_kept_if_they_are_wanted() {
    let rows = |log: DecisionLog| {
        let recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, 5000);
        run("ecf", &mut recorder.with_decisions(log.clone()));
        let rows = log.take().rows;
        (rows.len(), rows.iter().filter(|row| row.outcome == Outcome::Waited).count())
    };
    let log = || DecisionLog::new(CONNECTION, Instant::ZERO, 5000);
    let ((bound, none), (all, waits)) = (rows(log()), rows(log().with_waits()));
    assert!(none == 0 && waits > 0 && all == bound + waits, "{bound} {none} {all} {waits}");
}

#[test]
fn of_one_path_there_are_no_decisions() {
    let scenario = Document::parse("two.toml", SCENARIO).unwrap().cells.remove(0).1;
    let job = Job::of(Arc::new(scenario), Choice::Single(0), 1);
    let log = DecisionLog::new(CONNECTION, Instant::ZERO, 5000);
    let mut recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, 5000).with_decisions(log);
    VirtualTime::default().run(&job, &mut recorder).unwrap();
    assert_eq!(recorder.finish(Instant::from_millis(60_000), Vec::new()).decisions, None);
}

#[test]
fn every_byte_is_delivered_by_one_packet() {
    for scheduler in ["minrtt+pr", "redundant", "otias"] {
        let packets = timeline(scheduler, usize::MAX).packets;
        let mut delivered = RangeSet::new();
        for packet in packets.iter().filter(|packet| packet.delivered_s.is_some()) {
            let data = Range::new(packet.data_start, packet.data_end);
            assert_eq!(delivered.insert(data), data.len(), "{scheduler}: {packet:?}");
        }
        assert_eq!(delivered.iter().collect::<Vec<_>>(), [Range::new(0, 2_000_000)], "{scheduler}");
        let of = |kind| packets.iter().filter(|packet| packet.kind == kind).count();
        assert!(of(SendKind::First) > 2_000_000 / 1400 && of(SendKind::Retransmission) > 0, "{scheduler}");
        assert_eq!(of(SendKind::Copy) > 100, scheduler == "redundant");
    }
}

#[test]
fn times_follow_each_other_and_the_path() {
    let packets = timeline("minrtt", usize::MAX).packets;
    assert!(
        packets.is_sorted_by_key(|packet| packet.sent_s) && packets.iter().any(|packet| packet.arrived_s.is_none())
    );
    for packet in &packets {
        // One way, and 1400 bytes through the bottleneck if the packet is full.
        let (delay, rate) = [(0.010, 8e6), (0.060, 4e6)][packet.path];
        let least = delay + (packet.data_end - packet.data_start) as f64 * 8.0 / rate;
        assert!(packet.bound_s == packet.sent_s, "{packet:?}");
        assert!(packet.arrived_s.is_none_or(|arrived| arrived > packet.sent_s + least), "{packet:?}");
        let delivered = packet.delivered_s.zip(packet.arrived_s);
        assert!(packet.delivered_s.is_none() || delivered.is_some_and(|(delivered, arrived)| delivered >= arrived));
    }
    // Lost packets: about one in a hundred over the near path, none over the far one but for its queue.
    let lost = |path| packets.iter().filter(|p: &&TimelinePacket| p.path == path && p.arrived_s.is_none()).count();
    assert!(lost(0) > 0, "{}", lost(0));
}

#[test]
fn a_scheduler_that_queues_ahead_binds_before_it_sends() {
    for scheduler in ["otias", "sttf"] {
        let packets = timeline(scheduler, usize::MAX).packets;
        let waited = |packet: &&TimelinePacket| packet.bound_s < packet.sent_s;
        assert!(packets.iter().all(|packet| packet.bound_s <= packet.sent_s), "{scheduler}");
        assert!(packets.iter().filter(waited).count() > 200, "{scheduler}");
        assert!(packets.iter().filter(waited).all(|packet| packet.kind == SendKind::First), "{scheduler}");
    }
}

#[test]
fn what_is_lost_never_arrives_and_what_waits_is_delivered_later() {
    let whole = timeline("minrtt", usize::MAX).packets;
    let mut seen = [0; 3];
    for ms in (100..1300).step_by(50) {
        let recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, usize::MAX);
        let mut until = Until { end: Instant::from_millis(ms), recorder };
        run("minrtt", &mut until);
        let (end, packets) = (until.end.as_secs_f64(), until.recorder.finish(until.end, Vec::new()).packets);
        for (then, later) in packets.iter().zip(&whole) {
            match then.fate {
                Fate::Delivered => assert_eq!(then.delivered_s, later.delivered_s),
                Fate::Superseded => assert_eq!((then.arrived_s, later.delivered_s), (later.arrived_s, None)),
                Fate::Waiting => assert!(then.arrived_s.is_some() && later.delivered_s.is_some_and(|at| at > end)),
                Fate::OnTheWay => assert!(then.arrived_s.is_none() && later.arrived_s.is_none_or(|at| at > end)),
                Fate::Lost => assert_eq!(later.arrived_s, None),
            }
            match then.fate {
                Fate::Waiting => seen[0] += 1,
                Fate::OnTheWay => seen[1] += 1,
                Fate::Lost => seen[2] += 1,
                _ => {}
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

/// Most bytes that wait at once, each packet from its first time to its second.
fn most_waiting(packets: &[TimelinePacket], times: fn(&TimelinePacket) -> [Option<f64>; 2]) -> f64 {
    let size = |packet: &TimelinePacket| (packet.data_end - packet.data_start) as f64;
    let waits = packets.iter().filter_map(|packet| match times(packet) {
        [Some(from), Some(to)] => Some((from, to, size(packet))),
        _ => None,
    });
    let mut changes: Vec<(f64, f64)> =
        waits.filter(|(from, to, _)| from < to).flat_map(|(from, to, size)| [(from, size), (to, -size)]).collect();
    // A delivery at an instant makes room for an arrival at the same instant.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut waiting = 0.0;
    changes
        .into_iter()
        .map(|(_, change)| {
            waiting += change;
            waiting
        })
        .fold(0.0, f64::max)
}

#[test]
fn the_out_of_order_queue_is_that_of_the_metric_and_subflows_hold_the_rest() {
    let mut recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, usize::MAX);
    let outcome = run("minrtt", &mut recorder);
    let packets = recorder.finish(Instant::from_millis(100_000), Vec::new()).packets;
    let queue = most_waiting(&packets, |packet| [packet.subflow_in_order_s, packet.delivered_s]);
    assert_eq!(queue, outcome.metrics["ofo_max_bytes"]);
    let subflows = most_waiting(&packets, |packet| [packet.arrived_s, packet.subflow_in_order_s]);
    assert_eq!(subflows, outcome.metrics["subflow_ofo_max_bytes"]);
    let all = most_waiting(&packets, |packet| [packet.arrived_s, packet.delivered_s]);
    assert!(all > queue && all > subflows, "{all} {queue} {subflows}");
}

#[test]
fn a_limited_timeline_is_the_beginning_of_a_whole_one() {
    let (whole, limited) = (timeline("otias", usize::MAX), timeline("otias", 300));
    assert_eq!(limited.packets, whole.packets[..300]);
}
