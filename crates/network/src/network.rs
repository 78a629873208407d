//! The network: paths, shared links, and the packets in them.

use crate::agenda::{Agenda, Key};
use crate::bottleneck::{Packet, Queue, WayId};
use crate::bucket::Bucket;
use crate::front::Front;
use crate::medium::Medium;
use crate::tail::Tail;
use crate::way::{Arrival, Outcome, Way};
use crate::{
    Aqm, Bottleneck, BottleneckSpec, DropTail, Markable, MiddleboxSpec, PathSpec, QueueState, Topology, WakeSpec,
    WaySpec,
};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Direction, Duration, Instant};

mod air;
mod before;
mod changes;
mod routes;

use routes::Routes;

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The path.
    pub path: usize,
    /// The direction.
    pub direction: Direction,
    /// The item carried.
    pub item: T,
    /// The packet's checksum is wrong, and the network has recorded it as dropped: a receiver must discard it.
    pub corrupted: bool,
}

/// Paths and shared links with the packets in them; `T` is the item of a packet. It is moved from queue to queue, so
/// box large items.
///
/// Times given for one direction never decrease, and those of both together where the lookahead is zero. Call [`Self::send`] when
/// something happens, and [`Self::poll_deliver`] until it returns `None`, at the latest at [`Self::due`]. What is sent arrives no sooner
/// than [`Self::lookahead`] after it: arrivals in one direction may be taken before what the other host sends meanwhile is known.
/// [`Self::apply`] needs both directions at the same time.
///
/// Every packet of a path leaves events: `Enqueued` or `Dropped` on arrival at the bottleneck, `Departed` when its last
/// bit leaves (with the exact time, recorded late; so is `Dropped` at a queue's head), `Dropped` when an impairment
/// meets it at the far end; `Marked` if its queue marks it where it would drop another one. Cross traffic of a link belongs to no path
/// and leaves no events.
///
/// Paths and links are named by their index in the topology; an index beyond it panics.
#[derive(Debug)]
pub struct Network<T> {
    /// Each path's down, then up; `entries` has the same order.
    ways: Vec<Way<T>>,
    entries: Vec<Entry>,
    /// Each shared link's down, then up; then those of paths whose own bottleneck manages its queue.
    drains: Vec<Drain<T>>,
    links: usize,
    /// Media that several of the drains divide.
    media: Vec<Medium>,
    /// Where a middlebox stands or stood, or a device sleeps or slept.
    front: Option<Box<Front<Entering<T>>>>,
    /// Where a route crosses several links, or a link has a delay or impairments.
    routes: Option<Box<Routes<T>>>,
    /// One agenda per direction: a slot per path, then one per drain; with routes, then one; with a front, then one per path.
    agendas: [Agenda; 2],
    lookahead: Duration,
    /// Packets so far.
    sent: u64,
}

/// The fate of a packet that was larger than its path carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The largest packet that the path carries, in bytes.
    pub mtu: u32,
    /// When the router's message reaches the sender: after the delay of the other direction. `None` if the router is silent.
    pub reported: Option<Instant>,
}

/// A packet that comes to a bottleneck.
#[derive(Debug)]
struct Entering<T> {
    /// Bytes.
    size: u32,
    /// Item of the packet, if it travels on behind the bottleneck.
    item: Option<T>,
    /// Hash of the packet's 5-tuple, if it has no item that knows it.
    flow: u64,
}

/// The entrance of a way.
#[derive(Debug)]
struct Entry {
    /// Bytes added to each packet.
    overhead: i32,
    mtu: Option<u32>,
    reports_mtu: bool,
    entrance: Entrance,
}

/// The bottleneck of a way.
#[derive(Debug)]
enum Entrance {
    /// The path's own, which drops only at the tail.
    Own(Tail),
    /// Index of the drain: a shared one, or the path's own.
    Drain(usize),
}

/// A bottleneck that is shared or drops elsewhere than at the tail. It may lag behind the present time by the least
/// delay of the ways behind it.
#[derive(Debug)]
struct Drain<T> {
    queue: Queue<T>,
    /// Before the queue.
    police: Option<Box<Bucket>>,
    /// The capacity of the queue and of all ways behind it together, if that is what is limited.
    to_far_end: Option<DropTail>,
    least_delay: Duration,
    direction: Direction,
    /// Index of the medium that it shares.
    medium: Option<usize>,
    /// Slot of the drain in the agenda of its direction.
    slot: usize,
}

