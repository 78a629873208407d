//! The network: paths, shared links, and what is under way in them.

use crate::agenda::Agenda;
use crate::bottleneck::{Packet, Queue, WayId};
use crate::way::{Arrival, Way};
use crate::{Bottleneck, BottleneckSpec, Change, QueueState, Topology};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Direction, Duration, Instant, Rate};

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// Over which path.
    pub path: usize,
    /// Which way.
    pub direction: Direction,
    /// What it carried.
    pub item: T,
    /// Its checksum is wrong, and the network has recorded it as dropped: no receiver may take it for good.
    pub corrupted: bool,
}

/// Paths and shared links with what is under way in them; `T` is what a packet carries.
///
/// Times given to one network never decrease. Call [`Self::send`] and [`Self::apply`] when something happens, and
/// [`Self::poll_deliver`] until it gives nothing more, at the latest at [`Self::poll_timeout`].
///
/// Every packet of a path leaves events: `Enqueued` or `Dropped` when it comes to the bottleneck, `Departed` when its last
/// bit leaves (with the exact time, told late), `Dropped` when an impairment meets it at the far end. Cross traffic of a
/// link belongs to no path and leaves none.
///
/// Paths and links are named by their index in the topology; an index beyond it panics.
#[derive(Debug)]
pub struct Network<T> {
    /// Each path's down, then up; so also `entries`.
    ways: Vec<Way<T>>,
    entries: Vec<Entry>,
    /// Each link's down, then up; then the paths' own.
    drains: Vec<Drain<T>>,
    /// One slot for each way, then one for each drain.
    agenda: Agenda,
    /// Packets so far.
    sent: u64,
}

/// How a way begins.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Bytes added to each packet.
    overhead: i32,
    /// Index of the bottleneck.
    drain: usize,
    /// That is the path's own.
    own: bool,
}

/// A bottleneck, with the least delay of the ways behind it: so far may it lag behind the clock.
#[derive(Debug)]
struct Drain<T> {
    queue: Queue<T>,
    least_delay: Duration,
}

impl<T> Drain<T> {
    fn new(spec: &BottleneckSpec) -> Self {
        Self { queue: Queue::new(spec), least_delay: Duration::MAX }
    }
}

