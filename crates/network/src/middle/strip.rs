//! A box that removes options (mptcp_net-next #518, #544; Honda et al., IMC 2011).

use super::{BoxKind, Carried, Middlebox, OptionKind, OptionSet, Passed, Segments, remove};
use crate::{Misfit, Parameter, Value};
use anabranch_units::Instant;

/// Removal of options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripSpec {
    /// The options.
    pub options: OptionSet,
    /// The segments from which they are removed.
    pub on: Segments,
}

impl Default for StripSpec {
    fn default() -> Self {
        Self { options: OptionKind::Mptcp.into(), on: Segments::All }
    }
}

impl BoxKind for StripSpec {
    const NAME: &'static str = "strip";
    const ABOUT: &'static str = "removes options";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("options", Value::Options(&mut self.options), "the options"),
            Parameter::new("on", Value::Segments(&mut self.on), "the segments that it looks at"),
        ]
    }

    fn check(&self) -> Result<(), Misfit> {
        let (parameter, message, help) = ("options", "a box that removes nothing", "name an option, such as \"mptcp\"");
        if self.options.is_empty() { Err(Misfit { parameter, message, help }) } else { Ok(()) }
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Strip(self))
    }
}

#[derive(Debug)]
struct Strip(StripSpec);

impl Middlebox for Strip {
    fn along(&mut self, _now: Instant, mut carried: Carried, passed: &mut Passed) {
        if self.0.on.fits(&carried.packet.segment) {
            remove(&mut carried.packet.segment, self.0.options);
        }
        passed.along.push(carried);
    }
}
