//! A queue and its capacity, for one direction.

use crate::{BottleneckSpec, Capacity, Markable, Qdisc, QueueState};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Direction, Instant, PathId, Rate};
use std::collections::VecDeque;

/// One direction of one path, as an index into a table with each path's down, then up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayId(u32);

impl WayId {
    pub(crate) fn new(path: usize, direction: Direction) -> Self {
        Self::of(2 * path + direction as usize)
    }

    /// The way at this index.
    pub(crate) fn of(index: usize) -> Self {
        Self(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn path(self) -> usize {
        self.index() / 2
    }

    pub(crate) fn direction(self) -> Direction {
        if self.0.is_multiple_of(2) { Direction::Down } else { Direction::Up }
    }

    /// Records a link event of a packet of `size` bytes on this way.
    #[inline(always)]
    pub(crate) fn record(self, recorder: &mut dyn Recorder, at: Instant, size: u32, what: LinkEvent) {
        let (path, direction) = (PathId(self.path().min(u8::MAX.into()) as u8), self.direction());
        // Known where this is inlined: no choice is left at run time.
        match what {
            LinkEvent::Enqueued { queue_packets, queue_bytes } => {
                recorder.enqueued(at, path, direction, size, queue_packets, queue_bytes);
            }
            LinkEvent::Departed => recorder.departed(at, path, direction, size),
            _ => recorder.link(at, path, direction, size, what),
        }
    }
}

/// A packet at a bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Packet<T> {
    /// The item carried; `None` if the packet ends behind the bottleneck.
    pub(crate) item: Option<T>,
    /// Its number in order of insertion into the network.
    pub(crate) seq: u64,
    /// The way on which it continues; `None` for cross traffic of a link, which has no events.
    pub(crate) way: Option<WayId>,
    /// Bytes with the path's overhead.
    pub(crate) size: u32,
    /// Its time of arrival.
    pub(crate) arrived: Instant,
}

impl<T: Markable> Packet<T> {
    /// Marks it where `qdisc` would drop it for `cause`, if it is ECN-capable and `qdisc` marks such packets. False if not.
    #[cold]
    #[inline(never)]
    fn is_marked(&mut self, qdisc: &mut dyn Qdisc, now: Instant, cause: DropCause) -> bool {
        let Some(item) = self.item.as_mut().filter(|item| cause == DropCause::Aqm && item.is_capable()) else {
            return false;
        };
        let marks = qdisc.marks(now);
        if marks {
            item.mark();
        }
        marks
    }
}

impl<T> Packet<T> {
    fn record(&self, recorder: &mut dyn Recorder, at: Instant, what: LinkEvent) {
        if let Some(way) = self.way {
            way.record(recorder, at, self.size, what);
        }
    }
}

fn count(packets: usize) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// A queue and its capacity. It is evaluated lazily: [`Self::depart`] brings it up to date.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// In order; while `busy`, the first is in transmission.
    packets: VecDeque<Packet<T>>,
    /// Bytes of the waiting packets.
    bytes: u64,
    busy: bool,
    departs: Instant,
    departed: u64,
    qdisc: Box<dyn Qdisc>,
    capacity: Box<dyn Capacity>,
}

