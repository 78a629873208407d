//! A box that clears or sets the ECN field, and may clear what TCP negotiates about it (RFC 3168).

use super::{BoxKind, Carried, Middlebox, Passed};
use crate::{Parameter, Value};
use anabranch_units::Instant;
use anabranch_wire::{Ecn, Flags};

/// Another ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EcnSpec {
    /// The codepoint that packets get.
    pub set: Ecn,
    /// Also packets that are not ECN-capable get it.
    pub all: bool,
    /// ECE and CWR are cleared: on a SYN no ECN is negotiated, later no mark is echoed.
    pub flags: bool,
}

impl BoxKind for EcnSpec {
    const NAME: &'static str = "ecn";
    const ABOUT: &'static str = "sets the ECN field of IP headers";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("set", Value::Ecn(&mut self.set), "the codepoint; not-ect clears it (bleaching)"),
            Parameter::new("all", Value::Flag(&mut self.all), "also on packets that are not ECN-capable"),
            Parameter::new("flags", Value::Flag(&mut self.flags), "TCP's ECE and CWR are cleared too"),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(EcnBox(self))
    }
}

#[derive(Debug)]
struct EcnBox(EcnSpec);

impl Middlebox for EcnBox {
    fn along(&mut self, _now: Instant, mut carried: Carried, passed: &mut Passed) {
        let segment = &mut carried.packet.segment;
        if self.0.all || segment.ecn.is_capable() {
            segment.ecn = self.0.set;
        }
        if self.0.flags {
            segment.flags = Flags(segment.flags.0 & !(Flags::ECE | Flags::CWR).0);
        }
        passed.along.push(carried);
    }
}
