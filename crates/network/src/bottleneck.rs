//! A queue and what drains it, for one direction.

use crate::store::Place;
use crate::{BottleneckSpec, Capacity, Qdisc, QueueState};
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{ConnId, Direction, Instant, PathId, Rate};
use std::collections::VecDeque;

/// One direction of one path, as packets and events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayId {
    pub(crate) path: u32,
    pub(crate) direction: Direction,
}

impl WayId {
    /// The way at this place of a table of ways.
    pub(crate) fn of(index: usize) -> Self {
        let direction = if index.is_multiple_of(2) { Direction::Down } else { Direction::Up };
        Self { path: (index / 2) as u32, direction }
    }

    /// Its place in a table of ways: each path's down, then up.
    pub(crate) fn index(self) -> usize {
        2 * self.path as usize + self.direction as usize
    }

    /// Tells that a packet of `size` bytes on this way met the network.
    pub(crate) fn record(self, recorder: &mut dyn Recorder, at: Instant, size: u32, what: LinkEvent) {
        let path = PathId(u8::try_from(self.path).unwrap_or(u8::MAX));
        let origin = Origin { host: None, connection: ConnId(0), path };
        recorder.record(at, origin, &Event::Link { direction: self.direction, size, what });
    }
}

/// A packet at a bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Where its item lies; `None` if it vanishes behind the bottleneck.
    pub(crate) item: Option<Place>,
    /// Its number in order of insertion into the network.
    pub(crate) seq: u64,
    /// Where it goes on; `None` for cross traffic of a link, of which no events tell.
    pub(crate) way: Option<WayId>,
    /// Bytes with the path's overhead.
    pub(crate) size: u32,
    /// When it came.
    pub(crate) arrived: Instant,
}

impl Packet {
    fn record(&self, recorder: &mut dyn Recorder, at: Instant, what: LinkEvent) {
        if let Some(way) = self.way {
            way.record(recorder, at, self.size, what);
        }
    }
}

fn count(packets: usize) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// A queue and what drains it. It runs behind the clock until someone asks: [`Self::depart`] brings it up to date.
#[derive(Debug)]
pub(crate) struct Queue {
    /// In order; while `busy`, the first is in transmission.
    packets: VecDeque<Packet>,
    /// Bytes of those that wait.
    bytes: u64,
    busy: bool,
    departs: Instant,
    /// Items of packets that the discipline dropped, to be taken from the store.
    refused: Vec<Place>,
    qdisc: Box<dyn Qdisc>,
    capacity: Box<dyn Capacity>,
}

impl Queue {
    /// An empty queue.
    pub(crate) fn new(spec: &BottleneckSpec) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            busy: false,
            departs: Instant::MAX,
            refused: vec![],
            qdisc: spec.queue.build(),
            capacity: spec.capacity.build(),
        }
    }

    /// When the packet in transmission leaves; [`Instant::MAX`] if there is none or it never does.
    pub(crate) fn departs(&self) -> Instant {
        self.departs
    }

    /// What waits.
    pub(crate) fn state(&self) -> QueueState {
        let packets = count(self.packets.len() - usize::from(self.busy));
        QueueState { packets, bytes: self.bytes, busy: self.busy }
    }

    /// A packet comes; everything that left before `now` has been fetched.
    pub(crate) fn arrive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: Packet) {
        let queue = self.state();
        let size = u64::from(packet.size);
        if let Err(cause) = self.qdisc.admit(now, packet.size, queue) {
            self.refuse(now, recorder, packet, cause);
            return;
        }
        let (queue_packets, queue_bytes) =
            if queue.busy { (queue.packets.saturating_add(1), queue.bytes + size) } else { (0, 0) };
        packet.record(recorder, now, LinkEvent::Enqueued { queue_packets, queue_bytes });
        self.packets.push_back(packet);
        self.bytes += size;
        if !queue.busy {
            self.start(now, recorder, true);
        }
    }

    /// The next packet that leaves at or before `now`, and when.
    pub(crate) fn depart(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Option<(Instant, Packet)> {
        if self.departs > now || self.departs == Instant::MAX {
            return None;
        }
        let at = self.departs;
        let packet = self.packets.pop_front()?;
        packet.record(recorder, at, LinkEvent::Departed);
        self.start(at, recorder, false);
        Some((at, packet))
    }

    /// The first packet that the discipline does not drop goes into transmission.
    fn start(&mut self, now: Instant, recorder: &mut dyn Recorder, idle: bool) {
        self.busy = false;
        self.departs = Instant::MAX;
        while let Some(&head) = self.packets.front() {
            let (size, sojourn) = (head.size, now.since(head.arrived));
            self.bytes -= u64::from(size);
            let behind = QueueState { packets: count(self.packets.len() - 1), bytes: self.bytes, busy: false };
            match self.qdisc.release(now, size, sojourn, behind) {
                Ok(()) => {
                    self.departs = self.capacity.transmit(now, size, idle);
                    self.busy = true;
                    return;
                }
                Err(cause) => self.refuse(now, recorder, head, cause),
            }
            self.packets.pop_front();
        }
    }

    fn refuse(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: Packet, cause: DropCause) {
        packet.record(recorder, now, LinkEvent::Dropped(cause));
        self.refused.extend(packet.item);
    }

    /// An item whose packet the discipline dropped; the caller takes it from the store.
    pub(crate) fn next_refused(&mut self) -> Option<Place> {
        self.refused.pop()
    }

    /// The rate is `rate` from `now` on.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        let departs = self.capacity.set_rate(now, rate, self.departs);
        if self.busy {
            self.departs = departs;
        }
    }
}
