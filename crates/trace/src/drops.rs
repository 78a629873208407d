//! Dropped packets, counted by cause.

use crate::DropCause;

/// Packets that were dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue was full.
    pub queue: u64,
    /// Active queue management.
    pub aqm: u64,
    /// They exceeded the bucket of a policer.
    pub police: u64,
    /// They were larger than the path carries.
    pub mtu: u64,
    /// A middlebox refused them.
    pub middlebox: u64,
    /// Random loss.
    pub loss: u64,
    /// The path was down.
    pub outage: u64,
    /// Corrupted: for the receiver's checksum to drop.
    pub corruption: u64,
}

impl Drops {
    /// Adds a packet.
    pub const fn add(&mut self, cause: DropCause) {
        let count = match cause {
            DropCause::Queue => &mut self.queue,
            DropCause::Aqm => &mut self.aqm,
            DropCause::Police => &mut self.police,
            DropCause::Mtu => &mut self.mtu,
            DropCause::Middlebox => &mut self.middlebox,
            DropCause::Loss => &mut self.loss,
            DropCause::Outage => &mut self.outage,
            DropCause::Corruption => &mut self.corruption,
        };
        *count += 1;
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.queue + self.aqm + self.police + self.mtu + self.middlebox + self.loss + self.outage + self.corruption
    }
}
