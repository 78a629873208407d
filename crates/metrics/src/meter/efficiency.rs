//! [`IncrementEfficiency`] over time.

use crate::IncrementEfficiency;
use crate::over_time::RealMean;
use anabranch_trace::{Event, Origin, PathState};
use anabranch_units::{ConnId, Instant};

/// The efficiency of one connection's sender.
#[derive(Clone, Debug)]
pub(super) struct Efficiency {
    connection: ConnId,
    now: IncrementEfficiency,
    mean: RealMean,
}

impl Efficiency {
    pub fn new(connection: ConnId) -> Self {
        Self { connection, now: IncrementEfficiency::default(), mean: RealMean::default() }
    }

    /// An event of a sender.
    pub fn on_event(&mut self, now: Instant, origin: Origin, event: &Event) {
        if origin.connection != self.connection {
            return;
        }
        match event {
            Event::Window(window) => self.now.set(origin.path, Some(window)),
            Event::Path(PathState::Closed | PathState::Dead) => self.now.set(origin.path, None),
            _ => return,
        }
        self.mean.set(now, self.now.value());
    }

    pub fn restart(&mut self, now: Instant) {
        self.mean.restart(now);
    }

    /// The mean over the time until `end` in which it was known.
    pub fn mean(mut self, end: Instant) -> Option<f64> {
        self.mean.advance(end);
        self.mean.mean()
    }
}
