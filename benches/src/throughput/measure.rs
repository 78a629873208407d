//! Runs a case for a while and counts.

use crate::rig::{Case, Link};
use crate::veth::Pair;
use anabranch_lab::kernel::Report;
use anabranch_lab::{Clock, Exchange, LabError, Namespace};
use anabranch_trace::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Duration, Instant};
use cpu_time::ProcessTime;
use std::fmt;

/// Before the measurement, for connecting, joining and slow start.
const WARM_UP: Duration = Duration::from_millis(700);
/// Seconds per jiffy in `/proc/stat`.
const JIFFY: f64 = 0.01;

/// Counters so far.
#[derive(Clone, Copy, Debug)]
struct Counts {
    at: Instant,
    delivered: u64,
    packets: u64,
    dropped: u64,
    process: std::time::Duration,
    /// CPU seconds of all processes.
    machine: f64,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    seconds: f64,
    delivered: f64,
    packets: f64,
    dropped: u64,
    process: f64,
    machine: f64,
}

impl Figures {
    fn between(from: Counts, to: Counts) -> Self {
        Self {
            seconds: to.at.since(from.at).as_secs_f64(),
            delivered: (to.delivered - from.delivered) as f64,
            packets: (to.packets - from.packets) as f64,
            dropped: to.dropped - from.dropped,
            process: (to.process - from.process).as_secs_f64(),
            machine: to.machine - from.machine,
        }
    }

    /// Goodput of the receiving application.
    pub fn gbps(&self) -> f64 {
        self.delivered * 8.0 / self.seconds / 1e9
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = self.delivered / f64::from(1 << 30);
        let (process, machine) = (self.process / gib, self.machine / gib);
        let packets = self.packets / self.seconds / 1e3;
        write!(f, "{:.2} | {process:.2} | {machine:.2} | {packets:.0} | {}", self.gbps(), self.dropped)
    }
}

/// Results of a run.
#[derive(Default)]
struct Tally {
    delivered: u64,
    dropped: u64,
}

impl Recorder for Tally {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        match event {
            Event::Delivered(range) => self.delivered += range.len(),
            Event::Link { what: LinkEvent::Dropped { .. }, .. } => self.dropped += 1,
            _ => {}
        }
    }
}

impl Tally {
    /// The counters of a host and of this machine.
    fn counts(&self, namespace: &Namespace, clock: Clock) -> Result<Counts, LabError> {
        let text = namespace.command("cat", &["/proc/stat", "/proc/net/dev"], "")?;
        let (packets, dropped) = text.lines().filter_map(device).fold((0, 0), |(p, d), (q, e)| (p + q, d + e));
        Ok(Counts {
            at: clock.now(),
            delivered: self.delivered,
            packets,
            dropped: self.dropped + dropped,
            process: ProcessTime::now().as_duration(),
            machine: busy(&text) as f64 * JIFFY,
        })
    }
}

/// Packets and drops, both ways, from the line of a path's device.
fn device(line: &str) -> Option<(u64, u64)> {
    let (_, counters) = line.split_once(':').filter(|(name, _)| name.trim().starts_with("path"))?;
    let counters: Vec<u64> = counters.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    Some((counters.get(1)? + counters.get(9)?, counters.get(3)? + counters.get(11)?))
}

/// Jiffies in which a CPU was busy: user, nice, system, then idle and waiting, then interrupts and the rest.
fn busy(stat: &str) -> u64 {
    let all = stat.lines().next().unwrap_or("").split_whitespace().skip(1).take(8);
    let busy = all.enumerate().filter(|(n, _)| !matches!(n, 3 | 4));
    busy.filter_map(|(_, n)| n.parse::<u64>().ok()).sum()
}

/// One run of `seconds` after the warm-up.
pub fn measure(case: &Case, seconds: u64) -> Result<Figures, LabError> {
    let length = Duration::from_secs(seconds);
    let mut tally = Tally::default();
    if case.link == Link::Veth {
        let pair = Pair::start(case)?;
        watch(&pair, &mut tally, WARM_UP)?;
        let from = tally.counts(&pair.client, pair.clock)?;
        watch(&pair, &mut tally, length)?;
        return Ok(Figures::between(from, tally.counts(&pair.client, pair.clock)?));
    }
    let mut exchange: Exchange = case.start()?;
    let clock = exchange.clock;
    exchange.run(clock.now() + WARM_UP, &mut tally)?;
    let from = tally.counts(&exchange.outside[0].host.namespace, clock)?;
    exchange.run(clock.now() + length, &mut tally)?;
    Ok(Figures::between(from, tally.counts(&exchange.outside[0].host.namespace, clock)?))
}

/// Takes the reports of the kernels' applications.
fn watch(pair: &Pair, tally: &mut Tally, length: Duration) -> Result<(), LabError> {
    let until = pair.clock.now() + length;
    while pair.clock.now() < until {
        pair.clock.wait(pair.clock.now() + Duration::from_millis(5), &[]);
        for application in &pair.applications {
            while let Some(told) = application.poll() {
                match told {
                    Report::Event(_, _, Event::Delivered(range)) => tally.delivered += range.len(),
                    Report::Event(..) | Report::Done(Ok(())) => {}
                    Report::Done(Err(what)) => return Err(LabError::Application { what }),
                }
            }
        }
    }
    Ok(())
}
