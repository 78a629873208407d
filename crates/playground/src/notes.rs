//! The events of a connection beside its packets: windows, timers, the scheduler's own value.

use crate::acks::Acks;
use anabranch_run::CONNECTION;
use anabranch_run::fields::Fact;
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, PathState, Recorder, RecoveryPhase, value_name};
use anabranch_units::{Direction, Instant, PathId, Side};
use anabranch_wire::Packet;

/// Numbers of a note: its kind, time in seconds, path, and three values of its own.
pub const WIDTH: usize = 6;

/// The kind of a note: its first number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// An acknowledgment changed a path's sender: congestion window, packets in flight, smoothed RTT in seconds.
    Window = 1,
    /// The retransmission timer fired: how often in a row.
    Timeout = 2,
    /// Fast recovery began (1), or recovery from a timeout (2), or ended (0).
    Recovery = 3,
    /// A subflow's state: 1 established, 2 failing, 3 closed or dead.
    Path = 4,
    /// The peer's window is full (1), or is not any more (0).
    Blocked = 5,
    /// The scheduler's published value.
    Value = 6,
    /// A queue dropped a packet on arrival: the packet's number, or −1 if it carries no payload; 1 if the queue was full, 2 if its
    /// management dropped the packet.
    Dropped = 7,
    /// A scheduler halved a path's window.
    Penalised = 8,
    /// A packet of payload entered a queue: its number, bytes that wait there.
    Queued = 9,
    /// An acknowledgment of something new reached the sender: when the receiver sent it, in seconds; 1 if it is the subflow's, 2 if the
    /// connection's (DATA_ACK), 3 if both.
    Ack = 10,
}

/// A packet before the network said what becomes of it.
#[derive(Clone, Copy, Debug)]
struct Entering {
    path: PathId,
    /// Number of the packet, or −1 if it carries no payload.
    number: f64,
    /// The queue's management dropped a packet at this time: this one, unless a later event says that it was a waiting one.
    managed: Option<Instant>,
}

/// Notes of the first connection, until they are taken.
#[derive(Debug)]
pub struct Notes {
    /// Packets after which nothing is noted any more: a run may be endless, a page's memory is not.
    limit: u64,
    /// The way of the data.
    way: Direction,
    rows: Vec<f64>,
    /// The name of the scheduler's value, without the scheduler's.
    pub value: Option<&'static str>,
    /// Packets of payload that the sender sent so far.
    sent: u64,
    /// As many of them have been seen.
    seen: u64,
    acks: Acks,
    /// A packet that the sender just gave to the network.
    entering: Option<Entering>,
    /// The recovery of each path, as last noted.
    recovering: Vec<f64>,
}

impl Notes {
    /// None yet, of what flows this way; `limit` = packets of payload after which there are no more.
    pub fn new(limit: usize, way: Direction) -> Self {
        let limit = limit as u64;
        let (rows, acks, recovering) = (Vec::new(), Acks::default(), Vec::new());
        Self { limit, way, rows, value: None, sent: 0, seen: 0, acks, entering: None, recovering }
    }

    /// The rows since the last call.
    pub fn take(&mut self) -> Vec<f64> {
        self.settle();
        core::mem::take(&mut self.rows)
    }

    fn note(&mut self, what: What, now: Instant, path: PathId, values: [f64; 3]) {
        if self.sent > self.limit {
            return;
        }
        let head = [f64::from(what as u8), now.as_secs_f64(), f64::from(path.0)];
        self.rows.extend(head.into_iter().chain(values));
    }

    /// Nothing more is said of the entering packet: if the queue's management dropped one, it was this.
    fn settle(&mut self) {
        if let Some(Entering { path, number, managed: Some(now) }) = self.entering.take() {
            self.note(What::Dropped, now, path, [number, 2.0, 0.0]);
        }
    }

