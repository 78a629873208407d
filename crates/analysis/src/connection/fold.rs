//! The events of one connection at one host, as sums.

use super::curve::Curve;
use super::sending::Sending;
use super::waits::Waits;
use anabranch_trace::{Event, Origin, PathState, Recorder, SendKind, Violation};
use anabranch_units::{Duration, Instant, Range};
use std::collections::BTreeMap;

/// Most pieces of data whose first path is remembered.
const MOST_PIECES: usize = 1 << 17;

/// Packets and payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// The data that one subflow carried, in both directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// The near host sent: new data, retransmissions on the same subflow, data that another subflow had carried.
    pub new: Tally,
    pub again: Tally,
    pub reinjected: Tally,
    /// Payload that arrived, and how much of it the near host had not had.
    pub arrived: Tally,
    pub arrived_new: u64,
    pub sending: Sending,
    /// Greatest out-of-order queue of the subflow itself.
    pub own_queue: (u64, Option<Instant>),
}

/// The stream that the near host sends.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The receiver's waits, by acknowledgments.
    pub waits: Waits,
    pub curve: Curve,
    pub end: u64,
    pub acked: u64,
    pub first: Option<Instant>,
    pub last_acked: Option<Instant>,
    /// The end that the window allows, and since when data fills it.
    limit: u64,
    full: Option<Instant>,
    pub full_time: Duration,
    pub full_count: u64,
    pub largest_window: u64,
    largest: u64,
    /// First path of data that is not acknowledged, by its begin: end and path.
    first_on: BTreeMap<u64, (u64, usize)>,
}

/// The stream that the near host receives.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub waits: Waits,
    pub curve: Curve,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    /// Out-of-order queues of the subflows together, in bytes, and the greatest sum.
    queues: Vec<u64>,
    pub own_queues: u64,
}

/// Everything that a connection's events add up to.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub carried: Vec<Carried>,
    pub outgoing: Outgoing,
    pub incoming: Incoming,
    pub connected: Option<bool>,
    pub fallback: Option<Instant>,
    pub violations: Vec<(Violation, u64)>,
}

impl Fold {
    pub fn new(begin: Instant) -> Self {
        let curve = Curve::new(begin);
        let outgoing = Outgoing {
            waits: Waits::default(),
            curve: curve.clone(),
            end: 0,
            acked: 0,
            first: None,
            last_acked: None,
            limit: 0,
            full: None,
            full_time: Duration::ZERO,
            full_count: 0,
            largest_window: 0,
            largest: 0,
            first_on: BTreeMap::new(),
        };
        let incoming =
            Incoming { waits: Waits::default(), curve, first: None, last: None, queues: Vec::new(), own_queues: 0 };
        let (connected, fallback, violations) = (None, None, Vec::new());
        Self { carried: Vec::new(), outgoing, incoming, connected, fallback, violations }
    }

    /// The sums of a path.
    pub fn path(&mut self, path: usize) -> &mut Carried {
        if self.carried.len() <= path {
            self.carried.resize_with(path + 1, Carried::default);
        }
        &mut self.carried[path]
    }

    /// A packet of the peer on a path acknowledges its subflow up to `acked`, and admits `window` bytes.
    pub fn heard(&mut self, now: Instant, path: usize, acked: Option<u64>, sacks: bool, window: Option<u64>) {
        self.path(path);
        let outgoing = &mut self.outgoing;
        for delivered in self.carried[path].sending.heard(now, acked, sacks) {
            outgoing.waits.arrived(now, path, delivered);
        }
        let known = Range::new(outgoing.waits.next(), outgoing.acked);
        if !known.is_empty() {
            // A DATA_ACK on one subflow comes before the acknowledgment on another that carried the data.
            let carrier = outgoing.first_path(known.start).unwrap_or(path);
            outgoing.waits.arrived(now, carrier, known);
        }
        outgoing.forget();
        if let Some(window) = window {
            outgoing.admit(now, window);
        }
    }

