//! Public requests to other projects: the scenario of each request (`tests/data/requests`), and the values that theory or the
//! reporter gives.

#![expect(clippy::disallowed_methods, reason = "the requests are files of the repository")]

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Override, PlugIn, Resolver, Scenario, Source, read};
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of the scenarios, and of the files that they name.
struct Folder(PathBuf);

impl Resolver for Folder {
    fn read(&self, file: &str) -> Result<String, String> {
        std::fs::read_to_string(self.0.join(file)).map_err(|error| error.to_string())
    }
}

/// The cells of a request's scenario, with what `set` sets.
fn cells(request: &str, set: &[&str]) -> Vec<Scenario> {
    let folder = Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/requests"));
    let text = folder.read(&format!("{request}.toml")).expect("a file");
    let overrides: Vec<Override> = set.iter().map(|set| Override::parse("--set", set)).collect();
    let source = Source { name: request.into(), text };
    let document = read(&source, &overrides, &folder).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    document.cells.into_iter().map(|(_, scenario)| scenario).collect()
}

/// A data packet that a host sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    path: u8,
    payload: usize,
}

/// Packets that crossed the paths.
#[derive(Default)]
struct Seen {
    /// Data packets of the server, in the order of sending.
    data: Vec<Sent>,
    /// Times on the way from the server to the client, with the times of sending, by path. No scenario here reorders.
    delays: BTreeMap<u8, Vec<(Instant, Duration)>>,
    /// Packets under way to the client.
    flying: BTreeMap<u8, VecDeque<Instant>>,
    /// The client's SYNs, and when and over which path data first came to it.
    syns: Vec<(Instant, u8)>,
    came: BTreeMap<u8, Instant>,
    dropped: Vec<(Instant, DropCause)>,
}

