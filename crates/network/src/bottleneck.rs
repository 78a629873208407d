//! A queue and its capacity, for one direction.

use crate::counts::LinkCounts;
use crate::{
    BottleneckSpec, Capacity, Discipline, DropTail, Markable, Next, Qdisc, QueueState, Verdict, Verdicts, Waiting,
};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Direction, Duration, Instant, PathId, Rate};
use anabranch_wire::Ecn;
use slab::Slab;

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
    /// Number in order of insertion into the network.
    pub(crate) seq: u64,
    /// The way on which it continues; `None` for cross traffic of a link, which has no events.
    pub(crate) way: Option<WayId>,
    /// Bytes with the path's overhead.
    pub(crate) size: u32,
    /// Links of its route behind it.
    pub(crate) hop: u16,
    /// The path's events of queues are those of another link.
    pub(crate) is_quiet: bool,
    /// Time of arrival.
    pub(crate) arrived: Instant,
    /// A hash of its 5-tuple, if it has no item that knows it.
    pub(crate) flow: u64,
}

impl<T> Packet<T> {
    fn record(&self, recorder: &mut dyn Recorder, at: Instant, what: LinkEvent) {
        if let Some(way) = self.way
            && !(self.is_quiet && what.is_of_queue())
        {
            way.record(recorder, at, self.size, what);
        }
    }
}

/// The state of a queue towards the medium over which it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Air {
    /// No other queue uses the medium.
    Own,
    /// No packet waits for a shared one.
    Quiet,
    /// The next packet waits for its turn, at the earliest at `departs`.
    Waits,
    /// A packet is on a shared one.
    Sends,
}

/// A queue and its capacity. It is evaluated lazily: [`Self::depart`] brings it up to date.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    packets: Slab<Packet<T>>,
    /// The packets and bytes of it that wait.
    state: QueueState,
    /// The packet in transmission, while `state.busy`.
    leaving: u32,
    /// When that one leaves, or the discipline hands out the next one.
    departs: Instant,
    counts: LinkCounts,
    qdisc: Box<dyn Qdisc>,
    /// Whether the queueing discipline looks at packets' flows.
    by_flow: bool,
    capacity: Box<dyn Capacity>,
    air: Air,
    /// Empty between calls.
    verdicts: Verdicts,
}

impl<T: Markable> Queue<T> {
    /// An empty queue, named `name` (`path.wlan.down`, `link.bottleneck.up`).
    pub(crate) fn new(spec: &BottleneckSpec, seed: u64, name: &str) -> Self {
        Self {
            packets: Slab::new(),
            state: QueueState::default(),
            leaving: 0,
            departs: Instant::MAX,
            counts: LinkCounts::default(),
            qdisc: spec.queue.build(spec.capacity.initial_rate(), seed, name),
            by_flow: spec.queue.discipline().is_some_and(Discipline::is_by_flow),
            capacity: spec.capacity.build(),
            air: if spec.medium.is_some() { Air::Quiet } else { Air::Own },
            verdicts: Verdicts::new(),
        }
    }

    /// Sets the capacity of a drop-tail queue from now on.
    pub(crate) fn set_limit(&mut self, limit: DropTail) {
        self.qdisc.set_limit(limit);
    }

    /// When the packet in transmission leaves, or the discipline hands out the next one; [`Instant::MAX`] if there is none or
    /// it never does. A packet that waits for its turn on a medium does not leave before.
    pub(crate) fn departs(&self) -> Instant {
        self.departs
    }

    /// The waiting packets.
    pub(crate) fn state(&self) -> QueueState {
        self.state
    }

    /// Packets and bytes inside, the packet in transmission among them.
    pub(crate) fn inside(&self) -> (usize, u64) {
        let leaving = if self.state.busy { self.packets[self.leaving as usize].size } else { 0 };
        (self.packets.len(), self.state.bytes + u64::from(leaving))
    }

    /// Packets that have left, and their fate so far.
    pub(crate) fn counts(&self) -> &LinkCounts {
        &self.counts
    }

    /// A packet was dropped, before the queue or in it.
    #[cold]
    pub(crate) fn count_drop(&mut self, cause: DropCause) {
        self.counts.drops.add(cause);
    }

