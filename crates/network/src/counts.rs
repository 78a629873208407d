//! Counters of links.

use anabranch_trace::DropCause;

/// Packets of one direction of a link, cross traffic among them, and their fate so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets that left the bottleneck.
    pub packets: u64,
    /// Bytes of these packets, with their paths' overheads.
    pub bytes: u64,
    /// Dropped by a full queue.
    pub queue: u64,
    /// Dropped by active queue management.
    pub aqm: u64,
    /// Dropped by the policer.
    pub police: u64,
    /// Lost at random behind the bottleneck.
    pub loss: u64,
    /// Lost in an outage.
    pub outage: u64,
    /// Damaged, and dropped.
    pub corruption: u64,
    /// Marked by the queue (ECN).
    pub marked: u64,
    /// Most packets that waited when another joined the queue.
    pub queue_max: u32,
}

impl LinkCounts {
    /// Packets that were dropped, for any cause.
    pub const fn dropped(&self) -> u64 {
        self.queue + self.aqm + self.police + self.loss + self.outage + self.corruption
    }

    /// A packet was dropped.
    #[cold]
    pub(crate) fn note_drop(&mut self, cause: DropCause) {
        let count = match cause {
            DropCause::Queue => &mut self.queue,
            DropCause::Aqm => &mut self.aqm,
            DropCause::Police => &mut self.police,
            DropCause::Loss => &mut self.loss,
            DropCause::Outage => &mut self.outage,
            DropCause::Corruption => &mut self.corruption,
            // A path drops these before its first link.
            DropCause::Mtu | DropCause::Middlebox => return,
        };
        *count += 1;
    }
}
