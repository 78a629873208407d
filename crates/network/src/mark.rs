//! The one part of a packet that a queue changes.

/// An item, as far as queues look at it and change it: its ECN field (RFC 3168 §5). By default it is not ECN-capable.
pub trait Markable {
    /// A queue may mark it instead of dropping it.
    fn is_capable(&self) -> bool {
        false
    }

    /// Sets that it has experienced congestion; called only if it is capable.
    fn mark(&mut self) {}
}

/// Packets without content, of models.
impl Markable for () {}

/// Numbered packets, of models.
impl Markable for u32 {}

impl<T: Markable> Markable for Box<T> {
    fn is_capable(&self) -> bool {
        (**self).is_capable()
    }

    fn mark(&mut self) {
        (**self).mark();
    }
}