    fn sent(&mut self, now: Instant, path: usize, seq: u64, data: Range, kind: SendKind) {
        let carried = self.path(path);
        carried.sending.mapped(seq, data);
        match kind {
            SendKind::First => carried.new.add(data.len()),
            SendKind::Retransmission => carried.again.add(data.len()),
            SendKind::Rescue | SendKind::Opportunistic | SendKind::Copy => carried.reinjected.add(data.len()),
        }
        let before = self.outgoing.first_path(data.start).filter(|before| *before != path);
        if let (SendKind::Rescue, Some(before)) = (kind, before) {
            self.carried[before].sending.rescued(now);
        }
        self.outgoing.sent(now, path, data);
    }

    fn arrived(&mut self, now: Instant, path: usize, data: Range, new: u64) {
        let carried = self.path(path);
        carried.arrived.add(data.len());
        carried.arrived_new += new;
        let incoming = &mut self.incoming;
        incoming.first.get_or_insert(now);
        incoming.curve.add(now, path + 1, data.len());
        let before = incoming.waits.next();
        if incoming.waits.arrived(now, path, data) {
            incoming.last = Some(now);
            incoming.curve.add(now, 0, incoming.waits.next() - before);
        }
    }
}

impl Outgoing {
    fn sent(&mut self, now: Instant, path: usize, data: Range) {
        self.first.get_or_insert(now);
        self.curve.add(now, path + 1, data.len());
        self.largest = self.largest.max(data.len());
        if data.end > self.end {
            if self.first_on.len() < MOST_PIECES {
                self.first_on.insert(data.start.max(self.end), (data.end, path));
            }
            self.end = data.end;
        }
        self.check(now);
    }

    fn first_path(&self, at: u64) -> Option<usize> {
        let (_, (end, path)) = self.first_on.range(..=at).next_back()?;
        (at < *end).then_some(*path)
    }

    fn acked(&mut self, now: Instant, upto: u64) {
        self.curve.add(now, 0, upto.saturating_sub(self.acked));
        (self.acked, self.last_acked) = (upto, Some(now));
    }

    /// Drops what is acknowledged.
    fn forget(&mut self) {
        while self.first_on.first_key_value().is_some_and(|(_, (end, _))| *end <= self.acked) {
            self.first_on.pop_first();
        }
    }

    /// RFC 8684 §3.3.1: the window counts from the DATA_ACK.
    fn admit(&mut self, now: Instant, window: u64) {
        self.largest_window = self.largest_window.max(window);
        self.limit = self.limit.max(self.acked + window);
        self.check(now);
    }

    /// The window is full if it has no room for the largest segment, and something is outstanding.
    fn check(&mut self, now: Instant) {
        let full = self.end > self.acked && self.limit > 0 && self.end + self.largest > self.limit;
        match (full, self.full) {
            (true, None) => {
                self.full = Some(now);
                self.full_count += 1;
            }
            (false, Some(since)) => {
                self.full_time += now.since(since);
                self.full = None;
            }
            _ => {}
        }
    }

    /// The connection was seen until `now`.
    pub fn finish(&mut self, now: Instant) {
        if let Some(since) = self.full.take() {
            self.full_time += now.since(since);
        }
    }
}

impl Recorder for Fold {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        let path = origin.path.index();
        match *event {
            Event::DataSent { seq, data, kind } => self.sent(now, path, seq, data, kind),
            Event::DataArrived { data, new, .. } => self.arrived(now, path, data, new),
            Event::DataAcked(upto) => self.outgoing.acked(now, upto),
            Event::SubflowOfo(bytes) => {
                let own = &mut self.path(path).own_queue;
                if bytes > own.0 {
                    *own = (bytes, Some(now));
                }
                self.incoming.queue(path, bytes);
            }
            Event::Path(PathState::Dead | PathState::Closed) => self.incoming.queue(path, 0),
            Event::Connected(multipath) => self.connected = Some(multipath),
            Event::Fallback => self.fallback = Some(now),
            Event::Violation(what) => match self.violations.iter_mut().find(|(known, _)| *known == what) {
                Some((_, count)) => *count += 1,
                None => self.violations.push((what, 1)),
            },
            _ => {}
        }
    }
}

impl Incoming {
    fn queue(&mut self, path: usize, bytes: u64) {
        if self.queues.len() <= path {
            self.queues.resize(path + 1, 0);
        }
        self.queues[path] = bytes;
        self.own_queues = self.own_queues.max(self.queues.iter().sum());
    }
}
