//! The events to come, in order of time.

use anabranch_engine::FourTuple;
use anabranch_units::{Direction, Instant, SeqNumber};
use anabranch_wire::Packet;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event to come.
#[allow(clippy::large_enum_variant, reason = "nearly all are arrivals")]
pub(super) enum Event {
    Arrival(usize, Packet),
    /// A packet that waited for the next one continues.
    Release(u8, Direction),
    Flood(usize, u32),
    /// A router's message reaches the sender of a packet: its addresses and ports, its sequence number, and the MTU.
    TooBig(usize, FourTuple, SeqNumber, u32),
    Act(usize),
}

/// The queue of events. Only their indices are sorted, because a packet is large.
#[derive(Default)]
pub(super) struct Agenda {
    /// Time, order within the same time, and index of the event.
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    order: u64,
}

impl Agenda {
    /// Adds an event behind those of the same time.
    pub fn put(&mut self, at: Instant, event: Event) {
        let place = self.free.pop().unwrap_or(self.events.len());
        match self.events.get_mut(place) {
            Some(free) => *free = Some(event),
            None => self.events.push(Some(event)),
        }
        self.order += 1;
        self.heap.push(Reverse((at, self.order, place)));
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event, if it is due.
    pub fn pop(&mut self, now: Instant) -> Option<Event> {
        self.next().filter(|at| *at <= now)?;
        let Reverse((_, _, place)) = self.heap.pop()?;
        self.free.push(place);
        self.events[place].take()
    }
}
