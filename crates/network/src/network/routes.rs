//! Routes: a packet goes from link to link.

use super::{Entering, Network};
use crate::agenda::{Agenda, Key};
use crate::bottleneck::{Packet, WayId};
use crate::way::{Arrival, Outcome, Way};
use crate::{BehindChange, Bottleneck, LinkCounts, LinkSpec, Markable, Topology, WaySpec};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Direction, Duration, Instant};

/// Routes over several links, or over links with a delay or impairments of their own.
#[derive(Debug)]
pub(super) struct Routes<T> {
    /// The drains on each way, in the order in which a packet meets them; none of a way that has its own.
    hops: Vec<Box<[usize]>>,
    /// The hop on each way whose queue has the path's events: the narrowest.
    told: Vec<usize>,
    /// The part of each link behind its drain, by the drain's index.
    cables: Vec<Cable<T>>,
    /// When something happens next, per direction: a slot per drain, then one per cable.
    agendas: [Agenda; 2],
    /// When a packet in a cable may arrive at a host, per direction: a slot per cable.
    bounds: [Agenda; 2],
    /// The same of last links alone.
    lasts: [Agenda; 2],
}

/// One direction of a link behind its bottleneck.
#[derive(Debug)]
struct Cable<T> {
    way: Way<Packet<T>>,
    /// The least delay behind it, of all ways that cross it; [`Duration::MAX`] if none does.
    after: Duration,
    /// No way continues to another link.
    is_last: bool,
}

impl<T: Clone> Cable<T> {
    /// No packet inside can arrive at a host before.
    fn bound(&self) -> Instant {
        self.way.next().due() + self.after
    }
}

impl<T: Clone> Routes<T> {
    fn new(topology: &Topology, drains: usize, seed: u64) -> Self {
        let clean = WaySpec::clean(Bottleneck::Route(Vec::new()), Duration::ZERO);
        let ways = || {
            let count = topology.paths.len();
            (0..count).flat_map(|path| Direction::BOTH.map(|direction| (path, direction)))
        };
        let route = |(path, direction): (usize, Direction)| topology.paths[path].way(direction).bottleneck.route();
        let cable = |link: &LinkSpec, way: Direction| Cable {
            way: Way::new(link.behind(way).unwrap_or(&clean), seed, &["link", &link.name, way.name()].join(".")),
            after: Duration::MAX,
            is_last: true,
        };
        let links = topology.links.iter().flat_map(|link| Direction::BOTH.map(|way| cable(link, way)));
        let told = |(path, direction)| match topology.narrowest(path, direction) {
            Some((crate::Place::Link(link), _)) => route((path, direction)).iter().position(|of| *of == link),
            _ => None,
        };
        let cables: Vec<Cable<T>> = links.collect();
        let (slots, links) = (drains + cables.len(), topology.links.len());
        Self {
            hops: ways().map(|way| route(way).iter().map(|link| 2 * link + way.1 as usize).collect()).collect(),
            told: ways().map(|way| told(way).unwrap_or(0)).collect(),
            cables,
            agendas: [Agenda::new(slots), Agenda::new(slots)],
            bounds: [Agenda::new(links), Agenda::new(links)],
            lasts: [Agenda::new(links), Agenda::new(links)],
        }
    }

    /// Whether the queue events of a packet at this hop are not those of its path.
    pub fn is_quiet(&self, way: WayId, hop: u16) -> bool {
        let way = way.index();
        self.hops[way].len() > 1 && self.told[way] != usize::from(hop)
    }

    /// Whether a way ends behind a drain.
    pub fn ends_at(&self, way: usize, drain: usize) -> bool {
        self.hops[way].last() == Some(&drain)
    }

    /// The part of a link behind its drain.
    pub fn cable(&self, drain: usize) -> Option<&Way<Packet<T>>> {
        self.cables.get(drain).map(|cable| &cable.way)
    }

    /// The delays of all links on a way at a time, what varies them aside.
    pub fn delay_at(&self, way: usize, at: Instant) -> Duration {
        self.hops[way].iter().fold(Duration::ZERO, |sum, drain| sum + self.cables[*drain].way.delay_at(at))
    }

