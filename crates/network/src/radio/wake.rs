//! Sleep of a device: after an idle time, the first packet waits until it has a channel again (RRC promotion, DRX).

use crate::agenda::Key;
use anabranch_units::{Direction, Duration, Instant};
use std::collections::VecDeque;

/// A device that sleeps. It sleeps at first; packets of both directions, cross traffic among them, keep it awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeSpec {
    /// Time without a packet after which it falls asleep.
    pub idle: Duration,
    /// Time from the first packet until it is awake; zero is no sleep.
    pub delay: Duration,
}

impl WakeSpec {
    /// No sleep.
    pub const NONE: Self = Self { idle: Duration::ZERO, delay: Duration::ZERO };

    /// Whether it never sleeps.
    pub fn is_none(&self) -> bool {
        self.delay.is_zero()
    }
}

/// A path's device.
#[derive(Clone, Copy, Debug, Default)]
struct Device {
    /// When the last packet passed; `None` before the first.
    active: Option<Instant>,
    /// When it is awake.
    awake: Instant,
}

impl Device {
    /// When a packet passes that comes at `now`.
    fn pass(&mut self, now: Instant, spec: WakeSpec) -> Instant {
        let sleeps = self.active.is_none_or(|active| active + spec.idle < now);
        if sleeps && !spec.is_none() {
            self.awake = now + spec.delay;
        }
        let passes = now.max(self.awake);
        self.active = self.active.max(Some(passes));
        passes
    }
}

/// Packets that wait before their paths for sleeping devices.
#[derive(Debug)]
pub(crate) struct Anterooms<E> {
    devices: Vec<Device>,
    /// Rooms of each path's down, then up.
    ways: Vec<Anteroom<E>>,
}

#[derive(Debug)]
struct Anteroom<E> {
    spec: WakeSpec,
    /// In order, each with the time at which it passes.
    waiting: VecDeque<(Instant, E)>,
}

impl<E> Anterooms<E> {
    /// Empty ones of so many ways, each path's down, then up; no device sleeps.
    pub fn new(ways: usize) -> Self {
        let room = || Anteroom { spec: WakeSpec::NONE, waiting: VecDeque::new() };
        Self { devices: vec![Device::default(); ways / 2], ways: core::iter::repeat_with(room).take(ways).collect() }
    }

    /// Sets the sleep of one direction.
    pub fn set(&mut self, way: usize, spec: WakeSpec) {
        self.ways[way].spec = spec;
    }

    /// A packet comes at `now`. Returns it if it passes at once.
    pub fn enter(&mut self, now: Instant, way: usize, packet: E) -> Option<E> {
        let Anteroom { spec, waiting } = &mut self.ways[way];
        let mut passes = self.devices[way / 2].pass(now, *spec);
        if spec.is_none() {
            passes = now;
        }
        // No packet overtakes those that wait.
        if let Some((last, _)) = waiting.back() {
            passes = passes.max(*last);
        }
        if passes <= now {
            return Some(packet);
        }
        waiting.push_back((passes, packet));
        None
    }

    /// The next packet of `way` that passes.
    pub fn next(&self, way: usize) -> Key {
        // It precedes any arrival at the same time.
        self.ways[way].waiting.front().map_or(Key::NEVER, |(at, _)| Key::new(*at, 0))
    }

    /// When the next packet of a direction's ways passes; [`Instant::MAX`] for never.
    pub fn due(&self, direction: Direction) -> Instant {
        let ways = self.ways.iter().skip(direction as usize).step_by(2);
        let fronts = ways.filter_map(|way| way.waiting.front());
        fronts.map(|(at, _)| *at).min().unwrap_or(Instant::MAX)
    }

    /// How many ways there are.
    pub fn ways(&self) -> usize {
        self.ways.len()
    }

    /// Takes the next packet of `way`, and the time at which it passes.
    pub fn leave(&mut self, way: usize) -> Option<(Instant, E)> {
        self.ways[way].waiting.pop_front()
    }

    /// The packets that wait.
    pub fn packets(&self) -> impl Iterator<Item = &E> {
        self.ways.iter().flat_map(|way| &way.waiting).map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn the_first_packet_waits_and_either_direction_keeps_the_device_awake() {
        let spec = WakeSpec { idle: Duration::from_secs(10), delay: Duration::from_millis(300) };
        let (down, up) = (0, 1);
        let mut rooms = Anterooms::new(2);
        [down, up].into_iter().for_each(|way| rooms.set(way, spec));
        assert_eq!(rooms.enter(ms(0), up, 'a'), None, "it sleeps at first");
        assert_eq!(rooms.enter(ms(100), up, 'b'), None);
        assert_eq!(rooms.enter(ms(299), down, 'c'), None);
        assert_eq!((rooms.leave(up), rooms.leave(up)), (Some((ms(300), 'a')), Some((ms(300), 'b'))));
        assert_eq!((rooms.leave(up), rooms.leave(down)), (None, Some((ms(300), 'c'))));
        // 10 s after the last packet it is still awake, and falls asleep then.
        assert_eq!(rooms.enter(ms(10_300), down, 'd'), Some('d'));
        assert_eq!(rooms.enter(ms(20_300), up, 'e'), Some('e'));
        assert_eq!(rooms.enter(ms(30_301), down, 'f'), None);
        assert_eq!((rooms.due(Direction::Down), rooms.leave(down)), (ms(30_601), Some((ms(30_601), 'f'))));
    }

    #[test]
    fn a_direction_without_sleep_passes_and_no_packet_overtakes() {
        let spec = WakeSpec { idle: Duration::from_secs(1), delay: Duration::from_millis(50) };
        let mut rooms = Anterooms::new(2);
        rooms.set(1, spec);
        assert_eq!(rooms.enter(ms(0), 1, 'a'), None);
        assert_eq!(rooms.enter(ms(10), 0, 'b'), Some('b'));
        rooms.set(1, WakeSpec::NONE);
        assert_eq!(rooms.enter(ms(20), 1, 'c'), None);
        assert_eq!((rooms.leave(1), rooms.leave(1)), (Some((ms(50), 'a')), Some((ms(50), 'c'))));
        assert_eq!(rooms.enter(ms(60), 1, 'd'), Some('d'));
    }
}
