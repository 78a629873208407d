//! When FIFO and MTCS bind data to a path: while its window has room, ahead into a queue, or as ns-2's MPTCP agent does.

use crate::pick::{Ahead, admits, free, queued, takes_ahead, takes_up_to};
use anabranch_plugin::registry::{Handle, Parameters, flag, whole};
use anabranch_plugin::schedule::{PathView, Round, View};
use anabranch_units::PathId;

/// How far ahead data is bound.
pub(crate) const QUEUE: Handle<u64> = whole("queue", 0, 0..=100_000).unit("packets").about(
    "most packets that may wait for a path, beyond the room in its window; 0 = nothing is bound ahead, or any number with ns2_binding",
);

/// The rule of the public MPTCP agent for ns-2 (`MptcpAgent::send_control`).
pub(crate) const NS2: Handle<bool> = flag("ns2_binding", false)
    .about("each round binds as many packets to a path as its window exceeds those in flight, as if none waited there: ns-2's MPTCP agent");

/// A rule of binding, and what it remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Binding {
    /// Most packets that may wait for a path beyond its free window.
    queue: u64,
    ns2: bool,
    ahead: Ahead,
    /// Packets that each path still takes in this round, with `ns2`.
    rooms: [u64; PathId::LIMIT],
}

impl Binding {
    /// The rule by the parameters [`QUEUE`] and [`NS2`].
    pub fn of(parameters: &Parameters<'_>) -> Self {
        Self { queue: QUEUE.of(parameters), ns2: NS2.of(parameters), ..Self::default() }
    }

    /// Data may wait for a path whose window is full.
    pub fn is_ahead(&self) -> bool {
        self.ns2 || self.queue > 0
    }

    /// A round begins in which data may be bound ahead.
    pub fn begin(&mut self, round: &mut Round<'_>) {
        self.ahead.recall(round, takes_ahead);
        if self.ns2 {
            round.paths().iter().for_each(|p| self.rooms[p.id.index()] = free(p));
        }
    }

    /// Whether `path` takes the next segment.
    pub fn is_open(&self, view: &View, path: &PathView) -> bool {
        if !self.is_ahead() {
            return path.eligible();
        }
        let room = !self.ns2 || self.rooms[path.id.index()] > 0;
        let waits = if self.queue > 0 { takes_up_to(path, self.queue) } else { takes_ahead(path) };
        room && waits && admits(view, path)
    }

    /// Packets that wait for `path` beyond the room in its window, as far as the rule looks at them.
    pub fn waiting(&self, path: &PathView) -> u64 {
        if self.ns2 { 0 } else { queued(path).saturating_sub(free(path)) }
    }

    /// Binds the next segment to `on`; false if it was refused.
    pub fn bind(&mut self, round: &mut Round<'_>, on: PathId) -> bool {
        if !self.is_ahead() {
            return round.send_next(on);
        }
        let bound = self.ahead.enqueue(round, on).is_some();
        let room = &mut self.rooms[on.index()];
        *room = room.saturating_sub(u64::from(bound));
        bound
    }
}

#[cfg(test)]
impl Binding {
    /// Binds ahead into queues of so many packets.
    pub fn queues(queue: u64) -> Self {
        Self { queue, ..Self::default() }
    }

    /// Binds as ns-2's agent does.
    pub fn ns2() -> Self {
        Self { ns2: true, ..Self::default() }
    }
}
