//! One run, in slices of virtual time, with all that a picture of it needs.

use crate::decisions;
use crate::notes::{self, Notes};
use crate::own::{Ask, equip, stand_in};
use crate::request::{Mistake, Request};
use anabranch_recorders::{Fate, TimelinePacket, TimelineRecorder};
use anabranch_run::fields::Fact;
use anabranch_run::{CONNECTION, RunError, Running, VirtualTime};
use anabranch_trace::{DecisionLog, SendKind, Tee};
use anabranch_units::{Duration, Instant};
use serde::Serialize;
use serde_json::{Value, json};

/// Numbers of a packet: its number, path, reason ([`SendKind`], from 0), then its times in seconds, NaN where there is none: bound,
/// sent, arrived, in order in its subflow, delivered; first and last offset in the data sequence; 1 if its data was there before it arrived, or 0.
const OF_PACKET: usize = 11;

/// Packets that are followed at most: more would be seconds of drawing.
const MOST_PACKETS: usize = 200_000;

/// A run that has begun.
#[derive(Debug)]
pub struct Live {
    running: Running<Tee<TimelineRecorder, Notes>>,
    decisions: DecisionLog,
    paths: usize,
    /// Names of the scheduler's own values, of the connection and of each path.
    names: [Vec<String>; 2],
}

/// The events since the slice before. Rows of numbers, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The run is over.
    pub over: bool,
    /// The time of the newest event, in seconds.
    pub now_s: f64,
    /// Packets that are new or changed, each whole.
    pub packets: Vec<f64>,
    /// Other events.
    pub notes: Vec<f64>,
    /// Views of the scheduler.
    pub decisions: Vec<f64>,
    /// Numbers per row of each.
    pub widths: [usize; 3],
}

/// The end of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// As `anabranch run --format json` prints it for this seed.
    pub digest: String,
    /// Events.
    pub events: u64,
    /// Metrics of the connection.
    pub metrics: Value,
    /// The name of the scheduler's published value, if it has one.
    pub value: Option<&'static str>,
    /// Names of the scheduler's own values in decisions.
    pub state: Vec<String>,
    /// Likewise of the values that each path has.
    pub path_state: Vec<String>,
}

impl From<RunError> for Mistake {
    fn from(error: RunError) -> Self {
        Self::plain(error.to_string())
    }
}

impl Live {
    /// Begins the scenario's first run; `own` is the page's scheduler, for requests that name it.
    ///
    /// # Errors
    /// Every mistake in the request.
    pub fn begin(request: &Request, own: Option<Ask>) -> Result<Self, Vec<Mistake>> {
        let mut job = request.job()?;
        let paths = job.scenario.topology.paths.len();
        let own = own.filter(|_| request.own);
        if own.is_some() {
            job.choice = stand_in();
        }
        let limit = request.packets.min(MOST_PACKETS);
        let way = job.scenario.direction().first();
        let decisions = DecisionLog::new(CONNECTION, Instant::ZERO, limit).of(way.sender()).with_waits();
        let follow =
            TimelineRecorder::new(CONNECTION, Instant::ZERO, limit).sent(way).with_decisions(decisions.clone());
        let equip = |flows: &mut [_]| own.into_iter().for_each(|ask| equip(flows, way.sender(), ask));
        let running = VirtualTime::default().begin(&job, Tee(follow, Notes::new(limit, way)), equip);
        Ok(Self { running: running.map_err(|error| vec![error.into()])?, decisions, paths, names: Default::default() })
    }

    /// Advances to a time of the run, in seconds.
    ///
    /// # Errors
    /// The run cannot continue.
    pub fn advance(&mut self, to_s: f64) -> Result<Slice, Vec<Mistake>> {
        let to = Instant::ZERO + Duration::from_secs_f64(to_s);
        let more = self.running.advance(to).map_err(|error| vec![error.into()])?;
        let now_s = self.running.now().as_secs_f64();
        let Tee(packets, notes) = self.running.listener();
        let packets = packets.changes().flat_map(|(number, packet)| row(number, packet)).collect();
        let notes = notes.take();
        let seen = self.decisions.take();
        let (decisions, width) = decisions::rows(&seen, self.paths);
        self.names = [seen.state, seen.path_state];
        Ok(Slice { over: !more, now_s, packets, notes, decisions, widths: [OF_PACKET, notes::WIDTH, width] })
    }

    /// The outcome, when the run is over.
    pub fn finish(self) -> Summary {
        let (outcome, _, Tee(_, notes)) = self.running.finish();
        let [state, path_state] = self.names;
        Summary {
            digest: outcome.digest,
            events: outcome.events,
            metrics: json!({ "connection": outcome.metrics, "paths": outcome.paths }),
            value: notes.value,
            state,
            path_state,
        }
    }
}

fn row(number: usize, packet: &TimelinePacket) -> [f64; OF_PACKET] {
    let time = |time: Option<f64>| time.unwrap_or(f64::NAN);
    let kind = match packet.kind {
        SendKind::First => 0.0,
        SendKind::Opportunistic => 1.0,
        SendKind::Rescue => 2.0,
        SendKind::Copy => 3.0,
        SendKind::Retransmission => 4.0,
    };
    let arrived = [packet.arrived_s, packet.subflow_in_order_s, packet.delivered_s].map(time);
    let data = [packet.data_start as f64, packet.data_end as f64];
    [
        number as f64,
        packet.path as f64,
        kind,
        packet.bound_s,
        packet.sent_s,
        arrived[0],
        arrived[1],
        arrived[2],
        data[0],
        data[1],
        (packet.fate == Fate::Superseded).number(),
    ]
}
