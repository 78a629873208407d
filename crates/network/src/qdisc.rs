//! What waits at a bottleneck, and what is dropped.

use crate::QueueSpec;
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant};
use core::fmt::Debug;

/// A bottleneck's queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Packets waiting; the one in transmission does not count.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
    /// A packet is in transmission; if not, the next one need not wait.
    pub busy: bool,
}

/// Decides which packets of a first-in-first-out queue go on. It holds no packets, only its own memory of them.
pub trait Qdisc: Debug + Send {
    /// A packet of `size` bytes arrives and finds `queue`. An error drops it.
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause>;

    /// A packet comes to the head after waiting for `sojourn`, with `queue` behind it. An error drops it, and the next
    /// one comes to the head at the same time.
    fn release(&mut self, _now: Instant, _size: u32, _sojourn: Duration, _queue: QueueState) -> Result<(), DropCause> {
        Ok(())
    }
}

/// Takes packets while there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropTail {
    /// Room for this many packets.
    Packets(u32),
    /// Room for this many bytes; a packet fits whole or not at all.
    Bytes(u64),
}

impl Qdisc for DropTail {
    fn admit(&mut self, _now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause> {
        let room = match *self {
            DropTail::Packets(limit) => queue.packets < limit,
            DropTail::Bytes(limit) => queue.bytes.saturating_add(size.into()) <= limit,
        };
        if room || !queue.busy { Ok(()) } else { Err(DropCause::Queue) }
    }
}

impl QueueSpec {
    /// The discipline that it describes.
    pub(crate) fn build(&self) -> Box<dyn Qdisc> {
        Box::new(self.drop_tail())
    }

    /// It drops packets only as they come.
    pub(crate) fn drop_tail(&self) -> DropTail {
        match *self {
            QueueSpec::Packets(limit) => DropTail::Packets(limit),
            QueueSpec::Bytes(limit) => DropTail::Bytes(limit),
        }
    }
}
