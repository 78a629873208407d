//! What is going to happen, in order of time.

use anabranch_units::{Direction, Instant};
use anabranch_wire::Packet;
use std::collections::BinaryHeap;

/// What is going to happen.
#[allow(clippy::large_enum_variant, reason = "nearly all are arrivals")]
pub(super) enum Event {
    Arrival(usize, Packet),
    /// A packet that waited for another one goes on.
    Release(u8, Direction),
    Flood(usize, u32),
    Act(usize),
}

struct Entry {
    at: Instant,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    // The heap gives the greatest first: that is to be the earliest.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Events to come.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Entry>,
    order: u64,
}

impl Agenda {
    /// Puts one in, behind those of the same time.
    pub fn put(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.heap.push(Entry { at, order: self.order, event });
    }

    /// When the next one is.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next one, if it is due.
    pub fn pop(&mut self, now: Instant) -> Option<Event> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|entry| entry.event)
    }
}