    /// The sender sent a packet; the events of its payload came before.
    fn on_sent(&mut self, path: PathId, packet: &Packet) {
        self.settle();
        let is_followed = self.sent > self.seen;
        self.seen = self.sent;
        let number = if is_followed { (self.sent - 1) as f64 } else { -1.0 };
        if is_followed {
            self.acks.follow(path, packet.segment.dst_port, packet.segment.seq.0);
        }
        self.entering = Some(Entering { path, number, managed: None });
    }

    fn recovery(&mut self, now: Instant, path: PathId, phase: RecoveryPhase) {
        let phase = match phase {
            RecoveryPhase::Open | RecoveryPhase::Disorder => 0.0,
            RecoveryPhase::Recovery => 1.0,
            RecoveryPhase::Loss => 2.0,
        };
        self.recovering.resize(self.recovering.len().max(path.index() + 1), 0.0);
        if self.recovering[path.index()] != phase {
            self.recovering[path.index()] = phase;
            self.note(What::Recovery, now, path, [phase, 0.0, 0.0]);
        }
    }

    fn of_sender(&mut self, now: Instant, path: PathId, event: &Event) {
        match *event {
            Event::DataSent { .. } => self.sent += 1,
            Event::Window(w) => {
                let srtt = if w.srtt.is_zero() { f64::NAN } else { w.srtt.as_secs_f64() };
                self.note(What::Window, now, path, [f64::from(w.cwnd), f64::from(w.in_flight), srtt]);
            }
            Event::Timeout { n } => self.note(What::Timeout, now, path, [f64::from(n), 0.0, 0.0]),
            Event::Recovery(phase) => self.recovery(now, path, phase),
            Event::Path(state) => {
                let state = match state {
                    PathState::Opening => return,
                    PathState::Established => 1.0,
                    PathState::Failing => 2.0,
                    PathState::Closed | PathState::Dead => 3.0,
                };
                self.note(What::Path, now, path, [state, 0.0, 0.0]);
            }
            Event::WindowBlocked(full) => {
                self.note(What::Blocked, now, path, [full.number(), 0.0, 0.0]);
            }
            Event::SchedulerValue { name, micro } => {
                self.value = Some(value_name(name));
                self.note(What::Value, now, path, [micro as f64 / 1e6, 0.0, 0.0]);
            }
            Event::Penalised => self.note(What::Penalised, now, path, [0.0; 3]),
            _ => {}
        }
    }
}

impl Recorder for Notes {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if origin.host == Some(self.way.sender()) && origin.connection == CONNECTION {
            self.of_sender(now, origin.path, event);
        }
        if let Event::Link { direction, size, what } = *event {
            self.link(now, origin.path, direction, size, what);
        }
    }

    fn link(&mut self, now: Instant, path: PathId, direction: Direction, _size: u32, what: LinkEvent) {
        if direction != self.way {
            return;
        }
        let Some(entering) = self.entering.as_mut().filter(|entering| entering.path == path) else { return };
        if entering.managed.is_some_and(|then| then < now) {
            return self.settle();
        }
        let number = entering.number;
        match what {
            LinkEvent::Enqueued { queue_bytes, .. } => {
                self.entering = None;
                if number >= 0.0 {
                    self.note(What::Queued, now, path, [number, queue_bytes as f64, 0.0]);
                }
            }
            LinkEvent::Dropped(DropCause::Queue | DropCause::Police | DropCause::Mtu | DropCause::Middlebox) => {
                self.entering = None;
                self.note(What::Dropped, now, path, [number, 1.0, 0.0]);
            }
            // RED drops the arriving packet; CoDel drops waiting ones, before it accepts the arriving packet.
            LinkEvent::Dropped(DropCause::Aqm) => entering.managed = Some(now),
            _ => {}
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        match (host == self.way.sender(), sent) {
            (true, true) => self.on_sent(path, packet),
            (true, false) => {
                if let Some((sent, news)) = self.acks.arrived(path, packet) {
                    self.note(What::Ack, now, path, [sent.as_secs_f64(), news, 0.0]);
                }
            }
            (false, true) => self.acks.sent(now, path, packet),
            (false, false) => {}
        }
    }
}
