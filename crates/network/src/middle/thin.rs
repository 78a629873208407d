//! A box that thins acknowledgments, as cable and satellite modems do (RFC 3449 §5.2.1): later ones replace those that wait.

use super::flows::{Flow, Held};
use super::{BoxKind, Carried, Middlebox, Passed};
use crate::{Parameter, Value};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, Segment};

/// Thinning of acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThinSpec {
    /// One of so many passes.
    pub every: u32,
    /// The longest time that one waits for those that replace it.
    pub within: Duration,
}

impl Default for ThinSpec {
    fn default() -> Self {
        Self { every: 4, within: Duration::from_millis(10) }
    }
}

impl BoxKind for ThinSpec {
    const NAME: &'static str = "thin-acks";
    const ABOUT: &'static str =
        "of so many acknowledgments without payload the last one passes; or the last one within a time";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new(
                "every",
                Value::Whole(&mut self.every, 1, 10_000),
                "one of so many passes; one that is no newer than the one that waits, and those with SACK blocks or options other than timestamps and DSS, all pass",
            ),
            Parameter::new(
                "within",
                Value::Time(&mut self.within),
                "the longest time that one waits for those that replace it",
            ),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Thin { spec: self, held: Held::new() })
    }
}

#[derive(Debug)]
struct Thin {
    spec: ThinSpec,
    /// An acknowledgment of each flow, and how many it replaces, itself among them.
    held: Held<(u32, Carried)>,
}

/// Whether a later acknowledgment says all that this one says.
fn may_go(segment: &Segment) -> bool {
    let options = &segment.options;
    let maps = options.dss().is_some_and(|dss| dss.mapping.is_some());
    let plain = segment.flags == Flags::ACK && segment.payload.is_empty();
    plain && options.sack().is_empty() && options.mptcp().is_empty() && !maps
}

/// Whether `next` acknowledges more than `held` does: another one with the same number reports a segment out of order.
fn replaces(held: &Segment, next: &Segment) -> bool {
    next.ack.0.wrapping_sub(held.ack.0) as i32 > 0
}

impl Middlebox for Thin {
    fn along(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        let flow = Flow::of(&carried.packet);
        let segment = &carried.packet.segment;
        let mut waits = may_go(segment);
        let (mut count, mut until) = (1, now + self.spec.within);
        if let Some((since, (so_many, held))) = self.held.take(&flow) {
            if waits && replaces(&held.packet.segment, segment) {
                (count, until) = (so_many + 1, since);
            } else {
                waits = false;
                passed.along.push(held);
            }
        }
        if waits && count < self.spec.every && !self.held.is_full() {
            self.held.hold(flow, until, (count, carried));
        } else {
            passed.along.push(carried);
        }
    }

    fn due(&self) -> Instant {
        self.held.due()
    }

    fn wake(&mut self, now: Instant, passed: &mut Passed) {
        passed.along.extend(self.held.take_due(now).map(|(_, held)| held));
    }
}
