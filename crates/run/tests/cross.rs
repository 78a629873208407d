//! Cross traffic beside the connection under test, from scenarios as users write them.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::Document;
use anabranch_sim::Checks;
use anabranch_trace::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{ConnId, Direction, Duration, Instant, PathId, Side};
use anabranch_wire::Packet;
use std::collections::BTreeMap;
use std::sync::Arc;

fn job(text: &str, seed: u64) -> Job {
    let document = Document::parse("cross", text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}"));
    let scenario = document.scenario;
    let choice = Choice::Multipath(scenario.scheduler.clone());
    Job::of(Arc::new(scenario), choice, seed)
}

fn run_with(text: &str, seed: u64, listener: &mut dyn Recorder) -> RunOutcome {
    VirtualTime::default().run(&job(text, seed), listener).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(text: &str, seed: u64) -> RunOutcome {
    run_with(text, seed, &mut ())
}

/// The data that each connection's receiver got and where, and each sender's round-trip times.
#[derive(Default)]
struct Seen {
    delivered: BTreeMap<(u32, Side), u64>,
    rtts: BTreeMap<u32, Vec<f64>>,
    uplink: u64,
}

impl Recorder for Seen {
    fn record(&mut self, _now: Instant, origin: Origin, event: &Event) {
        let ConnId(n) = origin.connection;
        match (event, origin.host) {
            (Event::Delivered(range), Some(host)) => *self.delivered.entry((n, host)).or_default() += range.len(),
            (Event::Window(window), _) => {
                self.rtts.entry(n).or_default().extend(window.rtt.map(Duration::as_secs_f64));
            }
            _ => {}
        }
    }
    fn link(&mut self, _now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        if (path, direction, what) == (PathId(0), Direction::Up, LinkEvent::Departed) {
            self.uplink += u64::from(size);
        }
    }
}

impl Seen {
    fn least_rtt(&self, connection: u32) -> f64 {
        self.rtts[&connection].iter().copied().fold(f64::MAX, f64::min)
    }
}

const ONE_PATH: &str = "duration = '10s'\n[connection]\nmptcp = false\ncongestion = 'reno'\n\
    [[path]]\nname = 'a'\nrate = '8mbit'\ndelay = '20ms'\n";

#[test]
fn a_flow_has_a_delay_of_its_own_behind_the_same_queue() {
    let mut seen = Seen::default();
    let cross = |delay| format!("[[cross]]\nkind = 'tcp'\npath = 'a'\ncongestion = 'reno'\n{delay}\n");
    let text = format!("{ONE_PATH}{}{}{}", cross(""), cross("delay = '5ms'"), cross("delay = '60ms'"));
    let outcome = run_with(&text, 1, &mut seen);
    // Twice the delay, and a packet's transmission each way; little waits at the beginning.
    for (flow, rtt) in [(0, 0.04), (1, 0.04), (2, 0.01), (3, 0.12)] {
        let least = seen.least_rtt(flow);
        assert!((rtt..rtt + 0.01).contains(&least), "flow {flow}: {least}");
    }
    // All four share one bottleneck, which is busy.
    let shares: Vec<f64> = (0..4).map(|n| seen.delivered[&(n, Side::Client)] as f64 / 1e7).collect();
    assert!((0.88..0.97).contains(&shares.iter().sum()), "{shares:?}");
    assert!(shares.iter().all(|share| *share > 0.02), "{shares:?}");
    let together = outcome.metrics["cross_goodput_bps"] / 8e6;
    assert!((together - shares[1..].iter().sum::<f64>()).abs() < 1e-9, "{together} {shares:?}");
    assert!(!outcome.metrics.contains_key("cross_finished"));
}

#[test]
fn a_path_that_others_share_behaves_as_before() {
    // The path's own bottleneck becomes a link: its rate changes and its loss go with it.
    let changes = "[[timeline]]\nat = '3s'\nset = 'path.a.rate'\nvalue = '2mbit'\n\
        [[timeline]]\nat = '6s'\nset = 'path.a.loss'\nvalue = '100%'\n";
    let beside = |delay| format!("{ONE_PATH}[[cross]]\nkind = 'tcp'\npath = 'a'\n{delay}start = '9s'\n{changes}");
    let (on, beside) = (run(&beside(""), 1), run(&beside("delay = '20ms'\n"), 1));
    for metric in ["goodput_bps", "ofo_max_bytes", "oracle_ratio", "retransmitted_packets"] {
        assert_eq!(on.metrics.get(metric), beside.metrics.get(metric), "{metric}");
    }
    // Nothing arrives at either after 6 s.
    assert_eq!((on.metrics["cross_goodput_bps"], beside.metrics["cross_goodput_bps"]), (0.0, 0.0));
}

/// Until 9 s, when the flow beside it begins, every key of a bottleneck changes as on a path that no flow shares.
#[test]
fn a_bottleneck_that_others_share_changes_as_before() {
    /// Times of drops before 9 s.
    #[derive(Default, Debug, PartialEq)]
    struct Drops(Vec<Instant>);
    impl Recorder for Drops {
        fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}
        fn link(&mut self, now: Instant, _path: PathId, _direction: Direction, _size: u32, what: LinkEvent) {
            if matches!(what, LinkEvent::Dropped(_)) && now < Instant::from_millis(9000) {
                self.0.push(now);
            }
        }
    }
    let drops = |text: &str| {
        let mut drops = Drops::default();
        run_with(text, 1, &mut drops);
        drops
    };
    // A delay of its own makes a link of the path's bottleneck.
    let beside = "[[cross]]\nkind = 'tcp'\npath = 'a'\ndelay = '30ms'\nstart = '9s'\n";
    let unchanged = drops(ONE_PATH);
    for (key, value) in
        [("rate", "'2mbit'"), ("burst", "'80KB'"), ("police", "{ rate = '3mbit', burst = '9KB' }"), ("queue", "'3p'")]
    {
        let text = format!("{ONE_PATH}[[timeline]]\nat = '3s'\nset = 'path.a.{key}'\nvalue = {value}\n");
        let alone = drops(&text);
        assert_ne!(alone, unchanged, "{key}");
        assert_eq!(drops(&format!("{text}{beside}")), alone, "{key}");
    }
}

