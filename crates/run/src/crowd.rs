//! The connections of a scenario's traffic: their number, when they open, and the application at both ends of each.

use anabranch_metrics::{FrameSchedule, Oracle, ResponseSchedule, Timed, VideoSchedule};
use anabranch_scenario::{Arrivals, ConnectionsPer, ObjectSizes, PlugIn, Traffic, TrafficKind};
use anabranch_sim::Opening;
use anabranch_units::{Duration, FramePattern, Instant, Rng, Side, TrafficDirection};
use anabranch_workload::{
    BulkSink, BulkSource, Call, Duplex, Exchange, FrameSource, Objects, RequestClient, ResponseServer, Video,
    VideoClient, Workload, abr, poisson,
};

/// The connections under test.
#[derive(Debug)]
pub(crate) struct Connections {
    traffic: Traffic,
    opening: Opening,
    start: Instant,
    /// Exchange of traffic in which the client sends requests.
    exchange: Option<Exchange>,
    /// Frames of traffic that has any: the same in both directions.
    frames: Option<FrameSchedule>,
}

/// Arrivals at which the bound of a run is looked for: it holds at each.
const LOOKS: usize = 64;

impl Connections {
    /// From `start` on, with the random streams of `seed`.
    pub fn new(traffic: &Traffic, start: Instant, seed: u64) -> Self {
        let opening = match traffic.arrivals {
            Arrivals::Together if serves_once(&traffic.kind) => Opening::Served(traffic.at_once() as usize),
            Arrivals::Together => Opening::AtOnce(traffic.connections() as usize),
            Arrivals::Poisson { rate } => {
                Opening::At(poisson(start, rate, traffic.flows as usize, &mut Rng::stream(seed, "traffic.arrivals")))
            }
        };
        let start = match &opening {
            Opening::At(times) => times.first().copied().unwrap_or(start),
            Opening::AtOnce(_) | Opening::Served(_) => start,
        };
        let (exchange, frames) = (exchange(&traffic.kind, seed), frames(&traffic.kind, seed));
        Self { traffic: traffic.clone(), opening, start, exchange, frames }
    }

    /// How many connections there are.
    pub fn count(&self) -> u32 {
        self.traffic.connections()
    }

    /// How many of them may be under way at a time.
    pub fn at_once(&self) -> u32 {
        self.traffic.at_once()
    }

    /// When the first connection opens.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// When each opens.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Bytes sent over all connections, by either end, if they end.
    pub fn total(&self) -> Option<u64> {
        self.traffic.total()
    }

    /// Bytes sent over all connections in one direction, if they end.
    pub fn total_one_way(&self) -> Option<u64> {
        Some(self.total()? / self.traffic.direction.ways().len() as u64)
    }

    /// Bytes of each flow in one direction, if there are several that end.
    pub fn flow_size(&self) -> Option<u64> {
        (self.traffic.flows > 1).then(|| self.traffic.kind.total()).flatten()
    }

    /// The application at one end of a connection.
    pub fn workload(&self, side: Side) -> Box<dyn Workload> {
        match (side, &self.traffic.kind, &self.exchange) {
            (Side::Client, kind @ TrafficKind::Video { abr, request, .. }, Some(_)) => player(kind, abr, *request),
            (Side::Client, TrafficKind::Request { interval, .. }, Some(exchange)) => {
                Box::new(RequestClient::new(exchange.clone(), *interval))
            }
            (Side::Client, kind, Some(exchange)) if serves_once(kind) => {
                Box::new(RequestClient::for_one(exchange.clone()))
            }
            (Side::Client, _, Some(exchange)) => Box::new(RequestClient::sharing(exchange.clone())),
            (Side::Server, _, Some(exchange)) => Box::new(ResponseServer::new(exchange.clone())),
            (_, kind, None) => match &self.frames {
                Some(frames) => self
                    .end(side, FrameSource::new(frames.pattern.clone(), frames.count).with_deadline(frames.deadline)),
                None => self.end(side, BulkSource::new(kind.total())),
            },
        }
    }

