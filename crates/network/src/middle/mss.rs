//! A box that lowers the MSS option, as routers before tunnels do.

use super::{BoxKind, Carried, Middlebox, OptionKind, Passed, sift};
use crate::{Parameter, Value};
use anabranch_units::Instant;
use anabranch_wire::{Options, Segment};

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
    let Some(mss) = segment.options.mss().filter(|mss| *mss > most) else { return };
    let rest = sift(&segment.options, &|kind| kind != OptionKind::Mss, &|block| block);
    let mut options = Options::new();
    debug_assert!(mss > most && rest.mss().is_none());
    options.set_mss(most);
    rest.timestamps().map(|stamps| options.set_timestamps(stamps));
    if rest.sack_permitted() {
        options.set_sack_permitted();
    }
    rest.window_scale().map(|shift| options.set_window_scale(shift));
    rest.dss().map(|dss| options.set_dss(*dss));
    rest.mptcp().iter().for_each(|option| _ = options.push_mptcp(*option));
    options.set_sack(rest.sack());
    segment.options = options;
}
