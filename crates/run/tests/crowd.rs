//! Web pages, requests and many flows in virtual time.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, PlugIn, Scenario};
use anabranch_sim::Checks;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Instant, Side};
use std::sync::Arc;

const PATHS: &str = r#"
name = "a crowd"
[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"
[[path]]
name = "far"
rate = "4mbit"
delay = "40ms"
"#;

const PAGE: &str = "kind = 'web'\nsize = '72KiB'\nobjects = 15";

fn scenario(traffic: &str) -> Scenario {
    Document::parse("crowd", &format!("{PATHS}\n[[traffic]]\n{traffic}")).unwrap().cells.remove(0).1
}

fn job(scenario: &Scenario, choice: Choice, seed: u64) -> Job {
    Job::of(Arc::new(scenario.clone()), choice, seed)
}

fn multipath(scheduler: &str) -> Choice {
    Choice::Multipath(PlugIn { name: scheduler.into(), parameters: Vec::new() })
}

fn run(scenario: &Scenario, choice: Choice) -> RunOutcome {
    VirtualTime::default().run(&job(scenario, choice, 1), &mut ()).unwrap()
}

/// The events of the client's connections.
#[derive(Default)]
struct Heard {
    /// First SYNs.
    opened: Vec<(Instant, ConnId)>,
    /// Bytes that each host's application was given.
    up: u64,
    down: u64,
    /// Bytes by connection of the client that it was given so far.
    given: std::collections::BTreeMap<u32, u64>,
    /// The most connections at a time that were open and had been given less than [`OBJECT`].
    most_busy: usize,
}

/// Bytes of the largest object of [`PAGE`].
const OBJECT: u64 = 73_728 / 15;

impl Recorder for Heard {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match (origin.host, event) {
            (Some(Side::Client), Event::ControlSent { flags: 2, .. })
                if self.opened.iter().all(|(_, id)| *id != origin.connection) =>
            {
                self.opened.push((now, origin.connection));
                self.given.insert(origin.connection.0, 0);
                let busy = self.given.values().filter(|bytes| **bytes < OBJECT).count();
                self.most_busy = self.most_busy.max(busy);
            }
            (Some(Side::Client), Event::Delivered(range)) => {
                self.down += range.len();
                *self.given.entry(origin.connection.0).or_default() += range.len();
            }
            (Some(Side::Server), Event::Delivered(range)) => self.up += range.len(),
            _ => {}
        }
    }
}

fn listen(scenario: &Scenario, choice: Choice, seed: u64) -> (RunOutcome, Heard) {
    let mut heard = Heard::default();
    let outcome = VirtualTime::default().run(&job(scenario, choice, seed), &mut heard).unwrap();
    (outcome, heard)
}

#[test]
fn a_page_of_one_object_takes_two_round_trips() {
    let page = scenario("kind = 'web'\nsize = 1000\nobjects = 1\nrequest = '200B'");
    let outcome = run(&page, Choice::Single(0));
    // SYN and SYN/ACK of 60 bytes, the request of 252 with the last ACK, the response of 1052; and four times 10 ms.
    let least = 4.0 * 0.010 + f64::from(60 + 60 + 252 + 1052) * 8.0 / 8e6;
    let completion = outcome.metrics["completion_s"];
    assert!((completion - least).abs() < 1e-6, "{completion} instead of {least}");
    assert_eq!(outcome.metrics["delivered_bytes"], 1000.0);
    assert!(outcome.metrics["oracle_ratio"] > 0.85 && outcome.metrics["oracle_ratio"] <= 1.0);
}

#[test]
fn a_page_s_connections_open_together_and_ask_for_each_object_once() {
    let (outcome, heard) = listen(&scenario(PAGE), multipath("minrtt"), 1);
    assert!(outcome.finished, "{:?}", outcome.metrics);
    assert_eq!((outcome.metrics["delivered_bytes"], heard.down), (73_728.0, 73_728));
    let expected: Vec<_> = (0..6).map(|n| (Instant::ZERO, ConnId(n))).collect();
    assert_eq!((heard.opened, heard.up), (expected, 15 * 100));
    // A page is no flow of many, and its responses are none of one size.
    let absent = ["flow_completion_mean_s", "flows_finished", "response_mean_s", "app_delay_mean_s"];
    assert!(absent.iter().all(|name| !outcome.metrics.contains_key(name)), "{:?}", outcome.metrics);
    assert!(outcome.metrics["oracle_ratio"] <= 1.0);
}