#[test]
fn a_flow_may_go_against_the_data() {
    let (mut down, mut up) = (Seen::default(), Seen::default());
    let cross = "[[cross]]\nkind = 'tcp'\npath = 'a'\n";
    run_with(&format!("{ONE_PATH}{cross}"), 1, &mut down);
    run_with(&format!("{ONE_PATH}{cross}direction = 'up'\n"), 1, &mut up);
    assert!(down.delivered.contains_key(&(1, Side::Client)) && !down.delivered.contains_key(&(1, Side::Server)));
    assert!(up.delivered[&(1, Side::Server)] > 5_000_000 && !up.delivered.contains_key(&(1, Side::Client)));
    assert!(up.uplink > 5_000_000 && down.uplink < 1_000_000, "{} {}", up.uplink, down.uplink);
    let mut datagrams = Seen::default();
    run_with(
        &format!("{ONE_PATH}[[cross]]\nkind = 'udp'\npath = 'a'\nrate = '1mbit'\ndirection = 'up'\n"),
        1,
        &mut datagrams,
    );
    assert!((1_250_000..1_700_000).contains(&datagrams.uplink), "{}", datagrams.uplink);
}

#[test]
fn each_flow_draws_for_itself() {
    let mut seen = Seen::default();
    let text = format!(
        "{ONE_PATH}[[cross]]\nkind = 'tcp'\npath = 'a'\ncount = 12\ndelay = {{ min = '10ms', max = '50ms' }}\n\
         start = {{ min = '0s', max = '2s' }}\n"
    );
    let outcome = run_with(&text, 7, &mut seen);
    let mut rtts: Vec<f64> = (1..=12).map(|n| seen.least_rtt(n)).collect();
    rtts.sort_by(f64::total_cmp);
    assert!(rtts[0] < 0.05 && rtts[11] > 0.09, "{rtts:?}");
    // Through a full queue a round trip takes whole packet times, so that two flows may have the same least one.
    rtts.dedup();
    assert!(rtts.len() >= 10, "{rtts:?}");
    assert_eq!(outcome.digest, run(&text, 7).digest);
    assert_ne!(outcome.digest, run(&text, 8).digest);
    // The connection itself is the same path as ever.
    assert!((0.04..0.06).contains(&seen.least_rtt(0)), "{}", seen.least_rtt(0));
}

