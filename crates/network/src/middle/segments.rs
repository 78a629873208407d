//! Kinds of segments that a box acts on.

use anabranch_wire::{Flags, Segment};

/// The segments to which a rule applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segments {
    /// Every one.
    #[default]
    All,
    /// Those with SYN: also the SYN/ACK.
    Syn,
    /// Those without.
    NotSyn,
    /// Those with payload.
    Data,
    /// Those without payload, and without SYN.
    Pure,
    /// Resets.
    Reset,
}

impl Segments {
    /// Whether a segment is one of them.
    pub fn fits(self, segment: &Segment) -> bool {
        let syn = segment.flags.has(Flags::SYN);
        match self {
            Self::All => true,
            Self::Syn => syn,
            Self::NotSyn => !syn,
            Self::Data => !segment.payload.is_empty(),
            Self::Pure => segment.payload.is_empty() && !syn,
            Self::Reset => segment.flags.has(Flags::RST),
        }
    }
}
