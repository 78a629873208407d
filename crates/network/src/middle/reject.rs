//! A box that refuses segments: a firewall that answers with RST, or says nothing.

use super::{BoxKind, Carried, Middlebox, OptionSet, Passed, Segments};
use crate::{Parameter, Value};
use anabranch_units::{Instant, SeqNumber};
use anabranch_wire::{Flags, Packet, Segment};

/// The answer to the sender of a refused segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// A reset.
    #[default]
    Reset,
    /// Nothing.
    Silence,
}

/// Refusal of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RejectSpec {
    /// Segments with one of these options; with none named, every one.
    pub options: OptionSet,
    /// The segments that it looks at.
    pub on: Segments,
    /// The answer to their sender.
    pub answer: Answer,
}

impl BoxKind for RejectSpec {
    const NAME: &'static str = "reject";
    const ABOUT: &'static str = "drops segments, and answers with RST";

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new(
                "options",
                Value::Options(&mut self.options),
                "segments with one of these; with none named, all",
            ),
            Parameter::new("on", Value::Segments(&mut self.on), "the segments that it looks at"),
            Parameter::new("answer", Value::Answer(&mut self.answer), "the answer to the sender of a refused segment"),
        ]
    }

    fn build(self) -> Box<dyn Middlebox> {
        Box::new(Reject(self))
    }
}

#[derive(Debug)]
struct Reject(RejectSpec);

impl Middlebox for Reject {
    fn along(&mut self, _now: Instant, carried: Carried, passed: &mut Passed) {
        let RejectSpec { options, on, answer } = self.0;
        let segment = &carried.packet.segment;
        if !on.fits(segment) || !options.is_empty() && !options.is_on(segment) {
            return passed.along.push(carried);
        }
        passed.against.extend(refuse(&carried, answer));
        passed.dropped.push(carried.packet.len() as u32);
    }
}

/// The answer to a segment that is refused. A reset is never answered.
pub(crate) fn refuse(carried: &Carried, answer: Answer) -> Option<Carried> {
    let Packet { src, dst, segment } = &carried.packet;
    let answers = answer == Answer::Reset && !segment.flags.has(Flags::RST);
    answers.then(|| {
        // RFC 9293 §3.10.7.1: as if there were no connection.
        let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
            (segment.ack, SeqNumber(0), Flags::RST)
        } else {
            (SeqNumber(0), segment.seq.at(segment.seq_len().into()), Flags::RST | Flags::ACK)
        };
        let (src_port, dst_port) = (segment.dst_port, segment.src_port);
        let reset = Segment { src_port, dst_port, seq, ack, flags, ..Segment::default() };
        carried.answer(Packet { src: *dst, dst: *src, segment: reset })
    })
}
