//! A box that cuts segments, as offload engines do: each piece repeats the options.

use super::{BoxKind, Carried, Middlebox, Passed};
use crate::{Parameter, Value};
use anabranch_units::Instant;
use anabranch_wire::Packet;

/// Cutting of segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitSpec {
    /// Most payload of a piece, in bytes.
    pub size: u32,
}

impl Default for SplitSpec {
    fn default() -> Self {
        Self { size: 536 }
    }
}

impl BoxKind for SplitSpec {
    const NAME: &'static str = "split";
    const ABOUT: &'static str = "cuts segments into pieces, each with all options";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Parameter::new("size", Value::Whole(&mut self.size, 1, 65_000), "most bytes of payload in a piece")]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Split(self))
    }
}

#[derive(Debug)]
struct Split(SplitSpec);

impl Middlebox for Split {
    fn along(&mut self, _now: Instant, carried: Carried, passed: &mut Passed) {
        let size = u16::try_from(self.0.size).unwrap_or(u16::MAX);
        let pieces = cut(&carried.packet, size);
        passed.along.extend(pieces.into_iter().map(|packet| Carried { packet, ..carried.clone() }));
    }
}

/// The pieces of a packet, each with at most `size` bytes of payload.
pub fn cut(packet: &Packet, size: u16) -> Vec<Packet> {
    // RFC 8684 §3.1, §3.3.3: offload engines repeat every option; a SYN has no payload to cut.
    packet.cut(size).collect()
}
