//! A box that forgets idle flows, as address translators and firewalls do (RFC 5382 §5: REQ-5).

use super::flows::{Flow, Flows, MOST};
use super::reject::refuse;
use super::{Answer, BoxKind, Carried, Middlebox, Passed};
use crate::{Parameter, Value};
use anabranch_units::{Duration, Instant};
use anabranch_wire::Flags;

/// Forgetting of idle flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForgetSpec {
    /// Time without a segment after which a flow is forgotten.
    pub idle: Duration,
    /// The answer to the sender of a segment of a forgotten flow.
    pub answer: Answer,
}

impl Default for ForgetSpec {
    fn default() -> Self {
        Self { idle: Duration::from_secs(300), answer: Answer::Silence }
    }
}

impl BoxKind for ForgetSpec {
    const NAME: &'static str = "forget";
    const ABOUT: &'static str =
        "forgets a flow that is idle (NAT timeout): later segments are dropped, a SYN makes a new flow";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("idle", Value::Time(&mut self.idle), "time without a segment in either direction"),
            Parameter::new("answer", Value::Answer(&mut self.answer), "the answer to the sender of a later segment"),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Forget { spec: self, seen: Flows::new() })
    }
}

#[derive(Debug)]
struct Forget {
    spec: ForgetSpec,
    /// When each flow's last segment passed.
    seen: Flows<Instant>,
}

impl Forget {
    /// Whether a segment is of a flow that the box knows, or begins one.
    fn knows(&mut self, now: Instant, carried: &Carried) -> bool {
        let (flow, flags, idle) = (Flow::of_both(&carried.packet), carried.packet.segment.flags, self.spec.idle);
        let begins = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        let known = self.seen.get(&flow).is_some_and(|seen| *seen + idle >= now);
        if !known && begins && self.seen.len() >= MOST {
            self.seen.retain(|_, seen| *seen + idle >= now);
        }
        let passes = known || begins && self.seen.len() < MOST;
        if passes && !flags.has(Flags::RST) {
            self.seen.insert(flow, now);
        } else {
            self.seen.remove(&flow);
        }
        passes
    }

    /// Passes a segment on, or drops it; an answer goes to `back`.
    fn pass(&mut self, now: Instant, carried: Carried, on: &mut Vec<Carried>, back: &mut Vec<Carried>) -> Option<u32> {
        if self.knows(now, &carried) {
            on.push(carried);
            return None;
        }
        back.extend(refuse(&carried, self.spec.answer));
        Some(carried.packet.len() as u32)
    }
}

impl Middlebox for Forget {
    fn along(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        let dropped = self.pass(now, carried, &mut passed.along, &mut passed.against);
        passed.dropped.extend(dropped);
    }

    fn against(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        let dropped = self.pass(now, carried, &mut passed.against, &mut passed.along);
        passed.dropped.extend(dropped);
    }
}
