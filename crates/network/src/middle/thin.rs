//! A box that thins acknowledgments, as cable and satellite modems do (RFC 3449 §5.2.1): later ones replace those that wait.

use super::flows::{Flow, Flows, MOST};
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
        Box::new(Thin { spec: self, held: Flows::new() })
    }
}

/// The acknowledgment of a flow that waits.
#[derive(Debug)]
struct Held {
    until: Instant,
    /// Acknowledgments that it replaces.
    count: u32,
    carried: Carried,
}

#[derive(Debug)]
struct Thin {
    spec: ThinSpec,
    held: Flows<Held>,
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
        let held = self.held.remove(&flow);
        let segment = &carried.packet.segment;
        let mut may_go = may_go(segment);
        let goes_on = may_go && held.as_ref().is_some_and(|held| replaces(&held.carried.packet.segment, segment));
        let (count, until) = match held {
            Some(held) if goes_on => (held.count + 1, held.until),
            Some(held) => {
                may_go = false;
                passed.along.push(held.carried);
                (1, now)
            }
            None => (1, now + self.spec.within),
        };
        if may_go && count < self.spec.every && self.held.len() < MOST {
            self.held.insert(flow, Held { until, count, carried });
        } else {
            passed.along.push(carried);
        }
    }

    fn due(&self) -> Instant {
        self.held.values().map(|held| held.until).min().unwrap_or(Instant::MAX)
    }

    fn wake(&mut self, now: Instant, passed: &mut Passed) {
        let due: Vec<Flow> = self.held.iter().filter(|(_, held)| held.until <= now).map(|(flow, _)| *flow).collect();
        passed.along.extend(due.iter().filter_map(|flow| self.held.remove(flow)).map(|held| held.carried));
    }
}