#[test]
fn a_limited_flow_writes_at_its_rate() {
    let wide = ONE_PATH.replace("10s", "100s").replace("8mbit", "50mbit");
    let quiet = "[[traffic]]\nkind = 'frames'\nsize = '100B'\ninterval = '1s'\n";
    let of = |keys: &str, seed| {
        run(&format!("{wide}[[cross]]\nkind = 'tcp-limited'\npath = 'a'\n{keys}\n{quiet}"), seed).metrics["cross_goodput_bps"]
    };
    // 157 packets of 1000 bytes per second, over 100 s: 15 700 of them, so the mean is known to 0.8 %.
    let one = of("packets_per_second = 157", 1) / 1.256e6;
    assert!((one - 1.0).abs() < 0.03, "{one}");
    let drawn = of("packets_per_second = 157\npacket_distribution = 'exponential'", 1) / 1.256e6;
    assert!((drawn - 1.0).abs() < 0.03, "{drawn}");
    // The mean of sixty exponential means has a standard deviation of 13 %.
    let many = of("packets_per_second = 20\nrate_distribution = 'exponential'\ncount = 60", 1) / 9.6e6;
    assert!((many - 1.0).abs() < 0.4 && (many - 1.0).abs() > 0.002, "{many}");
    assert_ne!(many, of("packets_per_second = 20\nrate_distribution = 'exponential'\ncount = 60", 2) / 9.6e6);
}

#[test]
fn datagrams_have_rates_around_the_mean() {
    let wide = ONE_PATH.replace("8mbit", "100mbit");
    let of = |keys: &str, seed| {
        let mut seen = Seen::default();
        let text = format!("{wide}[[cross]]\npath = 'a'\ndirection = 'up'\nrate = '500kbit'\n{keys}\n");
        run_with(&text, seed, &mut seen);
        seen.uplink as f64
    };
    let (none, fixed) = (of("kind = 'udp'\nstop = '1ns'", 1), of("kind = 'udp'\ncount = 40", 1));
    // Acknowledgments aside, 40 · 500 kbit/s for 10 s.
    assert!(((fixed - none) / 25e6 - 1.0).abs() < 0.02, "{fixed} {none}");
    let drawn = of("kind = 'udp'\ncount = 40\nrate_distribution = 'exponential'", 1);
    let ratio = (drawn - none) / 25e6;
    assert!((ratio - 1.0).abs() < 0.5 && (ratio - 1.0).abs() > 0.005, "{ratio}");
}

/// Twenty transfers that compete with the connection's own.
fn competing(more: &str) -> String {
    format!(
        "[connection]\nmptcp = false\ncongestion = 'reno'\n[[path]]\nname = 'a'\nrate = '5mbit'\ndelay = '10ms'\n\
         [[cross]]\nkind = 'tcp'\npath = 'a'\ncount = 20\nsize = '300KB'\ncongestion = 'reno'\n{more}\n\
         [[traffic]]\nkind = 'bulk'\nsize = '300KB'\n"
    )
}

#[test]
fn a_run_waits_for_competing_transfers_and_measures_them() {
    let outcome = run(&competing("start = { min = '0s', max = '100ms' }"), 1);
    let own = outcome.metrics["completion_s"];
    let others = outcome.metrics["cross_completion_mean_s"];
    assert_eq!(outcome.metrics["cross_finished"], 20.0);
    // Twenty-one times 300 KB at 5 Mbit/s take 10 s; who is alike ends alike.
    assert!(own < 14.0 && (4.0..14.0).contains(&others), "{own} {others}");
    assert!((0.4..2.5).contains(&(own / others)), "{own} {others}");
    assert!(outcome.finished);
}

