//! Time, recorder and random numbers: a driver lends them to the engine for one call, the connection to its parts.

use crate::settings::Settings;
use anabranch_trace::{Event, Origin, Recorder, Violation};
use anabranch_units::{ConnId, Instant, PathId, Rng, Side};

/// The time, the recorder and random numbers, lent for one call.
pub struct Cx<'a> {
    /// Now. Never earlier than in the call before.
    pub now: Instant,
    /// Takes the events.
    pub recorder: &'a mut dyn Recorder,
    /// Random numbers for keys, nonces and initial sequence numbers. On a real network their seed must be unpredictable.
    pub rng: &'a mut Rng,
}

/// The constants of a connection.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Number in traces.
    pub id: ConnId,
    pub side: Side,
    pub settings: Settings,
}

/// The context of one call of a part: the time, the settings, and the connection's place in the trace. Small: several are made
/// for every segment.
pub(crate) struct Scope<'a> {
    pub now: Instant,
    frame: &'a Frame,
    recorder: &'a mut dyn Recorder,
}

impl Cx<'_> {
    #[inline(always)]
    pub(crate) fn scope<'a>(&'a mut self, frame: &'a Frame) -> Scope<'a> {
        Scope { now: self.now, frame, recorder: &mut *self.recorder }
    }

    /// The same, and the random numbers.
    pub(crate) fn scope_and_rng<'a>(&'a mut self, frame: &'a Frame) -> (Scope<'a>, &'a mut Rng) {
        (Scope { now: self.now, frame, recorder: &mut *self.recorder }, &mut *self.rng)
    }
}

impl<'a> Scope<'a> {
    /// The settings of the connection.
    #[inline(always)]
    pub fn settings(&self) -> &'a Settings {
        &self.frame.settings
    }

    /// The end of the connection where the part is.
    pub fn side(&self) -> Side {
        self.frame.side
    }

    /// Records an event of a path, or of the connection as a whole.
    #[inline(always)]
    pub fn record(&mut self, path: Option<PathId>, event: Event) {
        let Frame { id, side, .. } = self.frame;
        let origin = Origin { host: Some(*side), connection: *id, path: path.unwrap_or_default() };
        let (now, to) = (self.now, &mut *self.recorder);
        // Known where this is inlined: no choice is left at run time.
        match event {
            Event::DataSent { seq, data, kind } => to.data_sent(now, origin, seq, data, kind),
            Event::DataArrived { data, new, ofo } => to.data_arrived(now, origin, data, new, ofo),
            Event::Delivered(data) => to.delivered(now, origin, data),
            Event::DataAcked(offset) => to.data_acked(now, origin, offset),
            Event::Window(change) => to.window(now, origin, &change),
            Event::SubflowOfo(bytes) => to.subflow_ofo(now, origin, bytes),
            Event::ControlSent { flags, again } => to.control_sent(now, origin, flags, again),
            _ => to.record(now, origin, &event),
        }
    }

    /// Records that the peer broke a rule on `path`.
    pub fn violation(&mut self, path: PathId, violation: Violation) {
        self.record(Some(path), Event::Violation(violation));
    }
}