impl<T: Markable> Drain<T> {
    fn new(queue: Queue<T>, spec: &BottleneckSpec, direction: Direction, slot: usize) -> Self {
        let police = spec.police.map(Bucket::new).map(Box::new);
        let to_far_end = spec.queue.limit_to_far_end();
        Self { queue, police, to_far_end, least_delay: Duration::MAX, direction, medium: None, slot }
    }

    /// No packet inside can arrive before this key; it precedes any arrival at the same time.
    fn bound(&self) -> Key {
        Key::new(self.queue.departs() + self.least_delay, 0)
    }
}

impl<T: Clone + Markable> Network<T> {
    /// An empty network. Each impairment has its own random stream, named `path.<name>.<direction>.<impairment>`; so
    /// has each queue of kind RED: `path.<name>.<direction>.red`, `link.<name>.<direction>.red`.
    ///
    /// # Panics
    /// If a path names a link that the topology does not have, or a route has none.
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let ways = 2 * topology.paths.len();
        let mut network = Self {
            ways: Vec::with_capacity(ways),
            entries: Vec::with_capacity(ways),
            drains: Vec::new(),
            links: topology.links.len(),
            media: Vec::new(),
            front: None,
            routes: None,
            agendas: [Agenda::new(0), Agenda::new(0)],
            lookahead: Duration::ZERO,
            sent: 0,
        };
        let paths = topology.paths.len();
        for link in &topology.links {
            for way in Direction::BOTH {
                network.add_drain(link.bottleneck(way), paths, seed, way, &["link", &link.name, way.name()].join("."));
            }
        }
        for path in &topology.paths {
            for way in Direction::BOTH {
                network.add_way(path.way(way), paths, seed, way, &["path", &path.name, way.name()].join("."));
            }
        }
        network.add_routes(topology, seed);
        let slots = network.cables_slot() + usize::from(network.routes.is_some());
        network.agendas = [Agenda::new(slots), Agenda::new(slots)];
        (0..network.drains.len()).for_each(|drain| network.note_least_delay(drain));
        network.note_routes();
        network.add_fronts(&topology.paths);
        network.note_lookahead();
        network
    }

    /// Adds what stands before the bottlenecks.
    fn add_fronts(&mut self, paths: &[PathSpec]) {
        for (way, spec) in paths.iter().flat_map(|path| [&path.down, &path.up]).enumerate() {
            if !spec.radio.wake.is_none() {
                self.set_wake(way, spec.radio.wake);
            }
            if !spec.middleboxes.is_empty() {
                self.set_boxes(way, &spec.middleboxes);
            }
        }
    }

    /// The parts before the bottlenecks, from now on.
    fn front(&mut self) -> &mut Front<Entering<T>> {
        let ways = self.ways.len();
        if self.front.is_none() {
            self.agendas.iter_mut().for_each(|agenda| agenda.grow(ways / 2));
        }
        self.front.get_or_insert_with(|| Box::new(Front::new(ways)))
    }

    /// Sets the sleep of a way's device.
    fn set_wake(&mut self, way: usize, wake: WakeSpec) {
        self.front().rooms.set(way, wake);
        self.note_lookahead();
    }

    /// Sets the middleboxes of a way. A segment that the old ones held back is gone with them.
    fn set_boxes(&mut self, way: usize, boxes: &[MiddleboxSpec]) {
        self.front().boxes.set(way, boxes);
        self.note_front(way);
        self.note_lookahead();
    }

    /// Adds a drain, whose slot follows the slots of all `paths`.
    fn add_drain(&mut self, spec: &BottleneckSpec, paths: usize, seed: u64, direction: Direction, name: &str) -> usize {
        let drain = self.drains.len();
        self.drains.push(Drain::new(Queue::new(spec, seed, name), spec, direction, paths + drain));
        self.drains[drain].medium = spec.medium.as_ref().map(|medium| self.medium_of(medium, drain));
        drain
    }

    fn add_way(&mut self, spec: &WaySpec, paths: usize, seed: u64, direction: Direction, name: &str) {
        let entrance = match &spec.bottleneck {
            Bottleneck::Own(own) if own.queue.is_drop_tail() && own.medium.is_none() => {
                Entrance::Own(Tail::new(own, WayId::of(self.ways.len())))
            }
            Bottleneck::Own(own) => Entrance::Drain(self.add_drain(own, paths, seed, direction, name)),
            Bottleneck::Route(links) => {
                links.iter().for_each(|link| _ = self.link_drain(*link, direction));
                Entrance::Drain(self.link_drain(links[0], direction))
            }
        };
        self.ways.push(Way::new(spec, seed, name));
        self.entries.push(Entry { overhead: spec.overhead, mtu: spec.mtu, reports_mtu: spec.reports_mtu, entrance });
    }

    /// A packet enters a path. `size`: bytes of the whole IP packet; the path's overhead is added inside.
    pub fn send(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
        size: u32,
        item: T,
    ) {
        self.join_path(now, recorder, path, direction, Entering { size, item: Some(item), flow: 0 });
    }

    /// Drops a packet of `size` bytes that is larger than the path carries, before it enters. `None` if it is not.
    pub fn refuse(
        &self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
        size: u32,
    ) -> Option<Refused> {
        let way = WayId::new(path, direction);
        let &Entry { mtu, reports_mtu, .. } = &self.entries[way.index()];
        let mtu = mtu.filter(|mtu| size > *mtu)?;
        way.record(recorder, now, size, LinkEvent::Dropped(DropCause::Mtu));
        let back = WayId::new(path, direction.reverse()).index();
        let links = self.routes.as_ref().map_or(Duration::ZERO, |routes| routes.delay_at(back, now));
        Some(Refused { mtu, reported: reports_mtu.then(|| now + self.ways[back].delay_at(now) + links) })
    }

    /// Whether the packetisation of bytes matters on a path: a part counts packets, impairs single ones or has an MTU, or the
    /// largest packet takes longer to transmit than `unseen`.
    pub fn counts_packets(&self, path: usize, direction: Direction, unseen: Duration) -> bool {
        let way = WayId::new(path, direction).index();
        let entrance = match &self.entries[way].entrance {
            Entrance::Own(tail) => tail.counts_packets(unseen),
            Entrance::Drain(_) => true,
        };
        let has_boxes = self.front.as_ref().is_some_and(|front| front.boxes.any(path));
        entrance || has_boxes || self.ways[way].impairs() || self.entries[way].mtu.is_some()
    }

    /// Cross traffic over a path's bottleneck: a packet that ends behind it. `flow`: a hash of its 5-tuple.
    pub fn send_over_path(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
        size: u32,
        flow: u64,
    ) {
        self.join_path(now, recorder, path, direction, Entering { size, item: None, flow });
    }

    /// Cross traffic over a shared link: a packet that ends behind it, without events. `flow`: a hash of its 5-tuple.
    pub fn send_over_link(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        link: usize,
        direction: Direction,
        size: u32,
        flow: u64,
    ) {
        self.rouse(now, direction, recorder);
        self.join(now, recorder, self.link_drain(link, direction), (None, 0), Entering { size, item: None, flow });
    }

    fn join_path(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
        entering: Entering<T>,
    ) {
        let way = WayId::new(path, direction);
        self.rouse(now, direction, recorder);
        if self.front.is_some() {
            return self.pass(now, recorder, way, entering);
        }
        self.enter(now, recorder, way, entering);
    }

    /// The time up to which drains of a direction may be brought by a driver that is late: no packet enters before it.
    fn until(&self, now: Instant, direction: Direction) -> Instant {
        self.front.as_ref().map_or(now, |front| front.due(direction).min(now))
    }

    /// A packet enters the bottleneck of a way.
    #[inline(always)]
    fn enter(&mut self, now: Instant, recorder: &mut dyn Recorder, way: WayId, entering: Entering<T>) {
        let Entry { overhead, entrance, .. } = &mut self.entries[way.index()];
        let size = entering.size.saturating_add_signed(*overhead);
        match entrance {
            Entrance::Drain(drain) => {
                let drain = *drain;
                self.join(now, recorder, drain, (Some(way), 0), Entering { size, ..entering });
            }
            Entrance::Own(tail) => {
                self.sent += 1;
                let departs = tail.arrive(now, recorder, size, entering.item.is_some());
                if let (Some(departs), Some(item)) = (departs, entering.item)
                    && self.ways[way.index()].enter(departs, self.sent, size, item)
                {
                    self.note_way(way.index());
                }
            }
        }
    }

    /// A packet comes to a drain, behind so many links of its route.
    fn join(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        drain: usize,
        (way, hop): (Option<WayId>, u16),
        entering: Entering<T>,
    ) {
        self.drain(drain, now, recorder);
        let medium = self.drains[drain].medium;
        if let Some(medium) = medium {
            self.proceed(medium, now, recorder);
        }
        self.sent += 1;
        let Entering { size, item, flow } = entering;
        if self.drains[drain].police.as_mut().is_some_and(|police| !police.take(now, size)) {
            self.drains[drain].queue.count_drop(DropCause::Police);
            if let Some(way) = way {
                way.record(recorder, now, size, LinkEvent::Dropped(DropCause::Police));
            }
            return;
        }
        if !self.has_room(drain, now, size) {
            self.drains[drain].queue.count_drop(DropCause::Queue);
            if let Some(way) = way {
                way.record(recorder, now, size, LinkEvent::Dropped(DropCause::Queue));
            }
            return;
        }
        let is_quiet = self.routes.as_ref().zip(way).is_some_and(|(routes, way)| routes.is_quiet(way, hop));
        let queue = &mut self.drains[drain].queue;
        let before = queue.departs();
        queue.arrive(now, recorder, Packet { item, seq: self.sent, way, size, hop, is_quiet, arrived: now, flow });
        match medium {
            Some(medium) => self.pass_on(medium, now),
            None if queue.departs() != before => self.note(drain),
            None => {}
        }
    }

    /// Whether a packet of `size` bytes that comes to a drain at `now` finds room there and on the ways behind it.
    fn has_room(&self, drain: usize, now: Instant, size: u32) -> bool {
        let &Drain { ref queue, to_far_end: Some(mut limit), .. } = &self.drains[drain] else { return true };
        let (packets, bytes) = queue.inside();
        let cable = self.routes.as_ref().and_then(|routes| routes.cable(drain));
        let packets = packets + cable.map_or(0, Way::len) + self.behind(drain).map(Way::len).sum::<usize>();
        let bytes = match limit {
            // Only here a sum over all packets, for each that comes.
            DropTail::Bytes(_) => bytes + cable.map_or(0, Way::bytes) + self.behind(drain).map(Way::bytes).sum::<u64>(),
            DropTail::Packets(_) => bytes,
        };
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        limit.admit(now, size, QueueState { packets, bytes, busy: packets > 0 }).is_ok()
    }

    /// The earliest [`Self::due`] of both directions, if there is one.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due(Direction::Down).min(self.due(Direction::Up));
        (due < Instant::MAX).then_some(due)
    }

    /// The latest time of the next call of [`Self::poll_deliver`] for a direction, if nothing is sent before; [`Instant::MAX`] for never.
    #[inline(always)]
    pub fn due(&self, direction: Direction) -> Instant {
        self.agendas[direction as usize].due()
    }

    /// The least time from sending to arrival, until the next change; zero if what arrives in one direction affects what the other host sends.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    fn note_lookahead(&mut self) {
        // Arrivals make room for packets that are sent; both directions divide a medium, keep a device awake, and pass a middlebox.
        let is_coupled = self.drains.iter().any(|drain| drain.to_far_end.is_some() || drain.medium.is_some());
        let is_coupled = is_coupled || self.front.is_some();
        let unrouted = self.entries.iter().zip(&self.ways).filter(|(entry, _)| !self.is_routed(entry));
        let links = self.routes.iter().flat_map(|routes| routes.lookaheads());
        let least = unrouted.map(|(_, way)| way.least_delay()).chain(links).min().unwrap_or(Duration::ZERO);
        self.lookahead = if is_coupled { Duration::ZERO } else { least };
    }

    /// Whether the delay of a way counts with those of its links.
    fn is_routed(&self, entry: &Entry) -> bool {
        self.routes.is_some() && matches!(entry.entrance, Entrance::Drain(drain) if drain < 2 * self.links)
    }

    /// Slot of what stands before the first path's bottleneck.
    fn front_slot(&self) -> usize {
        self.cables_slot() + usize::from(self.routes.is_some())
    }

    /// Slot of the packets between links.
    fn cables_slot(&self) -> usize {
        self.ways.len() / 2 + self.drains.len()
    }

    /// The next packet of a direction that arrives at or before `now`, in order of due time; ties in order of sending. `None`: no more
    /// is due. `known`: what was sent before is known; more than [`Self::lookahead`] before `now` it is everything that matters.
    #[inline(always)]
    pub fn poll_deliver(
        &mut self,
        now: Instant,
        direction: Direction,
        known: Instant,
        recorder: &mut dyn Recorder,
    ) -> Option<Delivery<T>> {
        loop {
            let agenda = &self.agendas[direction as usize];
            let (due, slot) = (agenda.due(), agenda.slot());
            if due > now || due == Instant::MAX {
                return None;
            }
            let paths = self.ways.len() / 2;
            if slot >= paths {
                self.rouse(known, direction, recorder);
                let front = self.front_slot();
                match slot {
                    slot if slot >= front => self.act(WayId::new(slot - front, direction), recorder),
                    _ if self.routes.is_some() => {
                        self.advance(self.until(known, direction), direction, recorder);
                        let agenda = &self.agendas[direction as usize];
                        if agenda.slot() == self.cables_slot() && agenda.due() <= now {
                            self.advance_last(direction, recorder);
                        }
                    }
                    slot => self.drain(slot - paths, self.until(known, direction), recorder),
                }
                continue;
            }
            let way = WayId::new(slot, direction).index();
            if let Entrance::Own(tail) = &mut self.entries[way].entrance {
                tail.settle(known, recorder);
            }
            let delivery = self.arrive(way, recorder);
            if delivery.is_some() {
                return delivery;
            }
        }
    }

    /// The item that is to arrive so many `places` after the next one on a path, as far as is known: for a driver that prepares for it. `None`
    /// even where few packets are under way, since no preparation pays there.
    #[inline]
    pub fn coming(&self, path: usize, direction: Direction, places: usize) -> Option<&T> {
        self.ways[WayId::new(path, direction).index()].coming(places)
    }

    /// The packet that is due next on a way, if it arrives.
    #[inline(always)]
    fn arrive(&mut self, way: usize, recorder: &mut dyn Recorder) -> Option<Delivery<T>> {
        let id = WayId::of(way);
        if let Some(item) = self.ways[way].arrive_unharmed() {
            self.note_way(way);
            return Some(Delivery { path: id.path(), direction: id.direction(), item, corrupted: false });
        }
        let Arrival { at, size, outcome } = self.ways[way].arrive()?;
        self.note_way(way);
        let (item, dropped) = match outcome {
            Outcome::HeldBack => return None,
            Outcome::Delivered(item) => (Some(item), None),
            Outcome::Corrupted(item) => (Some(item), Some(DropCause::Corruption)),
            Outcome::Dropped(cause, _) => (None, Some(cause)),
        };
        if let Some(cause) = dropped {
            id.record(recorder, at, size, LinkEvent::Dropped(cause));
        }
        Some(Delivery { path: id.path(), direction: id.direction(), item: item?, corrupted: dropped.is_some() })
    }

    /// The queue at the bottleneck of a path, its own or a shared one.
    pub fn queue_len(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
    ) -> QueueState {
        let way = WayId::new(path, direction).index();
        self.settle_entrance(way, now, recorder);
        match &self.entries[way].entrance {
            Entrance::Own(tail) => tail.state(),
            Entrance::Drain(drain) => self.drains[*drain].queue.state(),
        }
    }

    /// Packets that have left the bottleneck of a path, its own or a shared one, as far as it has been evaluated.
    pub fn departed(&self, path: usize, direction: Direction) -> u64 {
        match &self.entries[WayId::new(path, direction).index()].entrance {
            Entrance::Own(tail) => tail.departed(),
            Entrance::Drain(drain) => self.drains[*drain].queue.counts().packets,
        }
    }

    /// Records every departure up to `now`: for the end of a run.
    pub fn settle(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        Direction::BOTH.into_iter().for_each(|direction| self.rouse(now, direction, recorder));
        (0..self.drains.len()).for_each(|drain| self.drain(drain, now, recorder));
        (0..self.ways.len()).for_each(|way| self.settle_entrance(way, now, recorder));
    }

    /// Brings a way's bottleneck up to `now`.
    fn settle_entrance(&mut self, way: usize, now: Instant, recorder: &mut dyn Recorder) {
        self.advance(now, WayId::of(way).direction(), recorder);
        match &mut self.entries[way].entrance {
            Entrance::Own(tail) => tail.settle(now, recorder),
            Entrance::Drain(drain) => {
                let drain = *drain;
                self.drain(drain, now, recorder);
            }
        }
    }

    /// The packets under way: before a sleeping device, waiting, in transmission, in propagation, held back. Cross traffic does not count.
    pub fn under_way(&self) -> impl Iterator<Item = &T> {
        let asleep =
            self.front.iter().flat_map(|front| front.rooms.packets()).filter_map(|packet| packet.item.as_ref());
        let queued = self.drains.iter().flat_map(|drain| drain.queue.items());
        let between = self.routes.iter().flat_map(|routes| routes.items());
        asleep.chain(queued).chain(between).chain(self.ways.iter().flat_map(Way::items))
    }

    /// The number of packets under way.
    pub fn in_flight(&self) -> usize {
        self.under_way().count()
    }

    /// Brings a drain up to `now`.
    fn drain(&mut self, drain: usize, now: Instant, recorder: &mut dyn Recorder) {
        if self.drains[drain].queue.departs() <= now {
            self.forward(drain, now, recorder);
        }
    }

    /// Forwards the packets that left a drain up to `now`.
    fn forward(&mut self, drain: usize, now: Instant, recorder: &mut dyn Recorder) {
        if let Some(medium) = self.drains[drain].medium {
            return self.proceed(medium, now, recorder);
        }
        while let Some((at, packet)) = self.drains[drain].queue.depart(now, recorder) {
            self.travel(at, packet);
        }
        self.note(drain);
    }

    /// A packet that left a drain travels on.
    #[inline(always)]
    fn travel(&mut self, at: Instant, packet: Packet<T>) {
        if self.routes.is_some() {
            return self.enter_link(at, packet);
        }
        if let (Some(way), Some(item)) = (packet.way, packet.item)
            && self.ways[way.index()].enter(at, packet.seq, packet.size, item)
        {
            self.note_way(way.index());
        }
    }

    /// A drain's next action may have changed.
    fn note(&mut self, drain: usize) {
        let place = drain;
        let drain = &self.drains[drain];
        self.agendas[drain.direction as usize].set(drain.slot, drain.bound());
        if let Some(routes) = &mut self.routes {
            routes.note_drain(drain.direction, place, drain.queue.departs());
        }
    }

    /// A way's next action has changed.
    #[inline(always)]
    fn note_way(&mut self, way: usize) {
        let id = WayId::of(way);
        self.agendas[id.direction() as usize].set(id.path(), self.ways[way].next());
    }

    /// The delays behind a bottleneck may have changed.
    fn note_least_delay(&mut self, drain: usize) {
        let routed = self.routes.as_ref().and_then(|routes| routes.least_delay(drain));
        let behind = || self.behind(drain).map(Way::least_delay).min().unwrap_or(Duration::MAX);
        self.drains[drain].least_delay = routed.unwrap_or_else(behind);
        self.note(drain);
    }

    /// The ways behind a bottleneck, if it is their last.
    fn behind(&self, drain: usize) -> impl Iterator<Item = &Way<T>> {
        let shares = move |(way, entry): (usize, &Entry)| match (&self.routes, &entry.entrance) {
            (Some(routes), Entrance::Drain(of)) if *of < 2 * self.links => routes.ends_at(way, drain),
            (_, Entrance::Drain(of)) => *of == drain,
            (_, Entrance::Own(_)) => false,
        };
        self.entries.iter().enumerate().zip(&self.ways).filter(move |(entry, _)| shares(*entry)).map(|(_, way)| way)
    }

    /// Index of a shared link's bottleneck.
    fn link_drain(&self, link: usize, direction: Direction) -> usize {
        assert!(link < self.links, "there is no link {link}");
        2 * link + direction as usize
    }

    /// Index of the bottleneck that a way does not share, unless it drops only at the tail.
    fn own_drain(&self, way: usize) -> Option<usize> {
        match self.entries[way].entrance {
            Entrance::Drain(drain) if drain >= 2 * self.links => Some(drain),
            Entrance::Drain(_) | Entrance::Own(_) => None,
        }
    }
}
