//! A queue without a limit.

use crate::{DropTail, Fifo, Limit, ManagedQueue, Parameter, Qdisc};
use anabranch_units::{Rate, Rng};

/// A queue of packets in the order of their arrival. It has no parameter beside its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoSpec;

impl ManagedQueue for FifoSpec {
    const NAME: &'static str = "fifo";
    const ABOUT: &'static str =
        "first in, first out; without a limit unless one is stated: the bufferbloat of a device that never drops";
    const LIMIT: Limit = Limit::Unlimited;

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        Vec::new()
    }

    fn marks(&self) -> bool {
        false
    }

    fn build(self, limit: DropTail, _rate: Rate, _rng: Rng) -> Box<dyn Qdisc> {
        Box::new(Fifo::new(limit))
    }
}