#[test]
fn a_connection_for_each_object_makes_two_round_trips_of_each() {
    let page = scenario(
        "kind = 'web'\nsize = 3000\nobjects = 3\nconnections = 1\nconnections_per = 'object'\nrequest = '200B'",
    );
    let (outcome, heard) = listen(&page, Choice::Single(0), 1);
    // As a page of one object. The next SYN leaves with the acknowledgment and the FIN of the connection before, behind the
    // 52 bytes of each.
    let each = 4.0 * 0.010 + f64::from(60 + 60 + 252 + 1052) * 8.0 / 8e6;
    let times: Vec<f64> = heard.opened.iter().map(|(at, _)| at.as_secs_f64()).collect();
    assert_eq!(heard.opened.iter().map(|(_, id)| id.0).collect::<Vec<_>>(), [0, 1, 2]);
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!((each..each + 0.0005).contains(&gap), "{gap} instead of {each}");
    }
    let completion = outcome.metrics["completion_s"];
    assert!((3.0 * each..3.0 * each + 0.001).contains(&completion), "{completion}");
    assert_eq!((heard.down, heard.up, outcome.metrics["syns_sent"]), (3000, 600, 3.0));
}

#[test]
fn a_page_s_connections_follow_each_other_six_at_a_time() {
    let page = scenario(&format!("{PAGE}\nconnections_per = 'object'"));
    let (outcome, heard) = listen(&page, multipath("minrtt"), 1);
    assert!(outcome.finished, "{:?}", outcome.metrics);
    assert_eq!((heard.down, heard.up), (73_728, 15 * 100), "each object once");
    let (first, later) = heard.opened.split_at(6);
    assert!(first.iter().all(|(at, _)| *at == Instant::ZERO) && later.iter().all(|(at, _)| *at > Instant::ZERO));
    assert_eq!(heard.opened.iter().map(|(_, id)| id.0).collect::<Vec<_>>(), (0..15).collect::<Vec<_>>());
    // A connection is free as soon as its object is complete: never more than six requests are outstanding.
    assert!(heard.most_busy == 6, "{}", heard.most_busy);
}

#[test]
fn objects_of_lognormal_size_come_with_the_seed() {
    let page = scenario(&format!("{PAGE}\nsizes = 'lognormal'"));
    let of = |seed| listen(&page, Choice::Single(0), seed);
    let ((one, heard), (again, _), (other, _)) = (of(1), of(1), of(2));
    assert_eq!((heard.down, heard.up), (73_728, 1500));
    assert_eq!(one.digest, again.digest);
    assert_ne!(one.digest, other.digest);
}

#[test]
fn a_response_takes_a_round_trip_and_the_client_thinks_before_the_next_request() {
    let requests = scenario("kind = 'request'\nsize = 1000\ncount = 4\ninterval = '50ms'");
    let (outcome, heard) = listen(&requests, Choice::Single(0), 1);
    let trip = 2.0 * 0.010 + f64::from(152 + 1052) * 8.0 / 8e6;
    let [mean, max] = ["response_mean_s", "response_max_s"].map(|name| outcome.metrics[name]);
    assert!((max - trip).abs() < 1e-6 && (mean - trip).abs() < 1e-6, "{mean} {max} {trip}");
    let completion = 2.0 * 0.010 + 120e-6 + 4.0 * trip + 3.0 * 0.050;
    assert!((outcome.metrics["completion_s"] - completion).abs() < 1e-6, "{:?}", outcome.metrics);
    assert_eq!((heard.up, heard.down), (400, 4000));
}

#[test]
fn responses_without_end_have_times_and_no_completion() {
    let text = format!("duration = '2s'\n{PATHS}\n[[traffic]]\nkind = 'request'\nsize = '20KB'");
    let endless = Document::parse("crowd", &text).unwrap().scenario;
    let outcome = run(&endless, multipath("minrtt"));
    assert!(outcome.finished && outcome.metrics["response_p95_s"] > 0.02, "{:?}", outcome.metrics);
    assert!(!outcome.metrics.contains_key("completion_s") && !outcome.metrics.contains_key("oracle_ratio"));
}