impl Recorder for Seen {
    fn record(&mut self, now: Instant, _origin: Origin, event: &Event) {
        if let Event::Link { what: LinkEvent::Dropped(cause), .. } = event {
            self.dropped.push((now, *cause));
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let (path, payload) = (path.0, packet.segment.payload.len());
        match (host, sent) {
            (Side::Server, true) => {
                self.flying.entry(path).or_default().push_back(now);
                if payload > 0 {
                    self.data.push(Sent { at: now, path, payload });
                }
            }
            (Side::Client, false) => {
                if let Some(left) = self.flying.entry(path).or_default().pop_front() {
                    self.delays.entry(path).or_default().push((left, now.since(left)));
                }
                if payload > 0 {
                    self.came.entry(path).or_insert(now);
                }
            }
            (Side::Client, true) if packet.segment.flags.has(Flags::SYN) => self.syns.push((now, path)),
            _ => {}
        }
    }
}

fn run(scenario: Scenario, scheduler: &str) -> (RunOutcome, Seen) {
    let choice = Choice::Multipath(PlugIn { name: scheduler.into(), parameters: Vec::new() });
    let mut seen = Seen::default();
    let outcome = VirtualTime::default().run(&Job::of(Arc::new(scenario), choice, 1), &mut seen).unwrap();
    (outcome, seen)
}

fn only(request: &str, set: &[&str]) -> Scenario {
    cells(request, set).pop().expect("a cell")
}

fn within(value: f64, expected: f64, tolerance: f64) -> bool {
    (value / expected - 1.0).abs() <= tolerance
}

/// A path that the provider polices fills its contract and not more, its losses do not feed themselves, and the other path is full.
#[test]
fn mqvpn_29_a_policed_path_has_its_contract_and_the_other_carries_the_rest() {
    // Of each packet of 1480 bytes, 1400 are payload.
    let payload = 1400.0 / 1480.0;
    for scheduler in ["minrtt", "blest", "ecf"] {
        let (outcome, seen) = run(only("mqvpn-29", &[]), scheduler);
        let (goodput, share) = (outcome.metrics["goodput_bps"], outcome.paths["wan1"]["share"]);
        assert!(within(goodput, 8e6 * payload, 0.01), "{scheduler}: {goodput}");
        assert!(within(share, 3.0 / 8.0, 0.03), "{scheduler}: {share}");
        let settled = |at: &Instant| *at >= Instant::from_millis(10_000);
        let policed = seen.dropped.iter().filter(|(at, cause)| settled(at) && *cause == DropCause::Police).count();
        let sent = seen.data.iter().filter(|sent| settled(&sent.at) && sent.path == 0).count();
        // "More packet send and more packet loss, endless loop": a window that grows beyond the contract loses some packets, and shrinks.
        assert!(policed > 0 && policed * 10 < sent, "{scheduler}: {policed} of {sent}");
    }
}

/// "MinRTT picks lowest-SRTT path per packet. Naturally avoids the spiral": once the round trip has leapt, without loss.
#[test]
fn mqvpn_73_minrtt_leaves_a_path_whose_round_trip_leaps_and_round_robin_does_not() {
    let share_since = |seen: &Seen, from_ms: u64| {
        let since = seen.data.iter().filter(|sent| sent.at >= Instant::from_millis(from_ms));
        let (wan2, all) = since.fold((0, 0), |(wan2, all), sent| (wan2 + usize::from(sent.path == 1), all + 1));
        wan2 as f64 / f64::from(all)
    };
    let (minrtt, seen) = run(only("mqvpn-73", &[]), "minrtt");
    let before: Vec<_> =
        seen.data.iter().filter(|sent| (1_000..4_000).contains(&(sent.at.as_nanos() / 1_000_000))).collect();
    let wan2 = before.iter().filter(|sent| sent.path == 1).count();
    // 60 ms of round trip against 80, whatever the jitter of 5 ms does.
    assert!(wan2 * 10 > before.len() * 9, "{wan2} of {}", before.len());
    // The leap is known once an acknowledgment shows it, 360 ms later; silence shows it earlier.
    assert!(share_since(&seen, 4_500) < 0.01, "{}", share_since(&seen, 4_500));
    let (robin, seen) = run(only("mqvpn-73", &[]), "roundrobin");
    assert!(share_since(&seen, 4_500) > 0.25, "{}", share_since(&seen, 4_500));
    assert!(minrtt.metrics["app_delay_p95_s"] < 0.1 && robin.metrics["app_delay_p95_s"] > 0.33);
}

/// Packets meet the jitter that the scenario has: its mean, and the spread of a normal distribution.
#[test]
fn mqvpn_73_packets_meet_the_jitter_that_is_written() {
    let set = ["path.wan2.jitter.order=free", "path.wan2.jitter.spread=3ms"];
    let (_, seen) = run(only("mqvpn-73", &set), "minrtt");
    let early = seen.delays[&1].iter().filter(|(at, _)| *at < Instant::from_millis(3_900));
    let delays: Vec<f64> = early.map(|(_, delay)| delay.as_secs_f64() * 1e3).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    // A packet of 1280 bytes takes 0.5 ms at 20 Mbit/s.
    assert!((30.0..30.8).contains(&mean), "{mean}");
}

/// Each packet has the delay of the file's step in which it leaves.
#[test]
fn mahimahi_135_packets_have_the_delay_that_the_file_gives_for_their_time() {
    let (_, seen) = run(only("mahimahi-135", &[]), "minrtt");
    let steps = [10, 50, 30, 80, 20].map(Duration::from_millis);
    // The longest packet takes 0.12 ms at 100 Mbit/s.
    let longest = Duration::from_micros(120);
    let mut met = [0; 5];
    for (left, took) in &seen.delays[&0] {
        let step = (left.as_nanos() / 1_000_000_000).min(4) as usize;
        // Where the delay falls, the order is kept: packets wait for those before them.
        let waits = step > 0 && steps[step] < steps[step - 1];
        let until = Instant::from_millis(1_000 * step as u64) + steps[step.saturating_sub(1)];
        if !(waits && *left < until) {
            assert!((steps[step]..=steps[step] + longest).contains(took), "{left:?}: {took:?}");
            met[step] += 1;
        }
    }
    assert!(met.iter().all(|n| *n > 50), "{met:?}");
}

/// "3 runs with delays of 10ms, 50ms and 150ms": one file, and each run has its delay.
#[test]
fn pantheon_75_one_file_runs_with_several_delays_and_rates() {
    let cells = cells("pantheon-75", &[]);
    assert_eq!(cells.len(), 6);
    let grid = [10, 50, 150].into_iter().flat_map(|delay| [12, 24].map(|rate| (delay, rate)));
    for (scenario, (delay, rate)) in cells.into_iter().zip(grid) {
        let (outcome, seen) = run(scenario, "minrtt");
        // The SYN/ACK waits for nothing.
        let (_, took) = seen.delays[&0][0];
        let on_the_wire = took.saturating_sub(Duration::from_millis(delay)).as_secs_f64();
        assert!(
            on_the_wire > 0.0 && on_the_wire < 100.0 * 8.0 / (f64::from(rate) * 1e6),
            "{delay} ms, {rate} Mbit/s: {took:?}"
        );
        // Handshake and request: two round trips.
        let time = outcome.metrics["completion_s"];
        assert!(time >= 4e-3 * delay as f64 && time < 4e-3 * delay as f64 + 0.003, "{delay} ms: {time}");
    }
}

/// The first window of ten packets of 1480 bytes, at 1 Mbit/s: how many were dropped, and why.
fn first_window(set: &[&str]) -> (usize, Option<DropCause>, Duration) {
    let (_, seen) = run(only("rattan-131", set), "minrtt");
    let first = seen.data[0].at;
    assert_eq!(seen.data.iter().filter(|sent| sent.at == first).count(), 10, "they leave at once");
    let last = seen.delays[&0].iter().filter(|(left, _)| *left == first).map(|(_, took)| *took).max();
    let dropped: Vec<_> = seen.dropped.iter().filter(|(at, _)| *at == first).collect();
    (dropped.len(), dropped.first().map(|(_, cause)| *cause), last.unwrap_or_default())
}

/// "When there is no space in the queue, though the packet can be sent actually, it will be dropped."
#[test]
fn rattan_131_a_burst_that_the_bucket_lets_pass_is_not_dropped() {
    // One in transmission, one waits.
    assert_eq!(first_window(&[]).0, 8);
    let (dropped, _, last) = first_window(&["path.a.burst=20KB"]);
    assert_eq!((dropped, last), (0, Duration::from_millis(10)), "all of them have tokens");
}

/// "This also makes Traffic Policing not possible."
#[test]
fn rattan_131_a_policer_passes_what_has_tokens_and_drops_the_rest_at_once() {
    let police = "path.a.police={ rate = \"1mbit\", burst = \"7500B\" }";
    let (dropped, cause, _) = first_window(&[police, "path.a.rate=100mbit", "path.a.queue=100p"]);
    // 7500 bytes are five packets of 1480.
    assert_eq!((dropped, cause), (5, Some(DropCause::Police)));
}

/// Each subflow cuts for itself: no segment is short but those at the end of what is written.
#[test]
fn mptcp_87_segments_of_each_path_are_full() {
    for scheduler in ["minrtt", "roundrobin", "blest"] {
        let (outcome, seen) = run(only("mptcp-87", &[]), scheduler);
        assert!(outcome.finished);
        for (path, full) in [(0, 1434 - 80), (1, 1440 - 80)] {
            let sizes: Vec<usize> =
                seen.data.iter().filter(|sent| sent.path == path).map(|sent| sent.payload).collect();
            let short = sizes.iter().filter(|size| **size < full).count();
            assert_eq!(sizes.iter().max(), Some(&full), "{scheduler}");
            assert!(sizes.len() > 500 && short <= 2, "{scheduler}: {short} of {} are short", sizes.len());
        }
    }
}

/// The path is joined within a round trip of its appearance; an outage, which no host sees, costs the back-off of SYNs: "0.3 to 4.7 s".
#[test]
fn mptcp_net_next_242_an_interface_that_appears_is_joined_within_a_round_trip() {
    let round_trip = Duration::from_millis(40);
    let appears = Instant::from_millis(1_500);
    let (outcome, seen) = run(only("mptcp_net-next-242", &[]), "minrtt");
    assert_eq!(seen.syns.last(), Some(&(appears, 1)));
    // Join, its answer, the proof, its answer (RFC 8684 §3.2), data: two and a half round trips and what the wires take.
    let came = seen.came[&1];
    assert!(came >= appears + round_trip && came < appears + round_trip * 3, "{came:?}");
    assert!(outcome.paths["b"]["share"] > 0.3);
    let hidden = only("mptcp_net-next-242", &["path.b.start=0s", "path.b.outage=[[\"0s\", \"1500ms\"]]"]);
    let (_, hidden) = run(hidden, "minrtt");
    let waited = hidden.came[&1].since(appears);
    assert!((Duration::from_millis(300)..Duration::from_millis(4_700)).contains(&waited), "{waited:?}");
}
