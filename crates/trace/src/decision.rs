//! Decisions of a scheduler, each with the view that it had: part of `timeline/*.json` in a results directory.

use anabranch_units::{ConnId, Instant, Side};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A path at a decision. In files an array of its fields, in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "PathRow", into = "PathRow")]
pub struct SeenPath {
    /// New data may be bound to it.
    pub usable: bool,
    /// Packets that it may take: those for which its window has room; none while it recovers from a timeout.
    pub room: u32,
    /// The same after the round.
    pub left: u32,
    /// Smoothed RTT in seconds; `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets bound to it and not yet sent.
    pub queued: u32,
    /// The scheduler's own values of the path, as [`Decisions::path_state`] names them; NaN = none.
    pub state: Vec<f64>,
}

type PathRow = (u8, u32, u32, Option<f64>, u32, u32, u32, Vec<Option<f64>>);

impl From<PathRow> for SeenPath {
    fn from((usable, room, left, srtt_s, cwnd, in_flight, queued, state): PathRow) -> Self {
        Self {
            usable: usable != 0,
            room,
            left,
            srtt_s,
            cwnd,
            in_flight,
            queued,
            state: state.into_iter().map(known).collect(),
        }
    }
}

impl From<SeenPath> for PathRow {
    fn from(path: SeenPath) -> Self {
        let state = path.state.into_iter().map(finite).collect();
        (path.usable.into(), path.room, path.left, path.srtt_s, path.cwnd, path.in_flight, path.queued, state)
    }
}

fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The outcome of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// The scheduler bound nothing, although a path had room and data waited.
    #[default]
    Waited,
    /// The scheduler bound data.
    Bound,
    /// The scheduler bound data, and then waited.
    BoundThenWaited,
}

/// A round of a scheduler: the view before it, its own values and the room that is left after it. In files an array of its fields, in this order; the
/// outcome is a number, from 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Decision {
    /// When, in seconds since the run began.
    pub at_s: f64,
    /// Outcome of the round.
    pub outcome: Outcome,
    /// Bytes that were written and bound to no path.
    pub backlog_bytes: u64,
    /// Bytes that the peer's window admitted beyond all that was bound.
    pub window_bytes: u64,
    /// Paths in the order of the timeline (`Timeline::paths`).
    pub paths: Vec<SeenPath>,
    /// The scheduler's own values, as [`Decisions::state`] names them; NaN = none.
    pub state: Vec<f64>,
}

type Row = (f64, u8, u64, u64, Vec<SeenPath>, Vec<Option<f64>>);

impl From<Row> for Decision {
    fn from((at_s, outcome, backlog_bytes, window_bytes, paths, state): Row) -> Self {
        let outcome = match outcome {
            0 => Outcome::Waited,
            1 => Outcome::Bound,
            _ => Outcome::BoundThenWaited,
        };
        Self { at_s, outcome, backlog_bytes, window_bytes, paths, state: state.into_iter().map(known).collect() }
    }
}

impl From<Decision> for Row {
    fn from(row: Decision) -> Self {
        let state = row.state.into_iter().map(finite).collect();
        (row.at_s, row.outcome as u8, row.backlog_bytes, row.window_bytes, row.paths, state)
    }
}

/// The decisions behind the packets of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    /// Names of the scheduler's own values: `lambda`.
    pub state: Vec<String>,
    /// Names of those that each path has: `planned`.
    pub path_state: Vec<String>,
    /// Decisions by time. Each is an array: seconds since the run began, outcome (0: waited, 1: bound data, 2: bound data, then waited), bytes
    /// bound to no path, bytes that the window admits, an array per path, and the scheduler's own values.
    pub rows: Vec<Decision>,
}

impl Decisions {
    /// The decision that bound data at a time: of several at one time, the last.
    pub fn at(&self, time_s: f64) -> Option<usize> {
        let end = self.rows.partition_point(|row| row.at_s <= time_s);
        let at_that_time = self.rows[..end].iter().enumerate().rev().take_while(|(_, row)| row.at_s == time_s);
        at_that_time
            .map(|(place, row)| (place, row.outcome))
            .find(|(_, outcome)| *outcome != Outcome::Waited)
            .map(|(at, _)| at)
    }

    /// Leaves only the rows in `used`, which ascend.
    pub fn keep(&mut self, used: &[usize]) {
        let mut used = used.iter().peekable();
        let mut places = 0..;
        self.rows.retain(|_| {
            let place = places.next();
            used.next_if(|wanted| Some(**wanted) == place).is_some()
        });
    }

    /// A copy of those in `used`.
    pub fn only(&self, used: &[usize]) -> Self {
        let rows = used.iter().filter_map(|place| self.rows.get(*place).cloned()).collect();
        Self { state: self.state.clone(), path_state: self.path_state.clone(), rows }
    }
}

