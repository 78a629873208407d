//! Middleboxes: parts of a path that change, make, hold back or refuse segments. A box is one file, and a line in `registry.rs`.

mod chain;
mod coalesce;
mod ecn;
mod flows;
mod forget;
mod mss;
mod options;
mod registry;
mod reject;
mod segments;
mod split;
mod strip;
mod terminate;
mod thin;
mod translate;

pub use coalesce::{CoalesceSpec, absorb};
pub use ecn::EcnSpec;
pub use forget::ForgetSpec;
pub use mss::MssSpec;
pub use options::{OptionKind, OptionSet, remove, sift};
pub use registry::{BoxKind, MiddleboxSpec};
pub use reject::{Answer, RejectSpec};
pub use segments::Segments;
pub use split::{SplitSpec, cut};
pub use strip::StripSpec;
pub use terminate::TerminateSpec;
pub use thin::ThinSpec;
pub use translate::{TranslateSpec, renumber};

pub(crate) use chain::{Boxes, Left};

use anabranch_units::Instant;
use anabranch_wire::Packet;
use core::fmt::Debug;

/// A segment before a box, with the facts that its carrier needs to carry it further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The segment.
    pub packet: Packet,
    /// Where it comes from and goes to, as the carrier numbers hosts.
    pub ends: (u32, u32),
    /// When it was sent.
    pub sent: Instant,
}

impl Carried {
    /// A segment that goes back to the sender of this one.
    #[must_use]
    pub fn answer(&self, packet: Packet) -> Self {
        Self { packet, ends: (self.ends.1, self.ends.0), sent: self.sent }
    }
}

/// Segments that leave a box, and packets that it dropped.
#[derive(Debug, Default)]
pub struct Passed {
    /// Segments in the box's direction.
    pub along: Vec<Carried>,
    /// Segments in the other direction.
    pub against: Vec<Carried>,
    /// Bytes of each packet of this direction that it drops.
    pub dropped: Vec<u32>,
}

/// A box on one direction of a path. It sees the segments of both directions in the order of time.
pub trait Middlebox: Debug + Send {
    /// A segment of the box's direction.
    fn along(&mut self, now: Instant, carried: Carried, passed: &mut Passed);

    /// A segment of the other direction.
    fn against(&mut self, now: Instant, carried: Carried, passed: &mut Passed) {
        let _ = now;
        passed.against.push(carried);
    }

    /// When it acts of its own accord; [`Instant::MAX`] for never.
    fn due(&self) -> Instant {
        Instant::MAX
    }

    /// Acts of its own accord, at [`Self::due`].
    fn wake(&mut self, now: Instant, passed: &mut Passed) {
        let _ = (now, passed);
    }
}
