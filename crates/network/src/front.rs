//! Parts before the bottlenecks of paths: middleboxes, then the devices that may sleep.

use crate::agenda::Key;
use crate::middle::Boxes;
use crate::radio::Anterooms;
use anabranch_units::{Direction, Instant};

/// Middleboxes and sleeping devices of all paths; `E` is a packet that comes to a bottleneck.
#[derive(Debug)]
pub(crate) struct Front<E> {
    pub boxes: Boxes,
    pub rooms: Anterooms<E>,
}

impl<E> Front<E> {
    /// Nothing on so many ways, each path's down, then up.
    pub fn new(ways: usize) -> Self {
        Self { boxes: Boxes::new(ways), rooms: Anterooms::new(ways) }
    }

    /// The next thing that a way does of its own accord. It precedes any arrival at the same time.
    pub fn next(&self, way: usize) -> Key {
        let boxes = self.boxes.due(way);
        let boxes = if boxes == Instant::MAX { Key::NEVER } else { Key::new(boxes, 0) };
        boxes.min(self.rooms.next(way))
    }

    /// The way that acts first of its own accord, at or before `now`.
    pub fn first(&self, now: Instant) -> Option<usize> {
        let nexts = (0..self.rooms.ways()).map(|way| (self.next(way), way));
        nexts.min().filter(|(next, _)| next.due() <= now && *next != Key::NEVER).map(|(_, way)| way)
    }

    /// When one of a direction's ways acts next of its own accord; [`Instant::MAX`] for never.
    pub fn due(&self, direction: Direction) -> Instant {
        self.boxes.next(direction).min(self.rooms.due(direction))
    }
}
