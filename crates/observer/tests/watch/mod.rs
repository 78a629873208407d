//! An engine's own events beside the observed ones.
#![allow(dead_code)] // each test file uses its own part

use anabranch_observer::Observer;
use anabranch_trace::{Event, Origin, PathState, SendKind, Violation};
use anabranch_units::{ConnId, Instant, PathId, Side};
use std::collections::BTreeMap;

pub type Log = Vec<(Instant, Origin, Event)>;

pub struct Host {
    pub observer: Observer,
    /// The engine's events, and the observed ones.
    pub engine: Log,
    pub observed: Log,
}

impl Host {
    pub fn new(side: Side) -> Self {
        Self { observer: Observer::new(side, ConnId(0)), engine: Log::new(), observed: Log::new() }
    }
}

/// A kind of event, in the form that packets can show.
type Kind = fn(&Event) -> Option<Event>;

/// These must be equal, one by one, with time and path.
pub const KINDS: [(&str, Kind); 7] = [
    ("violation", |e| match e {
        // Checksums are not verified.
        Event::Violation(Violation::Checksum) => None,
        Event::Violation(_) => Some(*e),
        _ => None,
    }),
    ("sent", |e| match *e {
        Event::DataSent { seq, data, kind } => Some(Event::DataSent { seq, data, kind: seen_as(kind) }),
        _ => None,
    }),
    ("control", |e| matches!(e, Event::ControlSent { .. }).then_some(*e)),
    ("arrived", |e| matches!(e, Event::DataArrived { .. }).then_some(*e)),
    ("acknowledged", |e| matches!(e, Event::DataAcked(_)).then_some(*e)),
    ("connected", |e| matches!(e, Event::Connected(_)).then_some(*e)),
    ("fallback", |e| matches!(e, Event::Fallback).then_some(*e)),
];

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

/// The log with openings, and the first time that each subflow was established: packets do not show a return from
/// failing.
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

/// The observed events without authenticated joins that came after the connection's end: the host refuses them and
/// records nothing, and packets do not show that. They carry no data.
fn without_refused(observed: &Log, engine: &Log) -> Log {
    let opening = Event::Path(PathState::Opening);
    let recorded = |now, path| engine.iter().any(|(at, o, e)| (*at, o.path) == (now, path) && *e == opening);
    let carries = |now: Instant, path| {
        let data = |e: &Event| matches!(e, Event::DataSent { .. } | Event::DataArrived { .. });
        observed.iter().any(|(at, o, e)| *at >= now && o.path == path && data(e))
    };
    let opened = observed.iter().filter(|(_, _, event)| *event == opening).map(|(now, o, _)| (*now, o.path));
    let refused: Vec<_> = opened.filter(|(now, path)| !recorded(*now, *path) && !carries(*now, *path)).collect();
    let kept = |(now, origin, event): &&(Instant, Origin, Event)| {
        !matches!(event, Event::Path(_)) || !refused.iter().any(|(at, path)| at <= now && *path == origin.path)
    };
    observed.iter().filter(kept).copied().collect()
}

fn ends(log: &Log, how: PathState) -> Vec<(Instant, PathId)> {
    let ends = log.iter().filter(|(_, _, event)| *event == Event::Path(how));
    ends.map(|(now, origin, _)| (*now, origin.path)).collect()
}

/// A copy that left before its original is seen as the original.
pub fn copies_came_first(host: &Host) -> bool {
    let kinds = |log: &Log| -> Vec<_> {
        log.iter()
            .filter_map(|(_, _, e)| if let Event::DataSent { kind, .. } = e { Some(*kind) } else { None })
            .collect()
    };
    kinds(&host.engine).iter().zip(kinds(&host.observed)).any(|(meant, seen)| seen_as(*meant) != seen)
}

/// Counts of the networks' properties, so that the test cannot pass without covering them.
#[derive(Debug, Default)]
pub struct Seen {
    pub events: [usize; KINDS.len()],
    pub early_copies: BTreeMap<String, u32>,
    pub dead: usize,
    pub closed: usize,
    /// Ends that packets do not show.
    pub given_up: usize,
    /// Hosts that were compared only up to such an end.
    pub cut: usize,
}

/// Ends that packets do not show: after timeouts, without a FIN, of joins that were given up. `true` if the subflow had
/// been established.
fn silent_ends(host: &Host) -> Vec<(Instant, PathId, bool)> {
    let [dead, closed] = [PathState::Dead, PathState::Closed].map(|how| ends(&host.observed, how));
    let told = |now, path| dead.contains(&(now, path)) || closed.iter().any(|(at, p)| *p == path && *at <= now);
    let mut up = [false; PathId::LIMIT];
    let mut silent = Vec::new();
    for (now, origin, event) in &host.engine {
        let up = &mut up[origin.path.index()];
        match event {
            Event::Path(PathState::Opening) => *up = false,
            Event::Path(PathState::Established) => *up = true,
            Event::Path(PathState::Dead | PathState::Closed) if !told(*now, origin.path) => {
                silent.push((*now, origin.path, *up));
            }
            _ => {}
        }
    }
    silent
}

/// When the host first removed an established subflow silently. Packets on it after that no longer reach the host, and
/// the observer cannot see that.
pub fn first_silent_end(host: &Host) -> Instant {
    silent_ends(host).iter().find(|(.., up)| *up).map_or(Instant::MAX, |(now, ..)| *now)
}

pub fn compare_host(host: &Host, seen: &mut Seen) -> Result<(), String> {
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
    let seen_paths = without_refused(&host.observed, &host.engine);
    same("lives", &lives(&host.engine), &lives(&seen_paths))?;
    let silent = silent_ends(host);
    let [recorded, observed] = [&host.engine, &seen_paths].map(|log| ends(log, PathState::Dead));
    // The answer to a join that was given up.
    let late = |(now, path): &(Instant, PathId)| silent.iter().any(|(at, p, _)| at <= now && p == path);
    if !observed.iter().all(|end| recorded.contains(end) || late(end)) {
        return Err(format!("dead: recorded {recorded:?}, observed {observed:?}"));
    }
    seen.dead += observed.len();
    seen.closed += ends(&host.observed, PathState::Closed).len();
    seen.given_up += silent.len();
    Ok(())
}

fn same(name: &str, engine: &Log, observed: &Log) -> Result<(), String> {
    if engine == observed {
        return Ok(());
    }
    let at = engine.iter().zip(observed).take_while(|(a, b)| a == b).count();
    let (lens, a, b) = ((engine.len(), observed.len()), engine.get(at), observed.get(at));
    Err(format!("{name} {at} of {lens:?}: recorded {a:?}, observed {b:?}"))
}
