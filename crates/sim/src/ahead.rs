//! The order in which a world's events are handled: one by one, or each side ahead of the other as far as nothing that it does can
//! reach the other (Chandy and Misra 1979: conservative lookahead).
//!
//! Events at one time have an order: arrivals at clients, arrivals at servers, turns, alarms of clients, alarms of servers. Both ways
//! handle each side's events in that order, and end a run behind the same event.

use crate::agenda::place;
use crate::stuck::Stuck;
use crate::world::World;
use anabranch_trace::Recorder;
use anabranch_units::{Duration, Instant, Side};

/// Both sides, in their order at one time.
const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// An event that a side has handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Handled {
    at: Instant,
    kind: Kind,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Arrival,
    Alarm,
}

/// How far a side goes: the first times that it leaves alone.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    arrivals: Instant,
    alarms: Instant,
}

impl Bounds {
    /// Before `end`.
    fn before(end: Instant) -> Self {
        Self { arrivals: end, alarms: end }
    }

    /// The events of `side` before `last`, an event of either side.
    fn up_to(last: Handled, side: Side) -> Self {
        let goes_first = side < last.side;
        let includes = |includes: bool| if includes { last.at.next() } else { last.at };
        match last.kind {
            Kind::Arrival => Self { arrivals: includes(goes_first), alarms: last.at },
            Kind::Alarm => Self { arrivals: last.at.next(), alarms: includes(goes_first) },
        }
    }
}

impl World {
    /// Handles events until `until`, all awaited flows are done, or the next turn: at least one if any is due.
    ///
    /// `is_ahead`: each side's events in turn, as far as the other cannot reach it.
    pub(crate) fn proceed(
        &mut self,
        next: Instant,
        until: Instant,
        is_ahead: bool,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Stuck> {
        let lookahead = if is_ahead { self.network.lookahead() } else { Duration::ZERO };
        let end = (next + lookahead).min(self.agenda.turn()).min(until.next());
        if end > next && is_ahead { self.run_window(next, end, recorder) } else { self.step(next, recorder) }
    }

    /// Handles the first events at `now`: one side's arrivals, a turn, or one side's alarms.
    fn step(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Result<(), Stuck> {
        let arrives = |side: &Side| self.network.due(side.receives()) <= now;
        let rings = |side: &Side| self.agenda.alarm(*side) <= now;
        let (side, bounds) = if let Some(side) = SIDES.into_iter().find(arrives) {
            (side, Bounds { arrivals: now.next(), alarms: now })
        } else if self.agenda.turn() <= now {
            self.now = now;
            self.take_turn(recorder);
            return self.look();
        } else {
            let side = SIDES.into_iter().find(rings).unwrap_or(Side::Client);
            (side, Bounds { arrivals: now, alarms: now.next() })
        };
        self.run_side(side, bounds, now, recorder)?;
        Ok(())
    }

    /// Handles each side's events from `start` to `end`: no packet sent from `start` on arrives before. A side whose awaited
    /// flows are done waits for the other, since the run may end there.
    fn run_window(&mut self, start: Instant, end: Instant, recorder: &mut dyn Recorder) -> Result<(), Stuck> {
        let (mut last, mut newest) = (None, start);
        // A side that awaits nothing has its turn behind the other.
        let awaiting = SIDES.map(|side| self.awaits(side));
        let rounds = SIDES.into_iter().zip(awaiting).filter(|(_, awaits)| *awaits).map(|(side, _)| side).chain(SIDES);
        for side in rounds {
            let bounds = match last {
                Some(last) if self.is_over() => Bounds::up_to(last, side),
                _ => Bounds::before(end),
            };
            last = last.max(self.run_side(side, bounds, start, recorder)?);
            newest = newest.max(self.now);
        }
        self.now = newest;
        Ok(())
    }

    /// Handles a side's events within `bounds`; both sides have got to `known`. Stops behind the event with which the last awaited flow of
    /// the side is done, and returns it.
    fn run_side(
        &mut self,
        side: Side,
        bounds: Bounds,
        known: Instant,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<Handled>, Stuck> {
        let awaits = self.awaits(side);
        loop {
            let (arrival, alarm) = (self.network.due(side.receives()), self.agenda.alarm(side));
            let kind = if arrival <= alarm { Kind::Arrival } else { Kind::Alarm };
            match kind {
                Kind::Arrival if arrival < bounds.arrivals => {
                    self.now = arrival;
                    self.deliver(side.receives(), known, recorder);
                }
                Kind::Alarm if alarm < bounds.alarms => {
                    self.now = alarm;
                    self.ring(side, recorder);
                }
                _ => return Ok(None),
            }
            self.look()?;
            if awaits && !self.awaits(side) {
                return Ok(Some(Handled { at: self.now, kind, side }));
            }
        }
    }

    /// Whether an awaited flow is not done at this side.
    fn awaits(&self, side: Side) -> bool {
        self.unfinished[place(side)] > 0
    }
}
