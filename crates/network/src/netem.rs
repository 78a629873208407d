//! A queue whose limit counts the packets in propagation too.

use crate::{DropTail, Fifo, Limit, ManagedQueue, Parameter, Qdisc};
use anabranch_units::{Rate, Rng};

/// Drop tail as Linux's netem does it: one limit for the packets that wait, are in transmission and in propagation, because
/// netem keeps all of them in one queue (`sch_netem.c`, `netem_enqueue`). It has no parameter beside its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemSpec;

impl ManagedQueue for NetemSpec {
    const NAME: &'static str = "netem";
    const ABOUT: &'static str = "drop tail whose limit also counts the packet in transmission and those in propagation, as tc-netem(8) does in \
        its delay line; 1000 packets unless stated";
    const LIMIT: Limit = Limit::Packets(1000);
    const COUNTS_PROPAGATION: bool = true;

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        Vec::new()
    }

    fn marks(&self) -> bool {
        false
    }

    /// The network applies the limit, since it knows what is in propagation.
    fn build(self, _limit: DropTail, _rate: Rate, _rng: Rng) -> Box<dyn Qdisc> {
        Box::new(Fifo::new(DropTail::UNLIMITED))
    }
}
