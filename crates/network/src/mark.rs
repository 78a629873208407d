//! The parts of a packet that queues and middleboxes look at, and those that they change.

use crate::Carried;
use anabranch_wire::Ecn;

/// An item, as far as queues and middleboxes look at it and change it. By default it is not ECN-capable, of one flow with all others, and no
/// segment.
pub trait Markable: Sized {
    /// ECN field of the packet (RFC 3168 §5).
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Sets that it has experienced congestion; called only if it is capable.
    fn mark(&mut self) {}

    /// A hash of its 5-tuple.
    fn flow(&self) -> u64 {
        0
    }

    /// The segment in it; `None` if middleboxes pass it unseen.
    fn segment(&self) -> Option<Carried> {
        None
    }

    /// The item of a segment that a middlebox has changed or made; `None` where [`Self::segment`] is always `None`.
    fn of(carried: Carried) -> Option<Self> {
        let _ = carried;
        None
    }
}

/// Packets without content, of models.
impl Markable for () {}

/// Numbered packets, of models.
impl Markable for u32 {}

impl<T: Markable> Markable for Box<T> {
    fn ecn(&self) -> Ecn {
        (**self).ecn()
    }

    fn mark(&mut self) {
        (**self).mark();
    }

    fn flow(&self) -> u64 {
        (**self).flow()
    }

    fn segment(&self) -> Option<Carried> {
        (**self).segment()
    }

    fn of(carried: Carried) -> Option<Self> {
        T::of(carried).map(Box::new)
    }
}
