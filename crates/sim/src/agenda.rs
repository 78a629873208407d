//! The alarms of clients, those of servers, and the changes that concern both, by time.

use crate::flow::HostId;
use anabranch_units::{Instant, Side};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event at one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// A host has a timer or a wake-up.
    Host(HostId),
    /// The client of a flow connects.
    Start(u32),
    /// A source of datagrams sends.
    Source(u32),
    /// A router's message about a packet arrives.
    TooBig(u32),
}

/// An event that concerns both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// A change of the timeline.
    Timeline(u32),
    /// A flow ends.
    Stop(u32),
    /// Nothing changes, but no host runs ahead beyond this time.
    Mark,
}

/// A number orders equal times by insertion.
type Queue<T> = BinaryHeap<Reverse<(Instant, u64, T)>>;

/// Alarms and turns by time.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    sides: [Queue<Alarm>; 2],
    turns: Queue<Turn>,
    inserted: u64,
}

/// The time of the first of a queue; [`Instant::MAX`] if it is empty.
fn first<T: Ord>(queue: &Queue<T>) -> Instant {
    queue.peek().map_or(Instant::MAX, |Reverse((at, ..))| *at)
}

impl Agenda {
    pub fn set_alarm(&mut self, at: Instant, side: Side, alarm: Alarm) {
        self.inserted += 1;
        self.sides[place(side)].push(Reverse((at, self.inserted, alarm)));
    }

    pub fn set_turn(&mut self, at: Instant, turn: Turn) {
        self.inserted += 1;
        self.turns.push(Reverse((at, self.inserted, turn)));
    }

    /// The time of a side's first alarm.
    #[inline(always)]
    pub fn alarm(&self, side: Side) -> Instant {
        first(&self.sides[place(side)])
    }

    /// The time of the first turn.
    pub fn turn(&self) -> Instant {
        first(&self.turns)
    }

    pub fn take_alarm(&mut self, side: Side) -> Option<(Instant, Alarm)> {
        self.sides[place(side)].pop().map(|Reverse((at, _, alarm))| (at, alarm))
    }

    pub fn take_turn(&mut self) -> Option<Turn> {
        self.turns.pop().map(|Reverse((_, _, turn))| turn)
    }
}

/// A side's place in a pair: the client's comes first.
#[inline(always)]
pub(crate) fn place(side: Side) -> usize {
    usize::from(side == Side::Server)
}