    /// Items behind the drains of links.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.cables.iter().flat_map(|cable| cable.way.items()).filter_map(|packet| packet.item.as_ref())
    }

    /// The least delay of packets that leave a drain, on all ways that cross it, and the least time that lookahead has there.
    pub fn least_delay(&self, drain: usize) -> Option<Duration> {
        let cable = self.cables.get(drain)?;
        Some(if cable.after == Duration::MAX { Duration::MAX } else { cable.way.least_delay() + cable.after })
    }

    /// The least times of all links, of which the lookahead is no longer than any.
    pub fn lookaheads(&self) -> impl Iterator<Item = Duration> {
        let between = self.cables.iter().filter(|cable| !cable.is_last).map(|cable| cable.after);
        between.chain((0..self.cables.len()).filter_map(|drain| self.least_delay(drain)))
    }

    /// Delays may have changed: notes those behind each cable. `ways`: the least delay of each way behind its last link.
    pub fn note_delays(&mut self, ways: &[Duration]) {
        self.cables.iter_mut().for_each(|cable| (cable.after, cable.is_last) = (Duration::MAX, true));
        for (hops, behind) in self.hops.iter().zip(ways) {
            let mut after = *behind;
            for (place, drain) in hops.iter().enumerate().rev() {
                let cable = &mut self.cables[*drain];
                cable.after = cable.after.min(after);
                cable.is_last &= place + 1 == hops.len();
                after += cable.way.least_delay();
            }
        }
    }

    /// When something happens next in a direction at a drain; [`Instant::MAX`] for never.
    pub fn note_drain(&mut self, direction: Direction, drain: usize, departs: Instant) {
        self.agendas[direction as usize].set(drain, Key::new(departs, 0));
    }

    /// Notes what a cable does next. Returns the earliest time at which a packet in a cable of the direction may arrive at a host.
    fn note_cable(&mut self, drain: usize) -> Instant {
        let direction = drain % 2;
        let slot = self.first_cable() + drain;
        self.agendas[direction].set(slot, Key::new(self.cables[drain].way.next().due(), 0));
        let (cable, link) = (&self.cables[drain], drain / 2);
        // The number of the link breaks ties.
        let bound = Key::new(cable.bound(), link as u64);
        self.bounds[direction].set(link, bound);
        self.lasts[direction].set(link, if cable.is_last { bound } else { Key::NEVER });
        self.bounds[direction].due()
    }

    fn first_cable(&self) -> usize {
        self.agendas[0].len() - self.cables.len()
    }

    /// The drain or cable, by its slot, at which something happens first by `until`, and when; of both directions if they are coupled.
    fn first(&self, until: Instant, direction: Direction, coupled: bool) -> Option<(Instant, usize)> {
        let agenda = &self.agendas[direction as usize];
        let other = &self.agendas[direction.reverse() as usize];
        let agenda = if coupled && other.due() < agenda.due() { other } else { agenda };
        (agenda.due() <= until && agenda.due() < Instant::MAX).then(|| (agenda.due(), agenda.slot()))
    }

    /// The last link, in a direction, from whose cable a packet arrives first, and no way continues to another link.
    fn first_of_last(&self, direction: Direction) -> Option<usize> {
        let lasts = &self.lasts[direction as usize];
        (lasts.due() < Instant::MAX).then(|| 2 * lasts.slot() + direction as usize)
    }
}

impl<T: Clone + Markable> Network<T> {
    /// Routes, if the topology has any that is more than a bottleneck.
    pub(super) fn add_routes(&mut self, topology: &Topology, seed: u64) {
        let ways = || topology.paths.iter().flat_map(|path| [&path.down, &path.up]);
        if ways().any(|way| way.bottleneck.route().len() > 1) || topology.links.iter().any(|link| link.behind.is_some())
        {
            self.routes = Some(Box::new(Routes::new(topology, self.drains.len(), seed)));
        }
    }

    /// Packets of one direction of a link, and their fate so far, as far as it has been evaluated.
    pub fn link_counts(&self, link: usize, direction: Direction) -> LinkCounts {
        *self.drains[self.link_drain(link, direction)].queue.counts()
    }

    /// Brings what lies within routes up to `until`, in order of time.
    pub(super) fn advance(&mut self, until: Instant, direction: Direction, recorder: &mut dyn Recorder) {
        let coupled = !self.media.is_empty();
        while let Some((at, slot)) = self.routes.as_ref().and_then(|routes| routes.first(until, direction, coupled)) {
            match slot.checked_sub(self.drains.len()) {
                None => self.forward(slot, at, recorder),
                Some(drain) => self.leave_link(drain, recorder),
            }
        }
    }