#[test]
fn twenty_downloads_each_complete_by_themselves() {
    let flows = scenario("kind = 'bulk'\nsize = '50KB'\nflows = 20");
    for choice in [multipath("minrtt"), Choice::Single(1)] {
        let (outcome, heard) = listen(&flows, choice.clone(), 1);
        let [mean, p50, p95, max, all] = [
            "flow_completion_mean_s",
            "flow_completion_p50_s",
            "flow_completion_p95_s",
            "flow_completion_max_s",
            "completion_s",
        ]
        .map(|name| outcome.metrics[name]);
        assert_eq!((heard.opened.len(), outcome.metrics["flows_finished"]), (20, 20.0), "{choice:?}");
        assert_eq!(outcome.metrics["delivered_bytes"], 1e6);
        // All begin together: the last to end ends the run.
        assert!(mean <= p95 && p50 <= p95 && p95 <= max && max == all, "{:?}", outcome.metrics);
        assert!((outcome.metrics["goodput_bps"] - 8e6 / all).abs() < 1.0);
        assert!(outcome.metrics["oracle_ratio"] <= 1.0);
    }
}

#[test]
fn poisson_flows_begin_at_random_times_of_the_seed() {
    let flows = scenario("kind = 'bulk'\nsize = '20KB'\nflows = 40\narrivals = { kind = 'poisson', rate = 10.0 }");
    let (outcome, heard) = listen(&flows, multipath("minrtt"), 3);
    let times: Vec<Instant> = heard.opened.iter().map(|(at, _)| *at).collect();
    assert!(times.is_sorted() && times[0] > Instant::ZERO && heard.opened.iter().map(|(_, id)| id.0).eq(0..40));
    // 40 arrivals at 10 a second take 4 s, give or take four deviations of 0.63 s.
    let spread = times[39].as_secs_f64();
    assert!((1.5..6.5).contains(&spread), "{spread}");
    // The run is as long as its arrivals, a flow much shorter; and the bound knows of the arrivals.
    assert!(outcome.metrics["completion_s"] > times[39].since(times[0]).as_secs_f64());
    assert!(outcome.metrics["flow_completion_mean_s"] < 0.5, "{:?}", outcome.metrics);
    assert!((0.9..=1.0).contains(&outcome.metrics["oracle_ratio"]), "{:?}", outcome.metrics);
    let (_, others) = listen(&flows, multipath("blest"), 3);
    assert_eq!(times, others.opened.iter().map(|(at, _)| *at).collect::<Vec<_>>(), "one seed, the same arrivals");
    assert_ne!(times, listen(&flows, multipath("minrtt"), 4).1.opened.iter().map(|(at, _)| *at).collect::<Vec<_>>());
}

#[test]
fn several_streams_of_frames_have_their_delays_merged() {
    let frames = scenario("kind = 'frames'\nsize = 1000\ninterval = '40ms'\ncount = 25\nflows = 3");
    let outcome = run(&frames, multipath("minrtt"));
    assert_eq!((outcome.metrics["delivered_bytes"], outcome.metrics["flows_finished"]), (75_000.0, 3.0));
    // Three frames at the same time share the near path: the third waits for two.
    let max = outcome.metrics["app_delay_max_s"];
    assert!((0.0130..0.0175).contains(&max), "{max}");
}

/// Loss, so that every scheduler also meets repairs and late joins.
fn lossy(traffic: &str) -> Scenario {
    let text = format!("{PATHS}loss = '2%'\n[[traffic]]\n{traffic}");
    Document::parse("crowd", &text).unwrap().cells.remove(0).1
}

#[test]
fn every_scheduler_carries_a_page_and_flows_and_does_it_again_alike() {
    let pages = lossy("kind = 'web'\nsize = '40KiB'\nobjects = 9\nconnections = 3");
    let fresh = lossy("kind = 'web'\nsize = '40KiB'\nobjects = 9\nconnections = 3\nconnections_per = 'object'");
    let flows = lossy("kind = 'bulk'\nsize = '15KB'\nflows = 4\narrivals = { kind = 'poisson', rate = 20.0 }");
    let asks = lossy("kind = 'request'\nsize = '10KB'\ncount = 3\nflows = 2");
    for entry in anabranch_schedulers::all() {
        for (scenario, bytes) in [(&pages, 40_960.0), (&fresh, 40_960.0), (&flows, 60_000.0), (&asks, 60_000.0)] {
            let once = run(scenario, multipath(entry.name));
            assert!(once.finished && once.metrics["delivered_bytes"] == bytes, "{}: {:?}", entry.name, once.metrics);
            assert!(once.metrics["oracle_ratio"] <= 1.0, "{}", entry.name);
            // The same again, with every packet written to bytes and read back.
            let checked = VirtualTime { checks: Checks { wire: true }, ..VirtualTime::default() };
            let again = checked.run(&job(scenario, multipath(entry.name), 1), &mut ()).unwrap();
            assert_eq!(once.digest, again.digest, "{}", entry.name);
        }
    }
}