#[test]
fn equal_transfers_take_equally_long_on_average() {
    let text = |more| competing(more).replace("count = 20", "count = 1").replace("300KB", "2MB");
    let times: Vec<(f64, f64)> = (0..20)
        .map(|seed| {
            let outcome = run(
                &text("start = { min = '0s', max = '50ms' }")
                    .replace("[connection]", "start_jitter = '50ms'\n[connection]"),
                seed,
            );
            (outcome.metrics["completion_s"], outcome.metrics["cross_completion_mean_s"])
        })
        .collect();
    let ratio = times.iter().map(|t| t.0).sum::<f64>() / times.iter().map(|t| t.1).sum::<f64>();
    assert!((0.85..1.18).contains(&ratio), "{ratio} {times:?}");
}

#[test]
fn transfers_that_cannot_finish_do_not_hold_the_run() {
    // Stopped while they transfer, beside datagrams that never end.
    let udp = "[[cross]]\nkind = 'udp'\npath = 'a'\nrate = '100kbit'\n";
    let stopped = run(&competing(&format!("stop = '1s'\n{udp}")), 1);
    assert!(stopped.finished && stopped.metrics["cross_finished"] < 20.0, "{:?}", stopped.metrics);
    // Never established: the path drops everything before the first SYN goes out.
    let refused = competing(&format!("start = '5s'\n{udp}"))
        .replace("[connection]", "[tcp]\nsyn_retries = 1\n[connection]")
        .replace("delay = '10ms'", "delay = '10ms'\noutage = [['4s', '3000000s']]")
        .replace("300KB'\ncongestion", "1KB'\ncongestion");
    let outcome = run(&refused, 1);
    assert!(outcome.finished && outcome.metrics["cross_finished"] == 0.0, "{:?}", outcome.metrics);
    assert!(!outcome.metrics.contains_key("cross_completion_mean_s"));
    // With a duration the first of both ends the run.
    let cut = run(&format!("duration = '500ms'\n{}", competing("")), 1);
    assert!(!cut.finished && cut.metrics["cross_finished"] < 20.0, "{:?}", cut.metrics);
}

#[test]
fn managed_shared_bottlenecks_carry_both_subflows_and_cross_traffic_both_ways() {
    for queue in ["'60p'", "{ kind = 'red', limit = '60p', mean_packet = 1452 }", "{ kind = 'codel', limit = '60p' }"] {
        let text = format!(
            "duration = '10s'\nwarmup = '2s'\n[connection]\ncongestion = 'olia'\n[[link]]\nname = 'l'\nrate = '10mbit'\n\
             queue = {queue}\n[[path]]\nname = 'a'\nlink = 'l'\ndelay = '10ms'\n[[path]]\nname = 'b'\nlink = 'l'\n\
             delay = '20ms'\n[[cross]]\nkind = 'tcp'\nlink = 'l'\ncount = 2\ndelay = {{ min = '5ms', max = '30ms' }}\n\
             [[cross]]\nkind = 'tcp'\nlink = 'l'\ndirection = 'up'\n[[cross]]\nkind = 'udp-onoff'\nlink = 'l'\n\
             rate = '1mbit'\non = '200ms'\noff = '200ms'\ndirection = 'up'\n"
        );
        let outcome = run(&text, 3);
        let all = outcome.metrics["goodput_bps"] + outcome.metrics["cross_goodput_bps"];
        // Up to 10 Mbit/s each way; acknowledgments, the datagrams and queues of 60 packets cost some.
        assert!((11e6..19.5e6).contains(&all), "{queue}: {:?}", outcome.metrics);
        assert!(outcome.paths.values().all(|path| path["sent_bytes"] > 100_000.0), "{queue}: {:?}", outcome.paths);
        let wire = VirtualTime { checks: Checks { wire: true }, ..VirtualTime::default() };
        assert_eq!(wire.run(&job(&text, 3), &mut ()).unwrap().digest, outcome.digest, "{queue}");
    }
}

