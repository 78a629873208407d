//! A box that translates sequence numbers, as firewalls do that make initial ones random.

use super::{BoxKind, Carried, Middlebox, Passed, sift};
use crate::{Parameter, Value};
use anabranch_units::{Instant, SeqNumber};
use anabranch_wire::{Flags, SackBlock, Segment};

/// Translation of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TranslateSpec {
    /// The number that is added, modulo 2³².
    pub by: u32,
}

impl Default for TranslateSpec {
    fn default() -> Self {
        Self { by: 1_000_000_007 }
    }
}

impl BoxKind for TranslateSpec {
    const NAME: &'static str = "translate";
    const ABOUT: &'static str =
        "adds to sequence numbers, and takes it from the acknowledgments and SACK blocks that answer";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Parameter::new("by", Value::Whole(&mut self.by, 1, u32::MAX), "the number that is added, modulo 2^32")]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Translate(self))
    }
}

#[derive(Debug)]
struct Translate(TranslateSpec);

impl Middlebox for Translate {
    fn along(&mut self, _now: Instant, mut carried: Carried, passed: &mut Passed) {
        renumber(&mut carried.packet.segment, self.0.by, 0);
        passed.along.push(carried);
    }

    fn against(&mut self, _now: Instant, mut carried: Carried, passed: &mut Passed) {
        renumber(&mut carried.packet.segment, 0, self.0.by);
        passed.against.push(carried);
    }
}

/// Adds `ours` to a segment's sequence number, and takes `theirs` from its acknowledgment number and SACK blocks.
pub fn renumber(segment: &mut Segment, ours: u32, theirs: u32) {
    segment.seq = SeqNumber(segment.seq.0.wrapping_add(ours));
    let back = |n: SeqNumber| SeqNumber(n.0.wrapping_sub(theirs));
    if segment.flags.has(Flags::ACK) {
        segment.ack = back(segment.ack);
    }
    if theirs != 0 && !segment.options.sack().is_empty() {
        let sack = |block: SackBlock| SackBlock { start: back(block.start), end: back(block.end) };
        segment.options = sift(&segment.options, &|_| true, &sack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_translated_back() {
        let mut there =
            Segment { seq: SeqNumber(u32::MAX), flags: Flags::ACK, ack: SeqNumber(9), ..Segment::default() };
        renumber(&mut there, 5, 0);
        assert_eq!((there.seq.0, there.ack.0), (4, 9));
        let mut back = Segment { seq: SeqNumber(9), flags: Flags::ACK, ack: SeqNumber(4), ..Segment::default() };
        back.options.set_sack(&[SackBlock { start: SeqNumber(6), end: SeqNumber(8) }]);
        renumber(&mut back, 0, 5);
        assert_eq!((back.seq.0, back.ack.0), (9, u32::MAX));
        assert_eq!(back.options.sack(), [SackBlock { start: SeqNumber(1), end: SeqNumber(3) }]);
    }
}
