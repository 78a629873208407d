//! The parts of a packet that a queue looks at, and the one that it changes.

use anabranch_wire::Ecn;

/// An item, as far as queues look at it and change it. By default it is not ECN-capable, and of one flow with all others.
pub trait Markable {
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
}
