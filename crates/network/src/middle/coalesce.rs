//! A box that merges consecutive segments of a flow, as receive offload does.

use super::flows::{Flow, Held};
use super::{BoxKind, Carried, Middlebox, Passed};
use crate::{Parameter, Value};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, Packet};

/// Merging of segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoalesceSpec {
    /// How long a segment waits for the next one.
    pub within: Duration,
    /// Most bytes of a merged packet's payload.
    pub size: u32,
}

impl CoalesceSpec {
    /// Most payload of a merged packet: headers and options fit into 65 535 bytes beside it.
    pub const LONGEST: u32 = 60_000;
}

impl Default for CoalesceSpec {
    fn default() -> Self {
        Self { within: Duration::from_millis(1), size: Self::LONGEST }
    }
}

impl BoxKind for CoalesceSpec {
    const NAME: &'static str = "coalesce";
    const ABOUT: &'static str = "merges consecutive segments that one header can describe";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("within", Value::Time(&mut self.within), "how long a segment waits for the next one"),
            Parameter::new(
                "size",
                Value::Whole(&mut self.size, 1, Self::LONGEST),
                "most bytes of payload in a merged segment",
            ),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Coalesce { spec: self, held: Held::new() })
    }
}

#[derive(Debug)]
struct Coalesce {
    spec: CoalesceSpec,
    held: Held<Carried>,
}

impl Middlebox for Coalesce {
    fn along(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        let flow = Flow::of(&carried.packet);
        let (mut until, mut last) = (now + self.spec.within, carried);
        if let Some((since, mut held)) = self.held.take(&flow) {
            if absorb(&mut held.packet, &last.packet, self.spec.size as usize) {
                (until, last) = (since, held);
            } else {
                passed.along.push(held);
            }
        }
        // Only what another segment may continue waits: PSH says that none follows soon.
        let waits = last.packet.segment.flags == Flags::ACK && !last.packet.segment.payload.is_empty();
        if waits && !self.held.is_full() {
            self.held.hold(flow, until, last);
        } else {
            passed.along.push(last);
        }
    }

    fn due(&self) -> Instant {
        self.held.due()
    }

    fn wake(&mut self, now: Instant, passed: &mut Passed) {
        passed.along.extend(self.held.take_due(now));
    }
}

/// Merges `next`, which follows, into `held`; false, with nothing changed, if one header cannot describe both within `most` bytes.
pub fn absorb(held: &mut Packet, next: &Packet, most: usize) -> bool {
    let payload = &held.segment.payload;
    let len = payload.len();
    if payload.is_empty() || next.segment.payload.is_empty() || len + next.segment.payload.len() > most {
        return false;
    }
    let both = [&payload[..], &next.segment.payload[..]].concat();
    let one = (held.src, held.dst) == (next.src, next.dst) && held.segment.absorb_header(len, &next.segment);
    if one {
        held.segment.payload = both.into();
    }
    one
}