    /// A packet that is due arrives from a link behind which no way continues to another one: nothing else is affected.
    pub(super) fn advance_last(&mut self, direction: Direction, recorder: &mut dyn Recorder) {
        if let Some(drain) = self.routes.as_ref().and_then(|routes| routes.first_of_last(direction)) {
            self.leave_link(drain, recorder);
        }
    }

    /// A packet that left a drain continues, to the far end of the link or of its path.
    pub(super) fn enter_link(&mut self, at: Instant, packet: Packet<T>) {
        let (Some(routes), Some(way)) = (&mut self.routes, packet.way) else { return };
        let hops = &routes.hops[way.index()];
        let hop = usize::from(packet.hop);
        if packet.item.is_none() && hop + 1 >= hops.len() {
            // Cross traffic ends here.
            return;
        }
        let Some(&drain) = hops.get(hop) else { return self.enter_way(at, way, packet) };
        let (seq, size) = (packet.seq, packet.size);
        if routes.cables[drain].way.enter(at, seq, size, packet) {
            self.note_cable(drain);
        }
    }

    /// A packet comes to what lies behind the last bottleneck of its way.
    fn enter_way(&mut self, at: Instant, way: WayId, packet: Packet<T>) {
        if let Some(item) = packet.item
            && self.ways[way.index()].enter(at, packet.seq, packet.size, item)
        {
            self.note_way(way.index());
        }
    }

    /// The packet that is due next at the far end of a link.
    fn leave_link(&mut self, drain: usize, recorder: &mut dyn Recorder) {
        let Some(routes) = &mut self.routes else { return };
        let arrival = routes.cables[drain].way.arrive();
        self.note_cable(drain);
        let Some(Arrival { at, size, outcome }) = arrival else { return };
        let (packet, dropped) = match outcome {
            Outcome::HeldBack => return,
            Outcome::Delivered(packet) => (packet, None),
            Outcome::Corrupted(packet) => (packet, Some(DropCause::Corruption)),
            Outcome::Dropped(cause, packet) => (packet, Some(cause)),
        };
        let Some(way) = packet.way else { return };
        if let Some(cause) = dropped {
            self.drains[drain].queue.count_drop(cause);
            return way.record(recorder, at, size, LinkEvent::Dropped(cause));
        }
        let hop = packet.hop + 1;
        match self.routes.as_ref().and_then(|routes| routes.hops[way.index()].get(usize::from(hop)).copied()) {
            Some(next) => {
                let Packet { item, flow, .. } = packet;
                self.join(at, recorder, next, (Some(way), hop), Entering { size, item, flow });
            }
            None => self.enter_way(at, way, packet),
        }
    }

    /// Changes what lies behind the bottleneck of a link, for packets that leave it from `now` on.
    pub(super) fn change_behind(&mut self, drain: usize, change: &BehindChange) {
        let Some(routes) = &mut self.routes else { return };
        let way = &mut routes.cables[drain].way;
        match *change {
            BehindChange::Delay(delay) => way.set_delay(delay),
            BehindChange::Jitter(ref jitter) => way.set_jitter(jitter),
            BehindChange::Radio(layer) => way.set_radio(layer),
            BehindChange::Loss(ref loss) => way.set_loss(loss),
            BehindChange::Reorder(reorder) => way.set_reorder(reorder),
        }
        self.note_routes();
    }

    /// Delays behind links may have changed.
    pub(super) fn note_routes(&mut self) {
        let Some(routes) = &mut self.routes else { return };
        let ways: Vec<Duration> = self.ways.iter().map(Way::least_delay).collect();
        routes.note_delays(&ways);
        let links = 2 * self.links;
        (0..links).for_each(|drain| {
            self.note_least_delay(drain);
            self.note_cable(drain);
        });
        self.note_lookahead();
    }

    fn note_cable(&mut self, drain: usize) {
        let slot = self.cables_slot();
        if let Some(routes) = &mut self.routes {
            let bound = routes.note_cable(drain);
            self.agendas[drain % 2].set(slot, Key::new(bound, 0));
        }
    }
}
