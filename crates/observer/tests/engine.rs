//! The strong test: over random networks the observer of each host derives, event by event, what the engine recorded,
//! from the packets alone.
//!
//! For many networks: `ANABRANCH_SEEDS=5000 cargo test --release -p anabranch-observer --test engine`; for one
//! alone: `ANABRANCH_SEED=<seed>`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

#[path = "../../sim/tests/common/mod.rs"]
mod common;
mod watch;

use anabranch_metrics::{Meter, MeterConfig, PathConfig, RunMetrics, Timed};
use anabranch_observer::Unfollowed;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side, TrafficDirection};
use anabranch_wire::Packet;
use common::random::random_transfer;
use common::{ADVERSARY, Transfer, asked};
use watch::{Host, KINDS, Log, Seen, compare_host, copies_came_first, first_silent_end};

/// Far longer than any of these networks needs.
const LIMIT: Instant = Instant::from_millis(2 * 3600 * 1000);
/// Networks per test run of a commit.
const SEEDS: u64 = 300;

struct Notes<'a>(&'a mut Log, &'a mut Meter);

impl Recorder for Notes<'_> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.0.push((now, origin, *event));
        self.1.record(now, origin, event);
    }
}

/// Both hosts, and meters over what the engines recorded and over what was observed.
struct Watch {
    hosts: [Host; 2],
    meters: [Meter; 2],
}

fn place(side: Side) -> usize {
    usize::from(side == Side::Server)
}

impl Watch {
    fn new(paths: usize) -> Self {
        let path = |n| PathConfig {
            name: format!("p{n}"),
            price: 0.0,
            prices: vec![],
            capacities: vec![],
            marks: false,
            outages: vec![],
        };
        let meter = Meter::new(MeterConfig {
            from: Instant::ZERO,
            until: None,
            connections: 1,
            direction: TrafficDirection::Down,
            directions: Vec::new(),
            cross: vec![],
            size: None,
            flow_size: None,
            timed: Timed::Nothing,
            mss: 1400,
            displacement_threshold: None,
            head_start: paths > 1,
            efficiency: false,
            requested: Vec::new(),
            paths: (0..paths).map(path).collect(),
        });
        Self { hosts: [Host::new(Side::Client), Host::new(Side::Server)], meters: [meter.clone(), meter] }
    }
}

impl Recorder for Watch {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let Some(side) = origin.host {
            self.meters[0].record(now, origin, event);
            self.hosts[place(side)].engine.push((now, origin, *event));
            if matches!(event, Event::Delivered(_) | Event::Written(_) | Event::WriteEnd(_)) {
                // The application records these itself.
                self.meters[1].record(now, origin, event);
            }
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        if asked("SHOW").is_some() {
            println!("{now} {host:?} {} p{path} {packet}", if sent { ">" } else { "<" });
        }
        let Self { hosts, meters } = self;
        let Host { observer, observed, .. } = &mut hosts[place(host)];
        observer.packet(now, sent, path, packet, &mut Notes(observed, &mut meters[1]));
    }
}

fn drive(transfer: &Transfer) -> (Watch, Instant) {
    let all: Vec<_> = (0..transfer.paths.len()).map(|n| (PathId(n as u8), false)).collect();
    let mut flow = transfer.flow(0, &all);
    // The run continues until both ends are closed.
    flow.awaited = false;
    let mut world = transfer.world_of(vec![flow]);
    let mut watch = Watch::new(transfer.paths.len());
    let mut until = Instant::ZERO;
    let over = |w: &Watch| w.hosts.iter().all(|h| h.engine.iter().any(|(_, _, e)| matches!(e, Event::Closed(_))));
    while until < LIMIT && !over(&watch) {
        until += common::ms(10_000);
        world.run(until, &mut watch).expect("it goes on");
    }
    (watch, world.now())
}