impl<T: Clone> Network<T> {
    /// An empty network. Each impairment has a random stream of its own, named `path.<name>.<direction>.<impairment>`.
    ///
    /// # Panics
    /// If a path names a shared link that the topology does not have.
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let mut drains: Vec<_> = topology.links.iter().flat_map(|l| [Drain::new(&l.down), Drain::new(&l.up)]).collect();
        let links = drains.len();
        let (mut ways, mut entries) = (vec![], vec![]);
        for path in &topology.paths {
            for (spec, direction) in [(&path.down, Direction::Down), (&path.up, Direction::Up)] {
                let (drain, own) = match &spec.bottleneck {
                    Bottleneck::Own(own) => {
                        drains.push(Drain::new(own));
                        (drains.len() - 1, true)
                    }
                    Bottleneck::Shared(link) => (link_drain(*link, direction), false),
                };
                assert!(own || drain < links, "path {} names a link that does not exist", path.name);
                let way = if direction == Direction::Down { "down" } else { "up" };
                ways.push(Way::new(spec, seed, &format!("path.{}.{way}", path.name)));
                entries.push(Entry { overhead: spec.overhead, drain, own });
            }
        }
        let agenda = Agenda::new(ways.len() + drains.len());
        let mut network = Self { ways, entries, drains, agenda, sent: 0 };
        (0..network.drains.len()).for_each(|drain| network.note_least_delay(drain));
        network
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
        self.join_path(now, recorder, path, direction, size, Some(item));
    }

    /// Cross traffic over a path's bottleneck: a packet that vanishes behind it.
    pub fn send_over_path(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
        size: u32,
    ) {
        self.join_path(now, recorder, path, direction, size, None);
    }

    /// Cross traffic over a shared link: a packet that vanishes behind it, and leaves no events.
    pub fn send_over_link(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        link: usize,
        direction: Direction,
        size: u32,
    ) {
        self.join(now, recorder, link_drain(link, direction), None, size, None);
    }

    fn join_path(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
        size: u32,
        item: Option<T>,
    ) {
        let way = WayId { path: path as u32, direction };
        let Entry { overhead, drain, .. } = self.entries[way.index()];
        self.join(now, recorder, drain, Some(way), size.saturating_add_signed(overhead), item);
    }

    fn join(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        drain: usize,
        way: Option<WayId>,
        size: u32,
        item: Option<T>,
    ) {
        self.drain(drain, now, recorder);
        self.sent += 1;
        let queue = &mut self.drains[drain].queue;
        let idle = queue.departs() == Instant::MAX;
        queue.arrive(now, recorder, Packet { item, seq: self.sent, way, size, arrived: now });
        if idle {
            self.note_departure(drain);
        }
    }

    /// When [`Self::poll_deliver`] must be called next, if nothing else happens first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ((due, _), _) = self.agenda.first();
        (due < Instant::MAX).then_some(due)
    }

    /// The next packet that arrives at or before `now`: in order of due time, ties in order of sending. `None`: nothing
    /// more is due.
    pub fn poll_deliver(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Option<Delivery<T>> {
        loop {
            let ((due, _), slot) = self.agenda.first();
            if due > now || due == Instant::MAX {
                return None;
            }
            let delivery = match slot.checked_sub(self.ways.len()) {
                Some(drain) => {
                    self.drain(drain, now, recorder);
                    None
                }
                None => self.arrive(slot, recorder),
            };
            if delivery.is_some() {
                return delivery;
            }
        }
    }

    /// The packet that is due next on `way`, if it makes it.
    fn arrive(&mut self, way: usize, recorder: &mut dyn Recorder) -> Option<Delivery<T>> {
        let arrived = self.ways[way].arrive();
        self.agenda.set(way, self.ways[way].next());
        let (at, size, arrival) = arrived?;
        let id = WayId::of(way);
        match arrival {
            Arrival::Delivered { item, corrupted } => {
                if corrupted {
                    id.record(recorder, at, size, LinkEvent::Dropped(DropCause::Corruption));
                }
                Some(Delivery { path: id.path as usize, direction: id.direction, item, corrupted })
            }
            Arrival::Dropped(cause) => {
                id.record(recorder, at, size, LinkEvent::Dropped(cause));
                None
            }
            Arrival::HeldBack => None,
        }
    }

    /// A change takes effect. One that does not apply is ignored: the own rate of a path with a shared bottleneck, the
    /// rate of a trace.
    pub fn apply(&mut self, now: Instant, recorder: &mut dyn Recorder, change: &Change) {
        match *change {
            Change::PathRate(path, direction, rate) => {
                let Entry { drain, own, .. } = self.entries[WayId { path: path as u32, direction }.index()];
                if own {
                    self.set_rate(drain, now, recorder, rate);
                }
            }
            Change::LinkRate(link, direction, rate) => {
                self.set_rate(link_drain(link, direction), now, recorder, rate);
            }
            Change::Delay(path, direction, delay) => {
                let way = WayId { path: path as u32, direction }.index();
                let drain = self.entries[way].drain;
                self.drain(drain, now, recorder);
                self.ways[way].set_delay(delay);
                self.note_least_delay(drain);
            }
            Change::Loss(path, direction, ref loss) => {
                self.ways[WayId { path: path as u32, direction }.index()].set_loss(loss);
            }
        }
    }

    fn set_rate(&mut self, drain: usize, now: Instant, recorder: &mut dyn Recorder, rate: Rate) {
        self.drain(drain, now, recorder);
        self.drains[drain].queue.set_rate(now, rate);
        self.note_departure(drain);
    }

    /// What waits at the bottleneck of a path, its own or a shared one.
    pub fn queue_len(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        path: usize,
        direction: Direction,
    ) -> QueueState {
        let drain = self.entries[WayId { path: path as u32, direction }.index()].drain;
        self.drain(drain, now, recorder);
        self.drains[drain].queue.state()
    }

    /// Tells every departure up to `now`: for the end of a run.
    pub fn settle(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        (0..self.drains.len()).for_each(|drain| self.drain(drain, now, recorder));
    }

    /// Brings a bottleneck up to `now`: what left it goes on its way.
    fn drain(&mut self, drain: usize, now: Instant, recorder: &mut dyn Recorder) {
        let queue = &mut self.drains[drain].queue;
        if queue.departs() > now {
            return;
        }
        while let Some((at, packet)) = queue.depart(now, recorder) {
            if let (Some(way), Some(item)) = (packet.way, packet.item) {
                let way = way.index();
                if self.ways[way].enter(at, packet.seq, packet.size, item) {
                    self.agenda.set(way, self.ways[way].next());
                }
            }
        }
        self.note_departure(drain);
    }

    /// The next departure of a bottleneck is another one. It matters to nobody before the least delay has passed, and
    /// comes before any arrival of that moment.
    fn note_departure(&mut self, drain: usize) {
        let Drain { queue, least_delay } = &self.drains[drain];
        self.agenda.set(self.ways.len() + drain, (queue.departs() + *least_delay, 0));
    }

    /// The delays behind a bottleneck are other ones.
    fn note_least_delay(&mut self, drain: usize) {
        let behind = self.entries.iter().zip(&self.ways).filter(|(entry, _)| entry.drain == drain);
        self.drains[drain].least_delay = behind.map(|(_, way)| way.delay()).min().unwrap_or(Duration::MAX);
        self.note_departure(drain);
    }
}

/// Index of a shared link's bottleneck.
fn link_drain(link: usize, direction: Direction) -> usize {
    2 * link + direction as usize
}
