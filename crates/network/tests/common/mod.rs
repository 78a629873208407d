//! Topologies and a recorder for the tests.

#![allow(dead_code, reason = "not every test file asks everything")]

use anabranch_network::{
    Bottleneck, BottleneckSpec, CapacitySpec, Delivery, Markable, Network, PathSpec, QueueSpec, WaySpec,
};
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Duration, Instant, Rate};

/// A time in microseconds.
pub fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// 12 Mbit/s: 1500 bytes take 1 ms.
pub fn bottleneck(queue: QueueSpec) -> BottleneckSpec {
    BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(12_000_000)), queue)
}

/// A way without impairments.
pub fn way(bottleneck: Bottleneck, delay: Duration) -> WaySpec {
    WaySpec::clean(bottleneck, delay)
}

/// A path whose up direction is fast and ideal.
pub fn path(name: &str, down: WaySpec) -> PathSpec {
    let up = BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(1_000_000_000)), QueueSpec::Packets(1_000_000));
    PathSpec { name: name.into(), down, up: way(Bottleneck::Own(up), Duration::from_millis(10)) }
}

/// Records every link event: time, path, direction, size, event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Log(pub Vec<(Instant, u8, Direction, u32, LinkEvent)>);

impl Recorder for Log {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let Event::Link { direction, size, what } = *event {
            assert_eq!(origin.host, None);
            self.0.push((now, origin.path.0, direction, size, what));
        }
    }
}

impl Log {
    /// Times at which last bits left, in microseconds.
    pub fn departures(&self) -> Vec<u64> {
        let departed = self.0.iter().filter(|e| e.4 == LinkEvent::Departed);
        departed.map(|e| e.0.as_nanos() / 1000).collect()
    }
    /// Times of drops for this cause, in microseconds.
    pub fn drops(&self, cause: DropCause) -> Vec<u64> {
        let dropped = self.0.iter().filter(|e| e.4 == LinkEvent::Dropped(cause));
        dropped.map(|e| e.0.as_nanos() / 1000).collect()
    }
    /// Queue lengths recorded on arrival.
    pub fn queues(&self) -> Vec<(u32, u64)> {
        let told = self.0.iter().filter_map(|e| match e.4 {
            LinkEvent::Enqueued { queue_packets, queue_bytes } => Some((queue_packets, queue_bytes)),
            _ => None,
        });
        told.collect()
    }
}

/// The next delivery at or before `now` in either direction.
pub fn next<T: Clone + Markable>(
    network: &mut Network<T>,
    now: Instant,
    recorder: &mut dyn Recorder,
) -> Option<Delivery<T>> {
    let mut directions = [Direction::Down, Direction::Up];
    directions.sort_by_key(|direction| network.due(*direction));
    directions.into_iter().find_map(|direction| network.poll_deliver(now, direction, now, recorder))
}

/// Every delivery up to `until`, with its time, as a driver in virtual time sees it.
pub fn deliver<T: Clone + Markable>(
    network: &mut Network<T>,
    recorder: &mut dyn Recorder,
    until: Instant,
) -> Vec<(Instant, Delivery<T>)> {
    let mut all = vec![];
    while let Some(now) = network.poll_timeout().filter(|at| *at <= until) {
        while let Some(delivery) = next(network, now, recorder) {
            all.push((now, delivery));
        }
        assert!(network.poll_timeout().is_none_or(|next| next > now), "something was due and did not come");
    }
    all
}
