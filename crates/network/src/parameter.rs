//! Parameters of managed queues and of middleboxes, by the form that they have in scenario files.

use crate::{Answer, OptionSet, Segments};
use anabranch_units::{Duration, Rate};
use anabranch_wire::Ecn;

/// One parameter of a managed queue or a middlebox, and its value.
#[derive(Debug)]
pub struct Parameter<'a> {
    /// Name as scenario files write it.
    pub name: &'static str,
    /// Meaning in one line.
    pub about: &'static str,
    /// The value that it sets.
    pub value: Value<'a>,
}

impl<'a> Parameter<'a> {
    pub(crate) const fn new(name: &'static str, value: Value<'a>, about: &'static str) -> Self {
        Self { name, about, value }
    }
}

/// The place of a parameter's value, by the form that it has in scenario files.
#[derive(Debug)]
pub enum Value<'a> {
    /// A duration above zero.
    Time(&'a mut Duration),
    /// A probability.
    Probability(&'a mut f64),
    /// `true` or `false`.
    Flag(&'a mut bool),
    /// The length of an average queue.
    Threshold(&'a mut Threshold),
    /// Bytes of an IP packet.
    Packet(&'a mut u32),
    /// A number of things, at least one.
    Count(&'a mut u32),
    /// A real number above zero.
    Real(&'a mut f64),
    /// A rate, or none.
    Rate(&'a mut Option<Rate>),
    /// A whole number from the first bound to the second.
    Whole(&'a mut u32, u32, u32),
    /// Kinds of options.
    Options(&'a mut OptionSet),
    /// Kinds of segments.
    Segments(&'a mut Segments),
    /// A codepoint of the ECN field.
    Ecn(&'a mut Ecn),
    /// The answer to the sender of a refused segment.
    Answer(&'a mut Answer),
}

/// The length of an average queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Packets or bytes.
    pub amount: f64,
    /// Whether the limit counts bytes.
    pub in_bytes: bool,
}

impl Threshold {
    /// So many packets.
    pub const fn packets(amount: f64) -> Self {
        Self { amount, in_bytes: false }
    }
}

/// A parameter that does not fit the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Name of a parameter.
    pub parameter: &'static str,
    /// The contradiction, as a sentence.
    pub message: &'static str,
    /// Text to write instead.
    pub help: &'static str,
}
