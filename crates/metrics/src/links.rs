//! The packets on each path and their fate, of all senders.

use crate::CapacityCurve;
use anabranch_network::{Change, Topology};
use anabranch_trace::{Drops, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Instant};

/// One direction of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTotals {
    /// Packets that crossed the bottleneck; what impairments dropped behind it is among them.
    pub packets: u64,
    /// Their bytes: IP packets with the path's overhead.
    pub bytes: u64,
    /// Dropped before the bottleneck (`queue`, `aqm`, `police`, `mtu`) or behind it.
    pub drops: Drops,
    /// Packets that the queue marked (ECN) where it would have dropped others.
    pub marked: u64,
    /// Packets waiting, on average over the packets that came to the queue; `None` if none came. Others across a shared
    /// link are among them.
    pub queue_mean_packets: Option<f64>,
    /// Most packets that waited; `None` if none came.
    pub queue_max_packets: Option<u32>,
    /// Bytes ÷ what the bottleneck could have carried; `None` if it could carry nothing. At most 1.
    pub utilisation: Option<f64>,
}

/// Counts the events of links, for every path and both directions. Memory does not grow with time.
#[derive(Clone, Debug)]
pub struct LinkMeter {
    /// Each path's down, then up.
    ways: Vec<WayMeter>,
}

/// One direction of one path.
#[derive(Clone, Debug)]
struct WayMeter {
    capacity: Option<CapacityCurve>,
    totals: LinkTotals,
    /// Packets that were taken into the queue, and the sum of the queue's lengths then.
    enqueued: u64,
    waiting: u128,
}

impl LinkMeter {
    /// Measures the first `paths` paths of `topology`, whose capacities `timeline` changes.
    pub fn new(topology: &Topology, timeline: &[(Instant, Change)], paths: usize) -> Self {
        let ways = (0..paths).flat_map(|path| [(path, Direction::Down), (path, Direction::Up)]);
        let way = |(path, direction)| WayMeter {
            capacity: crate::Oracle::capacity(topology, timeline, path, direction),
            totals: LinkTotals::default(),
            enqueued: 0,
            waiting: 0,
        };
        Self { ways: ways.map(way).collect() }
    }

    /// Each path's totals, down and up, of a run from time zero to `now`.
    pub fn finish(&self, now: Instant) -> Vec<[LinkTotals; 2]> {
        let pair = |pair: &[WayMeter]| [pair[0].finish(now), pair[1].finish(now)];
        self.ways.chunks_exact(2).map(pair).collect()
    }
}

impl WayMeter {
    fn on_event(&mut self, size: u32, what: LinkEvent) {
        let totals = &mut self.totals;
        match what {
            LinkEvent::Enqueued { queue_packets, .. } => {
                self.enqueued += 1;
                self.waiting += u128::from(queue_packets);
                totals.queue_max_packets = totals.queue_max_packets.max(Some(queue_packets));
            }
            LinkEvent::Departed => {
                totals.packets += 1;
                totals.bytes += u64::from(size);
            }
            LinkEvent::Marked => totals.marked += 1,
            LinkEvent::Dropped(cause) => totals.drops.add(cause),
        }
    }

    fn finish(&self, now: Instant) -> LinkTotals {
        let capacity = self.capacity.as_ref().map(|capacity| capacity.bytes(Instant::ZERO, now));
        LinkTotals {
            queue_mean_packets: (self.enqueued > 0).then(|| self.waiting as f64 / self.enqueued as f64),
            utilisation: capacity.filter(|bytes| *bytes > 0.0).map(|bytes| (self.totals.bytes as f64 / bytes).min(1.0)),
            ..self.totals.clone()
        }
    }
}

impl Recorder for LinkMeter {
    fn record(&mut self, _now: Instant, origin: Origin, event: &Event) {
        if let Event::Link { direction, size, what } = *event
            && let Some(way) = self.ways.get_mut(2 * origin.path.index() + direction as usize)
        {
            way.on_event(size, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, PathSpec, Place, QueueSpec, WaySpec};
    use anabranch_trace::DropCause;
    use anabranch_trace::LinkEvent::{Departed, Dropped, Enqueued, Marked};
    use anabranch_units::{ConnId, Duration, PathId, Rate};

    fn topology() -> Topology {
        let way = |mbit: u64| {
            let capacity = CapacitySpec::Fixed(Rate::from_bps(mbit * 1_000_000));
            let own = BottleneckSpec::new(capacity, QueueSpec::Packets(10));
            WaySpec::clean(Bottleneck::Own(own), Duration::from_millis(5))
        };
        let path = |name: &str| PathSpec { name: name.into(), down: way(8), up: way(1) };
        Topology { paths: vec![path("a"), path("b")], links: vec![] }
    }

    fn tell(meter: &mut LinkMeter, path: u8, direction: Direction, size: u32, what: LinkEvent) {
        let origin = Origin { host: None, connection: ConnId(0), path: PathId(path) };
        meter.record(Instant::from_millis(1), origin, &Event::Link { direction, size, what });
    }

    #[test]
    fn each_direction_has_its_own_totals() {
        let changes = [(Instant::from_millis(500), Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(0)))];
        let mut meter = LinkMeter::new(&topology(), &changes, 2);
        for queue_packets in [0, 1, 2] {
            let queue_bytes = u64::from(queue_packets) * 1000;
            tell(&mut meter, 0, Direction::Down, 1000, Enqueued { queue_packets, queue_bytes });
            tell(&mut meter, 0, Direction::Down, 1000, Departed);
        }
        tell(&mut meter, 0, Direction::Down, 1000, Dropped(DropCause::Queue));
        tell(&mut meter, 0, Direction::Down, 1000, Marked);
        let causes = [
            DropCause::Aqm,
            DropCause::Police,
            DropCause::Mtu,
            DropCause::Middlebox,
            DropCause::Loss,
            DropCause::Loss,
            DropCause::Outage,
            DropCause::Corruption,
        ];
        for cause in causes {
            tell(&mut meter, 1, Direction::Up, 40, Dropped(cause));
        }
        // A path that is not measured: cross traffic's own.
        tell(&mut meter, 2, Direction::Down, 1000, Departed);
        let totals = meter.finish(Instant::from_millis(1000));
        let down = LinkTotals {
            packets: 3,
            bytes: 3000,
            drops: Drops { queue: 1, ..Drops::default() },
            marked: 1,
            queue_mean_packets: Some(1.0),
            queue_max_packets: Some(2),
            // 8 Mbit/s for half a second, then nothing.
            utilisation: Some(3000.0 / 500_000.0),
        };
        assert_eq!(totals[0][0], down);
        assert_eq!(totals[0][1], LinkTotals { utilisation: Some(0.0), ..LinkTotals::default() });
        assert_eq!(
            totals[1][1].drops,
            Drops { queue: 0, aqm: 1, police: 1, middlebox: 1, mtu: 1, loss: 2, outage: 1, corruption: 1 }
        );
        assert_eq!(totals[1][1].drops.total(), 8);
        assert_eq!(totals.len(), 2);
        assert_eq!(meter.finish(Instant::ZERO)[0][0].utilisation, None);
    }
}
