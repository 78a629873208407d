//! What a driver lends the engine for one call.

use anabranch_trace::Recorder;
use anabranch_units::{Instant, Rng};

/// The time, who listens, and luck: lent for one call.
pub struct Cx<'a> {
    /// Now. Never earlier than in the call before.
    pub now: Instant,
    /// Who listens to events.
    pub recorder: &'a mut dyn Recorder,
    /// Random numbers for keys, nonces and initial sequence numbers.
    pub rng: &'a mut Rng,
}