/// Where a witness of a scheduler writes, and a recorder reads: see [`crate::Recorder::decisions`].
#[derive(Clone, Debug)]
pub struct DecisionLog {
    /// The connection.
    pub connection: ConnId,
    /// The host whose scheduler decides.
    pub sender: Side,
    /// From when on all decisions are kept, up to [`Self::limit`]; of those before, the newest.
    pub from: Instant,
    /// So many that bound data are kept, and as many that only waited, if those are wanted.
    pub limit: usize,
    /// Decisions that only waited are kept, too.
    pub waits: bool,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    names: [Vec<&'static str>; 2],
    rows: VecDeque<Decision>,
}

/// Decisions before [`DecisionLog::from`] that are kept, for data that was bound then and is sent later.
const BEFORE: usize = 4096;

impl DecisionLog {
    /// An empty one, for decisions that bind data.
    pub fn new(connection: ConnId, from: Instant, limit: usize) -> Self {
        Self { connection, sender: Side::Server, from, limit, waits: false, kept: Arc::default() }
    }

    /// The same for the decisions of this host; the server unless it is called.
    pub fn of(self, sender: Side) -> Self {
        Self { sender, ..self }
    }

    /// The same, also for decisions that only wait.
    pub fn with_waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The names of the scheduler's own values, of the connection and of each path.
    pub fn name(&self, names: &[Vec<&'static str>; 2]) {
        self.kept().names.clone_from(names);
    }

    /// Adds a decision at `now`.
    pub fn put(&self, now: Instant, decision: Decision) {
        let mut kept = self.kept();
        if now < self.from && kept.rows.len() >= BEFORE {
            kept.rows.pop_front();
        }
        kept.rows.push_back(decision);
    }

    /// Those since the last call.
    pub fn take(&self) -> Decisions {
        let mut kept = self.kept();
        let names = |names: &Vec<&'static str>| names.iter().map(|name| (*name).to_owned()).collect();
        let [state, path_state] = kept.names.each_ref().map(names);
        Decisions { state, path_state, rows: core::mem::take(&mut kept.rows).into() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_s: f64, outcome: Outcome) -> Decision {
        Decision { at_s, outcome, ..Decision::default() }
    }

    #[test]
    fn a_decision_is_an_array_of_numbers() {
        let seen = SeenPath {
            usable: true,
            room: 3,
            left: 2,
            srtt_s: Some(0.05),
            cwnd: 10,
            in_flight: 7,
            queued: 1,
            state: vec![],
        };
        let unknown = SeenPath { state: vec![f64::NAN], ..SeenPath::default() };
        let decision = Decision {
            backlog_bytes: 2800,
            window_bytes: 65_535,
            paths: vec![seen, unknown],
            state: vec![1.25],
            ..row(0.5, Outcome::BoundThenWaited)
        };
        let text = serde_json::to_string(&decision).unwrap();
        assert_eq!(text, "[0.5,2,2800,65535,[[1,3,2,0.05,10,7,1,[]],[0,0,0,null,0,0,0,[null]]],[1.25]]");
        let read: Decision = serde_json::from_str(&text).unwrap();
        assert_eq!((&read.paths[0], &read.state), (&decision.paths[0], &decision.state));
        assert!(read.paths[1].state[0].is_nan());
    }

    #[test]
    fn of_the_decisions_of_one_time_the_last_that_bound_data_counts() {
        use Outcome::*;
        let rows =
            vec![row(1.0, Bound), row(2.0, Bound), row(2.0, BoundThenWaited), row(2.0, Waited), row(3.0, Waited)];
        let mut decisions = Decisions { rows, ..Decisions::default() };
        assert_eq!([0.5, 1.0, 1.5, 2.0, 3.0].map(|at| decisions.at(at)), [None, Some(0), None, Some(2), None]);
        assert_eq!(decisions.only(&[0, 2]).rows, [row(1.0, Bound), row(2.0, BoundThenWaited)]);
        decisions.keep(&[0, 2]);
        assert_eq!(decisions.rows, [row(1.0, Bound), row(2.0, BoundThenWaited)]);
    }

    #[test]
    fn before_its_time_a_log_keeps_the_newest() {
        let log = DecisionLog::new(ConnId(0), Instant::from_millis(9_000), 10);
        for ms in 0..=9_000 {
            log.put(Instant::from_millis(ms), row(ms as f64, Outcome::Bound));
        }
        let rows = log.take().rows;
        assert_eq!((rows.len(), rows[0].at_s), (BEFORE + 1, (9_000 - BEFORE) as f64));
        assert_eq!(log.take().rows, []);
    }
}
