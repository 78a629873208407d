//! Bounds of what paths carry: of data without end, and of several applications together.

use crate::application::Application;
use anabranch_metrics::{Oracle, names};
use anabranch_units::{Direction, Duration, Instant, TrafficDirection};

/// The bound that no scheduler with any congestion control can beat.
pub(crate) struct Best {
    /// A metric's name.
    pub metric: &'static str,
    /// In its unit; `None` if nothing can arrive.
    pub value: Option<f64>,
}

/// The most goodput of data that start at a time. Nothing flows before, which the measured time need not wait for.
pub(crate) fn most_goodput<'o>(
    oracles: impl Iterator<Item = &'o Oracle>,
    start: Instant,
    (from, until): (Instant, Instant),
) -> Option<f64> {
    let open = from.max(start).min(until);
    let part = until.since(open).as_secs_f64() / until.since(from).as_secs_f64();
    let goodput = oracles.map(|oracle| oracle.goodput(open, until)).sum::<Option<f64>>();
    goodput.map(|goodput| goodput * part)
}

/// The best possible of several applications together, whose data flow these ways, with an oracle for each way. Of sized ones it is the
/// completion of all, else the goodput of each way that one of them fills: what others send there counts, too.
pub(crate) fn bound(
    applications: &[Application],
    oracles: &[Oracle],
    direction: TrafficDirection,
    measured: (Instant, Instant),
) -> Best {
    let ways = || direction.ways().iter().copied().zip(oracles);
    if applications.iter().all(|application| application.stop.is_none() && application.connections.total().is_some()) {
        let each: Option<Vec<Duration>> = ways().map(|(way, oracle)| completion(applications, way, oracle)).collect();
        let value = each.and_then(|each| each.into_iter().max()).map(Duration::as_secs_f64);
        return Best { metric: names::COMPLETION, value };
    }
    let sends = |way: Direction| applications.iter().filter(move |application| application.direction().has(way));
    let filled: Vec<(Direction, &Oracle)> =
        ways().filter(|(way, _)| sends(*way).any(|application| application.fills(*way))).collect();
    let metric = match filled[..] {
        [(Direction::Down, _)] if direction.is_both() => names::GOODPUT_DOWN,
        [(Direction::Up, _)] if direction.is_both() => names::GOODPUT_UP,
        _ => names::GOODPUT,
    };
    let of = |(way, oracle): &(Direction, &Oracle)| {
        let start = sends(*way).map(Application::start).min()?;
        most_goodput([*oracle].into_iter(), start, measured)
    };
    let value = filled.iter().map(of).sum::<Option<f64>>().filter(|_| !filled.is_empty());
    Best { metric, value }
}

/// Nothing that flows one way is complete sooner after the first SYN: neither all of it, nor that of one application.
fn completion(applications: &[Application], way: Direction, oracle: &Oracle) -> Option<Duration> {
    let first = applications.iter().map(Application::start).min()?;
    let own = || applications.iter().filter(|application| application.direction().has(way));
    let bytes = own().map(|application| application.connections.total_one_way()).sum::<Option<u64>>()?;
    let begin = own().map(Application::start).min()?;
    let together = begin.since(first) + oracle.completion(begin, bytes)?;
    let each = own()
        .map(|application| Some(application.start().since(first) + application.connections.least_completion(oracle)?));
    Some(each.collect::<Option<Vec<_>>>()?.into_iter().fold(together, Duration::max))
}
