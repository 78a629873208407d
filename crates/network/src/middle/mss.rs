//! A box that lowers the MSS option, as routers before tunnels do.

use super::{BoxKind, Carried, Middlebox, OptionKind, Passed, remove};
use crate::{Parameter, Value};
use anabranch_units::Instant;
use anabranch_wire::Segment;

/// Clamping of the maximum segment size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MssSpec {
    /// Most bytes that a SYN may announce.
    pub most: u32,
}

impl Default for MssSpec {
    fn default() -> Self {
        Self { most: 1360 }
    }
}

impl BoxKind for MssSpec {
    const NAME: &'static str = "mss";
    const ABOUT: &'static str = "lowers the MSS option of SYNs, so that the other end sends smaller segments";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Parameter::new("most", Value::Whole(&mut self.most, 88, 65_435), "most bytes of the option")]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Mss(self))
    }
}

#[derive(Debug)]
struct Mss(MssSpec);

impl Middlebox for Mss {
    fn along(&mut self, _now: Instant, mut carried: Carried, passed: &mut Passed) {
        clamp(&mut carried.packet.segment, u16::try_from(self.0.most).unwrap_or(u16::MAX));
        passed.along.push(carried);
    }
}

fn clamp(segment: &mut Segment, most: u16) {
    if segment.options.mss().is_some_and(|mss| mss > most) {
        remove(segment, OptionKind::Mss.into());
        segment.options.set_mss(most);
    }
}