impl<T: Markable> Queue<T> {
    /// An empty queue, named `name` (`path.wlan.down`, `link.bottleneck.up`).
    pub(crate) fn new(spec: &BottleneckSpec, seed: u64, name: &str) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            busy: false,
            departs: Instant::MAX,
            departed: 0,
            qdisc: spec.queue.build(spec.capacity.initial_rate(), seed, name),
            capacity: spec.capacity.build(),
        }
    }

    /// When the packet in transmission leaves; [`Instant::MAX`] if there is none or it never does.
    pub(crate) fn departs(&self) -> Instant {
        self.departs
    }

    /// The waiting packets.
    pub(crate) fn state(&self) -> QueueState {
        let packets = count(self.packets.len() - usize::from(self.busy));
        QueueState { packets, bytes: self.bytes, busy: self.busy }
    }

    /// Packets that have left.
    pub(crate) fn departed(&self) -> u64 {
        self.departed
    }

    /// A packet arrives. Every packet that left before `now` has been fetched.
    pub(crate) fn arrive(&mut self, now: Instant, recorder: &mut dyn Recorder, mut packet: Packet<T>) {
        let queue = self.state();
        let size = u64::from(packet.size);
        if let Err(cause) = self.qdisc.admit(now, packet.size, queue) {
            if !packet.is_marked(self.qdisc.as_mut(), now, cause) {
                return packet.record(recorder, now, LinkEvent::Dropped(cause));
            }
            packet.record(recorder, now, LinkEvent::Marked);
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

    /// The next packet that leaves at or before `now`, and its time.
    #[inline(always)]
    pub(crate) fn depart(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Option<(Instant, Packet<T>)> {
        if self.departs > now || self.departs == Instant::MAX {
            return None;
        }
        let at = self.departs;
        let packet = self.packets.pop_front()?;
        packet.record(recorder, at, LinkEvent::Departed);
        self.departed += 1;
        self.start(at, recorder, false);
        Some((at, packet))
    }

    /// The first packet that the discipline does not drop goes into transmission.
    #[inline(always)]
    fn start(&mut self, now: Instant, recorder: &mut dyn Recorder, idle: bool) {
        loop {
            let waiting = self.packets.len();
            let Some(head) = self.packets.front_mut() else { break };
            let (size, sojourn) = (head.size, now.since(head.arrived));
            self.bytes -= u64::from(size);
            let behind = QueueState { packets: count(waiting - 1), bytes: self.bytes, busy: false };
            let released = self.qdisc.release(now, size, sojourn, behind);
            match released {
                Err(cause) if !head.is_marked(self.qdisc.as_mut(), now, cause) => {
                    head.record(recorder, now, LinkEvent::Dropped(cause));
                }
                _ => {
                    if released.is_err() {
                        head.record(recorder, now, LinkEvent::Marked);
                    }
                    self.departs = self.capacity.transmit(now, size, idle);
                    self.busy = true;
                    return;
                }
            }
            self.packets.pop_front();
        }
        self.busy = false;
        self.departs = Instant::MAX;
        self.qdisc.idle(now);
    }

    /// The items inside.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.packets.iter().filter_map(|packet| packet.item.as_ref())
    }

    /// Sets the burst from `now` on.
    pub(crate) fn set_burst(&mut self, now: Instant, burst: u64) {
        if let Some(capacity) = self.capacity.set_burst(now, burst, self.departs) {
            self.capacity = capacity;
        }
    }

    /// Sets the rate from `now` on.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        let departs = self.capacity.set_rate(now, rate, self.departs);
        if self.busy {
            self.departs = departs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FixedRate, QueueState};
    use anabranch_trace::{Event, Origin};
    use anabranch_units::Duration;

    /// Drops every packet that waited longer than this, except the last one: CoDel's drops at the head without its
    /// control law.
    #[derive(Debug)]
    struct Impatient(Duration);

    impl Qdisc for Impatient {
        fn admit(&mut self, _now: Instant, _size: u32, queue: QueueState) -> Result<(), DropCause> {
            if queue.packets < 5 { Ok(()) } else { Err(DropCause::Queue) }
        }
        fn release(
            &mut self,
            _now: Instant,
            _size: u32,
            sojourn: Duration,
            queue: QueueState,
        ) -> Result<(), DropCause> {
            if sojourn > self.0 && queue.packets > 0 { Err(DropCause::Aqm) } else { Ok(()) }
        }
    }

    #[derive(Default)]
    struct Drops(Vec<(u64, DropCause)>);

    impl Recorder for Drops {
        fn record(&mut self, now: Instant, _origin: Origin, event: &Event) {
            if let Event::Link { what: LinkEvent::Dropped(cause), .. } = event {
                self.0.push((now.as_nanos() / 1_000_000, *cause));
            }
        }
    }

    /// A packet that knows only whether it is ECN-capable, and whether it was marked.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Item(bool, bool);

    impl Markable for Item {
        fn is_capable(&self) -> bool {
            self.0
        }
        fn mark(&mut self) {
            self.1 = true;
        }
    }

    /// The events of packets that stay in a queue of CoDel with `ecn`, all of them capable or none, and the packets that left marked.
    fn managed(ecn: bool, capable: bool) -> (Vec<LinkEvent>, Vec<(u64, bool)>) {
        struct Events(Vec<LinkEvent>);
        impl Recorder for Events {
            fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
                if let Event::Link { what, .. } = event
                    && matches!(what, LinkEvent::Dropped(_) | LinkEvent::Marked)
                {
                    self.0.push(*what);
                }
            }
        }
        let capacity = crate::CapacitySpec::Fixed(Rate::from_bps(12_000_000));
        let spec = crate::CodelSpec { ecn, ..crate::CodelSpec::default() };
        let queue = crate::QueueSpec::Managed(spec.into(), crate::DropTail::Packets(1000));
        let mut queue = Queue::new(&BottleneckSpec::new(capacity, queue), 1, "a");
        let mut events = Events(Vec::new());
        for seq in 0..400 {
            let (item, way) = (Some(Item(capable, false)), Some(WayId::new(0, Direction::Up)));
            queue.arrive(Instant::ZERO, &mut events, Packet { item, seq, way, size: 1500, arrived: Instant::ZERO });
        }
        let left: Vec<_> = core::iter::from_fn(|| queue.depart(Instant::from_millis(400), &mut events)).collect();
        (events.0, left.iter().filter(|(_, p)| p.item.is_some_and(|item| item.1)).map(|(_, p)| (p.seq, true)).collect())
    }

    #[test]
    fn a_mark_takes_the_place_of_a_drop_at_the_head() {
        let (dropped, _) = managed(false, true);
        assert!(dropped.len() > 3 && dropped.iter().all(|what| *what == LinkEvent::Dropped(DropCause::Aqm)));
        assert_eq!(managed(true, false), (dropped.clone(), vec![]), "what is not capable is dropped");
        let (marked, left) = managed(true, true);
        assert!(marked.iter().all(|what| *what == LinkEvent::Marked), "{marked:?}");
        assert_eq!(marked.len(), left.len());
        // One packet per millisecond leaves; the control law: 106 (5 ms + 100 ms), then after 100/√n ms each.
        let times: Vec<u64> = left.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(times, [105, 205, 276, 334, 384], "{times:?}");
    }

    #[test]
    fn a_discipline_may_drop_at_the_head() {
        let mut queue = Queue {
            packets: VecDeque::new(),
            bytes: 0,
            busy: false,
            departs: Instant::MAX,
            departed: 0,
            qdisc: Box::new(Impatient(Duration::from_millis(1))),
            capacity: Box::new(FixedRate::new(Rate::from_bps(12_000_000))),
        };
        let mut drops = Drops::default();
        for item in 0..7u32 {
            let way = Some(WayId::new(0, Direction::Up));
            let packet = Packet { item: Some(item), seq: item.into(), way, size: 1500, arrived: Instant::ZERO };
            queue.arrive(Instant::ZERO, &mut drops, packet);
        }
        assert_eq!(queue.state(), QueueState { packets: 5, bytes: 7500, busy: true });
        let left: Vec<_> = core::iter::from_fn(|| queue.depart(Instant::from_millis(50), &mut drops))
            .map(|(at, packet)| (at.as_nanos() / 1_000_000, packet.item))
            .collect();
        // 1 comes to the head at 1 ms, within the limit; at 2 ms 2, 3 and 4 have waited too long, 5 is the last.
        assert_eq!(left, [(1, Some(0)), (2, Some(1)), (3, Some(5))]);
        assert_eq!(drops.0, [(0, DropCause::Queue), (2, DropCause::Aqm), (2, DropCause::Aqm), (2, DropCause::Aqm)]);
        assert_eq!((queue.state(), queue.items().count()), (QueueState::default(), 0));
    }
}