/// Metrics that must be equal, of the run and of each path.
const VALUES: [&str; 15] = [
    "goodput_bps",
    "delivered_bytes",
    "completion_s",
    "ofo_mean_bytes",
    "ofo_p95_bytes",
    "ofo_max_bytes",
    "subflow_ofo_mean_bytes",
    "subflow_ofo_p95_bytes",
    "subflow_ofo_max_bytes",
    "rbd_mean_packets",
    "reordered_ratio",
    "reorder_extent_mean_packets",
    "duplicate_bytes",
    "retransmitted_packets",
    "outage_s",
];
const PATH_VALUES: [&str; 3] = ["sent_bytes", "retransmitted_packets", "loss_ratio"];
/// These too, unless a copy left before its original.
const KIND_VALUES: [&str; 2] = ["reinjected_packets", "reinjected_bytes"];
fn compare_metrics(results: &[RunMetrics; 2], early_copies: bool) -> Result<(), String> {
    let [recorded, observed] = results;
    let names = VALUES.iter().chain(KIND_VALUES.iter().filter(|_| !early_copies));
    for name in names {
        if recorded.get(name) != observed.get(name) {
            return Err(format!("{name}: {:?} is seen as {:?}", recorded.get(name), observed.get(name)));
        }
    }
    for (recorded, observed) in recorded.paths.iter().zip(&observed.paths) {
        for name in PATH_VALUES.iter().chain(["share"].iter().filter(|_| !early_copies)) {
            if recorded.get(name) != observed.get(name) {
                return Err(format!("{name}: {:?} is seen as {:?}", recorded.get(name), observed.get(name)));
            }
        }
    }
    Ok(())
}

fn compare(seed: u64, scheduler: &str, seen: &mut Seen) -> Result<(), String> {
    let transfer = random_transfer(seed, scheduler, "cubic");
    let (watch, end) = drive(&transfer);
    let early_copies = watch.hosts.iter().any(copies_came_first);
    if early_copies {
        *seen.early_copies.entry(scheduler.into()).or_default() += 1;
    }
    for host in &watch.hosts {
        compare_host(host, seen)?;
        let unfollowed = host.observer.unfollowed();
        if unfollowed != Unfollowed::default() {
            return Err(format!("{unfollowed:?}"));
        }
    }
    if watch.hosts.iter().any(|host| first_silent_end(host) < Instant::MAX) {
        return Ok(());
    }
    compare_metrics(&watch.meters.map(|meter| meter.finish(end)), early_copies)
}

#[test]
fn observers_tell_what_engines_record() {
    let mut schedulers: Vec<String> = anabranch_schedulers::all().iter().map(|e| e.name.into()).collect();
    schedulers.extend(["minrtt+pr", "minrtt+or", ADVERSARY].map(String::from));
    let number = |name| asked(name).map(|n| n.parse::<u64>().expect("a number"));
    let seeds = match number("ANABRANCH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ANABRANCH_SEEDS").unwrap_or(SEEDS),
    };
    let (mut seen, mut wrong) = (Seen::default(), Vec::new());
    for seed in seeds {
        let scheduler = &schedulers[seed as usize % schedulers.len()];
        let outcome = compare(seed, scheduler, &mut seen);
        wrong.extend(outcome.err().map(|what| format!("seed {seed}, {scheduler}: {what}")));
    }
    println!("{seen:?}");
    assert!(wrong.is_empty(), "{} networks:\n{}", wrong.len(), wrong.join("\n"));
    if number("ANABRANCH_SEED").is_none() {
        // Fallback needs a middlebox, and there is none.
        let quiet = KINDS.iter().zip(seen.events).filter(|(_, count)| *count == 0).map(|((name, _), _)| *name);
        assert_eq!(quiet.collect::<Vec<_>>(), ["fallback"]);
        // Data bound ahead may be retransmitted elsewhere while it still waits for its path.
        let known = ["redundant", "linux-default", ADVERSARY];
        assert!(seen.early_copies.keys().all(|s| known.contains(&s.as_str())), "{:?}", seen.early_copies);
        assert!(seen.closed > 0 && seen.dead > 0 && seen.cut * 100 < seen.closed, "{seen:?}");
    }
}