/// Acknowledgments without data that reached the server on each path after the first 10 s, and the round-trip times there.
#[derive(Default)]
struct Acknowledgments {
    last: BTreeMap<PathId, Instant>,
    /// Seconds between two that follow each other.
    gaps: BTreeMap<PathId, Vec<f64>>,
    rtts: BTreeMap<PathId, Vec<f64>>,
}

impl Recorder for Acknowledgments {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let (Event::Window(window), ConnId(0), Some(Side::Server)) = (event, origin.connection, origin.host)
            && now >= Instant::from_millis(10_000)
        {
            self.rtts.entry(origin.path).or_default().extend(window.rtt.map(Duration::as_secs_f64));
        }
    }
    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let counts = now >= Instant::from_millis(10_000) && packet.segment.payload.is_empty();
        if host == Side::Server
            && !sent
            && counts
            && let Some(last) = self.last.insert(path, now)
        {
            self.gaps.entry(path).or_default().push(now.since(last).as_secs_f64());
        }
    }
}

impl Acknowledgments {
    /// Share of gaps shorter than `seconds`, and the ratio of the 95th to the 5th percentile of round-trip times.
    fn shape(&self, path: PathId, seconds: f64) -> (f64, f64) {
        let gaps = &self.gaps[&path];
        let short = gaps.iter().filter(|gap| **gap < seconds).count() as f64 / gaps.len() as f64;
        let mut rtts = self.rtts[&path].clone();
        rtts.sort_by(f64::total_cmp);
        (short, rtts[rtts.len() * 95 / 100] / rtts[rtts.len() * 5 / 100])
    }
}

#[test]
fn acknowledgments_are_compressed_behind_data_the_other_way() {
    let text = include_str!("../../../scenarios/ack-compression.toml").replace("\"50s\"", "\"30s\"");
    let (mut against, mut without) = (Acknowledgments::default(), Acknowledgments::default());
    run_with(&text, 1, &mut against);
    run_with(&text.replace("\"up\"", "\"down\""), 1, &mut without);
    // Acknowledgments of packets that left a bottleneck one after the other are as far apart as a packet of 986 bytes takes,
    // unless something pushes them together.
    for (path, mbit) in [(PathId(0), 4.0), (PathId(1), 8.0)] {
        let data = 986.0 * 8.0 / (mbit * 1e6);
        let (with, none) = (against.shape(path, data), without.shape(path, data));
        println!("{path}: gaps below {:.2} ms: {with:?} against data, {none:?} without", data * 1e3);
        assert!(with.0 > 0.2 && with.0 > 4.0 * none.0, "{path}: {with:?} {none:?}");
        // And they wait for longer.
        assert!(with.1 - 1.0 > 2.0 * (none.1 - 1.0), "{path}: {with:?} {none:?}");
    }
}

#[test]
fn traffic_that_starts_later_finds_cross_traffic_under_way() {
    let transfer = |start: &str, count: u32| {
        let cross = format!("[[cross]]\nkind = 'tcp'\npath = 'a'\ncount = {count}\n");
        let text = format!("{ONE_PATH}queue = '500p'\n{cross}[[traffic]]\nkind = 'bulk'\nsize = '100KB'\n");
        let text = text.replace("[connection]", &format!("start = '{start}'\n[connection]"));
        let outcome = run(&text, 1);
        assert!(outcome.finished);
        outcome.metrics["completion_s"]
    };
    // Alone, the time makes no difference; beside a queue that has filled meanwhile, it does. No flow is none.
    assert!((transfer("0s", 0) - transfer("5s", 0)).abs() < 1e-9);
    assert!(transfer("5s", 1) > 1.5 * transfer("0s", 1).max(transfer("0s", 0)));
}
