//! The strong test: over random networks the observer of each host tells what the engine inside recorded, event by
//! event, from nothing but the packets.
//!
//! Many networks are tried with
//! `ANABRANCH_SEEDS=5000 cargo test --profile fast -p anabranch-observer --test engine`, one alone with
//! `ANABRANCH_SEED=<seed>`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

#[path = "../../sim/tests/common/mod.rs"]
mod common;

use anabranch_metrics::{Meter, MeterConfig, PathConfig, RunMetrics};
use anabranch_observer::{Observer, Unfollowed};
use anabranch_trace::{Event, Origin, PathState, Recorder, SendKind};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::Packet;
use common::random::random_transfer;
use common::{ADVERSARY, Transfer, asked};
use std::collections::BTreeMap;

/// Far more than any of these networks needs.
const LIMIT: Instant = Instant::from_millis(2 * 3600 * 1000);
/// Networks of a commit's test run.
const SEEDS: u64 = 300;

type Log = Vec<(Instant, Origin, Event)>;

struct Host {
    observer: Observer,
    /// What the engine recorded, and what was observed.
    engine: Log,
    observed: Log,
}

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
        let path = |n| PathConfig { name: format!("p{n}"), price: 0.0, capacity: None };
        let meter = Meter::new(MeterConfig {
            from: Instant::ZERO,
            until: None,
            connections: vec![ConnId(0)],
            size: None,
            mss: 1400,
            displacement_threshold: None,
            paths: (0..paths).map(path).collect(),
        });
        let host = |side| Host { observer: Observer::new(side, ConnId(0)), engine: Log::new(), observed: Log::new() };
        Self { hosts: [host(Side::Client), host(Side::Server)], meters: [meter.clone(), meter] }
    }
}