    /// A packet arrives. Every packet that left before `now` has been fetched.
    pub(crate) fn arrive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: Packet<T>) {
        let before = self.state;
        let (size, arrived) = (packet.size, packet.arrived);
        let flow = if self.by_flow { packet.item.as_ref().map_or(packet.flow, T::flow) } else { 0 };
        let ecn = packet.item.as_ref().map_or(Ecn::NotEct, T::ecn);
        let handle = self.packets.insert(packet) as u32;
        self.state.packets = before.packets.saturating_add(1);
        self.state.bytes += u64::from(size);
        self.qdisc.enqueue(now, Waiting { handle, size, arrived, flow, ecn }, before.busy, &mut self.verdicts);
        let own = self.verdicts.first().filter(|(of, _)| *of == handle).map(|(_, verdict)| *verdict);
        if let Some(verdict) = own {
            self.verdicts.remove(0);
            self.carry_out(now, recorder, handle, verdict);
        }
        if matches!(own, Some(Verdict::Dropped(_))) {
            return self.carry_out_all(now, recorder);
        }
        let waits = if before.busy { self.state } else { QueueState::default() };
        self.counts.queue_max = self.counts.queue_max.max(waits.packets);
        let joined = LinkEvent::Enqueued { queue_packets: waits.packets, queue_bytes: waits.bytes };
        self.packets[handle as usize].record(recorder, now, joined);
        self.carry_out_all(now, recorder);
        if !before.busy {
            self.start(now, recorder, true);
        }
    }

    /// The next packet that leaves at or before `now`, and its time.
    #[inline(always)]
    pub(crate) fn depart(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Option<(Instant, Packet<T>)> {
        loop {
            if self.departs > now || self.departs == Instant::MAX {
                return None;
            }
            let at = self.departs;
            if !self.state.busy {
                // The discipline kept its packets back until now.
                self.start(at, recorder, true);
                continue;
            }
            let packet = self.packets.remove(self.leaving as usize);
            packet.record(recorder, at, LinkEvent::Departed);
            self.counts.packets += 1;
            self.counts.bytes += u64::from(packet.size);
            self.start(at, recorder, false);
            return Some((at, packet));
        }
    }

    /// The next packet goes into transmission.
    #[inline(always)]
    fn start(&mut self, now: Instant, recorder: &mut dyn Recorder, idle: bool) {
        let next = self.qdisc.dequeue(now, &mut self.verdicts);
        self.carry_out_all(now, recorder);
        self.state.busy = false;
        self.departs = Instant::MAX;
        if self.air == Air::Sends {
            self.air = Air::Quiet;
        }
        match next {
            Next::Packet(handle) => {
                let size = self.packets[handle as usize].size;
                self.leave_queue(size);
                (self.leaving, self.state.busy) = (handle, true);
                if self.air == Air::Own {
                    self.departs = self.capacity.transmit(now, size, idle);
                } else {
                    self.air = Air::Waits;
                }
            }
            Next::Later(at) => self.departs = at,
            Next::Nothing => {}
        }
    }

    /// Whether the next packet waits for its turn on a shared medium.
    pub(crate) fn waits(&self) -> bool {
        self.air == Air::Waits
    }

    /// Whether a packet is on a shared medium.
    pub(crate) fn sends(&self) -> bool {
        self.air == Air::Sends
    }

    /// The packet that waits for its turn has it at `now`, and its first bit leaves `overhead` later.
    pub(crate) fn send(&mut self, now: Instant, overhead: Duration) {
        let size = self.packets[self.leaving as usize].size;
        self.departs = self.capacity.transmit(now + overhead, size, true);
        self.air = Air::Sends;
    }

    /// The packet that waits for its turn has it at `free` at the earliest.
    pub(crate) fn wait_until(&mut self, free: Instant) {
        self.departs = free;
    }

    fn leave_queue(&mut self, size: u32) {
        self.state.packets -= 1;
        self.state.bytes -= u64::from(size);
    }

    #[inline(always)]
    fn carry_out_all(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        if !self.verdicts.is_empty() {
            let verdicts = core::mem::take(&mut self.verdicts);
            verdicts.iter().for_each(|(handle, verdict)| self.carry_out(now, recorder, *handle, *verdict));
            self.verdicts = verdicts;
            self.verdicts.clear();
        }
    }

    #[cold]
    fn carry_out(&mut self, now: Instant, recorder: &mut dyn Recorder, handle: u32, verdict: Verdict) {
        match verdict {
            Verdict::Dropped(cause) => {
                let packet = self.packets.remove(handle as usize);
                self.leave_queue(packet.size);
                self.count_drop(cause);
                packet.record(recorder, now, LinkEvent::Dropped(cause));
            }
            Verdict::Marked => {
                let packet = &mut self.packets[handle as usize];
                if let Some(item) = &mut packet.item {
                    item.mark();
                }
                packet.record(recorder, now, LinkEvent::Marked);
                self.counts.marked += 1;
            }
        }
    }

    /// The items inside.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.packets.iter().filter_map(|(_, packet)| packet.item.as_ref())
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
        // A frame on a shared medium keeps the rate with which it began.
        if self.state.busy && self.air == Air::Own {
            self.departs = departs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Aqm, Fifo, FixedRate};
    use anabranch_trace::{Event, Origin};

    /// Drops every packet that waited longer than this, except the last one: CoDel's drops at the head without its
    /// control law.
    #[derive(Debug)]
    struct Impatient(Duration);

    impl Aqm for Impatient {
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
        fn ecn(&self) -> Ecn {
            if self.0 { Ecn::Ect0 } else { Ecn::NotEct }
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
            let packet =
                Packet { item, seq, way, size: 1500, arrived: Instant::ZERO, flow: 0, hop: 0, is_quiet: false };
            queue.arrive(Instant::ZERO, &mut events, packet);
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
            packets: Slab::new(),
            state: QueueState::default(),
            leaving: 0,
            departs: Instant::MAX,
            counts: LinkCounts::default(),
            qdisc: Box::new(Fifo::new(Impatient(Duration::from_millis(1)))),
            by_flow: false,
            capacity: Box::new(FixedRate::new(Rate::from_bps(12_000_000))),
            air: Air::Own,
            verdicts: Verdicts::new(),
        };
        let mut drops = Drops::default();
        for item in 0..7u32 {
            let way = Some(WayId::new(0, Direction::Up));
            let packet = Packet {
                item: Some(item),
                seq: item.into(),
                way,
                size: 1500,
                arrived: Instant::ZERO,
                flow: 0,
                hop: 0,
                is_quiet: false,
            };
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
