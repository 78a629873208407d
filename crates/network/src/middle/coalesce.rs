//! A box that merges consecutive segments of a flow, as receive offload does.

use super::flows::{Flow, Flows, MOST};
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

impl Default for CoalesceSpec {
    fn default() -> Self {
        Self { within: Duration::from_millis(1), size: 60_000 }
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
                Value::Whole(&mut self.size, 1, LONGEST),
                "most bytes of payload in a merged segment",
            ),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Coalesce { spec: self, held: Flows::new() })
    }
}

/// Most payload of a merged packet: headers and options fit into 65 535 bytes beside it.
const LONGEST: u32 = 60_000;

#[derive(Debug)]
struct Coalesce {
    spec: CoalesceSpec,
    /// The segment of each flow that waits, and until when.
    held: Flows<(Instant, Carried)>,
}

impl Coalesce {
    fn most(&self) -> usize {
        self.spec.size as usize
    }
}

impl Middlebox for Coalesce {
    fn along(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        let flow = Flow::of(&carried.packet);
        let most = self.most();
        if let Some((_, held)) = self.held.get_mut(&flow) {
            if absorb(&mut held.packet, &carried.packet, most) {
                if held.packet.segment.flags != Flags::ACK {
                    passed.along.extend(self.held.remove(&flow).map(|(_, held)| held));
                }
                return;
            }
            passed.along.extend(self.held.remove(&flow).map(|(_, held)| held));
        }
        // Only what another segment may continue waits: PSH says that none follows soon.
        let waits = carried.packet.segment.flags == Flags::ACK && !carried.packet.segment.payload.is_empty();
        if waits && self.held.len() < MOST {
            self.held.insert(flow, (now + self.spec.within, carried));
        } else {
            passed.along.push(carried);
        }
    }

    fn due(&self) -> Instant {
        self.held.values().map(|(until, _)| *until).min().unwrap_or(Instant::MAX)
    }

    fn wake(&mut self, now: Instant, passed: &mut Passed) {
        let due: Vec<Flow> = self.held.iter().filter(|(_, (until, _))| *until <= now).map(|(flow, _)| *flow).collect();
        passed.along.extend(due.iter().filter_map(|flow| self.held.remove(flow)).map(|(_, held)| held));
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
