//! Counters of links.

use anabranch_trace::Drops;

/// Packets of one direction of a link, cross traffic among them, and their fate so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets that left the bottleneck.
    pub packets: u64,
    /// Bytes of these packets, with their paths' overheads.
    pub bytes: u64,
    /// Packets that were dropped. A path drops those that are too large, and those that a box refuses, before its first link.
    pub drops: Drops,
    /// Marked by the queue (ECN).
    pub marked: u64,
    /// Most packets that waited when another joined the queue.
    pub queue_max: u32,
}