    /// An end of a connection without requests, which sends as `source` if it sends.
    fn end(&self, side: Side, source: impl Workload + 'static) -> Box<dyn Workload> {
        let (direction, total) = (self.traffic.direction, self.traffic.kind.total());
        match (direction.has(side.sends()), direction.has(side.receives())) {
            (true, true) => Box::new(Duplex::of(source, total)),
            // A client that sends is done when the server has read all of it, which the end of its empty stream shows.
            (true, false) if side == Side::Client => Box::new(Duplex::of(source, Some(0))),
            (true, false) => Box::new(source),
            (false, _) => Box::new(BulkSink::new(total)),
        }
    }

    /// Which ends send data.
    pub fn direction(&self) -> TrafficDirection {
        self.traffic.direction
    }

    /// The times of each that are measured.
    pub fn timed(&self) -> Timed {
        match (&self.traffic.kind, &self.frames) {
            (_, Some(frames)) => Timed::Frames(frames.clone()),
            (&TrafficKind::Request { request, size, .. }, _) => Timed::Responses(ResponseSchedule { request, size }),
            (kind, _) => kind.video().map_or(Timed::Nothing, |video| {
                Timed::Video(VideoSchedule { rule: video.rule, live: video.there_at_first() })
            }),
        }
    }

    /// Nothing that flows one way is complete sooner after the first SYN. What arrives from some time on needs its time from there on.
    pub fn least_completion(&self, oracle: &Oracle) -> Option<Duration> {
        match &self.opening {
            Opening::AtOnce(_) | Opening::Served(_) => oracle.completion(self.start, self.total_one_way()?),
            Opening::At(times) => {
                let each = self.traffic.kind.total()?;
                let bound = |n: usize| {
                    let rest = each.saturating_mul((times.len() - n) as u64);
                    Some(times[n].since(self.start) + oracle.completion(times[n], rest)?)
                };
                let bounds = (0..times.len()).step_by(times.len().div_ceil(LOOKS).max(1)).map(bound);
                bounds.collect::<Option<Vec<_>>>()?.into_iter().max()
            }
        }
    }
}

/// The player of a video.
fn player(kind: &TrafficKind, abr: &PlugIn, request: u64) -> Box<dyn Workload> {
    let entry = abr::registry::find(&abr.name).unwrap_or(abr::registry::all()[0]);
    match kind.video() {
        Some(video) => Box::new(VideoClient::new(video, entry.build(&abr.parameters), request)),
        None => Box::new(BulkSink::new(None)),
    }
}

/// Each of the page's objects has a connection of its own.
fn serves_once(kind: &TrafficKind) -> bool {
    matches!(kind, TrafficKind::Web { connections_per: ConnectionsPer::Object, .. })
}

/// The frames that an end sends.
fn frames(kind: &TrafficKind, seed: u64) -> Option<FrameSchedule> {
    match *kind {
        TrafficKind::Frames { size, interval, count, deadline } => {
            Some(FrameSchedule { pattern: FramePattern::steady(size, interval), count, deadline })
        }
        TrafficKind::Call { audio, video, frame_rate, key_every, deadline } => {
            let video = video.map(|rate| Video { rate, frame_rate, key_every });
            let pattern = Call { audio, video }.frames(&mut Rng::stream(seed, "traffic.frames"));
            Some(FrameSchedule { pattern, count: None, deadline: Some(deadline) })
        }
        TrafficKind::Bulk { .. }
        | TrafficKind::Video { .. }
        | TrafficKind::Request { .. }
        | TrafficKind::Web { .. } => None,
    }
}

/// The objects that client and server share.
fn exchange(kind: &TrafficKind, seed: u64) -> Option<Exchange> {
    match *kind {
        TrafficKind::Video { request, .. } => kind.video().map(|video| video.exchange(request)),
        TrafficKind::Bulk { .. } | TrafficKind::Frames { .. } | TrafficKind::Call { .. } => None,
        TrafficKind::Request { request, size, count, .. } => {
            Some(Exchange { objects: Objects::Same { size, count }, request })
        }
        TrafficKind::Web { size, objects, sizes, request, .. } => {
            let objects = match sizes {
                ObjectSizes::Equal => Objects::equal(size, objects),
                ObjectSizes::Lognormal => Objects::lognormal(size, objects, &mut Rng::stream(seed, "traffic.sizes")),
            };
            Some(Exchange { objects, request })
        }
    }
}