impl Recorder for Watch {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let Some(side) = origin.host {
            self.meters[0].record(now, origin, event);
            self.hosts[place(side)].engine.push((now, origin, *event));
            if matches!(event, Event::Delivered(_) | Event::Written(_) | Event::WriteEnd(_)) {
                // The application tells these itself.
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
    // The run goes on until both ends are closed.
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

/// A kind of event, as packets can tell it.
type Kind = fn(&Event) -> Option<Event>;

/// These must be the same, one by one, with time and path.
const KINDS: [(&str, Kind); 8] = [
    ("violation", |e| matches!(e, Event::Violation(_)).then_some(*e)),
    ("sent", |e| match *e {
        Event::DataSent { seq, data, kind } => Some(Event::DataSent { seq, data, kind: seen_as(kind) }),
        _ => None,
    }),
    ("control", |e| match *e {
        // A SYN/ACK that answers a repeated SYN is none of the engine's repetitions.
        Event::ControlSent { flags: SYN_ACK, .. } => Some(Event::ControlSent { flags: SYN_ACK, again: false }),
        Event::ControlSent { .. } => Some(*e),
        _ => None,
    }),
    ("arrived", |e| matches!(e, Event::DataArrived { .. }).then_some(*e)),
    ("out-of-order queue", |e| matches!(e, Event::OfoQueue { .. }).then_some(*e)),
    ("acknowledged", |e| matches!(e, Event::DataAcked(_)).then_some(*e)),
    ("connected", |e| matches!(e, Event::Connected(_)).then_some(*e)),
    ("fallback", |e| matches!(e, Event::Fallback).then_some(*e)),
];

/// Metrics that must be the same, of the run and of each path.
const VALUES: [&str; 12] = [
    "goodput_bps",
    "delivered_bytes",
    "completion_s",
    "ofo_mean_bytes",
    "ofo_p95_bytes",
    "ofo_max_bytes",
    "rbd_mean_packets",
    "reordered_ratio",
    "reorder_extent_mean_packets",
    "duplicate_bytes",
    "retransmitted_packets",
    "outage_s",
];
const PATH_VALUES: [&str; 3] = ["sent_bytes", "retransmitted_packets", "loss_ratio"];
/// These too, unless a copy left before what it is a copy of.
const KIND_VALUES: [&str; 2] = ["reinjected_packets", "reinjected_bytes"];
const SYN_ACK: u8 = 0x12;

/// Copies of all kinds look like rescues.
fn seen_as(kind: SendKind) -> SendKind {
    match kind {
        SendKind::Opportunistic | SendKind::Copy => SendKind::Rescue,
        SendKind::First | SendKind::Rescue | SendKind::Retransmission => kind,
    }
}

fn only(log: &Log, kind: Kind) -> Log {
    log.iter().filter_map(|(now, origin, event)| Some((*now, *origin, kind(event)?))).collect()
}

/// Openings, and the first time that each subflow was established: a return from failing shows nowhere.
fn lives(log: &Log) -> Log {
    let mut up = [false; PathId::LIMIT];
    let mut begins = log.clone();
    begins.retain(|(_, origin, event)| {
        let up = &mut up[origin.path.index()];
        match event {
            Event::Path(PathState::Opening) => {
                *up = false;
                true
            }
            Event::Path(PathState::Established) => !std::mem::replace(up, true),
            _ => false,
        }
    });
    begins
}

fn ends(log: &Log, how: PathState) -> Vec<(Instant, PathId)> {
    let ends = log.iter().filter(|(_, _, event)| *event == Event::Path(how));
    ends.map(|(now, origin, _)| (*now, origin.path)).collect()
}

/// A copy that left before what it is a copy of is seen as the first.
fn copies_came_first(host: &Host) -> bool {
    let kinds = |log: &Log| -> Vec<_> {
        log.iter()
            .filter_map(|(_, _, e)| if let Event::DataSent { kind, .. } = e { Some(*kind) } else { None })
            .collect()
    };
    kinds(&host.engine).iter().zip(kinds(&host.observed)).any(|(meant, seen)| seen_as(*meant) != seen)
}

/// What the networks were like, so that the test cannot pass by seeing nothing.
#[derive(Debug, Default)]
struct Seen {
    events: [usize; KINDS.len()],
    early_copies: BTreeMap<String, u32>,
    dead: usize,
    /// Deaths without a reset.
    silent: usize,
    closed: usize,
    /// Without the peer's FIN.
    closed_alone: usize,
    /// Hosts of which only the time before such an end was compared.
    cut: usize,
}

/// When the host first forgot a subflow that had been established without a word: after timeouts, or because no FIN came.
/// What comes on it from then on it no longer hears, and nobody sees that.
fn first_silent_end(host: &Host) -> Instant {
    let told = |(now, path): (Instant, PathId)| {
        let dead = ends(&host.observed, PathState::Dead).contains(&(now, path));
        dead || ends(&host.observed, PathState::Closed).iter().any(|(at, p)| *p == path && *at <= now)
    };
    let mut up = [false; PathId::LIMIT];
    for (now, origin, event) in &host.engine {
        let up = &mut up[origin.path.index()];
        match event {
            Event::Path(PathState::Opening) => *up = false,
            Event::Path(PathState::Established) => *up = true,
            Event::Path(PathState::Dead | PathState::Closed) if *up && !told((*now, origin.path)) => return *now,
            _ => {}
        }
    }
    Instant::MAX
}

fn compare_host(host: &Host, seen: &mut Seen) -> Result<(), String> {
    let until = first_silent_end(host);
    seen.cut += usize::from(until < Instant::MAX);
    for ((name, kind), count) in KINDS.iter().zip(&mut seen.events) {
        let [mut engine, mut observed] = [&host.engine, &host.observed].map(|log| only(log, *kind));
        engine.retain(|(now, ..)| *now < until);
        observed.retain(|(now, ..)| *now < until);
        *count += engine.len();
        if *name == "sent" && copies_came_first(host) {
            let blur = |log: &mut Log| {
                for (_, _, event) in log {
                    if let Event::DataSent { kind, .. } = event
                        && *kind == SendKind::Rescue
                    {
                        *kind = SendKind::First;
                    }
                }
            };
            blur(&mut engine);
            blur(&mut observed);
        }
        same(name, &engine, &observed)?;
    }
    same("lives", &lives(&host.engine), &lives(&host.observed))?;
    let [dead, closed] =
        [PathState::Dead, PathState::Closed].map(|how| (ends(&host.engine, how), ends(&host.observed, how)));
    seen.dead += dead.1.len();
    seen.silent += dead.0.len() - dead.1.len();
    if !dead.1.iter().all(|end| dead.0.contains(end)) {
        return Err(format!("dead: {dead:?}"));
    }
    // TIME-WAIT passes in silence, and so does FIN-WAIT-2 where no FIN comes.
    let before = |(at, path): &&(Instant, PathId)| closed.1.iter().any(|(seen, p)| p == path && seen <= at);
    seen.closed += closed.0.iter().filter(before).count();
    seen.closed_alone += closed.0.iter().filter(|end| !before(end)).count();
    let unfollowed = host.observer.unfollowed();
    if unfollowed == Unfollowed::default() { Ok(()) } else { Err(format!("{unfollowed:?}")) }
}

fn same(name: &str, engine: &Log, observed: &Log) -> Result<(), String> {
    if engine == observed {
        return Ok(());
    }
    let at = engine.iter().zip(observed).take_while(|(a, b)| a == b).count();
    let (lens, a, b) = ((engine.len(), observed.len()), engine.get(at), observed.get(at));
    Err(format!("{name} {at} of {lens:?}: recorded {a:?}, observed {b:?}"))
}

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
    watch.hosts.iter().try_for_each(|host| compare_host(host, seen))?;
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
    if number("ANABRANCH_SEED").is_none() {
        // Plain TCP is fallen back to behind middleboxes only, and there are none.
        let quiet = KINDS.iter().zip(seen.events).filter(|(_, count)| *count == 0).map(|((name, _), _)| *name);
        assert_eq!(quiet.collect::<Vec<_>>(), ["fallback"]);
        assert!(seen.early_copies.keys().all(|s| s == "redundant" || s == ADVERSARY), "{:?}", seen.early_copies);
        assert!(seen.closed > 0 && seen.closed_alone * 100 < seen.closed && seen.cut * 100 < seen.closed);
    }
    assert!(wrong.is_empty(), "{} networks:\n{}", wrong.len(), wrong.join("\n"));
}
