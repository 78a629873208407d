//! Queueing disciplines: the packets that wait at a bottleneck, and those that are dropped.

use crate::{Discipline, QueueSpec};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};
use core::fmt::Debug;

/// A bottleneck's queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Packets waiting; the one in transmission does not count.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
    /// A packet is in transmission; otherwise the next one need not wait.
    pub busy: bool,
}

/// Decides which packets of a first-in-first-out queue are dropped. It holds no packets, only its own state.
pub trait Qdisc: Debug + Send {
    /// A packet of `size` bytes arrives at `queue`. An error drops it.
    fn admit(&mut self, now: Instant, size: u32, queue: QueueState) -> Result<(), DropCause>;

    /// A packet comes to the head after waiting for `sojourn`, with `queue` behind it. An error drops it, and the next
    /// one comes to the head at the same time.
    fn release(&mut self, _now: Instant, _size: u32, _sojourn: Duration, _queue: QueueState) -> Result<(), DropCause> {
        Ok(())
    }

    /// The packet for which [`Self::admit`] or [`Self::release`] has just returned [`DropCause::Aqm`] is ECN-capable. True if it is
    /// marked instead (RFC 3168 §5), and is taken as if there had been no error.
    fn marks(&mut self, _now: Instant) -> bool {
        false
    }

    /// The last packet left at `now`, and none waits.
    fn idle(&mut self, _now: Instant) {}
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
    /// The discipline, before a link of `rate`. A random one has its own stream, named after the bottleneck, `name`
    /// (`path.wlan.down`), and itself.
    pub(crate) fn build(&self, rate: Rate, seed: u64, name: &str) -> Box<dyn Qdisc> {
        match *self {
            QueueSpec::Packets(_) | QueueSpec::Bytes(_) => Box::new(self.limit()),
            QueueSpec::Managed(discipline, limit) => {
                discipline.build(limit, rate, Rng::stream(seed, &[name, discipline.name()].join(".")))
            }
        }
    }

    /// The capacity of the queue.
    pub fn limit(&self) -> DropTail {
        match *self {
            QueueSpec::Packets(limit) => DropTail::Packets(limit),
            QueueSpec::Bytes(limit) => DropTail::Bytes(limit),
            QueueSpec::Managed(_, limit) => limit,
        }
    }

    /// The discipline, if it is more than a limit.
    pub fn discipline(&self) -> Option<&Discipline> {
        match self {
            QueueSpec::Packets(_) | QueueSpec::Bytes(_) => None,
            QueueSpec::Managed(discipline, _) => Some(discipline),
        }
    }

    /// Whether it marks ECN-capable packets in place of dropping them.
    pub fn marks(&self) -> bool {
        self.discipline().is_some_and(Discipline::marks)
    }

    /// Whether it drops packets only on arrival at a full queue: then each departure is known on arrival.
    pub(crate) fn is_drop_tail(&self) -> bool {
        self.discipline().is_none()
    }
}
